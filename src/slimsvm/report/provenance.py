"""How a model was made: versions, settings, and a few lines of Python that make it again."""

from __future__ import annotations

import inspect
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import sklearn
from sklearn.base import BaseEstimator, clone

from ..frontiers.result import Frontier, classifier_of
from ..problem.formulation import Part

PACKAGES = ("slimsvm", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Of Python and what the result depends on, here and now."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a source tree that is not installed
            continue
    return found


def spelled(value: Any) -> str:
    """A value as Python writes it; functions by their names, not by where they lie in memory."""
    with sklearn.config_context(print_changed_only=True):
        text = value.__repr__(N_CHAR_MAX=10**6) if isinstance(value, BaseEstimator) else repr(value)
    text = re.sub(r"<function (.+?) at 0x[0-9a-f]+>", _function_name, text)
    return re.sub(r"<(\S+) object at 0x[0-9a-f]+>", r"\1(...)", text)


def _function_name(found: re.Match[str]) -> str:
    name = found.group(1).rpartition(".")[2]
    return name if name.isidentifier() else "your_function"


def settings(model: Any) -> list[tuple[str, str, str, bool]]:
    """Step, parameter, value, and whether it is the default."""
    steps = model.steps if hasattr(model, "steps") else [("", model)]
    found = []
    for name, step in steps:
        if not isinstance(step, BaseEstimator):
            continue
        usual = {key: parameter.default for key, parameter in inspect.signature(type(step)).parameters.items()}
        for key, value in step.get_params(deep=False).items():
            spelling = spelled(value)
            found.append((name, key, spelling, key in usual and spelled(usual[key]) == spelling))
    return found


def seed_of(model: Any) -> Any:
    """Its random_state; None where it has none."""
    return getattr(classifier_of(model), "random_state", None)


# --- Python that makes it again ------------------------------------------------------------------------------------


def size_in(frontier: Frontier | None, model: Any) -> int | None:
    """Which of a frontier's models this is."""
    if frontier is None:
        return None
    mine = classifier_of(model)
    for size, other in frontier.models.items():
        last = classifier_of(other)
        same = last.vectors_.shape == mine.vectors_.shape and (last.vector_coef_ == mine.vector_coef_).all()
        if last is mine or same:
            return size
    return None


def snippet(model: Any, frontier: Frontier | None, rows: int, accuracy: float) -> str:
    """A few lines to copy."""
    size = size_in(frontier, model)
    lines, needed = _on_frontier(frontier, size, model) if frontier is not None and size else _alone(model)
    homes: dict[str, set[str]] = {}
    for kind in needed:
        homes.setdefault(_home(kind), set()).add(kind.__name__)
    imports = [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items())]
    if any(re.search(r"\barray\(", line) for line in lines):
        imports.insert(0, "from numpy import array")
    rest = [
        f"# X, y: the rows to train on; X_test, y_test: the {rows} rows of this report",
        *lines,
        f"model.score(X_test, y_test)  # {accuracy:.4f} here",
    ]
    return "\n".join([*imports, "", *rest])


def _on_frontier(frontier: Frontier | None, size: int | None, model: Any) -> tuple[list[str], list[Any]]:
    """One of several sizes, which are made together."""
    from ..frontiers.compute import frontier as make

    assert frontier is not None
    plain = clone(model)
    seed = seed_of(model)
    classifier_of(plain).set_params(n_vectors=20, random_state=0)
    scoring = "" if frontier.scoring == "accuracy" else f", scoring={frontier.scoring!r}"
    lines = [
        f"estimator = {spelled(plain)}",
        f"found = frontier(X, y, sizes={frontier.sizes}, estimator=estimator{scoring}, random_state={spelled(seed)})",
        f"model = found.models[{size}]",
    ]
    return lines, [*_kinds(plain), make]


def _alone(model: Any) -> tuple[list[str], list[Any]]:
    last = classifier_of(model)
    told = getattr(last, "compression_", None)
    if told is not None and told.agreement_on_X is None and last.estimator is not None:  # made without rows
        from .. import compress

        large = clone(model)
        if last is not model:
            large.steps[-1] = (large.steps[-1][0], clone(last.estimator))
        else:
            large = clone(last.estimator)
        count = f"n_vectors={last.n_vectors!r}, method={last.method!r}, random_state={spelled(last.random_state)}"
        lines = [f"large = {spelled(large)}", f"model = compress(large.fit(X, y), {count})"]
        return lines, [*_kinds(large), compress]
    plain = clone(model)
    return [f"model = {spelled(plain)}", "model.fit(X, y)"], _kinds(plain)


def _kinds(model: Any) -> list[type]:
    """The classes that its spelling names."""
    inner = [type(value) for value in model.get_params(deep=True).values() if isinstance(value, (BaseEstimator, Part))]
    text = spelled(model)
    return [kind for kind in dict.fromkeys([type(model), *inner]) if re.search(rf"\b{kind.__name__}\(", text)]


def _home(kind: Any) -> str:
    """The shortest module that users import it from."""
    parts = kind.__module__.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if getattr(import_module(name), kind.__name__, None) is kind:
            return name.replace("slimsvm.parts.", "slimsvm.")
    return kind.__module__
