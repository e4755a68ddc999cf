"""One small adapter per library: how to fit it, where its signed duals are, how to predict.

All get C, gamma, tol = 1e-3 and the same cache; data are brought into the form that a library wants before
its clock starts.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray

TOL = 1e-3
CACHE_MB = 400


class Adapter:
    """scikit-learn's interface; the other adapters say where they differ."""

    def __init__(self, n_jobs: int, cache_mb: float = CACHE_MB):
        self.n_jobs = n_jobs
        self.cache_mb = cache_mb

    def training_rows(self, X: Any) -> Any:
        """Float64 rows in the form that fit takes; not timed."""
        return X

    def new_rows(self, X: Any) -> Any:
        """Float64 or float32 rows in the form that predict takes; not timed."""
        return X

    def fit(self, X: Any, y: Array, C: float, gamma: float) -> Any:
        """The fitted model; timed."""
        from sklearn.svm import SVC

        return SVC(C=C, gamma=gamma, tol=TOL, cache_size=self.cache_mb).fit(X, y)

    def duals(self, model: Any, n: int) -> Array:
        """y_i alpha_i of every training row, in float64."""
        return scatter(n, model.support_, model.dual_coef_)

    def predict(self, model: Any, X: Any) -> Any:
        """Labels; timed."""
        return model.predict(X)


class SlimSVM(Adapter):
    """This library."""

    def __init__(self, n_jobs: int, precision: str):
        super().__init__(n_jobs)
        self.precision = precision

    def fit(self, X: Any, y: Array, C: float, gamma: float) -> Any:
        from slimsvm import AnyNormSVC

        model = AnyNormSVC(
            C=C, gamma=gamma, tol=TOL, cache_size=self.cache_mb, precision=self.precision, n_jobs=self.n_jobs
        )
        return model.fit(X, y)

    def duals(self, model: Any, n: int) -> Array:
        return scatter(n, model.support_, model.vector_coef_)


class Intelex(Adapter):
    """scikit-learn-intelex, certain to run on oneDAL."""

    def __init__(self, n_jobs: int, dtype: Any):
        import daal4py

        super().__init__(n_jobs)
        self.dtype = dtype
        daal4py.daalinit(n_jobs)

    def training_rows(self, X: Any) -> Any:
        return X.astype(self.dtype, copy=False)

    def fit(self, X: Any, y: Array, C: float, gamma: float) -> Any:
        from sklearnex.svm import SVC

        model = SVC(C=C, gamma=gamma, tol=TOL, cache_size=self.cache_mb, n_jobs=self.n_jobs).fit(X, y)
        if not hasattr(model, "_onedal_estimator"):
            raise RuntimeError("scikit-learn-intelex fell back to scikit-learn: this is not oneDAL's time")
        return model


class LibSVM(Adapter):
    """LIBSVM through its own Python binding.

    The fit includes the binding's copy of CSR rows into LIBSVM's nodes, as scikit-learn's has its own.
    Prediction calls the C function on nodes built beforehand: the binding builds them one number at a time.
    """

    def training_rows(self, X: Any) -> Any:
        return sp.csr_matrix(X)

    def new_rows(self, X: Any) -> Any:
        from libsvm import svmutil

        return svmutil.svm_problem(np.zeros(X.shape[0]), sp.csr_matrix(X, dtype=np.float64))

    def fit(self, X: Any, y: Array, C: float, gamma: float) -> Any:
        from libsvm import svmutil

        options = f"-q -s 0 -t 2 -c {C!r} -g {gamma!r} -e {TOL} -m {self.cache_mb}"
        return svmutil.svm_train(y.astype(np.float64), X, options)

    def duals(self, model: Any, n: int) -> Array:
        first_label = model.get_labels()[0]  # LIBSVM counts the label it met first as +1
        support = np.array(model.get_sv_indices()) - 1
        return first_label * scatter(n, support, np.array(model.get_sv_coef()).T)

    def predict(self, model: Any, X: Any) -> Any:
        from libsvm import svmutil

        return [svmutil.libsvm.svm_predict(model, X.x[i]) for i in range(X.l)]


def scatter(n: int, support: Array, coef: Any) -> Array:
    """Coefficients at their rows, 0 elsewhere."""
    duals = np.zeros(n)
    duals[support] = (coef.toarray() if sp.issparse(coef) else np.asarray(coef))[0]
    return duals


@dataclass(frozen=True)
class Competitor:
    """One line of the table of competitors."""

    name: str
    title: str
    package: str  # as installed
    module: str  # as imported
    make: Callable[..., Adapter]
    threads: bool = False  # has an n_jobs to speak of
    default: bool = True

    def missing(self) -> str | None:
        """Why it can not run, or None."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.title} is skipped: `{self.module}` is not there; pip install {self.package}"
        return None

    def version(self) -> str:
        return f"{self.package} {importlib.metadata.version(self.package)}"


slim, intelex = ("slimsvm", "slimsvm"), ("scikit-learn-intelex", "sklearnex")
COMPETITORS = {
    competitor.name: competitor
    for competitor in [
        Competitor("slimsvm", "slimsvm", *slim, partial(SlimSVM, precision="float32"), threads=True),
        Competitor("slimsvm64", "slimsvm, float64 rows", *slim, partial(SlimSVM, precision="float64"), threads=True),
        Competitor("svc", "SVC", "scikit-learn", "sklearn", Adapter),
        Competitor("svc200", "SVC, 200 MB", "scikit-learn", "sklearn", partial(Adapter, cache_mb=200), default=False),
        Competitor("libsvm", "LIBSVM", "libsvm-official", "libsvm", LibSVM),
        Competitor("intelex64", "intelex float64", *intelex, partial(Intelex, dtype=np.float64), threads=True),
        Competitor("intelex32", "intelex float32", *intelex, partial(Intelex, dtype=np.float32), threads=True),
    ]
}
