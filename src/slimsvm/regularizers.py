"""The public name of `slimsvm.problem.regularizers`."""

import sys

from .problem import regularizers
from .problem.regularizers import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = regularizers
