"""C functions that turn the sums of a quantised regressor into predictions."""

from __future__ import annotations

from ....quantization.quantized import Quantized
from ..text import HeaderWriter


def add_answers(out: HeaderWriter, model: Quantized) -> None:
    """Add predictions as integers and as floats, for rows of floats, rows of integers, and readings."""
    one = len(model.bias) == 1
    out.add("""
/* Values as integers, for a row in integers: value * 2^-places in the units of the targets. No row leaves 31 bits. */
static inline void @_values_int16(const int16_t u[@@_USED], int32_t v[@@_VALUES])
{
    int64_t s[@@_VALUES];
    @_sums(u, s);
    for (int o = 0; o < @@_VALUES; ++o) {
        const int shift = @@_UINT8(@_shift[o]);
        const uint64_t size = ((uint64_t)(s[o] < 0 ? -s[o] : s[o]) + (((uint64_t)1 << shift) >> 1)) >> shift;
        v[o] = @@_INT32(@_bias[o]) + (s[o] < 0 ? -(int32_t)size : (int32_t)size);
    }
}

/* What one unit of such an integer is worth: 2^-places. */
static inline float @_step(int o)
{
    const uint32_t bits = (uint32_t)(127 - @@_INT8(@_places[o])) << 23;
    float step;
    memcpy(&step, &bits, sizeof step);
    return step;
}

/* Values in the units of the targets, for a row in floats. */
static inline void @_values(const float x[@@_INPUTS], float f[@@_VALUES])
{
    int16_t u[@@_USED];
    int32_t v[@@_VALUES];
    @_to_int16(x, u);
    @_values_int16(u, v);
    for (int o = 0; o < @@_VALUES; ++o) f[o] = (float)v[o] * @_step(o);
}
""")
    out.lines.append("\n")
    if one:
        out.add("""
/* The value as an integer, for a row in integers. */
static inline int32_t @_predict_int16(const int16_t u[@@_USED])
{
    int32_t v[1];
    @_values_int16(u, v);
    return v[0];
}

/* The value for a row in floats. */
static inline float @_predict(const float x[@@_INPUTS])
{
    float f[1];
    @_values(x, f);
    return f[0];
}
""")
        out.lines.append("\n")
    if model.grid.readings is None:
        return
    out.add("""
/* Values as integers, for readings in integers. */
static inline void @_values_readings(const int16_t x[@@_INPUTS], int32_t v[@@_VALUES])
{
    int16_t u[@@_USED];
    @_from_readings(x, u);
    @_values_int16(u, v);
}
""")
    out.lines.append("\n")
    if one:
        out.add("""
/* The value as an integer, for readings in integers. */
static inline int32_t @_predict_readings(const int16_t x[@@_INPUTS])
{
    int32_t v[1];
    @_values_readings(x, v);
    return v[0];
}
""")
        out.lines.append("\n")
