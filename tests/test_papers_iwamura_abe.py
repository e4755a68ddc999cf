"""Recipes of Iwamura and Abe: declarations, the smallest piece of each, and what their machines promise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

import papers
from papers import datasets
from papers.iwamura_abe import choices, figures, machines, settings
from papers.running import Store, measured
from slimsvm import AnyNormSVC, EmpiricalSVC

ALL = papers.recipes("iwamura_abe")
KINDS = ("linear", "l1", "l2")


def by_name(name):
    return next(one for one in ALL if one.name == f"iwamura_abe-{name}")


def smallest(recipe, name, tmp_path):
    """The first quick task of a set that is made where it is not stored."""
    tasks = [task.name for task in recipe.tasks() if task.quick and name in task.data]
    return measured(recipe, Store(tmp_path, "test"), True, 1, False, only=lambda task: task.name == tasks[0])


def test_every_table_and_figure_has_a_recipe():
    names = {*(f"iwamura_abe-table-{k}" for k in range(2, 14)), "iwamura_abe-figure-1", "iwamura_abe-figure-2"}
    assert {one.name for one in ALL} == names


@pytest.mark.parametrize("number", range(2, 14))
def test_all_sets_are_printed(number):
    """Each table has every set of the paper, with as many runs as the set has splits there."""
    recipe = by_name(f"table-{number}")
    assert {row for row, _ in recipe.printed} == set(recipe.rows) == set(datasets.RAETSCH)
    assert {name for task in recipe.tasks() for name in task.data} == set(datasets.RAETSCH)
    for (row, _), number in recipe.printed.items():
        assert number.runs in (None, datasets.table.ALL[row].protocol.n_splits)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_one_kind_share_their_runs(kind, tmp_path):
    """Rates, vectors and seconds come from one training of each machine."""
    sharing = [one for one in ALL if one.kept_as == f"iwamura_abe-{kind}"]
    assert len(sharing) == 3
    first = smallest(sharing[0], "twonorm", tmp_path)
    done = [smallest(one, "twonorm", tmp_path) for one in sharing]
    for one in done:
        assert one.seconds == first.seconds
        assert {cell.row for cell in one.cells} == {"twonorm"}
        assert {cell.column.name for cell in one.cells} == {column.name for column in one.recipe.columns}
        assert all(len(cell.samples) == machines.AT_ONCE for cell in one.cells)


def test_a_task_gives_the_same_again():
    def rates(found):
        return [{name: (one[machines.RATE], one[machines.VECTORS]) for name, one in split.items()} for split in found]

    assert rates(machines.trained("linear", "ringnorm", 0)) == rates(machines.trained("linear", "ringnorm", 0))


def test_the_inputs_as_features_are_the_linear_machine():
    """OSV is the SVM over all rows, with as many vectors as inputs."""
    found = machines.trained("linear", "twonorm", 0)
    for split in found:
        assert split[machines.OSV][machines.RATE] == pytest.approx(split[machines.SVM][machines.RATE], abs=0.05)
        assert split[machines.OSV][machines.VECTORS] == 20


def test_support_vectors_count_equal_rows():
    """Rows given twice are one vector of the machine, and two support vectors."""
    split = datasets.load("twonorm", split=0).mapped(MinMaxScaler())
    twice = datasets.Split(np.vstack([split.X] * 2), np.hstack([split.y] * 2), split.X_test, split.y_test)
    once = AnyNormSVC(C=2, gamma=0.05, slack="l2").fit(split.X, split.y)
    both = AnyNormSVC(C=1, gamma=0.05, slack="l2").fit(twice.X, twice.y)
    assert once.n_vectors_ == both.n_vectors_ <= machines.support(once, split)
    assert machines.support(both, twice) == 2 * machines.support(once, split)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_chosen_by_the_rule_of_the_paper(kind, tmp_path):
    """The smallest task of its table runs, and its choice is on the grid."""
    number = {"linear": 2, "l1": 3, "l2": 10}[kind]
    recipe = by_name(f"table-{number}")
    data = "thyroid" if datasets.available("thyroid") else "twonorm"
    which = choices.OSV if kind == "linear" else choices.SPARSE
    lines = choices.validated(kind, which, data, 0, 0.5)
    assert [C for C, _, _ in lines] == list(choices.COSTS)
    assert all(0 <= rate <= 100 and 0 <= test <= 100 for _, rate, test in lines)
    found = recipe.gather({f"{data}/{which}/0/0.5": lines})
    assert found[data, f"C of {which}"][0] in choices.COSTS


def test_the_rule():
    """Of each part the smallest of the best C; the value with the highest mean; the median of its C."""

    def grid(rates):
        return {
            (C, value): (rate, 0.0) for value, row in rates.items() for C, rate in zip((1, 10, 100), row, strict=True)
        }

    grids = [
        grid({0.1: (90, 90, 80), 0.5: (70, 95, 95)}),
        grid({0.1: (90, 91, 80), 0.5: (70, 80, 95)}),
        grid({0.1: (99, 80, 80), 0.5: (70, 80, 96)}),
    ]
    assert choices.chosen(grids) == (100, 0.5)
    assert choices.chosen(grids[:1]) == (10, 0.5)


@pytest.mark.parametrize("number", [1, 2])
def test_figures(number, tmp_path):
    """A smaller eta keeps more rows; the picture is drawn."""
    recipe = by_name(f"figure-{number}")
    name = next(iter(recipe.tasks())).data[0]
    if not datasets.available(name):
        pytest.skip(f"{name} is not stored here")
    found = smallest(recipe, name, tmp_path)
    vectors = [cell.ours for cell in found.cells if cell.column.name == figures.VECTORS]
    assert vectors == sorted(vectors)
    pytest.importorskip("matplotlib")
    assert papers.save(found, tmp_path)[-1].suffix == ".png"


def test_settings_are_those_of_the_paper():
    """The grid of the paper has them; the one correction is named."""
    for kind, table in choices.SETTINGS.items():
        for name, setting in table.items():
            for which in (choices.OSV, choices.NOSV) if kind == "linear" else (choices.SVM, choices.SPARSE):
                C, value = choices.paper_choice(kind, name, which)
                assert C in choices.COSTS
                assert kind == "linear" or value in (choices.GAMMAS if which == choices.SVM else choices.ETAS)
            assert EmpiricalSVC(setting.eta).eta < 1
    changed = [name for name in settings.SETS if settings.L2[name] != settings.L2_PRINTED[name]]
    assert changed == ["ringnorm"]
