"""A fitted model as a module in plain Python, for MicroPython on small boards."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..model.inference import InferenceModel, inference_model
from ..model.voting import Votes
from .c.text import identifier, wrapped
from .float_forms import filled, float_form, for_values_less_one, layout, values_near_one

DTYPES = {"float32": np.float32, "float64": np.float64}

# Loops that sum the terms of a kernel over the inputs: powers of differences, or products.
DIFFERENCES = "        s = 0.0\n        for a, b in zip(x, z):\n            a -= b\n            s += {size}\n"
SUMS_OF_TERMS = {
    1: DIFFERENCES.format(size="abs(a)"),
    2: DIFFERENCES.format(size="a * a"),
    None: "        s = 0.0\n        for a, b in zip(x, z):\n            s += a * b\n",
}


def to_micropython(model: Any, *, name: str = "model", dtype: str = "float32") -> str:
    """A fitted model as one module in plain Python, which needs nothing but `math`.

    It runs in MicroPython, and in any other Python. It has

    - ``predict(x)``: the label for a row, a sequence of numbers (regressors: the value; of several outputs a list);
    - ``decision(x)``: what `decision_function` gives, a number for two classes, otherwise a list;
    - ``probabilities(x)`` where the model was fitted with ``probability=True``: a list, in the order of ``LABELS``.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline
        Steps of a pipeline before the last must be scalers such as StandardScaler, which are folded in: rows then come
        as the pipeline takes them.
    name : str, default="model"
        Name of the module, meant for a file ``<name>.py``.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the numbers in the module. MicroPython computes in float32 on most boards.

    Returns
    -------
    str
        The module's text.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC, to_micropython
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=8).fit(X, y)
    >>> module = {}
    >>> exec(to_micropython(clf), module)
    >>> all(module["predict"](row) == label for row, label in zip(X, clf.predict(X)))
    True
    """
    identifier(name)
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not known; use one of {list(DTYPES)}")
    return _module(inference_model(model), name, DTYPES[dtype])


def _number(value: float, kind: Any) -> str:
    """The shortest literal that reads back as the same number of this type."""
    scientific = np.format_float_scientific(kind(value), unique=True, trim="0", exp_digits=1)
    positional = np.format_float_positional(kind(value), unique=True, trim="0")
    return min(positional, scientific, key=len)


def _table(name: str, values: Array, kind: Any) -> str:
    """Rows of numbers as a tuple of tuples; a row of numbers as a tuple."""
    if np.ndim(values) == 1:
        return f"{name} = {_row(values, kind)}\n"
    return f"{name} = (\n{''.join(f'    {_row(row, kind)},' + chr(10) for row in values)})\n"


def _row(values: Array, kind: Any) -> str:
    lines = list(wrapped(_number(v, kind) for v in np.ravel(values)))
    return f"({lines[0].strip()})" if len(lines) == 1 else "(\n" + "".join(lines) + ")"


def _module(inference: InferenceModel, name: str, kind: Any) -> str:
    kernel = inference.expansion.kernel
    form, linear = float_form(kernel, "MicroPython"), kernel.is_linear
    less_one = kind is np.float32 and values_near_one(inference, form)
    inference = for_values_less_one(inference) if less_one else inference
    place = layout(inference, kind)
    # A linear model multiplies its coefficients with the inputs themselves.
    weights = (lambda a: (a @ place.vectors * place.gamma).T) if linear else np.transpose
    made = f"{kernel.name} kernel, {len(inference.expansion.vectors)} vectors. Made by slimsvm {version('slimsvm')}."
    parts = [f'"""{name}: {made}"""\n\nfrom math import exp\n\nINPUTS = {inference.n_inputs}\n']
    if inference.classes is not None:
        parts.append(f"LABELS = {_labels(inference.classes)}\n")
    prepare = ""
    if place.mean is not None and place.gain is not None:
        # The mean rounded to ``kind``, with all digits: the layout corrects for exactly this rounding.
        mean = place.mean.astype(kind).astype(np.float64)
        parts += [_table("MEAN", mean, np.float64), _table("GAIN", place.gain, kind)]
        some, columns = len(place.used) < inference.n_inputs, "range(INPUTS)"
        if some:
            parts.append(f"USED = ({', '.join(map(str, place.used))},)\n")
            columns = "USED"
        prepare = f"    x = [(x[i] - m) * g for i, m, g in zip({columns}, MEAN, GAIN)]\n"
        if place.rest is not None:
            parts.append(_table("REST", place.rest, kind))
            prepare = f"    x = [(x[i] - m - r) * g for i, m, r, g in zip({columns}, MEAN, REST, GAIN)]\n"
    if not linear:
        parts.append(_table("VECTORS", place.vectors, kind))
    expansion = inference.expansion
    parts += [_table("COEF", weights(expansion.coef), kind), _table("BIAS", expansion.bias, kind)]
    if inference.layer is not None:
        parts += [
            _table("ODDS_COEF", weights(inference.layer.coef), kind),
            _table("ODDS_BIAS", inference.layer.bias, kind),
        ]
    if form.less_one:
        parts.append(EXP_LESS_ONE if less_one else EXP)
    terms = SUMS_OF_TERMS[kernel.unscaled[0].power]
    value = filled(form.python, kernel, _number(place.gamma, kind), partial(_number, kind=kind))
    parts.append(_features(prepare, "" if linear else f"{terms}        {value}\n"))
    parts.append(SUMS)
    parts.append(_values(len(expansion.bias)) if inference.votes is None else _answers(inference))
    return "".join(parts)


def _labels(classes: Array) -> str:
    plain = [label if isinstance(label, (bool, int, float, str)) else str(label) for label in classes.tolist()]
    return f"({', '.join(map(repr, plain))},)"


def _features(prepare: str, loop: str) -> str:
    """Source of ``_features(x)``: prepares the row, then computes its kernel values (none for linear models)."""
    if not loop:
        return f'\n\ndef _features(x):\n    """The row in units of the weights."""\n{prepare}    return x\n'
    return f"""

def _features(x):
    \"\"\"Kernel values of a row and all vectors.\"\"\"
{prepare}    k = []
    for z in VECTORS:
{loop}    return k
"""


EXP = '''

def _exp(s):
    """exp(-s)"""
    return exp(-s)
'''

EXP_LESS_ONE = '''

def _exp(s):
    """exp(-s) - 1: kernel values are close to 1 here, and so keep their digits. The biases make up for it."""
    if s > 0.5:
        return exp(-s) - 1.0
    return s * (s * (s * (s * (s * (s * (1 / 720 - s / 5040) - 1 / 120) + 1 / 24) - 1 / 6) + 0.5) - 1.0)
'''

SUMS = '''

def _sums(k, coef, bias):
    """Values of the outputs."""
    v = list(bias)
    for a, row in zip(k, coef):
        for o in range(len(v)):
            v[o] += a * row[o]
    return v
'''


def _values(outputs: int) -> str:
    what, one = ("The value", "[0]") if outputs == 1 else ("The values", "")
    return f'''

def predict(x):
    """{what} for a row of INPUTS numbers."""
    return _sums(_features(x), COEF, BIAS){one}


decision = predict
'''


def _answers(inference: InferenceModel) -> str:
    votes, shown = inference.votes, inference.shown
    assert votes is not None
    if len(inference.expansion.bias) == 1:
        counted, best, scores = "", f"int(v[0] {_wins(votes)} 0)", "v[0]"
    else:
        counted, best, scores = "", "v.index(max(v))", "v"
        if votes.pairs:
            counted, best = _counted("_votes", votes), "s.index(max(s))"
        if shown is not None and shown.pairs:
            scores = "_votes(v)" if shown == votes else "_scores(v)"
            counted += "" if shown == votes else _counted("_scores", shown)
    count = "    s = _votes(v)\n" if best.startswith("s") else ""
    text = f'''{counted}

def _winner(v):
    """The number of the class that values are for."""
{count}    return {best}


def predict(x):
    """The label for a row of INPUTS numbers."""
    return LABELS[_winner(_sums(_features(x), COEF, BIAS))]


def decision(x):
    """Scores as decision_function has them."""
    v = _sums(_features(x), COEF, BIAS)
    return {scores}
'''
    return text if inference.layer is None else text + _probabilities(len(inference.layer.bias), inference.layer.shares)


def _wins(votes: Votes) -> str:
    return ">=" if votes.zero_is_positive else ">"


def _counted(name: str, votes: Votes) -> str:
    # The sum of decision values only breaks ties: it adds less than half a vote.
    squeezed = "[n + t / (3 * (abs(t) + 1)) for n, t in zip(votes, sums)]" if votes.by_value else "votes"
    return f'''

def {name}(v):
    """Votes of pairs of classes a < b in order; values above zero are for the first."""
    votes, sums, p = [0] * len(LABELS), [0.0] * len(LABELS), 0
    for a in range(len(LABELS)):
        for b in range(a + 1, len(LABELS)):
            votes[a if v[p] {_wins(votes)} 0 else b] += 1
            sums[a] += v[p]
            sums[b] -= v[p]
            p += 1
    return {squeezed}
'''


def _probabilities(count: int, shares: bool) -> str:
    if count == 1:
        made = """    e = exp(-abs(l[0]))
    p = [e / (1 + e), 1 / (1 + e)]
    if l[0] < 0:
        p = p[::-1]"""
    else:
        each = "exp(min(v, 0) - min(top, 0)) / (1 + exp(-abs(v)))" if shares else "exp(v - top)"
        made = f"    top = max(l)\n    p = [{each} for v in l]\n    total = sum(p)\n    p = [v / total for v in p]"
    return f'''

def probabilities(x):
    """Probabilities of LABELS. What is predicted is the likeliest: it shares with those that would be above it."""
    k = _features(x)
    best, l = _winner(_sums(k, COEF, BIAS)), _sums(k, ODDS_COEF, ODDS_BIAS)
{made}
    level = total = p[best]
    n = 1
    for v in sorted(p[:best] + p[best + 1 :], reverse=True):
        if v <= level:
            break
        total, n = total + v, n + 1
        level = total / n
    return [level if c == best else min(v, level * (1 - 1e-12)) for c, v in enumerate(p)]
'''
