"""The result of `frontier`: models of several sizes, their scores on held-out rows, and a table of both."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from ..estimators import validation
from ..quantization.quantize import model_bytes
from ..training import sizes as sizing
from ..training.sizes import MARGIN_FACTOR, Curve

LINE_WIDTH = 80  # characters of the printed reason


def classifier_of(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def bytes_of(model: Any) -> int:
    """Size of a fitted model on a device in bytes; in float32 if its kernel has no fixed-point form."""
    try:
        return model_bytes(model)
    except ValueError:
        return model._expansion().float_bytes


@dataclass(frozen=True)
class FullMachine:
    """The support vector machine over all rows, for comparison.

    ``model`` is a fitted `AnyNormSVC` or `SVR` (several targets: a `MultiOutputRegressor` of `SVR`), or a pipeline that
    ends with it; ``score`` and ``standard_error`` are on held-out rows, ``seconds`` is the time of the fit.
    """

    model: Any
    score: float
    standard_error: float
    seconds: float

    @property
    def machines(self) -> list[Any]:
        """The fitted models, one for each target."""
        last = classifier_of(self.model)
        return list(last.estimators_) if isinstance(last, MultiOutputRegressor) else [last]

    @property
    def vectors(self) -> int:
        """The number of support vectors over all targets."""
        return sum(int(machine.n_vectors_) for machine in self.machines)

    @property
    def bytes(self) -> int:
        return sum(map(bytes_of, self.machines))


@dataclass(frozen=True)
class ChosenSize:
    """The chosen size, and the reason for it as a sentence."""

    size: int
    why: str


@dataclass(frozen=True, repr=False)
class Frontier:
    """Models of several sizes and their scores on held-out rows; the result of `frontier`.

    Attributes
    ----------
    models : dict of int to SlimSVC or SlimSVR
        The fitted model of each size, on all rows; pipelines where the estimator was one.
    curve : object
        ``sizes``, ``scores`` (larger is better) and ``standard_errors`` on held-out rows; ``behind``: by how many
        standard errors the margins are worse than those of the best size.
    seconds : dict of int to float
        The time to fit each size on all rows, from the largest down: each size starts from the next larger one.
    full : FullMachine or None
        The support vector machine over all rows, for comparison: ``model``, ``vectors``, ``bytes``, ``score``,
        ``standard_error``, ``seconds``.
    scoring : str
        The name of the scores.
    floor : int
        The smallest size that `best` returns by default.
    chosen : ChosenSize
        ``size``, the one that `best` returns by default, and ``why``, the reason as a sentence; shown in the table, the
        plot and the report.
    """

    models: dict[int, Any]
    curve: Curve
    seconds: dict[int, float]
    full: FullMachine | None
    scoring: str
    floor: int
    chosen: ChosenSize = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.chosen is None:
            object.__setattr__(self, "chosen", self.choice())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, in ascending order."""
        return self.curve.sizes

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dicts, one for each size."""
        return [
            {
                "size": size,
                "vectors": int(classifier_of(self.models[size]).n_vectors_),
                "score": float(score),
                "standard_error": float(error),
                "bytes": bytes_of(classifier_of(self.models[size])),
                "seconds": self.seconds[size],
                "chosen": size == self.chosen.size,
            }
            for size, score, error in zip(self.sizes, self.curve.scores, self.curve.standard_errors, strict=True)
        ]

    @property
    def table(self) -> Any:
        """Sizes with vectors, score, its standard error, bytes, seconds and which is chosen: a DataFrame where pandas
        is installed, else the list of dicts that is in `rows`."""
        try:
            import pandas
        except ImportError:
            return self.rows
        return pandas.DataFrame(self.rows)

    def best_size(self, within: float | None = None, *, bytes: float | None = None, floor: int | None = None) -> int:
        """The size of the model that `best` returns for the same parameters."""
        return self.choice(within, bytes=bytes, floor=floor).size

    def choice(
        self,
        within: float | None = None,
        *,
        bytes: float | None = None,
        floor: int | None = None,
        bytes_by_size: Mapping[int, int] | None = None,
    ) -> ChosenSize:
        """The size of the model that `best` returns for the same parameters, and the reason.

        ``bytes_by_size``: the bytes of each size, if more than those of the models count.
        """
        if within is not None:
            validation.check_number("within", within, at_least=0)
        allowed = self.sizes
        if bytes is not None:
            validation.check_number("bytes", bytes, above=0)
            if bytes_by_size is None:
                bytes_by_size = {size: bytes_of(classifier_of(self.models[size])) for size in self.sizes}
            allowed = tuple(size for size in self.sizes if bytes_by_size[size] <= bytes)
            if not allowed:
                raise ValueError(
                    f"no model fits in bytes={bytes}: the smallest, of {self.sizes[0]} vectors, takes "
                    f"{bytes_by_size[self.sizes[0]]}. Give more bytes or smaller sizes, or use fewer inputs"
                )
        if within is None:
            within = sizing.DEFAULT_WITHIN if bytes is None else 0.0
        if floor is None:
            floor = self.floor
        within = float(within)
        size = self.curve.best(within, floor, allowed)
        return ChosenSize(size, _reason(self.curve, size, within, floor, allowed, bytes, self.scoring))

    def best(self, within: float | None = None, *, bytes: float | None = None, floor: int | None = None) -> Any:
        """The smallest model that is as good as any, or the best one that fits.

        Parameters
        ----------
        within : float, optional
            The smallest size is taken whose score is at most this many standard errors below the best score, and whose
            margins are not clearly worse (with the default scoring: by at most four times as many standard errors of
            their difference on the same rows). If no size meets both, the one whose larger shortfall is the smallest. A
            larger number never gives a larger model. Default: 0.5, or 0 with ``bytes``.
        bytes : float, optional
            Maximum bytes of the model.
        floor : int, optional
            The smallest size to return, if there are sizes from there on. Default: ``max(4, classes)``. With few
            held-out rows, a flat curve would otherwise end at one or two vectors.

        Returns
        -------
        SlimSVC
            Fitted on all rows; one of `models`.
        """
        return self.models[self.best_size(within, bytes=bytes, floor=floor)]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Plot score against size with standard errors, the chosen size and the full model; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure unless given.
        **options : dict
            As for `FrontierDisplay.plot`: ``bytes_axis=True`` adds the bytes of each model.

        Returns
        -------
        matplotlib axes
        """
        from .display import FrontierDisplay

        return FrontierDisplay.from_frontier(self, ax=ax, **options).ax_

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """The header and the lines of the printed table."""
        label, value, unit = shown_scores(self.scoring)
        digits = 2 if unit == 100 else 4

        def cells(score: float, standard_error: float, vectors: int, bytes: int, seconds: float) -> list[str]:
            numbers = [f"{value(score):.{digits}f}", f"{unit * standard_error:.{digits}f}"]
            return [str(vectors), *numbers, str(bytes), f"{seconds:.2f}"]

        lines = []
        for row in self.rows:
            chosen = "chosen" if row.pop("chosen") else ""
            del row["size"]
            lines.append([chosen, *cells(**row)])
        if self.full is not None:
            full = self.full
            numbers = cells(full.score, full.standard_error, full.vectors, full.bytes, full.seconds)
            lines.append(["full machine", *numbers])
        return ["", "vectors", label, "± s.e.", "bytes", "seconds"], lines

    def __repr__(self) -> str:
        header, lines = self._cells()
        widths = [max(len(line[k]) for line in [header, *lines]) for k in range(len(header))]
        shown = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [header, *lines]
        ]
        return "\n".join(["Frontier", *(line.rstrip() for line in shown), textwrap.fill(self.chosen.why, LINE_WIDTH)])

    def _repr_html_(self) -> str:
        header, lines = self._cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = ""
        for line in lines:
            cells = "".join(f"<td style='text-align: right'>{escape(cell)}</td>" for cell in line)
            style = " style='font-weight: bold'" if line[0] == "chosen" else ""
            body += f"<tr{style}>{cells}</tr>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self.chosen.why)}</p>"


def _reason(
    curve: Curve,
    size: int,
    within: float,
    floor: int,
    allowed: tuple[int, ...],
    max_bytes: float | None,
    scoring: str,
) -> str:
    """The reason for which `Curve.best` returns this size, as a sentence."""
    places = curve.candidates(floor, allowed)
    by_score, by_margins = curve.shortfalls(places)
    chosen = places.index(curve.sizes.index(size))
    best_score, best_margins = curve.sizes[curve.best_place(places)], curve.sizes[places[int(by_margins.argmin())]]
    margins = "margins" if scoring == "accuracy" else "errors"
    close = f"within {within:g} standard error{'s' * (within != 1)} of"
    if len(allowed) == 1:
        reason = "it is the only size" if max_bytes is None else "no other size fits"
    elif size < floor:
        reason = f"all sizes are below the minimum of {floor}, so the largest is taken"
    elif max(by_score[chosen], by_margins[chosen]) > within:
        score, steadiest = f"the best score ({best_score} vectors", f"the best {margins} ({best_margins} vectors"
        if within > 0:
            score += f"; limit {within:g} standard errors"
            steadiest += f"; limit {MARGIN_FACTOR * within:g} standard errors of the difference"
        close_to = "is close enough to" if within > 0 else "has"
        reason = f"no size {close_to} both {score}) and {steadiest}); this one comes closest"
    else:
        own = by_score[chosen] == 0
        reason = f"the fewest whose score is {close} the best ({'their own' if own else f'that of {best_score}'})"
        if within == 0:
            reason = "the fewest that have the best score"
        if (by_score[:chosen] <= within).any():
            worse = "as good as the best" if within == 0 else "not clearly worse than the best"
            reason += f" and whose {margins} on the same rows are {worse}"
    if max_bytes is not None and len(allowed) > 1:
        reason = f"of those that fit in {max_bytes:g} bytes, {reason}"
    would = curve.best(within, 1, allowed)
    if would < floor <= size:
        few = f"fewer than {floor} are not chosen: the rows held out are too few to judge such small models"
        reason += f"; {would} would do by this table, but {few}"
    best = curve.best_place(curve.candidates(floor))
    if curve.sizes[best] not in allowed and curve.scores[best] > curve.scores[places[chosen]]:
        reason += f"; {curve.sizes[best]} vectors do better, but take more than {max_bytes:g} bytes"
    return f"{size} vector{' is' if size == 1 else 's are'} chosen: {reason}"


def shown_scores(scoring: str) -> tuple[str, Callable[[Any], Any], float]:
    """How scores are shown: their label, their conversion, and the factor of their standard errors."""
    if scoring == "accuracy":
        return "error, %", lambda score: 100 * (1 - score), 100.0
    return scoring, lambda score: score, 1.0
