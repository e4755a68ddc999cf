"""The head of the report, and its sections on data, size, model and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frontiers.result import shown_scores
from ..plotting import FrontierDisplay, VectorsDisplay
from ..plotting.vectors import lines_and_columns
from ..utils.drawing import legend_below
from ..utils.sklearn_private import some_rows
from .columns import columns_of
from .context import ReportContext, counted
from .figures import SERIES, figure
from .markup import Safe, bar, facts, join, more, number, paragraph, percent, section, table, tag, text
from .provenance import spelled

MAX_INPUT_LINES = 30  # lines of the table of inputs
MAX_SETTINGS = 12  # lines of the table of the search
MAX_DOTS = 800  # rows drawn in the plane
MAX_VECTORS = 40  # vectors drawn or listed
MAX_VALUES = 8  # inputs of each vector in the table


def cards(context: ReportContext) -> Safe:
    """Cards with the four most important numbers."""
    judged, full, device = context.judged, context.full, context.device
    low, high = judged.interval
    entries = [
        (
            "vectors kept",
            f"{context.vectors:,}",
            f"full machine: {context.frontier.full.vectors:,}" if context.frontier and context.frontier.full else "",
        ),
        (
            "right",
            percent(judged.accuracy),
            f"full machine: {percent(full.accuracy)}" if full else f"95 % interval: {100 * low:.1f} to {percent(high)}",
        ),
    ]
    if device.n_bytes is not None:
        entries.append(("in integers", f"{device.n_bytes:,} bytes", f"float32: {device.float_bytes:,}"))
    else:
        entries.append(("in float32", f"{device.float_bytes:,} bytes", ""))
    if context.calibration is not None:
        loss = f"log-loss {context.calibration.log_loss:.3f}"
        entries.append(("calibration error", f"{context.calibration.ece:.3f}", loss))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, class_="value"), tag("dd", beside, class_="beside"))
            for name, value, beside in entries
        ),
        class_="cards",
    )


def lead(context: ReportContext) -> Safe:
    judged = context.judged
    low, high = judged.interval
    return text(
        f"{context.kind} keeps {counted(context.vectors, 'vector')} and gets {judged.right:,} of {context.rows} "
        f"right: {percent(judged.accuracy)} (95 % interval: {100 * low:.1f} to {percent(high)})."
    )


# --- data -----------------------------------------------------------------------------------------------------------


def data(context: ReportContext) -> Safe:
    judged = context.judged
    counts = judged.confusion.sum(axis=1)
    lines = [
        [str(label), int(count), percent(count / judged.rows), bar(count / counts.max(), _color(k, len(counts)))]
        for k, (label, count) in enumerate(zip(judged.classes, counts, strict=True))
    ]
    classes = context.shown.inference.classes
    unknown = judged.classes[len(classes) :] if classes is not None else ()
    return section(
        "data",
        "Data",
        paragraph(
            f"{counted(judged.rows, 'row')} of {counted(columns_of(context.X).count, 'input')} were given to this "
            "report to judge the model. They must have had no part in its training; the report cannot check that."
        ),
        _held_out_table(context),
        table("Classes among these rows", ["class", "rows", "share", ""], lines),
        paragraph(
            "Labels that the model has never seen, and always gets wrong: ", ", ".join(map(str, unknown)), class_="note"
        )
        if unknown
        else "",
        _inputs(context),
    )


def _color(number: int, classes: int) -> str:
    """The colour of a class, as in the figures; one colour for all if there are too many classes."""
    return f"c{number}" if classes <= len(SERIES) else "c7"


def _held_out_table(context: ReportContext) -> Safe:
    lines = []
    if context.attribute("search_results_"):
        lines.append(["settings (C, gamma, scales)", "training rows held out in an internal validation"])
    if context.frontier is not None:
        lines.append(["sizes, in the frontier", "training rows held out: each size was trained without them"])
    if context.attribute("probability_C_") is not None:
        lines.append(["cost of the probabilities", "training rows that had no part in the vectors"])
    calibration = ["calibration"] if context.calibration is not None else []
    integers = ["the integers"] if context.device.answers is not None else []
    what = ", ".join(["mistakes", *calibration, *integers])
    lines.append([f"this model: {what}", f"the {context.rows} of this report"])
    if context.full is not None:
        lines.append(["the full machine beside it", f"the same {context.rows}"])
    return table("Which rows judged what", ["what", "rows"], lines, kind="words")


def _inputs(context: ReportContext) -> Safe:
    """A table of the inputs with their ranges, the most important first."""
    columns = columns_of(context.X, context.names if context.names is not None else context.shown.inference.names)
    if not columns.lines:
        return Safe("")
    counting = context.shown.counting(context.X) if context.shown.steps is None else None
    order = np.arange(columns.count) if counting is None else np.argsort(-counting, kind="stable")
    lines = []
    for k in order[:MAX_INPUT_LINES]:
        share = [] if counting is None else [join([bar(counting[k], "c7"), f" {counting[k]:.2f}"])]
        lines.append([*columns.lines[k], *share])
    header = ["input", "least", "median", "largest", "missing", *([] if counting is None else ["counts"])]
    shown = "" if columns.count <= MAX_INPUT_LINES else f": {len(lines)} of {columns.count}"
    how = "" if counting is None else ". Counts: scale in the kernel × spread, the largest is 1"
    listing = table(f"Inputs on the rows of this report{shown}{how}", header, lines)
    return more(f"Inputs{shown}", listing)


# --- size -----------------------------------------------------------------------------------------------------------


def sizes(context: ReportContext) -> Safe | None:
    frontier = context.frontier
    if frontier is None:
        return None
    label, value, unit = shown_scores(frontier.scoring)
    digits = 2 if unit == 100 else 4
    chosen = frontier.chosen.size
    lines = [
        [
            row["vectors"],
            f"{value(row['score']):.{digits}f}",
            f"± {unit * row['standard_error']:.{digits}f}",
            row["bytes"],
            f"{row['seconds']:.2f} s",
        ]
        for row in frontier.rows
    ]
    if frontier.full is not None:
        full = frontier.full
        score, error = f"{value(full.score):.{digits}f}", f"± {unit * full.standard_error:.{digits}f}"
        lines.append([f"{full.vectors:,} (full machine)", score, error, full.bytes, f"{full.seconds:.2f} s"])
    own_size = context.size
    summary = f"{frontier.chosen.why}."
    if own_size is None:
        summary += " The model of this report is none of these."
    elif own_size != chosen:
        summary += f" This report is about the model of {counted(own_size, 'vector')}, which is marked."
    marked_size = chosen if own_size is None else own_size
    alt = f"{label} against the number of vectors, {frontier.sizes[0]} to {frontier.sizes[-1]}; {chosen} is chosen"
    in_pipeline = context.model is not context.classifier
    alone = " Bytes are those of the classifier without the steps before it." if in_pipeline else ""

    def draw(ax: Any) -> None:
        drawn = FrontierDisplay.from_frontier(frontier, ax=ax, bytes_axis=True, legend=False)
        ax.set_title("")  # the paragraph says it
        if marked_size != chosen:
            height = value(frontier.curve.scores[frontier.sizes.index(marked_size)])
            style = {"ms": 9, "mfc": "none", "mec": "C4", "mew": 1.6, "label": f"this report: {marked_size} vectors"}
            ax.plot([marked_size], [height], "D", **style)
        legend_below(drawn.ax_)

    return section(
        "size",
        "Size",
        paragraph(
            f"{summary} Rows held out of the training rows judged the sizes, not the rows of this report.{alone}"
        ),
        tag(
            "div",
            figure(
                "frontier",
                (5.4, 4.2),
                alt,
                f"{label} against size, with standard errors. Above: bytes of the models in integers.",
                draw,
            ),
            table(
                f"Models of {counted(len(frontier.sizes), 'size')}",
                ["vectors", label, "s.e.", "bytes", "fit"],
                lines,
                marked=[frontier.sizes.index(marked_size)],
            ),
            class_="pair",
        ),
    )


# --- model ----------------------------------------------------------------------------------------------------------

# Fitted attributes about the training, with their labels in the report.
FIT_ATTRIBUTES = (
    ("C", "C_"),
    ("pairs or one against the others", "multi_class_"),
    ("iterations of learning", "learning_iter_"),
    ("what learning may have left", "learning_gain_left_"),
    ("cost of the probabilities", "probability_C_"),
    ("duality gap of the probabilities", "probability_gap_"),
)


def _kernel(kernel: Any) -> list[tuple[str, Any]]:
    """Name and parameters of a kernel."""
    return [("kernel", kernel.name), *((name, text(_short(value))) for name, value in kernel.get_params().items())]


def _short(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else spelled(value)


def _largest(value: Any) -> Any:
    return value if isinstance(value, str) else float(np.max(value))


def model(context: ReportContext) -> Safe:
    inference = context.shown.inference
    kernel: Any = inference.expansion.kernel
    scales = np.asarray(kernel.scales, dtype=np.float64)
    steps = ", ".join(type(step).__name__ for step in context.steps)
    pairs = [("classifier", context.kind)]
    pairs += [("steps before it", steps)] if steps else []
    pairs += [
        ("vectors", f"{context.vectors:,}" + (", training rows" if context.shown.keeps_rows else "")),
        *_kernel(kernel.kernel if scales.ndim else kernel),
        ("scales of the inputs", f"learned, {scales.min():.3g} to {scales.max():.3g}" if scales.ndim else "none"),
        ("classes and outputs", f"{len(inference.classes)} and {len(inference.expansion.bias)}"),  # type: ignore[arg-type]
    ]
    for name, attribute in FIT_ATTRIBUTES:
        value = context.attribute(attribute)
        if value is not None and np.size(value):
            pairs.append((name, text(_largest(value))))
    gaps = context.attribute("duality_gap_")
    if gaps is not None and np.size(gaps):
        pairs.append(("duality gap, the largest", number(float(np.max(gaps)))))
    return section(
        "model",
        "The model",
        facts(pairs),
        _compression(context.attribute("compression_")),
        _search(context.attribute("search_results_")),
    )


def _compression(compression: Any) -> Safe:
    if compression is None:
        return Safe("")
    on_X = compression.agreement_on_X
    pairs = [
        ("vectors", f"{compression.vectors_before:,} → {compression.vectors_after:,}"),
        ("bytes of vectors and coefficients in float32", f"{compression.bytes_before:,} → {compression.bytes_after:,}"),
        ("method", compression.method),
        ("agreement on the original's vectors", percent(compression.agreement_on_vectors, 2)),
        *([] if on_X is None else [("agreement on the rows given to it", percent(on_X, 2))]),
        ("distance in the kernel's space", f"{compression.distance:.3g} of the original's norm"),
        ("multiply-adds of a prediction", f"{compression.speedup:.1f} times fewer"),
    ]
    note = paragraph(compression.note, class_="note") if compression.note else ""
    return join([tag("h3", "Compressed from a larger machine"), facts(pairs), note])


def _search(tried: Any) -> Safe:
    if not tried:
        return Safe("")
    names = [name for name in ("C", "gamma", "scales", "error", "loss", "folds") if name in tried]
    order = np.argsort(np.asarray(tried["error"], dtype=float), kind="stable")
    lines = [[tried[name][k] for name in names] for k in order[:MAX_SETTINGS]]
    shown = "" if len(order) <= MAX_SETTINGS else f", the best {len(lines)}"
    listing = table("Settings tried on training rows held out, by error", names, lines)
    return more(f"Search: {counted(len(order), 'setting')}{shown}", listing)


def vectors(context: ReportContext) -> Safe:
    kind = "images" if context.shape is not None else "plane" if context.shown.inference.n_inputs == 2 else "inputs"
    caption = CAPTIONS[kind]
    if context.shown.steps is not None:
        caption += " Inputs are those that the steps before the classifier make."

    rows = np.arange(context.judged.rows)
    if kind == "plane" and len(rows) > MAX_DOTS:  # keeps the page small
        rows = np.unique(np.linspace(0, len(rows) - 1, MAX_DOTS).astype(int))
        caption += f" Every so many rows: {len(rows)} of {context.judged.rows:,}."

    def draw(ax: Any) -> None:
        X, y = some_rows(context.X, rows), np.asarray(context.y)[rows]
        options = {"shape": context.shape, "names": context.names, "most_vectors": MAX_VECTORS}
        drawn = VectorsDisplay.from_estimator(context.model, X, y, ax=ax, **options)
        if drawn.ax_.get_legend_handles_labels()[1]:
            legend_below(drawn.ax_)

    alt = f"The {counted(context.vectors, 'vector')} of the model: {KINDS[kind]}"
    picture = figure("vectors", _size(context, kind), alt, caption, draw, kind)
    return section("vectors", "Its vectors", picture, _as_numbers(context))


def _size(context: ReportContext, kind: str) -> tuple[float, float]:
    """Width and height of the figure in inches."""
    if kind == "plane":
        return 5.4, 5.0
    if context.shape is None:
        names = -(-len(context.judged.classes) // 5)  # lines of the legend
        return 7.6, 2.8 + 0.15 * min(20, context.shown.inference.n_inputs) + 0.18 * max(0, names - 2)
    lines, columns = lines_and_columns(min(MAX_VECTORS, context.vectors), context.shape)
    return 6.4, lines * (6.4 / columns * context.shape[0] / context.shape[1] + 0.22)


def _as_numbers(context: ReportContext) -> Safe:
    """A table of the vectors with their most important inputs, in the user's units."""
    which, loud = context.shown.speaks_for
    kept = np.argsort(-context.shown.counting(context.X), kind="stable")[:MAX_VALUES]
    order = np.lexsort((-np.abs(loud), which))[:MAX_VECTORS]
    classes = context.shown.inference.classes
    assert classes is not None
    lines = [
        [str(classes[which[k]]), f"{loud[k]:+.3g}", *(number(context.shown.vectors[k, j]) for j in kept)] for k in order
    ]
    header = ["speaks for", "weight", *(context.shown.names[j] for j in kept)]
    less = "" if len(kept) == len(context.shown.names) else f" in the {len(kept)} inputs that count most"
    some = "" if len(order) == context.vectors else f"{len(order)} of "
    return more("The vectors as numbers", table(f"{some}{counted(context.vectors, 'vector')}{less}", header, lines))


CAPTIONS = {
    "images": "Each vector as an image, with the class that it speaks for and its weight.",
    "plane": "The plane of the two inputs: rows of this report as dots, colours the stronger the surer.",
    "inputs": "Left: how much each input counts (scale in the kernel × spread over the rows of this report). Right: "
    "the vectors, one a column; an input that is high or low, against the rows' mean. Above: their weights, in the "
    "colour of the class that they speak for.",
}
KINDS = {
    "images": "a grid of images",
    "plane": "in the plane of its two inputs, with the boundary between the classes",
    "inputs": "a map of inputs by vectors, beside bars of how much each input counts",
}
