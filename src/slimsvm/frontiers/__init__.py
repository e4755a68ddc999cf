"""Accuracy against size: models of several sizes, and their plot."""

from .compute import frontier
from .result import Frontier

__all__ = ["Frontier", "frontier"]
