"""Iwamura & Abe: few independent rows as a basis."""

from __future__ import annotations

from ..recipe import Recipe
from .choices import TABLE_2, TABLE_3, TABLE_10
from .figures import FIGURE_1, FIGURE_2
from .settings import PAPER
from .tables import TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8, TABLE_9, TABLE_11, TABLE_12, TABLE_13

__all__ = ["PAPER", "RECIPES"]

RECIPES: tuple[Recipe, ...] = (
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    TABLE_9,
    FIGURE_1,
    TABLE_10,
    TABLE_11,
    TABLE_12,
    TABLE_13,
    FIGURE_2,
)
