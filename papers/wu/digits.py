"""USPS: ten machines, each of which separates one digit from all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.svm import SVC

from slimsvm import RelevanceVectorClassifier, compress
from slimsvm.linalg.arrays import Array

from .. import datasets
from ..datasets import Split
from ..recipe import Task
from .methods import mrsvm, rsvm, rsvm_settings, slmc, slmc_squared, values
from .settings import ERROR, MRS, MRSVM, RATIOS, RS, RSVM, RVM_ERROR, SLMC, SQUARED, USPS_SETTINGS, at, share

BLUR = 0.75  # pixels
DIGITS, DRAWS = 10, 1

Models = dict[str, Any]  # fitted, by the columns that they are for


def smoothed(X: Array) -> Array:
    """Images blurred by three quarters of a pixel; outside them is background, -1."""
    images = np.asarray(X, dtype=np.float64).reshape(-1, 16, 16)
    return gaussian_filter(images, (0, BLUR, BLUR), mode="constant", cval=-1).reshape(len(X), -1)


def digits(blurred: bool = True) -> Split:
    """USPS as the paper had it, most likely."""
    raw = datasets.load("usps", split=0)
    return Split(smoothed(raw.X), raw.y, smoothed(raw.X_test), raw.y_test, raw.original) if blurred else raw


def against_rest(digit: int) -> Split:
    """One digit, 1, against all others, -1."""
    data = digits()
    y, y_test = (np.where(labels == digit, 1, -1) for labels in (data.y, data.y_test))
    return Split(data.X, y, data.X_test, y_test, data.original)


# --- what is done for one digit ------------------------------------------------------------------


def digit_task(digit: int, kind: str, draw: int) -> dict[str, Any]:
    """Decision values of the machines of one digit."""
    data = against_rest(digit)
    svm = SVC(**USPS_SETTINGS).fit(data.X, data.y)
    models = KINDS[kind](data, svm, draw)
    facts: dict[str, Any] = {"digit": digit, "draw": draw, "SVM vectors": len(svm.support_)}
    if RVM_ERROR in models:
        facts["RVM vectors"] = len(models[RVM_ERROR].support_)
    facts["rows"] = np.flatnonzero(data.y_test == 1).tolist()
    return {**facts, "values": {column: values(model, data.X_test) for column, model in models.items()}}


def reduced(data: Split, svm: SVC, draw: int) -> Models:
    """The SVM, and reduced sets of it."""
    found = {ERROR: svm}
    for ratio in RATIOS:
        count = share(ratio, len(svm.support_))
        found[at(RS, ratio)] = compress(svm, count, method="reduced_set")
        found[at(MRS, ratio)] = compress(svm, count, data.X, data.y, method="refit")
    return found


def learned(data: Split, svm: SVC, draw: int) -> Models:
    """Learned vectors from one random start."""
    found = {}
    for ratio in RATIOS:
        for name, make in [(SLMC, slmc), (SQUARED, slmc_squared)]:
            model = make(share(ratio, len(svm.support_)), draw, **USPS_SETTINGS)
            found[at(name, ratio)] = model.fit(data.X, data.y)
    return found


def drawn(data: Split, svm: SVC, draw: int) -> Models:
    """Vectors drawn at random; C and gamma of RSVM by five folds."""
    found = {}
    for ratio in RATIOS:
        count = share(ratio, len(svm.support_))
        chosen = rsvm_settings(data.X, data.y, count, USPS_SETTINGS["gamma"], draw)
        for name, make in [(RSVM, rsvm), (MRSVM, mrsvm)]:
            found[at(name, ratio)] = make(count, draw, **chosen).fit(data.X, data.y)
    return found


def relevant(data: Split, svm: SVC, draw: int) -> Models:
    """The relevance vector machine with the SVM's gamma."""
    return {RVM_ERROR: RelevanceVectorClassifier(gamma=USPS_SETTINGS["gamma"]).fit(data.X, data.y)}


KINDS: dict[str, Callable[[Split, SVC, int], Models]] = {
    "SVM and reduced sets": reduced,
    "SLMC": learned,
    "RSVM": drawn,
    "RVM": relevant,
}


def digit_tasks() -> Iterator[Task]:
    """All digits with every kind of machine. Quick: without RSVM and RVM."""
    for kind in KINDS:
        for draw in range(DRAWS if kind in ("SLMC", "RSVM") else 1):
            quick = draw == 0 and kind in ("SVM and reduced sets", "SLMC")
            for digit in range(DIGITS):
                name = f"usps, digit {digit}, {kind}, draw {draw}"
                yield Task(name, digit_task, (digit, kind, draw), ("usps",), quick)


# --- ten digits together -------------------------------------------------------------------------


def together(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each draw of each kind of machine that has all ten digits: errors in percent, and sums over the digits.

    A row's digit is that of the machine with the largest value.
    """
    groups: dict[tuple[int, tuple[str, ...]], list[dict[str, Any]]] = {}
    for one in outcomes:
        groups.setdefault((one["draw"], tuple(one["values"])), []).append(one)
    return [_ten(group) for group in groups.values() if len(group) == DIGITS]


def _ten(group: list[dict[str, Any]]) -> dict[str, Any]:
    group = sorted(group, key=lambda one: one["digit"])
    truth = np.empty(sum(len(one["rows"]) for one in group), dtype=int)
    for one in group:
        truth[one["rows"]] = one["digit"]
    errors = {}
    for name in group[0]["values"]:
        answers = np.argmax([one["values"][name] for one in group], axis=0)
        errors[name] = 100 * float(np.mean(answers != truth))
    counted = [name for name in ("SVM vectors", "RVM vectors") if name in group[0]]
    return {"errors": errors, **{name: sum(one[name] for one in group) for name in counted}}
