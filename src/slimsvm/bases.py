"""The public name of `slimsvm.problem.bases`."""

import sys

from .problem import bases
from .problem.bases import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = bases
