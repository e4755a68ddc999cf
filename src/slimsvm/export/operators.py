"""Predictions of a fitted model as ONNX operators: kernel values, votes, probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.dataset import class_signs, outputs
from ..linalg.arrays import Array
from ..model.inference import InferenceModel
from ..model.probabilities import TIE_MARGIN
from ..model.voting import Votes
from ..problem import kernels
from ..problem.kernel_base import Base
from .graph import ML, Graph

# Memory of squared distances: rows x vectors x inputs by differences, rows x vectors by products.
DISTANCE_FORMS = ("auto", "difference", "products")
MAX_PRODUCT_SQUARE = 1e3  # largest squared norm of a vector, in kernel widths, for products in float64


@dataclass(frozen=True)
class GraphRows:
    """Rows in the graph: ``x`` is the user's row minus a centre, ``x / scale + shift`` the row in the model's units.

    Inputs that the kernel does not use are left out.
    """

    x: str
    Z: Array
    scales: Array  # the kernel's
    scale: Array  # the scaler's
    shift: Array


@dataclass(frozen=True)
class Operators:
    """Adds the predictions of a model for the rows ``x`` to a graph; methods return the names of values in the graph.

    Values are computed in the float type of the graph, and rounded to ``dtype`` at the end.
    """

    inference: InferenceModel
    graph: Graph
    x: str
    dtype: np.dtype
    form: str = "auto"

    # --- values ------------------------------------------------------------------------------------------------------

    def answers(self) -> str:
        """Predictions of a regressor: rows x outputs."""
        return self._rounded(self._values())

    def _rounded(self, x: str) -> str:
        return x if self.graph.dtype == self.dtype else self.graph.cast(x, self.dtype)

    def _values(self) -> str:
        """Decision values: rows x outputs."""
        return self._outputs(self.inference.expansion.coef, self.inference.expansion.bias)

    def _outputs(self, coef: Array, bias: Array) -> str:
        kernel, scales = self.inference.expansion.kernel.unscaled
        if not len(self.inference.expansion.vectors):  # nothing but biases
            kernel, coef = kernels.Linear(), np.zeros((len(bias), 1))
        values = KERNELS.get(type(kernel))
        if values is None:
            names = sorted(kind.name for kind in KERNELS)
            raise ValueError(
                f"kernel {kernel.name!r} cannot be written in ONNX operators; {names} can. Fit with one of these"
            )
        return values(self, kernel, scales, coef, bias)

    def rows(self, scales: Array, centred: bool = False) -> GraphRows:
        """Rows minus the scaler's means or, if ``centred``, minus the mean vector: differences keep their digits."""
        inference, g = self.inference, self.graph
        d = inference.n_inputs
        Z = inference.expansion.vectors if len(inference.expansion.vectors) else np.zeros((1, d))
        used = np.flatnonzero(np.broadcast_to(scales, d))
        used = used if len(used) else np.arange(1)
        x = self.columns(used)
        mean, scale, Z = inference.inputs.mean[used], inference.inputs.scale[used], Z[:, used]
        centre = g.rounded(mean + scale * Z.mean(axis=0) if centred else mean)
        if centre.any():
            x = g("Sub", x, g.constant(centre, "centre"))
        return GraphRows(x, Z, np.broadcast_to(scales, d)[used], scale, (centre.astype(np.float64) - mean) / scale)

    def columns(self, used: Array) -> str:
        """The columns of ``x`` with these indices."""
        if len(used) == self.inference.n_inputs and (np.diff(used) == 1).all():
            return self.x
        return self.graph("Gather", self.x, self.graph.constant(used.astype(np.int64), "inputs"), axis=1)

    def sums(self, K: str, coef: Array, bias: Array) -> str:
        """``K coef' + bias``."""
        g = self.graph
        return g("Gemm", K, g.constant(coef, "coef"), g.constant(bias, "bias"), transB=1)

    def products(self, rows: GraphRows, V: Array, plus: Any = 0.0) -> str:
        """``x.v + plus``, with v in the model's units."""
        V = V * rows.scales**2
        return self.sums(rows.x, V / rows.scale, V @ rows.shift + plus)

    def exponents(self, kernel: Any, scales: Array) -> str:
        """``-rate d`` of a distance kernel: minus the sum of ``|width (x - z)|^power``."""
        g, power, rows = self.graph, kernel.power, self.rows(scales, centred=True)
        width = float(np.sqrt(kernel.rate)) if power == 2 else kernel.rate
        gain = g.rounded(width * rows.scales / rows.scale)
        # onnxruntime drops a multiplication by a scalar near 1: use a matrix product instead.
        op, factor = ("Mul", gain) if len(gain) > 1 else ("MatMul", gain[:, None])
        u = g(op, rows.x, g.constant(factor, "gain"))
        # Use the rounded gain, so that equal inputs have the difference 0.
        V = (rows.Z - rows.shift) * (gain.astype(np.float64) * rows.scale)
        if power == 2 and self._by_products(V):
            squares = g.reduce("ReduceSumSquare", u, 1)
            V = g.rounded(V).astype(np.float64)
            twice = g(
                "Gemm", u, g.constant(V, "vectors"), g.constant(-(V**2).sum(axis=1), "squares"), transB=1, alpha=2.0
            )
            return g("Min", g("Sub", twice, squares), g.constant(0.0, "zero"))
        apart = g("Sub", g("Unsqueeze", u, g.axis(1)), g.constant(V, "vectors"))
        return g("Neg", g.reduce("ReduceSumSquare" if power == 2 else "ReduceL1", apart, 2, keep=False))

    def _by_products(self, V: Array) -> bool:
        """Compute distances by products? They lose digits if squared norms are much larger than distances (about 1)."""
        if self.form != "auto":
            return self.form == "products"
        return self.graph.dtype == np.float64 and (V**2).sum(axis=1).max() <= MAX_PRODUCT_SQUARE

    # --- classes -----------------------------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        assert self.inference.classes is not None
        return len(self.inference.classes)

    def winners(self) -> str:
        """Numbers of the predicted classes, as `Votes.winners` finds them."""
        g, votes, F = self.graph, self.inference.votes, self._values()
        assert votes is not None
        if len(self.inference.expansion.bias) == 1:
            return g("Squeeze", g.cast(self._wins(votes), np.int64), g.axis(1))
        if not votes.pairs:
            return self._first_largest(F)
        count = self._counts(votes)
        if not votes.by_value:
            return self._first_largest(count)
        behind = g("Less", count, g.reduce("ReduceMax", count, 1))
        return self._first_largest(g("Where", behind, g.constant(np.finfo(g.dtype).min, "least"), self._summed()))

    def scores(self) -> str:
        """What `decision_function` gives, rows x outputs: one column for two classes."""
        return self._rounded(self._scores())

    def _scores(self) -> str:
        g, shown = self.graph, self.inference.shown
        if shown is None or not shown.pairs:
            return self._values()
        count = self._counts(shown)
        if not shown.by_value:
            return count
        total = self._summed()
        size = g("Add", g("Abs", total), g.constant(1.0, "one"))
        return g("Add", count, g("Div", total, g("Mul", size, g.constant(3.0, "three"))))

    def class_scores(self) -> str:
        """Scores with a column for each class, also for two classes."""
        scores = self.scores()
        if len(self.inference.expansion.bias) > 1:
            return scores
        return self.graph("Concat", self.graph("Neg", scores), scores, axis=1)

    def _first_largest(self, x: str) -> str:
        return self.graph("ArgMax", x, axis=1, keepdims=0)

    def _wins(self, votes: Votes) -> str:
        g = self.graph
        return g("GreaterOrEqual" if votes.zero_is_positive else "Greater", self._values(), g.constant(0.0, "zero"))

    def _counts(self, votes: Votes) -> str:
        """Votes per class: each pair gives one to its first class if that wins, otherwise to its second."""
        g, side = self.graph, self._sides()
        wins = g.cast(self._wins(votes), g.dtype)
        return g("Gemm", wins, g.constant(side, "sides"), g.constant((side < 0).sum(axis=0) * 1.0, "seconds"))

    def _summed(self) -> str:
        """Decision values summed per class."""
        return self.graph("MatMul", self._values(), self.graph.constant(self._sides(), "sides"))

    def _sides(self) -> Array:
        return np.asarray(class_signs(self.n_classes, outputs(self.n_classes, "ovo")).T, dtype=np.float64)

    # --- probabilities -----------------------------------------------------------------------------------------------

    def probabilities(self) -> str:
        """Probabilities: rows x classes; the predicted class has the largest."""
        g, layer = self.graph, self.inference.layer
        assert layer is not None
        F = self._outputs(layer.coef, layer.bias)
        if len(layer.bias) == 1:
            return self._led(self._rounded(g("Concat", g("Sigmoid", g("Neg", F)), g("Sigmoid", F), axis=1)))
        if layer.shares:  # the softmax of log-sigmoids normalises the sigmoids to sum 1
            F = g("Neg", g("Softplus", g("Neg", F)))
        return self._led(self._rounded(g("Softmax", F, axis=1)))

    def _led(self, p: str) -> str:
        """As `slimsvm.model.probabilities.align_with_winners`, with a step above the rounding of this float type."""
        g, n = self.graph, self.n_classes

        def number(values: Any, name: str) -> str:
            return g.constant(np.asarray(values, dtype=np.float64), name, self.dtype)

        winner = g("Unsqueeze", self.winners(), g.axis(1))
        own, zero = g("Equal", winner, g.constant(np.arange(n), "numbers")), number(0, "nothing")
        mine = g.reduce("ReduceSum", g("Where", own, p, zero), 1)
        largest, _ = g.many("TopK", g("Where", own, zero, p), g.axis(n - 1), outputs=2, axis=1)
        total = g("Add", mine, g("CumSum", largest, g.constant(np.int64(1), "along")))
        level = g.reduce("ReduceMax", g("Div", total, number(np.arange(2, n + 1), "count")), 1)
        # onnxruntime drops a multiplication by a scalar near 1.
        step = g("Mul", level, number(max(TIE_MARGIN, 2 * float(np.finfo(self.dtype).eps)), "step"))
        moved = g("Where", own, level, g("Min", p, g("Sub", level, step)))
        agrees = g("Equal", g("ArgMax", p, axis=1, keepdims=1), winner)
        return g("Where", agrees, p, moved)

    # --- as users get them -------------------------------------------------------------------------------------------

    def label(self, labels: Array) -> str:
        """The predicted label of each row."""
        return self.graph("Gather", self.graph.constant(labels, "classes"), self.winners(), axis=0)

    def maps(self, table: str, labels: Array) -> str:
        """For each row a map from label to number; ONNX has maps for float32 only."""
        kind = "classlabels_int64s" if labels.dtype.kind == "i" else "classlabels_strings"
        g = self.graph
        table = table if self.dtype == np.float32 else g.cast(table, np.float32)
        return g("ZipMap", table, domain=ML, **{kind: labels.tolist()})

    def column(self, table: str, number: int) -> str:
        """One column of a table, as a vector."""
        g = self.graph
        return g("Gather", table, g.constant(np.int64(number), "column"), axis=1)


# --- kernels: values of outputs from a kernel, scales of its inputs, coefficients and biases -------------------------


def _linear(ops: Operators, kernel: Any, scales: Array, coef: Array, bias: Array) -> str:
    rows = ops.rows(scales)
    return ops.products(rows, coef @ rows.Z, bias)


def _exponential(ops: Operators, kernel: Any, scales: Array, coef: Array, bias: Array) -> str:
    return ops.sums(ops.graph("Exp", ops.exponents(kernel, scales)), coef, bias)


def _polynomial(ops: Operators, kernel: Any, scales: Array, coef: Array, bias: Array) -> str:
    rows = ops.rows(scales)
    base = ops.products(rows, kernel.gamma * rows.Z, kernel.coef0)
    power = ops.graph("Pow", base, ops.graph.constant(float(kernel.degree), "degree"))
    return ops.sums(power, coef, bias)


def _sigmoid(ops: Operators, kernel: Any, scales: Array, coef: Array, bias: Array) -> str:
    rows = ops.rows(scales)
    return ops.sums(ops.graph("Tanh", ops.products(rows, kernel.gamma * rows.Z, kernel.coef0)), coef, bias)


def _precomputed(ops: Operators, kernel: Any, scales: Array, coef: Array, bias: Array) -> str:
    """A row holds kernel values; vectors are column numbers."""
    if ops.inference.inputs.folded:
        raise ValueError("steps before a machine with a precomputed kernel cannot be written in ONNX; export it alone")
    return ops.sums(ops.columns(np.asarray(ops.inference.expansion.vectors, dtype=np.int64)), coef, bias)


KERNELS: dict[type[Base], Callable[[Operators, Any, Array, Array, Array], str]] = {
    kernels.Linear: _linear,
    kernels.Gaussian: _exponential,
    kernels.Laplacian: _exponential,
    kernels.Polynomial: _polynomial,
    kernels.Sigmoid: _sigmoid,
    kernels.Precomputed: _precomputed,
}
