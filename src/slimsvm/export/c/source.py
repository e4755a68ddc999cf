"""`to_c`: a fitted model as one C99 header, with a report of its memory, work and accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import check_consistent_length

from ...linalg.arrays import Array
from ...model.inference import InferenceModel, inference_model
from ...quantization.quantize import check_bytes, check_limit, to_integers, warn_beyond_max_bytes
from ...quantization.quantized import Quantized, checked_rows
from ..float_forms import float_form
from . import fixed, float32
from .text import HeaderWriter, comment, identifier, label_kind

DTYPES = ("float32", "int8")


@dataclass(frozen=True)
class CReport:
    """The memory and work of a header on a device, and how its predictions differ from those in Python.

    Attributes
    ----------
    dtype : str
        "float32" or "int8".
    flash : int
        Bytes of all tables, including labels (pointers to text have 32 bits). Code comes on top: with ``-Os`` about
        0.5 to 1 KB on Cortex-M; where a processor has no floating point unit, its library adds 2 to 3 KB for rows in
        floats, and 4.5 KB for float32 headers.
    tables : dict of str to int
        The same by table.
    ram : int
        Bytes of stack for the arrays of a prediction; no other memory is used.
    multiply_adds : int
        Of one prediction.
    exponentials : int
        Of one prediction: calls of ``expf``, or look-ups in a table with "int8".
    rows : int
        Number of rows on which predictions were compared.
    source : str
        Where these rows came from: "given", or "drawn" between the model's vectors.
    changed : float
        The share of these rows whose label differs from that of the model in Python; NaN for regressors.
    difference : float
        The largest difference between values of the header and of the model on these rows, relative to the largest
        value (for labels at least 1). With several classes these are the values of the binary problems, before votes
        are counted: a changed vote changes a score by a whole step.
    added : float
        Regressors: the root mean square of that difference, relative to the standard deviation of the predictions; the
        largest over several outputs. NaN for classifiers and outlier detectors.
    r2, r2_before : float
        Regressors, if y was given: R^2 of the header and of the model in Python on these rows (the mean over several
        outputs); otherwise NaN.
    """

    dtype: str
    flash: int
    tables: dict[str, int]
    ram: int
    multiply_adds: int
    exponentials: int
    rows: int
    source: str
    changed: float
    difference: float
    added: float = float("nan")
    r2: float = float("nan")
    r2_before: float = float("nan")

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {size}" for name, size in self.tables.items())
        how = "expf" if self.dtype == "float32" else "table look-ups"
        lines = [
            f"flash        {self.flash} bytes of tables ({parts}), and the code",
            f"RAM          {self.ram} bytes of stack",
            f"a prediction {self.multiply_adds} multiply-adds, {self.exponentials} {how}",
        ]
        values = "values" if np.isnan(self.changed) else "values of binary problems"
        lines.append(f"expected     {values} within {self.difference:.1e} of Python's, relative to the largest")
        rows = f"{self.rows} rows " + ("given" if self.source == "given" else "drawn between the vectors")
        if not np.isnan(self.changed):
            lines.append(f"             {100 * self.changed:.2f} % of labels change, of {rows}")
        if not np.isnan(self.added):
            lines.append(f"             {100 * self.added:.2g} % of the spread of values is added as error, on {rows}")
        if not np.isnan(self.r2):
            lines.append(f"             R² {self.r2:.4f} on them, in Python {self.r2_before:.4f}")
        return "\n".join(lines)


class CSource(str):
    """The text of a header, with a report and an example.

    Attributes
    ----------
    report : CReport
        Memory, work, and differences from the model in Python.
    example : str
        A C program that reads rows from standard input and prints labels and scores, or predicted targets.
    """

    report: CReport
    example: str

    def __new__(cls, text: str, report: CReport, example: str) -> CSource:
        source = super().__new__(cls, text)
        source.report, source.example = report, example
        return source


def to_c(
    model: Any,
    *,
    name: str = "model",
    dtype: str = "float32",
    X: Any = None,
    y: Any = None,
    max_bytes: int | None = None,
) -> CSource:
    """A fitted model as one C99 header.

    It holds ``static const`` tables and a few ``static inline`` functions, takes no memory but the stack, and compiles
    as C++, too. With ``name="model"``:

    - ``int model_predict(const float x[])``: the number of the class, 0 for ``classes_[0]``, and
      ``model_label(number)``, the label;
    - ``void model_decision(const float x[], float f[])``: what `decision_function` gives in Python,
      ``MODEL_OUTPUTS`` numbers;
    - ``void model_probabilities(const float x[], float p[])`` where the model was fitted with ``probability=True``;
    - with ``dtype="int8"``, ``int model_predict_int16(const int16_t u[])`` for rows in integers, which needs no floats
      at all; ``model_to_int16`` makes such a row from floats, ``model_from_readings`` from integers.

    Of a regressor it has ``float model_predict(const float x[])``, or with several outputs ``void
    model_values(const float x[], float f[])``, ``MODEL_VALUES`` numbers; with ``dtype="int8"`` also
    ``int32_t model_predict_int16`` (or ``void model_values_int16(const int16_t u[], int32_t v[])``), which give values
    as integers in units of ``model_step(o)``, a power of two.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline
        Steps of a pipeline before the last must be scalers such as StandardScaler, which are folded in: rows then come
        as the pipeline takes them.
    name : str, default="model"
        Prefix of all names, and in capitals of all macros.
    dtype : {"float32", "int8"}, default="float32"
        "int8": fixed point, as `slimsvm.export.quantize` makes it; for the kernels rbf, laplacian and linear.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows as the model takes them, to compare answers on for the report. With y and "int8" the coefficients are
        fitted to them, too.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Labels or target values of these rows.
    max_bytes : int, optional
        Most bytes that the model's tables may take, those of its scaler, its probabilities and its labels included; a
        larger model is a ValueError that says how many it takes. ``max_bytes`` of `SlimSVC` leaves the scaler out. The
        table of powers, 130 bytes in every "int8" header, is not counted.

    Returns
    -------
    CSource
        The text, a `str`, with the attributes ``report`` and ``example``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC, to_c
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> header = to_c(SlimSVC(n_vectors=8).fit(X, y), name="moons", dtype="int8", X=X)
    >>> "int moons_predict(const float x[MOONS_INPUTS])" in header
    True
    >>> header.report.flash < 200, header.report.changed < 0.01
    (True, True)
    """
    identifier(name)
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not known; use one of {list(DTYPES)}")
    check_limit(max_bytes)
    if y is not None:
        if X is None:
            raise ValueError("y was given without X, whose rows it belongs to")
        check_consistent_length(X, y)
    inference = inference_model(model)
    small = None
    if dtype == "int8":
        small = to_integers(model, None if y is None else X, y, probabilities=True)
        if max_bytes is None:
            warn_beyond_max_bytes(model, small)
    source = header(inference, small, name, None if X is None else checked_rows(X, inference.n_inputs), y)
    if max_bytes is not None:
        tables = source.report.tables
        if small is None:
            check_bytes(model, tables, int(max_bytes), ["dtype='int8'"])
        else:
            labels = {name: size for name, size in tables.items() if name == "labels"}
            check_bytes(model, small.parts() | labels, int(max_bytes))
    return source


def header(
    inference: InferenceModel, small: Quantized | None, name: str = "model", rows: Array | None = None, y: Any = None
) -> CSource:
    """The header of a model in float32, or of its quantised form ``small``.

    ``rows`` and their ``y`` are for the comparison in the report.
    """
    about = _about(inference, name, small)
    written = float32.write(inference, name, about) if small is None else fixed.write(small, name, about)
    source = "drawn" if rows is None else "given"
    report = _report(inference, small, written, inference.between_vectors() if rows is None else rows, y, source)
    return CSource(written.text(), report, _example(inference, name))


# --- words ------------------------------------------------------------------------------------------------------------


def _about(inference: InferenceModel, name: str, small: Quantized | None) -> str:
    from ... import __version__

    expansion, dtype = inference.expansion, "float32" if small is None else "int8"
    count, kernel = len(expansion.vectors), expansion.kernel.name
    outputs = len(expansion.bias)
    what = f"{outputs} value{'' if outputs == 1 else 's'}"
    if inference.classes is not None:
        what = f"{len(inference.classes)} classes"
    lines = [
        f"{name}.h: {what} from {inference.n_inputs} inputs by {count} vectors, kernel {kernel}, {dtype}.",
        f"Made by slimsvm {__version__}. C99; compiles as C++. No memory but the stack"
        + ("." if dtype == "int8" else "; of the C library expf alone."),
        "",
        *_calls(inference, name, dtype),
    ]
    if small is not None and inference.classes is None:
        steps = ", ".join(f"{step:.9g}" for step in small.steps)
        lines += ["", f"Steps of values in integers, in the units of the targets: {steps}."]
    if inference.classes is not None:
        lines += ["", "Classes: " + ", ".join(f"{k} = {label}" for k, label in enumerate(inference.classes.tolist()))]
    if inference.names is not None:
        lines += ["", "Inputs: " + ", ".join(f"{k} = {label}" for k, label in enumerate(inference.names))]
    elif inference.inputs.folded:
        lines += ["", "Rows come as they were before the scaler, which is part of the tables."]
    text = "\n".join(wrapped for line in lines for wrapped in _lines(comment(line)))
    return "/*\n" + "\n".join((" * " + line).rstrip() for line in text.split("\n")) + "\n */"


def _lines(text: str, width: int = 112) -> list[str]:
    found, words = [""], text.split(" ")
    for word in words:
        if found[-1] and len(found[-1]) + len(word) >= width:
            found.append("   ")
        found[-1] += (" " if found[-1] else "") + word
    return found


def _calls(inference: InferenceModel, name: str, dtype: str) -> list[str]:
    upper = name.upper()
    if inference.classes is None:
        return _value_calls(len(inference.expansion.bias), name, dtype)
    calls = [
        f"int {name}_predict(const float x[{upper}_INPUTS])    number of the class; {name}_label(number) is its label",
        f"void {name}_decision(const float x[{upper}_INPUTS], float f[{upper}_OUTPUTS])    scores",
    ]
    if inference.layer is not None:
        calls.append(f"void {name}_probabilities(const float x[{upper}_INPUTS], float p[{upper}_CLASSES])")
    if dtype == "int8":
        calls.append(f"int {name}_predict_int16(const int16_t u[{upper}_USED])    a row in integers, no floats at all")
    return calls


def _value_calls(outputs: int, name: str, dtype: str) -> list[str]:
    upper = name.upper()
    calls = [f"void {name}_values(const float x[{upper}_INPUTS], float f[{upper}_VALUES])    values"]
    integers = [
        f"void {name}_values_int16(const int16_t u[{upper}_USED], int32_t v[{upper}_VALUES])    the same without any "
        f"float: a row in integers, values in units of {name}_step(o)"
    ]
    if outputs == 1:
        calls.insert(0, f"float {name}_predict(const float x[{upper}_INPUTS])    the value")
        integers.insert(
            0,
            f"int32_t {name}_predict_int16(const int16_t u[{upper}_USED])    the value of a row in integers, in units "
            f"of {name}_step(0)",
        )
    return calls + (integers if dtype == "int8" else [])


def _example(inference: InferenceModel, name: str) -> str:
    """A C program that reads rows of numbers and prints a prediction for each."""
    if inference.classes is None:
        arrays = f"    float f[{name.upper()}_VALUES];\n"
        answer = (
            f"        {name}_values(x, f);\n"
            f'        for (int o = 0; o < {name.upper()}_VALUES; ++o) printf(o ? " %.9g" : "%.9g", (double)f[o]);\n'
            '        printf("\\n");\n'
        )
    else:
        formats = {"int32_t": '"%ld", (long)', "float": '"%.9g", (double)', "const char *": '"%s", '}
        shown = f"{formats[label_kind(inference.classes)]}{name}_label(k)"
        arrays = f"    float f[{name.upper()}_OUTPUTS];\n"
        answer = (
            f"        const int k = {name}_predict(x);\n        {name}_decision(x, f);\n        printf({shown});\n"
            f'        for (int o = 0; o < {name.upper()}_OUTPUTS; ++o) printf(" %.9g", (double)f[o]);\n'
        )
        if inference.layer is not None:
            arrays += f"    float p[{name.upper()}_CLASSES];\n"
            answer += (
                f"        {name}_probabilities(x, p);\n"
                f'        for (int c = 0; c < {name.upper()}_CLASSES; ++c) printf(" %.9g", (double)p[c]);\n'
            )
        answer += '        printf("\\n");\n'
    return f"""/* Reads rows of {
        name.upper()
    }_INPUTS numbers, separated by blanks, and prints a line for each: the answer{
        "" if inference.classes is None else ", its scores" + ("" if inference.layer is None else " and probabilities")
    }.
   cc -std=c99 -O2 {name}_main.c -lm -o {name} && ./{name} < rows.txt */
#include <stdio.h>

#include "{name}.h"

int main(void)
{{
    float x[{name.upper()}_INPUTS];
{arrays}    for (;;) {{
        for (int i = 0; i < {name.upper()}_INPUTS; ++i)
            if (scanf("%f", &x[i]) != 1) return 0;
{answer}    }}
}}
"""


# --- the report -------------------------------------------------------------------------------------------------------


def _report(
    inference: InferenceModel, small: Quantized | None, out: HeaderWriter, rows: Array, y: Any, source: str
) -> CReport:
    expansion = inference.expansion
    before = expansion.decision(inference.inputs(rows))
    after = _float32_values(inference, rows) if small is None else small.decision(rows).reshape(before.shape)
    changed, added, r2 = float("nan"), float("nan"), (float("nan"), float("nan"))
    if inference.classes is None:
        spread = before.std(axis=0)
        added = float((np.sqrt(((after - before) ** 2).mean(axis=0)) / np.where(spread > 0, spread, 1.0)).max())
        if y is not None:
            r2 = r2_score(y, after), r2_score(y, before)
    if inference.votes is not None and inference.classes is not None:
        labels = inference.classes[inference.votes.winners(before, len(inference.classes))]
        others = inference.votes.winners(after, len(inference.classes))
        mine = inference.classes[others] if small is None else small.predict(rows)
        changed = float(np.mean(labels != mine))
    linear = expansion.kernel.is_linear
    n_values, count = len(expansion.bias), len(expansion.vectors)
    used = int(np.count_nonzero(np.broadcast_to(np.asarray(expansion.kernel.scales), inference.n_inputs)))
    n_classes = 0 if inference.classes is None else len(inference.classes)
    scaled = small is not None or "gain" in out.tables
    row = used * (2 if small is not None else 4) if scaled else 0
    numbers = (8 if small is not None else 4) * n_values
    numbers += 4 * n_values if small is not None and inference.classes is None else 0  # rounded to steps
    votes = (
        n_classes * ((8 if small is not None else 4) + 4)
        if inference.votes is not None and inference.votes.pairs
        else 0
    )
    return CReport(
        "float32" if small is None else "int8",
        sum(out.tables.values()),
        dict(out.tables),
        row + numbers + votes,
        used * n_values if linear else count * (used + n_values),
        count if float_form(expansion.kernel, "C").needs_exp else 0,
        len(rows),
        source,
        changed,
        _largest_difference(before, after, at_least=1e-30 if inference.classes is None else 1.0),
        added,
        *r2,
    )


def _largest_difference(before: Array, after: Array, at_least: float) -> float:
    return float(np.abs(after - before).max(initial=0.0) / max(at_least, float(np.abs(before).max(initial=0.0))))


def _float32_values(inference: InferenceModel, rows: Array) -> Array:
    """Decision values with rows, vectors and coefficients rounded to float32, summed as in Python."""
    expansion = inference.expansion
    X = inference.inputs(rows.astype(np.float32).astype(np.float64)).astype(np.float32)
    Z, coef = expansion.vectors.astype(np.float32), expansion.coef.astype(np.float32).astype(np.float64)
    bias = expansion.bias.astype(np.float32).astype(np.float64)
    return np.asarray(expansion.kernel.decision(X, Z, coef, bias, 1), dtype=np.float64)
