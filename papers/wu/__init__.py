"""Wu, Schölkopf & Bakir: vectors that are learned."""

from __future__ import annotations

from .beyond import BEYOND
from .figure_1 import FIGURE_1
from .settings import PAPER, SETTINGS
from .table_1 import TABLE_1
from .times import TIMES

__all__ = ["PAPER", "RECIPES", "SETTINGS"]

RECIPES = (TABLE_1, FIGURE_1, TIMES, BEYOND)
