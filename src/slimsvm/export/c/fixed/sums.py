"""C functions for the sums of a quantised model: distances, kernel values, products with coefficients."""

from __future__ import annotations

from ....quantization.grid import MAX_DISTANCE
from ....quantization.integers import HALF_POWERS
from ....quantization.quantized import Quantized, QuantizedKernel
from ..text import HeaderWriter


def with_16_places(size: str, places: int) -> str:
    """The C expression of a number with ``places`` binary places, rounded to 16 places."""
    if places > 16:
        return f"({size} + {1 << (places - 17)}u) >> {places - 16}"
    return f"{size} << {16 - places}" if places < 16 else size


def add_power_of_half(out: HeaderWriter) -> None:
    out.table("uint16_t", "halves", HALF_POWERS, "2^-x for x = 0, 1/64 .. 1, in 15 bits.", 2)
    out.add(f"""
/* 2^-D in 15 bits, for D in units of 2^-16, below {MAX_DISTANCE}. */
static inline uint32_t @_power_of_half(uint32_t d)
{{
    const uint32_t whole = d >> 16, place = (d >> 10) & 63u, rest = d & 1023u;
    const uint32_t high = @@_UINT16(@_halves[place]), low = @@_UINT16(@_halves[place + 1u]);
    const uint32_t value = high - (((high - low) * rest + 512u) >> 10);
    return (value + (((uint32_t)1 << whole) >> 1)) >> whole;
}}
""")
    out.lines.append("\n")


def add_kernel(out: HeaderWriter, model: QuantizedKernel) -> None:
    layer, grid = model.layer, model.grid
    if len(model.vectors):
        out.table("int8_t", "vectors", model.vectors, "A row for each vector.", 1)
        out.table("int16_t", "coef", model.coef.T, "A row for each vector: its coefficients, one for each value.", 2)
        if layer is not None:
            out.table("int16_t", "layer_coef", layer.coef.T, "Coefficients of the logarithms of odds.", 2)
    _add_biases(out, model)
    add_power_of_half(out)
    unit, limit = model.unit, MAX_DISTANCE << model.unit
    scale = with_16_places("d", unit)
    shift = "(@@_UINT16(@_steps[n]) >> 13)" if grid.gain_bytes == 2 else str(int(grid.shift[0]))
    text = "    (void)u;\n"
    if len(model.vectors):
        _add_distance(out, model.power, shift, limit)
        text = f"""    for (int j = 0; j < @@_VECTORS; ++j) {{
        const uint32_t d = @_distance(u, &@_vectors[j * @@_USED]);
        int32_t k;
        if (d == {limit}u) continue;
        k = (int32_t)@_power_of_half({scale});
"""
        for target, count, prefix, optional in _targets(model):
            add = f"{target}[o] += (int32_t)@@_INT16(@_{prefix}coef[j * {count} + o]) * k;"
            text += f"        {_each(count, add, optional)}\n"
        text += "    }\n"
    _add_sums(out, model, text)


def _add_distance(out: HeaderWriter, power: int, shift: str, limit: int) -> None:
    """Add the sum of squares (or absolute values); an early exit would cost 64-bit processors more than the sum."""
    apart = "(uint32_t)@@_INT8(z[n])" if shift == "0" else f"((uint32_t)@@_INT8(z[n]) << {shift})"
    # Compilers vectorise a loop with a common shift; with a shift per input, counting down gives shorter code.
    order = "int n = 0; n < @@_USED; ++n" if shift.isdigit() else "int n = @@_USED; n-- > 0;"
    # A signed difference has 17 bits and its square at most 32: unsigned arithmetic gives the exact square.
    size = "t * t" if power == 2 else "(t >> 31 ? (uint32_t)0 - t : t)"
    out.add(f"""
/* The distance to a vector. From the limit on the kernel is 0, and it is the limit. */
static inline uint32_t @_distance(const int16_t u[@@_USED], const int8_t *z)
{{
#if UINTPTR_MAX > 0xFFFFFFFFu
    uint64_t d = 0;
    for ({order}) {{
        const uint32_t t = (uint32_t)u[n] - {apart};
        d += {size};
    }}
    return d < {limit}u ? (uint32_t)d : {limit}u;
#else
    /* Counted from minus the limit up, the sum overflows where it reaches the limit. */
    uint32_t d = (uint32_t)0 - {limit}u;
    for (int n = 0; n < @@_USED; ++n) {{
        const uint32_t t = (uint32_t)u[n] - {apart}, s = {size};
        d += s;
        if (d < s) return {limit}u;
    }}
    return d + {limit}u;
#endif
}}
""")
    out.lines.append("\n")


def add_products(out: HeaderWriter, model: Quantized) -> None:
    out.table("int16_t", "weights", model.vectors, "A row for each value: the weights of the inputs.", 2)
    if model.layer is not None:
        out.table("int16_t", "layer_weights", model.layer.coef, "The same for the logarithms of odds.", 2)
    _add_biases(out, model)
    text = ""
    for target, count, prefix, optional in _targets(model):
        product = f"{target}[o] += (int32_t)@@_INT16(@_{prefix}weights[o * @@_USED + n]) * (int32_t)u[n];"
        inner = f"{{\n        for (int n = 0; n < @@_USED; ++n)\n            {product}\n    }}"
        text += f"    {_each(count, inner, optional)}\n"
    _add_sums(out, model, text)


def _targets(model: Quantized) -> list[tuple[str, str, str, bool]]:
    """The sums to compute: their array, number, prefix of their tables, and whether they are optional."""
    odds = [] if model.layer is None else [("l", str(len(model.layer.bias)), "layer_", True)]
    return [("v", "@@_VALUES", "", False), *odds]


def _each(count: str, statement: str, optional: bool) -> str:
    """A C statement for each sum o; optional sums (log-odds) only if requested."""
    return f"{'if (l) ' if optional else ''}for (int o = 0; o < {count}; ++o) {statement}"


def _add_biases(out: HeaderWriter, model: Quantized) -> None:
    if model.classes is None:
        out.table("int32_t", "bias", model.bias, "Added to the sums once these are in steps of 2^-places.", 4)
        places = model.exponent.astype(int) + model.bits - model.shift
        out.table("int8_t", "places", places, "A value stands for value * 2^-places.", 1)
        out.table("uint8_t", "shift", model.shift, "Digits of the sums that are rounded off.", 1)
        return
    out.table("int32_t", "bias", model.bias, "In the units of the sums.", 4)
    out.table("int8_t", "exponent", model.exponent, "A sum stands for sum * 2^-(exponent + bits).", 1)
    if model.layer is not None:
        out.table("int32_t", "layer_bias", model.layer.bias, "Biases of the logarithms of odds.", 4)


def _add_sums(out: HeaderWriter, model: Quantized, text: str) -> None:
    if model.classes is None:
        begin = f"    {_each('@@_VALUES', 'v[o] = 0;', False)}\n"
        what = "Sums of the values, exact, without the biases."
    else:
        begin = "".join(
            f"    {_each(count, f'{target}[o] = @@_INT32(@_{prefix}bias[o]);', optional)}\n"
            for target, count, prefix, optional in _targets(model)
        )
        what = "Sums of the binary problems, exact: two classes have one, several one for each pair or each class."
    odds = "" if model.layer is None else f", int64_t l[{len(model.layer.bias)}]"
    also = " With l\n   (or 0) the logarithms of odds, too." if odds else ""
    out.add(f"""
/* {what}{also} */
static inline void @_sums(const int16_t u[@@_USED], int64_t v[@@_VALUES]{odds})
{{
{begin}{text}}}
""")
    out.lines.append("\n")
