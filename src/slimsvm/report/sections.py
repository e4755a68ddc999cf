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
from .context import Subject, counted
from .figures import SERIES, figure
from .markup import Safe, bar, facts, join, more, number, paragraph, percent, section, table, tag, text
from .provenance import spelled

MOST_INPUTS = 30  # lines of the table of inputs
MOST_TRIED = 12  # settings of the search
MOST_DOTS = 800  # rows in the plane
MOST_VECTORS = 40  # that are shown
MOST_VALUES = 8  # of each, as numbers


def cards(about: Subject) -> Safe:
    """The four numbers that people look for."""
    judged, full, device = about.judged, about.full, about.device
    low, high = judged.interval
    found = [
        (
            "vectors kept",
            f"{about.vectors:,}",
            f"full machine: {about.frontier.full.vectors:,}" if about.frontier and about.frontier.full else "",
        ),
        (
            "right",
            percent(judged.accuracy),
            f"full machine: {percent(full.accuracy)}" if full else f"95 % interval: {100 * low:.1f} to {percent(high)}",
        ),
    ]
    if device.n_bytes is not None:
        found.append(("in integers", f"{device.n_bytes:,} bytes", f"float32: {device.float_bytes:,}"))
    else:
        found.append(("in float32", f"{device.float_bytes:,} bytes", ""))
    if about.calibration is not None:
        loss = f"log-loss {about.calibration.log_loss:.3f}"
        found.append(("calibration error", f"{about.calibration.ece:.3f}", loss))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, class_="value"), tag("dd", beside, class_="beside"))
            for name, value, beside in found
        ),
        class_="cards",
    )


def lead(about: Subject) -> Safe:
    judged = about.judged
    low, high = judged.interval
    return text(
        f"{about.kind} keeps {counted(about.vectors, 'vector')} and gets {judged.right:,} of {about.rows} "
        f"right: {percent(judged.accuracy)} (95 % interval: {100 * low:.1f} to {percent(high)})."
    )


# --- data -----------------------------------------------------------------------------------------------------------


def data(about: Subject) -> Safe:
    judged = about.judged
    counts = judged.confusion.sum(axis=1)
    lines = [
        [str(label), int(count), percent(count / judged.rows), bar(count / counts.max(), _color(k, len(counts)))]
        for k, (label, count) in enumerate(zip(judged.classes, counts, strict=True))
    ]
    known = about.shown.machine.classes
    strange = judged.classes[len(known) :] if known is not None else ()
    return section(
        "data",
        "Data",
        paragraph(
            f"{counted(judged.rows, 'row')} of {counted(columns_of(about.X).count, 'input')} were given to this report "
            "to judge the model. They must have had no part in its training; the report cannot check that."
        ),
        _who_judged(about),
        table("Classes among these rows", ["class", "rows", "share", ""], lines),
        paragraph(
            "Labels that the model has never seen, and always gets wrong: ", ", ".join(map(str, strange)), class_="note"
        )
        if strange
        else "",
        _inputs(about),
    )


def _color(number: int, classes: int) -> str:
    """Of a class, as pictures have it; one for all, where there are not enough."""
    return f"c{number}" if classes <= len(SERIES) else "c7"


def _who_judged(about: Subject) -> Safe:
    lines = []
    if getattr(about.classifier, "search_results_", None):
        lines.append(["settings (C, gamma, scales)", "training rows held out in an internal validation"])
    if about.frontier is not None:
        lines.append(["sizes, in the frontier", "training rows held out: each size was trained without them"])
    if getattr(about.classifier, "probability_C_", None) is not None:
        lines.append(["cost of the probabilities", "training rows that had no part in the vectors"])
    calibration = ["calibration"] if about.calibration is not None else []
    integers = ["the integers"] if about.device.answers is not None else []
    what = ", ".join(["mistakes", *calibration, *integers])
    lines.append([f"this model: {what}", f"the {about.rows} of this report"])
    if about.full is not None:
        lines.append(["the full machine beside it", f"the same {about.rows}"])
    return table("Which rows judged what", ["what", "rows"], lines, kind="words")


def _inputs(about: Subject) -> Safe:
    """Inputs with their range, those that count most first."""
    columns = columns_of(about.X, about.names if about.names is not None else about.shown.machine.names)
    if not columns.lines:
        return Safe("")
    counting = about.shown.counting(about.X) if about.shown.steps is None else None
    order = np.arange(columns.count) if counting is None else np.argsort(-counting, kind="stable")
    lines = []
    for k in order[:MOST_INPUTS]:
        share = [] if counting is None else [join([bar(counting[k], "c7"), f" {counting[k]:.2f}"])]
        lines.append([*columns.lines[k], *share])
    header = ["input", "least", "median", "largest", "missing", *([] if counting is None else ["counts"])]
    shown = "" if columns.count <= MOST_INPUTS else f": {len(lines)} of {columns.count}"
    how = "" if counting is None else ". Counts: scale in the kernel × spread, the largest is 1"
    listing = table(f"Inputs on the rows of this report{shown}{how}", header, lines)
    return more(f"Inputs{shown}", listing)


# --- size -----------------------------------------------------------------------------------------------------------


def sizes(about: Subject) -> Safe | None:
    found = about.frontier
    if found is None:
        return None
    label, value, unit = shown_scores(found.scoring)
    digits = 2 if unit == 100 else 4
    chosen = found.chosen.size
    lines = [
        [
            row["vectors"],
            f"{value(row['score']):.{digits}f}",
            f"± {unit * row['standard_error']:.{digits}f}",
            row["bytes"],
            f"{row['seconds']:.2f} s",
        ]
        for row in found.rows
    ]
    if found.full is not None:
        full = found.full
        score, error = f"{value(full.score):.{digits}f}", f"± {unit * full.standard_error:.{digits}f}"
        lines.append([f"{full.vectors:,} (full machine)", score, error, full.bytes, f"{full.seconds:.2f} s"])
    mine = about.size
    said = f"{found.chosen.why}."
    if mine is None:
        said += " The model of this report is none of these."
    elif mine != chosen:
        said += f" This report is about the model of {counted(mine, 'vector')}, which is marked."
    at = chosen if mine is None else mine
    alt = f"{label} against the number of vectors, {found.sizes[0]} to {found.sizes[-1]}; {chosen} is chosen"
    alone = " Bytes are those of the classifier without the steps before it." if hasattr(about.model, "steps") else ""

    def draw(ax: Any) -> None:
        drawn = FrontierDisplay.from_frontier(found, ax=ax, bytes_axis=True, legend=False)
        ax.set_title("")  # the paragraph says it
        if at != chosen:
            height = value(found.curve.scores[found.sizes.index(at)])
            ax.plot([at], [height], "D", ms=9, mfc="none", mec="C4", mew=1.6, label=f"this report: {at} vectors")
        legend_below(drawn.ax_)

    return section(
        "size",
        "Size",
        paragraph(f"{said} Rows held out of the training rows judged the sizes, not the rows of this report.{alone}"),
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
                f"Models of {counted(len(found.sizes), 'size')}",
                ["vectors", label, "s.e.", "bytes", "fit"],
                lines,
                marked=[found.sizes.index(at)],
            ),
            class_="pair",
        ),
    )


# --- model ----------------------------------------------------------------------------------------------------------

# Fitted attributes that say how the model was found, with their names for people.
FOUND = (
    ("C", "C_"),
    ("pairs or one against the others", "multi_class_"),
    ("iterations of learning", "learning_iter_"),
    ("what learning may have left", "learning_gain_left_"),
    ("cost of the probabilities", "probability_C_"),
    ("duality gap of the probabilities", "probability_gap_"),
)


def _kernel(kernel: Any) -> list[tuple[str, Any]]:
    """Its name and its numbers."""
    return [("kernel", kernel.name), *((name, text(_short(value))) for name, value in kernel.get_params().items())]


def _short(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else spelled(value)


def _largest(value: Any) -> Any:
    return value if isinstance(value, str) else float(np.max(value))


def model(about: Subject) -> Safe:
    classifier, machine = about.classifier, about.shown.machine
    kernel: Any = machine.expansion.kernel
    scales = np.asarray(kernel.scales, dtype=np.float64)
    steps = about.model.steps[:-1] if hasattr(about.model, "steps") else []
    pairs = [("classifier", about.kind)]
    pairs += [("steps before it", ", ".join(type(step).__name__ for _, step in steps))] if steps else []
    pairs += [
        ("vectors", f"{about.vectors:,}" + (", training rows" if about.shown.keeps_rows else "")),
        *_kernel(kernel.kernel if scales.ndim else kernel),
        ("scales of the inputs", f"learned, {scales.min():.3g} to {scales.max():.3g}" if scales.ndim else "none"),
        ("classes and outputs", f"{len(machine.classes)} and {len(machine.expansion.bias)}"),  # type: ignore[arg-type]
    ]
    for name, attribute in FOUND:
        value = getattr(classifier, attribute, None)
        if value is not None and np.size(value):
            pairs.append((name, text(_largest(value))))
    gaps = getattr(classifier, "duality_gap_", None)
    if gaps is not None and np.size(gaps):
        pairs.append(("duality gap, the largest", number(float(np.max(gaps)))))
    return section("model", "The model", facts(pairs), _compression(about.compression), _searched(classifier))


def _compression(told: Any) -> Safe:
    if told is None:
        return Safe("")
    on_X = told.agreement_on_X
    pairs = [
        ("vectors", f"{told.vectors_before:,} → {told.vectors_after:,}"),
        ("bytes of vectors and coefficients in float32", f"{told.bytes_before:,} → {told.bytes_after:,}"),
        ("method", told.method),
        ("agreement on the original's vectors", percent(told.agreement_on_vectors, 2)),
        *([] if on_X is None else [("agreement on the rows given to it", percent(on_X, 2))]),
        ("distance in the kernel's space", f"{told.distance:.3g} of the original's norm"),
        ("multiply-adds of a prediction", f"{told.speedup:.1f} times fewer"),
    ]
    note = paragraph(told.note, class_="note") if told.note else ""
    return join([tag("h3", "Compressed from a larger machine"), facts(pairs), note])


def _searched(classifier: Any) -> Safe:
    tried = getattr(classifier, "search_results_", None)
    if not tried:
        return Safe("")
    names = [name for name in ("C", "gamma", "scales", "error", "loss", "folds") if name in tried]
    order = np.argsort(np.asarray(tried["error"], dtype=float), kind="stable")
    lines = [[tried[name][k] for name in names] for k in order[:MOST_TRIED]]
    shown = "" if len(order) <= MOST_TRIED else f", the best {len(lines)}"
    listing = table("Settings tried on training rows held out, by error", names, lines)
    return more(f"Search: {counted(len(order), 'setting')}{shown}", listing)


def vectors(about: Subject) -> Safe:
    kind = "images" if about.shape is not None else "plane" if about.shown.machine.n_inputs == 2 else "inputs"
    caption = CAPTIONS[kind]
    if about.shown.steps is not None:
        caption += " Inputs are those that the steps before the classifier make."

    rows = np.arange(about.judged.rows)
    if kind == "plane" and len(rows) > MOST_DOTS:  # the page is to stay small
        rows = np.unique(np.linspace(0, len(rows) - 1, MOST_DOTS).astype(int))
        caption += f" Every so many rows: {len(rows)} of {about.judged.rows:,}."

    def draw(ax: Any) -> None:
        X, y = some_rows(about.X, rows), np.asarray(about.y)[rows]
        shown = {"shape": about.shape, "names": about.names, "most_vectors": MOST_VECTORS}
        drawn = VectorsDisplay.from_estimator(about.model, X, y, ax=ax, **shown)
        if drawn.ax_.get_legend_handles_labels()[1]:
            legend_below(drawn.ax_)

    alt = f"The {counted(about.vectors, 'vector')} of the model: {KINDS[kind]}"
    picture = figure("vectors", _size(about, kind), alt, caption, draw, kind)
    return section("vectors", "Its vectors", picture, _as_numbers(about))


def _size(about: Subject, kind: str) -> tuple[float, float]:
    """Inches: the more there is to show, the higher."""
    if kind == "plane":
        return 5.4, 5.0
    if about.shape is None:
        names = -(-len(about.judged.classes) // 5)  # lines of the legend
        return 7.6, 2.8 + 0.15 * min(20, about.shown.machine.n_inputs) + 0.18 * max(0, names - 2)
    lines, columns = lines_and_columns(min(MOST_VECTORS, about.vectors), about.shape)
    return 6.4, lines * (6.4 / columns * about.shape[0] / about.shape[1] + 0.22)


def _as_numbers(about: Subject) -> Safe:
    """Vectors in the user's units: the inputs that count most."""
    which, loud = about.shown.speaks_for
    kept = np.argsort(-about.shown.counting(about.X), kind="stable")[:MOST_VALUES]
    order = np.lexsort((-np.abs(loud), which))[:MOST_VECTORS]
    classes = about.shown.machine.classes
    assert classes is not None
    lines = [
        [str(classes[which[k]]), f"{loud[k]:+.3g}", *(number(about.shown.vectors[k, j]) for j in kept)] for k in order
    ]
    header = ["speaks for", "weight", *(about.shown.names[j] for j in kept)]
    less = "" if len(kept) == len(about.shown.names) else f" in the {len(kept)} inputs that count most"
    some = "" if len(order) == about.vectors else f"{len(order)} of "
    return more("The vectors as numbers", table(f"{some}{counted(about.vectors, 'vector')}{less}", header, lines))


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
