"""Compression of fitted models, and estimators that fit a model and compress it."""

from .classifier import CompressedClassifier
from .outliers import CompressedOutlierDetector
from .regressor import CompressedRegressor
from .small_version import compress

__all__ = ["CompressedClassifier", "CompressedOutlierDetector", "CompressedRegressor", "compress"]
