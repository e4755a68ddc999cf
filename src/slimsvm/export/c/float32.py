"""A model as a C header in float32: what Python computes, in the same order, with a scaler folded in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...model.inference import InferenceModel
from ...problem import kernels
from .text import ROM, HeaderWriter, add_labels, add_winner, real, shown_scores


@dataclass(frozen=True)
class CKernel:
    """A kernel in C: how a row's number and a vector's are combined, and the kernel value from the sum ``s``.

    ``gain`` is the power of gamma that goes into the units of the inputs; a number for gamma is left over where that
    is none.
    """

    step: str
    value: Callable[[Any, str], str]
    gain: float | None = None


def _exponential(kernel: Any, gamma: str) -> str:
    return f"        const float k = @_exp({gamma}s);"


def _power(kernel: Any, gamma: str) -> str:
    return f"""        const float base = {gamma}s + {real(kernel.coef0)};
        float k = 1.0f;
        for (int e = 0; e < {int(kernel.degree)}; ++e) k *= base;"""


def _tanh(kernel: Any, gamma: str) -> str:
    # tanh by expf alone; beyond 44 it is 1 in float32, and expf would overflow.
    return f"""        const float a = {gamma}s + {real(kernel.coef0)};
        const float k = a > 44.0f ? 1.0f : 1.0f - 2.0f / (expf(2.0f * a) + 1.0f);"""


FORMS: dict[str, CKernel] = {
    kernels.Gaussian.name: CKernel("const float r = {x} - {z}; s += r * r;", _exponential, 0.5),
    kernels.Laplacian.name: CKernel("const float r = {x} - {z}; s += r < 0.0f ? -r : r;", _exponential, 1.0),
    kernels.Polynomial.name: CKernel("s += {x} * {z};", _power),
    kernels.Sigmoid.name: CKernel("s += {x} * {z};", _tanh),
    kernels.Linear.name: CKernel("s += {x} * {z};", lambda kernel, gamma: ""),
}


# Kernel values of wide kernels are close to 1, and large coefficients take their sums apart again: k - 1 keeps the
# digits that k would lose.
EXP = """
/* exp(-s). */
static inline float @_exp(float s) { return expf(-s); }
"""
EXP_BELOW_ONE = """
/* exp(-s) - 1: kernel values are close to 1 here, and so keep their digits. The biases make up for it. */
static inline float @_exp(float s)
{
    if (s > 0.5f) return expf(-s) - 1.0f;
    return s * (-1.0f + s * (0.5f + s * (-0.16666667f + s * (0.041666668f + s * (-0.008333334f + s * (0.0013888889f
           - s * 0.0001984127f))))));
}
"""


def close_to_one(machine: InferenceModel) -> bool:
    """Are kernel values so large that their distance from 1 has fewer digits to lose?"""
    expansion = machine.expansion
    Z = expansion.vectors
    if FORMS[expansion.kernel.name].gain is None or not len(Z):
        return False
    rows = machine.between_vectors()
    K, sizes = expansion.kernel(machine.inputs(rows), Z), np.abs(expansion.coef).sum(axis=0)
    return bool(np.mean((1 - K) @ sizes) < np.mean(K @ sizes))


def shifted(machine: InferenceModel) -> InferenceModel:
    """The same machine for kernel values less 1: what that takes away is in the biases."""
    expansion, layer = machine.expansion, machine.layer
    return replace(
        machine,
        expansion=replace(expansion, bias=expansion.bias + expansion.coef.sum(axis=1)),
        layer=layer and replace(layer, bias=layer.bias + layer.coef.sum(axis=1)),
    )


@dataclass(frozen=True)
class Layout:
    """Which inputs count, what they become, and the vectors in these units."""

    used: Array
    mean: Array | None  # None: rows are taken as they are
    gain: Array | None
    vectors: Array
    gamma: float | None  # that is left over
    rest: Array | None = None  # of the mean, where a number of the kind holds too few of its digits


def layout(machine: InferenceModel, form: CKernel, kind: Any = np.float32) -> Layout:
    """The fewest operations: rows as they are unless inputs have scales, a scaler, or do not count at all.

    Numbers will be of this kind. What its digits leave of a large mean, the vectors make up for where only differences
    count; products take it from the row.
    """
    kernel, Z = machine.expansion.kernel, np.asarray(machine.expansion.vectors, dtype=np.float64)
    scales = np.broadcast_to(np.abs(np.asarray(kernel.scales, dtype=np.float64)), machine.n_inputs)
    used = np.flatnonzero(scales)
    used = used if len(used) else np.arange(1)
    scales, Z = scales[used], Z[:, used]
    gamma = kernel.gamma
    if not machine.inputs.folded and len(used) == machine.n_inputs and np.ptp(scales) == 0:
        # Of a common scale a distance has its first or second power, a product its second.
        factor = float(scales[0]) ** (1 / form.gain if form.gain else 2)
        return Layout(used, None, None, Z, factor * (1.0 if gamma is None else gamma))
    unit = 1.0 if gamma is None or form.gain is None else gamma**form.gain
    mean, gain = machine.inputs.mean[used], unit * scales / machine.inputs.scale[used]
    rest, vectors = mean - mean.astype(kind).astype(np.float64), Z * scales * unit
    if form.gain:
        return Layout(used, mean, gain, vectors + rest * gain, None)
    needed = np.abs(rest * gain).max() > 1e-7
    return Layout(used, mean, gain, vectors, gamma, rest if needed else None)


def write(machine: InferenceModel, name: str, about: str) -> HeaderWriter:
    """The header."""
    out, kernel = HeaderWriter(name), machine.expansion.kernel
    form = FORMS.get(kernel.name)
    if form is None:
        raise ValueError(f"kernel {kernel.name!r} has no form in C; {sorted(FORMS)} have one. Fit with one of these")
    below = close_to_one(machine)
    machine = shifted(machine) if below else machine
    place, linear = layout(machine, form), kernel.name == kernels.Linear.name
    coef, bias = machine.expansion.coef, machine.expansion.bias
    layer = machine.layer
    out.add(about)
    out.add("""
#ifndef @@_H
#define @@_H

#include <math.h>
#include <stdint.h>
""")
    out.lines.append("\n")
    vectors = place.vectors * (place.gamma or 1.0) if linear else place.vectors
    numbers = {"INPUTS": machine.n_inputs, "VECTORS": len(bias) if linear else len(vectors), "VALUES": len(bias)}
    if machine.classes is not None:
        shown = machine.shown is not None and machine.shown.pairs
        numbers |= {"CLASSES": len(machine.classes), "OUTPUTS": len(machine.classes) if shown else len(bias)}
    out.define(**numbers)
    out.add(ROM)
    out.lines.append("\n")
    if len(place.used) < machine.n_inputs:
        wide = machine.n_inputs > 256
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
    if form.gain and len(vectors):
        out.add(EXP_BELOW_ONE if below else EXP)
        out.lines.append("\n")
    _add_values(out, machine, form, place, linear)
    if machine.classes is not None:
        _add_answers(out, machine)
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


def _add_values(out: HeaderWriter, machine: InferenceModel, form: CKernel, place: Layout, linear: bool) -> None:
    """The sums over vectors: of the values, and of the logarithms of odds where there are any."""
    used, scaled = len(place.used), place.gain is not None
    rest = "" if place.rest is None else " - @@_FLOAT(@_rest[i])"
    n_layer = 0 if machine.layer is None else len(machine.layer.bias)
    x, prepare = "x[i]", ""
    if scaled:
        where = "i"
        if used < machine.n_inputs:
            where = f"@@_UINT{'16' if machine.n_inputs > 256 else '8'}(@_used[i])"
        x, prepare = (
            "t[i]",
            (
                f"    float t[{used}];\n    for (int i = 0; i < {used}; ++i)\n"
                f"        t[i] = (x[{where}] - @@_FLOAT(@_mean[i]){rest}) * @@_FLOAT(@_gain[i]);\n"
            ),
        )
    gamma = "" if place.gamma in (None, 1.0) else f"{real(place.gamma)} * "

    def each(count: Any, statement: str, optional: bool) -> str:
        """A statement for each value o; for logarithms of odds only if they are wanted."""
        return f"{'if (l) ' if optional else ''}for (int o = 0; o < {count}; ++o) {statement}"

    def product(target: str, table: str) -> str:
        step = form.step.format(x=x, z=f"@@_FLOAT(@_{table}[o * {used} + i])")
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
        step = form.step.format(x=x, z=f"@@_FLOAT(@_vectors[j * {used} + i])")
        text += (
            "    for (int j = 0; j < @@_VECTORS; ++j) {\n        float s = 0.0f;\n"
            f"        for (int i = 0; i < {used}; ++i) {{ {step} }}\n"
            f"{form.value(machine.expansion.kernel, gamma)}\n"
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
    if machine.classes is not None:
        what = "Values of the binary problems: two classes have one, several one for each pair or each class."
    out.add(f"""
/* {what}{also} */
static inline void @_values(const float x[@@_INPUTS], float v[@@_VALUES]{odds})
{{
{text}}}
""")
    out.lines.append("\n")


def _add_answers(out: HeaderWriter, machine: InferenceModel) -> None:
    assert machine.classes is not None
    assert machine.votes is not None
    values = "@_values(x, v);" if machine.layer is None else "@_values(x, v, 0);"
    n_classes, n_values = len(machine.classes), len(machine.expansion.bias)
    add_winner(out, machine.votes, "float", n_classes, n_values)
    out.add(f"""
/* Scores as decision_function has them in Python. */
static inline void @_decision(const float x[@@_INPUTS], float f[@@_OUTPUTS])
{{
    float v[@@_VALUES];
    {values}
{shown_scores(machine.shown)}
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
    add_labels(out, machine.classes)
    if machine.layer is not None:
        _add_probabilities(out, machine)


def _add_probabilities(out: HeaderWriter, machine: InferenceModel) -> None:
    assert machine.layer is not None
    n_layer = len(machine.layer.bias)
    if n_layer == 1:
        odds = """    /* Two classes: 1 / (1 + exp(-l)), from the side that cannot overflow. */
    const float e = expf(l[0] < 0.0f ? l[0] : -l[0]);
    p[l[0] < 0.0f ? 0 : 1] = 1.0f / (1.0f + e);
    p[l[0] < 0.0f ? 1 : 0] = e / (1.0f + e);"""
    else:
        each = (
            """expf((l[c] < 0.0f ? l[c] : 0.0f) - (top < 0.0f ? top : 0.0f)) /
               (1.0f + expf(l[c] < 0.0f ? l[c] : -l[c]))"""
            if machine.layer.shares
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
