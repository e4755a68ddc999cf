"""Kernels, slack norms and their dual sets in long double, written as in a textbook."""

from __future__ import annotations

import numpy as np

import kernel_table
from longdouble import LONG, long
from slack_table import entry_of


def kernel_matrix(name, X, Z, kernel):
    """k(x_i, z_j) of a fitted kernel, which may have scales."""
    inner, scales = kernel.unscaled
    params = {key: value if key == "degree" else LONG(value) for key, value in inner.get_params().items()}
    return kernel_table.matrix(name, long(X) * long(scales), long(Z) * long(scales), **params)


def phi(slack, xi, w, constraint):
    """The measure of the slacks, without C."""
    return entry_of(slack).exact(slack, xi, w, constraint)


def ridge(slack, C, w):
    """What the squared norm adds to the diagonal."""
    return entry_of(slack).ridge(C, w)


def feasible(slack, a, y, C, w, constraint):
    """Signed duals brought into the dual set: signs, box, sum zero, then cap and ball. All of it is legal."""
    alpha = y * a
    if constraint == "inequality":
        alpha = np.maximum(alpha, 0)
    if entry_of(slack).boxed:
        alpha = np.clip(alpha, -C * w, C * w)
    a = y * alpha
    up, down = np.maximum(a, 0).sum(), -np.minimum(a, 0).sum()
    if min(up, down) == 0:
        return np.zeros_like(a)
    a = np.where(a > 0, a * min(1, down / up), a * min(1, up / down))
    return a / max([LONG(1), *entry_of(slack).exact_sizes(slack, y * a, C, w)])
