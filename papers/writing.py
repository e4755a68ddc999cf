"""Results as files: Markdown, CSV and PNG for each, a page for each paper, a web page for all."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from slimsvm import __version__

from .result import Result

DPI = 120


def save(result: Result, folder: str | Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.csv`` and, where there is something to draw, ``NAME.png``.

    Parameters
    ----------
    result : Result
    folder : path
        It is made where it is not there.

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = result.recipe.name
    picture = drawn(result)
    files = {f"{name}.md": _section(result, picture).encode(), f"{name}.csv": result.csv().encode()}
    if picture is not None:
        files[f"{name}.png"] = picture
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return [folder / file for file in files]


def drawn(result: Result) -> bytes | None:
    """The picture of a figure as PNG; None where there is nothing to draw, or nothing to draw with."""
    if result.recipe.draw is None or not result.outcomes:
        return None
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    result.recipe.draw(figure, result)
    file = io.BytesIO()
    # What changes from run to run, such as the version of matplotlib, stays out of the file.
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _section(result: Result, picture: bytes | None) -> str:
    text = result.markdown()
    return text if picture is None else f"{text}\n![{result.recipe.title}]({result.recipe.name}.png)\n"


def page(results: Sequence[Result], folder: str | Path, command: str, when: date | None = None) -> Path:
    """Write the results of one paper as a page of Markdown with its pictures beside it.

    Parameters
    ----------
    results : sequence of Result
        Of one paper.
    folder : path
    command : str
        How they were measured.
    when : date, optional
        Today unless given.

    Returns
    -------
    Path
        The page.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paper = results[0].recipe.paper
    lines = [f"# {paper.authors}: {paper.title}", "", f"{paper.venue}, {paper.year}.", ""]
    lines += [f"Measured {when or date.today()} with slimsvm {__version__}, `{command}`. {total(results)}", ""]
    lines += [
        "*apart*: ours less the paper's, in standard errors of the difference. A star marks what is more than two of "
        "them away and not better; the lines below the table say why.",
        "",
    ]
    for result in results:
        picture = drawn(result)
        lines.append(_section(result, picture))
        if picture is not None:
            (folder / f"{result.recipe.name}.png").write_bytes(picture)
    path = folder / f"{paper.key}.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def total(results: Sequence[Result]) -> str:
    """A sentence about the cells of several results."""
    counts = [result.counts() for result in results]
    same, better, beyond = (sum(count[name] for count in counts) for name in ("same", "better", "beyond"))
    every = same + better + beyond
    if not every:
        return "Nothing to compare."
    share = 100 * (same + better) / every
    return f"{same + better} of {every} numbers ({share:.0f} %) are within two standard errors of the paper or better."


STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;display:block;overflow-x:auto;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}
img{max-width:100%;background:#fff}.beyond{color:#b3261e}.better{color:#1b7f3b}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}.beyond{color:#ff8a80}
.better{color:#80d89a}}"""


def webpage(results: Sequence[Result], title: str = "Five papers, measured again") -> str:
    """All results as one web page that needs nothing beside it.

    Parameters
    ----------
    results : sequence of Result
    title : str

    Returns
    -------
    str
        HTML.
    """
    body = [f"<h1>{html.escape(title)}</h1>"]
    body.append(f"<p>{date.today()}, slimsvm {__version__}. {html.escape(total(results))}</p>")
    paper: Any = None
    for result in results:
        if result.recipe.paper != paper:
            paper = result.recipe.paper
            body.append(f"<h2>{html.escape(paper.authors)}: {html.escape(paper.title)} ({paper.year})</h2>")
        body += _web_section(result)
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{html.escape(title)}</title>"
    return f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(body)}</body></html>"


def _web_section(result: Result) -> list[str]:
    recipe = result.recipe
    parts = [f"<h3 id={recipe.name}>{html.escape(recipe.title)}</h3><p>{html.escape(recipe.protocol)}</p>"]
    for header, rows in result.tables():
        parts.append("<table>" + _web_row(header, "th") + "".join(_web_row(row, "td") for row in rows) + "</table>")
    if any(cell.verdict for cell in result.cells):
        parts.append(f"<p>{html.escape(result.summary())}</p>")
    reasons = [f"{cell.row}, {cell.column.name}: {cell.reason or 'not explained'}" for cell in result.beyond()]
    reasons += [f"left out: {why}" for why in result.left_out.values()]
    if reasons:
        parts.append("<ul>" + "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons) + "</ul>")
    picture = drawn(result)
    if picture is not None:
        data = base64.b64encode(picture).decode()
        parts.append(f"<img alt='{html.escape(recipe.title, quote=True)}' src='data:image/png;base64,{data}'>")
    return parts


def _web_row(cells: Sequence[str], tag: str) -> str:
    def attributes(text: str) -> str:
        return " class=beyond" if text.endswith("*") else " class=better" if text.endswith("better") else ""

    return "<tr>" + "".join(f"<{tag}{attributes(text)}>{html.escape(text)}</{tag}>" for text in cells) + "</tr>"
