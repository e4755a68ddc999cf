"""`SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM` of `sklearn.svm`: the same constructors, attributes and behaviour,
over our solvers."""

from .classifiers import SVC, NuSVC
from .one_class import OneClassSVM
from .regressors import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
