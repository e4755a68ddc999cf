"""Models that leave Python: C headers, MicroPython, and the integers that a device holds."""

from .c import CReport, CSource, to_c
from .micropython import to_micropython
from .quantize import Quantized, quantize

__all__ = ["CReport", "CSource", "Quantized", "quantize", "to_c", "to_micropython"]
