"""Support vector machines that stay small."""

from importlib.metadata import version

from . import bases, kernels, losses, regularizers, slacks
from .estimators import (
    AnyNormSVC,
    BudgetSVC,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
)

__version__ = version("slimsvm")

__all__ = [
    "AnyNormSVC",
    "BudgetSVC",
    "EmpiricalSVC",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimSVC",
    "__version__",
    "bases",
    "kernels",
    "losses",
    "regularizers",
    "slacks",
]
