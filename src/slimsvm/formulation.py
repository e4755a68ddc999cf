"""The one problem behind every machine of this library.

With signed duals ``a = y * alpha``, a kernel matrix K and a feasible set F,

    min_a  1/2 a'(K + diag(ridge)) a - y'a    s.t.  sum(a) = 0,  a in F,

and the classifier ``f(x) = sum_j a_j k(x_j, x) + b``. It is the dual of

    min_{f,b}  1/2 |f|^2 + C phi(slacks),

where phi measures the slacks ``1 - y (f + b)``; F and the ridge are all that the solver needs to know
of phi. A method is a choice of parts: a `Kernel`, a `Slack`, and (for machines that do not use every
training point) a regulariser and a basis. Parts are small frozen objects; solvers do not know them by name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]

CONSTRAINTS = ("inequality", "equality")


class Part:
    """Parameters of a part by name, as scikit-learn's ``clone`` and ``GridSearchCV`` expect them.

    Parts never change: several estimators may share one. A part with arrays for fields is declared with ``eq=False``
    and compared by what they hold.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Fields of this part and their values, and with ``deep`` those of the parts among them."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        if not deep:
            return own
        parts = {name: part.get_params() for name, part in own.items() if isinstance(part, Part)}
        return own | {f"{name}__{key}": value for name, inner in parts.items() for key, value in inner.items()}

    def with_params(self, **params: Any) -> Any:
        """A part like this one with other values; ``kernel__gamma`` is the gamma of the part ``kernel``."""
        allowed = self.get_params(deep=False)
        changed: dict[str, Any] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in allowed:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {sorted(allowed) or 'none'}")
            part = changed.get(name, allowed[name])
            changed[name] = part.with_params(**{inner: value}) if inner else value
        return replace(self, **changed)  # type: ignore[type-var]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = (part.get_params(deep=False) for part in (self, other))
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self), *map(_digest, self.get_params(deep=False).values())))


def _same(a: Any, b: Any) -> bool:
    if sp.issparse(a) or sp.issparse(b):
        return sp.issparse(a) and sp.issparse(b) and a.shape == b.shape and (a != b).nnz == 0
    return np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


def _digest(value: Any) -> Any:
    if sp.issparse(value) or isinstance(value, np.ndarray):
        return value.shape
    return value


@dataclass(frozen=True)
class FeasibleSet:
    """Where the signed duals may lie, in numbers: all that the solver knows of a slack norm.

    ``lower <= a <= upper``, and where they are finite a cap ``sum(|a|) <= total`` and a ball
    ``sum(stretch * |a|**power) <= radius**power``, or ``a'metric a <= radius**2`` where a metric is given.
    ``ridge`` is added to the kernel's diagonal.
    """

    lower: Array
    upper: Array
    ridge: Array | float = 0.0
    total: float = np.inf
    radius: float = np.inf
    stretch: Array | float = 1.0
    power: float = 2.0
    metric: Array | None = None

    @classmethod
    def box(cls, y: Array, most: Array | float, constraint: str, **others: Any) -> FeasibleSet:
        """``alpha = y * a`` in [0, most], or in [-most, most] with equality constraints; the rest as given."""
        most = np.broadcast_to(np.asarray(most, dtype=np.float64), y.shape)
        if constraint == "equality":
            return cls(-most, most, **others)
        return cls(np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0), **others)


class Slack(Protocol):
    """A measure ``C * phi`` of the slacks.

    A weight counts a row: weight 2 is the row twice. ``constraint`` is "inequality" or "equality"; slacks are
    >= 0 under inequality constraints, of any sign under equality.
    """

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: str) -> FeasibleSet:
        """The dual set of ``C * phi``."""

    def value(self, slacks: Array, weights: Array, constraint: str) -> float:
        """``phi`` itself, without C."""

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: str) -> float:
        """The b that makes phi least for fixed f, given the residuals ``y - f``."""


class Kernel(Protocol):
    """A kernel k(x, z). `slimsvm.kernels.Base` has defaults for all but the call and `diagonal`."""

    name: ClassVar[str]
    translation_invariant: ClassVar[bool]  # does k(x, z) depend on x - z only?
    positive_semidefinite: ClassVar[bool]  # surely?
    keeps_rows: ClassVar[bool]  # can it compare training rows only?

    @property
    def differentiable(self) -> bool:
        """Can vectors be learned for it (has it a method `pullback`)?"""

    @property
    def gamma(self) -> float | None:
        """The factor of distances or products, if there is one."""

    @property
    def scales(self) -> Any:
        """A factor for each input; 1.0 where all inputs count the same."""

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), written into ``out`` if that is given."""

    def diagonal(self, X: Any) -> Array:
        """The values k(x_i, x_i)."""

    def length(self, X: Any) -> float:
        """A distance over which the kernel changes: the natural unit of vectors among these rows."""

    def dimensions(self, inputs: int) -> float:
        """Dimensions of the kernel's space, as far as is known."""

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> Any:
        """The core's solver over these rows of X."""

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int) -> Array:
        """``k(X, vectors) @ coef.T + bias`` without the whole kernel matrix."""

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        """The kernel and the vectors as a fitted model keeps them."""


class DifferentiableKernel(Kernel, Protocol):
    """A kernel that vectors can be learned for."""

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``sum_i W_ij dk(x_i, z_j)/dz_j``, a row for each z; K is ``k(X, Z)`` where it is known already."""


@dataclass(frozen=True)
class Certificate:
    """Values of primal and dual at one point: between them lies every optimum."""

    bias: float
    primal: float
    dual: float
    gap: float  # (primal - dual) / dual
    void: bool  # f = 0 as far as the gap tells


def slacks(y: Array, f: Array, bias: float, constraint: str) -> Array:
    """The slacks ``1 - y (f + b)``; under inequality constraints only what is above zero counts."""
    margin_gap = 1 - y * (f + bias)
    return margin_gap if constraint == "equality" else np.maximum(margin_gap, 0)
