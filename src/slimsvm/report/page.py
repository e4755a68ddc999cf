"""Builds the report: all sections in one HTML page that loads no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from .. import __version__
from ..frontiers.result import Frontier
from ..plotting.shown_model import ShownModel
from . import evaluation, sections
from .confusion import ConfusionCounts
from .context import ReportContext
from .markup import Safe, join, tag, text
from .provenance import versions

CONTENTS = (
    ("data", "Data", sections.data),
    ("size", "Size", sections.sizes),
    ("model", "The model", sections.model),
    ("vectors", "Its vectors", sections.vectors),
    ("mistakes", "Mistakes", evaluation.mistakes),
    ("calibration", "Calibration", evaluation.calibration),
    ("device", "On a device", evaluation.device),
    ("made", "How it was made", evaluation.made),
)


def report(
    model: Any,
    X: Any,
    y: Any,
    *,
    frontier: Frontier | None = None,
    title: str | None = None,
    made: dict[str, Any] | None = None,
    names: Sequence[Any] | None = None,
    shape: tuple[int, int] | None = None,
) -> str:
    """A report on a fitted classifier: one HTML page that opens without a network.

    It shows the data, the frontier, the model and its vectors, its mistakes, its calibration, what it takes on a device
    and how to make it again. The same input gives the same bytes. Needs matplotlib.

    Parameters
    ----------
    model : fitted classifier of slimsvm, CompressedOutlierDetector, or a Pipeline that ends with one
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Held-out rows on which the model is evaluated, in the form that it takes.
    y : array-like of shape (n_samples,)
        Their labels.
    frontier : Frontier, optional
        The result of `slimsvm.frontier`: models of other sizes and the full model, for comparison.
    title : str, optional
    made : dict, optional
        How the model was made: ``command``, ``date``, ``data``, ``seed``, ``versions`` and ``settings`` (dicts), and
        any other facts. The installed versions are shown unless given.
    names : sequence of str, optional
        Names of the inputs; a model fitted to a DataFrame knows them.
    shape : (int, int), optional
        Height and width, where the inputs are the pixels of an image.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC
    >>> from slimsvm.report import report
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=6, C=10, gamma=1.0, scales="fixed").fit(X[:200], y[:200])
    >>> page = report(clf, X[200:], y[200:], title="Two moons")
    >>> "<title>Two moons</title>" in page, "http" in page
    (True, False)
    """
    context = _context(model, X, y, frontier, made, names, shape)
    written = {name: write(context) for name, _, write in CONTENTS}
    shown = [(name, label) for name, label, _ in CONTENTS if written[name] is not None]
    links = [tag("li", tag("a", label, href=f"#{name}")) for name, label in shown]
    return _template().substitute(
        version=text(versions().get("slimsvm", "")),
        title=text(title or f"{context.kind} of {context.vectors} vectors"),
        css=_file("page.css"),
        lead=sections.lead(context),
        cards=sections.cards(context),
        contents=join(links, "\n"),
        sections=join([written[name] for name, _ in shown], "\n"),
        footer=_footer(),
    )


def write_report(path: Any, model: Any, X: Any, y: Any, **options: Any) -> None:
    """Write the report on a fitted classifier to a file.

    Parameters
    ----------
    path : str or path
        The file to write; an existing file is replaced.
    model, X, y, **options :
        As for `report`.
    """
    Path(path).write_text(report(model, X, y, **options), encoding="utf-8")


def _context(
    model: Any, X: Any, y: Any, frontier: Any, made: Any, names: Any, shape: tuple[int, int] | None
) -> ReportContext:
    shown = ShownModel.of(model, names)
    if shown.inference.classes is None:
        raise ValueError(
            "the report is for classifiers and outlier detectors; this model has no classes: it gives values. Its R^2 "
            "is model.score(X, y), and to_c(model, X=X, y=y).report says what it takes on a device"
        )
    if frontier is not None and not isinstance(frontier, Frontier):
        raise ValueError(f"frontier={frontier!r} must be what slimsvm.frontier returns")
    if made is not None and not isinstance(made, Mapping):
        raise TypeError(f"made={made!r} (type {type(made).__name__}) must be a dictionary, such as {{'command': ...}}")
    judged = ConfusionCounts.of(model, shown.inference.classes, X, y)
    return ReportContext(model, X, y, frontier, dict(made or {}), names, shape, shown, judged)


def _footer() -> Safe:
    return text(f"Made by slimsvm {__version__}. The page is complete: it loads nothing.")


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _template() -> Template:
    return Template(_file("page.html"))
