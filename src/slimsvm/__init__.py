"""Support vector machines that stay small."""

import sys
from importlib.metadata import version

from .estimators import (
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    compress,
)
from .frontier import Frontier, frontier
from .parts import bases, kernels, losses, regularizers, slacks
from .versions import show_versions

__version__ = version("slimsvm")

# The parts are public under short names: slimsvm.slacks is slimsvm.parts.slacks.
for _part in (bases, kernels, losses, regularizers, slacks):
    sys.modules[f"{__name__}.{_part.__name__.rpartition('.')[2]}"] = _part

__all__ = [
    "AnyNormSVC",
    "BudgetSVC",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "EmpiricalSVC",
    "Frontier",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimSVC",
    "__version__",
    "bases",
    "compress",
    "frontier",
    "kernels",
    "losses",
    "regularizers",
    "show_versions",
    "slacks",
]
