"""The sections of the report, each a function of what is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..frontier_result import Frontier, classifier_of, shown_scores
from ..plotting import CalibrationDisplay, FrontierDisplay, VectorsDisplay
from ..plotting.drawing import legend_below
from ..plotting.shown import Shown
from .columns import columns_of
from .device import OnDevice
from .figures import figure
from .judged import Judged
from .made import seed_of, settings, size_in, snippet, spelled, versions
from .markup import Safe, bar, code, facts, join, more, number, paragraph, percent, section, table, tag, text

MOST_INPUTS = 30  # lines of the table of inputs
MOST_TRIED = 12  # settings of the search
MOST_IMAGES = 40


@dataclass(frozen=True)
class Subject:
    """A model, the rows that judge it, and all else that the report is about."""

    model: Any
    X: Any
    y: Any
    frontier: Frontier | None
    made: dict[str, Any]
    names: Any
    shape: tuple[int, int] | None
    shown: Shown
    judged: Judged

    @property
    def classifier(self) -> Any:
        return classifier_of(self.model)

    @property
    def kind(self) -> str:
        return type(self.classifier).__name__

    @property
    def vectors(self) -> int:
        return len(self.shown.vectors)

    @cached_property
    def size(self) -> int | None:
        """Which model of the frontier it is."""
        return size_in(self.frontier, self.model)

    @cached_property
    def full(self) -> Judged | None:
        """The full machine on the same rows."""
        if self.frontier is None or self.frontier.full is None:
            return None
        machine = self.frontier.full.model
        return Judged.of(machine, classifier_of(machine).classes_, self.X, self.y)

    @cached_property
    def device(self) -> OnDevice:
        return OnDevice.of(self.model, self.shown, self.X)

    @cached_property
    def calibration(self) -> Any:
        """None where there are no probabilities, or labels that have none."""
        known = self.shown.machine.classes
        if known is None or len(self.judged.classes) > len(known) or not hasattr(self.model, "predict_proba"):
            return None
        return CalibrationDisplay.of(self.y, self.model.predict_proba(self.X), classes=known, name=self.kind)


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
            f"full machine: {percent(full.accuracy)}" if full else f"95 % sure: {100 * low:.1f} to {percent(high)}",
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
    return join(
        [
            f"{about.kind} keeps {_count(about.vectors, 'vector')} and answers {judged.right:,} of "
            f"{_count(judged.rows, 'row')} right: {percent(judged.accuracy)}, on other rows like these "
            f"{100 * low:.1f} to {percent(high)} (95 % sure).",
        ]
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


# --- data -----------------------------------------------------------------------------------------------------------


def data(about: Subject) -> Safe:
    judged = about.judged
    counts = judged.confusion.sum(axis=1)
    lines = [
        [label, int(count), percent(count / judged.rows), bar(count / counts.max(), f"c{k % 10}")]
        for k, (label, count) in enumerate(zip(judged.classes, counts, strict=True))
    ]
    known = about.shown.machine.classes
    strange = judged.classes[len(known) :] if known is not None else ()
    return section(
        "data",
        "Data",
        paragraph(
            f"{_count(judged.rows, 'row')} of {_count(columns_of(about.X).count, 'input')} were given to this report "
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


def _who_judged(about: Subject) -> Safe:
    lines = []
    if getattr(about.classifier, "search_results_", None):
        lines.append(["settings (C, gamma, scales)", "training rows held out in an internal validation"])
    if about.frontier is not None:
        lines.append(["sizes, in the frontier", "training rows held out: each size was trained without them"])
    if getattr(about.classifier, "probability_C_", None) is not None:
        lines.append(["cost of the probabilities", "training rows that had no part in the vectors"])
    answers = "mistakes, calibration and the integers" if about.device.answers is not None else "mistakes, calibration"
    lines.append([f"this model: {answers}", f"the {judged_rows(about)} of this report"])
    if about.full is not None:
        lines.append(["the full machine beside it", f"the same {judged_rows(about)}"])
    return table("Which rows judged what", ["what", "rows"], lines, kind="words")


def judged_rows(about: Subject) -> str:
    return _count(about.judged.rows, "row")


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
    chosen = found.best_size()
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
    said = f"The chosen size is {chosen}: the smallest that is about as good as any."
    if mine is None:
        said += " The model of this report is none of these."
    elif mine != chosen:
        said += f" This report is about the model of {_count(mine, 'vector')}, which is marked."
    at = chosen if mine is None else mine
    alt = f"{label} against the number of vectors, {found.sizes[0]} to {found.sizes[-1]}; {at} vectors are marked"
    return section(
        "size",
        "Size",
        paragraph(f"{said} Rows held out of the training rows judged the sizes, not the rows of this report."),
        tag(
            "div",
            figure(
                "frontier",
                (5.4, 3.8),
                alt,
                f"{label} against size, with standard errors. Above: bytes of the model in integers.",
                lambda ax: FrontierDisplay.from_frontier(found, chosen=at, ax=ax, bytes_axis=True),
            ),
            table(
                f"Models of {_count(len(found.sizes), 'size')}",
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
        ("kernel", spelled(kernel.kernel if scales.ndim else kernel)),
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
    return section("model", "The model", facts(pairs), _compression(classifier), _searched(classifier))


def _compression(classifier: Any) -> Safe:
    told = getattr(classifier, "compression_", None)
    if told is None:
        return Safe("")
    on_X = told.agreement_on_X
    pairs = [
        ("vectors", f"{told.vectors_before:,} → {told.vectors_after:,}"),
        ("bytes in float32", f"{told.bytes_before:,} → {told.bytes_after:,}"),
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
    return more(f"Search: {_count(len(order), 'setting')}{shown}", listing)


def vectors(about: Subject) -> Safe:
    display = VectorsDisplay.from_estimator
    common = {"shape": about.shape, "names": about.names}
    two = about.shown.machine.n_inputs == 2 and about.shape is None
    if about.shape is not None:
        size, kind = (5.8, 5.0), "images"
        caption = "Each vector as an image, with the class that it speaks for and its weight."
    elif two:
        size, kind = (5.4, 5.0), "plane"
        caption = "The plane of the two inputs: rows of this report as dots, colours the stronger the surer."
    else:
        size, kind = (7.6, 4.8), "inputs"
        caption = (
            "Left: how much each input counts (scale in the kernel × spread over the rows of this report). Right: "
            "the vectors, one a column; an input that is high or low, against the rows' mean. Above: their weights, "
            "in the colour of the class that they speak for."
        )
    if about.shown.steps is not None:
        caption += " Inputs are those that the steps before the classifier make."

    def draw(ax: Any) -> None:
        drawn = display(about.model, about.X, about.y, **common, ax=ax, most_vectors=MOST_IMAGES)
        if drawn.ax_.get_legend_handles_labels()[1]:
            legend_below(drawn.ax_)

    alt = f"The {_count(about.vectors, 'vector')} of the model: {KINDS[kind]}"
    return section("vectors", "Its vectors", figure("vectors", size, alt, caption, draw, kind))


KINDS = {
    "images": "a grid of images",
    "plane": "in the plane of its two inputs, with the boundary between the classes",
    "inputs": "a map of inputs by vectors, beside bars of how much each input counts",
}


# --- answers --------------------------------------------------------------------------------------------------------


def mistakes(about: Subject) -> Safe:
    judged = about.judged
    wrong = judged.rows - judged.right
    most = ", ".join(f"{true} taken for {said} ({count})" for true, said, count in judged.mistakes())
    said = f"{_count(wrong, 'mistake')} on {judged_rows(about)}." + (f" Most often: {most}." if most else "")
    if about.full is not None:
        said += f" The full machine makes {_count(judged.rows - about.full.right, 'mistake')} on the same rows."
    per_class = [
        [label, count, percent(precision), percent(recall), percent(both)]
        for label, count, precision, recall, both in judged.per_class
    ]
    return section(
        "mistakes",
        "Mistakes",
        paragraph(said),
        tag(
            "div",
            _confusion(judged),
            table("Class by class", ["class", "rows", "precision", "recall", "F1"], per_class),
            class_="pair",
        ),
    )


def _confusion(judged: Judged) -> Safe:
    shares = judged.confusion / np.maximum(judged.confusion.sum(axis=1, keepdims=True), 1)
    lines = []
    for i, label in enumerate(judged.classes):
        cells = [
            tag("td", int(count), class_="right" if i == j else "wrong", style=f"--share: {shares[i, j]:.3f}")
            if count
            else tag("td", "·")
            for j, count in enumerate(judged.confusion[i])
        ]
        lines.append([label, *cells])
    header = ["class \\ predicted", *judged.classes]
    return table("Rows by their class (lines) and by the answer (columns)", header, lines, kind="confusion")


def calibration(about: Subject) -> Safe:
    display = about.calibration
    if display is None:
        reason = "The model has no probabilities: fit with probability=True to have them."
        if hasattr(about.model, "predict_proba"):
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


def device(about: Subject) -> Safe:
    found, judged = about.device, about.judged
    notes = []
    if found.alone:
        notes.append("The classifier alone: the steps before it must run on the device, too.")
    if found.n_bytes is None:
        notes.append(f"There is no form in integers: {found.reason}.")
    forms = [["float32", found.float_bytes, found.multiply_adds, percent(judged.accuracy, 2)]]
    inside = Safe("")
    if found.n_bytes is not None:
        right = float(np.mean(found.answers == np.asarray(about.y)))
        changed = int(np.sum(found.answers != about.model.predict(about.X)))
        forms.append(["integers (8-bit vectors)", found.n_bytes, found.multiply_adds, percent(right, 2)])
        notes.append(f"Of {judged_rows(about)}, {changed:,} get another answer from the integers.")
        lines = [
            [name, count, percent(count / found.n_bytes, 0), bar(count / found.n_bytes, f"c{k}")]
            for k, (name, count) in enumerate(found.parts.items())
        ]
        inside = table("Bytes in integers, by what they hold", ["part", "bytes", "share", ""], lines)
    header = ["numbers", "bytes", "multiply-adds a row", "right"]
    return section(
        "device",
        "On a device",
        paragraph(" ".join(notes)),
        tag("div", join([table("The model itself", header, forms), _programs(found)]), inside, class_="pair"),
    )


def _programs(found: OnDevice) -> Safe:
    if not found.programs:
        return Safe("")
    lines = [[one.dtype, one.flash, one.ram, one.multiply_adds] for one in found.programs]
    return table("As C, from slimsvm.to_c", ["numbers", "flash", "RAM", "multiply-adds a row"], lines)


# --- how ------------------------------------------------------------------------------------------------------------

SHOWN_FIRST = ("date", "command", "data", "seed")


def made(about: Subject) -> Safe:
    told = dict(about.made)
    told.setdefault("seed", seed_of(about.model))
    given = told.pop("settings", None)
    used = told.pop("versions", None)
    command = told.pop("command", None)
    order = [key for key in SHOWN_FIRST if key in told] + [key for key in told if key not in SHOWN_FIRST]
    pairs = [(key, _value(told[key])) for key in order]
    pairs += [(f"version of {name}", value) for name, value in (used or versions()).items()]
    lines = [
        [key, step, tag("td", value, class_="long"), "default" if usual else ""]
        for step, key, value, usual in settings(about.model)
    ]
    marked = [k for k, line in enumerate(lines) if not line[-1]]
    again = snippet(about.model, about.frontier, about.judged.rows, about.judged.accuracy)
    notes = ["With the same rows in X and y, these lines make the model again."]
    if about.size is not None:
        notes.append("A cv or sample weights that were given to frontier must be given again.")
    if told["seed"] is None:
        notes.append("random_state is None: draws differ each time, and so may the model.")
    if "..." in again:
        notes.append("Arrays among the settings are not written out in full.")
    return section(
        "made",
        "How it was made",
        facts(pairs),
        join([tag("h3", "Command"), code(str(command), "Command")]) if command else "",
        tag("h3", "Make it again"),
        paragraph(" ".join(notes)),
        code(again, "Python that makes the model again"),
        _given_settings(given),
        more(
            f"Settings: {len(lines)}, of which {len(marked)} are not the default",
            table("Settings of the estimator", ["setting", "step", "value", ""], lines, marked=marked, kind="words"),
        ),
    )


def _value(value: Any) -> Any:
    """What the caller tells, in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(str(_value(inner)) for inner in value)
    return "none" if value is None else value


def _given_settings(given: Any) -> Safe:
    """Settings that the caller knows of, beside those of the estimator."""
    if not given:
        return Safe("")
    pairs = [(key, _value(value)) for key, value in given.items()] if isinstance(given, dict) else [("", given)]
    return join([tag("h3", "Settings as given"), facts(pairs)])
