"""Models for small devices at equal bytes: each tuned by itself on part of the rows, and quantised before it is scored.

Two lists: `RIVALS` tell two classes apart (labels 0 and 1), `VALUE_RIVALS` give a number.

Rows come standardised to all of them. What is counted:

- slim: what `slimsvm.export.quantize` makes, all in all (the table of 2^-x, 130 bytes, is code).
- network: one hidden layer, 8-bit weights, a 16-bit scale and a 16-bit bias for each unit; 8 bytes at the output.
- trees: 6 bytes a node (input, 16-bit threshold, children or a value); 16-bit leaf values where they are summed.
- ProtoNN (Gupta et al., ICML 2017): 8-bit matrices with a scale each, a 4-byte gamma.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from slimsvm import SlimSVC
from slimsvm.export import quantize

from .problems import Array

NODE = 6  # bytes: input, threshold, two children (or a value)
MOST_UNITS = 300  # vectors, hidden units and prototypes; where inputs are few, a budget would pay for more than rows
MOST_TREES = 300


@dataclass(frozen=True)
class Fitted:
    """A quantised model: how it predicts, and its bytes."""

    predict: Callable[[Array], Array]
    n_bytes: int


Fit = Callable[[Array, Array], Fitted]
Rival = Callable[[int, Array, Array], Fitted]


@dataclass(frozen=True)
class Kind:
    """What is predicted: the models that there are for it, and how an answer is read and judged."""

    tree: Any
    forest: Any
    boosted: Any
    network: Any
    answer: Callable[[Array], Array]  # from the network's output
    error: Callable[[Array, Array], Array]
    stratified: bool


CLASSES = Kind(
    DecisionTreeClassifier,
    RandomForestClassifier,
    GradientBoostingClassifier,
    MLPClassifier,
    answer=lambda output: (output > 0).astype(int),
    error=np.not_equal,
    stratified=True,
)
VALUES = Kind(
    DecisionTreeRegressor,
    RandomForestRegressor,
    GradientBoostingRegressor,
    MLPRegressor,
    answer=lambda output: output,
    error=lambda found, y: (found - y) ** 2,
    stratified=False,
)


def slim(budget: int, X: Array, y: Array) -> Fitted:
    """Tunes itself."""
    model = quantize(SlimSVC(max_bytes=budget).fit(X, y))
    return Fitted(model.predict, model.n_bytes)


def slim_values(budget: int, X: Array, y: Array) -> Fitted:
    """Tunes itself."""
    from slimsvm import SlimSVR

    model = quantize(SlimSVR(max_bytes=budget).fit(X, y))
    return Fitted(model.predict, model.n_bytes)


def best(kind: Kind, candidates: list[Fit], X: Array, y: Array, part: float = 0.3) -> Fitted:
    """The candidate with the least error on part of the rows, quantised, then fitted to all of them."""
    if len(candidates) == 1:
        return candidates[0](X, y)
    A, B, a, b = train_test_split(X, y, test_size=part, stratify=y if kind.stratified else None, random_state=0)
    errors = [float(np.mean(kind.error(fit(A, a).predict(B), b))) for fit in candidates]
    return candidates[int(np.argmin(errors))](X, y)


# --- network ------------------------------------------------------------------------------------------------------


def network(kind: Kind, budget: int, X: Array, y: Array) -> Fitted:
    """Six settings; long runs."""
    hidden = int(np.clip((budget - 8) // (X.shape[1] + 5), 1, MOST_UNITS))
    settings = [
        *({"solver": "lbfgs", "max_iter": 1000, "alpha": alpha} for alpha in (1e-3, 1e-1, 1, 10)),
        *({"solver": "adam", "max_iter": 400, "alpha": alpha, "learning_rate_init": 0.01} for alpha in (1e-4, 1e-1)),
    ]

    def with_(keys: dict[str, Any]) -> Fit:
        return lambda X, y: quantized_network(
            kind, kind.network(hidden_layer_sizes=(hidden,), random_state=0, **keys).fit(X, y)
        )

    return best(kind, [with_(keys) for keys in settings], X, y)


def quantized_network(kind: Kind, model: Any) -> Fitted:
    """Weights in 8 bits, a scale for each unit; biases in 16."""
    (W, v), (b, c) = model.coefs_, model.intercepts_
    scale = np.maximum(np.abs(W).max(axis=0), 1e-30) / 127
    scale = scale.astype(np.float16).astype(float) if scale.max() < 60000 and scale.min() > 1e-7 else scale
    W = np.clip(np.rint(W / scale), -127, 127) * scale
    b = in_bits(b, 16)
    v = in_bits(v, 8)

    def predict(X: Array) -> Array:
        return kind.answer((np.maximum(X @ W + b, 0) @ v + c)[:, 0])

    return Fitted(predict, W.size + v.size + 4 * W.shape[1] + 8)


def in_bits(values: Array, bits: int) -> Array:
    """Rounded to a common scale."""
    scale = max(float(np.abs(values).max(initial=0.0)), 1e-30) / (2 ** (bits - 1) - 1)
    return np.rint(values / scale) * scale


# --- trees --------------------------------------------------------------------------------------------------------


def tree(kind: Kind, budget: int, X: Array, y: Array) -> Fitted:
    leaves = [size for part in (1, 2, 4) if (size := leaves_of(budget // NODE // part)) >= 2]
    return best(
        kind,
        [trees(kind.tree, max_leaf_nodes=size, min_samples_leaf=rows) for size in leaves for rows in (1, 5)],
        X,
        y,
    )


def forest(kind: Kind, budget: int, X: Array, y: Array) -> Fitted:
    nodes = budget // NODE
    return best(
        kind,
        [
            trees(kind.forest, n_estimators=k, max_leaf_nodes=leaves_of(nodes // k), max_features=share)
            for k in (3, 7, 15, 31, 63)
            if leaves_of(nodes // k) >= 2
            for share in ("sqrt", 0.5)
        ],
        X,
        y,
    )


def boosted(kind: Kind, budget: int, X: Array, y: Array) -> Fitted:
    nodes = budget // NODE
    return best(
        kind,
        [
            trees(
                kind.boosted,
                n_estimators=min(nodes // (2 * leaves - 1), MOST_TREES),
                max_leaf_nodes=leaves,
                max_depth=None,
                learning_rate=rate,
            )
            for leaves in (2, 4, 8, 16)
            if nodes >= 2 * leaves - 1
            for rate in (0.1, 0.3, 1.0)
        ],
        X,
        y,
    )


def leaves_of(nodes: int) -> int:
    """Leaves of a binary tree of so many nodes."""
    return (nodes + 1) // 2


def trees(model: Any, **keys: Any) -> Fit:
    return lambda X, y: quantized_trees(model(random_state=0, **keys).fit(X, y))


def quantized_trees(model: Any) -> Fitted:
    """Thresholds in 16 bits (steps of 1/2048 of a standard deviation, up to 16), leaf values in 16."""
    all_ = [one.tree_ for one in np.ravel(getattr(model, "estimators_", model))]
    largest = max(float(np.abs(t.value).max()) for t in all_)
    for t in all_:
        inner = t.children_left >= 0
        t.threshold[inner] = np.clip(np.rint(t.threshold[inner] * 2048) / 2048, -16, 16)
        t.value[:] = np.rint(t.value * (32767 / largest)) * (largest / 32767)
    return Fitted(model.predict, NODE * sum(t.node_count for t in all_))


# --- ProtoNN ------------------------------------------------------------------------------------------------------


def protonn_missing() -> str | None:
    """What is not installed."""
    lacks = [name for name in ("torch", "edgeml_pytorch") if importlib.util.find_spec(name) is None]
    return f"ProtoNN needs {' and '.join(lacks)}: pip install 'slimsvm[protonn]'" if lacks else None


def protonn(budget: int, X: Array, y: Array) -> Fitted:
    """Dimensions of the projection and the rate are tuned."""
    return best(CLASSES, list(_protonn_candidates(budget, X.shape[1])), X, y, part=0.25)


def _protonn_candidates(budget: int, d: int) -> Iterator[Fit]:
    tried = sorted({min(dims, d) for dims in (2, 5, 10, 20, 40)})
    fitting = [dims for dims in tried if budget - 16 - d * dims >= 2 * (dims + 2)] or [1]
    for dims in fitting:
        count = int(np.clip((budget - 16 - d * dims) // (dims + 2), 2, MOST_UNITS))
        for rate in (0.01, 0.05):
            yield lambda X, y, dims=dims, count=count, rate=rate: fit_protonn(X, y, dims, count, rate)


def fit_protonn(X: Array, y: Array, dims: int, count: int, rate: float) -> Fitted:
    """The package's model: projection from principal components, prototypes from clusters, Adam with one cycle."""
    import torch
    from edgeml_pytorch.graph.protoNN import ProtoNN

    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = min(count, len(X) // 2)
    steps = int(np.clip(100 * len(X) / 128, 600, 6000))  # about 100 epochs
    W = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:dims].T
    P = X @ W
    shares = np.maximum(1, np.rint(count * np.bincount(y) / len(y))).astype(int)
    shares[shares.argmax()] -= shares.sum() - count
    groups = [KMeans(k, n_init=1, max_iter=20, random_state=0).fit(P[y == c]) for c, k in enumerate(shares)]
    B = np.vstack([g.cluster_centers_ for g in groups])
    Z = np.repeat(np.eye(2), shares, axis=0).T
    near = np.sqrt(((P[:500, None] - B) ** 2).sum(axis=2))
    gamma = 2.5 / max(float(np.median(near)), 1e-6)  # the median rule of the package
    model = ProtoNN(X.shape[1], dims, len(B), 2, gamma, W, B.T, Z)
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.long)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        some = torch.randint(len(rows), (min(128, len(rows)),), generator=draw)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(rows[some]), labels[some]).backward()
        optimizer.step()
        cycle.step()
    with torch.no_grad():
        for matrix in (model.W, model.B, model.Z):
            matrix.copy_(torch.tensor(in_bits(matrix.numpy(), 8), dtype=torch.float32))
    n_bytes = sum(m.numel() for m in (model.W, model.B, model.Z)) + 16

    def predict(X: Array) -> Array:
        with torch.no_grad():
            return model(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).numpy()

    return Fitted(predict, n_bytes)


OTHERS = {"network": network, "tree": tree, "forest": forest, "boosted": boosted}

RIVALS: dict[str, Rival] = {
    "slim": slim,
    **{name: partial(fit, CLASSES) for name, fit in OTHERS.items()},
    "protonn": protonn,
}
VALUE_RIVALS: dict[str, Rival] = {
    "slim": slim_values,
    **{name: partial(fit, VALUES) for name, fit in OTHERS.items()},
}
