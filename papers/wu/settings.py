"""What all tables and figures of the paper share: sets, parameters, names of columns."""

from __future__ import annotations

from typing import Any

from ..recipe import Paper

PAPER = Paper("wu", "Wu, Schölkopf & Bakir", "Building Sparse Large Margin Classifiers", "ICML", 2005)

# C and the width w of the kernel exp(-|x - x'|^2 / w), as Raetsch gives them with his sets.
SETTINGS: dict[str, tuple[float, float]] = {
    "banana": (316.2, 1),
    "breast-cancer": (15.19, 50),
    "titanic": (1e5, 2),
    "waveform": (1, 20),
    "german": (3.162, 55),
    "image": (500, 30),
}
USPS_SETTINGS: dict[str, Any] = {"C": 10.0, "gamma": 1 / 128}
RATIOS = (0.05, 0.1)  # vectors kept of those of the SVM
ITERATIONS = 200  # of learning: the paper needed 20 to 200

VECTORS, ERROR = "SVM vectors", "SVM error, %"
RVM_SHARE, RVM_ERROR = "RVM vectors, % of the SVM's", "RVM error, %"
RS, MRS, RSVM, MRSVM, SLMC = "RS", "MRS", "RSVM", "MRSVM", "SLMC"
FIXED_POINTS, SQUARED, HINGE = "RS by fixed points", "SLMC, squared hinge", "SLMC, hinge itself"


def settings(name: str) -> dict[str, Any]:
    """C and gamma of a set."""
    C, width = SETTINGS[name]
    return {"C": C, "gamma": 1 / width}


def at(method: str, ratio: float) -> str:
    """The column of a method with so many vectors."""
    return f"{method}, {100 * ratio:g} %"


def share(ratio: float, vectors: int) -> int:
    """So many of the vectors, but one at least."""
    return max(1, round(ratio * vectors))
