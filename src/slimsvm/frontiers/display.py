"""The plot of score against size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.drawing import axes_for, legend_below, open_frame, pyplot, short, spaced_places, text_color, wrapped
from .result import Frontier, shown_scores

MAX_TICKS = 14  # on the axis of sizes


def _short_bytes(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


class FrontierDisplay:
    """Plot of score against size with standard errors, the chosen size and the full model.

    Made by `from_frontier` or `from_estimator`.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of vectors, in ascending order.
    scores : array-like of shape (n_sizes,)
        Scores on held-out rows; larger is better. Accuracies are drawn as errors in percent.
    standard_errors : array-like of shape (n_sizes,)
    chosen : int, optional
        The size to mark.
    why : str, optional
        The reason for this size; the title of the plot.
    bytes : array-like of shape (n_sizes,), optional
        Size of each model.
    full_vectors, full_score : int and float, optional
        Support vectors and score of the support vector machine over all rows.
    scoring : str, default="accuracy"
        The name of the scores.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    errorbar_ : matplotlib ErrorbarContainer
        The curve.
    chosen_ : matplotlib Line2D or None
        The ring around the chosen size.
    full_line_ : matplotlib Line2D or None
        The line of the full model.
    bytes_ax_ : matplotlib SecondaryAxis or None
        Bytes, above.
    frontier_ : Frontier
        Only after `from_frontier` and `from_estimator`: the frontier that is drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import FrontierDisplay, SlimSVC
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> display = FrontierDisplay.from_estimator(SlimSVC(C=10, gamma=1.0, scales="fixed"), X, y, sizes=(2, 4, 8))
    >>> display.ax_.get_xlabel(), display.frontier_.sizes
    ('vectors', (2, 4, 8))
    """

    frontier_: Frontier
    bytes_ax_: Any

    def __init__(
        self,
        sizes: Any,
        scores: Any,
        standard_errors: Any,
        *,
        chosen: int | None = None,
        why: str | None = None,
        bytes: Any = None,
        full_vectors: int | None = None,
        full_score: float | None = None,
        scoring: str = "accuracy",
    ):
        self.sizes = tuple(int(size) for size in sizes)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.standard_errors = np.asarray(standard_errors, dtype=np.float64)
        self.chosen = chosen
        self.why = why
        self.bytes = None if bytes is None else np.asarray(bytes)
        self.full_vectors = full_vectors
        self.full_score = full_score
        self.scoring = scoring

    @classmethod
    def from_frontier(cls, found: Frontier, *, chosen: int | None = None, ax: Any = None, **options: Any) -> Any:
        """Draw a result of `slimsvm.frontier`.

        Parameters
        ----------
        found : Frontier
        chosen : int, optional
            The size to mark; ``found.chosen``, with its reason as the title, unless given.
        ax : matplotlib axes, optional
        **options : dict
            As for `plot`.

        Returns
        -------
        FrontierDisplay
        """
        if not isinstance(found, Frontier):
            raise TypeError(
                f"found={found!r} (type {type(found).__name__}) must be what slimsvm.frontier returns; for an "
                "estimator and rows, use from_estimator"
            )
        display = cls(
            found.sizes,
            found.curve.scores,
            found.curve.standard_errors,
            chosen=found.chosen.size if chosen is None else chosen,
            why=found.chosen.why if chosen is None else None,
            bytes=[row["bytes"] for row in found.rows],
            full_vectors=None if found.full is None else found.full.vectors,
            full_score=None if found.full is None else found.full.score,
            scoring=found.scoring,
        )
        display.frontier_ = found
        return display.plot(ax, **options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Any = None,
        scoring: Any = None,
        cv: Any = None,
        full: bool = True,
        random_state: Any = 0,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Run `slimsvm.frontier` with an estimator and draw the result.

        Parameters
        ----------
        estimator : SlimSVC or Pipeline
            With the wanted parameters; it need not be fitted, and is not changed.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sizes, scoring, cv, full, random_state :
            As for `slimsvm.frontier`.
        ax : matplotlib axes, optional
        **options : dict
            As for `plot`.

        Returns
        -------
        FrontierDisplay
            With the `Frontier` in ``frontier_``.
        """
        from .compute import frontier

        pyplot()  # raises an error at once if matplotlib is missing
        found = frontier(
            X, y, sizes=sizes, estimator=estimator, scoring=scoring, cv=cv, full=full, random_state=random_state
        )
        return cls.from_frontier(found, ax=ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = "SlimSVC",
        bytes_axis: bool = False,
        legend: bool | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Any:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure unless given.
        name : str, optional
            Label of the curve in the legend.
        bytes_axis : bool, default=False
            Whether a second axis above shows the bytes of the models.
        legend : bool, optional
            Whether to show a legend within the axes. Default: below the axes of a new figure, else none.
        line_kw : dict, optional
            Passed on to matplotlib's ``errorbar``.

        Returns
        -------
        FrontierDisplay
        """
        own = ax is None
        ax = axes_for(ax)
        label, value, unit = shown_scores(self.scoring)
        heights = value(self.scores)
        style = {"fmt": "o-", "capsize": 3, "label": name, **(line_kw or {})}
        self.errorbar_ = ax.errorbar(self.sizes, heights, unit * self.standard_errors, **style)
        self.chosen_, self.full_line_, self.bytes_ax_ = None, None, None
        if self.chosen is not None:
            at = heights[self.sizes.index(self.chosen)]
            ring = {"ms": 13, "mfc": "none", "mec": "C3", "mew": 1.6, "label": f"chosen: {self.chosen} vectors"}
            (self.chosen_,) = ax.plot([self.chosen], [at], "o", **ring)
        if self.full_score is not None:
            full = "full machine" if self.full_vectors is None else f"full machine: {self.full_vectors} vectors"
            self.full_line_ = ax.axhline(
                value(self.full_score), color=text_color(), alpha=0.6, ls="--", lw=1.2, label=full
            )
        self._finish(ax, label, bytes_axis)
        if own and legend is None:
            legend_below(ax)
        elif legend is not False:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _finish(self, ax: Any, label: str, bytes_axis: bool) -> None:
        """Set the logarithmic axis of sizes, labels, title and the lower limit of errors."""
        ax.set_xscale("log", base=2)
        shown = self._ticks()
        ax.set_xticks([self.sizes[k] for k in shown], [str(self.sizes[k]) for k in shown])
        ax.minorticks_off()
        ax.set(xlabel="vectors", ylabel=short(label, 40))
        if self.scoring == "accuracy" and ax.get_ylim()[0] < 0:
            ax.set_ylim(bottom=0)
        open_frame(ax)
        if self.why is not None:
            ax.set_title(wrapped(self.why, ax), fontsize="small")
        if bytes_axis and self.bytes is not None:
            self.bytes_ax_ = ax.secondary_xaxis("top")
            labels = [_short_bytes(int(self.bytes[k])) for k in shown]
            self.bytes_ax_.set_xticks([self.sizes[k] for k in shown], labels)
            self.bytes_ax_.minorticks_off()
            self.bytes_ax_.set_xlabel("bytes", labelpad=6)

    def _ticks(self) -> list[int]:
        """Indices of the sizes whose tick labels do not overlap."""
        places = np.log2(self.sizes)
        first = [] if self.chosen is None else [self.sizes.index(self.chosen)]
        return spaced_places(places, float(np.ptp(places)) / MAX_TICKS, first)
