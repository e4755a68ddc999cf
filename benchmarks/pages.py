"""Tables of pages from results files: ``python -m benchmarks.pages`` writes them, a test compares them.

A benchmark that is run with ``--write`` (or ``--output PAGE``) keeps its tables in ``benchmarks/measured/NAME.json``,
with the date, the command, the computer and the versions of the packages. On a page, a table stands between two
comments::

    <!-- table: small: 512 bytes -->
    <!-- end of table -->

The first word names the file, the rest the table in it. Tables of the README that select from larger ones are made by
the functions of `SELECTED`. Text around the comments is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from .machine import facts, versions
from .report import Table, row_markdown

ROOT = Path(__file__).parents[1]
FILES = Path("benchmarks", "measured")
BLOCK = re.compile(r"(<!-- table: (\w+): (.+?) -->\n)(.*?)(<!-- end of table -->\n)", re.DOTALL)
MEASURED = re.compile(r"Measured on \d{4}-\d\d-\d\d with `[^`]+`(?: in [\d.]+ minutes)?")

Results = dict[str, Any]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "benchmarks").glob("*.md"))]


def read(name: str) -> Results:
    return json.loads((ROOT / FILES / f"{name}.json").read_text(encoding="utf-8"))


def keep(name: str, command: str, tables: Iterable[Table]) -> Results:
    """The results file of a run."""
    results = {
        "date": str(date.today()),
        "command": command,
        "computer": facts(),
        "versions": versions(),
        "tables": {table.title: {"header": table.header, "rows": table.rows, "note": table.note} for table in tables},
    }
    (ROOT / FILES).mkdir(exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (ROOT / FILES / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return results


def machine_table() -> Table:
    """The computer and the packages of a run."""
    rows = [[key, value] for key, value in facts().items()]
    rows.append(["packages", ", ".join(f"{name} {number}" for name, number in versions().items())])
    return Table("Machine", ["", ""], rows)


def publish(page: Path, title: str, command: str, minutes: float, tables: Iterable[Table]) -> None:
    """Write a run's results as a page. One of this project's own pages gets a results file, too, and keeps the text
    around its tables; a table that it does not have yet comes last."""
    tables = list(tables)
    measured = f"Measured on {date.today()} with `{command}` in {minutes:.1f} minutes"
    if page.resolve() not in pages():
        text = "\n".join(table.markdown() for table in tables)
        page.write_text(f"# {title}\n\n{measured}.\n\n{text}", encoding="utf-8")
        return
    name = page.stem.lower()
    keep(name, command, tables)
    text = page.read_text(encoding="utf-8")
    for table in tables:
        if f"<!-- table: {name}: {table.title} -->" not in text:
            block = f"<!-- table: {name}: {table.title} -->\n<!-- end of table -->\n"
            text += f"\n## {table.title}\n\n{block}" + (f"\n{table.note}\n" if table.note else "")
    if not MEASURED.search(text):  # the date of a run is never missing: below the title
        text = text.replace("\n", f"\n\n{measured}.\n", 1)
    page.write_text(filled(MEASURED.sub(measured, text, count=1)), encoding="utf-8")


def filled(text: str) -> str:
    """The page with every table as its results file has it."""
    return BLOCK.sub(lambda block: block[1] + markdown(block[2], block[3]) + block[5], text)


def markdown(name: str, title: str) -> str:
    """A table of a results file, or one that is selected from such tables."""
    if (name, title) in SELECTED:
        table = SELECTED[name, title]()
    else:
        tables = read(name)["tables"]
        if title not in tables:
            raise SystemExit(f"{FILES / name}.json has no table {title!r}; it has {', '.join(map(repr, tables))}")
        table = tables[title]
    left = table.get("left", [0])
    rules = "|".join("---" if k in left else "---:" for k in range(len(table["header"])))
    lines = [row_markdown(table["header"]), f"|{rules}|", *map(row_markdown, table["rows"])]
    return "\n".join(lines) + "\n"


# --- tables of the README: a few rows or columns of larger ones ------------------------------------------------------


def columns(name: str, title: str) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns; a second column of a name has its number behind it."""
    table = read(name)["tables"][title]
    names = [text if text not in table["header"][:k] else f"{text} 2" for k, text in enumerate(table["header"])]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def transposed(rows: list[dict[str, str]], wanted: dict[str, str], names: dict[str, str]) -> Results:
    """Columns of rows as rows: ``wanted`` has a heading for each, ``names`` one for each row."""
    by_name = {row["set"]: row for row in rows}
    return {
        "header": ["", *names.values()],
        "rows": [[heading, *(shown(by_name[name][key]) for name in names)] for key, heading in wanted.items()],
    }


def shown(number: str) -> str:
    """Without its deviation, and without the nought before the point."""
    return number.split(" ± ")[0].removeprefix("0") if number.startswith("0.") else number.split(" ± ")[0]


def thirteen_sets() -> Results:
    rows = columns("small", "Default settings beside a tuned SVC")
    short = {"breast-cancer": "breast-c.", "flare-solar": "flare"}
    names = {
        row["set"]: short.get(row["set"], row["set"]) + ("*" if row["splits"] == "1" else "")
        for row in rows
        if row["splits"]
    }
    return transposed(rows, {"tuned SVC": "tuned `SVC`", "vectors": "its vectors", "SlimSVC": "`SlimSVC(20)`"}, names)


def nine_regressions() -> Results:
    rows = columns("regression", "SlimSVR with default settings beside a tuned SVR")
    wanted = {"tuned SVR": "tuned `SVR`", "vectors": "its vectors", "SlimSVR": "`SlimSVR(20)`"}
    some = ("ames", "boston", "concrete", "diabetes", "diamonds", "friedman1", "hotel", "meats", "wage")
    return transposed(rows, wanted, dict(zip(some, some, strict=True)))


def ten_sets_of_512_bytes() -> Results:
    models = {
        "slim": "`SlimSVC(max_bytes=512)`",
        "network": "network",
        "protonn": "ProtoNN",
        "boosted": "boosted trees",
        "forest": "forest",
        "tree": "tree",
    }
    names = {
        "image": "image",
        "letter-halves": "letter, two halves",
        "magic": "magic",
        "optdigits-even-odd": "optdigits, even/odd",
        "phoneme": "phoneme",
        "satimage-halves": "satimage, two halves",
        "spambase": "spambase",
        "splice": "splice",
        "usps-even-odd": "usps, even/odd",
        "waveform": "waveform",
    }
    rows = {row["set"]: row for row in columns("small", "512 bytes")}

    def cell(text: str) -> str:
        return f"**{text.removesuffix(' *')}**" if text.endswith("*") else text

    return {
        "header": ["512 bytes", *models.values()],
        "rows": [[name, *(cell(rows[key][model]) for model in models)] for key, name in names.items()],
    }


def family_by_rows() -> Results:
    """The least and the largest ratio of each class, by numbers of rows."""
    classes = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
    groups = {"100": ("100",), "500": ("500",), "2,000": ("2000",), "5,000 and 10,000": ("5000", "10000")}

    def span(name: str, numbers: tuple[str, ...]) -> str:
        ratios = [float(row["ratio"].removesuffix("×")) for row in columns("family", name) if row["rows"] in numbers]
        return " to ".join(f"{ratio:.2g}" if ratio >= 10 else f"{ratio:.1f}" for ratio in (min(ratios), max(ratios)))

    rows = [[label, *(span(name, numbers) for name in classes)] for label, numbers in groups.items()]
    return {"header": ["rows", *(f"`{name}`" for name in classes)], "rows": rows}


def seven_full_fits() -> Results:
    names = {
        "moons-10k": "moons, C=10",
        "moons-30k": "moons, C=10",
        "usps": "USPS even/odd, C=10",
        "mnist-10k": "MNIST even/odd, C=10",
        "a9a-10k": "a9a, C=1",
        "a9a-10k-csr": "a9a sparse, C=1",
        "hard-10k": "hard, C=1000",
    }
    ratios = {row["problem"]: row for row in columns("results", "slimsvm against the others")}
    sizes = {row["problem"]: row for row in columns("results", "Problems")}

    def ratio(text: str) -> str:
        number = float(text.removesuffix("×"))
        return f"{number:.0f}x" if number >= 10 else f"{number:.1f}x"

    rows = [
        [name, f"{int(sizes[key]['n']):,}", sizes[key]["d"]]
        + [ratio(ratios[key][column]) for column in ("fit vs SVC", "fit vs intelex", "predict vs SVC")]
        for key, name in names.items()
    ]
    return {"header": ["problem", "n", "d", "fit vs `SVC`", "fit vs intelex", "predict vs `SVC`"], "rows": rows}


SELECTED: dict[tuple[str, str], Callable[[], Results]] = {
    ("small", "thirteen sets"): thirteen_sets,
    ("small", "ten sets of 512 bytes"): ten_sets_of_512_bytes,
    ("regression", "nine sets"): nine_regressions,
    ("family", "ranges by rows"): family_by_rows,
    ("results", "seven fits"): seven_full_fits,
}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.pages", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs from its files")
    check = parser.parse_args().check
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            if check:
                sys.exit(f"{page.relative_to(ROOT)} differs from benchmarks/measured: run python -m benchmarks.pages")
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
