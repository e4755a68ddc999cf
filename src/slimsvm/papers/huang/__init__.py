"""Huang, Zheng, King & Lyu: machines whose coefficients have a small Lp norm."""

from .paper import PAPER
from .pictures import FIGURE_1
from .ripley import FIGURE_3, FIGURE_4, TABLE_1, TABLE_2

RECIPES = (TABLE_1, TABLE_2, FIGURE_1, FIGURE_3, FIGURE_4)

__all__ = ["PAPER", "RECIPES"]
