"""HTML from Python values: whatever is not `Safe` is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> Safe:
    """A value as HTML: numbers with separated thousands, all else escaped."""
    match value:
        case Safe():
            return value
        case bool() | np.bool_():
            return Safe("yes" if value else "no")
        case int() | np.integer():
            return Safe(f"{value:,}")
        case float() | np.floating():
            return Safe(number(float(value)))
    return Safe(escape(str(value)))


def number(value: float) -> str:
    """Four significant digits; whole numbers below a million in full."""
    if np.isfinite(value) and value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:.4g}"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent, with a space that does not break."""
    return "–" if np.isnan(share) else f"{100 * share:.{digits}f}\u00a0%"


def join(parts: Iterable[Any], between: str = "") -> Safe:
    return Safe(between.join(text(part) for part in parts))


def tag(name: str, *inside: Any, **attributes: Any) -> Safe:
    """An HTML element; in attribute names a trailing _ is dropped (``class_``) and other _ become dashes."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Safe(f"<{name}{given}>{join(inside)}</{name}>")


def paragraph(*inside: Any, **attributes: Any) -> Safe:
    return tag("p", *inside, **attributes)


def scrolling(inside: Safe, label: Any) -> Safe:
    """A box with its own scroll bar, accessible by keyboard."""
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def table(
    caption: Any,
    header: Sequence[Any],
    lines: Iterable[Sequence[Any]],
    *,
    marked: Iterable[int] = (),
    kind: str | None = None,
) -> Safe:
    """A table in a box that scrolls; the first cell of each line is a heading. `Safe` cells (``<td``) are inserted
    unchanged.
    """
    marked = set(marked)
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))
    body = [
        tag("tr", *(_cell(k, cell) for k, cell in enumerate(line)), class_="marked" if number in marked else None)
        for number, line in enumerate(lines)
    ]
    return scrolling(tag("table", tag("caption", caption), head, tag("tbody", *body), class_=kind), caption)


def _cell(place: int, cell: Any) -> Safe:
    if type(cell) is Safe and cell.startswith(("<td", "<th")):
        return cell
    return tag("th", cell, scope="row") if place == 0 else tag("td", cell)


def facts(pairs: Iterable[tuple[Any, Any]]) -> Safe:
    """A list of names and values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")


def code(source: str, label: str) -> Safe:
    return tag("pre", tag("code", source), tabindex="0", aria_label=label)


def more(summary: Any, *inside: Any) -> Safe:
    """A collapsible element, initially closed."""
    return tag("details", tag("summary", summary), *inside)


def section(name: str, title: str, *inside: Any) -> Safe:
    return tag("section", tag("h2", title, id=f"{name}-title"), *inside, id=name, aria_labelledby=f"{name}-title")


def bar(share: float, color: str = "c0") -> Safe:
    """A share as a bar, hidden from screen readers, as the number stands beside it."""
    style = f"width: {100 * min(max(share, 0.0), 1.0):.2f}%; background: var(--{color})"
    return tag("span", tag("span", style=style), class_="bar", aria_hidden="true")
