"""Why numbers of ours differ from the paper's, by table, set and column."""

from __future__ import annotations

from ..recipe import Cell

REASONS: dict[int, dict[Cell, str]] = {}
