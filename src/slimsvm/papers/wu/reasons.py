"""Why cells of Table 1 differ from the paper."""

from __future__ import annotations

from ..recipe import Cell

REASONS: dict[Cell, str] = {}
