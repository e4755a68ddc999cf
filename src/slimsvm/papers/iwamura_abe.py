"""Iwamura & Abe: few independent rows as a basis."""

from __future__ import annotations

from .recipe import Paper, Recipe

PAPER = Paper(
    "iwamura_abe",
    "Iwamura & Abe",
    "Sparse Support Vector Machines Trained in the Reduced Empirical Feature Space",
    "IJCNN",
    2008,
)

RECIPES: tuple[Recipe, ...] = ()
