"""The classes of slimsvm under their names in `sklearn.svm`: programs that import them from there get these."""

from __future__ import annotations

import sys
from typing import Any

import sklearn.svm

from . import FAMILY

_CLASSES = {kind.__name__: kind for kind in FAMILY}
_SKLEARN_CLASSES: dict[str, Any] = {name: getattr(sklearn.svm, name) for name in _CLASSES}


def patch_sklearn() -> None:
    """Put `SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM` of slimsvm into `sklearn.svm`.

    From then on ``from sklearn.svm import SVC`` and ``sklearn.svm.SVC(...)`` are ours, in this process, in every module
    that looks there. Call it before the imports of the program that is to use them. A second call changes nothing;
    `unpatch_sklearn` puts scikit-learn's own classes back.

    Notes
    -----
    What is not reached: names that were imported before (``from sklearn.svm import SVC`` in a module that is loaded
    already), objects that were made before, `sklearn.svm._classes`, which is where pickles of scikit-learn's machines
    find their classes, and processes that are started afresh (workers of joblib's loky, of dask), which call it
    themselves. Objects made while it is in force are pickled as those of slimsvm. `LinearSVC`, `LinearSVR` and
    `l1_min_c` stay scikit-learn's.

    Examples
    --------
    >>> import slimsvm
    >>> slimsvm.patch_sklearn()
    >>> from sklearn.svm import SVC
    >>> SVC is slimsvm.SVC
    True
    >>> slimsvm.unpatch_sklearn()
    >>> from sklearn.svm import SVC
    >>> SVC is slimsvm.SVC
    False
    """
    _set_names(_CLASSES)


def unpatch_sklearn() -> None:
    """Put scikit-learn's own classes back into `sklearn.svm`; see `patch_sklearn`."""
    _set_names(_SKLEARN_CLASSES)


def _set_names(classes: dict[str, Any]) -> None:
    module = sys.modules["sklearn.svm"]
    for name, kind in classes.items():
        setattr(module, name, kind)
