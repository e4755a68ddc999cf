"""Huang, Zheng, King & Lyu: machines whose coefficients have a small Lp norm."""

from .figure_5 import FIGURE_5
from .paper import PAPER
from .pictures import FIGURE_1
from .ripley import FIGURE_3, FIGURE_4, TABLE_1, TABLE_2
from .table_4 import TABLE_4
from .table_5 import TABLE_5

RECIPES = (TABLE_1, TABLE_2, TABLE_4, TABLE_5, FIGURE_1, FIGURE_3, FIGURE_4, FIGURE_5)

__all__ = ["PAPER", "RECIPES"]
