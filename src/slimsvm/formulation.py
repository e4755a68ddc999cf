"""The public name of `slimsvm.problem.formulation`."""

import sys

from .problem import formulation
from .problem.formulation import *  # noqa: F403  # what type checkers see

sys.modules[__name__] = formulation
