"""scikit-learn's own tests of its support vector machines, as functions that test ours.

The installed files are run once more, as modules of their own, while `sklearn.svm` has our classes; what they look up
when a test runs (`svm.SVC`) is a copy of that module. Nothing of scikit-learn itself stays changed.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import sklearn
import sklearn.svm

import slimsvm

FILES = ("test_svm", "test_sparse", "test_bounds")
OURS = {kind.__name__ for kind in slimsvm.estimators.FAMILY}


def folder() -> Path | None:
    """Where scikit-learn's tests are; some packages of it have none."""
    found = Path(sklearn.__file__).parent / "svm" / "tests"
    return found if all((found / f"{name}.py").exists() for name in FILES) else None


def module_of(name: str) -> types.ModuleType:
    """One of the files, run with our classes."""
    path = Path(find_spec(f"sklearn.svm.tests.{name}").origin)
    module = types.ModuleType(f"ours_{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # pickles look there
    slimsvm.patch_sklearn()
    try:
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        if "svm" in vars(module):
            module.svm = types.SimpleNamespace(**vars(sklearn.svm))
    finally:
        slimsvm.unpatch_sklearn()
    return module


def tests() -> Iterator[tuple[str, Callable, bool]]:
    """Name, function, and whether it has to do with one of our classes."""
    for name in FILES:
        module = module_of(name)
        for attribute, function in vars(module).items():
            if attribute.startswith("test_") and callable(function):
                yield f"{name}__{attribute.removeprefix('test_')}", function, _concerns(function)


def _concerns(function: Callable) -> bool:
    """Does it name one of our classes, itself or among its parameters?"""
    given = [mark.args[1] for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    return bool(OURS & _names(function.__code__)) or any(map(_has_ours, given))


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _has_ours(value: object) -> bool:
    value = value.func if isinstance(value, partial) else value
    if isinstance(value, (list, tuple, set)):
        return any(map(_has_ours, value))
    kind = value if isinstance(value, type) else type(value)
    return kind in slimsvm.estimators.FAMILY
