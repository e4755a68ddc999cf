"""López & Dorronsoro: slacks that count on both sides."""

from __future__ import annotations

from .recipe import Paper, Recipe

PAPER = Paper(
    "lopez_dorronsoro",
    "López & Dorronsoro",
    "Least 1-Norm SVMs: a New SVM Variant between Standard and LS-SVMs",
    "ESANN",
    2010,
)

RECIPES: tuple[Recipe, ...] = ()
