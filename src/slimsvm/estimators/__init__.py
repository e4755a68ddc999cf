"""scikit-learn estimators: thin recipes over the solvers. Elsewhere only scikit-learn's k-means is used."""

from .any_norm import AnyNormSVC
from .empirical import EmpiricalSVC
from .reduced import ReducedSVC
from .slim import SlimSVC

ALL = (SlimSVC, AnyNormSVC, EmpiricalSVC, ReducedSVC)

__all__ = ["ALL", "AnyNormSVC", "EmpiricalSVC", "ReducedSVC", "SlimSVC"]
