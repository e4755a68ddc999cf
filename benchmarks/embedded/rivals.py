"""The same SVC through m2cgen and micromlgen, beside headers of this library."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from papers.wu import SETTINGS
from slimsvm import compress, to_c

from ..report import Table
from ..sets import Split
from . import boards
from .boards import M0, M4, DoesNotFit, Unit, unit_of
from .devices import short
from .models import of_sklearn, stored
from .speed import timed

ROWS = 20  # that the boards answer
HEADER = [
    "machine, generator",
    "vectors",
    "M0 linked B",
    "M0 instructions",
    "M4F linked B",
    "M4F instructions",
    "µs here",
    "s to compile",
    "test error %",
    "labels not the SVC's",
]
NOTE = (
    "m2cgen {m2cgen} and micromlgen {micromlgen} with scikit-learn {sklearn}. Linked: as in the tables above, in the "
    f"256 KB of flash of the board. Instructions: mean of {ROWS} test rows under qemu. µs: gcc -O2. Compiling: that "
    "one file, gcc -Os for Cortex-M0. Error and labels: all test rows, by the code compiled here. "
    "m2cgen computes in double, and gives values of pairs of classes, whose votes were counted here. "
    "micromlgen's rows are float, its numbers double; its header needs <cstdarg>, <math.h> and <stdint.h>, which "
    "Arduino.h brings. For two classes it computes b - s where the SVC has -(s + b): the bias has the wrong sign, and "
    "labels are wrong where b is not small. compress: with X and y."
)


def m2cgen_unit(model: SVC) -> Unit:
    """Two classes: the decision value. Several: one for each pair of classes; users count the votes."""
    import m2cgen

    count = len(model.classes_)
    if count == 2:
        answer = "int answer(const double *x) { return score((double *)x) > 0; }"
    else:
        answer = f"""int answer(const double *x) {{
    double f[{count * (count - 1) // 2}];
    int votes[{count}] = {{0}}, best = 0, p = 0;
    score((double *)x, f);
    for (int a = 0; a < {count}; ++a)
        for (int b = a + 1; b < {count}; ++b) votes[f[p++] > 0 ? a : b] += 1;
    for (int c = 1; c < {count}; ++c) if (votes[c] > votes[best]) best = c;
    return best;
}}"""
    return Unit(f"{m2cgen.export_to_c(model)}\n{answer}\n", "double")


def micromlgen_unit(model: SVC) -> Unit:
    """A class with a method."""
    import micromlgen

    source = f"""#include <math.h>
#include <stdint.h>
{micromlgen.port(model)}
extern "C" int answer(const float *x) {{ Eloquent::ML::Port::SVM model; return model.predict((float *)x); }}
"""
    # No C++ library for the board is asked for: this header is all that is needed of one.
    headers = (("cstdarg", "#include <stdarg.h>\n"),)
    return Unit(source, headers=headers, suffix=".cpp", flags=("-fno-exceptions", "-fno-rtti", "-w"))


def ways(model: SVC, split: Split, kept: int) -> Iterator[tuple[str, int, Callable[[], Unit]]]:
    """Generators, and the vectors that they write."""
    n = len(model.support_)
    yield "m2cgen", n, lambda: m2cgen_unit(model)
    yield "micromlgen", n, lambda: micromlgen_unit(model)
    whole, small = compress(model, n), compress(model, kept, X=split.X, y=split.y)
    for some, count in ((whole, n), (small, small.n_vectors_)):
        for dtype in ("float32", "int8"):
            name = f"to_c {dtype}" if some is whole else f"compress, to_c {dtype}"
            yield name, count, lambda some=some, dtype=dtype: unit_of(str(to_c(some, dtype=dtype)))


def line(unit: Unit, X: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> list[str]:
    """Bytes, instructions, times and answers."""
    cells = []
    for board in (M0, M4):
        if board.missing():
            cells += ["–", "–"]
            continue
        try:
            size = f"{boards.linked_bytes(board, unit, X.shape[1]):,}"
            cells += [size, f"{boards.run(board, unit, X[:ROWS]).cost:,.0f}"]
        except DoesNotFit as error:
            cells += [f"does not fit: {short(error)}", "–"]
    try:
        seconds = "–" if M0.missing() else f"{boards.compile_seconds(M0, unit):.2f}"
    except DoesNotFit as error:
        seconds = short(error)
    try:
        here = timed(unit, X)
    except DoesNotFit as error:
        return [*cells, short(error), seconds, "–", "–"]
    error, changed = 100 * np.mean(here.answers != y), np.sum(here.answers != wanted)
    return [*cells, f"{here.median:.2f}", seconds, f"{error:.2f}", f"{changed} of {len(X)}"]


def machines(quick: bool) -> Iterator[tuple[str, SVC, Split, int]]:
    """Name, SVC, rows and the vectors that compression keeps."""
    wine = of_sklearn(datasets.load_wine).mapped(StandardScaler())
    yield "wine, 3 classes", SVC(C=10, gamma=0.05).fit(wine.X, wine.y), wine, 8
    if quick:
        return
    name, split = stored("image", datasets.load_breast_cancer)
    C, width = SETTINGS["image"]
    settings = {"C": C, "gamma": 1 / width} if name == "image" else {"C": 10, "gamma": 0.05}
    split = split if name == "image" else split.mapped(StandardScaler())
    yield name, SVC(**settings).fit(split.X, split.y), split, 25
    digits = of_sklearn(datasets.load_digits)
    yield "digits, 10 classes", SVC(C=10, gamma=0.001).fit(digits.X, digits.y), digits, 40


def tables(quick: bool = False) -> Iterator[Table]:
    """All generators on each machine."""
    if shutil.which("gcc") is None:
        return
    rows = []
    for name, model, split, kept in machines(quick):
        codes = np.searchsorted(model.classes_, split.y_test)
        wanted = np.searchsorted(model.classes_, model.predict(split.X_test))
        for generator, count, make in ways(model, split, kept):
            head = [f"{name}: {generator}", str(count)]
            try:
                unit = make()
            except Exception as error:  # other libraries may not know this scikit-learn
                rows.append([*head, f"{type(error).__name__}: {str(error)[:60]}", *["–"] * (len(HEADER) - 3)])
                continue
            rows.append([*head, *line(unit, split.X_test, codes, wanted)])
        error = 100 * float(np.mean(codes != wanted))
        rows.append([f"{name}: the SVC in Python", str(len(model.support_)), *["–"] * 6, f"{error:.2f}", "0"])
    yield Table("The same SVC through other generators", HEADER, rows, NOTE.format(**versions()))


def versions() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    def known(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "(not installed)"

    return {"m2cgen": known("m2cgen"), "micromlgen": known("micromlgen"), "sklearn": known("scikit-learn")}
