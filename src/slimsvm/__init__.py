"""Support vector machines that stay small."""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .estimators import (
    SVC,
    SVR,
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimOneClass,
    SlimSVC,
    SlimSVR,
    compress,
)
from .export import to_c, to_micropython, to_onnx, to_sklearn
from .frontier import Frontier, frontier
from .parts import bases, kernels, losses, regularizers, slacks
from .patching import patch_sklearn, unpatch_sklearn
from .persistence import load, save
from .predictor import Predictor
from .versions import show_versions

if TYPE_CHECKING:
    from . import report
    from .plotting import CalibrationDisplay, FrontierDisplay, VectorsDisplay

__version__ = version("slimsvm")

# The parts are public under short names: slimsvm.slacks is slimsvm.parts.slacks.
for _part in (bases, kernels, losses, regularizers, slacks):
    sys.modules[f"{__name__}.{_part.__name__.rpartition('.')[2]}"] = _part

# Loaded when they are asked for: most programs train or predict, and draw nothing.
_LATER = {name: f".{name}" for name in ("plotting", "report")}
_LATER |= dict.fromkeys(("CalibrationDisplay", "FrontierDisplay", "VectorsDisplay"), ".plotting")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_LATER[name], __name__)
    return module if _LATER[name] == f".{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "SVC",
    "SVR",
    "AnyNormSVC",
    "BudgetSVC",
    "CalibrationDisplay",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "EmpiricalSVC",
    "Frontier",
    "FrontierDisplay",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Predictor",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimOneClass",
    "SlimSVC",
    "SlimSVR",
    "VectorsDisplay",
    "__version__",
    "bases",
    "compress",
    "frontier",
    "kernels",
    "load",
    "losses",
    "patch_sklearn",
    "regularizers",
    "report",
    "save",
    "show_versions",
    "slacks",
    "to_c",
    "to_micropython",
    "to_onnx",
    "to_sklearn",
    "unpatch_sklearn",
]
