"""scikit-learn estimators: thin recipes over the solvers. Elsewhere only scikit-learn's k-means is used."""

from .any_norm import AnyNormSVC
from .budget import BudgetSVC
from .compressed import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor, compress
from .empirical import EmpiricalSVC
from .least_one_norm import LeastOneNormSVC
from .least_squares import LeastSquaresSVC
from .lp import LpSVC
from .reduced import ReducedSVC
from .relevance import RelevanceVectorClassifier
from .slim import SlimSVC

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

# Estimators that fit another one.
COMPRESSED = (CompressedClassifier, CompressedRegressor, CompressedOutlierDetector)

__all__ = [
    "ALL",
    "COMPRESSED",
    "AnyNormSVC",
    "BudgetSVC",
    "CompressedClassifier",
    "CompressedOutlierDetector",
    "CompressedRegressor",
    "EmpiricalSVC",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimSVC",
    "compress",
]
