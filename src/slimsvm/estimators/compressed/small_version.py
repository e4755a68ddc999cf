"""`compress`: a fitted estimator becomes a compressed one."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ...compression.tasks import Classification, OneClass, Regression
from ...utils.warnings import warn
from ..adapters import SourceModel, source_model
from ..base import COLUMNS_KNOWN
from ..documentation import documented
from .classifier import CompressedClassifier
from .outliers import CompressedOutlierDetector
from .regressor import CompressedRegressor
from .training import check_params, compress_source

ESTIMATORS: dict[type, Any] = {
    Classification: CompressedClassifier,
    Regression: CompressedRegressor,
    OneClass: CompressedOutlierDetector,
}
MAX_DISTANCE = 0.3  # of a norm: values that are this far off elsewhere are of little use


@source_model.register(CompressedClassifier)
@source_model.register(CompressedRegressor)
@source_model.register(CompressedOutlierDetector)
def _compressed(model: Any) -> SourceModel:
    """A compressed model can be compressed further."""
    state = vars(model)
    return SourceModel(model._expansion(), model._goal, model._cost, state.get("classes_"), state.get("_single", True))


@documented
def compress(
    model: Any,
    n_vectors: Any,
    X: Any = None,
    y: Any = None,
    *,
    fit_to: str = "auto",
    method: str = "auto",
    agreement: float = 0.99,
    probability: bool = False,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """A small version of a fitted support vector machine.

    Parameters
    ----------
    model : fitted estimator
        `SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM` of scikit-learn, any estimator of this library, or a `Pipeline`
        that ends in one of them. It is not changed.
    <n_vectors_kept>
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows like those that will be predicted: the training rows, or others. Labels are not needed. They go through
        the earlier steps of a pipeline.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Labels or target values of X: the small model is trained on them again, as ``fit_to`` says.
    <fit_to>
    <compress_method>
    <agreement>
    <compressed_probability>
    sample_weight : array-like of shape (n_samples,), optional
        How often each row of X counts.
    <random_state>
    <n_jobs>
    <verbose>

    Returns
    -------
    `CompressedClassifier`, `CompressedRegressor` or `CompressedOutlierDetector`, fitted; or a `Pipeline` with the same
    earlier steps and one of these as the last. Its report is ``compression_``.

    See Also
    --------
    CompressedClassifier : Fits a machine and compresses it, for cross-validation.
    SlimSVC : Learns few vectors from the rows, without a large machine.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from slimsvm import compress
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svc = SVC(gamma=2.0).fit(X, y)
    >>> small = compress(svc, 8)
    >>> small.n_vectors_, bool((small.predict(X) == svc.predict(X)).mean() > 0.97)
    (8, True)
    """
    options = {
        "n_vectors": n_vectors,
        "fit_to": fit_to,
        "method": method,
        "agreement": agreement,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
    if isinstance(model, Pipeline):
        earlier, (name, last) = model[:-1], model.steps[-1]
        if X is not None and len(earlier):
            X = earlier.transform(X)
        small = compress(last, X=X, y=y, probability=probability, sample_weight=sample_weight, **options)
        return Pipeline([*model.steps[:-1], (name, small)], memory=model.memory, verbose=model.verbose)
    source = source_model(model)
    small = ESTIMATORS[type(source.task)](clone(model), **options)
    if type(source.task) is Classification:
        small.probability = probability
    elif probability:
        raise ValueError(f"probability={probability!r} is for classifiers; {type(small).__name__} has no classes")
    check_params(small)
    vars(small).update({name: value for name, value in vars(model).items() if name in COLUMNS_KNOWN})
    small._set_compressed(compress_source(small, source, X, y, sample_weight))
    distance = small.compression_.distance
    if X is None and type(source.task) is Regression and distance > MAX_DISTANCE:
        warn(
            f"the small model is {distance:.2f} of the original's norm away from it, and without "
            "rows only its own vectors could be looked at: pass rows like those to be predicted, compress(model, "
            "n_vectors, X), or keep more vectors"
        )
    return small
