"""C headers beside Python: labels that change and errors, of models of three sizes on many sets, compiled and run.

Half of the rows are for training, standardised on that half. "any" is `SlimSVC` of as many vectors as the bytes pay
for, learned without a thought of bytes; "made" is `SlimSVC(max_bytes=...)`. Headers are made without data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn import datasets

from slimsvm import SlimSVC, to_c

from . import equal_bytes, keel, parts, sets
from .equal_bytes import BUDGETS, Loader, earlier, halves, rows_of
from .problems import Array
from .report import Table

KINDS = ("any", "made")
MOST_ROWS = 6000
MOST_VECTORS = 128
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]

MAIN = """
#include <stdio.h>
#include "model.h"
static float x[MODEL_INPUTS], f[MODEL_OUTPUTS];
int main(void)
{
    while (fread(x, sizeof x[0], MODEL_INPUTS, stdin) == MODEL_INPUTS) {
        printf("%d", model_predict(x));
        model_decision(x, f);
        for (int o = 0; o < MODEL_OUTPUTS; ++o) printf(" %.9g", (double)f[o]);
        printf("\\n");
    }
    return 0;
}
"""


def problems(folder: Path | None = None) -> dict[str, Loader]:
    """The sets of the byte table, and some of several classes."""
    found = equal_bytes.problems(folder)
    if folder is None:
        if sets.present():
            found["usps"] = lambda: sets.whole("usps")
        if keel.present():
            found |= {name: lambda name=name: keel.whole(name) for name in ("satimage", "penbased", "segment", "vowel")}
    found["digits"] = lambda: datasets.load_digits(return_X_y=True)
    found["wine-three"] = lambda: datasets.load_wine(return_X_y=True)
    return found


def compiled(header: str, X: Array) -> tuple[Array, Array]:
    """Class numbers and scores that the header gives."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "model.h").write_text(header)
        (place / "main.c").write_text(MAIN)
        subprocess.run(["cc", *FLAGS, "main.c", "-o", "main", "-lm"], cwd=place, check=True)
        rows = np.ascontiguousarray(X, dtype=np.float32).tobytes()
        text = subprocess.run([place / "main"], input=rows, stdout=subprocess.PIPE, check=True).stdout.decode()
    numbers = np.array([[float(word) for word in line.split()] for line in text.splitlines()])
    return numbers[:, 0].astype(int), numbers[:, 1:]


def model_of(kind: str, budget: int, X: Array, y: Array) -> Any:
    """A fitted model of at most so many bytes; None where not one vector fits."""
    classes = len(np.unique(y))
    if kind == "made":
        try:
            return SlimSVC(max_bytes=budget).fit(X, y)
        except ValueError as error:
            if "is too little" in str(error):
                return None
            raise
    outputs = 1 if classes == 2 else classes
    # Scales of the inputs and offsets may cost bytes: they are counted as if they did.
    count = (budget - 5 * outputs - 4 * X.shape[1] - 4) // (X.shape[1] + 2 * outputs)
    count = min(count, MOST_VECTORS, len(y) // 4)
    return SlimSVC(n_vectors=count, multi_class="ovr").fit(X, y) if count >= 1 else None


def cell(name: str, split: int, budget: int, kind: str, folder: Path | None) -> dict[str, Any]:
    part = halves(*rows_of(problems(folder)[name], MOST_ROWS), split)
    # Rows as a device gets them.
    X, X_test = (rows.astype(np.float32).astype(np.float64) for rows in (part.X, part.X_test))
    found: dict[str, Any] = {"set": name, "budget": budget, "kind": kind, "split": split}
    model = model_of(kind, budget, X, part.y)
    if model is None:
        return found
    labels, scores = model.predict(X_test), model.decision_function(X_test).reshape(len(X_test), -1)
    values = model._scores(X_test)
    found |= {"vectors": int(model.n_vectors_), "bytes": int(model.model_bytes_)}
    found |= {"error": percent(labels != part.y_test), "largest": float(np.abs(values).max())}
    for dtype in ("float32", "int8"):
        numbers, given = compiled(to_c(model, dtype=dtype), X_test)
        changed = model.classes_[numbers] != labels
        found |= {
            f"{dtype}_error": percent(model.classes_[numbers] != part.y_test),
            f"{dtype}_changed": percent(changed),
            # A vote that falls the other way is a whole step of the score: rows of the same votes are compared.
            f"{dtype}_difference": float(np.abs(given - scores)[np.abs(given - scores).max(axis=1) < 0.5].max()),
        }
    return found


def key_of(result: dict[str, Any]) -> tuple:
    return result["set"], result["split"], result["budget"], result["kind"]


def percent(wrong: Array) -> float:
    return 100 * float(np.mean(wrong))


def measure(options: argparse.Namespace) -> Iterator[Table]:
    options = parts.settled(options, splits=1, budgets=[512] if options.quick else BUDGETS)
    names = parts.wanted(list(problems(options.data)), options)
    names = names[:3] if options.quick else names
    wanted = [
        (name, split, budget, kind)
        for budget in sorted(options.budgets, reverse=True)
        for name in names
        for kind in options.kinds or KINDS
        for split in range(options.splits)
    ]
    found = {key_of(result): result for result in earlier(options.results)}
    done = Parallel(n_jobs=options.n_jobs, return_as="generator_unordered")(
        delayed(parts.quietly)(cell, *one, options.data) for one in wanted if one not in found
    )
    for result in done:
        found[key_of(result)] = result
        if options.results is not None:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    results = [found[one] for one in wanted]
    for kind, title in (("any", "any model"), ("made", "made for the bytes")):
        for budget in sorted(options.budgets):
            some = [r for r in results if r["kind"] == kind and r["budget"] == budget]
            if some:
                yield table(title, budget, some)


def table(title: str, budget: int, results: list[dict[str, Any]]) -> Table:
    rows = [
        [
            r["set"],
            str(r["vectors"]),
            str(r["bytes"]),
            f"{r['error']:.2f}",
            f"{r['int8_error']:.2f}",
            f"{r['int8_changed']:.2f}",
            f"{r['float32_changed']:.2f}",
            f"{r['float32_difference']:.1e}",
        ]
        for r in sorted(results, key=lambda r: r["set"])
        if "vectors" in r
    ]
    left_out = [r["set"] for r in results if "vectors" not in r]
    header = ["set", "vectors", "bytes", "error", "int8", "labels changed", "float32 changed", "float32 differs"]
    note = "In percent of the test rows; the last column is the largest difference of scores."
    note += f" Not one vector fits: {', '.join(left_out)}." if left_out else ""
    return Table(f"{budget} bytes, {title}", header, rows, note)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budgets", type=lambda text: [int(t) for t in text.split(",")], help="bytes, e.g. 512,2048")
    parser.add_argument("--data", type=Path, help="folder with the sets as npz files, made by equal_bytes --extract")
    parser.add_argument("--kinds", type=lambda text: text.split(","), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--results", type=Path, help="file of results, a line each: what is there is not run again")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.headers", __doc__)
    add_arguments(parser)
    parts.run(parser.parse_args(argv), "C headers beside Python", [measure])


if __name__ == "__main__":
    main()
