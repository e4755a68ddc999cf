"""Dekel & Singer: any slack norm, and budgets."""

from __future__ import annotations

from .recipe import Paper, Recipe

PAPER = Paper("dekel_singer", "Dekel & Singer", "Support Vector Machines on a Budget", "NIPS 19", 2006)

RECIPES: tuple[Recipe, ...] = ()
