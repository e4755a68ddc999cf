"""Support vector machines that stay small."""

from importlib.metadata import version

from . import kernels, slacks
from .estimators import AnyNormSVC, BudgetSVC, LeastOneNormSVC, LeastSquaresSVC

__version__ = version("slimsvm")

__all__ = ["AnyNormSVC", "BudgetSVC", "LeastOneNormSVC", "LeastSquaresSVC", "__version__", "kernels", "slacks"]
