"""Fitted models whose bits must stay the same, and their fingerprints.

``python tests/golden_models.py --write`` writes tests/data/golden_models.json, with which test_golden_models.py
compares. ``python tests/golden_models.py NAME ...`` prints the fingerprints of groups or of single models.

A fingerprint has one hash for each public fitted attribute of a model, for each of its answers on rows that it has not
seen, and for the warnings of its fit. Bits depend on the instruction set, so every run happens in a process of its own
in which the core, numpy and BLAS use fixed instructions.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

import slimsvm
from slimsvm import (
    SVC,
    SVR,
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Predictor,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimOneClass,
    SlimSVC,
    SlimSVR,
    bases,
    compress,
    frontier,
    kernels,
    losses,
    regularizers,
    rows,
    slacks,
)
from slimsvm.export import quantize

FILE = Path(__file__).parent / "data" / "golden_models.json"

# Instructions of the core, BLAS and numpy that every x86-64 machine of the last ten years has.
_DISPATCHED = np.show_config(mode="dicts")["SIMD Extensions"]
PINNED = {
    "SLIMSVM_ISA": "baseline",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": " ".join(sorted([*_DISPATCHED.get("found", []), *_DISPATCHED.get("not found", [])])),
}


# --- fingerprints ----------------------------------------------------------------------------------------------------

ANSWERS = ("decision_function", "predict", "predict_proba", "predict_interval")
# What is public of fitted attributes that are objects.
FIELDS = {
    "compression_": (
        "method",
        "vectors_before",
        "vectors_after",
        "bytes_before",
        "bytes_after",
        "agreement_on_vectors",
        "agreement_on_X",
        "distance",
        "distances",
        "speedup",
        "note",
    ),
    "frontier_": ("sizes", "scores", "standard_errors"),
    "stream_": ("memory.X",),
}


def fingerprint(value: Any) -> str:
    """Hashes the type, shape and raw bytes of arrays, numbers, text and containers of them."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:16]


def _feed(digest: Any, value: Any) -> None:
    if hasattr(value, "compute"):  # lazy
        value = value.compute()
    if sp.issparse(value):
        _feed(digest, [value.format, value.shape, value.data, value.indices, value.indptr])
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        digest.update(f"array {value.dtype.str} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray | list | tuple):
        kind = "objects" if isinstance(value, np.ndarray) else type(value).__name__
        digest.update(f"{kind} {len(value)} ".encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, dict):
        digest.update(f"dict {len(value)} ".encode())
        for key in sorted(value, key=repr):
            _feed(digest, [key, value[key]])
    elif isinstance(value, bytes):
        digest.update(b"bytes %d " % len(value) + value)
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(f"{type(value).__name__} {str(value) if isinstance(value, str) else value!r} ".encode())
    elif hasattr(value, "__array_namespace__"):  # on a device
        _feed(digest, np.asarray(value.to_device(_strict().Device("CPU_DEVICE"))))
    else:
        raise TypeError(f"{type(value).__name__} has no fingerprint")


def attributes(model: Any) -> dict[str, Any]:
    """Collects the public fitted attributes of a model that are numbers, text, arrays or containers of them."""
    found = {}
    for name in dir(model):
        if not name.endswith("_") or name.startswith("_"):
            continue
        with warnings.catch_warnings(action="ignore"):  # scikit-learn's own, about names that it will drop
            if not hasattr(model, name):
                continue
            value = getattr(model, name)
        if name == "kernel_":
            found |= _of_kernel(value)
        elif name == "regularizer_":
            found[name] = repr(value)
        elif name in FIELDS:
            found |= {f"{name}.{field}": _field(value, field) for field in FIELDS[name]}
        else:
            found[name] = value
    return found


def _field(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _of_kernel(kernel: Any) -> dict[str, Any]:
    """Collects the kernel's text without addresses, and all digits of its parameters."""
    found = {"kernel_": _without_addresses(repr(kernel))}
    for name in ("gamma", "coef0", "degree", "scales"):
        if hasattr(kernel, name):
            found[f"kernel_.{name}"] = getattr(kernel, name)
    if hasattr(kernel, "kernel"):
        found |= {f"kernel_.{name}": value for name, value in _of_kernel(kernel.kernel).items()}
    return found


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Collects what a model answers on rows, by the name of the method."""
    return {f"{name}(X)": getattr(model, name)(X) for name in ANSWERS if hasattr(model, name)}


@dataclass(frozen=True)
class Golden:
    """A declared model: ``make()`` fits it and returns its parts by name; ``needs`` names the packages it imports."""

    make: Callable[[], dict[str, Any]]
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Lists the packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    def result(self) -> dict[str, Any]:
        """Computes the fingerprint: a hash for each part, and a few numbers that can be read."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            parts = self.make()
        said = [f"{w.category.__name__}: {_without_addresses(str(w.message))}" for w in caught if _counts(w.category)]
        hashes = {}
        for name, value in {**parts, "warnings": said}.items():
            try:
                hashes[name] = fingerprint(value)
            except TypeError:  # an object
                continue
        return {"numbers": _readable(parts, said), "hashes": hashes}


def _counts(category: type[Warning]) -> bool:
    """Tells warnings about a fit from those of other libraries about their own interfaces and files."""
    return not issubclass(category, DeprecationWarning | PendingDeprecationWarning | ResourceWarning | ImportWarning)


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _readable(parts: dict[str, Any], said: list[str]) -> dict[str, float]:
    """Computes numbers that show how far off a changed model is."""
    found: dict[str, float] = {}
    if "objective_" in parts:
        found["sum of objective_"] = float(np.sum(parts["objective_"]))
    for name in ("decision_function(X)", "predict(X)"):
        values = np.asarray(parts[name]) if type(parts.get(name)) is np.ndarray else None
        if values is not None and values.dtype.kind == "f":
            found[f"mean of |{name}|"] = float(np.abs(values).mean())
            break
    if said:
        found["number of warnings"] = len(said)
    return found


# --- rows ------------------------------------------------------------------------------------------------------------


def draw(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Draws inputs, and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, -1] ** 2 + 0.2 * rng.standard_normal(n)


def classes(n: int = 300, several: int = 2, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Draws rows of two or more classes that overlap."""
    X, f = draw(n, d, seed)
    return X, np.digitize(f, np.quantile(f, np.arange(1, several) / several))


def targets(n: int = 300, d: int = 4, seed: int = 1) -> tuple[Any, Any]:
    """Draws rows with real-valued targets."""
    return draw(n, d, seed)


def weights(n: int, seed: int = 2) -> Any:
    """Draws sample weights; every ninth row has none."""
    w = np.random.default_rng(seed).uniform(0.25, 3, n)
    w[::9] = 0
    return w


def short(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """Rounds inputs to float32."""
    return data[0].astype(np.float32), data[1]


def unseen(d: int = 4) -> Any:
    """Draws the rows that all models answer."""
    return np.random.default_rng(99).standard_normal((23, d))


FEW, FEW3 = classes(60, seed=7), classes(90, 3, seed=8)
TWO, THREE, REAL = classes(), classes(360, 3), targets()
WORDS = np.array(["no", "yes"])[TWO[1]]
MORE, MORE3, MORE_REAL = classes(1500, seed=3), classes(1500, 3, seed=4), targets(1500, seed=5)
BOTH = (REAL[0], np.c_[REAL[1], REAL[0][:, 0] * REAL[0][:, 1]])  # two targets
TWICE = (np.r_[TWO[0], TWO[0][:40], TWO[0][:10]], np.r_[TWO[1], TWO[1][:40], 1 - TWO[1][:10]])
FIXED = {"C": 2.0, "gamma": 0.4, "scales": "fixed"}
MACHINE = {"C": 2.0, "gamma": 0.4}


# --- declarations ----------------------------------------------------------------------------------------------------

GROUPS: dict[str, dict[str, Golden]] = {}


def declare(group: str, name: str, make: Callable[[], dict[str, Any]], *needs: str) -> None:
    """Adds a model to a group."""
    models = GROUPS.setdefault(group, {})
    assert name not in models, name
    models[name] = Golden(make, needs)


def fits(group: str, name: str, model: Any, data: Any, *more: Any, test: Any = None) -> None:
    """Declares a model that is fitted to ``data``, a tuple or a function that returns one, and to ``more``."""

    def make() -> dict[str, Any]:
        given = data() if callable(data) else data
        fitted = clone(model).fit(*given, *more)
        return attributes(fitted) | answers(fitted, unseen() if test is None else test)

    declare(group, name, make)


def part_of(name: str) -> Callable[[Any], Any]:
    """Decorates a function that returns parts: it becomes a model of the group ``name``."""

    def keep(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        declare(name, make.__name__.replace("_", " "), make)
        return make

    return keep


def linear_function(X: Any, Z: Any) -> Any:
    """Computes a kernel as a plain function: products and their squares."""
    products = np.einsum("ik,jk->ij", np.asarray(X), np.asarray(Z))
    return products + 0.5 * products**2


@dataclass(frozen=True)
class Cauchy(kernels.Base):
    """A kernel class of the user's own, with the derivative that learning needs."""

    width: float = 2.0
    positive_semidefinite = True
    translation_invariant = True

    def __call__(self, X: Any, Z: Any, out: Any = None, threads: int = 1) -> Any:
        K = 1 / (1 + ((X[:, None, :] - Z) ** 2).sum(axis=2) / self.width**2)
        if out is None:
            return K
        out[...] = K
        return out

    def diagonal(self, X: Any) -> Any:
        return np.ones(X.shape[0])

    def pullback(self, X: Any, Z: Any, W: Any, K: Any = None) -> Any:
        K = self(X, Z) if K is None else K
        slope = 2 * (X[:, None, :] - Z) / self.width**2
        return np.einsum("ij,ijk->jk", W * K**2, slope)


# scikit-learn's machines.
fits("family", "SVC", SVC(**MACHINE), TWO)
fits("family", "SVC laplacian, words, class weights", SVC(kernel="laplacian", class_weight="balanced"), (TWO[0], WORDS))
fits("family", "SVC poly, three classes, ovo", SVC(kernel="poly", coef0=1.0, decision_function_shape="ovo"), THREE)
fits("family", "SVC probability", SVC(probability=True, random_state=0, **MACHINE), THREE)
fits("family", "SVC sparse rows, weights", SVC(kernel="linear"), (sp.csr_array(TWO[0]), TWO[1]), weights(300))
fits("family", "SVC float32", SVC(gamma="auto"), short(TWO), test=unseen().astype(np.float32))
fits("family", "SVC precomputed", SVC(kernel="precomputed"), (TWO[0] @ TWO[0].T, TWO[1]), test=unseen() @ TWO[0].T)
fits("family", "SVC callable", SVC(kernel=linear_function, C=0.5), TWO)
fits("family", "SVC sigmoid, few iterations", SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0, max_iter=20), TWO)
fits("family", "NuSVC", NuSVC(nu=0.3, gamma=0.4), TWO)
fits("family", "NuSVC three classes, weights", NuSVC(nu=0.2, break_ties=True), THREE, weights(360))
fits("family", "SVR", SVR(**MACHINE), REAL)
fits("family", "SVR poly, weights", SVR(kernel="poly", degree=2, epsilon=0.2), REAL, weights(300))
fits("family", "NuSVR", NuSVR(nu=0.4, **MACHINE), REAL)
fits("family", "OneClassSVM", OneClassSVM(nu=0.2, gamma=0.4), (TWO[0],))
fits("family", "OneClassSVM laplacian, weights", OneClassSVM(kernel="laplacian"), (TWO[0], None), weights(300))

# All rows, any norm of the slacks.
NORMS = {
    "l1": "l1",
    "l2": "l2",
    "TwoNorm": slacks.TwoNorm(),
    "PNorm 1.5": slacks.PNorm(1.5),
    "PNorm 3": slacks.PNorm(3.0),
    "MaxNorm": slacks.MaxNorm(),
    "TopSum": slacks.TopSum(19.0),
    "TopTwoNorm": slacks.TopTwoNorm(19.0),
    "OneTwoNorm": slacks.OneTwoNorm(3.0),
}
for _name, _slack in NORMS.items():
    fits("norms", f"AnyNormSVC {_name}", AnyNormSVC(_slack, **{**MACHINE, "C": 50.0}), TWO)
    fits("norms", f"AnyNormSVC {_name}, few rows", AnyNormSVC(_slack, tol=1e-7, **MACHINE), FEW)
for _name in ("l2", "PNorm 1.5", "TopSum"):
    fits("norms", f"AnyNormSVC {_name}, equality", AnyNormSVC(NORMS[_name], "equality", **MACHINE), TWO)
RING = 3 * np.eye(300) - np.roll(np.eye(300), 1, axis=0) - np.roll(np.eye(300), -1, axis=0)
fits("norms", "AnyNormSVC Mahalanobis", AnyNormSVC(slacks.Mahalanobis(RING), **MACHINE), TWO)
fits("norms", "AnyNormSVC three classes, ovr", AnyNormSVC(multi_class="ovr", **MACHINE), THREE)
fits("norms", "AnyNormSVC TopSum, three classes, weights", AnyNormSVC(slacks.TopSum(5.0)), THREE, weights(360))
fits("norms", "AnyNormSVC repeated rows, class weights", AnyNormSVC("l2", class_weight={0: 1.0, 1: 3.0}), TWICE)
fits("norms", "AnyNormSVC float64, poly", AnyNormSVC(kernel="poly", degree=2, precision="float64", coef0=1.0), TWO)
fits("norms", "AnyNormSVC own kernel class", AnyNormSVC(kernel=Cauchy(), tol=1e-6), TWO)
fits("norms", "AnyNormSVC sigmoid", AnyNormSVC(kernel="sigmoid", gamma=0.5, coef0=-1.0), TWO)
fits("norms", "AnyNormSVC many rows", AnyNormSVC(C=5.0, gamma=1.0, cache_size=1), lambda: classes(3000, seed=6))
fits("norms", "AnyNormSVC two threads", AnyNormSVC("l2", C=5.0, gamma=1.0, n_jobs=2), MORE3)
fits("norms", "AnyNormSVC large C", AnyNormSVC(C=1e9, gamma=2.0), FEW)
fits("norms", "AnyNormSVC linear, large C", AnyNormSVC(kernel="linear", C=1e6), (FEW[0], FEW[0][:, 0] > 0.3))
fits(
    "norms",
    "AnyNormSVC inputs of many sizes",
    AnyNormSVC(kernel="linear", C=1e3),
    (FEW[0] * [1e-6, 1, 1e3, 1e6], FEW[1]),
)
fits("norms", "AnyNormSVC columns in memory", AnyNormSVC(**MACHINE), (np.asfortranarray(TWO[0]), TWO[1]))
fits("norms", "AnyNormSVC few iterations", AnyNormSVC("l2", tol=1e-9, max_iter=3, **MACHINE), TWO)
fits("norms", "BudgetSVC l1", BudgetSVC(12, **MACHINE), TWO)
fits("norms", "BudgetSVC l2, three classes", BudgetSVC(30, "l2", **MACHINE), THREE)
fits("norms", "BudgetSVC hard select", BudgetSVC(8, hard="select", **MACHINE), THREE)
fits("norms", "BudgetSVC hard learn", BudgetSVC(6, "l2", hard="learn", **MACHINE), TWO)
fits("norms", "LeastSquaresSVC", LeastSquaresSVC(**MACHINE), THREE)
fits("norms", "LeastSquaresSVC many rows", LeastSquaresSVC(tol=1e-6, **MACHINE), lambda: classes(2500, seed=9))
fits("norms", "LeastOneNormSVC", LeastOneNormSVC(**MACHINE), TWO)
fits(
    "norms", "LeastOneNormSVC weights, sparse rows", LeastOneNormSVC(), (sp.csr_array(THREE[0]), THREE[1]), weights(360)
)

# Classifiers that choose their size.
for _p in (0.0, 0.5, 1.0, 1.5, 2.0, np.inf):
    fits("sizes", f"LpSVC p={_p}", LpSVC(_p, **MACHINE), TWO)
fits("sizes", "LpSVC many rows", LpSVC(0.0, C=0.5, gamma=0.4), MORE)
fits("sizes", "LpSVC diagonal, three classes", LpSVC(0.0, variant="diagonal", C_alpha=0.3, **MACHINE), THREE)
fits("sizes", "LpSVC p=1 probability, ovr", LpSVC(1.0, multi_class="ovr", probability=True, **MACHINE), FEW3)
fits(
    "sizes", "LpSVC sparse rows, weights", LpSVC(0.0, kernel="laplacian"), (sp.csr_array(TWO[0]), TWO[1]), weights(300)
)
fits("sizes", "LpSVC few rounds", LpSVC(0.5, max_iter=2, **MACHINE), TWO)
fits("sizes", "EmpiricalSVC", EmpiricalSVC(0.2, **MACHINE), TWO)
fits(
    "sizes",
    "EmpiricalSVC pivoted, l2, identity",
    EmpiricalSVC(0.2, "pivoted", regularizer="identity", slack="l2"),
    THREE,
)
fits("sizes", "ReducedSVC", ReducedSVC(15, **MACHINE), TWO)
fits("sizes", "ReducedSVC kernel, l1, weights", ReducedSVC(15, regularizer="kernel", slack="l1"), THREE, weights(360))
fits("sizes", "ReducedSVC probability, sparse rows", ReducedSVC(12, probability=True), (sp.csr_array(TWO[0]), TWO[1]))
fits("sizes", "ReducedSVC l1, many rows", ReducedSVC(12, slack="l1", **MACHINE), lambda: classes(6000, seed=10))
fits("sizes", "ReducedSVC own loss", ReducedSVC(12, slack=losses.HuberHinge(0.5), **MACHINE), TWO)
fits("sizes", "RelevanceVectorClassifier", RelevanceVectorClassifier(gamma=0.4), TWO)
fits("sizes", "RelevanceVectorClassifier three classes", RelevanceVectorClassifier("laplacian"), FEW3, weights(90))

# Few vectors.
LEARNED = bases.Learned(iterations=12)
for _basis in ("forward", "kmeans", "random", "cholesky"):
    fits("slim", f"SlimSVC {_basis}", SlimSVC(6, _basis, **FIXED), MORE)
fits("slim", "SlimSVC learned", SlimSVC(6, **FIXED), MORE)
fits("slim", "SlimSVC scales learned", SlimSVC(5, LEARNED, C=2.0, gamma=0.4, scales="learned"), MORE3)
fits("slim", "SlimSVC given vectors", SlimSVC(7, MORE[0][:7], **FIXED), MORE)
fits("slim", "SlimSVC vectors as a start", SlimSVC(7, bases.Learned(init=MORE[0][:7], iterations=5), **FIXED), MORE)
fits(
    "slim", "SlimSVC l1, hinge itself", SlimSVC(5, bases.Learned(iterations=6, smoothing=0), slack="l1", **FIXED), MORE
)
fits("slim", "SlimSVC identity, ovr", SlimSVC(6, LEARNED, regularizer="identity", multi_class="ovr", **FIXED), MORE3)
fits("slim", "SlimSVC search", SlimSVC(5, LEARNED), TWO)
fits("slim", "SlimSVC search of C, several classes", SlimSVC(5, "kmeans", gamma=0.4, scales="fixed"), THREE)
fits("slim", "SlimSVC search, two threads", SlimSVC(6, LEARNED, n_jobs=2), MORE)
fits(
    "slim",
    "SlimSVC many rows, float32",
    SlimSVC(8, **FIXED),
    lambda: short(classes(6000, seed=11)),
    test=unseen().astype(np.float32),
)
fits("slim", "SlimSVC auto", SlimSVC("auto", bases.Learned(iterations=4), **FIXED), MORE)
fits("slim", "SlimSVC max_bytes", SlimSVC(max_bytes=100, basis=LEARNED, **FIXED), MORE)
fits("slim", "SlimSVC probability, weights", SlimSVC(6, LEARNED, probability=True, **FIXED), MORE3, weights(1500))
fits("slim", "SlimSVC sparse float32", SlimSVC(5, LEARNED, **FIXED), (sp.csr_array(short(MORE)[0]), MORE[1]))
fits("slim", "SlimSVC own kernel class", SlimSVC(5, LEARNED, kernel=Cauchy(), C=2.0, scales="fixed"), MORE)
fits("slim", "SlimSVC callable kernel", SlimSVC(5, "forward", kernel=linear_function, C=1.0), MORE)
fits("slim", "SlimSVC laplacian", SlimSVC(5, LEARNED, kernel="laplacian", **FIXED), MORE)
fits("slim", "SlimSVC sigmoid", SlimSVC(5, "forward", kernel="sigmoid", coef0=-1.0, **FIXED), MORE)
fits("slim", "SlimSVC learned from some rows", SlimSVC(5, bases.Learned("random", 10, rows=400), **FIXED), MORE)
fits(
    "slim", "SlimSVC reweighted norm", SlimSVC(20, "forward", regularizer=regularizers.ReweightedNorm(), **FIXED), MORE
)
fits("slim", "SlimSVC linear", SlimSVC(kernel="linear", C=1.0), MORE)
fits("slim", "SlimSVC poly, repeated rows", SlimSVC(5, LEARNED, kernel="poly", coef0=1.0, **FIXED), TWICE)
fits("slim", "SlimSVR", SlimSVR(6, LEARNED, **FIXED), MORE_REAL)
fits("slim", "SlimSVR intervals, two targets", SlimSVR(8, LEARNED, intervals=True, **FIXED), BOTH)
fits("slim", "SlimSVR epsilon insensitive", SlimSVR(6, "forward", loss="epsilon_insensitive", **FIXED), MORE_REAL)
fits("slim", "SlimSVR huber, weights", SlimSVR(6, LEARNED, loss="huber", **FIXED), MORE_REAL, weights(1500))
fits("slim", "SlimSVR max_bytes", SlimSVR(max_bytes=120, basis=LEARNED, **FIXED), MORE_REAL)
fits("slim", "SlimSVR auto", SlimSVR("auto", bases.Learned(iterations=4), **FIXED), MORE_REAL)
fits("slim", "SlimSVR search", SlimSVR(5, "kmeans", scales="fixed"), REAL)
fits("slim", "SlimOneClass", SlimOneClass(6, gamma=0.4), (MORE[0],))
fits(
    "slim", "SlimOneClass contamination, poly", SlimOneClass(6, contamination=0.2, kernel="poly", coef0=1.0), (TWO[0],)
)
fits("slim", "SlimOneClass max_bytes", SlimOneClass(max_bytes=90, gamma=0.3), (TWO[0],))
fits("slim", "SlimOneClass auto", SlimOneClass("auto", nu=0.2, gamma=0.2), (TWO[0],))


def streamed(model: Any, X: Any, y: Any, size: int, w: Any = None, **first: Any) -> dict[str, Any]:
    """Feeds rows to a model a block at a time."""
    model = clone(model)
    for start in range(0, len(X), size):
        now = slice(start, start + size)
        given = (X[now],) if y is None else (X[now], y[now])
        model.partial_fit(*given, **({} if start else first), **({} if w is None else {"sample_weight": w[now]}))
    return attributes(model) | answers(model, unseen())


@part_of("slim")
def stream_of_two_classes():
    return streamed(SlimSVC(5, LEARNED, memory=500, **FIXED), *MORE, 300)


@part_of("slim")
def stream_of_recent_rows_three_classes():
    model = SlimSVC(5, LEARNED, memory=400, recent=True, probability=True, **FIXED)
    return streamed(model, *MORE3, 400, weights(1500), classes=[0, 1, 2])


@part_of("slim")
def stream_of_targets():
    return streamed(SlimSVR(5, LEARNED, memory=500, **FIXED), *MORE_REAL, 400)


# A large machine becomes a small one.
def compressed(model: Any, *given: Any, **named: Any) -> dict[str, Any]:
    """Compresses a fitted model."""
    small = compress(model, *given, **named)
    return attributes(small) | answers(small, unseen())


@cache
def full_machine(several: int = 2) -> Any:
    """Fits scikit-learn's machine, which is compressed below."""
    return sklearn.svm.SVC(**MACHINE).fit(*(TWO if several == 2 else THREE))


for _method in ("reduced_set", "refit", "margin", "learn"):
    for _several in (2, 3):

        def _make(method=_method, several=_several):
            return compressed(full_machine(several), 6, *(TWO if several == 2 else THREE), method=method)

        declare("small", f"compress {_method}, {_several} classes", _make)


@part_of("small")
def compress_without_rows():
    return compressed(full_machine(3), 5)


@part_of("small")
def compress_auto_size_and_probability():
    return compressed(full_machine(), "auto", *TWO, probability=True, agreement=0.95)


@part_of("small")
def compress_a_pipeline():
    model = make_pipeline(StandardScaler(), sklearn.svm.SVC(**MACHINE)).fit(*TWO)
    small = compress(model, 5, *TWO)
    return attributes(small.steps[-1][1]) | answers(small, unseen())


fits("small", "CompressedClassifier", CompressedClassifier(SVC(**MACHINE), 6), THREE)
fits("small", "CompressedClassifier labels", CompressedClassifier(AnyNormSVC("l2", **MACHINE), 6, fit_to="labels"), TWO)
for _method in ("reduced_set", "refit", "learn"):

    def _make(method=_method):
        return compressed(SVR(**MACHINE).fit(*REAL), 8, *REAL, method=method, sample_weight=weights(300))

    declare("small", f"compress {_method}, targets", _make)
fits("small", "CompressedClassifier auto", CompressedClassifier(SVC(**MACHINE), "auto", agreement=0.9), TWO)
fits("small", "CompressedRegressor", CompressedRegressor(SVR(**MACHINE), 6), REAL)
fits("small", "CompressedOutlierDetector", CompressedOutlierDetector(OneClassSVM(nu=0.2, gamma=0.4), 6), (TWO[0],))


def on_a_frontier(found: Any) -> dict[str, Any]:
    """Collects the table of models of several sizes, without seconds, and the models themselves."""
    table = [{key: value for key, value in row.items() if key != "seconds"} for row in found.rows]
    parts = {"rows": table, "why": found.chosen.why, "scoring": found.scoring}
    if found.full is not None:
        parts |= {"full": [found.full.vectors, found.full.bytes, found.full.score, found.full.standard_error]}
    for size, model in found.models.items():
        parts |= {f"{size}: {name}": value for name, value in (attributes(model) | answers(model, unseen())).items()}
    return parts


@part_of("small")
def frontier_of_classes():
    return on_a_frontier(frontier(*THREE, sizes=(2, 4, 8), estimator=SlimSVC(8, LEARNED, **FIXED)))


@part_of("small")
def frontier_of_targets():
    return on_a_frontier(frontier(*REAL, sizes=(2, 5), estimator=SlimSVR(5, LEARNED, **FIXED), cv=3))


# Rows that are not arrays in memory.
def in_blocks(*parts: Any, size: int = 400) -> Any:
    """Cuts arrays into blocks of different lengths."""
    n = parts[0].shape[0]
    starts = [0, 30, *range(30 + size, n, size)]
    return rows.from_blocks([tuple(part[a:b] for part in parts) for a, b in zip(starts, [*starts[1:], n], strict=True)])


def frame(X: Any, y: Any) -> Any:
    """Makes a data frame with a column ``label``."""
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(label=y)


def from_file(write: Callable[[Any, str], None], read: Callable[[str], Any], model: Any) -> dict[str, Any]:
    """Writes rows to a file and fits a model to the file."""
    table = frame(*MORE3)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows")
        write(table, path)
        fitted = clone(model).fit(read(path))
    inputs = table.drop(columns="label").iloc[:20]
    return attributes(fitted) | answers(fitted, inputs if hasattr(fitted, "feature_names_in_") else inputs.to_numpy())


_SLIM = SlimSVC(6, LEARNED, **FIXED)
fits("elsewhere", "blocks", _SLIM, lambda: (in_blocks(*MORE),))
fits(
    "elsewhere",
    "blocks, three classes, l1, weights",
    SlimSVC(6, "forward", slack="l1", **FIXED),
    lambda: (in_blocks(*MORE3, weights(1500)),),
)
fits(
    "elsewhere",
    "blocks, ReducedSVC, sparse",
    ReducedSVC(12, **MACHINE),
    lambda: (in_blocks(sp.csr_array(MORE[0]), MORE[1]),),
)
fits("elsewhere", "blocks, EmpiricalSVC", EmpiricalSVC(0.5, **MACHINE), lambda: (in_blocks(*MORE3),))
fits("elsewhere", "blocks, SlimSVR", SlimSVR(6, LEARNED, **FIXED), lambda: (in_blocks(*MORE_REAL),))


def _csv() -> dict[str, Any]:
    def write(table, path):
        table.to_csv(path, index=False)

    return from_file(write, lambda path: rows.from_csv(path, "label", block_rows=400), _SLIM)


def _parquet() -> dict[str, Any]:
    def write(table, path):
        table.to_parquet(path)

    return from_file(write, lambda path: rows.from_parquet(path, "label", block_rows=400), ReducedSVC(12, **MACHINE))


def _svmlight() -> dict[str, Any]:
    def write(table, path):
        dump_svmlight_file(table.drop(columns="label").to_numpy(), table["label"], path, zero_based=False)

    return from_file(write, lambda path: rows.from_svmlight(path, n_features=4, block_rows=400), _SLIM)


declare("elsewhere", "CSV", _csv, "pandas")
declare("elsewhere", "svmlight", _svmlight, "pandas")
declare("elsewhere", "Parquet", _parquet, "pandas", "pyarrow")


def on_dask(model: Any, X: Any, y: Any, w: Any = None, chunks: int = 300) -> dict[str, Any]:
    """Fits a model to dask arrays and lets it answer lazily."""
    import dask.array as da

    far = [da.from_array(part, chunks=chunks) for part in (X, y, w) if part is not None]
    fitted = clone(model).fit(*far)
    return attributes(fitted) | answers(fitted, da.from_array(unseen(), chunks=(10, 4)))


def _dask_without_a_cluster() -> dict[str, Any]:
    import dask

    with dask.config.set(scheduler="synchronous"):
        return on_dask(_SLIM, *MORE)


def _dask_cluster() -> dict[str, Any]:
    from distributed import Client, LocalCluster

    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
        "memory_limit": 0,
    }
    with LocalCluster(**options) as cluster, Client(cluster):
        return on_dask(ReducedSVC(12, slack="l1", **MACHINE), *MORE3, weights(1500))


def _dask_frame() -> dict[str, Any]:
    import dask
    import dask.dataframe as dd

    table = frame(*MORE)
    far = dd.from_pandas(table, npartitions=4)
    with dask.config.set(scheduler="synchronous"):
        fitted = clone(_SLIM).fit(far.drop(columns="label"), far["label"])
        return attributes(fitted) | answers(fitted, table.drop(columns="label").iloc[:20])


def _dask_targets() -> dict[str, Any]:
    import dask

    with dask.config.set(scheduler="synchronous"):
        return on_dask(SlimSVR(6, "forward", **FIXED), *MORE_REAL)


declare("elsewhere", "dask data frame", _dask_frame, "dask", "distributed", "pandas")
declare("elsewhere", "dask without a cluster", _dask_without_a_cluster, "dask", "distributed")
declare("elsewhere", "dask without a cluster, targets", _dask_targets, "dask", "distributed")
declare("elsewhere", "dask cluster, three classes, weights", _dask_cluster, "dask", "distributed")


@cache
def _strict() -> Any:
    import array_api_strict

    return array_api_strict


def on_a_device(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Fits a model to arrays of array-api-strict on a device of its own."""
    strict = _strict()

    def there(values: Any) -> Any:
        return strict.asarray(values, device=strict.Device("device1"))

    before = os.environ.get("SCIPY_ARRAY_API")
    os.environ["SCIPY_ARRAY_API"] = "1"
    try:
        with sklearn.config_context(array_api_dispatch=True):
            fitted = clone(model).fit(there(X), y)
            return attributes(fitted) | answers(fitted, there(unseen()))
    finally:
        os.environ.pop("SCIPY_ARRAY_API")
        if before is not None:
            os.environ["SCIPY_ARRAY_API"] = before


DEVICE = ("array_api_strict", "array_api_compat")
declare("elsewhere", "device, learned", lambda: on_a_device(_SLIM, *MORE), *DEVICE)
declare(
    "elsewhere", "device, ReducedSVC l1", lambda: on_a_device(ReducedSVC(12, slack="l1", **MACHINE), *MORE3), *DEVICE
)
declare("elsewhere", "device, EmpiricalSVC", lambda: on_a_device(EmpiricalSVC(0.5, **MACHINE), *TWO), *DEVICE)


# Models that leave Python.
@cache
def exported(name: str) -> Any:
    """Fits a model that is exported below."""
    few = SlimSVC(6, LEARNED, **FIXED)
    match name:
        case "two classes":
            return few.fit(*MORE)
        case "three classes":
            return few.set_params(probability=True, scales="learned").fit(*MORE3)
        case "pipeline":
            return make_pipeline(StandardScaler(), few.set_params(kernel="laplacian", basis="forward")).fit(*MORE)
        case "targets":
            return SlimSVR(6, LEARNED, **FIXED).fit(*MORE_REAL)
        case "linear":
            return AnyNormSVC(kernel="linear").fit(*THREE)
        case _:
            return SlimOneClass(6, gamma=0.4).fit(MORE[0])


EXPORTED = ("two classes", "three classes", "pipeline", "targets", "linear", "one class")


def _as_code(name: str) -> dict[str, Any]:
    model, parts = exported(name), {}
    for dtype in ("float32", "int8"):
        source = slimsvm.to_c(model, dtype=dtype, X=unseen())
        parts |= {f"to_c {dtype}": str(source), f"to_c {dtype} report": str(source.report)}
        parts[f"to_c {dtype} example"] = source.example
    for dtype in ("float32", "float64"):
        parts[f"to_micropython {dtype}"] = slimsvm.to_micropython(model, dtype=dtype)
    return parts


def _as_integers(name: str) -> dict[str, Any]:
    model = exported(name)
    small = quantize(model)
    parts = {"n_bytes": small.n_bytes, "parts()": small.parts(), "decision": small.decision(unseen())}
    parts |= {"predict": small.predict(unseen()), "steps": small.steps, "weights": small.weights}
    layered = {"two classes": MORE, "three classes": MORE3, "targets": MORE_REAL}
    if name in layered:
        again = quantize(model, *layered[name], probabilities=name == "three classes")
        parts |= {"fitted n_bytes": again.n_bytes, "fitted decision": again.decision(unseen())}
    if name == "three classes":
        parts["probabilities"] = again.probabilities(unseen())
    return parts


def _as_files(name: str) -> dict[str, Any]:
    model = exported(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.slim"
        slimsvm.save(model, path, metadata={"name": name})
        file = path.read_bytes()
        loaded = slimsvm.load(path)
    parts = {"file": file} | {f"loaded {key}": value for key, value in answers(loaded, unseen()).items()}
    hot = Predictor(model)
    known = [method for method in ANSWERS[:3] if hasattr(model, method)]
    return parts | {f"Predictor {method}(X)": getattr(hot, method)(unseen()) for method in known}


def _as_onnx(name: str) -> dict[str, Any]:
    return {
        dtype: slimsvm.to_onnx(exported(name), dtype=dtype).SerializeToString(deterministic=True)
        for dtype in ("float32", "float64")
    }


def _as_sklearn(name: str) -> dict[str, Any]:
    model = slimsvm.to_sklearn(exported(name))
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return attributes(last) | answers(model, unseen())


for _name in EXPORTED:
    declare("exports", f"code, {_name}", lambda name=_name: _as_code(name))
    declare("exports", f"integers, {_name}", lambda name=_name: _as_integers(name))
    declare("exports", f"file, {_name}", lambda name=_name: _as_files(name))
    declare("exports", f"ONNX, {_name}", lambda name=_name: _as_onnx(name), "onnx")
    if _name != "pipeline":  # scikit-learn has no laplacian kernel
        declare("exports", f"scikit-learn, {_name}", lambda name=_name: _as_sklearn(name))


# --- error messages --------------------------------------------------------------------------------------------------


def _hole() -> Any:
    X = TWO[0].copy()
    X[3, 1] = np.nan
    return X


def _half(X: Any, Z: Any) -> Any:
    return np.ones((len(X), len(Z) // 2))


X2, Y2 = TWO
ERRORS: dict[str, Callable[[], Any]] = {
    "C of 0": lambda: AnyNormSVC(C=0).fit(X2, Y2),
    "C as text": lambda: SlimSVC(C="big").fit(X2, Y2),
    "negative tol": lambda: LpSVC(tol=-1.0).fit(X2, Y2),
    "unknown kernel": lambda: SVC(kernel="gauss").fit(X2, Y2),
    "unknown kernel, slim": lambda: SlimSVC(kernel="gauss").fit(X2, Y2),
    "unknown slack": lambda: AnyNormSVC("l7").fit(X2, Y2),
    "unknown constraint": lambda: AnyNormSVC(constraint="both").fit(X2, Y2),
    "unknown basis": lambda: SlimSVC(basis="pca").fit(X2, Y2),
    "unknown regularizer": lambda: ReducedSVC(regularizer="l1").fit(X2, Y2),
    "unknown loss": lambda: SlimSVR(loss="l1").fit(*REAL),
    "unknown variant": lambda: LpSVC(variant="other").fit(X2, Y2),
    "unknown method": lambda: compress(full_machine(), 5, method="other"),
    "unknown multi_class": lambda: EmpiricalSVC(multi_class="all").fit(X2, Y2),
    "p above 2": lambda: LpSVC(3.0).fit(X2, Y2),
    "n_vectors of 0": lambda: SlimSVC(0).fit(X2, Y2),
    "n_vectors fraction": lambda: ReducedSVC(2.5).fit(X2, Y2),
    "budget of 0": lambda: BudgetSVC(0).fit(X2, Y2),
    "hard": lambda: BudgetSVC(5, hard="maybe").fit(X2, Y2),
    "nu not feasible": lambda: NuSVC(nu=0.9).fit(X2, np.arange(300) > 240),
    "nu above 1": lambda: SlimOneClass(nu=1.5).fit(X2),
    "max_bytes too small": lambda: SlimSVC(max_bytes=3).fit(X2, Y2),
    "class weight of an unknown class": lambda: SlimSVC(class_weight={5: 1.0}).fit(X2, Y2),
    "negative gamma": lambda: RelevanceVectorClassifier(gamma=-1.0).fit(X2, Y2),
    "n_jobs of 0": lambda: AnyNormSVC(n_jobs=0).fit(X2, Y2),
    "NaN in X": lambda: SlimSVC().fit(_hole(), Y2),
    "NaN in X, SVR": lambda: SVR().fit(_hole(), Y2),
    "no rows": lambda: AnyNormSVC().fit(X2[:0], Y2[:0]),
    "one class": lambda: LeastSquaresSVC().fit(X2, np.full(300, "cat")),
    "targets for a classifier": lambda: ReducedSVC().fit(*REAL),
    "y too short": lambda: LeastOneNormSVC().fit(X2, Y2[:-1]),
    "negative weight": lambda: SlimSVC().fit(X2, Y2, -np.ones(300)),
    "all weights 0": lambda: AnyNormSVC().fit(X2, Y2, np.zeros(300)),
    "precomputed, not square": lambda: AnyNormSVC(kernel="precomputed").fit(X2, Y2),
    "precomputed, slim": lambda: SlimSVC(kernel="precomputed").fit(X2 @ X2.T, Y2),
    "own kernel of a wrong shape": lambda: AnyNormSVC(kernel=_half).fit(X2, Y2),
    "not fitted": lambda: SlimSVC().predict(X2),
    "wrong number of columns": lambda: exported("two classes").predict(X2[:, :3]),
    "probability not asked for": lambda: exported("two classes").predict_proba,
    "partial_fit without classes": lambda: SlimSVC(C=1.0, gamma=1.0).partial_fit(X2[:1], Y2[:1]),
    "partial_fit with another class": lambda: SlimSVC(3, **FIXED).partial_fit(X2, Y2, classes=[0, 2]),
    "a generator as blocks": lambda: rows.from_blocks(block for block in [TWO]),
    "a block without labels": lambda: SlimSVC(3, **FIXED).fit(rows.from_blocks([(X2,)])),
    "blocks for a machine over all rows": lambda: AnyNormSVC().fit(rows.from_blocks([TWO])),
    "compress what is no machine": lambda: compress(RandomForestClassifier(), 5),
    "refit without rows": lambda: compress(full_machine(), 5, method="refit"),
    "frontier of size 0": lambda: frontier(X2, Y2, sizes=(0, 2)),
    "to_c of a type": lambda: slimsvm.to_c(exported("two classes"), dtype="float16"),
    "to_c in too few bytes": lambda: slimsvm.to_c(exported("two classes"), dtype="int8", max_bytes=10),
    "quantize a polynomial": lambda: quantize(SVC(kernel="poly").fit(X2, Y2)),
    "load what is no file": lambda: slimsvm.load(io.BytesIO(b"nothing")),
    "save what is no model": lambda: slimsvm.save(RandomForestClassifier(), io.BytesIO()),
}


def message(call: Callable[[], Any]) -> str:
    """Returns the type and the text of the error that a call raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "no error"


ALL_GROUPS = (*GROUPS, "errors")

# --- the file --------------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Describes what the bits depend on."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        slimsvm.show_versions()
    facts = dict(re.findall(r"^ *([\w-]+): (.*)$", printed.getvalue(), flags=re.MULTILINE))
    named = ("slimsvm", "compiler", "instructions", "machine", "numpy", "scipy", "scikit-learn")
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        **{name: facts[name] for name in named},
        "system": f"{platform.system()}, {' '.join(platform.libc_ver())}",
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "BLAS": ", ".join(sorted({f"{pool['version']} {pool.get('architecture')}" for pool in pools})),
    }


def computed(names: list[str]) -> dict[str, Any]:
    """Computes the fingerprints of groups or of single models, and the texts of errors."""
    known = {*ALL_GROUPS, *(name for models in GROUPS.values() for name in models)}
    if unknown := set(names) - known:
        raise SystemExit(f"no group or model is called {sorted(unknown)}; groups are {list(ALL_GROUPS)}")
    found: dict[str, Any] = {"environment": environment(), "models": {}, "errors": {}, "missing": {}}
    for group, models in GROUPS.items():
        for name, golden in models.items():
            if group not in names and name not in names:
                continue
            if missing := golden.missing():
                found["missing"][name] = missing
            else:
                found["models"].setdefault(group, {})[name] = golden.result()
    if "errors" in names:
        found["errors"] = {name: message(call) for name, call in ERRORS.items()}
    return found


def in_own_process(*names: str) -> dict[str, Any]:
    """Computes fingerprints in a process with fixed instructions."""
    run = subprocess.run(
        [sys.executable, __file__, *names], env={**os.environ, **PINNED}, check=False, capture_output=True, text=True
    )
    if run.returncode:
        raise RuntimeError(f"golden_models.py {' '.join(names)} failed:\n{run.stderr}")
    return json.loads(run.stdout)


def write() -> None:
    """Writes the file with the fingerprints of all models; each group has a process of its own, as in the tests."""
    whole: dict[str, Any] = {"models": {}}
    for group in ALL_GROUPS:
        found = in_own_process(group)
        if found["missing"]:
            raise SystemExit(f"packages that models need are missing: {found['missing']}")
        whole["environment"] = found["environment"]
        whole["models"] |= found["models"]
        whole["errors"] = found["errors"]
    FILE.write_text(json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        return write()
    names = arguments or list(ALL_GROUPS)
    pinned = all(os.environ.get(name) == value for name, value in PINNED.items())
    return json.dump(computed(names) if pinned else in_own_process(*names), sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
