"""A quantised model as a C header: the integers of `slimsvm.export.quantize`, and what it computes with them."""

from __future__ import annotations

import numpy as np

from ..grid import REACH, Grid, packed_inputs
from ..integers import TABLE
from ..quantize import Quantized, QuantizedKernel
from .text import ROM, Writer, add_labels, add_winner, real, shown_scores


def write(model: Quantized, name: str, about: str) -> Writer:
    """The header."""
    out, grid = Writer(name), model.grid
    out.add(about)
    out.add("""
#ifndef @@_H
#define @@_H

#include <stdint.h>
#include <string.h>
""")
    out.lines.append("\n")
    pairs = model.shown is not None and model.shown.pairs
    out.define(
        INPUTS=grid.inputs,
        USED=len(grid.used),
        VECTORS=len(model.vectors),
        VALUES=len(model.bias),
        CLASSES=len(model.classes),
        OUTPUTS=len(model.classes) if pairs else len(model.bias),
    )
    out.add(ROM)
    out.lines.append("\n")
    _add_inputs(out, grid)
    if isinstance(model, QuantizedKernel):
        _add_kernel(out, model)
    else:
        _add_products(out, model)
    _add_answers(out, model)
    out.add("\n#endif /* @@_H */")
    return out


# --- rows in integers -------------------------------------------------------------------------------------------------


def _add_inputs(out: Writer, grid: Grid) -> None:
    """A row in the units of the vectors: from floats, and from integers without any float."""
    some = len(grid.used) < grid.inputs
    if some:
        mask = np.packbits(np.isin(np.arange(grid.inputs), grid.used), bitorder="little")
        out.table("uint8_t", "counts", mask, "A bit for each input: does it count?", 1)
    own = grid.gain_bytes > 0
    if grid.gain_bytes == 2:
        packed, top = packed_inputs(grid)
        out.table(
            "uint16_t",
            "steps",
            packed,
            "For each input: 3 bits for the step of its bytes, 6 for how far the exponent of its gain is below the "
            "largest,\n   7 for the mantissa.",
            2,
        )
        gain = f"@_float(((uint32_t)({top + 127} - ((s >> 7) & 63)) << 23) | ((uint32_t)(s & 127u) << 16))"
    elif own:
        out.table("float", "gain", grid.gain, "For each input: an input x becomes (x - offset) * gain.", 4)
        gain = "@@_FLOAT(@_gain[n])"
    else:
        gain = real(grid.gain[0])
    if grid.offset_bytes == 2:
        out.table("uint16_t", "offset", grid.offset.view(np.uint32) >> 16, "Offsets, the upper half of floats.", 2)
        offset = "@_float((uint32_t)@@_UINT16(@_offset[n]) << 16)"
    elif grid.offset_bytes:
        out.table("float", "offset", grid.offset, "Offsets.", 4)
        offset = "@@_FLOAT(@_offset[n])"
    else:
        offset = real(grid.offset[0])
    if grid.gain_bytes == 2 or grid.offset_bytes == 2:
        out.add("""
static inline float @_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""")
        out.lines.append("\n")
    skip = "        if (!((@@_UINT8(@_counts[i >> 3]) >> (i & 7)) & 1)) continue;\n" if some else ""
    step = "        const uint16_t s = @@_UINT16(@_steps[n]);\n" if grid.gain_bytes == 2 else ""
    out.add(f"""
/* A row in integers: (x - offset) * gain, to the nearest, for the inputs that count. Further out than 32767 nothing
   changes; what is no number goes to the lower end. */
static inline void @_to_int16(const float x[@@_INPUTS], int16_t u[@@_USED])
{{
    int n = 0;
    for (int i = 0; i < @@_INPUTS; ++i) {{
{skip}{step}        float t = (x[i] - {offset}) * {gain};
        if (!(t > -32767.0f)) t = -32767.0f;
        if (t > 32767.0f) t = 32767.0f;
        u[n++] = (int16_t)(t + (t < 0.0f ? -0.5f : 0.5f));
    }}
}}
""")
    out.lines.append("\n")
    _add_readings(out, grid, skip)


def _add_readings(out: Writer, grid: Grid, skip: str) -> None:
    readings = grid.readings
    if readings is None:
        return
    common = not grid.gain_bytes and not grid.offset_bytes
    if not common:
        # Not part of the model's bytes: a linker leaves out what is not called.
        out.table("int32_t", "reading_offset", readings.offset, "For readings in integers: offsets in 256ths.", 4)
        out.table("int32_t", "reading_gain", readings.gain, "Gains, in units of 2^-shift.", 4)
        out.table("uint8_t", "reading_shift", readings.shift, "...", 1)
        for name in ("reading_offset", "reading_gain", "reading_shift"):
            del out.tables[name]
        offset, gain, shift = (
            "@@_INT32(@_reading_offset[n])",
            "@@_INT32(@_reading_gain[n])",
            "@@_UINT8(@_reading_shift[n])",
        )
    else:
        offset, gain, shift = (str(int(v[0])) for v in (readings.offset, readings.gain, readings.shift))
    out.add(f"""
/* The same from readings in integers, of a converter for example, if the model was trained on such: no float at all. */
static inline void @_from_readings(const int16_t x[@@_INPUTS], int16_t u[@@_USED])
{{
    int n = 0;
    for (int i = 0; i < @@_INPUTS; ++i) {{
        int64_t t;
        uint64_t size;
{skip}        t = ((int64_t)x[i] * 256 - {offset}) * {gain};
        size = ((uint64_t)(t < 0 ? -t : t) + ((uint64_t)1 << ({shift} - 1))) >> {shift};
        if (size > 32767u) size = 32767u;
        u[n++] = (int16_t)(t < 0 ? -(int32_t)size : (int32_t)size);
    }}
}}
""")
    out.lines.append("\n")


# --- sums -------------------------------------------------------------------------------------------------------------


def _with_16_places(size: str, places: int) -> str:
    """A number that has so many binary digits behind the point, rounded to 16 of them."""
    if places > 16:
        return f"({size} + {1 << (places - 17)}u) >> {places - 16}"
    return f"{size} << {16 - places}" if places < 16 else size


def _add_power_of_half(out: Writer) -> None:
    out.table("uint16_t", "halves", TABLE, "2^-x for x = 0, 1/64 .. 1, in 15 bits.", 2)
    out.add(f"""
/* 2^-D in 15 bits, for D in units of 2^-16, below {REACH}. */
static inline uint32_t @_power_of_half(uint32_t d)
{{
    const uint32_t whole = d >> 16, place = (d >> 10) & 63u, rest = d & 1023u;
    const uint32_t high = @@_UINT16(@_halves[place]), low = @@_UINT16(@_halves[place + 1u]);
    const uint32_t value = high - (((high - low) * rest + 512u) >> 10);
    return (value + (((uint32_t)1 << whole) >> 1)) >> whole;
}}
""")
    out.lines.append("\n")


def _add_kernel(out: Writer, model: QuantizedKernel) -> None:
    layer, grid = model.layer, model.grid
    if len(model.vectors):
        out.table("int8_t", "vectors", model.vectors, "A row for each vector.", 1)
        out.table("int16_t", "coef", model.coef.T, "A row for each vector: its coefficients, one for each value.", 2)
        if layer is not None:
            out.table("int16_t", "layer_coef", layer.coef.T, "Coefficients of the logarithms of odds.", 2)
    _add_biases(out, model)
    _add_power_of_half(out)
    unit, limit = model.unit, REACH << model.unit
    scale = _with_16_places("d", unit)
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


def _add_distance(out: Writer, power: int, shift: str, limit: int) -> None:
    """The sum of squares (or absolute values). To leave early costs large processors more than the sums do."""
    apart = "(uint32_t)@@_INT8(z[n])" if shift == "0" else f"((uint32_t)@@_INT8(z[n]) << {shift})"
    # Compilers make vector instructions of a loop with one shift for all; of others the shorter one counts down.
    order = "int n = 0; n < @@_USED; ++n" if shift.isdigit() else "int n = @@_USED; n-- > 0;"
    # A difference has 17 bits, and its square at most 32: unsigned numbers wrap as they should.
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


def _add_products(out: Writer, model: Quantized) -> None:
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
    """Sums that are made: their array, how many, the prefix of their tables, and whether they may be left out."""
    odds = [] if model.layer is None else [("l", str(len(model.layer.bias)), "layer_", True)]
    return [("v", "@@_VALUES", "", False), *odds]


def _each(count: str, statement: str, optional: bool) -> str:
    """A statement for each sum o; for logarithms of odds only if they are wanted."""
    return f"{'if (l) ' if optional else ''}for (int o = 0; o < {count}; ++o) {statement}"


def _add_biases(out: Writer, model: Quantized) -> None:
    out.table("int32_t", "bias", model.bias, "In the units of the sums.", 4)
    out.table("int8_t", "exponent", model.exponent, "A sum stands for sum * 2^-(exponent + bits).", 1)
    if model.layer is not None:
        out.table("int32_t", "layer_bias", model.layer.bias, "Biases of the logarithms of odds.", 4)


def _add_sums(out: Writer, model: Quantized, text: str) -> None:
    begin = "".join(
        f"    {_each(count, f'{target}[o] = @@_INT32(@_{prefix}bias[o]);', optional)}\n"
        for target, count, prefix, optional in _targets(model)
    )
    odds = "" if model.layer is None else f", int64_t l[{len(model.layer.bias)}]"
    also = " With l\n   (or 0) the logarithms of odds, too." if odds else ""
    out.add(f"""
/* Sums of the binary problems, exact: two classes have one, several one for each pair or each class.{also} */
static inline void @_sums(const int16_t u[@@_USED], int64_t v[@@_VALUES]{odds})
{{
{begin}{text}}}
""")
    out.lines.append("\n")


# --- answers ----------------------------------------------------------------------------------------------------------


def _add_answers(out: Writer, model: Quantized) -> None:
    n_classes, n_values = len(model.classes), len(model.bias)
    none = "" if model.layer is None else ", 0"
    add_winner(out, model.votes, "int64_t", n_classes, n_values)
    align, most = "", int(model.exponent.max())
    if np.ptp(model.exponent):
        align = f"    for (int o = 0; o < @@_VALUES; ++o) v[o] *= (int64_t)1 << ({most} - @@_INT8(@_exponent[o]));\n"
    out.add(f"""
/* The number of the class, 0 to @@_CLASSES - 1, for a row in integers; its label is @_label(number). */
static inline int @_predict_int16(const int16_t u[@@_USED])
{{
    int64_t v[@@_VALUES];
    @_sums(u, v{none});
{align}    return @_winner(v);
}}

/* The same for a row in floats. */
static inline int @_predict(const float x[@@_INPUTS])
{{
    int16_t u[@@_USED];
    @_to_int16(x, u);
    return @_predict_int16(u);
}}

/* Scores as decision_function has them in Python. */
static inline void @_decision(const float x[@@_INPUTS], float f[@@_OUTPUTS])
{{
    int16_t u[@@_USED];
    int64_t sums_of[@@_VALUES];
    float v[@@_VALUES];
    @_to_int16(x, u);
    @_sums(u, sums_of{none});
    for (int o = 0; o < @@_VALUES; ++o) {{
        const uint32_t bits = (uint32_t)({127 - model.bits} - @@_INT8(@_exponent[o])) << 23;
        float unit;
        memcpy(&unit, &bits, sizeof unit);
        v[o] = (float)sums_of[o] * unit;
    }}
{shown_scores(model.shown)}
}}
""")
    out.lines.append("\n")
    if model.grid.readings is not None:
        out.add("""
/* The number of the class for readings in integers. */
static inline int @_predict_readings(const int16_t x[@@_INPUTS])
{
    int16_t u[@@_USED];
    @_from_readings(x, u);
    return @_predict_int16(u);
}
""")
        out.lines.append("\n")
    add_labels(out, model.classes)
    if model.layer is not None:
        _add_probabilities(out, model, align)


def _add_probabilities(out: Writer, model: Quantized, align: str) -> None:
    layer = model.layer
    assert layer is not None
    count, places = len(layer.bias), layer.places
    if count == 1:
        odds = """    e[l[0] < 0 ? 0 : 1] = 32768u;
    e[l[0] < 0 ? 1 : 0] = @_share((uint64_t)(l[0] < 0 ? -l[0] : l[0]));"""
    elif layer.shares:
        odds = """    int64_t top = l[0];
    for (int c = 1; c < @@_CLASSES; ++c)
        if (l[c] > top) top = l[c];
    if (top > 0) top = 0;
    for (int c = 0; c < @@_CLASSES; ++c) {
        const uint32_t small = @_share((uint64_t)(l[c] < 0 ? -l[c] : l[c]));
        const uint32_t over = l[c] < 0 ? @_share((uint64_t)(top - l[c])) : 32768u;
        e[c] = ((over << 15) + ((32768u + small) >> 1)) / (32768u + small);
    }"""
    else:
        odds = """    int64_t top = l[0];
    for (int c = 1; c < @@_CLASSES; ++c)
        if (l[c] > top) top = l[c];
    for (int c = 0; c < @@_CLASSES; ++c) e[c] = @_share((uint64_t)(top - l[c]));"""
    if not isinstance(model, QuantizedKernel):
        _add_power_of_half(out)
    out.add(f"""
/* 2^-size in 15 bits, for logarithms of odds in their own units. */
static inline uint32_t @_share(uint64_t size)
{{
    if (size >= ((uint64_t){REACH} << {places})) return 0;
    return @_power_of_half((uint32_t)({_with_16_places("size", places)}));
}}
""")
    out.lines.append("\n")
    out.add(f"""
/* Probabilities of the classes in units of 1/32768, for a row in integers. The class that is predicted is the
   likeliest: it shares with those that would be above it. */
static inline void @_probabilities_int16(const int16_t u[@@_USED], uint16_t p[@@_CLASSES])
{{
    int64_t v[@@_VALUES], l[{count}];
    uint32_t e[@@_CLASSES], sum = 0, level, shared = 1;
    int best;
    @_sums(u, v, l);
{align}{odds}
    for (int c = 0; c < @@_CLASSES; ++c) sum += e[c];
    for (int c = 0; c < @@_CLASSES; ++c) e[c] = ((e[c] << 15) + (sum >> 1)) / sum;
    best = @_winner(v);
    sum = level = e[best];
    for (;;) {{
        int next = -1;
        for (int c = 0; c < @@_CLASSES; ++c)
            if (c != best && e[c] <= 32768u && e[c] > level && (next < 0 || e[c] > e[next])) next = c;
        if (next < 0) break;
        sum += e[next];
        level = sum / ++shared;
        e[next] = 65535u; /* has its share */
    }}
    for (int c = 0; c < @@_CLASSES; ++c)
        p[c] = (uint16_t)(c == best ? level : e[c] >= level ? level - 1u : e[c]);
}}

/* The same for a row in floats, as numbers from 0 to 1. */
static inline void @_probabilities(const float x[@@_INPUTS], float p[@@_CLASSES])
{{
    int16_t u[@@_USED];
    uint16_t parts[@@_CLASSES];
    @_to_int16(x, u);
    @_probabilities_int16(u, parts);
    for (int c = 0; c < @@_CLASSES; ++c) p[c] = (float)parts[c] * (1.0f / 32768.0f);
}}
""")
    out.lines.append("\n")
