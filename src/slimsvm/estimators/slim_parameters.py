"""The parameters that `SlimSVC` and `SlimSVR` share: checked, and as the specification that training gets."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from ..problem import bases, kernels, regularizers
from ..quantization.quantize import fixed_point_form
from ..training.slim import SlimSpec
from . import validation
from .targets import ClassTargets, Targets
from .validation import check_choice, check_number, check_number_or


def check_slim(model: Any) -> None:
    """Raise ValueError for parameters that make no sense."""
    check_number_or("C", model.C, "search", above=0)
    check_number_or("n_vectors", model.n_vectors, "auto", at_least=1, integer=True)
    check_choice("scales", model.scales, ("search", "fixed", "learned"))
    basis = bases.resolve(model.basis)
    if basis.learns:
        check_number("smoothing", basis.smoothing, at_least=0)
        check_number_or("iterations", basis.iterations, "auto", at_least=0, integer=True)
        check_number_or("rows", basis.rows, "auto", at_least=1, integer=True)
        bases.resolve(basis.init, "init")
        if not kernels.resolve(model.kernel).differentiable:
            raise ValueError(
                f"basis='learned' needs a kernel with a derivative (a method pullback); kernel={model.kernel!r} has "
                "none. Use a basis of training rows: 'forward', 'random' or 'cholesky'"
            )
    elif model.scales == "learned":
        raise ValueError(f"scales='learned' needs basis='learned'; basis={model.basis!r}")
    elif validation.is_precomputed(model.kernel) and not basis.keeps_rows:
        raise ValueError(
            f"basis={model.basis!r} makes vectors that are not training rows, which a precomputed kernel cannot "
            "compare; use 'forward', 'random' or 'cholesky'"
        )
    check_number("memory", model.memory, at_least=2, integer=True)
    validation.check_yes_or_no("recent", model.recent)
    if model.max_bytes is not None:
        _check_bytes(model, basis)


def _check_bytes(model: Any, basis: Any) -> None:
    check_number("max_bytes", model.max_bytes, at_least=1, integer=True)
    fixed_point_form(kernels.resolve(model.kernel))
    given = basis.init if basis.learns else model.basis
    if bases.is_array(given):
        raise ValueError(
            f"max_bytes={model.max_bytes} chooses the number of vectors, but they are given as an array; leave out "
            "max_bytes, or let a basis choose: 'learned', 'forward', 'kmeans', 'random' or 'cholesky'"
        )


def check_remote(model: Any, basis: Any) -> None:
    """Raise ValueError for parameters that need all rows in memory."""
    if regularizers.resolve(model.regularizer).reweighted:
        raise ValueError(
            f"regularizer={model.regularizer!r} needs all kernel values in memory; rows that are read a block at a "
            "time take 'kernel' or 'identity'"
        )
    if getattr(basis, "selection", None) == "pivoted":
        raise ValueError(
            "a pivoted Cholesky basis needs all rows in memory; for rows that are read a block at a time use the "
            "basis 'learned', 'forward', 'kmeans' or 'random', or bases.Cholesky(eta) with the rows as they come"
        )
    if vars(model).get("max_bytes") is not None:
        raise ValueError(
            f"max_bytes={model.max_bytes} chooses inputs and steps with all rows in memory; fit n_vectors to rows "
            "that are read a block at a time and quantize the model, or fit max_bytes to a sample"
        )


def basis_spec(model: Any, n_vectors: int | str | None, basis: Any, loss: Any, **own: Any) -> SlimSpec:
    """The specification of a model over few vectors; ``own`` are fields that the other estimators do not have."""
    return SlimSpec(
        n_vectors,
        basis,
        loss,
        regularizers.resolve(model.regularizer),
        model.kernel,
        model.degree,
        model.coef0,
        model.C,
        model.gamma,
        tol=model.tol,
        max_iter=model.max_iter,
        memory=model.cache_size * 2.0**20,
        **own,
    )


def slim_spec(model: Any, loss: Any, **own: Any) -> SlimSpec:
    """The specification of `SlimSVC` or `SlimSVR`."""
    return basis_spec(
        model,
        model.n_vectors,
        bases.resolve(model.basis),
        loss,
        scales=model.scales,
        max_bytes=model.max_bytes,
        random_state=model.random_state,
        verbose=bool(model.verbose),
        **own,
    )


def spec_of(model: Any) -> Any:
    """The training specification of an estimator; ValueError for invalid parameters."""
    return model._spec()


def targets_of(model: Any) -> Targets:
    """The kind of labels of an estimator's training rows."""
    return model._targets() if isinstance(model, RegressorMixin) else ClassTargets(model.class_weight)
