"""Reliability diagrams: the share of right predictions against their probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.utils import check_consistent_length

from ..estimators.validation import check_choice, check_number
from ..frontiers.result import classifier_of
from ..linalg.arrays import Array
from ..utils.drawing import axes_for, open_frame, short, text_color

STRATEGIES = ("uniform", "quantile")
LEGEND_ENTRY_HEIGHT = 0.13  # share of the height of the figure
SUM_TOLERANCE = 1e-3  # largest deviation from 1 of the sum of a row's probabilities


class CalibrationDisplay:
    """How often predictions of a given probability are right: a reliability diagram for two and for several classes.

    Rows are grouped by the probability of the predicted class, which is the highest one, or, with ``pos_label``, by the
    probability of that class. Use `from_estimator` or `from_predictions`.

    Parameters
    ----------
    prob_pred : array-like of shape (n_bins,)
        Mean probability in each bin that has rows.
    prob_true : array-like of shape (n_bins,)
        Share of right predictions in each bin.
    counts : array-like of shape (n_bins,)
        Number of rows in each bin.
    edges : array-like of shape (n_bins, 2)
        Lowest and highest probability of each bin.
    ece : float
        Expected calibration error: the mean of ``|prob_true - prob_pred|`` over bins, weighted by their rows.
    log_loss : float
        Mean negative logarithm of the probability of the true class.
    lowest : float, default=0.0
        The lowest possible probability: 1 / n_classes for the predicted class.
    name : str, optional
        Name of the curve in the legend.
    pos_label : object, optional
        The class whose probability is drawn; None: the predicted class.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib Line2D
        The curve.
    ideal_ : matplotlib Line2D
        The diagonal.
    counts_ax_ : matplotlib axes or None
        The scale of the counts, at the right.
    bars_ : matplotlib BarContainer or None
        The counts.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from slimsvm import CalibrationDisplay
    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> display = CalibrationDisplay.from_predictions(["no", "no", "yes", "no"], p, classes=["no", "yes"], n_bins=2)
    >>> display.prob_true.tolist(), round(display.ece, 3)
    ([0.75], 0.0)
    """

    def __init__(
        self,
        prob_pred: Any,
        prob_true: Any,
        counts: Any,
        edges: Any,
        *,
        ece: float,
        log_loss: float,
        lowest: float = 0.0,
        name: str | None = None,
        pos_label: Any = None,
    ):
        self.prob_pred = np.asarray(prob_pred, dtype=np.float64)
        self.prob_true = np.asarray(prob_true, dtype=np.float64)
        self.counts = np.asarray(counts)
        self.edges = np.asarray(edges, dtype=np.float64)
        self.ece = ece
        self.log_loss = log_loss
        self.lowest = lowest
        self.name = name
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the calibration of a fitted classifier on rows that it has not seen.

        Parameters
        ----------
        estimator : fitted classifier with predict_proba
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        n_bins : int, default=10
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        pos_label : object, optional
            The class whose probability is drawn; the predicted class unless given.
        name : str, optional
            The class of the estimator unless given.
        ax : matplotlib axes, optional
        **options : dict
            As for `plot`.

        Returns
        -------
        CalibrationDisplay
        """
        probabilities = getattr(estimator, "predict_proba", None)
        if probabilities is None:
            raise ValueError(
                f"{type(estimator).__name__} has no predict_proba; fit it with probability=True, or calibrate it with "
                "sklearn.calibration.CalibratedClassifierCV"
            )
        return cls.from_predictions(
            y,
            probabilities(X),
            classes=estimator.classes_,
            n_bins=n_bins,
            strategy=strategy,
            pos_label=pos_label,
            name=type(classifier_of(estimator)).__name__ if name is None else name,
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the calibration of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_prob : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
            Probabilities of the classes; one-dimensional: of the second one.
        classes : array-like of shape (n_classes,), optional
            Labels of the columns; the sorted labels of y_true unless given.
        n_bins, strategy, pos_label, name, ax, **options :
            As for `from_estimator`.

        Returns
        -------
        CalibrationDisplay
        """
        return cls.of(
            y_true, y_prob, classes=classes, n_bins=n_bins, strategy=strategy, pos_label=pos_label, name=name
        ).plot(ax, **options)

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
    ) -> Any:
        """Compute the curve of `from_predictions` without drawing it; matplotlib is not needed.

        Parameters
        ----------
        y_true, y_prob, classes, n_bins, strategy, pos_label, name :
            As for `from_predictions`.

        Returns
        -------
        CalibrationDisplay
        """
        check_number("n_bins", n_bins, at_least=1, integer=True)
        check_choice("strategy", strategy, STRATEGIES)
        P, classes, codes = _checked(y_true, y_prob, classes)
        if pos_label is None:
            p, right, lowest = P.max(axis=1), P.argmax(axis=1) == codes, 1 / len(classes)
        else:
            at = classes.tolist().index(pos_label) if pos_label in classes.tolist() else None
            if at is None:
                raise ValueError(f"pos_label={pos_label!r} is no class; the classes are {classes.tolist()}")
            p, right, lowest = P[:, at], codes == at, 0.0
        bins = _bins(p, n_bins, strategy)
        full = np.unique(bins[0])
        counts = np.array([np.sum(bins[0] == b) for b in full])
        pred, true = (np.array([values[bins[0] == b].mean() for b in full]) for values in (p, right))
        loss = float(log_loss(codes, P, labels=np.arange(len(classes))))
        return cls(
            pred,
            true,
            counts,
            bins[1][full],
            ece=float(np.average(np.abs(pred - true), weights=counts)),
            log_loss=loss,
            lowest=lowest,
            name=name,
            pos_label=pos_label,
        )

    def plot(self, ax: Any = None, *, show_counts: bool = True, line_kw: dict[str, Any] | None = None) -> Any:
        """Draw the reliability diagram.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure unless given. Curves of several models may share it.
        show_counts : bool, default=True
            Whether bars show how many rows each bin has.
        line_kw : dict, optional
            Passed on to matplotlib's ``plot``.

        Returns
        -------
        CalibrationDisplay
        """
        ax = axes_for(ax, (5.6, 4.6))
        low = min(self.lowest, float(self.prob_pred.min()))
        diagonals = [line for line in ax.lines if line.get_gid() == "ideal"]
        ideal = {"color": text_color(), "alpha": 0.35, "lw": 1, "zorder": 1, "gid": "ideal"}
        self.ideal_ = diagonals[0] if diagonals else ax.plot([0, 1], [0, 1], **ideal)[0]
        text = f"ECE {self.ece:.3f}, log-loss {self.log_loss:.3f}"
        label = text if self.name is None else f"{short(self.name, 40)}\n{text}"
        style = {"marker": "o", "ms": 5, "label": label, "zorder": 3, **(line_kw or {})}
        (self.line_,) = ax.plot(self.prob_pred, self.prob_true, **style)
        self.counts_ax_, self.bars_ = None, None
        if show_counts:
            self._draw_counts(ax)
        share = "share of right predictions"
        if self.pos_label is not None:
            share = f"share of class {short(self.pos_label)}"
        of = "highest probability" if self.pos_label is None else f"probability of {short(self.pos_label)}"
        if diagonals:  # the axes have curves of other models
            low = min(low, ax.get_xlim()[0])
        bottom = min(low, float(self.prob_true.min()), ax.get_ylim()[0] if diagonals else 1.0)
        ax.set(xlabel=of, ylabel=share, xlim=(low, 1 + 0.02 * (1 - low)))
        # The legend gets its own room above 1, as a curve may pass anywhere below.
        entries = len(ax.get_legend_handles_labels()[1])
        top = 1 + (0.04 + LEGEND_ENTRY_HEIGHT * entries) * (1 - bottom)
        ax.set(ylim=(bottom, top))
        ax.set_yticks([tick for tick in ax.get_yticks() if bottom <= tick <= 1 + 1e-9])
        open_frame(ax)
        ax.legend(loc="upper left", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_counts(self, ax: Any) -> None:
        """Draw the counts as bars behind the curve, up to a quarter of the height, with a scale at the right."""
        side = ax.twinx()
        left, right = self.edges.T
        bars = {"align": "edge", "alpha": 0.25, "color": self.line_.get_color(), "lw": 0}
        self.bars_ = side.bar(left, self.counts, np.maximum(right - left, 1e-3) * 0.94, **bars)
        largest = int(self.counts.max())
        side.set_ylim(0, 4 * largest)
        side.set_yticks([0, largest], ["0", f"{largest:,}"])
        side.set_ylabel("rows", loc="bottom")
        side.spines[["top", "left"]].set_visible(False)
        side.spines["right"].set_visible(False)
        # Draw the curve above the bars.
        ax.set_zorder(side.get_zorder() + 1)
        ax.patch.set_visible(False)
        self.counts_ax_ = side


def _checked(y_true: Any, y_prob: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Check the input; return probabilities (rows x classes), the classes, and the class number of each row."""
    y, P = np.asarray(y_true), np.asarray(y_prob, dtype=np.float64)
    check_consistent_length(y, P)
    P = np.column_stack([1 - P, P]) if P.ndim == 1 else P
    classes = np.unique(y) if classes is None else np.asarray(classes)
    if P.ndim != 2 or P.shape[1] != len(classes):
        raise ValueError(
            f"y_prob has the shape {P.shape}, for {len(classes)} classes {classes.tolist()[:10]}; give a column for "
            "each, and the labels of the columns as classes where y_true lacks some of them"
        )
    if not len(y):
        raise ValueError("there are no rows; give at least one")
    if not ((P >= 0) & (P <= 1)).all() or np.abs(P.sum(axis=1) - 1).max() > SUM_TOLERANCE:
        raise ValueError("y_prob must be probabilities: between 0 and 1, and each row of sum 1")
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    unknown = sorted({str(label) for label in y.tolist() if label not in numbers})
    if unknown:
        raise ValueError(f"y_true has labels that are no classes: {unknown[:5]}; the classes are {classes.tolist()}")
    return P, classes, np.array([numbers[label] for label in y.tolist()])


def _bins(p: Array, count: int, strategy: str) -> tuple[Array, Array]:
    """The bin number of each row, and the edges of the bins."""
    if strategy == "uniform":
        place = np.minimum((p * count).astype(int), count - 1)
        ends = np.linspace(0, 1, count + 1)
        return place, np.column_stack([ends[:-1], ends[1:]])
    place = np.empty(len(p), dtype=int)
    parts = [rows for rows in np.array_split(np.argsort(p, kind="stable"), count) if len(rows)]
    for number, rows in enumerate(parts):
        place[rows] = number
    return place, np.array([[p[rows].min(), p[rows].max()] for rows in parts])
