"""Matplotlib figures as inline SVG, with selectable text and with colours that are CSS variables of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from .markup import Safe, scrolling, tag

INK = "#0b0c0d"  # placeholder for the text colour
SERIES = (
    "#2f74b5",
    "#d9772b",
    "#3f9a6b",
    "#c0485a",
    "#8463b5",
    "#9a6a4b",
    "#c76aa6",
    "#6f7782",
    "#a39a2c",
    "#2f9fae",
)
VARIABLES = {INK: "var(--ink)"} | {color: f"var(--c{k})" for k, color in enumerate(SERIES)}

FONT = 10.0
MAX_SHRUNK_WIDTH = 6.2  # inches; wider figures scroll, as they would be unreadable when shrunk


def _style() -> dict[str, Any]:
    from cycler import cycler

    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(inks, INK),
        "axes.prop_cycle": cycler(color=SERIES),
        "font.size": FONT,
        "axes.labelsize": FONT,
        "legend.fontsize": FONT - 1,
        "xtick.labelsize": FONT - 1,
        "ytick.labelsize": FONT - 1,
        "axes.linewidth": 0.7,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "slimsvm",
    }


def figure(
    name: str, size: tuple[float, float], alt: str, caption: Any, draw: Callable[[Any], Any], kind: str = ""
) -> Safe:
    """A figure that ``draw`` draws on axes, with its caption and alternative text."""
    drawn = svg(name, size, alt, draw)
    box = scrolling(drawn, alt) if size[0] > MAX_SHRUNK_WIDTH else drawn
    kind = f"{kind} wide".strip() if size[0] > MAX_SHRUNK_WIDTH else kind
    return tag("figure", box, tag("figcaption", caption), class_=kind or None)


def svg(name: str, size: tuple[float, float], alt: str, draw: Callable[[Any], Any]) -> Safe:
    """The drawing as an SVG element; the same drawing gives the same bytes."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "the report has pictures and needs matplotlib, which is not installed: pip install matplotlib, or "
            "pip install 'slimsvm[plot]'"
        ) from None
    with style.context([_style()], after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has the fonts
        paper = Figure(figsize=size, layout="constrained")
        draw(paper.add_subplot())
        out = io.StringIO()
        paper.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return Safe(_inline(out.getvalue(), name, alt))


def _inline(source: str, name: str, alt: str) -> str:
    """Turn an SVG file into an element of the page: unique ids, no fixed size."""
    body = source[source.index("<svg") :]
    head, rest = body.split(">", 1)
    box = re.search(r'viewBox="[^"]+"', head)
    assert box is not None
    rest = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = rest.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    rest = rest.replace("xlink:href=", "href=")
    # Use the fonts and colours of the page.
    rest = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", rest)
    rest = re.sub(r"font-family: [^;\"]+;?", "", rest)
    for color, variable in VARIABLES.items():
        rest = re.sub(rf"(fill|stroke|stop-color): {color}", rf"\1: {variable}", rest)
    label = tag("title", alt, id=f"{name}-alt")
    return f'<svg {box.group(0)} role="img" aria-labelledby="{name}-alt">{label}{rest.strip()}'
