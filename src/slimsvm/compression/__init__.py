"""Compression of a fitted model: many vectors become few.

The vectors start as a reduced set (`basis.reduced_set`): the expansion nearest to the original in the kernel's space.
Then vectors and coefficients are trained (`basis.distillation`), with a penalty for leaving the original, on its own
decision values (at its vectors, or at rows X) or on the labels y of those rows.

An `Original` is the model to be compressed, whatever estimator it comes from; its task says what its decision values
mean, and so which targets a compressed model has. Nothing here knows an estimator.
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
