"""Models that leave Python: C, MicroPython, ONNX, scikit-learn, integers for a device."""

from ..quantization.quantize import quantize
from ..quantization.quantized import Quantized
from .c import CReport, CSource, to_c
from .micropython import to_micropython
from .onnx import to_onnx
from .sklearn import to_sklearn

__all__ = ["CReport", "CSource", "Quantized", "quantize", "to_c", "to_micropython", "to_onnx", "to_sklearn"]
