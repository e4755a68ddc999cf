"""C functions that convert a row to the integers of a quantised model, from floats or from integer readings."""

from __future__ import annotations

import numpy as np

from ....quantization.grid import Grid, packed_inputs
from ..text import HeaderWriter, real


def add_inputs(out: HeaderWriter, grid: Grid) -> None:
    """Add the conversion of a row to units of the grid: from floats, and from integers without floating point."""
    some = len(grid.used) < grid.inputs
    if some:
        mask = np.packbits(np.isin(np.arange(grid.inputs), grid.used), bitorder="little")
        out.table("uint8_t", "counts", mask, "A bit for each input: does it count?", 1)
    digits = ""  # C expressions for the mantissa of a gain and its shift
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
        digits = f"(int)(s & 127u) + 128, shift = {15 - top} + ((s >> 7) & 63)"
    elif grid.gain_bytes:
        out.table("float", "gain", grid.gain, "For each input: an input x becomes (x - offset) * gain.", 4)
        gain = "@@_FLOAT(@_gain[n])"
        digits = "(int32_t)((bits & 0x7FFFFFu) | 0x800000u), shift = 158 - (int32_t)(bits >> 23)"
    else:
        gain = real(grid.gain[0])
    if grid.offset_bytes == 2:
        out.table("uint16_t", "offset", grid.offset.view(np.uint32) >> 16, "Offsets, the upper half of floats.", 2)
        offset_bits = "(uint32_t)@@_UINT16(@_offset[n]) << 16"
        offset = f"@_float({offset_bits})"
    elif grid.offset_bytes:
        out.table("float", "offset", grid.offset, "Offsets.", 4)
        offset = "@@_FLOAT(@_offset[n])"
        offset_bits = f"@_bits({offset})"
    else:
        offset, offset_bits = real(grid.offset[0]), ""
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
    _add_readings(out, grid, skip + step, digits, offset_bits)


def _add_readings(out: HeaderWriter, grid: Grid, begin: str, digits: str, offset_bits: str) -> None:
    """Add the conversion of integer readings by integer arithmetic, with gains and offsets from the bits of floats."""
    readings = grid.readings
    if readings is None:
        return
    offset, gain, shift = (str(int(v[0])) for v in (readings.offset, readings.gain, readings.shift))
    if grid.gain_bytes == 4 or grid.offset_bytes == 4:
        out.add("""
static inline uint32_t @_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
""")
        out.lines.append("\n")
    if offset_bits:
        offset = f"@_in_256ths({offset_bits})"
        out.add("""
/* Rounds a float, given by its bits, to a multiple of 1/256, in such units. |value| < 2^22. */
static inline int32_t @_in_256ths(uint32_t bits)
{
    const int shift = (int)((bits >> 23) & 255u) - 118;
    const uint64_t digits = (bits & 0x7FFFFFu) | 0x800000u;
    const int32_t size = shift < 0 ? 0 : (int32_t)(((digits << shift) + 0x800000u) >> 24);
    return bits >> 31 ? -size : size;
}
""")
        out.lines.append("\n")
    if digits:
        if grid.gain_bytes == 4:
            begin += "        const uint32_t bits = @_bits(@@_FLOAT(@_gain[n]));\n"
        begin += f"        const int32_t gain = {digits};\n"
        gain, shift = "gain", "(shift < 63 ? shift : 63)" if readings.shift.max() == 63 else "shift"
    out.add(f"""
/* The same from readings in integers, of a converter for example, if the model was trained on such: no float at all. */
static inline void @_from_readings(const int16_t x[@@_INPUTS], int16_t u[@@_USED])
{{
    int n = 0;
    for (int i = 0; i < @@_INPUTS; ++i) {{
        int64_t t;
        uint64_t size;
{begin}        t = ((int64_t)x[i] * 256 - {offset}) * {gain};
        size = ((uint64_t)(t < 0 ? -t : t) + (((uint64_t)1 << {shift}) >> 1)) >> {shift};
        if (size > 32767u) size = 32767u;
        u[n++] = (int16_t)(t < 0 ? -(int32_t)size : (int32_t)size);
    }}
}}
""")
    out.lines.append("\n")
