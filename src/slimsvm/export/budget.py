"""As many vectors as a byte budget pays for, and no more than are of use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data import Task, outputs
from ..expansion import Model
from ..formulation import Array
from ..parts.bases import Candidates, Choice, dense
from ..vectors.search import Space, split
from ..vectors.training import Recipe, Setting, train
from .quantize import Affine, class_numbers, form_of

MOST = 300  # vectors: where inputs are few, a budget would pay for more than anything can be gained from
ROWS = 4  # for each vector, at least


@dataclass(frozen=True)
class OnGrid:
    """Vectors of another basis, rounded to the device's grid."""

    basis: Any
    keeps_rows: bool = False

    @property
    def learns(self) -> bool:
        """As the basis does."""
        return self.basis.learns

    def choose(self, rows: Candidates, count: int) -> Choice:
        choice = self.basis.choose(rows, count)
        kernel, Z = choice.kernel or rows.kernel, dense(choice.vectors)
        form, inputs = form_of(kernel), Affine.none(Z.shape[1])
        coef = None if choice.learned is None else choice.learned.coef
        kernel, Z = form.rounded(kernel, Z, coef, form.grid(kernel, Z, inputs), inputs)
        return Choice(Z.astype(rows.X.dtype), None, kernel, choice.learned)


@dataclass(frozen=True)
class Plan:
    """One way to spend the bytes: pairs of classes ("ovo") or one output a class ("ovr"), and how many vectors."""

    scheme: str
    count: int


@dataclass(frozen=True)
class Budget:
    """Bytes for a model of some inputs and classes."""

    max_bytes: int
    kernel: Any
    inputs: int
    n_classes: int
    most: int  # vectors

    @classmethod
    def of(cls, max_bytes: int, recipe: Recipe, task: Task) -> Budget:
        """With the caps: rows, the dimensions of the kernel's space, and what is of use at all."""
        kernel = recipe.kernel_of(1.0)
        inputs = task.X.shape[1]
        most = min(MOST, max(2, task.size // ROWS), kernel.dimensions(inputs))
        return cls(max_bytes, kernel, inputs, task.n_classes, int(most))

    def count(self, scheme: str, scaled: bool) -> int:
        """Vectors that fit, 0 if none does; with scales of the inputs or without."""
        per_output = len(outputs(self.n_classes, scheme))
        form = form_of(self.kernel)
        one, two = (sum(form.least_parts(m, self.inputs, per_output, scaled).values()) for m in (1, 2))
        if one > self.max_bytes:
            return 0
        return self.most if one == two else min(self.most, 1 + (self.max_bytes - one) // (two - one))

    def schemes(self, given: str, scaled: bool) -> list[str]:
        """What may be best: pairs unless they do not fit, or one output a class where that leaves more vectors."""
        if self.n_classes == 2 or given == "ovr":
            return ["ovr" if given == "ovr" else "ovo"] if self.count("ovr", scaled) else []
        counts = {scheme: self.count(scheme, scaled) for scheme in ("ovo", "ovr")}
        found = ["ovo"] if counts["ovo"] else []
        return found + ["ovr"] if counts["ovr"] > counts["ovo"] else found

    def affordable(self, space: Space) -> Space:
        """The settings for which a vector fits."""
        scaled = [s for s in space.scaled if self.count("ovr", s)]
        if not scaled:
            least = sum(
                form_of(self.kernel).least_parts(1, self.inputs, self.least_outputs, min(space.scaled)).values()
            )
            raise ValueError(
                f"max_bytes={self.max_bytes} is too little: one vector of {self.inputs} inputs for {self.n_classes} "
                f"classes takes {least} bytes"
                f"{' with learned scales' if min(space.scaled) else ''}. Raise max_bytes, or keep fewer inputs"
            )
        return replace(space, scaled=scaled)

    @property
    def least_outputs(self) -> int:
        return len(outputs(self.n_classes, "ovr"))


def train_within(
    budget: Budget,
    task: Task,
    recipe: Recipe,
    space: Space,
    find: Callable[[Recipe, Space], tuple[Setting, dict[str, list[Any]]]],
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> tuple[Model, str]:
    """The model, over vectors on the device's grid, and its scheme; ``find`` chooses a setting for a recipe.

    Scales of the inputs cost bytes, so the search has as many vectors as go with them.
    """
    space = budget.affordable(space)
    setting, tried = find(replace(recipe, count=budget.count("ovr", max(space.scaled))), space)
    plans = [
        Plan(scheme, budget.count(scheme, setting.scaled)) for scheme in budget.schemes(recipe.scheme, setting.scaled)
    ]
    plan = best_plan(plans, task, recipe, setting, rng, report)
    model = None
    on_grid = replace(recipe, basis=OnGrid(recipe.basis), scheme=plan.scheme)
    count, seed = plan.count, int(rng.integers(2**31))
    while model is None or (size_of(model) > budget.max_bytes and count > 1):
        # Vectors far out need steps or offsets of their own, which cost bytes: then fewer of them.
        if model is not None:
            count -= 1 + (size_of(model) - budget.max_bytes) // (budget.inputs + 2 * len(model.expansion.bias))
        model = train(task, replace(on_grid, count=max(count, 1)), setting, np.random.default_rng(seed))
    return replace(model, more=model.more | {"C_": setting.C, "search_results_": tried}), plan.scheme


def size_of(model: Model) -> int:
    """Bytes of the model on a device."""
    machine = model.expansion
    return sum(form_of(machine.kernel).parts(machine.kernel, dense(machine.vectors), len(machine.bias)).values())


def best_plan(
    plans: list[Plan],
    task: Task,
    recipe: Recipe,
    setting: Setting,
    rng: np.random.Generator,
    report: Callable[[str], None] | None,
) -> Plan:
    """The plan of the least error on rows held out; the first among equals."""
    if len(plans) == 1:
        return plans[0]
    folds, seed = split(task, rng), int(rng.integers(2**31))
    errors = []
    for plan in plans:
        mine = replace(recipe, scheme=plan.scheme, count=plan.count, verbose=False)
        parts = [_error(train(f.train, mine, setting, np.random.default_rng(seed)), f.test, plan.scheme) for f in folds]
        errors.append(float(np.mean(parts)))
        if report is not None:
            report(
                f"{plan.count} vectors, {'pairs of classes' if plan.scheme == 'ovo' else 'one output a class'}: "
                f"error {errors[-1]:.4g}"
            )
    return plans[int(np.argmin(errors))]


def _error(model: Model, test: Task, scheme: str) -> float:
    F: Array = model.expansion.decision(test.X, test.threads)
    return float(np.average(class_numbers(F, test.n_classes, scheme == "ovo") != test.codes, weights=test.weights))
