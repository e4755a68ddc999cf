"""Compression of a fitted model: many vectors become few.

The initial vectors are a reduced set (`basis.reduced_set`): the expansion nearest to the original in the kernel's
space. Then vectors and coefficients are trained (`basis.distillation`) on the original's decision values (at its
vectors, or at rows X) or on the labels y of rows X, with a penalty on the distance to the original.

An `Original` is the model to compress, independent of any estimator. Its task (classification, regression or one class)
turns decision values into predictions, and into training targets for the compressed model.
"""

from .holdout import small_model_by_holdout
from .methods import METHODS, Compressor, RegressionRefit
from .original import Original, distinct_rows, has_labels, target_columns
from .report import Compression
from .sizes import SmallModel, small_model

__all__ = [
    "METHODS",
    "Compression",
    "Compressor",
    "Original",
    "RegressionRefit",
    "SmallModel",
    "distinct_rows",
    "has_labels",
    "small_model",
    "small_model_by_holdout",
    "target_columns",
]
