"""The kernels as the tests know them: one entry for each, with examples and with what a textbook says of it.

The formulas use nothing of slimsvm, and take numbers of any type: in long double they are the truth. What has no entry
has no formula: `matrix` and `slopes` raise KeyError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slimsvm import kernels

PRODUCT, DISTANCE, SQUARED_DISTANCE = "x.z", "|x - z|_1", "|x - z|^2"


@dataclass(frozen=True)
class KernelEntry:
    """A kernel ``value(s)`` of a number s of two rows, and its derivative; p has gamma, coef0 and degree."""

    class_name: str
    of: str  # what s is
    value: Callable[[Any, Any], Any]  # (s, p)
    slope: Callable[[Any, Any], Any]  # (s, p)
    params: Mapping[str, float] = field(default_factory=dict)  # of an example for rows of about unit size
    extremes: tuple[Mapping[str, float], ...] = ()  # other parameters that are worth a test
    size: Callable[[Any, Any], Any] | None = None  # (sum |x_k z_k|, p): of the terms of a value, for kernels of x.z
    in_sklearn: bool = False
    semidefinite: bool = True
    smooth: bool = True  # has it a derivative everywhere?
    fixed_point: bool = False  # has it a form in integers?

    @property
    def radial(self):
        """Is it a function of distances?"""
        return self.of != PRODUCT

    def kernel(self, **params):
        """The example, with other parameters."""
        return getattr(kernels, self.class_name)(**{**self.params, **params})


def exponential(s, p):
    return np.exp(-p.gamma * s)


def exponential_slope(s, p):
    return -p.gamma * np.exp(-p.gamma * s)


# In the order in which messages name them.
ENTRIES = {
    "linear": KernelEntry(
        "Linear",
        PRODUCT,
        lambda s, p: s,
        lambda s, p: 1 + 0 * s,
        size=lambda s, p: s,
        in_sklearn=True,
        fixed_point=True,
    ),
    "poly": KernelEntry(
        "Polynomial",
        PRODUCT,
        lambda s, p: (p.gamma * s + p.coef0) ** p.degree,
        lambda s, p: p.degree * p.gamma * (p.gamma * s + p.coef0) ** max(p.degree - 1, 0),
        {"gamma": 0.25, "coef0": 1.0, "degree": 2},
        tuple({"gamma": 0.5, "coef0": 1.0, "degree": degree} for degree in (0, 1, 2, 3, 7)),
        size=lambda s, p: (p.gamma * s + abs(p.coef0)) ** p.degree * (1 + p.degree),
        in_sklearn=True,
    ),
    "rbf": KernelEntry(
        "Gaussian",
        SQUARED_DISTANCE,
        exponential,
        exponential_slope,
        {"gamma": 0.3},
        ({"gamma": 20.0},),
        in_sklearn=True,
        fixed_point=True,
    ),
    "sigmoid": KernelEntry(
        "Sigmoid",
        PRODUCT,
        lambda s, p: np.tanh(p.gamma * s + p.coef0),
        lambda s, p: p.gamma * (1 - np.tanh(p.gamma * s + p.coef0) ** 2),
        {"gamma": 0.1, "coef0": -0.5},
        ({"gamma": 50.0, "coef0": 0.0},),
        size=lambda s, p: 1 + p.gamma * s + abs(p.coef0),
        in_sklearn=True,
        semidefinite=False,
    ),
    "laplacian": KernelEntry(
        "Laplacian", DISTANCE, exponential, exponential_slope, {"gamma": 0.2}, smooth=False, fixed_point=True
    ),
}


@dataclass(frozen=True)
class Parameters:
    gamma: Any = 1.0
    coef0: Any = 0.0
    degree: int = 3


def names(**flags):
    """Names of the kernels whose entries have these flags, such as ``names(radial=True, smooth=False)``."""
    return [name for name, entry in ENTRIES.items() if all(getattr(entry, key) == flags[key] for key in flags)]


def examples(**flags):
    """The example of each kernel with these flags, by name."""
    return {name: ENTRIES[name].kernel() for name in names(**flags)}


def default_first(**flags):
    """Names with the default of estimators before the others."""
    return sorted(names(**flags), key=lambda name: name != "rbf")


def taking(parameter):
    """Names of the kernels with this parameter."""
    return [name for name, entry in ENTRIES.items() if parameter in entry.params]


def in_sentence(**flags):
    """Names as texts have them: kernels of distances first, the linear kernel last."""
    return sorted(names(**flags), key=lambda name: (not ENTRIES[name].radial, name == "linear"))


# --- the formulas -----------------------------------------------------------------------------------------------------


def argument(of, X, Z):
    """s for each pair of rows, by differences where it is a distance."""
    if of == PRODUCT:
        return X @ Z.T
    power = {DISTANCE: 1, SQUARED_DISTANCE: 2}[of]
    return sum(np.abs(X[:, k, None] - Z[:, k]) ** power for k in range(X.shape[1]))


def matrix(name, X, Z, **params):
    """k(x_i, z_j) in the type of the rows."""
    entry = ENTRIES[name]
    return entry.value(argument(entry.of, X, Z), Parameters(**params))


def slopes(name, X, Z, **params):
    """The derivative of the kernel in s, for each pair of rows."""
    entry = ENTRIES[name]
    return entry.slope(argument(entry.of, X, Z), Parameters(**params))


def pullback(name, X, Z, W, **params):
    """sum_i W_ij dk(x_i, z_j)/dz_j."""
    entry, M = ENTRIES[name], W * slopes(name, X, Z, **params)
    if entry.of == PRODUCT:
        return M.T @ X
    apart = Z - X[:, None]
    return np.einsum("ij,ijk->jk", M, 2 * apart if entry.of == SQUARED_DISTANCE else np.sign(apart))


def value_sizes(name, X, Z, **params):
    """Sizes of the terms that kernel values are made of: times the unit of rounding, how well they are known."""
    entry, p, terms = ENTRIES[name], Parameters(**params), np.abs(X) @ np.abs(Z).T
    if entry.of == PRODUCT:
        return entry.size(terms, p)
    power = 1 if entry.of == DISTANCE else 2
    terms = (np.abs(X) ** power).sum(axis=1)[:, None] + (np.abs(Z) ** power).sum(axis=1) + 2 * (power == 2) * terms
    return matrix(name, X, Z, **params) - slopes(name, X, Z, **params) * terms
