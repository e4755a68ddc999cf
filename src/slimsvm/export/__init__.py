"""Models that leave Python: the integers that a device holds."""

from .quantize import Quantized, quantize

__all__ = ["Quantized", "quantize"]
