"""Displays as in scikit-learn: one holds the data, `plot` draws it with matplotlib."""

from ..frontiers.display import FrontierDisplay
from .calibration import CalibrationDisplay
from .vectors import VectorsDisplay

__all__ = ["CalibrationDisplay", "FrontierDisplay", "VectorsDisplay"]
