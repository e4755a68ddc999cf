"""The optimisation problem behind every estimator of this library.

With signed duals ``a = y * alpha``, a kernel matrix K and a feasible set F,

    min_a  1/2 a'(K + diag(ridge)) a - y'a    s.t.  sum(a) = 0,  a in F,

and the classifier ``f(x) = sum_j a_j k(x_j, x) + b``. It is the dual of

    min_{f,b}  1/2 |f|^2 + C phi(slacks),

where phi measures the slacks ``1 - y (f + b)``; F and the ridge are all that the solver needs to know
of phi. A method is a choice of parts: a `Kernel`, a `Slack`, and (for models over few vectors) a regulariser and a
basis. Parts are small frozen objects; solvers ask for their numbers, never for their classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from ..linalg.matrix import dot

T = TypeVar("T")


class Part:
    """Parameters of a part by name, as scikit-learn's ``clone`` and ``GridSearchCV`` expect them.

    Parts are immutable: several estimators may share one. A part whose fields are arrays is declared with ``eq=False``;
    `Part` then compares the values of its fields.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields of this part and their values; with ``deep`` also those of nested parts, as ``kernel__gamma``."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        if not deep:
            return own
        parts = {name: part.get_params() for name, part in own.items() if isinstance(part, Part)}
        return own | {f"{name}__{key}": value for name, inner in parts.items() for key, value in inner.items()}

    def with_params(self, **params: Any) -> Any:
        """A copy of this part with other values; ``kernel__gamma`` is the gamma of the part ``kernel``."""
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
    return np.array_equal(a, b) if any(isinstance(value, np.ndarray) for value in (a, b)) else bool(a == b)


def _digest(value: Any) -> Any:
    return value.shape if sp.issparse(value) or isinstance(value, np.ndarray) else value


def named(value: Any, table: Mapping[str, T]) -> T | None:
    """The entry of a table under this name; None if there is none, or if the value is no string."""
    return table.get(value) if isinstance(value, str) else None


def lacking(part: Any, names: Iterable[str]) -> list[str]:
    """The names that a part lacks as attributes."""
    return [name for name in names if not hasattr(part, name)]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class Constraint(ABC):
    """How slacks are computed from decision values, and the bounds of the duals that follow."""

    name: ClassVar[str]
    one_sided: ClassVar[bool]  # whether slacks and alpha = y * a are nonnegative

    @abstractmethod
    def slacks(self, y: Array, f: Array, bias: float, error: Array | float = 0.0) -> Array:
        """The slacks of ``f + bias``; with ``error``, upper bounds on their sizes where f is known up to that error."""

    @abstractmethod
    def box(self, y: Array, most: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the signed duals with ``|a| <= most``."""

    @abstractmethod
    def sides(self, y: Array) -> tuple[Array, Array]:
        """Masks of the rows that can have an error because the bias is too small, and because it is too large."""

    @abstractmethod
    def reach_in_box(self, y: Array, weights: Array) -> float:
        """The largest ``sum(|a|)`` of duals that sum to zero with ``|a| <= weights``."""

    @abstractmethod
    def reach_in_ball(self, y: Array, weights: Array) -> float:
        """The largest ``sum(|a|)**2`` of duals that sum to zero with ``sum(a**2 / weights) <= 1``."""


class Inequality(Constraint):
    """``xi >= 1 - y (f + b)`` and ``xi >= 0``: rows beyond the margin cost nothing."""

    name, one_sided = "inequality", True

    def slacks(self, y: Array, f: Array, bias: float, error: Array | float = 0.0) -> Array:
        return np.maximum(1 - y * (f + bias) + error, 0)

    def box(self, y: Array, most: Array) -> tuple[Array, Array]:
        return np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0)

    def sides(self, y: Array) -> tuple[Array, Array]:
        return y > 0, y < 0

    def reach_in_box(self, y: Array, weights: Array) -> float:
        return 2 * min(weights[side].sum() for side in self.sides(y))

    def reach_in_ball(self, y: Array, weights: Array) -> float:
        plus, minus = (float(weights[side].sum()) for side in self.sides(y))
        return 4 * plus * (minus / (plus + minus))


class Equality(Constraint):
    """``xi = 1 - y (f + b)``, of either sign: rows beyond the margin cost as much as rows short of it."""

    name, one_sided = "equality", False

    def slacks(self, y: Array, f: Array, bias: float, error: Array | float = 0.0) -> Array:
        xi = 1 - y * (f + bias)
        return xi + np.copysign(error, xi)

    def box(self, y: Array, most: Array) -> tuple[Array, Array]:
        return -most, most

    def sides(self, y: Array) -> tuple[Array, Array]:
        all_rows = np.ones(len(y), dtype=bool)
        return all_rows, all_rows

    def reach_in_box(self, y: Array, weights: Array) -> float:
        return float(weights.sum())

    def reach_in_ball(self, y: Array, weights: Array) -> float:
        return float(weights.sum())


INEQUALITY, EQUALITY = Inequality(), Equality()
CONSTRAINTS = {c.name: c for c in (INEQUALITY, EQUALITY)}


def constraint(name: Any) -> Constraint:
    """The constraint of this name."""
    chosen = named(name, CONSTRAINTS)
    if chosen is None:
        raise ValueError(f"constraint={name!r} is not known; use one of {list(CONSTRAINTS)}")
    return chosen


@dataclass(frozen=True)
class FeasibleSet:
    """The feasible set of the signed duals, as arrays: all that the dual solver knows of a slack norm.

    The set is ``lower <= a <= upper``, intersected with a cap ``sum(|a|) <= total`` if total is finite and a ball
    ``sum(stretch * |a|**power) <= radius**power`` (with a metric ``a'metric a <= radius**2``) if radius is finite.
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
    def box(cls, y: Array, most: Array | float, constraint: Constraint, **others: Any) -> FeasibleSet:
        """``alpha = y * a`` in [0, most], or in [-most, most] with equality constraints; ``others`` are fields."""
        return cls(*constraint.box(y, np.broadcast_to(np.asarray(most, dtype=np.float64), y.shape)), **others)

    def norm(self, duals: Array) -> float:
        """The norm of the ball at these duals."""
        if self.metric is not None:
            return float(np.sqrt(max(float(dot(dot(duals, self.metric), duals)), 0.0)))
        sizes = np.abs(duals)
        most = float(sizes.max())
        if not most > 0:
            return 0.0
        return most * float(np.sum(self.stretch * (sizes / most) ** self.power)) ** (1 / self.power)

    def max_scaling(self, duals: Array) -> float:
        """The largest t >= 0 with ``t * duals`` in the set, which is convex and contains zero."""
        sizes = np.abs(duals)
        nonzero = sizes > 0
        if not nonzero.any():
            return 1.0
        bounds = np.where(duals > 0, self.upper, -self.lower)
        limits = [float(np.divide(bounds, sizes, out=np.full(len(sizes), np.inf), where=nonzero).min())]
        limits.append(self.total / float(sizes.sum()))
        if self.radius < np.inf:
            norm = self.norm(duals)
            limits.append(self.radius / norm if norm > 0 else np.inf)
        return max(min(limits), 0.0)


class Slack(Protocol):
    """A measure ``C * phi`` of the slacks: `slimsvm.slacks.Norm` has defaults for all but three of these.

    A weight counts a row: weight 2 is the row twice. Slacks are >= 0 under inequality constraints, of any sign
    under equality.
    """

    counts_rows: ClassVar[bool]  # whether a row's weight matters beyond being zero or not
    merges_copies: ClassVar[bool]  # whether copies of a row may be merged into one row of their total weight
    loss: ClassVar[Any]  # phi as a sum of losses of rows, an object of slimsvm.losses; None where it is no such sum

    def at(self, rows: Array, n_samples: int) -> Slack:
        """The norm for these rows of n_samples, in this order."""

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """The feasible set of the duals of ``C * phi``."""

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``phi``, without C."""

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """The b that minimises phi for fixed f, given the residuals ``y - f``."""


class Kernel(Protocol):
    """A kernel k(x, z). `slimsvm.kernels.Base` has defaults for all but the call."""

    name: ClassVar[str]
    translation_invariant: ClassVar[bool]  # whether k(x, z) depends on x - z only
    positive_semidefinite: ClassVar[bool]  # whether known to be
    keeps_rows: ClassVar[bool]  # whether it is defined for training rows only

    is_linear: ClassVar[bool]  # whether k(x, z) is linear in x

    @property
    def differentiable(self) -> bool:
        """Whether it has a derivative, the method `pullback`, so that vectors can be learned."""

    @property
    def gamma(self) -> float | None:
        """The factor of distances or products, or None."""

    @property
    def scales(self) -> Any:
        """A factor for each input; 1.0 if inputs are not scaled."""

    @property
    def unscaled(self) -> tuple[Any, Array]:
        """The kernel without its input scales, and the scales."""

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), written into ``out`` if that is given."""

    def diagonal(self, X: Any) -> Array:
        """The values k(x_i, x_i)."""

    def length(self, X: Any) -> float:
        """A distance over which the kernel changes: the natural unit of vectors among these rows."""

    def dimensions(self, inputs: int) -> float:
        """The dimension of the kernel's feature space, infinity if unknown."""

    def training_matrix(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> Any:
        """The kernel matrix of the rows ``X[order]`` for the core's solver."""

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int) -> Array:
        """``k(X, vectors) @ coef.T + bias``, without holding the whole kernel matrix."""

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> Any:
        """The core's decision function of one row at a time; None if Python evaluates the kernel."""

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        """The kernel and the vectors as a fitted model keeps them."""


class DifferentiableKernel(Kernel, Protocol):
    """A kernel with a derivative, for which vectors can be learned."""

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``sum_i W_ij dk(x_i, z_j)/dz_j``, one row for each z_j; K is ``k(X, Z)`` if already computed."""
