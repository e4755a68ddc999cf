"""Compression of a fitted model: many vectors become few.

The vectors start as a reduced set (`vectors.reduced_set`): the expansion nearest to the original in the kernel's space.
They are then taught (`vectors.teaching`), near the original, what is known of its decisions: the values that it gives
to its own vectors, to rows X, or the labels y of those.

An `Original` is what is to be made small, whatever it was before; its goal says what its values mean, and so which
intervals the small machine is taught. Nothing here knows an estimator.
"""

from .holdout import agreeing_on_unseen
from .methods import METHODS, Compressor, Relearned
from .original import Original, WeightedRows, in_columns
from .report import Compression
from .sizes import small_version

__all__ = [
    "METHODS",
    "Compression",
    "Compressor",
    "Original",
    "Relearned",
    "WeightedRows",
    "agreeing_on_unseen",
    "in_columns",
    "small_version",
]
