"""scikit-learn estimators: thin recipes over the solvers. Nothing outside this package knows scikit-learn."""

from .any_norm import AnyNormSVC

ALL = (AnyNormSVC,)

__all__ = ["ALL", "AnyNormSVC"]
