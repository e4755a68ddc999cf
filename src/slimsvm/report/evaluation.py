"""Sections on mistakes, calibration, cost on a device, and how the model was made."""

from __future__ import annotations

from typing import Any

import numpy as np

from .confusion import ConfusionCounts
from .context import ReportContext, counted
from .device import DeviceSizes
from .figures import figure
from .markup import Safe, bar, code, facts, join, more, paragraph, percent, section, table, tag
from .provenance import settings, snippet, versions

MAX_NARROW_CLASSES = 6  # a confusion matrix of more classes leaves no room for a table beside it


# --- predictions ----------------------------------------------------------------------------------------------------


def mistakes(context: ReportContext) -> Safe:
    judged = context.judged
    wrong = judged.rows - judged.right
    frequent = ", ".join(f"{true} taken for {predicted} ({count})" for true, predicted, count in judged.mistakes())
    sentence = f"{counted(wrong, 'mistake')} on {context.rows}." + (f" Most often: {frequent}." if frequent else "")
    if context.full is not None:
        sentence += f" The full machine makes {counted(judged.rows - context.full.right, 'mistake')} on the same rows."
    per_class = [
        [str(label), count, percent(precision), percent(recall), percent(both)]
        for label, count, precision, recall, both in judged.per_class
    ]
    return section(
        "mistakes",
        "Mistakes",
        paragraph(sentence),
        tag(
            "div",
            _confusion(judged),
            table("Class by class", ["class", "rows", "precision", "recall", "F1"], per_class),
            class_="pair" if len(judged.classes) <= MAX_NARROW_CLASSES else None,
        ),
    )


def _confusion(judged: ConfusionCounts) -> Safe:
    shares = judged.confusion / np.maximum(judged.confusion.sum(axis=1, keepdims=True), 1)
    lines = []
    for i, label in enumerate(judged.classes):
        cells = [
            tag("td", int(count), class_="right" if i == j else "wrong", style=f"--share: {shares[i, j]:.3f}")
            if count
            else tag("td", "·")
            for j, count in enumerate(judged.confusion[i])
        ]
        lines.append([str(label), *cells])
    header = ["class \\ predicted", *map(str, judged.classes)]
    return table("Rows by their class (lines) and by the answer (columns)", header, lines, kind="confusion")


def calibration(context: ReportContext) -> Safe:
    display = context.calibration
    if display is None:
        reason = "The model has no probabilities: fit with probability=True to have them."
        if hasattr(context.model, "predict_proba"):
            reason = "Not judged: some rows have labels that the model has never seen."
        return section("calibration", "Calibration", paragraph(reason))
    alt = f"Share of right predictions against their probability; expected calibration error {display.ece:.3f}"
    lines = [
        [f"{left:.2f} to {right:.2f}", int(count), f"{pred:.3f}", f"{true:.3f}"]
        for (left, right), count, pred, true in zip(
            display.edges, display.counts, display.prob_pred, display.prob_true, strict=True
        )
    ]
    return section(
        "calibration",
        "Calibration",
        paragraph(
            "When it gives its answer a probability, how often is it right? The expected calibration error is the mean "
            f"distance of both: {display.ece:.3f}. Log-loss: {display.log_loss:.3f}. Bins of few rows say little."
        ),
        tag(
            "div",
            figure(
                "calibration",
                (5.2, 4.1),
                alt,
                "Rows in bins by the probability of the class that is predicted; bars: rows of a bin.",
                display.plot,
            ),
            table("Bins", ["probability", "rows", "mean", "right"], lines),
            class_="pair",
        ),
    )


def device(context: ReportContext) -> Safe:
    sizes, judged = context.device, context.judged
    notes = []
    if sizes.alone:
        notes.append("The classifier alone: the steps before it must run on the device, too.")
    if sizes.reason:
        notes.append(sizes.reason)
    forms = [["float32", sizes.float_bytes, sizes.multiply_adds, percent(judged.accuracy, 2)]]
    inside = Safe("")
    if sizes.answers is not None:
        changed = int(np.sum(sizes.answers != context.model.predict(context.X)))
        notes.append(f"Of {context.rows}, {changed:,} get another answer from the integers.")
    caption = "The model itself"
    if context.shown.inference.layer is not None:
        caption += ", without probabilities"
        notes.append(_probabilities(sizes))
    if sizes.n_bytes is not None:
        right = "–" if sizes.answers is None else percent(float(np.mean(sizes.answers == np.asarray(context.y))), 2)
        forms.append(["integers (8-bit vectors)", sizes.n_bytes, sizes.multiply_adds, right])
        lines = [
            [name, count, percent(count / sizes.n_bytes, 0), bar(count / sizes.n_bytes, f"c{k}")]
            for k, (name, count) in enumerate(sizes.parts.items())
        ]
        inside = table("Bytes in integers, by what they hold", ["part", "bytes", "share", ""], lines)
    header = ["numbers", "bytes", "multiply-adds a row", "right"]
    return section(
        "device",
        "On a device",
        paragraph(" ".join(notes)),
        tag("div", join([table(caption, header, forms), _programs(sizes)]), inside, class_="pair"),
    )


def _probabilities(sizes: DeviceSizes) -> str:
    """A sentence about the bytes of probabilities."""
    taken = [(sizes.float_layer, "in float32"), (sizes.layer, "in integers")]
    bytes_taken = " and ".join(f"{count:,} bytes {how}" for count, how in taken if count)
    if not bytes_taken:
        return "Probabilities are not counted."
    return f"Probabilities take {bytes_taken} more; the C headers have them."


def _programs(sizes: DeviceSizes) -> Safe:
    if not sizes.programs:
        return Safe("")
    lines = [[one.dtype, one.flash, one.ram, one.multiply_adds, one.exponentials] for one in sizes.programs]
    header = ["numbers", "flash", "RAM", "multiply-adds", "exponentials"]
    caption = "As C, from slimsvm.to_c: bytes of tables, to which the code comes, and of stack; work for a row"
    return table(caption, header, lines)


# --- how ------------------------------------------------------------------------------------------------------------

SHOWN_FIRST = ("date", "command", "data", "seed")


def made(context: ReportContext) -> Safe:
    given = {"seed": context.attribute("random_state")} | context.made
    typed_settings, given_versions = given.pop("settings", None), given.pop("versions", None)
    command, compression = given.pop("command", None), context.attribute("compression_")
    order = [key for key in SHOWN_FIRST if key in given] + [key for key in given if key not in SHOWN_FIRST]
    pairs = [(key, _value(given[key])) for key in order]
    pairs += [(f"version of {name}", value) for name, value in (given_versions or versions()).items()]
    lines = [
        [key, step, tag("td", value, class_="long"), "default" if usual else ""]
        for step, key, value, usual in settings(context.model)
    ]
    marked = [k for k, line in enumerate(lines) if not line[-1]]
    again = snippet(context.model, context.frontier, context.judged.rows, context.judged.accuracy)
    notes = ["With the same rows in X and y, these lines make the model again."]
    if context.size is not None:
        notes.append("A cv or sample weights that were given to frontier must be given again.")
    if given["seed"] is None:
        notes.append("random_state is None: draws differ each time, and so may the model.")
    if "..." in again:
        notes.append("Arrays and objects of your own among the settings are not written out in full.")
    if compression is not None and compression.agreement_on_X is not None:
        notes.append("They give the training rows to the compression; compress may have had others.")
    return section(
        "made",
        "How it was made",
        facts(pairs),
        join([tag("h3", "Command"), code(str(command), "Command")]) if command else "",
        tag("h3", "Make it again"),
        paragraph(" ".join(notes)),
        code(again, "Python that makes the model again"),
        _given_settings(typed_settings),
        more(
            f"Settings: {len(lines)}, of which {len(marked)} are not the default",
            table("Settings of the estimator", ["setting", "step", "value", ""], lines, marked=marked, kind="words"),
        ),
    )


def _value(value: Any) -> str:
    """A fact given by the caller, as text."""
    match value:
        case dict():
            return ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items())
        case list() | tuple():
            return ", ".join(map(_value, value))
    return "none" if value is None else str(value)


def _given_settings(given: Any) -> Safe:
    """Settings given by the caller, shown next to those of the estimator."""
    if not given:
        return Safe("")
    pairs = [(key, _value(value)) for key, value in given.items()] if type(given) is dict else [("", given)]
    return join([tag("h3", "Settings as given"), facts(pairs)])
