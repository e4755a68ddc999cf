"""The public name of `slimsvm.problem.losses`."""

import sys

from .problem import losses
from .problem.losses import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = losses
