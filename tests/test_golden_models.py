"""Fitted models keep their bits, and errors and warnings their words: a move or a new name changes neither."""

from __future__ import annotations

import json

import pytest

import golden_models

KEPT = json.loads(golden_models.FILE.read_text(encoding="utf-8"))
HOW = "`python tests/golden_models.py --write` writes the file anew: do so from sources whose models are the right ones"


@pytest.mark.parametrize("group", golden_models.ALL_GROUPS)
def test_models_are_the_same(group):
    found = golden_models.in_own_process(group)
    if differs := environments(KEPT["environment"], found["environment"]):
        pytest.skip(f"the fingerprints were made elsewhere: {'; '.join(differs)}. {HOW}")
    if group == "errors":
        assert found["errors"] == KEPT["errors"]
        return
    kept = {name: model for name, model in KEPT["models"][group].items() if name not in found["missing"]}
    changes = differences(kept, found["models"].get(group, {}))
    assert not changes, "\n".join(["these models changed:", *changes, HOW])
    if found["missing"]:
        pytest.skip(f"all others are the same, but packages are missing: {found['missing']}")


def environments(kept, found):
    """Says in what two environments differ."""
    return [f"{name} {kept.get(name)}, here {found.get(name)}" for name in found if kept.get(name) != found.get(name)]


def differences(kept, found):
    """Says which parts of which models differ, a line for each model."""
    lines = []
    for name in kept.keys() | found.keys():
        if name not in kept or name not in found:
            lines.append(f"  {name}: {'not in the file' if name not in kept else 'no longer declared'}")
            continue
        before, after = kept[name]["hashes"], found[name]["hashes"]
        if before == after:
            continue
        parts = [part for part in before.keys() & after.keys() if before[part] != after[part]]
        parts += [f"{part} (new)" for part in after.keys() - before.keys()]
        parts += [f"{part} (gone)" for part in before.keys() - after.keys()]
        numbers = kept[name]["numbers"], found[name]["numbers"]
        shown = [f"{key} {numbers[0].get(key)} -> {value}" for key, value in numbers[1].items()]
        lines.append(f"  {name}: {', '.join(sorted(parts))}; {', '.join(shown)}")
    return sorted(lines)


def test_a_small_change_is_seen():
    """Another tolerance, and one bit of an attribute."""
    before = golden_models.GROUPS["norms"]["AnyNormSVC l2"].result()
    after = {**before, "hashes": before["hashes"] | {"coef_": "0"}}
    assert differences({"one": before}, {"one": before}) == []
    assert differences({"one": before}, {"one": after})[0].startswith("  one: coef_ (new); sum of objective_")
    values = golden_models.np.linspace(0, 1, 5)
    close = golden_models.np.nextafter(values, 2)
    assert golden_models.fingerprint(values) != golden_models.fingerprint(close)
    assert golden_models.fingerprint(values) != golden_models.fingerprint(values[:, None])
    assert golden_models.fingerprint(values) == golden_models.fingerprint(values.copy())
