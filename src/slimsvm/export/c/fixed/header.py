"""Writes the C header of a quantised model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....quantization.quantized import Quantized
from ..text import ROM, HeaderWriter
from . import labels, values
from .rows import add_inputs
from .sums import add_kernel, add_products


def write(model: Quantized, name: str, about: str) -> HeaderWriter:
    """The C header of a quantised model."""
    out, grid = HeaderWriter(name), model.grid
    out.add(about)
    out.add("""
#ifndef @@_H
#define @@_H

#include <stdint.h>
#include <string.h>
""")
    out.lines.append("\n")
    numbers = {"INPUTS": grid.inputs, "USED": len(grid.used), "VECTORS": len(model.vectors), "VALUES": len(model.bias)}
    if model.classes is not None:
        pairs = model.shown is not None and model.shown.pairs
        numbers |= {"CLASSES": len(model.classes), "OUTPUTS": len(model.classes) if pairs else len(model.bias)}
    out.define(**numbers)
    out.add(ROM)
    out.lines.append("\n")
    add_inputs(out, grid)
    add_sums: Callable[[HeaderWriter, Any], None] = add_products if model.is_linear else add_kernel
    add_sums(out, model)
    (values if model.classes is None else labels).add_answers(out, model)
    out.add("\n#endif /* @@_H */")
    return out
