"""Helpers of all displays: axes, colours, and labels that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_NAME_CHARACTERS = 22  # characters of a name beside a plot


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, which is not installed: pip install matplotlib, or pip install 'slimsvm[plot]'"
        ) from None
    return plt


def axes_for(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The given axes, or the axes of a new figure."""
    plt = pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def text_color() -> str:
    """The text colour of the current style."""
    import matplotlib

    return matplotlib.rcParams["text.color"]


def colors(count: int) -> list[Any]:
    """``count`` different colours: from the current style, or from a rainbow if the style has too few."""
    import matplotlib

    cycle = matplotlib.rcParams["axes.prop_cycle"].by_key().get("color", ["C0"])
    if count <= len(cycle):
        return cycle[:count]
    return [matplotlib.colormaps["turbo"](share) for share in np.linspace(0.05, 0.95, count)]


def diverging_colormap(low: Any, high: Any) -> Any:
    """A colour map from one colour through transparent to another."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    ends = [(*to_rgb(low), 0.95), (*to_rgb(low), 0.0), (*to_rgb(high), 0.0), (*to_rgb(high), 0.95)]
    return LinearSegmentedColormap.from_list("fading", list(zip((0, 0.5, 0.5, 1), ends, strict=True)))


def without_frame(ax: Any) -> None:
    """Remove ticks and spines."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def open_frame(ax: Any) -> None:
    """Keep the left and bottom spines only."""
    ax.spines[["top", "right"]].set_visible(False)


def short(name: Any, longest: int = MAX_NAME_CHARACTERS) -> str:
    """A name cut to a length, with dollar signs escaped."""
    text = str(name)
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return text.replace("$", r"\$")


def wrapped(text: str, ax: Any) -> str:
    """Wrap small text to the width of the axes."""
    from matplotlib.font_manager import FontProperties

    letter = 0.55 * FontProperties(size="small").get_size_in_points()
    inches = ax.get_position().width * ax.figure.get_size_inches()[0]
    return textwrap.fill(text, max(20, int(72 * inches / letter)))


def legend_below(ax: Any) -> Any:
    """The legend of the axes, below them; the figure must have a constrained layout."""
    handles, labels = ax.get_legend_handles_labels()
    columns = 3 if len(labels) <= 6 else 5
    return ax.figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def spaced_places(places: NDArray[Any], gap: float, first: Sequence[int] = ()) -> list[int]:
    """Indices of places at least ``gap`` apart, chosen greedily: those in ``first``, the ends, then the others."""
    order = [*first, len(places) - 1, 0, *range(len(places))]
    kept: list[int] = []
    for k in order:
        if all(abs(places[k] - places[other]) >= gap for other in kept):
            kept.append(k)
    return sorted(kept)
