"""Machines of as many vectors as a number of bytes pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem import bases, kernels
from ..quantization.quantize import fixed_point_form
from ..training.byte_budget import ByteBudget, BytePlan, model_size, train_within_bytes
from ..utils.progress import ProgressLine
from .slim_machine import SlimMachine
from .validation import check_number


class WithinBytes(SlimMachine):
    """A machine of at most ``n_vectors`` vectors or, where that is given, of at most ``max_bytes`` bytes."""

    max_bytes: int | None

    def _check_params(self) -> None:
        super()._check_params()
        if self.max_bytes is None:
            return
        check_number("max_bytes", self.max_bytes, at_least=1, integer=True)
        fixed_point_form(kernels.resolve(self.kernel))
        basis = self._basis()
        given = basis.init if basis.learns else self.basis
        if bases.is_array(given):
            raise ValueError(
                f"max_bytes={self.max_bytes} chooses the number of vectors, but they are given as an array; leave out "
                "max_bytes, or let a basis choose: 'learned', 'forward', 'kmeans', 'random' or 'cholesky'"
            )

    def _check_apart(self) -> None:
        super()._check_apart()
        if self.max_bytes is not None:
            raise ValueError(
                f"max_bytes={self.max_bytes} chooses inputs and steps with all rows in memory; fit n_vectors to rows "
                "that are read a block at a time and quantize the model, or fit max_bytes to a sample"
            )

    def _train(self, dataset: Dataset) -> Model:
        return super()._train(dataset) if self.max_bytes is None else self._train_within(dataset, self.max_bytes)

    def _train_within(self, dataset: Dataset, max_bytes: int) -> Model:
        """As many vectors as the bytes pay for."""
        rng = self._rng()
        spec = self._recipe(dataset)
        line = ProgressLine("bytes") if self.verbose else None
        budget = ByteBudget.of(max_bytes, spec, dataset)
        model, plan = train_within_bytes(
            budget,
            dataset,
            spec,
            self._space(dataset, spec),
            lambda mine, among: self._found(dataset, mine, among),
            rng,
            line.update if line else None,
        )
        self._setting = plan.hyperparameters
        self._note(plan)
        count = model.expansion.vectors.shape[0]
        if line is not None:
            line.finish(f"{model_size(model, budget.is_regression)} of {max_bytes}, {count} vectors")
        self._tell(model)
        return self._finished(dataset, model, replace(spec, n_vectors=count), plan.hyperparameters, rng)

    def _note(self, plan: BytePlan) -> Any:
        """Keep what a plan says of the outputs."""
