"""Probabilities of `SlimSVC` beside those of a support vector machine: log-loss, calibration error, time.

`SVC(probability=True)` fits a sigmoid to the decision values of five folds and couples pairs of classes;
`CalibratedClassifierCV` does the same for one class against the others. Both are measured with C and gamma chosen by
three folds (least error; on 2,000 rows at most), the first with default settings, too. Inputs are standardised, but for
usps, whose pixels are on one scale.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC

from . import keel, parts, sets
from .parts import mean
from .problems import Array
from .report import Table
from .sets import Split

# Vectors: 20 for two classes; several classes: about 6 a class, 100 for usps with its 256 inputs.
STORED = {"banana": 20, "image": 20, "splice": 20, "german": 20, "waveform": 20, "usps": 100}
KEEL = {"magic": 20, "phoneme": 20, "satimage": 60, "penbased": 60, "texture": 60}
SPLITS = {"banana": 5, "image": 5, "german": 5, "waveform": 5, "usps": 1, "splice": 1}  # of the others, four halves
GRID = {"C": [1, 10, 100], "gamma": [0.3, 1.0, 3.0]}  # gamma in units of gamma="scale"
MOST_TUNING_ROWS = 2000
BINS = 15
MANY = 1000  # test rows from which on a calibration error is worth a look
OURS, RIVALS = "SlimSVC", ("SVC, tuned", "SVC, default", "CalibratedClassifierCV")


@dataclass(frozen=True)
class Outcome:
    """One model on one split."""

    loss: float
    calibration: float
    error: float
    seconds: float


def calibration_error(p: Array, correct: Array, bins: int = BINS) -> float:
    """The mean distance, over bins of the highest probability, between that probability and how often it is right."""
    sure = p.max(axis=1)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(float(np.sum(sure[place == b] - correct[place == b]))) for b in range(bins)]
    return sum(gaps) / len(sure)


def split_of(name: str, number: int) -> Split:
    """A stored split, or halves drawn with the number as seed; standardised."""
    if name in STORED:
        found = list(sets.splits(name, number + 1))[number]
        return found if name == "usps" else found.mapped(StandardScaler())
    X, y = keel.whole(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=number)
    return Split(X, y, X_test, y_test).mapped(StandardScaler())


def tuned(split: Split) -> dict[str, float]:
    """C and gamma of least error."""
    X, y = split.X, split.y
    if len(y) > MOST_TUNING_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_TUNING_ROWS, stratify=y, random_state=0)
    unit = 1 / (X.shape[1] * X.var())
    grid = {"C": GRID["C"], "gamma": [unit * factor for factor in GRID["gamma"]]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(SVC(), grid, cv=folds).fit(X, y).best_params_


def measured(model: Any, split: Split) -> Outcome:
    """Fit and judge."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # SVC's parameter is on its way out
        model.fit(split.X, split.y)
    seconds = time.process_time() - start
    p = model.predict_proba(split.X_test)
    correct = model.classes_[p.argmax(axis=1)] == split.y_test
    return Outcome(log_loss(split.y_test, p), calibration_error(p, correct), 100 * float(np.mean(~correct)), seconds)


class Timed(SlimSVC):
    """Also knows what the layer took: the difference of two fits would mostly be noise."""

    def _with_probabilities(self, *arguments: Any) -> Any:
        start = time.process_time()
        found = super()._with_probabilities(*arguments)
        self.layer_seconds_ = time.process_time() - start
        return found


def compare(number: int, name: str) -> tuple[dict[str, Outcome], float]:
    """All models on one split, and the time of the layer as a share of the rest of the fit."""
    split = split_of(name, number)
    settings = tuned(split)
    ours = Timed((STORED | KEEL)[name], probability=True)
    models = {
        OURS: ours,
        "SVC, tuned": SVC(probability=True, random_state=0, **settings),
        "SVC, default": SVC(probability=True, random_state=0),
        "CalibratedClassifierCV": CalibratedClassifierCV(SVC(**settings), ensemble=False),
    }
    found = {label: measured(model, split) for label, model in models.items()}
    return found, ours.layer_seconds_ / (found[OURS].seconds - ours.layer_seconds_)


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each set, and the bars."""
    names = [*(STORED if sets.present() else []), *(KEEL if keel.present() else [])]
    if not names:
        print(sets.ABSENT)
        return
    if options.quick:
        options = parts.settled(options, splits=1, sets=["banana", "german"])
    rows: list[list[str]] = []
    better = dict.fromkeys(RIVALS, 0)
    calibrated, shares = [], []
    for name in parts.wanted(names, options):
        count = options.splits or SPLITS.get(name, 4)
        parts.say(f"{name} ...")
        found = parts.spread(compare, range(count), options.n_jobs, name)
        outcomes = [each for each, _ in found]
        losses = {label: mean(o[label].loss for o in outcomes) for label in (OURS, *RIVALS)}
        error = mean(o[OURS].calibration for o in outcomes)
        shares.append(mean(share for _, share in found))
        for rival in RIVALS:
            better[rival] += losses[OURS] <= losses[rival]
        if len(split_of(name, 0).y_test) >= MANY:
            calibrated.append(error)
        rows.append(
            [
                f"{name}, {(STORED | KEEL)[name]} vectors",
                str(count),
                *(f"{losses[label]:.3f}" for label in (OURS, *RIVALS)),
                *(f"{mean(o[label].calibration for o in outcomes):.3f}" for label in (OURS, RIVALS[0])),
                *(f"{mean(o[label].error for o in outcomes):.2f}" for label in (OURS, RIVALS[0])),
                f"{mean(o[OURS].seconds for o in outcomes):.1f}",
                f"{100 * shares[-1]:+.0f} %",
                f"{mean(o[RIVALS[0]].seconds for o in outcomes):.1f}",
            ]
        )
    header = ["set", "splits", *(f"log-loss, {label}" for label in (OURS, *RIVALS))]
    header += ["ECE", "ECE, SVC", "error, %", "error, SVC", "fit, s", "for the layer", "fit, SVC, s"]
    note = "; ".join(f"log-loss no worse than {rival} on {better[rival]} of {len(rows)}" for rival in RIVALS)
    if calibrated:
        note += f"; largest ECE on sets with {MANY} test rows or more: {max(calibrated):.3f}"
    yield Table(
        "Probabilities", header, rows, f"{note}. Times are CPU seconds; SVC's without the choice of C and gamma."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.probability", __doc__)
    add_arguments(parser)
    parts.run(parser.parse_args(argv), "Probabilities", [measure])


if __name__ == "__main__":
    main()
