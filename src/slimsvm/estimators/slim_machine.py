"""What machines of a given number of vectors share: the vectors are learned, and settings found by validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..data.dataset import Task
from ..linalg.array_api import host, is_foreign
from ..model.expansion import Model
from ..problem import bases, kernels
from ..training import sizes
from ..training.search import Finding, Space, search, space_of
from ..training.spec import Recipe, Setting, train
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .small_basis import SmallBasis
from .validation import FLOATS, check_choice, check_number, check_number_or, is_precomputed


class SlimMachine(SmallBasis):
    """A machine of at most ``n_vectors`` vectors; subclasses say what it is to learn."""

    _setting: Setting

    @abstractmethod
    def _judge(self, part: sizes.Part, model: Model) -> sizes.Verdict:
        """What rows held out say of a model."""

    def _check_params(self) -> None:
        self._check_parts(gammas=("search", "scale", "auto"))
        check_number_or("C", self.C, "search", above=0)
        check_number_or("n_vectors", self.n_vectors, "auto", at_least=1, integer=True)
        check_choice("scales", self.scales, ("search", "fixed", "learned"))
        basis = self._basis()
        if basis.learns:
            check_number("smoothing", basis.smoothing, at_least=0)
            check_number_or("iterations", basis.iterations, "auto", at_least=0, integer=True)
            check_number_or("rows", basis.rows, "auto", at_least=1, integer=True)
            bases.resolve(basis.init, "init")
            if not kernels.resolve(self.kernel).differentiable:
                raise ValueError(
                    f"basis='learned' needs a kernel with a derivative (a method pullback); kernel={self.kernel!r} has "
                    "none. Use a basis of training rows: 'forward', 'random' or 'cholesky'"
                )
        elif self.scales == "learned":
            raise ValueError(f"scales='learned' needs basis='learned'; basis={self.basis!r}")
        elif is_precomputed(self.kernel) and not basis.keeps_rows:
            raise ValueError(
                f"basis={self.basis!r} makes vectors that are not training rows, which a precomputed kernel cannot "
                "compare; use 'forward', 'random' or 'cholesky'"
            )

    def _basis(self) -> Any:
        return bases.resolve(self.basis)

    def _count(self, task: Task) -> int:
        return sizes.powers(1, task.n_classes)[-1] if self.n_vectors == "auto" else int(self.n_vectors)

    def _train(self, task: Task) -> Model:
        if self.n_vectors == "auto":
            return self._train_auto(task)
        rng = self._rng()
        recipe = self._recipe(task)
        found = self._found(task, recipe, self._space(task, recipe))
        self._setting = found.setting
        model = train(task, recipe, found.setting, rng, search_vectors=found.learned)
        self._tell(model)
        model = replace(model, more=model.more | {"C_": found.setting.C, "search_results_": found.tried})
        return self._finished(task, model, recipe, found.setting, rng)

    def _train_auto(self, task: Task) -> Model:
        """As few vectors as do as well as any number of them."""
        floor = sizes.least_size(task.n_classes)
        plan = self._plan(task, sizes.powers(floor, task.n_classes))
        line = ProgressLine("sizes") if self.verbose else None
        curve = plan.judged(self._judge, line.update if line else None)
        size = curve.best(floor=floor)
        if line is not None:
            line.finish(f"{size} vectors do")
        model = plan.model(task, size)
        self._tell(model)
        model = replace(model, more=model.more | {"frontier_": curve})
        return self._of_path(task, plan, size, model)

    def _of_path(self, task: Task, plan: sizes.Plan, size: int, model: Model) -> Model:
        """A model of a path, with all else that is fitted over its vectors."""
        recipe = replace(self._recipe(task), count=size)
        return self._finished(task, model, recipe, plan.setting, np.random.default_rng(plan.seed))

    def _plan(self, task: Task, wanted: Sequence[int], hold_out: Callable[..., list[Any]] = sizes.parts) -> sizes.Plan:
        """How models of several sizes are to be made: settings for all of them, and the rows that judge."""
        rng = self._rng()
        recipe = self._recipe(task)
        held_out = hold_out(task, rng)
        possible = sizes.allowed_sizes(wanted, recipe, held_out)
        found = self._found(task, replace(recipe, count=sizes.middle(possible)), self._space(task, recipe))
        self._setting = found.setting
        return sizes.Plan(self._recipe, found.setting, found.tried, possible, int(rng.integers(2**31)), held_out)

    def _recipe(self, task: Task) -> Recipe:
        recipe = super()._recipe(task)
        basis = recipe.basis
        given = basis.init if basis.learns else getattr(basis, "vectors", None)
        if bases.is_array(given):
            vectors = self._checked(given, "init" if basis.learns else "basis", task)
            basis = replace(basis, init=vectors) if basis.learns else bases.Given(vectors)
        # More vectors than the kernel's space has dimensions would say nothing new.
        count = int(min(recipe.count, recipe.kernel_of(1.0).dimensions(task.X.shape[1])))
        return replace(recipe, basis=basis, count=count)

    def _checked(self, vectors: Any, name: str, task: Task) -> Any:
        """The user's own vectors."""
        auto = self.n_vectors == "auto"
        vectors = host(vectors) if is_foreign(vectors) else vectors
        vectors = check_array(vectors, accept_sparse="csr", dtype=FLOATS, input_name=name, copy=True)
        if vectors.shape[1] != task.X.shape[1]:
            raise ValueError(f"{name} has {vectors.shape[1]} columns, X has {task.X.shape[1]}; they must be the same")
        if name == "init" and vectors.shape[0] > self._count(task):
            most = f"n_vectors={self.n_vectors!r}" + (f", which is {self._count(task)} at most" if auto else "")
            raise ValueError(f"init has {vectors.shape[0]} vectors, {most}; give at most so many")
        if name == "init" and vectors.shape[0] < self._count(task) and not auto:
            warn(f"init has {vectors.shape[0]} vectors: the model has as many, not n_vectors={self.n_vectors}")
        return vectors

    def _space(self, task: Task, recipe: Recipe) -> Space:
        return space_of(task, self.C, self.gamma, self.scales, recipe)

    def _found(self, task: Task, recipe: Recipe, space: Space) -> Finding:
        """C, gamma and scales: as given, or as found by validation."""
        if space.settled:
            return Finding.given(space)
        line = ProgressLine("search") if self.verbose else None
        found = search(task, recipe, space, line.update if line else None)
        if line is not None:
            best = found.setting
            line.finish(f"C={best.C:g}, gamma={best.gamma:.4g}, scales {'learned' if best.scaled else 'fixed'}")
        return found
