"""``slimsvm papers``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import models
from .errors import WrongUse
from .output import Facts, Output, grid

if TYPE_CHECKING:
    from ..papers import Recipe, Result


def papers(
    names: Sequence[str],
    listed: bool,
    every: bool,
    quick: bool,
    html: Path | None,
    folder: Path,
    pages: Path | None,
    jobs: int,
    again: bool,
    out: Output,
) -> None:
    """Tables and figures of papers, measured one after the other."""
    from .. import papers as all_papers

    if listed:
        return _list(all_papers.recipes(), out)
    wanted = _wanted(names, every)
    if html is not None:
        if html.suffix.lower() not in (".html", ".htm"):
            raise WrongUse(f"--html {html}: must end in .html")
        models.check_new(html, suffix=None)
    began, results, files = time.perf_counter(), [], []
    forgotten: set[str] = set()
    with out.work(len(wanted)) as begin:
        for recipe in wanted:
            begin(recipe.name)
            show = not (out.quiet or out.json)
            kept_as = recipe.kept_as or recipe.name
            fresh = again and kept_as not in forgotten
            forgotten.add(kept_as)
            found = all_papers.run(recipe, quick=quick, folder=folder, n_jobs=jobs, again=fresh, verbose=show)
            results.append(found)
            files += all_papers.save(found, folder)
            if not out.json:
                out.report({}, *_parts(found))
    if html is not None:
        html.write_text(all_papers.webpage(results), encoding="utf-8")
        files.append(html)
    if pages is not None:
        for _, some in groupby(results, key=lambda result: result.recipe.paper.key):
            files.append(all_papers.page(list(some), pages, out.command))
    seconds = time.perf_counter() - began
    if out.json:
        out.report({"results": [_content(found) for found in results], "files": files, "seconds": seconds})
    else:
        facts = [("in all", all_papers.total(results)), ("files", f"{folder}/"), ("report", html), ("pages", pages)]
        out.report({}, Facts([*facts, ("time", f"{seconds:.0f} s")]))
    return None


def _list(recipes: Sequence[Recipe], out: Output) -> None:
    content, lines = [], []
    for recipe in recipes:
        tasks = list(recipe.tasks())
        data = sorted({name for task in tasks for name in task.data})
        facts = {"name": recipe.name, "title": recipe.title, "tasks": len(tasks)}
        content.append({**facts, "quick": sum(task.quick for task in tasks), "data": data})
        lines.append([recipe.name, recipe.title])
    out.report({"recipes": content}, grid(["name", "what"], lines))


def _wanted(names: Sequence[str], every: bool) -> list[Recipe]:
    from .. import papers as all_papers

    if every and names:
        raise WrongUse(f"--all and {names[0]}: give names or --all, not both")
    if not every and not names:
        raise WrongUse("nothing to measure: give names, or --all; --list shows what there is")
    try:
        found = [recipe for name in names or (None,) for recipe in all_papers.recipes(name)]
    except ValueError as error:
        raise WrongUse(str(error)) from None
    return list({recipe.name: recipe for recipe in found}.values())


def _parts(found: Result) -> list[Any]:
    """Tables, a sentence, and what is beyond."""
    tables = [grid(header, rows, narrow=True) for header, rows in found.tables()]
    parts: list[Any] = [found.recipe.title, *tables]
    if any(cell.verdict for cell in found.cells):
        parts.append(found.summary())
    parts += [f"* {cell.row}, {cell.column.name}: {cell.reason or 'not explained'}" for cell in found.beyond()]
    return [*parts, *(f"left out: {why}" for why in found.left_out.values()), ""]


def _content(found: Result) -> dict[str, Any]:
    cells = [
        {
            "row": cell.row,
            "column": cell.column.name,
            "paper": cell.paper and cell.paper.value,
            "ours": cell.ours,
            "standard_error": cell.standard_error,
            "runs": len(cell.samples),
            "difference": cell.difference,
            "verdict": cell.verdict,
        }
        for cell in found.cells
    ]
    return {"name": found.recipe.name, "cells": cells, "counts": found.counts(), "left_out": found.left_out}
