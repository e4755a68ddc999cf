"""Pictures as scikit-learn draws them: a Display holds the data, `plot` draws it; needs matplotlib."""

from ..frontiers.display import FrontierDisplay
from .calibration import CalibrationDisplay
from .vectors import VectorsDisplay

__all__ = ["CalibrationDisplay", "FrontierDisplay", "VectorsDisplay"]
