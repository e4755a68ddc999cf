"""scikit-learn estimators: thin recipes over the solvers. Nothing outside this package knows scikit-learn."""

from .any_norm import AnyNormSVC
from .budget import BudgetSVC
from .least_one_norm import LeastOneNormSVC
from .least_squares import LeastSquaresSVC

ALL = (AnyNormSVC, BudgetSVC, LeastOneNormSVC, LeastSquaresSVC)

__all__ = ["ALL", "AnyNormSVC", "BudgetSVC", "LeastOneNormSVC", "LeastSquaresSVC"]
