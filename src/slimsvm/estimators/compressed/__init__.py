"""Compression of fitted machines, and estimators that fit one and keep the small version."""

from .classifier import CompressedClassifier
from .outliers import CompressedOutlierDetector
from .regressor import CompressedRegressor
from .small_version import compress

__all__ = ["CompressedClassifier", "CompressedOutlierDetector", "CompressedRegressor", "compress"]
