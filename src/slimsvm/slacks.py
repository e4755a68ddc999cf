"""The public name of `slimsvm.problem.slacks`."""

import sys

from .problem import slacks
from .problem.slacks import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = slacks
