"""The small machines of the paper, beside a support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from slimsvm import SlimSVC
from slimsvm.linalg.arrays import Array
from slimsvm.problem import bases
from slimsvm.problem.formulation import Part

from .settings import ITERATIONS

FOLDS = 5
COSTS = 10.0 ** np.arange(-1, 6)
WIDTHS = np.array([0.1, 0.3, 1, 3, 10])  # as parts of the SVM's gamma


def folds(seed: int = 0) -> StratifiedKFold:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed)


# --- vectors drawn at random --------------------------------------------------------------------


@dataclass(frozen=True)
class EqualParts(Part):
    """Rows drawn at random, as many from each class. The paper says only that they are random; drawn from all rows
    alike, they give far larger errors on USPS, where nine of ten rows are of one class."""

    keeps_rows: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def choose(self, rows: Any, count: int) -> bases.Choice:
        order = rows.at_random()
        codes = rows.dataset.codes[order]
        turn = np.empty(len(order), dtype=int)
        for code in np.unique(codes):
            turn[codes == code] = np.arange(np.count_nonzero(codes == code))
        by_turns = order[np.argsort(turn, kind="stable")]
        return rows.choice(rows.independent(bases.INDEPENDENCE, by_turns, count))


def rsvm_settings(X: Array, y: Array, count: int, gamma: float, seed: int) -> dict[str, float]:
    """C and gamma of an RSVM by five folds of the training rows."""
    grid = {"C": COSTS, "gamma": gamma * WIDTHS}
    return GridSearchCV(rsvm(count, seed), grid, cv=folds(seed)).fit(X, y).best_params_


def rsvm(count: int, seed: int, **settings: Any) -> SlimSVC:
    """Squared hinge, sum of squared coefficients."""
    return _drawn(count, seed, "identity", "l2", settings)


def mrsvm(count: int, seed: int, **settings: Any) -> SlimSVC:
    """Eq. 33: the hinge and the norm in the kernel's space, over the same vectors."""
    return _drawn(count, seed, "kernel", "l1", settings)


def _drawn(count: int, seed: int, regularizer: str, slack: str, settings: dict[str, Any]) -> SlimSVC:
    return SlimSVC(
        count, basis=EqualParts(), regularizer=regularizer, slack=slack, scales="fixed", random_state=seed, **settings
    )


# --- vectors that are learned -------------------------------------------------------------------


def slmc(count: int, seed: int, **settings: Any) -> SlimSVC:
    """Vectors from a random start move for a hinge with a rounded corner; coefficients are those of the hinge."""
    return _learned(count, seed, "l1", 0.5, settings)


def slmc_squared(count: int, seed: int, **settings: Any) -> SlimSVC:
    """The squared hinge."""
    return _learned(count, seed, "l2", 0.5, settings)


def slmc_hinge(count: int, seed: int, **settings: Any) -> SlimSVC:
    """Vectors move for the hinge itself, as in the paper."""
    return _learned(count, seed, "l1", 0.0, settings)


def _learned(count: int, seed: int, slack: str, smoothing: float, settings: dict[str, Any]) -> SlimSVC:
    basis = bases.Learned(init="random", iterations=ITERATIONS, smoothing=smoothing)
    return SlimSVC(count, basis=basis, slack=slack, scales="fixed", random_state=seed, **settings)


# --- a reduced set by fixed points --------------------------------------------------------------

TRIED, AT_RANDOM, STEPS, STILL = 2, 5, 100, 1e-8


@dataclass(frozen=True)
class FixedPoints:
    """A reduced set as it was computed then: one vector after the other, none of which moves again.

    The next one is where what is left of the function is largest: ``z = sum_i c_i k(x_i, z) x_i / sum_i c_i k(x_i, z)``
    is repeated from the best rows and some random ones. Then all coefficients are computed anew (eq. 35).
    """

    vectors: Array
    coef: Array
    bias: float
    gamma: float

    @classmethod
    def of(cls, svm: SVC, count: int, seed: int = 0) -> FixedPoints:
        X, a, gamma = svm.support_vectors_, svm.dual_coef_[0], float(svm.gamma)
        rng = np.random.default_rng(seed)
        Z, beta = np.empty((0, X.shape[1])), np.empty(0)
        for _ in range(count):
            rows, left = np.vstack([X, Z]), np.concatenate([a, -beta])
            Z = np.vstack([Z, _next_vector(rows, left, X, gamma, rng)])
            v = rbf_kernel(Z, X, gamma=gamma) @ a
            beta = np.linalg.lstsq(rbf_kernel(Z, gamma=gamma), v, rcond=None)[0]
        return cls(Z, beta, float(svm.intercept_[0]), gamma)

    def decision_function(self, X: Array) -> Array:
        return rbf_kernel(X, self.vectors, gamma=self.gamma) @ self.coef + self.bias

    def predict(self, X: Array) -> Array:
        """-1 and 1."""
        return np.where(self.decision_function(X) > 0, 1, -1)


def _next_vector(rows: Array, left: Array, X: Array, gamma: float, rng: np.random.Generator) -> Array:
    sizes = np.abs(rbf_kernel(X, rows, gamma=gamma) @ left)
    starts = [*np.argsort(-sizes)[:TRIED], *rng.integers(len(X), size=AT_RANDOM)]
    return _fixed_point(X[starts], rows, left, gamma)


def _fixed_point(Z: Array, rows: Array, left: Array, gamma: float) -> Array:
    """The best place on the way from several starts. Coefficients of both signs may lead away from where one began."""
    best, most = Z[0], 0.0
    for _ in range(STEPS):
        weights = left * rbf_kernel(Z, rows, gamma=gamma)
        total = weights.sum(axis=1)
        here = np.abs(total).argmax()
        if abs(total[here]) > most * (1 + STILL):
            best, most = Z[here], abs(total[here])
        going = np.abs(total) > STILL * np.abs(weights).sum(axis=1)
        if not going.any():
            break
        then = weights[going] @ rows / total[going, None]
        if np.abs(then - Z[going]).max() <= STILL:
            break
        Z = then
    return best


def values(model: Any, X: Array) -> list[float]:
    """Decision values that take few characters."""
    return [round(float(value), 4) for value in np.ravel(model.decision_function(X))]
