"""C functions that turn sums of a quantised classifier or outlier detector into labels, scores and probabilities."""

from __future__ import annotations

import numpy as np

from ....quantization.grid import MAX_DISTANCE
from ....quantization.quantized import Quantized
from ..text import HeaderWriter, add_labels, add_winner, shown_scores
from .sums import add_power_of_half, with_16_places


def add_answers(out: HeaderWriter, model: Quantized) -> None:
    assert model.classes is not None
    assert model.votes is not None
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


def _add_probabilities(out: HeaderWriter, model: Quantized, align: str) -> None:
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
    if model.is_linear:
        add_power_of_half(out)
    out.add(f"""
/* 2^-size in 15 bits, for logarithms of odds in their own units. */
static inline uint32_t @_share(uint64_t size)
{{
    if (size >= ((uint64_t){MAX_DISTANCE} << {places})) return 0;
    return @_power_of_half((uint32_t)({with_16_places("size", places)}));
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
