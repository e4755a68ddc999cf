"""The closed list of classes that a file may hold, by stable names, and the attributes that each may have."""

from __future__ import annotations

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
ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
MAX_SHOWN = 60  # characters of a value in a message

State = dict[str, Any]  # attributes by name
Complaint = Callable[[State], str]  # the error message for invalid attributes; empty if they are valid
Change = Callable[[State], State]


def no_complaint(state: State) -> str:
    return ""


def unchanged(state: State) -> State:
    return state


@dataclass(frozen=True)
class ClassSchema:
    """The attributes that objects of a class may have in a file, with their checks.

    ``params`` are parameters of the constructor, which have defaults; attributes in ``fitted`` are optional. ``others``
    checks attributes of any other name; None forbids these. ``complain`` checks all attributes together.
    """

    name: str
    kind: type
    params: dict[str, Check]
    fitted: dict[str, Check] = field(default_factory=dict)
    others: Check | None = None
    complain: Complaint = no_complaint
    before_writing: Change = unchanged
    after_reading: Change = unchanged
    upgrade: Change = unchanged  # converts attributes of other versions of scikit-learn
    only_unfitted: bool = False  # may a file hold unfitted objects only?

    @property
    def is_estimator(self) -> bool:
        return hasattr(self.kind, "fit") and not self.only_unfitted

    def state(self, value: Any) -> State:
        """The attributes of an object, as written to the file."""
        return self.before_writing(dict(vars(value)))

    def make(self, state: State) -> Any:
        """Make an object with these attributes, without calling any code of its class."""
        made: Any = object.__new__(self.kind)
        vars(made).update(self.after_reading(state))
        return made

    def defaults(self) -> State:
        """Defaults of the parameters, for files of versions that did not have all of them."""
        return _defaults(self.kind)

    def unknown(self, state: State) -> list[str]:
        """Names of attributes that the class does not have."""
        return [name for name in state if name not in self.params and name not in self.fitted and not self._other(name)]

    def _other(self, name: str) -> bool:
        """Is an attribute of this unlisted name allowed? It must not shadow one of the class."""
        if self.others is None or not ATTRIBUTE.fullmatch(name):
            return False
        return not name.startswith("__") and not hasattr(self.kind, name)

    def complaint(self, state: State) -> str:
        """The error message for these attributes; empty if they are valid."""
        title = self.kind.__name__
        unknown = self.unknown(state)
        if unknown:
            return (
                f"{title} has no attribute {unknown[0][:MAX_SHOWN]!r} that a .slim file could hold; what you want to "
                "keep beside a model goes into metadata"
            )
        for name in self.params:
            if name not in state:
                return f"{title}.{name} is missing"
        for name, value in state.items():
            check = self.params.get(name) or self.fitted.get(name) or self.others
            if check is not None and not check.holds(value):
                return f"{title}.{name} must be {check.words}{_instead(value)}"
        return self.complain(state)


def _instead(value: Any) -> str:
    """The end of an error message: what the value is; empty for containers, whose items may be at fault."""
    match value:
        case list() | tuple() | dict():
            return ""
        case np.ndarray():
            return f", not an array of type {value.dtype} and shape {value.shape}"
        case None | bool() | int() | float() | str():
            text = repr(value)
        case _:
            text = f"a {type(value).__name__}"
    return f", not {text}" if len(text) <= MAX_SHOWN else f", not {text[: MAX_SHOWN - 3]}..."


@cache
def _defaults(kind: type) -> State:
    signature = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in signature if p.default is not p.empty}


def parameters(kind: type, special: dict[str, Check]) -> dict[str, Check]:
    """Checks of the constructor's parameters: plain data, unless ``special`` has another check."""
    names = [p.name for p in inspect.signature(kind).parameters.values() if p.kind != p.VAR_KEYWORD]
    return {name: special.get(name, DATA) for name in names}


def record(name: str, kind: Any, **checks: Check) -> ClassSchema:
    """The schema of a frozen dataclass: plain data in every field, unless ``checks`` has another check."""
    return ClassSchema(name, kind, {f.name: checks.get(f.name, DATA) for f in fields(kind)})


# --- the list ----------------------------------------------------------------------------------------------------

# Functions that return schemas, by the names in files; those for scikit-learn import the class when called.
_SCHEMAS: dict[str, Callable[[], ClassSchema | None]] = {}
_NAMES: dict[type, str] = {}  # of this library's classes


def register(schema: ClassSchema) -> None:
    """Add a class of this library to the list."""
    _SCHEMAS[schema.name] = lambda: schema
    _NAMES[schema.kind] = schema.name


def register_sklearn(name: str, make: Callable[[], ClassSchema | None]) -> None:
    """Add a class of scikit-learn to the list; ``make`` returns None if this version does not have the class."""
    _SCHEMAS[f"sklearn.{name}"] = make


def schema_named(name: Any) -> ClassSchema | None:
    """The schema of the class of this name in files; None if it is not in the list."""
    make = _SCHEMAS.get(name) if type(name) is str else None
    return make() if make else None


def schema_of(value: Any) -> ClassSchema | None:
    """The schema of an object; None if its exact class is not in the list."""
    kind = type(value)
    schema = schema_named(_NAMES.get(kind, f"sklearn.{kind.__name__}"))
    if schema is None or schema.kind is not kind or (schema.only_unfitted and schema.unknown(vars(value))):
        return None
    return schema


def is_estimator(value: Any) -> bool:
    """Is it an estimator of the list? No for the SVMs of scikit-learn, which are listed for their parameters only."""
    schema = schema_of(value)
    return schema is not None and schema.is_estimator


# Advice for objects that users try to save, by the name of their class or a base class.
ADVICE = {
    "RandomState": "Use an integer for random_state. ",
    "Generator": "Use an integer for random_state. ",
    "Frontier": "Save one of its models, such as frontier.best(). ",
    "BaseLibSVM": "Make it small first: slimsvm.compress(model, n_vectors=...). ",
    "Function": "A kernel that is a function is code. ",
    "MetadataRequest": "Requests of metadata (set_fit_request and the like) are not kept. ",
}


def advice(value: Any) -> str:
    """Advice for an object that cannot be saved; empty if there is none."""
    if hasattr(value, "best_estimator_"):
        return "Save its best_estimator_. "
    names = {base.__name__ for base in type(value).__mro__}
    return next((text for name, text in ADVICE.items() if name in names), "")
