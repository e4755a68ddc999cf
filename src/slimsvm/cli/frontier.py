"""``slimsvm frontier``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..frontiers import Frontier
from ..frontiers import frontier as compute_frontier
from ..report import report
from . import models, preprocessing
from .console import Console, Facts, grid
from .data import LabelledFrame, TrainingData, train_and_test, training_data
from .errors import CommandError, WrongUse, needs
from .tasks import ClassificationTask, LearningTask
from .train import estimator_settings, metadata

if TYPE_CHECKING:
    from .options import FrontierOptions, HoldOutOptions, LearnOptions

PICTURES = (".png", ".svg", ".pdf")


def frontier(path: Path, options: FrontierOptions, learn: LearnOptions, console: Console) -> None:
    """Train models of several sizes; write a report, a plot and the chosen model."""
    sizes = sizes_of(options.sizes)
    _check_files(options, learn.hold_out)
    settings = estimator_settings(learn.training) | {"n_vectors": 1, "max_bytes": None}
    start = time.perf_counter()
    data = training_data(path, learn)
    _check_task(data.task, options)
    console.notes(data.inputs.notes)
    rows, test = train_and_test(data, learn)
    prototype = preprocessing.pipeline(data.inputs, data.task.step, data.task.estimator(settings))
    with console.work(2) as begin:
        begin("sizes")
        result = compute_frontier(
            rows.X,
            rows.y,
            sizes=sizes,
            estimator=prototype,
            sample_weight=rows.weights,
            full=options.full,
            n_jobs=learn.training.jobs,
            random_state=learn.training.seed,
            verbose=console.shows_progress,
        )
        begin("files")
        result = _with_choice(result, options)
        model = result.models[result.chosen.size]
        model[-1].verbose = False
        scores = None if test is None else data.task.held_out_scores(model, rows, test)
        given = {"sizes": sizes and list(sizes), "within": options.within, "bytes": options.max_bytes}
        facts = metadata(data, console.command, learn.training, given)
        facts |= {"learned_from": len(rows), "held_out": scores}
        files = _write(result, model, test, data, facts, options)
    _show(console, data.task, result, model, scores, files, time.perf_counter() - start)


def _check_task(task: LearningTask, options: FrontierOptions) -> None:
    if not task.measure:
        raise WrongUse(
            f"slimsvm frontier is for classes and numbers, not for {task.name}: "
            "slimsvm train --vectors auto finds their size"
        )
    if options.html is not None and task.name != ClassificationTask.name:
        raise WrongUse(
            f"--html is for classes, and this is {task.name} ({task.why}); --plot draws its curve, and "
            "--task classification takes whole numbers for classes"
        )


def sizes_of(text: str | None) -> tuple[int, ...] | None:
    """Parse --sizes: numbers of vectors separated by commas."""
    if text is None:
        return None
    try:
        sizes = tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise WrongUse(f"--sizes {text}: must be whole numbers of at least 1 with commas between, such as 4,8,16")
    return tuple(sorted(set(sizes)))


def _check_files(options: FrontierOptions, hold_out: HoldOutOptions) -> None:
    html, plot = options.html, options.plot
    if options.output is not None:
        models.check_new(options.output)
    for path in filter(None, (html, plot)):
        models.check_new(path, suffix=None)
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--html {html}: must end in .html")
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise WrongUse(f"--plot {plot}: must end in {', '.join(PICTURES)}")
    if html is not None and hold_out.test is None and hold_out.test_size == 0:
        raise WrongUse("--html needs rows that judge the model: leave out --test-size 0, or give a file with --test")
    if html is not None or plot is not None:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise needs("matplotlib", "a picture or a report", "plot") from None


def _with_choice(result: Frontier, options: FrontierOptions) -> Frontier:
    """The result with a chosen model: the best one, or the best within --bytes. Bytes include the scaler."""
    n_bytes = {size: models.device_bytes(result.models[size]) for size in result.sizes}
    limit = options.max_bytes
    if limit is not None and min(n_bytes.values()) > limit:
        raise CommandError(
            f"--bytes {limit} are too few: the smallest model, of {result.sizes[0]} vectors, takes "
            f"{n_bytes[result.sizes[0]]}; give more bytes, smaller --sizes or fewer --columns"
        )
    return replace(result, chosen=result.choice(options.within, bytes=limit, bytes_by_size=n_bytes))


def _write(
    result: Frontier,
    model: Any,
    test: LabelledFrame | None,
    data: TrainingData,
    facts: dict[str, Any],
    options: FrontierOptions,
) -> dict[str, str]:
    """Write the files that the options name; return their paths by kind."""
    if options.output is not None:
        models.save(model, options.output, facts)
    if options.plot is not None:
        _draw(result, options.plot)
    if options.html is not None:
        assert test is not None
        title = f"{data.target} from {Path(data.path).name}"
        made = {name: facts[name] for name in ("command", "data", "seed", "versions", "settings", "preprocessing")}
        page = report(model, test.X, test.y, frontier=result, title=title, made=made)
        options.html.write_text(page, encoding="utf-8")
    files = {"model": options.output, "report": options.html, "picture": options.plot}
    return {kind: str(path) for kind, path in files.items() if path is not None}


def _draw(result: Frontier, path: Path) -> None:
    """Draw scores against sizes into a file; no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    result.plot(ax=figure.add_subplot())
    figure.savefig(path, dpi=150)


def _show(
    console: Console,
    task: LearningTask,
    result: Frontier,
    model: Any,
    scores: Any,
    files: dict[str, str],
    seconds: float,
) -> None:
    chosen = {"vectors": int(model[-1].n_vectors_), "bytes": models.device_bytes(model), "held_out": scores}
    full = None
    if result.full is not None:
        full = {name: getattr(result.full, name) for name in ("vectors", "bytes", "score", "standard_error", "seconds")}
    content = {"sizes": result.rows, "full": full, "chosen": chosen, "why": result.chosen.why, "files": files}
    sizes = [(f"{row['vectors']}{' *' if row['chosen'] else ''}", row) for row in result.rows]
    sizes += [] if full is None else [(f"{full['vectors']} (full machine)", full)]
    table = [
        [name, task.format_score(row["score"], row["standard_error"]), row["bytes"], f"{row['seconds']:.2f}"]
        for name, row in sizes
    ]
    lines = [
        ("chosen *", f"{chosen['vectors']} vectors, {chosen['bytes']} bytes with scaling"),
        ("why", result.chosen.why),
        *([] if scores is None else task.held_out_lines(scores, "that had no part in it")),
        *files.items(),
        ("time", f"{seconds:.1f} s"),
    ]
    header = ["vectors", f"{task.measure} by validation", "bytes", "seconds"]
    console.report(content | {"seconds": seconds}, grid(header, table), Facts(lines))
