"""The Lp-norm machine: one binary problem, for any p that makes sense.

    min_{a,b}  1/2 a'R a + sum_i C_i (1 - y_i (f_i + b))_+ + penalty(a),      f = K a

R is the kernel matrix ("exact") or the identity ("diagonal"). The penalty is ``C_alpha / p * sum |a_j|^p``, and
``C_alpha * sum log |a_j|`` over the vectors kept at p = 0, ``C_alpha * max |a_j|`` at p = infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formulation import INEQUALITY, Array, Kernel
from ..parts.losses import Hinge
from ..parts.regularizers import Identity, KernelNorm, ReweightedNorm
from ..parts.slacks import OneNorm
from .polyhedral import Bound, Each, Largest, PolyhedralMachine
from .reweighting import Sparse, Watch, merged, sparse_rows, starting_space

VARIANTS: dict[str, Any] = {"exact": KernelNorm(), "diagonal": Identity()}
_BOUNDS: dict[float, Bound] = {1.0: Each(), np.inf: Largest()}


def train_lp(
    kernel: Kernel,
    X: Any,
    y: Array,
    C: Array,
    p: float,
    C_alpha: float,
    variant: str = "exact",
    tol: float = 1e-6,
    max_iter: int = 200,
    threads: int = 1,
    watch: Watch | None = None,
) -> Sparse:
    """Rounds of reweighting; at p = 1 and infinity the convex problem itself."""
    base = VARIANTS[variant]
    if p in _BOUNDS:
        return _convex(kernel, X, y, C, C_alpha, _BOUNDS[p], base, max_iter, threads)
    return sparse_rows(kernel, X, y, C, Hinge(), ReweightedNorm(p, C_alpha, base, max_iter), tol, threads, watch)


def _convex(
    kernel: Kernel, X: Any, y: Array, C: Array, C_alpha: float, bound: Bound, base: Any, max_iter: int, threads: int
) -> Sparse:
    data = merged(X, y, C)
    y, C = data.y, data.C
    space = starting_space(kernel, data, 0, False, threads)
    machine = PolyhedralMachine(space.G, space.H, y, C, C_alpha, bound, base.follows_kernel)
    found = machine.solve(max_iter=max_iter)
    used = np.flatnonzero(found.a)
    a = found.a[used]
    f = space.G @ (a @ space.H[used])
    bias = OneNorm().bias(y - f, y, C, INEQUALITY)
    loss = float(Hinge().value((f + bias)[:, None], y[:, None], C[:, None])[0])
    objective = space.take(used).quadratic(a, base) + loss + C_alpha * bound.norm(a)
    history = {"n_vectors": np.array([len(used)]), "objective": np.array([objective])}
    kept = data.first[space.candidates[used]]
    return Sparse(kept, a, bias, objective, found.gap, found.n_iter < max_iter - 1, history)
