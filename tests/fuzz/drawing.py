"""What a problem is, and random settings that machines share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernel_table

from . import data as datasets
from . import judge

KERNELS = ("rbf", "rbf", *kernel_table.default_first(semidefinite=True), "precomputed")
TOLERANCES = (None, None, 1e-3, 1e-6)  # None: the estimator's own


@dataclass(frozen=True)
class Case:
    """An estimator, what it is fitted to, and how to judge the result."""

    name: str
    text: str
    estimator: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    verdict: Callable[[Any], judge.Verdict]
    numbers: tuple[str, ...] = ("vector_coef_", "intercept_")  # that are finite whatever happens


class Draw:
    """Draws the settings that machines share."""

    def __init__(self, seed, number, most=300):
        self.rng = np.random.default_rng([seed, number])
        self.data = self.rows_with_answers(most)

    def rows_with_answers(self, most):
        """Rows with labels; other machines want numbers."""
        return datasets.draw(self.rng, most)

    def one_of(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def power(self, low, high):
        """A number between 10^low and 10^high, of two digits."""
        return float(f"{10 ** self.rng.uniform(low, high):.1e}")

    def kernel(self, names=KERNELS):
        """Parameters of the kernel."""
        name = self.one_of(*names)
        params = {"kernel": name}
        if name in kernel_table.taking("gamma"):
            params["gamma"] = self.one_of("scale", "scale", self.power(-3, 2), self.power(-3, 2), self.power(-8, 8))
        if name in kernel_table.taking("degree"):
            params |= {"degree": self.one_of(2, 3), "coef0": self.one_of(0.0, 1.0)}
        return params

    def class_weight(self):
        if self.chance(0.75):
            return {}
        return {"class_weight": self.one_of("balanced", {0: self.power(-3, 3)})}

    def tol(self):
        tol = self.one_of(*TOLERANCES)
        return {} if tol is None else {"tol": tol}

    def several(self):
        return {"multi_class": self.one_of("ovo", "ovr")}

    def cost(self):
        return {"C": self.power(-3, 6)}

    def rows(self, params):
        """What fit gets for this kernel."""
        if params["kernel"] == "precomputed":
            return datasets.integer_gram(self.rng, len(self.data.y))
        return self.data.X

    def case(self, estimator, params, verdict, weight="given"):
        X, weight = self.rows(params), self.data.weight if isinstance(weight, str) else weight
        text = f"{self.data.kind}, weights {'none' if weight is None else f'{weight.min():.1e}..{weight.max():.1e}'}"
        kernel = params["kernel"]

        def judged(model):
            return verdict(judge.Fitted(model, X, self.data.y, weight, kernel))

        return Case(type(estimator).__name__, text, estimator, X, self.data.y, weight, judged)
