"""scikit-learn estimators: thin recipes over the solvers. Elsewhere only scikit-learn's k-means is used."""

from .any_norm import AnyNormSVC
from .empirical import EmpiricalSVC
from .lp import LpSVC
from .reduced import ReducedSVC
from .relevance import RelevanceVectorClassifier
from .slim import SlimSVC

ALL = (SlimSVC, AnyNormSVC, EmpiricalSVC, ReducedSVC, LpSVC, RelevanceVectorClassifier)

__all__ = ["ALL", "AnyNormSVC", "EmpiricalSVC", "LpSVC", "ReducedSVC", "RelevanceVectorClassifier", "SlimSVC"]
