"""The classes that a file may hold, by names that stay, with what each may have: a closed list."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np

from .checks import DATA, Check

ALLOWED = (
    "A .slim file holds data, estimators and parts of slimsvm, and the usual preprocessing of scikit-learn: Pipeline, "
    "ColumnTransformer, scalers, encoders, SimpleImputer, PCA and the like. Leave it out of the model, or use pickle "
    "or skops for this one"
)
State = dict[str, Any]
Fits = Callable[[State], str]
Changed = Callable[[State], State]
ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def _well(state: State) -> str:
    return ""


def _same(state: State) -> State:
    return state


@dataclass(frozen=True)
class Form:
    """What objects of a class have in a file.

    ``params`` are what its constructor takes, and have defaults; ``fitted`` may be there or not. Other attributes are
    data where ``others`` says so. ``fits`` looks at all of them together: an empty text says that they are well.
    """

    name: str
    kind: type
    params: dict[str, Check]
    fitted: dict[str, Check] = field(default_factory=dict)
    others: Check | None = None
    fits: Fits = _well
    kept: Changed = _same  # attributes as they are written ...
    made: Changed = _same  # ... and as they are read
    renewed: Changed = _same  # the same, from a file of another version of scikit-learn

    def state(self, value: Any) -> State:
        """The attributes of an object, as they are written."""
        return self.kept(dict(vars(value)))

    def make(self, state: State) -> Any:
        """An object with these attributes. Nothing of the class is called."""
        made: Any = object.__new__(self.kind)
        vars(made).update(self.made(state))
        return made

    def defaults(self) -> State:
        """Of parameters, for those that an older version did not have yet."""
        return _defaults(self.kind)

    def unknown(self, state: State) -> list[str]:
        """Attributes that the class has not."""
        return [name for name in state if name not in self.params and name not in self.fitted and not self._other(name)]

    def _other(self, name: str) -> bool:
        """May there be such an attribute, of which no more is known? It must not hide one of the class."""
        hides = name.startswith("__") or hasattr(self.kind, name)
        return self.others is not None and ATTRIBUTE.fullmatch(name) is not None and not hides

    def complaint(self, state: State) -> str:
        """What is wrong with the attributes; empty if nothing is."""
        title = self.kind.__name__
        unknown = self.unknown(state)
        if unknown:
            return (
                f"{title} has no attribute {unknown[0][:60]!r} that a .slim file could hold; what you want to keep "
                "beside a model goes into metadata"
            )
        for name in self.params:
            if name not in state:
                return f"{title}.{name} is missing"
        for name, value in state.items():
            check = self.params.get(name) or self.fitted.get(name) or self.others
            if check is not None and not check.holds(value):
                return f"{title}.{name} must be {check.words}{_shown(value)}"
        return self.fits(state)


def _shown(value: Any) -> str:
    """What it is instead; of lists nothing, as it is something in them."""
    if isinstance(value, (list, tuple, dict)):
        return ""
    if isinstance(value, np.ndarray):
        return f", not an array of type {value.dtype} and shape {value.shape}"
    text = repr(value) if isinstance(value, (type(None), bool, int, float, str)) else f"a {type(value).__name__}"
    return f", not {text}" if len(text) <= 60 else f", not {text[:57]}..."


@cache
def _defaults(kind: type) -> State:
    signature = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in signature if p.default is not p.empty}


def parameters(kind: type, **special: Check) -> dict[str, Check]:
    """Checks for what the constructor takes: data, unless said otherwise."""
    names = [p.name for p in inspect.signature(kind).parameters.values() if p.kind != p.VAR_KEYWORD]
    return {name: special.get(name, DATA) for name in names}


def record(kind: Any, name: str, **checks: Check) -> Form:
    """A frozen dataclass, its fields by name."""
    return Form(name, kind, {f.name: checks.get(f.name, DATA) for f in fields(kind)})


# --- the list ----------------------------------------------------------------------------------------------------


def form(name: Any) -> Form | None:
    """The form of the class that a file calls so, if it is in the list."""
    if not isinstance(name, str):
        return None
    package, _, rest = name.partition(".")
    if package == "slimsvm":
        from .slimsvm_classes import own_forms

        return own_forms().get(name)
    if package == "sklearn":
        from .sklearn_classes import sklearn_form

        return sklearn_form(rest)
    return None


def form_of(value: Any) -> Form | None:
    """The form of an object, if its class, not one that inherits from it, is in the list."""
    from .sklearn_classes import MACHINES, sklearn_form
    from .slimsvm_classes import own_names

    kind = type(value)
    if kind in own_names():
        return form(own_names()[kind])
    found = sklearn_form(kind.__name__)
    if found is None or found.kind is not kind:
        return None
    fitted = kind.__name__ in MACHINES and found.unknown(vars(value))
    return None if fitted else found


def is_estimator(value: Any) -> bool:
    """Is it an estimator of the list? Machines of scikit-learn are there for their parameters only."""
    from .sklearn_classes import MACHINES

    found = form_of(value)
    of_sklearn = {f"sklearn.{name}" for name in MACHINES}
    return found is not None and hasattr(found.kind, "fit") and found.name not in of_sklearn


def imported(module: str, name: str) -> Any:
    """A class of a module; both are constants of this package. None where this version has none."""
    return getattr(importlib.import_module(module), name, None)


def hint(value: Any) -> str:
    """What to do with some objects that people try to save."""
    kind = type(value)
    names = {base.__name__ for base in kind.__mro__}
    if hasattr(value, "best_estimator_"):
        return "Save its best_estimator_. "
    if names & {"RandomState", "Generator"}:
        return "Use an integer for random_state. "
    if "Frontier" in names:
        return "Save one of its models, such as frontier.best(). "
    if "BaseLibSVM" in names:
        return "Make it small first: slimsvm.compress(model, n_vectors=...). "
    if "Function" in names and hasattr(value, "function"):
        return "A kernel that is a function is code. "
    if "MetadataRequest" in names:
        return "Requests of metadata (set_fit_request and the like) are not kept. "
    if names & {"Part", "ExpansionModel"}:
        return "A class of your own is code. "
    return ""
