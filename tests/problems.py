"""Small problems that many tests share, and the ways a user may hold the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import kernel_table
import reference
import slack_table
from slimsvm import slacks
from slimsvm.problem.formulation import CONSTRAINTS

# For tests of data, kernels and containers, which have nothing to do with norms: the two plain ones.
MACHINES = [(slack(), constraint) for slack in (slacks.OneNorm, slacks.SquaredTwoNorm) for constraint in CONSTRAINTS]

# Every norm, with parameters that matter for a few dozen rows.
NORMS = slack_table.EXAMPLES
EVERY_MACHINE = [(slack, constraint) for slack in NORMS for constraint in CONSTRAINTS]
# One or two of each kind of set: box, ridge, cap, ball, both, other powers.
ONE_OF_EACH = [
    *MACHINES,
    (slacks.TopSum(3.5), "inequality"),
    (slacks.TopSum(12.0), "equality"),
    (slacks.TwoNorm(), "equality"),
    (slacks.TopTwoNorm(12.0), "inequality"),
    (slacks.TopTwoNorm(12.0), "equality"),
    (slacks.OneTwoNorm(3.0), "inequality"),
    (slacks.PNorm(1.5), "equality"),
    (slacks.PNorm(3.0), "inequality"),
]


def ring_of_neighbours(n):
    """Laplacian of a ring plus the identity: its inverse has no negative entries."""
    eye = np.eye(n)
    return 3 * eye - np.roll(eye, 1, axis=0) - np.roll(eye, -1, axis=0)


def fitted_to(slack, n):
    """The norm with its matrix, where it needs one."""
    return slacks.Mahalanobis(ring_of_neighbours(n)) if isinstance(slack, slacks.Mahalanobis) else slack


def machine_name(machine):
    """For pytest's ids."""
    slack, constraint = machine
    values = "-".join(f"{value:g}" for value in slack.get_params().values() if value is not None)
    return f"{type(slack).__name__}{values}-{constraint}"


def signs(rng, score, noise=0.5):
    """Labels +-1 that follow a score but for some noise; both occur."""
    y = np.where(score + noise * rng.normal(size=len(score)) > np.median(score), 1.0, -1.0)
    assert len(np.unique(y)) == 2
    return y


def blobs(n, d=4, seed=0, density=1.0, noise=0.5):
    """Overlapping classes. Entries are multiples of 1/8, so float32 holds the very same numbers."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, d))) / 8
    X[rng.random(X.shape) >= density] = 0
    return X, signs(rng, X[:, 0] + X[:, 1] ** 2, noise)


def three_classes(n=90, seed=0):
    """Three overlapping groups in the plane."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centers = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    return centers[y] + 0.7 * rng.normal(size=(n, 2)), y


# --- Kernels as a user names them, and what the reference says they are -------------------------------------


def cosine_plus_one(X, Z):
    """A user's own kernel; takes sparse rows too."""
    X, Z = (np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64) for A in (X, Z))
    return (X @ Z.T + 1) / np.sqrt(np.outer((X**2).sum(axis=1) + 1, (Z**2).sum(axis=1) + 1))


@dataclass(frozen=True)
class KernelCase:
    """Parameters of an estimator, and the matrix they stand for."""

    name: str
    params: dict
    matrix: object  # (X, Z) -> K

    def training_input(self, X):
        """What fit gets: the rows, or their kernel matrix."""
        return self.matrix(X, X) if self.params["kernel"] == "precomputed" else X

    def test_input(self, X_new, X):
        """What predict gets."""
        return self.matrix(X_new, X) if self.params["kernel"] == "precomputed" else X_new


def _named(name, **values):
    return KernelCase(name, {"kernel": name, **values}, lambda X, Z: reference.kernel_matrix(name, X, Z, **values))


KERNEL_CASES = [
    *(_named(name, **kernel_table.ENTRIES[name].params) for name in kernel_table.names(semidefinite=True)),
    # Eighths have products that are multiples of 1/64: this matrix, too, is the same in float32.
    KernelCase("precomputed", {"kernel": "precomputed"}, lambda X, Z: (np.asarray(X @ Z.T) + 1.0) ** 2 / 64),
    KernelCase("callable", {"kernel": cosine_plus_one}, cosine_plus_one),
]


# --- The same numbers in every kind of container ------------------------------------------------------------


def _memmap(X, folder):
    path = folder / "rows.dat"
    mapped = np.memmap(path, dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return np.memmap(path, dtype=np.float64, mode="r", shape=X.shape)


def _wide_indices(X, folder):
    A = sp.csr_array(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


DATA_KINDS = {
    "C order": lambda X, folder: np.ascontiguousarray(X),
    "F order": lambda X, folder: np.asfortranarray(X),
    "float32": lambda X, folder: X.astype(np.float32),
    "strided view": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "memmap": _memmap,
    "CSR": lambda X, folder: sp.csr_array(X),
    "CSR float32": lambda X, folder: sp.csr_array(X.astype(np.float32)),
    "CSR 64-bit indices": _wide_indices,
    "CSR old matrix": lambda X, folder: sp.csr_matrix(X),
    "CSC": lambda X, folder: sp.csc_array(X),
}


# --- What a fitted binary machine says, in the reference's terms --------------------------------------------


def all_duals(model, n, output=0):
    """Signed duals of every training row from the fitted attributes; copies of a row are one row of the model."""
    a = np.zeros(n)
    a[model.support_] = model.vector_coef_[output]
    return a


def spread(a, K, y, weights=None):
    """The same duals, with that of each row shared among its copies of the same label by their weights."""
    w = reference.ones(y, weights)
    _, group = np.unique(np.c_[K + 0.0, y], axis=0, return_inverse=True)
    group = group.ravel()
    totals = np.bincount(group, weights=w)
    return np.bincount(group, weights=a)[group] * w / np.where(totals > 0, totals, 1)[group]


def charge_for_rounding(K, y, a, b, slack, C, constraint, weights=None):
    """By how much the primal may be wrong if each term of f, each sum of its first terms (one class after the other),
    and each slack is off by a unit in its last place: those of terms add up, those of sums as chance has it."""
    f, sizes = K @ a, np.sqrt(np.diag(K))
    sums = np.cumsum((sizes * a)[np.argsort(y, kind="stable")])
    doubt = np.finfo(float).eps * (sizes * (sizes @ np.abs(a) + np.linalg.norm(sums)) + 1 + np.abs(f) + abs(b))
    away = np.where((y * (f + b) > 1) & (constraint == "equality"), 1.0, -1.0)
    worse = reference.loss(slack, y, C, f + away * y * doubt, b, constraint, weights)
    return worse - reference.loss(slack, y, C, f, b, constraint, weights) + np.abs(a) @ doubt


def check_optimal(model, K, y, C, optimum=None, tol=None, output=0, rounding=1e-9, weights=None):
    """The fitted attributes, in plain numpy: feasible, certified, and equal to the reference.

    Weak duality makes the gap a proof, and |f - f*| <= sqrt(2 gap) in the norm of the kernel's space (section
    1.3), so f(x) may differ from the reference by at most sqrt(2 gap k(x, x)): no tolerance is chosen here
    but `rounding`, for errors of the arithmetic itself.
    """
    slack, constraint = slacks.resolve(model.slack), model.constraint
    tol = model.tol if tol is None else tol
    a, b = all_duals(model, len(y), output), model.intercept_[output]
    if slack.merges_copies:
        a = spread(a, K, y, weights)
    assert reference.overshoot(slack, y, a, C, constraint, weights) <= 1e-12
    assert abs(a.sum()) <= 1e-12 * np.abs(a).sum()
    primal, dual, gap = reference.certificate(K, y, a, b, slack, C, constraint, weights)
    scale = abs(dual) + np.abs(a).sum() * rounding
    assert gap <= tol + rounding
    assert model.duality_gap_[output] <= tol
    assert abs(primal - model.objective_[output]) <= rounding * scale
    # The gap that is reported is no smaller; larger only by what it charges for the last digits of f.
    error = rounding * max(1, scale / abs(dual))
    doubt = charge_for_rounding(K, y, a, b, slack, C, constraint, weights) / abs(dual)
    assert gap - error <= model.duality_gap_[output] <= gap + doubt + error
    if optimum is not None:
        assert optimum.value * (1 - 1e-7) <= primal <= optimum.value * (1 + tol + 1e-7)
        reach = np.sqrt(2 * max(primal - optimum.value, 0) + 1e-7 * abs(dual)) * np.sqrt(np.max(np.diag(K)))
        shift = np.abs(K @ a - optimum.f).max()
        assert shift <= reach
        # The minimisers b move by no more than f does: a larger residual never makes the best bias smaller.
        low, high = optimum.bias
        assert low - shift - 1e-6 <= b <= high + shift + 1e-6
