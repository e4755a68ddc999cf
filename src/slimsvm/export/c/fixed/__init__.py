"""A quantised model as a C header: the integers of `slimsvm.quantization.quantized`, and what it computes with them."""

from .header import write

__all__ = ["write"]
