"""``python -m papers``: measure tables and figures of the five papers again, beside what the papers print."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any

from . import Recipe, Result, page, recipes, run, save, total, webpage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        _list(options.json)
        return 0
    if options.html is not None and options.html.suffix.lower() not in (".html", ".htm"):
        parser.error(f"--html {options.html}: must end in .html")
    if options.html is not None and not options.html.parent.is_dir():
        parser.error(f"--html {options.html}: there is no folder {options.html.parent}")
    try:
        wanted = _wanted(options.names, options.all)
    except ValueError as error:
        parser.error(str(error))
    try:
        _measure(wanted, options, shlex.join(["python", "-m", "papers", *arguments]))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Measure tables and figures of the five papers again, beside what the papers print. Each is shown "
        "as it is done, and written as Markdown, CSV and, for figures, PNG. A run that is broken off goes on where it "
        "was.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a paper, or a table or figure of one")
    parser.add_argument("--list", action="store_true", help="show what there is")
    parser.add_argument("--all", action="store_true", help="all five papers")
    parser.add_argument("--quick", action="store_true", help="a few splits of a few sets: minutes in all")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report: one .html file")
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        default=Path("slimsvm-papers"),
        metavar="FOLDER",
        help="where results go, and what is done so far (%(default)s)",
    )
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="write a page of Markdown for each paper")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1: all processors (%(default)s)")
    parser.add_argument("--again", action="store_true", help="forget what is done so far")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--quiet", "-q", action="store_true", help="show no progress")
    return parser


def _wanted(names: Sequence[str], every: bool) -> list[Recipe]:
    """The recipes that are asked for, each once."""
    if every and names:
        raise ValueError(f"--all and {names[0]}: give names or --all, not both")
    if not every and not names:
        raise ValueError("nothing to measure: give names, or --all; --list shows what there is")
    found = [recipe for name in names or (None,) for recipe in recipes(name)]
    return list({recipe.name: recipe for recipe in found}.values())


def _measure(wanted: Sequence[Recipe], options: argparse.Namespace, command: str) -> None:
    """Run the recipes one after the other; print and write what they give."""
    began = time.perf_counter()
    results: list[Result] = []
    files: list[Path] = []
    forgotten: set[str] = set()  # recipes may share what is kept of them
    for recipe in wanted:
        kept_as = recipe.kept_as or recipe.name
        fresh = options.again and kept_as not in forgotten
        forgotten.add(kept_as)
        result = run(
            recipe,
            quick=options.quick,
            folder=options.output,
            n_jobs=options.jobs,
            again=fresh,
            verbose=not (options.json or options.quiet),
        )
        results.append(result)
        files += save(result, options.output)
        if not options.json:
            print(result.markdown(), flush=True)
    if options.html is not None:
        options.html.write_text(webpage(results), encoding="utf-8")
        files.append(options.html)
    if options.pages is not None:
        for _, some in groupby(results, key=lambda result: result.recipe.paper.key):
            files.append(page(list(some), options.pages, command))
    seconds = time.perf_counter() - began
    if options.json:
        content = [_content(result) for result in results]
        print(json.dumps({"results": content, "files": [str(file) for file in files], "seconds": seconds}))
    else:
        print(f"{total(results)} Files: {options.output}/. {seconds:.0f} s.")


def _list(as_json: bool) -> None:
    content: list[dict[str, Any]] = []
    for recipe in recipes():
        tasks = list(recipe.tasks())
        data = sorted({name for task in tasks for name in task.data})
        quick = sum(task.quick for task in tasks)
        content.append({"name": recipe.name, "title": recipe.title, "tasks": len(tasks), "quick": quick, "data": data})
    if as_json:
        print(json.dumps({"recipes": content}))
        return
    width = max(len(one["name"]) for one in content)
    for one in content:
        print(f"{one['name']:{width}}  {one['title']}")


def _content(result: Result) -> dict[str, Any]:
    cells = [
        {
            "row": cell.row,
            "column": cell.column.name,
            "paper": cell.paper and cell.paper.value,
            "ours": cell.ours,
            "standard_error": cell.standard_error,
            "runs": len(cell.samples),
            "difference": cell.difference if cell.difference is None or isfinite(cell.difference) else None,
            "verdict": cell.verdict,
        }
        for cell in result.cells
    ]
    return {"name": result.recipe.name, "cells": cells, "counts": result.counts(), "left_out": result.left_out}


if __name__ == "__main__":
    sys.exit(main())
