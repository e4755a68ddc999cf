"""What machines of a given number of vectors share: the vectors are learned, and settings found by validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..data.dataset import Dataset
from ..linalg.array_api import to_numpy
from ..model.expansion import Model
from ..problem import bases, kernels
from ..training import sizes
from ..training.search import SearchResult, SearchSpace, search, search_space
from ..training.small import train
from ..training.spec import Hyperparameters, TrainingSpec
from ..training.trials import Fold
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .small_basis import SmallBasis
from .validation import FLOATS, check_choice, check_number, check_number_or, is_precomputed


class SlimMachine(SmallBasis):
    """A machine of at most ``n_vectors`` vectors; subclasses say what it is to learn."""

    _setting: Hyperparameters

    @abstractmethod
    def _judge(self, part: Fold, model: Model) -> sizes.FoldScore:
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

    def _count(self, dataset: Dataset) -> int:
        return sizes.size_grid(1, dataset.n_classes)[-1] if self.n_vectors == "auto" else int(self.n_vectors)

    def _train(self, dataset: Dataset) -> Model:
        if self.n_vectors == "auto":
            return self._train_auto(dataset)
        rng = self._rng()
        spec = self._recipe(dataset)
        found = self._found(dataset, spec, self._space(dataset, spec))
        self._setting = found.hyperparameters
        model = train(dataset, spec, found.hyperparameters, rng, search_vectors=found.vectors)
        self._tell(model)
        model = replace(model, more=model.more | {"C_": found.hyperparameters.C, "search_results_": found.table})
        return self._finished(dataset, model, spec, found.hyperparameters, rng)

    def _train_auto(self, dataset: Dataset) -> Model:
        """As few vectors as do as well as any number of them."""
        floor = sizes.smallest_size(dataset.n_classes)
        plan = self._plan(dataset, sizes.size_grid(floor, dataset.n_classes))
        line = ProgressLine("sizes") if self.verbose else None
        curve = plan.validation_curve(
            [partial(self._judge, fold) for fold in plan.folds], line.update if line else None
        )
        size = curve.best(floor=floor)
        if line is not None:
            line.finish(f"{size} vectors do")
        model = plan.model(dataset, size)
        self._tell(model)
        model = replace(model, more=model.more | {"frontier_": curve})
        return self._of_path(dataset, plan, size, model)

    def _of_path(self, dataset: Dataset, plan: sizes.SizePlan, size: int, model: Model) -> Model:
        """A model of a path, with all else that is fitted over its vectors."""
        spec = replace(self._recipe(dataset), n_vectors=size)
        return self._finished(dataset, model, spec, plan.hyperparameters, np.random.default_rng(plan.seed))

    def _plan(
        self, dataset: Dataset, wanted: Sequence[int], hold_out: Callable[..., list[Any]] = sizes.size_folds
    ) -> sizes.SizePlan:
        """How models of several sizes are to be made: settings for all of them, and the rows that judge."""
        rng = self._rng()
        spec = self._recipe(dataset)
        held_out = hold_out(dataset, rng)
        possible = sizes.feasible_sizes(wanted, spec, held_out)
        found = self._found(dataset, replace(spec, n_vectors=sizes.search_size(possible)), self._space(dataset, spec))
        self._setting = found.hyperparameters
        return sizes.SizePlan(
            self._recipe, found.hyperparameters, found.table, possible, int(rng.integers(2**31)), held_out
        )

    def _recipe(self, dataset: Dataset) -> TrainingSpec:
        spec = super()._recipe(dataset)
        basis = spec.basis
        given = basis.init if basis.learns else getattr(basis, "vectors", None)
        if bases.is_array(given):
            vectors = self._checked(given, "init" if basis.learns else "basis", dataset)
            basis = replace(basis, init=vectors) if basis.learns else bases.Given(vectors)
        # More vectors than the kernel's space has dimensions would say nothing new.
        count = int(min(spec.n_vectors, spec.kernel_of(1.0).dimensions(dataset.X.shape[1])))
        return replace(spec, basis=basis, n_vectors=count)

    def _checked(self, vectors: Any, name: str, dataset: Dataset) -> Any:
        """The user's own vectors."""
        auto = self.n_vectors == "auto"
        vectors = to_numpy(vectors)
        vectors = check_array(vectors, accept_sparse="csr", dtype=FLOATS, input_name=name, copy=True)
        if vectors.shape[1] != dataset.X.shape[1]:
            raise ValueError(
                f"{name} has {vectors.shape[1]} columns, X has {dataset.X.shape[1]}; they must be the same"
            )
        if name == "init" and vectors.shape[0] > self._count(dataset):
            most = f"n_vectors={self.n_vectors!r}" + (f", which is {self._count(dataset)} at most" if auto else "")
            raise ValueError(f"init has {vectors.shape[0]} vectors, {most}; give at most so many")
        if name == "init" and vectors.shape[0] < self._count(dataset) and not auto:
            warn(f"init has {vectors.shape[0]} vectors: the model has as many, not n_vectors={self.n_vectors}")
        return vectors

    def _space(self, dataset: Dataset, spec: TrainingSpec) -> SearchSpace:
        return search_space(dataset, self.C, self.gamma, self.scales, spec)

    def _found(self, dataset: Dataset, spec: TrainingSpec, space: SearchSpace) -> SearchResult:
        """C, gamma and scales: as given, or as found by validation."""
        if space.is_fixed:
            return SearchResult.fixed(space)
        line = ProgressLine("search") if self.verbose else None
        found = search(dataset, spec, space, line.update if line else None)
        if line is not None:
            best = found.hyperparameters
            line.finish(f"C={best.C:g}, gamma={best.gamma:.4g}, scales {'learned' if best.scaled else 'fixed'}")
        return found
