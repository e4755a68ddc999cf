"""scikit-learn estimators: check, one call, keep."""

from .any_norm import AnyNormSVC
from .budget import BudgetSVC
from .compressed import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor, compress
from .empirical import EmpiricalSVC
from .least_one_norm import LeastOneNormSVC
from .least_squares import LeastSquaresSVC
from .lp import LpSVC
from .one_class import SlimOneClass
from .reduced import ReducedSVC
from .relevance import RelevanceVectorClassifier
from .sklearn_svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from .slim import SlimSVC
from .slim_regressor import SlimSVR

ALL = (
    SlimSVC,
    AnyNormSVC,
    BudgetSVC,
    LeastSquaresSVC,
    LeastOneNormSVC,
    EmpiricalSVC,
    ReducedSVC,
    LpSVC,
    RelevanceVectorClassifier,
)

REGRESSORS = (SlimSVR,)

# Estimators of `sklearn.svm`, by their names there.
FAMILY = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)

# Estimators that fit another one.
COMPRESSED = (CompressedClassifier, CompressedRegressor, CompressedOutlierDetector)

# Estimators that find outliers.
DETECTORS = (SlimOneClass,)

__all__ = [
    "ALL",
    "COMPRESSED",
    "DETECTORS",
    "FAMILY",
    "REGRESSORS",
    "SVC",
    "SVR",
    "AnyNormSVC",
    "BudgetSVC",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "EmpiricalSVC",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimOneClass",
    "SlimSVC",
    "SlimSVR",
    "compress",
]
