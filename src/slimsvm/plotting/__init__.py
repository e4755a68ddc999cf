"""Pictures as scikit-learn draws them: a Display holds the data, `plot` draws it; needs matplotlib."""

from .calibration import CalibrationDisplay
from .frontier import FrontierDisplay
from .vectors import VectorsDisplay

__all__ = ["CalibrationDisplay", "FrontierDisplay", "VectorsDisplay"]
