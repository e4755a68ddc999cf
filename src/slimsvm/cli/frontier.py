"""``slimsvm frontier``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import models, preprocessing
from .console import Console, Facts, grid
from .data import Data, LabelledFrame, held_out, learning_data
from .errors import CommandError, WrongUse, needs
from .tasks import ClassificationTask, LearningTask
from .train import as_given, made, settings_of

if TYPE_CHECKING:
    from .options import Choosing, Judging, Learning, Reading

PICTURES = (".png", ".svg", ".pdf")


def frontier(
    path: Path,
    sizes: str | None,
    html: Path | None,
    output: Path | None,
    plot: Path | None,
    within: float | None,
    max_bytes: int | None,
    full: bool,
    reading: Reading,
    choosing: Choosing,
    judging: Judging,
    learning: Learning,
    out: Console,
) -> None:
    """Models of several sizes; a report, a picture and the chosen model as files."""
    from ..frontiers import frontier as frontier_of

    wanted = sizes_of(sizes)
    _check_files(html, output, plot, judging)
    given = settings_of(learning) | {"n_vectors": 1, "max_bytes": None}
    start = time.perf_counter()
    data = learning_data(path, reading, choosing)
    data.kind.check_options(learning)
    if not data.kind.measure:
        raise WrongUse(
            f"slimsvm frontier is for classes and numbers, not for {data.kind.name}: "
            "slimsvm train --vectors auto finds their size"
        )
    if html is not None and not isinstance(data.kind, ClassificationTask):
        raise WrongUse(
            f"--html is for classes, and this is {data.kind.name} ({data.kind.why}); --plot draws its curve, and "
            "--task classification takes whole numbers for classes"
        )
    out.notes(data.inputs.notes)
    rows, test = held_out(data, judging, reading, choosing, learning.seed)
    prototype = preprocessing.pipeline(data.inputs, data.kind.step, data.kind.estimator(given))
    with out.work(2) as begin:
        begin("sizes")
        found = frontier_of(
            rows.X,
            rows.y,
            sizes=wanted,
            estimator=prototype,
            sample_weight=rows.weights,
            full=full,
            n_jobs=learning.jobs,
            random_state=learning.seed,
            verbose=out.shows_progress,
        )
        begin("files")
        found = _chosen(found, within, max_bytes)
        model = found.models[found.chosen.size]
        model[-1].verbose = False
        estimate = None if test is None else data.kind.judged(model, rows, test)
        settings = as_given(learning) | {"sizes": wanted and list(wanted), "within": within, "bytes": max_bytes}
        metadata = made(data, out.command, settings, learning.seed) | {"learned_from": len(rows), "held_out": estimate}
        files = _write(found, model, test, data, metadata, html, output, plot)
    _show(out, data.kind, found, model, estimate, files, time.perf_counter() - start)


def sizes_of(text: str | None) -> tuple[int, ...] | None:
    """Numbers of vectors, with commas between."""
    if text is None:
        return None
    try:
        sizes = tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise WrongUse(f"--sizes {text}: must be whole numbers of at least 1 with commas between, such as 4,8,16")
    return tuple(sorted(set(sizes)))


def _check_files(html: Path | None, output: Path | None, plot: Path | None, judging: Judging) -> None:
    if output is not None:
        models.check_new(output)
    for path in (html, plot):
        if path is not None:
            models.check_new(path, suffix=None)
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--html {html}: must end in .html")
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise WrongUse(f"--plot {plot}: must end in {', '.join(PICTURES)}")
    if html is not None and judging.test is None and judging.test_size == 0:
        raise WrongUse("--html needs rows that judge the model: leave out --test-size 0, or give a file with --test")
    if html is not None or plot is not None:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise needs("matplotlib", "a picture or a report", "plot") from None


def _chosen(found: Any, within: float | None, max_bytes: int | None) -> Any:
    """What was found, with the best of the models, or of those that fit; bytes count the scaling of inputs, too."""
    needed = {size: models.device_bytes(found.models[size]) for size in found.sizes}
    if max_bytes is not None and min(needed.values()) > max_bytes:
        raise CommandError(
            f"--bytes {max_bytes} are too few: the smallest model, of {found.sizes[0]} vectors, takes "
            f"{needed[found.sizes[0]]}; give more bytes, smaller --sizes or fewer --columns"
        )
    return replace(found, chosen=found.choice(within, bytes=max_bytes, bytes_by_size=needed))


def _write(
    found: Any,
    model: Any,
    test: LabelledFrame | None,
    data: Data,
    metadata: dict[str, Any],
    html: Path | None,
    output: Path | None,
    plot: Path | None,
) -> dict[str, str]:
    """The files that were asked for, by what they are."""
    if output is not None:
        models.save(model, output, metadata)
    if plot is not None:
        _picture(found, plot)
    if html is not None:
        from ..report import report

        assert test is not None
        title = f"{data.target} from {Path(data.path).name}"
        told = {name: metadata[name] for name in ("command", "data", "seed", "versions", "settings", "preprocessing")}
        text = report(model, test.X, test.y, frontier=found, title=title, made=told)
        html.write_text(text, encoding="utf-8")
    return {
        name: str(path) for name, path in (("model", output), ("report", html), ("picture", plot)) if path is not None
    }


def _picture(found: Any, path: Path) -> None:
    """The curve, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    found.plot(ax=figure.add_subplot())
    figure.savefig(path, dpi=150)


def _show(
    out: Console,
    kind: LearningTask,
    found: Any,
    model: Any,
    estimate: Any,
    files: dict[str, str],
    seconds: float,
) -> None:
    last = model[-1]
    chosen = {"vectors": int(last.n_vectors_), "bytes": models.device_bytes(model), "held_out": estimate}
    full = None
    if found.full is not None:
        full = {name: getattr(found.full, name) for name in ("vectors", "bytes", "score", "standard_error", "seconds")}
    why = found.chosen.why
    content = {"sizes": found.rows, "full": full, "chosen": chosen, "why": why, "files": files, "seconds": seconds}
    lines = [
        [
            f"{row['vectors']}{' *' if row['chosen'] else ''}",
            kind.measured(row["score"], row["standard_error"]),
            row["bytes"],
            f"{row['seconds']:.2f}",
        ]
        for row in found.rows
    ]
    if full is not None:
        score = kind.measured(full["score"], full["standard_error"])
        lines.append([f"{full['vectors']} (full machine)", score, full["bytes"], f"{full['seconds']:.2f}"])
    ends: list[tuple[str, Any]] = [
        ("chosen *", f"{chosen['vectors']} vectors, {chosen['bytes']} bytes with scaling"),
        ("why", why),
    ]
    if estimate is not None:
        ends += kind.verdict(estimate, "that had no part in it")
    ends += [*files.items(), ("time", f"{seconds:.1f} s")]
    out.report(content, grid(["vectors", f"{kind.measure} by validation", "bytes", "seconds"], lines), Facts(ends))
