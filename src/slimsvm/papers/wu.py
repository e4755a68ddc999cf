"""Wu, Schölkopf & Bakir: vectors that are learned."""

from __future__ import annotations

from .recipe import Paper, Recipe

PAPER = Paper("wu", "Wu, Schölkopf & Bakir", "Building Sparse Large Margin Classifiers", "ICML", 2005)

RECIPES: tuple[Recipe, ...] = ()
