"""Support vector machines that stay small."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from . import (
        bases,
        kernels,
        losses,
        regularizers,
        report,
        slacks,
    )
    from . import (
        compression as compression,
    )
    from . import (
        export as export,
    )
    from . import (
        formulation as formulation,
    )
    from . import (
        persistence as persistence,
    )
    from . import (
        plotting as plotting,
    )
    from . import (
        rows as rows,
    )
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
    from .estimators.patching import patch_sklearn, unpatch_sklearn
    from .export import to_c, to_micropython, to_onnx, to_sklearn
    from .frontiers import Frontier
    from .frontiers import frontier as frontier
    from .model.predictor import Predictor
    from .persistence import load, save
    from .plotting import CalibrationDisplay, FrontierDisplay, VectorsDisplay
    from .utils.versions import show_versions

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

# Where public names are, but for estimators and modules. Each is imported when it is first used, so that the command
# line answers `--version` and `--help` without scikit-learn.
_HOMES = {
    "CalibrationDisplay": "plotting",
    "Frontier": "frontiers",
    "FrontierDisplay": "plotting",
    "Predictor": "model.predictor",
    "VectorsDisplay": "plotting",
    "frontier": "frontiers",
    "load": "persistence",
    "patch_sklearn": "estimators.patching",
    "save": "persistence",
    "show_versions": "utils.versions",
    "to_c": "export",
    "to_micropython": "export",
    "to_onnx": "export",
    "to_sklearn": "export",
    "unpatch_sklearn": "estimators.patching",
}
_MODULES = (
    "bases",
    "compression",
    "estimators",
    "export",
    "formulation",
    "kernels",
    "losses",
    "persistence",
    "plotting",
    "regularizers",
    "report",
    "rows",
    "slacks",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        value = import_module("importlib.metadata").version("slimsvm")
    else:
        value = getattr(import_module(f".{_HOMES.get(name, 'estimators')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
