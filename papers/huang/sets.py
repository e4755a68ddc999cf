"""The eight sets of Tables 3 to 5: folds, and the three machines at settings of a grid."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import LpSVC, RelevanceVectorClassifier

from .. import datasets
from ..datasets.splits import Folds
from .originals import EveryCopy, TippingRVM

Setting = tuple[float, float, float]  # gamma * inputs, C, C_alpha / C; zeros where a machine has no such thing
SVM, L0, RVM = "SVM", "L0", "RVM"
# Beside them: `LpSVC` where the paper's machine keeps copies apart, the fast RVM where Tipping's first can be had.
MERGED, FAST = "L0, equal rows as one", "RVM, fast"


@dataclass(frozen=True)
class Set:
    """A set of the paper, and how it is measured here."""

    name: str
    folds: int = 10
    divisions: int = 5
    copies: bool = False  # do equal rows matter?
    small: bool = False  # is Tipping's first algorithm affordable?
    log: bool = False  # are its inputs intensities?
    widths: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    costs: tuple[float, ...] = (1.0, 10.0, 100.0)
    shares: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)


# Of thousands of inputs each adds to the distance between any two rows.
GENES = (0.003, 0.01, 0.03, 0.1, 0.3)

ALL = {
    one.name: one
    for one in (
        Set("diabetes"),
        Set("flare-solar", copies=True),
        Set("german"),
        Set("thyroid", small=True),
        Set("titanic", copies=True),
        Set("twonorm", folds=5, divisions=3, widths=(0.03, 0.1, 0.3)),
        Set("colon", log=True, small=True, widths=GENES),
        Set("lymphoma", small=True, widths=GENES),
    )
}


def fold(name: str, division: int, part: int) -> datasets.Split:
    """One part of a division to test on, the others to train on; inputs standardised in the training part."""
    data, one = datasets.load(name), ALL[name]
    X = np.log(data.X) if one.log else data.X.astype(np.float64)
    train, test = Folds(one.folds).draw(name, division * one.folds + part, data.y)
    return datasets.Split(X[train], data.y[train], X[test], data.y[test]).mapped(StandardScaler())


def machine(name: str, setting: Setting, inputs: int) -> Any:
    """One of the machines as the library has it."""
    width, C, share = setting
    gamma = width / inputs
    if name == SVM:
        return SVC(C=C, gamma=gamma)
    if name in (RVM, FAST):
        return RelevanceVectorClassifier(gamma=gamma, n_jobs=1)
    return LpSVC(C=C, C_alpha=share * C, gamma=gamma, tol=1e-4, n_jobs=1)


def original(name: str, setting: Setting, inputs: int) -> Any:
    """A sparse machine as the paper had it."""
    width, C, share = setting
    gamma = width / inputs
    return TippingRVM(gamma) if name == RVM else EveryCopy(C, share * C, gamma)


def settings(name: str, width: float) -> list[tuple[str, Setting]]:
    """What is tried at one width: machines and their settings."""
    one = ALL[name]
    found: list[tuple[str, Setting]] = [(SVM, (width, C, 0.0)) for C in one.costs]
    for sparse in (L0, MERGED) if one.copies else (L0,):
        found += [(sparse, (width, C, share)) for C, share in product(one.costs, one.shares)]
    return [*found, *((rvm, (width, 0.0, 0.0)) for rvm in ((RVM, FAST) if one.small else (RVM,)))]


def measure(one: Set, split: datasets.Split, name: str, setting: Setting) -> dict[str, float]:
    """Percent right and vectors; seconds of the fit and of all predictions."""
    as_then = (name == L0 and one.copies) or (name == RVM and one.small)
    model = (original if as_then else machine)(name, setting, split.d)
    began = time.perf_counter()
    model.fit(split.X, split.y)
    trained = time.perf_counter()
    right = 100 - split.error(model)
    tested = time.perf_counter()
    vectors = model.n_vectors_ if name in (L0, MERGED) else len(model.support_)
    return {"right": right, "vectors": vectors, "fit": trained - began, "test": tested - trained}
