"""Models that leave Python: C headers, ONNX, other libraries' objects, and the integers that a device holds."""

from .c import CReport, CSource, to_c
from .onnx import to_onnx
from .quantize import Quantized, quantize
from .sklearn import to_sklearn

__all__ = ["CReport", "CSource", "Quantized", "quantize", "to_c", "to_onnx", "to_sklearn"]
