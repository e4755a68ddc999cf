"""The public name of `slimsvm.problem.kernels`."""

import sys

from .problem import kernels
from .problem.kernels import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = kernels
