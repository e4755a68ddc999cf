"""Small machines by name, and what tests of them share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import reference
from slimsvm import EmpiricalSVC, ReducedSVC, SlimSVC, bases, kernels

SLACKS = {"l1": "Hinge", "l2": "SquaredHinge"}
BASES = ["learned", "forward", "kmeans", "random", "cholesky"]
CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
containers = pytest.mark.parametrize("container", CONTAINERS)
every_basis = pytest.mark.parametrize("basis", BASES)


def slim(n_vectors=6, basis="learned", **params):
    """Without search, and with few iterations."""
    params = {"C": 2.0, "gamma": 0.4, "scales": "fixed", "learning_iter": 10, **params}
    return SlimSVC(n_vectors, basis, **params)


# Every estimator and way to find vectors; few of them, whatever the data.
MODELS = {f"slim {basis}": slim(basis=basis) for basis in BASES}
MODELS |= {f"slim from {init}": slim(init=init) for init in ("forward", "random", "cholesky")}
MODELS |= {
    "slim l1": slim(slack="l1"),
    "slim hinge itself": slim(slack="l1", smoothing=0, learning_iter=4),
    "slim scales": slim(scales="learned"),
    "slim per class": slim(vectors="per_class"),
    "slim identity": slim(regularizer="identity"),
    "slim ovr": slim(multi_class="ovr"),
    "empirical order": EmpiricalSVC(0.2, C=2.0, gamma=0.4),
    "empirical pivoted": EmpiricalSVC(0.2, "pivoted", C=2.0, gamma=0.4),
    "empirical identity l2": EmpiricalSVC(0.2, regularizer="identity", slack="l2", C=2.0, gamma=0.4),
    "reduced": ReducedSVC(6, C=2.0, gamma=0.4),
    "reduced kernel l1": ReducedSVC(6, regularizer="kernel", slack="l1", C=2.0, gamma=0.4),
}
every_model = pytest.mark.parametrize("model", MODELS)


def make(name):
    return clone(MODELS[name])


def textbook(kernel, X, Z):
    """k(X, Z) of a fitted model's kernel, by the reference."""
    X, Z = bases.dense(X), bases.dense(Z)
    if isinstance(kernel, kernels.Scaled):
        return textbook(kernel.kernel, X * kernel.scales, Z * kernel.scales)
    if isinstance(kernel, kernels.Function):
        return kernel.function(X, Z)
    return reference.kernel_matrix(kernel.name, X, Z, **kernel.get_params())


def scores(model, X):
    """f = vector_coef_ @ k(vectors_, x) + intercept_, as documented."""
    return textbook(model.kernel_, X, model.vectors_) @ model.vector_coef_.T + model.intercept_
