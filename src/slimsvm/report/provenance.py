"""How a model was made: versions, settings, and a few lines of Python that reproduce it."""

from __future__ import annotations

import inspect
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from ..estimators import compress
from ..frontiers import frontier as compute_frontier
from ..frontiers.result import Frontier, classifier_of
from ..problem.formulation import Part

PACKAGES = ("slimsvm", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Installed versions of Python and of the packages that results depend on."""
    numbers = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:  # a source tree that is not installed
            continue
    return numbers


def spelled(value: Any) -> str:
    """The repr of a value, with functions and objects by name, without memory addresses."""
    with sklearn.config_context(print_changed_only=True):
        text = value.__repr__(N_CHAR_MAX=10**6) if isinstance(value, BaseEstimator) else repr(value)
    text = re.sub(r"<function (.+?) at 0x[0-9a-f]+>", _function_name, text)
    return re.sub(r"<(\S+) object at 0x[0-9a-f]+>", r"\1(...)", text)


def _function_name(found: re.Match[str]) -> str:
    name = found.group(1).rpartition(".")[2]
    return name if name.isidentifier() else "your_function"


def settings(model: Any) -> list[tuple[str, str, str, bool]]:
    """For each parameter: its step, name and value, and whether the value is the default."""
    lines = []
    for name, step in model.steps if isinstance(model, Pipeline) else [("", model)]:
        if not isinstance(step, BaseEstimator):
            continue
        defaults = {key: parameter.default for key, parameter in inspect.signature(type(step)).parameters.items()}
        for key, value in step.get_params(deep=False).items():
            spelling = spelled(value)
            lines.append((name, key, spelling, key in defaults and spelled(defaults[key]) == spelling))
    return lines


# --- Python that reproduces the model ------------------------------------------------------------------------------


def size_in(frontier: Frontier | None, model: Any) -> int | None:
    """The number of vectors if the model is one of the frontier's, otherwise None."""
    if frontier is None:
        return None
    estimator = classifier_of(model)
    for size, other in frontier.models.items():
        last = classifier_of(other)
        same = last.vectors_.shape == estimator.vectors_.shape and (last.vector_coef_ == estimator.vector_coef_).all()
        if last is estimator or same:
            return size
    return None


def snippet(model: Any, frontier: Frontier | None, rows: int, accuracy: float) -> str:
    """Python code that reproduces the model."""
    size = size_in(frontier, model)
    lines, used = _from_frontier(frontier, size, model) if frontier is not None and size else _alone(model)
    modules: dict[str, set[str]] = {}
    for one in used:
        modules.setdefault(_public_module(one), set()).add(one.__name__)
    imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items())]
    if any(re.search(r"\barray\(", line) for line in lines):
        imports.insert(0, "from numpy import array")
    rest = [
        f"# X, y: the rows to train on; X_test, y_test: the {rows} rows of this report",
        *lines,
        f"model.score(X_test, y_test)  # {accuracy:.4f} here",
    ]
    return "\n".join([*imports, "", *rest])


def _from_frontier(frontier: Frontier, size: int, model: Any) -> tuple[list[str], list[Any]]:
    """Lines of code that compute the frontier and take one of its models, and the objects that they import."""
    plain = clone(model)
    seed = getattr(classifier_of(model), "random_state", None)
    classifier_of(plain).set_params(n_vectors=20, random_state=0)
    scoring = "" if frontier.scoring == "accuracy" else f", scoring={frontier.scoring!r}"
    lines = [
        f"estimator = {spelled(plain)}",
        f"found = frontier(X, y, sizes={frontier.sizes}, estimator=estimator{scoring}, random_state={spelled(seed)})",
        f"model = found.models[{size}]",
    ]
    return lines, [*_classes_in(plain), compute_frontier]


def _alone(model: Any) -> tuple[list[str], list[Any]]:
    """Lines of code that fit the model, or fit and compress a larger one, and the objects that they import."""
    last = classifier_of(model)
    compression = getattr(last, "compression_", None)
    without_rows = compression is not None and compression.agreement_on_X is None
    if without_rows and last.estimator is not None:
        large = clone(model)
        if last is not model:
            large.steps[-1] = (large.steps[-1][0], clone(last.estimator))
        else:
            large = clone(last.estimator)
        count = f"n_vectors={last.n_vectors!r}, method={last.method!r}, random_state={spelled(last.random_state)}"
        lines = [f"large = {spelled(large)}", f"model = compress(large.fit(X, y), {count})"]
        return lines, [*_classes_in(large), compress]
    plain = clone(model)
    return [f"model = {spelled(plain)}", "model.fit(X, y)"], _classes_in(plain)


def _classes_in(model: Any) -> list[type]:
    """The classes whose names occur in `spelled` of the model."""
    inner = [type(value) for value in model.get_params(deep=True).values() if isinstance(value, (BaseEstimator, Part))]
    text = spelled(model)
    return [kind for kind in dict.fromkeys([type(model), *inner]) if re.search(rf"\b{kind.__name__}\(", text)]


def _public_module(kind: Any) -> str:
    """The shortest module path from which users can import a class or function."""
    parts = kind.__module__.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if getattr(import_module(name), kind.__name__, None) is kind:
            return name.replace("slimsvm.problem.", "slimsvm.")
    return kind.__module__
