"""Accuracy against size: models of several sizes on the user's own data, scored on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_consistent_length, indexable

from ..data.dataset import Dataset
from ..data.folds import Fold
from ..estimators import validation
from ..estimators.base import with_model
from ..estimators.slim import SlimSVC
from ..estimators.slim_parameters import spec_of
from ..estimators.slim_regressor import SlimSVR
from ..model.expansion import Model
from ..training.sizes import FoldScore, SizePlan, size_grid, smallest_size
from ..training.slim import SlimSpec, add_outputs_of_size, plan_sizes, warn_unconverged
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .folds import FrontierData, FrontierFold, frontier_folds, splitter_of, with_columns
from .full_machine import fit_full_machine
from .result import Frontier, classifier_of
from .scorers import Scorer, fold_scorer, scoring_name

__all__ = ["Frontier", "frontier"]


def frontier(
    X: Any,
    y: Any,
    *,
    sizes: Iterable[int] | None = None,
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    full: bool = True,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: bool = False,
) -> Frontier:
    """Fit models of several sizes and score them on held-out rows: how many vectors do your data need?

    The largest model is learned first. For each smaller size, the best vectors of the next larger size are kept and
    learned a little further; all sizes together take about twice the time of the largest model alone. ``C``, ``gamma``
    and ``scales`` are searched once, for all sizes, on all rows. For each fold, models of all sizes are fitted to its
    training rows and scored on its held-out rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Class labels; for `SlimSVR` targets of shape (n_samples,) or (n_samples, n_outputs).
    sizes : sequence of int, optional
        Numbers of vectors; by default powers of two from 2 to 128, or to twice the number of classes if that is larger.
        They are clipped to the number of training rows and the dimension of the kernel's space.
    estimator : SlimSVC, SlimSVR or Pipeline, optional
        An estimator with the wanted parameters (kernel, slack, basis, C and so on; its ``n_vectors`` and ``max_bytes``
        are not used), or a pipeline that ends with one. ``SlimSVC()`` unless given.
    scoring : str or callable, optional
        A scorer of scikit-learn by name, or ``scoring(estimator, X, y)``; larger is better. A scorer
        of probabilities needs an estimator with ``probability=True``. None: accuracy with class weights, or R^2 of a
        regressor.
    cv : int, splitter or iterable, optional
        How rows are held out. An integer: this many stratified folds. A splitter of scikit-learn, or an iterable of
        training and test indices. None: five folds below 3,000 distinct rows, three below 20,000 (with
        more than two classes, 20,000 divided by their number), else one third, of at most 24,000 rows. Integers and
        None keep equal rows together and do not depend on the order of rows.
    groups : array-like of shape (n_samples,), optional
        For splitters that hold out groups of rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weight 0 is the same as leaving the row out, weight k as k copies of it.
    full : bool, default=True
        Whether to fit the support vector machine over all rows (at most 10,000 of them) beside the models: the hinge,
        or with `SlimSVR` an `SVR` for each target, with the kernel of the estimator and the best gamma of
        the search without learned scales. C is the estimator's if given, else the best of three on held-out rows; then
        the width of the tube likewise.
    n_jobs : int, optional
        Threads, instead of the estimator's own.
    random_state : int, RandomState or None, default=0
        Seed of all draws, instead of the estimator's own.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import frontier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> found = frontier(X, y, sizes=(2, 4, 8, 16))
    >>> clf = found.best()
    >>> clf.n_vectors_ in (4, 8, 16), bool(clf.score(X, y) > 0.95)
    (True, True)
    """
    X, y, sample_weight = (validation.require_memory("frontier", part) for part in (X, y, sample_weight))
    X, y = indexable(X, y)
    check_consistent_length(X, y, groups, sample_weight)
    prototype, sizes = _prototype(estimator, n_jobs, random_state), _checked_sizes(sizes)
    data = FrontierData.of(prototype, X, y, sample_weight)
    model = data.estimator
    spec_of(model)  # raises ValueError for parameters that make no sense
    dataset = data.dataset(sample_weight)
    sizes = sizes or size_grid(1, dataset.n_classes)
    model.n_vectors, model.verbose = max(sizes), bool(verbose)
    complaint = validation.scale_complaint(dataset.X, model.kernel, vars(model).get("feature_names_in_"))
    if complaint:
        warn(complaint)
    line = ProgressLine("frontier") if verbose else None
    report = line.update if line else None
    score = fold_scorer(scoring, model, sample_weight is not None)
    splitter = splitter_of(cv, y, dataset.targets is None)
    folds: list[FrontierFold] = []

    def hold_out(dataset: Dataset, rng: np.random.Generator) -> list[Fold]:
        folds.extend(frontier_folds(data, splitter, groups, dataset, rng))
        return [one.fold for one in folds]

    spec = spec_of(model)
    plan = plan_sizes(dataset, spec, sizes, hold_out)
    # Only scorers of scikit-learn ask for probabilities.
    outputs = None if scoring is None else replace(spec, verbose=False)
    curve = plan.validation_curve([partial(_scored, score, plan, outputs, one) for one in folds], report)
    full_machine = fit_full_machine(data, plan, folds, dataset, score, report) if full else None
    models, seconds = _models(data, plan, dataset, report)
    floor = smallest_size(dataset.n_classes)
    found = Frontier(models, curve, seconds, full_machine, scoring_name(scoring, model), floor)
    if line is not None:
        line.finish(f"{found.best_size()} vectors do")
    return found


def _prototype(estimator: Any, n_jobs: int | None, random_state: Any) -> Any:
    """A copy of the estimator, with these parameters instead of its own."""
    prototype = SlimSVC() if estimator is None else clone(estimator, safe=False)
    model = classifier_of(prototype)
    if not isinstance(model, (SlimSVC, SlimSVR)):
        raise ValueError(
            f"estimator={estimator!r} must be a SlimSVC or SlimSVR, or a Pipeline that ends with one, such as "
            "make_pipeline(StandardScaler(), SlimSVC())"
        )
    model.set_params(n_vectors=1, max_bytes=None, random_state=random_state)
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    return prototype


def _checked_sizes(sizes: Any) -> tuple[int, ...]:
    if sizes is None:
        return ()
    sizes = tuple(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, str) else (sizes,)
    for size in sizes:
        validation.check_number("sizes", size, at_least=1, integer=True)
    if not sizes:
        raise ValueError("sizes is empty; give at least one number of vectors, such as sizes=(4, 8, 16)")
    return tuple(sorted({int(size) for size in sizes}))


def _scored(score: Scorer, plan: SizePlan, outputs: SlimSpec | None, fold: FrontierFold, model: Model) -> FoldScore:
    """The score of a model on a fold; ``outputs`` adds probabilities where the scorer needs them."""
    if outputs is not None:
        model = add_outputs_of_size(fold.train, model, outputs, plan, max(1, model.expansion.vectors.shape[0]))
    return score(fold, with_model(fold.estimator, fold.train, model))


def _models(
    data: FrontierData, plan: SizePlan, dataset: Dataset, report: Callable[[str], None] | None
) -> tuple[dict[int, Any], dict[int, float]]:
    """Fit models of all sizes on all rows; return them, the smallest first, and the seconds of each."""
    models, seconds = {}, {}
    start = time.perf_counter()
    spec = spec_of(data.estimator)
    for size, model in plan.models(dataset):
        warn_unconverged(model, spec.tol, spec.problems)
        estimator = with_columns(clone(classifier_of(data.prototype)).set_params(n_vectors=size), data.estimator)
        model = add_outputs_of_size(dataset, model, spec_of(estimator), plan, size)
        models[size] = data.in_pipeline(with_model(estimator, dataset, model))
        now = time.perf_counter()
        seconds[size], start = now - start, now
        if report is not None:
            report(f"all rows, {size} vectors")
    return dict(sorted(models.items())), dict(sorted(seconds.items()))
