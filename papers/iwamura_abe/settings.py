"""Settings that the paper chose (Tables II, III, X), and the sets that it measures."""

from __future__ import annotations

from dataclasses import dataclass

from ..recipe import Paper

PAPER = Paper(
    "iwamura_abe",
    "Iwamura & Abe",
    "Sparse Support Vector Machines Trained in the Reduced Empirical Feature Space",
    "IJCNN",
    2008,
)

SETS = (
    "banana",
    "breast-cancer",
    "diabetes",
    "german",
    "heart",
    "image",
    "ringnorm",
    "flare-solar",
    "splice",
    "thyroid",
    "titanic",
    "twonorm",
    "waveform",
)
LARGE = ("image", "splice")  # these come in 20 splits, all others in 100


def runs(name: str) -> int:
    """Splits of a set in the paper."""
    return 20 if name in LARGE else 100


@dataclass(frozen=True)
class Setting:
    """Of one set: C and gamma of the machine over all rows, C and eta of the sparse one.

    The kernel is exp(-gamma |x - x'|² / d) for d inputs.
    """

    C: float
    gamma: float
    sparse_C: float
    eta: float


LINEAR_ETA = 1e-6  # of the largest k(x, x); the paper's 1e-9 lets round-off choose between 15 and 16 rows on image


def _settings(*lines: tuple[float, float, float, float]) -> dict[str, Setting]:
    return {name: Setting(*line) for name, line in zip(SETS, lines, strict=True)}


def _linear(*lines: tuple[float, float]) -> dict[str, Setting]:
    return _settings(*((C, 0.0, sparse_C, LINEAR_ETA) for C, sparse_C in lines))


LINEAR = _linear(
    (10_000, 10),
    (1000, 10),
    (5000, 5000),
    (8000, 1),
    (10, 2000),
    (5000, 50_000),
    (5000, 5000),
    (1, 1),
    (1, 10),
    (100, 100_000),
    (1, 10),
    (1, 10),
    (1, 10),
)
L1 = _settings(
    (100, 15, 5000, 0.1),
    (500, 0.1, 100_000, 1e-5),
    (3000, 0.1, 100_000, 1e-3),
    (50, 0.1, 2000, 1e-3),
    (50, 0.1, 500, 1e-3),
    (500, 15, 10_000, 1e-3),
    (1, 15, 1, 0.1),
    (10, 0.5, 50, 0.1),
    (100_000, 10, 10, 0.1),
    (100, 15, 100, 1e-2),
    (50, 0.5, 10, 1e-3),
    (1, 0.5, 100, 1e-3),
    (1, 10, 1, 0.1),
)
L2_PRINTED = _settings(
    (3000, 10, 8000, 1e-2),
    (500, 0.1, 100_000, 1e-5),
    (3000, 0.1, 10_000, 1e-4),
    (50, 0.1, 100_000, 1e-3),
    (50, 0.1, 2000, 1e-4),
    (500, 15, 10_000, 1e-3),
    (1000, 15, 1, 1e-2),
    (1, 0.5, 1, 1e-2),
    (1000, 10, 100_000, 1e-5),
    (100, 15, 500, 0.1),
    (10, 0.5, 50, 1e-3),
    (1, 0.5, 500, 1e-3),
    (1, 15, 1, 0.1),
)
# C = 1000 on ringnorm gives 64 support vectors; C = 1 gives the 249 that the paper prints.
L2 = {**L2_PRINTED, "ringnorm": Setting(1, 15, 1, 1e-2)}
