"""Accuracy against size: the curve of models of several sizes, and its plot."""

from .compute import frontier
from .result import Frontier

__all__ = ["Frontier", "frontier"]
