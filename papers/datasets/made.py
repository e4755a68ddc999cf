"""Sets that are made here, the same everywhere: four by their distributions, titanic from a table of counts.

Breiman's twonorm, ringnorm and waveform come with as many rows as the sets of Raetsch's benchmark, their inputs brought
to mean 0 and variance 1 over all rows as his are. They are other draws from the same distributions, and so is Ripley's
mixture. OpenML has draws of twonorm and ringnorm, too; made ones need no network, and results on random splits of
either differ by chance alone.
"""

from __future__ import annotations

import numpy as np

from slimsvm.linalg.arrays import Array

from .splits import frozen_random

A = 2 / np.sqrt(20)  # the distance of a centre from 0 along each of 20 inputs
DECIMALS = 6  # what is left does not depend on how a platform rounds logarithms


def twonorm(n: int = 7400) -> tuple[Array, Array]:
    """Two unit Gaussians in 20 inputs, with centres (-a, ..., -a) and (a, ..., a)."""
    rng = frozen_random("twonorm")
    y = _signs(rng, n)
    return _standardised(rng.normal(size=(n, 20)) + A * y[:, None]), y


def ringnorm(n: int = 7400) -> tuple[Array, Array]:
    """A Gaussian of variance 4 around 0 (+1), and one of variance 1 around (a, ..., a) within it (-1)."""
    rng = frozen_random("ringnorm")
    y = _signs(rng, n)
    noise = rng.normal(size=(n, 20))
    return _standardised(np.where(y[:, None] > 0, 2 * noise, noise + A)), y


def waveform(n: int = 5000) -> tuple[Array, Array]:
    """Mixtures of two of three triangular waves at 21 points, with unit noise; one pair of waves against the others."""
    rng = frozen_random("waveform")
    at = np.arange(1, 22)
    middle, late, early = (np.maximum(6 - np.abs(at - peak), 0) for peak in (11, 15, 7))
    first = np.array([middle, middle, late])
    second = np.array([late, early, early])
    kind, u = rng.randint(3, size=n), rng.uniform(size=(n, 1))
    X = u * first[kind] + (1 - u) * second[kind] + rng.normal(size=(n, 21))
    return _standardised(X), np.where(kind == 1, 1, -1)


def ripley(n: int = 1250) -> tuple[Array, Array]:
    """Two classes of equal size, each an equal mixture of two Gaussians of variance 0.03."""
    rng = frozen_random("ripley")
    centres = {-1: np.array([[-0.7, 0.3], [0.3, 0.3]]), 1: np.array([[-0.3, 0.7], [0.4, 0.7]])}
    y = np.where(np.arange(n) < n // 2, -1, 1)
    which = rng.randint(2, size=n)
    centre = np.where((y > 0)[:, None], centres[1][which], centres[-1][which])
    return _rounded(centre + np.sqrt(0.03) * rng.normal(size=(n, 2))), y


TITANIC = {  # class, child, man: how many died, how many lived (Dawson, Journal of Statistics Education 3, 1995)
    (0, 0, 0): (4, 140),
    (0, 0, 1): (118, 57),
    (0, 1, 0): (0, 1),
    (0, 1, 1): (0, 5),
    (1, 0, 0): (13, 80),
    (1, 0, 1): (154, 14),
    (1, 1, 0): (0, 13),
    (1, 1, 1): (0, 11),
    (2, 0, 0): (89, 76),
    (2, 0, 1): (387, 75),
    (2, 1, 0): (17, 14),
    (2, 1, 1): (35, 13),
    (3, 0, 0): (3, 20),
    (3, 0, 1): (670, 192),
}


def titanic() -> tuple[Array, Array]:
    """All 2201 people: class (the crew is the fourth), child or not, man or not; 1 for those who lived."""
    counts = np.array(list(TITANIC.values())).ravel()
    X = np.repeat(np.repeat(np.array(list(TITANIC), dtype=np.float64), 2, axis=0), counts, axis=0)
    return _standardised(X), np.repeat(np.tile([-1, 1], len(TITANIC)), counts)


def _signs(rng: np.random.RandomState, n: int) -> Array:
    return 2 * rng.randint(2, size=n) - 1


def _standardised(X: Array) -> Array:
    return _rounded((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))


def _rounded(X: Array) -> Array:
    return np.round(X, DECIMALS) + 0.0  # no negative zeros


MAKERS = {make.__name__: make for make in (ringnorm, ripley, titanic, twonorm, waveform)}
