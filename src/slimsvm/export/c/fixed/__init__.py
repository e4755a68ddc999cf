"""A quantised model as a C header, with the integer arithmetic of `slimsvm.quantization.quantized`."""

from .header import write

__all__ = ["write"]
