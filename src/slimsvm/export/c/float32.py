"""Writes a model as a C header in float32, with scalers folded in; operations are in the same order as in Python."""

from __future__ import annotations

from typing import Any

from ...model.inference import InferenceModel
from ..float_forms import FloatForm, Layout, filled, float_form, for_values_less_one, layout, values_near_one
from .text import ROM, HeaderWriter, add_labels, add_winner, real, shown_scores

# C expressions that one input adds to the sum of a kernel: a power of a difference, or a product.
STEPS = {
    1: "const float r = {x} - {z}; s += r < 0.0f ? -r : r;",
    2: "const float r = {x} - {z}; s += r * r;",
    None: "s += {x} * {z};",
}

EXP = """
/* exp(-s). */
static inline float @_exp(float s) { return expf(-s); }
"""
EXP_LESS_ONE = """
/* exp(-s) - 1: kernel values are close to 1 here, and so keep their digits. The biases make up for it. */
static inline float @_exp(float s)
{
    if (s > 0.5f) return expf(-s) - 1.0f;
    return s * (-1.0f + s * (0.5f + s * (-0.16666667f + s * (0.041666668f + s * (-0.008333334f + s * (0.0013888889f
           - s * 0.0001984127f))))));
}
"""


def write(inference: InferenceModel, name: str, about: str) -> HeaderWriter:
    """The C header of a model in float32."""
    out, kernel = HeaderWriter(name), inference.expansion.kernel
    form = float_form(kernel, "C")
    less_one = values_near_one(inference, form)
    inference = for_values_less_one(inference) if less_one else inference
    place, linear = layout(inference), kernel.is_linear
    coef, bias = inference.expansion.coef, inference.expansion.bias
    layer = inference.layer
    out.add(about)
    out.add("""
#ifndef @@_H
#define @@_H

#include <math.h>
#include <stdint.h>
""")
    out.lines.append("\n")
    vectors = place.vectors * place.gamma if linear else place.vectors
    numbers = {"INPUTS": inference.n_inputs, "VECTORS": len(bias) if linear else len(vectors), "VALUES": len(bias)}
    if inference.classes is not None:
        shown = inference.shown is not None and inference.shown.pairs
        numbers |= {"CLASSES": len(inference.classes), "OUTPUTS": len(inference.classes) if shown else len(bias)}
    out.define(**numbers)
    out.add(ROM)
    out.lines.append("\n")
    if len(place.used) < inference.n_inputs:
        wide = inference.n_inputs > 256
        out.table("uint16_t" if wide else "uint8_t", "used", place.used, "The inputs that count.", 2 if wide else 1)
    if place.gain is not None and place.mean is not None:
        out.table("float", "mean", place.mean, "An input x becomes (x - mean) * gain.", 4)
        out.table("float", "gain", place.gain, "...", 4)
    if place.rest is not None:
        out.table("float", "rest", place.rest, "Of the means: their digits that a float has no room for.", 4)
    if linear:
        out.table("float", "weights", coef @ vectors, "A row for each value: the weights of the inputs.", 4)
    elif len(vectors):
        out.table("float", "vectors", vectors, "A row for each vector.", 4)
        out.table("float", "coef", coef.T, "A row for each vector: its coefficients, one for each value.", 4)
    out.table("float", "bias", bias, "Of the values.", 4)
    if layer is not None:
        if linear:
            out.table("float", "layer_weights", layer.coef @ vectors, "The same for the logarithms of odds.", 4)
        elif len(vectors):
            out.table("float", "layer_coef", layer.coef.T, "Coefficients of the logarithms of odds.", 4)
        out.table("float", "layer_bias", layer.bias, "Their biases.", 4)
    if form.less_one and len(vectors):
        out.add(EXP_LESS_ONE if less_one else EXP)
        out.lines.append("\n")
    _add_values(out, inference, form, place, linear)
    if inference.classes is not None:
        _add_answers(out, inference)
    elif len(bias) == 1:
        out.add("""
/* The answer for a row. */
static inline float @_predict(const float x[@@_INPUTS])
{
    float v[@@_VALUES];
    @_values(x, v);
    return v[0];
}
""")
    out.add("\n#endif /* @@_H */")
    return out


def _add_values(out: HeaderWriter, inference: InferenceModel, form: FloatForm, place: Layout, linear: bool) -> None:
    """Add the sums over vectors: decision values, and log-odds if the model has probabilities."""
    used, scaled = len(place.used), place.gain is not None
    rest = "" if place.rest is None else " - @@_FLOAT(@_rest[i])"
    n_layer = 0 if inference.layer is None else len(inference.layer.bias)
    x, prepare = "x[i]", ""
    if scaled:
        where = "i"
        if used < inference.n_inputs:
            where = f"@@_UINT{'16' if inference.n_inputs > 256 else '8'}(@_used[i])"
        x, prepare = (
            "t[i]",
            (
                f"    float t[{used}];\n    for (int i = 0; i < {used}; ++i)\n"
                f"        t[i] = (x[{where}] - @@_FLOAT(@_mean[i]){rest}) * @@_FLOAT(@_gain[i]);\n"
            ),
        )
    gamma = "" if place.gamma == 1.0 else f"{real(place.gamma)} * "
    kernel = inference.expansion.kernel.unscaled[0]
    term = STEPS[kernel.power]

    def each(count: Any, statement: str, optional: bool) -> str:
        """A C statement for each output o; optional outputs (log-odds) only if requested."""
        return f"{'if (l) ' if optional else ''}for (int o = 0; o < {count}; ++o) {statement}"

    def product(target: str, table: str) -> str:
        step = term.format(x=x, z=f"@@_FLOAT(@_{table}[o * {used} + i])")
        loop = f"        for (int i = 0; i < {used}; ++i) {step}"
        return f"{{\n        float s = 0.0f;\n{loop}\n        {target}[o] += s;\n    }}"

    targets = [("v", "@@_VALUES", "", False), *([("l", n_layer, "layer_", True)] if n_layer else [])]
    text = prepare
    for target, count, prefix, optional in targets:
        text += f"    {each(count, f'{target}[o] = @@_FLOAT(@_{prefix}bias[o]);', optional)}\n"
    if linear:
        for target, count, prefix, optional in targets:
            text += f"    {each(count, product(target, f'{prefix}weights'), optional)}\n"
    elif len(place.vectors):
        step = term.format(x=x, z=f"@@_FLOAT(@_vectors[j * {used} + i])")
        text += (
            "    for (int j = 0; j < @@_VECTORS; ++j) {\n        float s = 0.0f;\n"
            f"        for (int i = 0; i < {used}; ++i) {{ {step} }}\n"
            f"        {filled(form.c, kernel, gamma, real)}\n"
        )
        for target, count, prefix, optional in targets:
            add = f"{target}[o] += @@_FLOAT(@_{prefix}coef[j * {count} + o]) * k;"
            text += f"        {each(count, add, optional)}\n"
        text += "    }\n"
    elif not scaled:
        text += "    (void)x;\n"
    odds = f", float l[{n_layer}]" if n_layer else ""
    also = " With l\n   (or 0) the logarithms of odds, too." if n_layer else ""
    what = "Values in the units of the targets."
    if inference.classes is not None:
        what = "Values of the binary problems: two classes have one, several one for each pair or each class."
    out.add(f"""
/* {what}{also} */
static inline void @_values(const float x[@@_INPUTS], float v[@@_VALUES]{odds})
{{
{text}}}
""")
    out.lines.append("\n")


def _add_answers(out: HeaderWriter, inference: InferenceModel) -> None:
    assert inference.classes is not None
    assert inference.votes is not None
    values = "@_values(x, v);" if inference.layer is None else "@_values(x, v, 0);"
    n_classes, n_values = len(inference.classes), len(inference.expansion.bias)
    add_winner(out, inference.votes, "float", n_classes, n_values)
    out.add(f"""
/* Scores as decision_function has them in Python. */
static inline void @_decision(const float x[@@_INPUTS], float f[@@_OUTPUTS])
{{
    float v[@@_VALUES];
    {values}
{shown_scores(inference.shown)}
}}

/* The number of the class, 0 to @@_CLASSES - 1; its label is @_label(number). */
static inline int @_predict(const float x[@@_INPUTS])
{{
    float v[@@_VALUES];
    {values}
    return @_winner(v);
}}
""")
    out.lines.append("\n")
    add_labels(out, inference.classes)
    if inference.layer is not None:
        _add_probabilities(out, inference)


def _add_probabilities(out: HeaderWriter, inference: InferenceModel) -> None:
    assert inference.layer is not None
    n_layer = len(inference.layer.bias)
    if n_layer == 1:
        odds = """    /* Two classes: 1 / (1 + exp(-l)), from the side that cannot overflow. */
    const float e = expf(l[0] < 0.0f ? l[0] : -l[0]);
    p[l[0] < 0.0f ? 0 : 1] = 1.0f / (1.0f + e);
    p[l[0] < 0.0f ? 1 : 0] = e / (1.0f + e);"""
    else:
        each = (
            """expf((l[c] < 0.0f ? l[c] : 0.0f) - (top < 0.0f ? top : 0.0f)) /
               (1.0f + expf(l[c] < 0.0f ? l[c] : -l[c]))"""
            if inference.layer.shares
            else "expf(l[c] - top)"
        )
        odds = f"""    float top = l[0], sum = 0.0f;
    for (int c = 1; c < @@_CLASSES; ++c)
        if (l[c] > top) top = l[c];
    for (int c = 0; c < @@_CLASSES; ++c) {{
        p[c] = {each};
        sum += p[c];
    }}
    for (int c = 0; c < @@_CLASSES; ++c) p[c] /= sum;"""
    out.add(f"""
/* Probabilities of the classes. The class that is predicted is the likeliest: it shares with those that would be above
   it. */
static inline void @_probabilities(const float x[@@_INPUTS], float p[@@_CLASSES])
{{
    float v[@@_VALUES], l[{n_layer}], level, total;
    int best, count = 1;
    @_values(x, v, l);
{odds}
    best = @_winner(v);
    level = total = p[best];
    for (;;) {{
        int next = -1;
        for (int c = 0; c < @@_CLASSES; ++c)
            if (c != best && p[c] >= 0.0f && p[c] > level && (next < 0 || p[c] > p[next])) next = c;
        if (next < 0) break;
        total += p[next];
        level = total / (float)++count;
        p[next] = -1.0f; /* has its share */
    }}
    for (int c = 0; c < @@_CLASSES; ++c)
        if (c != best && (p[c] < 0.0f || p[c] >= level)) p[c] = level * 0.9999999f;
    p[best] = level;
}}
""")
    out.lines.append("\n")
