"""The vectors of a model: in the plane, as images, or as a table of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.validation import check_choice, check_number
from ..linalg.arrays import Array
from ..utils.drawing import (
    axes_for,
    colors,
    diverging_colormap,
    legend_below,
    open_frame,
    short,
    text_color,
    without_frame,
)
from .shown_model import ShownModel, check_rows

KINDS = ("plane", "images", "inputs")
MAX_SPREADS = 2.5  # standard deviations from the mean at which a colour is saturated
STRONG_VALUE = 2.0  # decision value drawn at two thirds of the full colour
SIZES = {"plane": (6.0, 5.4), "images": (8.0, 6.0), "inputs": (8.6, 5.2)}


@dataclass(frozen=True)
class Plane:
    """Predictions over two inputs: ``values`` on the grid ``x0``, ``x1``.

    The values are decision values for two classes, class numbers for several, and predictions for regressors.
    """

    x0: Array
    x1: Array
    values: Array

    @classmethod
    def of(cls, shown: ShownModel, rows: Array | None, resolution: int) -> Plane:
        """Predictions in a rectangle around the rows, or around the vectors if there are no rows."""
        points = shown.vectors if rows is None or not len(rows) else rows
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        margin = 0.08 * np.where(high > low, high - low, 1.0) * (1 if rows is not None else 3)
        x0, x1 = (np.linspace(a, b, resolution) for a, b in zip(low - margin, high + margin, strict=True))
        grid = np.stack([g.ravel() for g in np.meshgrid(x0, x1)], axis=1)
        values = shown.values(grid)
        shown_values = values[:, 0] if values.shape[1] == 1 else shown.winners(values)
        return cls(x0, x1, shown_values.reshape(resolution, resolution))

    @property
    def extent(self) -> tuple[float, float, float, float]:
        return self.x0[0], self.x0[-1], self.x1[0], self.x1[-1]

    def inside(self, points: Array) -> Array:
        left, right, bottom, top = self.extent
        return (points[:, 0] >= left) & (points[:, 0] <= right) & (points[:, 1] >= bottom) & (points[:, 1] <= top)


class VectorsDisplay:
    """The vectors of a model and their weights in its predictions.

    For two inputs: the vectors in the plane, with boundary and margins (for several classes: regions), and the rows if
    given. For inputs that are the pixels of an image (``shape``): each vector as an image. Otherwise: bars of the
    importance of each input, beside a map of the vectors. Use `from_estimator`.

    Parameters
    ----------
    vectors : array-like of shape (n_vectors, n_features)
        In the units in which they are shown.
    weights : array-like of shape (n_vectors,)
        The weight of each vector in the decision function.
    speaks_for : array-like of shape (n_vectors,)
        The number of the class that each vector votes for.
    classes : array-like, optional
        Labels; None: a regressor.
    names : sequence of str, optional
        Names of the inputs.
    counting : array-like of shape (n_features,), optional
        Relative importance of each input.
    centre, spread : array-like of shape (n_features,), optional
        Mean and standard deviation of each input, which scale its colours; those of the vectors unless given.
    shape : (int, int), optional
        Height and width of an image.
    plane : object, optional
        Decisions on a grid of two inputs: ``x0``, ``x1``, ``values`` and ``extent``, as `from_estimator` makes it.
    X, y : array-like, optional
        Rows in the plane, and their labels.
    keeps_rows : bool, default=False
        Whether vectors are rows of the training set: they are drawn as rings.
    kind : {"plane", "images", "inputs"}, optional
        How the vectors are drawn; chosen by ``shape`` and the number of inputs unless given.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    axes_ : list of matplotlib axes
        The axes with the drawing: ``ax_`` itself, or axes within it.
    vectors_ : matplotlib PathCollection, list of AxesImage, or QuadMesh
        The vectors, by kind.
    surface_, boundary_ : matplotlib AxesImage and list of ContourSet
        In the plane.
    rows_ : list of matplotlib PathCollection
        In the plane, one for each class.
    bars_ : matplotlib BarContainer
        Kind "inputs": the importance of the inputs.
    weights_ : list of matplotlib BarContainer
        Kind "inputs": the weights of the vectors, one for each class.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC, VectorsDisplay
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=6, C=10, gamma=1.0, scales="fixed").fit(X, y)
    >>> display = VectorsDisplay.from_estimator(clf, X, y)
    >>> display.kind, display.vectors.shape
    ('plane', (6, 2))
    """

    def __init__(
        self,
        vectors: Any,
        weights: Any,
        speaks_for: Any,
        *,
        classes: Any = None,
        names: Sequence[Any] | None = None,
        counting: Any = None,
        centre: Any = None,
        spread: Any = None,
        shape: tuple[int, int] | None = None,
        plane: Plane | None = None,
        X: Any = None,
        y: Any = None,
        keeps_rows: bool = False,
        kind: str | None = None,
    ):
        self.vectors = np.asarray(vectors, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.speaks_for = np.asarray(speaks_for, dtype=int)
        self.classes = None if classes is None else np.asarray(classes)
        inputs = self.vectors.shape[1]
        self.names = tuple(f"x{k}" for k in range(inputs)) if names is None else tuple(map(str, names))
        self.counting = np.ones(inputs) if counting is None else np.asarray(counting, dtype=np.float64)
        self.centre = self.vectors.mean(axis=0) if centre is None else np.asarray(centre, dtype=np.float64)
        self.spread = self.vectors.std(axis=0) if spread is None else np.asarray(spread, dtype=np.float64)
        self.shape = None if shape is None else (int(shape[0]), int(shape[1]))
        self.plane = plane
        self.X = None if X is None else np.asarray(X, dtype=np.float64)
        self.y = None if y is None else np.asarray(y)
        if self.X is not None:
            check_rows(self.X, inputs)
        _check_labels(self.X, self.y)
        self.keeps_rows = keeps_rows
        self.kind = _kind(kind, inputs, self.shape)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        shape: tuple[int, int] | None = None,
        names: Sequence[Any] | None = None,
        kind: str | None = None,
        grid_resolution: int = 300,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the vectors of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator of slimsvm, or a Pipeline that ends with one
            Vectors are shown in the units that the pipeline takes, where its other steps are scalers; in those that
            its last step takes, otherwise.
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            Rows as the estimator takes them: drawn in the plane; for other kinds their standard deviations enter the
            importance of the inputs.
        y : array-like of shape (n_samples,), optional
            Their labels.
        shape : (int, int), optional
            Height and width, where the inputs are the pixels of an image.
        names : sequence of str, optional
            Names of the inputs; a model fitted to a DataFrame knows them.
        kind : {"plane", "images", "inputs"}, optional
            Images where ``shape`` is given, the plane for two inputs, else inputs.
        grid_resolution : int, default=300
            Points of the plane in each direction.
        ax : matplotlib axes, optional
        **options : dict
            As for `plot`.

        Returns
        -------
        VectorsDisplay
        """
        check_number("grid_resolution", grid_resolution, at_least=2, integer=True)
        shown = ShownModel.of(estimator, names)
        kind = _kind(kind, shown.inference.n_inputs, shape)
        rows = None if X is None else shown.rows(X)
        _check_labels(rows, y)
        spread = {}
        if rows is not None and len(rows):
            spread = {"centre": np.nanmean(rows, axis=0), "spread": np.nanstd(rows, axis=0)}
        classes, weights = shown.speaks_for
        planar = kind == "plane"
        return cls(
            shown.vectors,
            weights,
            classes,
            classes=shown.inference.classes,
            names=shown.names,
            counting=shown.counting(X),
            **spread,
            shape=shape,
            plane=Plane.of(shown, rows, grid_resolution) if planar else None,
            X=rows if planar else None,
            y=y if planar and rows is not None else None,
            keeps_rows=shown.keeps_rows,
            kind=kind,
        ).plot(ax, **options)

    def plot(self, ax: Any = None, *, legend: bool | None = None, most_vectors: int = 60, most_inputs: int = 20) -> Any:
        """Draw the vectors.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure unless given.
        legend : bool, optional
            Whether to draw a legend below the axes; by default only in a new figure. (For room use
            ``plt.subplots(layout="constrained")``.)
        most_vectors : int, default=60
            Largest number of images or columns; of more vectors those with the largest weights are drawn.
        most_inputs : int, default=20
            Largest number of bars; of more inputs the most important ones are drawn.

        Returns
        -------
        VectorsDisplay
        """
        check_number("most_vectors", most_vectors, at_least=1, integer=True)
        check_number("most_inputs", most_inputs, at_least=1, integer=True)
        legend = ax is None if legend is None else legend
        ax = axes_for(ax, SIZES[self.kind])
        self.ax_, self.figure_ = ax, ax.figure
        self.axes_ = [ax]
        {"plane": self._in_plane, "images": self._as_images, "inputs": self._by_input}[self.kind](
            ax, most_vectors, most_inputs
        )
        if legend and ax.get_legend_handles_labels()[1]:
            legend_below(ax)
        return self

    # --- what is drawn ------------------------------------------------------------------------------------------

    def order(self, limit: int | None = None) -> Array:
        """Vector numbers by class, then by decreasing weight; at most ``limit``, those of the largest weights."""
        weights = np.abs(self.weights)
        kept = np.sort(np.argsort(-weights, kind="stable")[:limit])
        return kept[np.lexsort((-weights[kept], self.speaks_for[kept]))]

    @property
    def _colors(self) -> list[Any]:
        return colors(2 if self.classes is None else len(self.classes))

    def _in_plane(self, ax: Any, most_vectors: int, most_inputs: int) -> None:
        plane, several = self.plane, self.classes is not None and len(self.classes) > 2
        inside = np.ones(len(self.vectors), dtype=bool)
        self.surface_, self.boundary_ = None, []
        if plane is not None:
            self.surface_ = self._surface(ax, plane, several)
            self.boundary_ = self._lines(ax, plane, several)
            inside = plane.inside(self.vectors)
        self.rows_ = self._rows(ax)
        count = f" ({np.sum(~inside)} outside)" if not inside.all() else ""
        if self.keeps_rows:
            style = {"s": 40, "facecolors": "none", "edgecolors": text_color(), "linewidths": 0.8}
            label = f"vectors (training rows){count}"
        else:
            style = {"s": 110, "marker": "X", "facecolors": "gold", "edgecolors": "black", "linewidths": 0.9}
            label = f"vectors{count}"
        self.vectors_ = ax.scatter(*self.vectors[inside].T, zorder=4, label=label, **style)
        if plane is not None:
            ax.axis(plane.extent)
        ax.set(xlabel=short(self.names[0], 40), ylabel=short(self.names[1], 40))
        open_frame(ax)

    def _surface(self, ax: Any, plane: Plane, several: bool) -> Any:
        """Draw the plane in the colours of the classes, more opaque for larger decision values."""
        from matplotlib.colors import to_rgb

        image = {"extent": plane.extent, "origin": "lower", "aspect": "auto", "zorder": 0, "interpolation": "nearest"}
        if several:
            palette = np.array([(*to_rgb(color), 0.3) for color in self._colors])
            return ax.imshow(palette[plane.values.astype(int)], **image)
        far = 1.0 if self.classes is not None else max(float(np.abs(plane.values).max()), 1e-30)
        strength = np.tanh(plane.values / (STRONG_VALUE * far))
        return ax.imshow(strength, cmap=diverging_colormap(*self._colors), vmin=-1.6, vmax=1.6, **image)

    def _lines(self, ax: Any, plane: Plane, several: bool) -> list[Any]:
        """Draw the boundaries between classes and, for two classes, the margins."""
        if several:
            halves = [(plane.values == k).astype(float) for k in range(len(self.classes))]  # type: ignore[arg-type]
            drawn = [half for half in halves if half.any() and not half.all()]
            return [ax.contour(plane.x0, plane.x1, half, [0.5], colors=text_color(), linewidths=0.8) for half in drawn]
        contours = []
        for levels, style, width, label in (((0.0,), "-", 1.8, "boundary, f = 0"), ((-1.0, 1.0), "--", 1.0, "f = ±1")):
            reached = [v for v in levels if plane.values.min() < v < plane.values.max()]
            if reached:
                lines = {"colors": text_color(), "linestyles": style, "linewidths": width, "zorder": 2}
                contours.append(ax.contour(plane.x0, plane.x1, plane.values, reached, **lines))
                ax.plot([], [], color=text_color(), ls=style, lw=width, label=label)
        return contours

    def _rows(self, ax: Any) -> list[Any]:
        if self.X is None:
            return []
        if self.y is None or self.classes is None:
            return [ax.scatter(*self.X.T, s=9, color=text_color(), alpha=0.5, lw=0, zorder=3, label="rows")]
        dots = []
        for label, color in zip(self.classes.tolist(), self._colors, strict=True):
            of_class = self.X[self.y == label]
            name = f"class {short(label)}"
            dots.append(ax.scatter(*of_class.T, s=11, color=color, lw=0, alpha=0.85, zorder=3, label=name))
        return dots

    def _as_images(self, ax: Any, most_vectors: int, most_inputs: int) -> None:
        """Draw the vectors as a grid of images, each with the class that it votes for and its weight."""
        assert self.shape is not None
        order = self.order(most_vectors)
        lines, columns = lines_and_columns(len(order), self.shape)
        without_frame(ax)
        ax.patch.set_visible(False)
        shown = self.vectors[order]
        common = {"cmap": "gray_r", "vmin": shown.min(), "vmax": shown.max(), "interpolation": "nearest"}
        self.axes_, self.vectors_ = [], []
        for k, number in enumerate(order):
            line, column = divmod(k, columns)
            cell = ax.inset_axes([(column + 0.06) / columns, 1 - (line + 1) / lines, 0.88 / columns, 0.78 / lines])
            self.vectors_.append(cell.imshow(self.vectors[number].reshape(self.shape), **common))
            cell.set(xticks=[], yticks=[])
            cell.spines[:].set(alpha=0.3)
            cell.set_title(self._title(number), fontsize=8, pad=2.5)
            self.axes_.append(cell)

    def _title(self, number: int) -> str:
        """A vector's class and weight, in a few characters."""
        weight = f"{self.weights[number]:+.2g}"
        if self.classes is None:
            return weight
        return f"{short(self.classes[self.speaks_for[number]], 9)} {weight}"

    def _by_input(self, ax: Any, most_vectors: int, most_inputs: int) -> None:
        """Draw bars at the left; at the right the map of inputs by vectors, below the weights of the vectors."""
        kept = np.argsort(-self.counting, kind="stable")[:most_inputs]
        order = self.order(most_vectors)
        ax.set_axis_off()
        bars, table = ax.inset_axes([0, 0, 0.34, 0.76]), ax.inset_axes([0.39, 0, 0.55, 0.76])
        above, key = ax.inset_axes([0.39, 0.8, 0.55, 0.2]), ax.inset_axes([0.955, 0, 0.018, 0.76])
        places = np.arange(len(kept))
        self.bars_ = bars.barh(places, self.counting[kept], color=text_color(), alpha=0.55, height=0.7)
        bars.set_yticks(places, [short(self.names[k]) for k in kept])
        bars.set(ylim=(len(kept) - 0.5, -0.5), xlim=(0, 1.02), xticks=[0, 0.5, 1])
        less = "" if len(kept) == len(self.names) else f" ({len(kept)} of {len(self.names)})"
        bars.set_xlabel(f"how much an input counts{less}")
        open_frame(bars)
        self._map(table, key, self._colored(order, kept))
        hidden = "" if len(order) == len(self.vectors) else f" (the {len(order)} loudest of {len(self.vectors)})"
        table.set_xlabel(f"vectors, by class and weight{hidden}")
        self.weights_ = self._weights(above, order)
        self._name_classes(ax)
        self.axes_ = [bars, table, above, key]

    def _colored(self, order: Array, kept: Array) -> Array:
        """The map (inputs x vectors), in standard deviations from the centre; zero for constant inputs."""
        spread = np.where(self.spread > 0, self.spread, np.inf)
        return ((self.vectors - self.centre) / spread)[order][:, kept].T

    def _map(self, table: Any, key: Any, values: Array) -> None:
        palette = colors(5)
        style = {
            "cmap": diverging_colormap(palette[4], palette[2]),
            "vmin": -MAX_SPREADS,
            "vmax": MAX_SPREADS,
        }
        self.vectors_ = table.pcolormesh(values, **style)
        table.set(xticks=[], yticks=[], ylim=(len(values), 0))
        table.spines[:].set(alpha=0.3)
        bar = self.figure_.colorbar(self.vectors_, cax=key)
        bar.outline.set_visible(False)
        bar.set_ticks([-2, 0, 2], labels=["low", "mean", "high"])
        bar.ax.tick_params(length=0)

    def _weights(self, above: Any, order: Array) -> Any:
        """Draw the weight of each vector as a bar in the colour of its class."""
        places = np.arange(len(order)) + 0.5
        for number, color in enumerate(self._colors if self.classes is not None else [text_color()]):
            of_class = self.speaks_for[order] == number
            above.bar(places[of_class], self.weights[order][of_class], 0.8, color=color)
        above.axhline(0, color=text_color(), lw=0.8)
        above.set(xticks=[], xlim=(0, len(order)), ylabel="weight")
        above.spines[["top", "right", "bottom"]].set_visible(False)
        return list(above.containers)

    def _name_classes(self, ax: Any) -> None:
        """Add the colours of the classes to the legend."""
        for number, color in enumerate([] if self.classes is None else self._colors):
            ax.bar([0], [0], color=color, label=f"for class {short(self.classes[number])}")  # type: ignore[index]


def lines_and_columns(count: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Numbers of rows and columns of a grid for so many images, wider than high."""
    columns = int(np.clip(np.ceil(np.sqrt(1.6 * count * shape[0] / shape[1])), 1, max(1, count)))
    return -(-count // columns), columns


def _check_labels(rows: Array | None, y: Any) -> None:
    """Raise ValueError unless y is None or has a label for each row."""
    if y is None:
        return
    if rows is None:
        raise ValueError("y was given without X, whose rows it belongs to; give both, or X alone")
    if np.shape(y) != (len(rows),):
        raise ValueError(f"y has the shape {np.shape(y)}, X has {len(rows)} rows; give a label for each row")


def _kind(kind: str | None, inputs: int, shape: Any) -> str:
    """Choose or check the kind of drawing; ValueError if it cannot be drawn."""
    if kind is None:
        kind = "images" if shape is not None else "plane" if inputs == 2 else "inputs"
    check_choice("kind", kind, KINDS)
    if kind == "plane" and inputs != 2:
        raise ValueError(f"kind='plane' needs a model of two inputs; this one has {inputs}. Use kind='inputs'")
    if kind == "images" and (shape is None or int(shape[0]) * int(shape[1]) != inputs):
        raise ValueError(
            f"kind='images' needs shape=(height, width) with height x width = {inputs} inputs; shape={shape!r}"
        )
    return kind
