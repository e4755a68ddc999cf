"""Support vector machine in the reduced empirical feature space (Iwamura and Abe)."""

from __future__ import annotations

from typing import Any

from ..problem import bases, kernels
from .documentation import documented
from .small_basis import SmallBasisClassifier
from .validation import check_choice, check_number


@documented
class EmpiricalSVC(SmallBasisClassifier):
    """Kernel classifier over training rows that are independent of each other in the kernel's space.

    Rows are kept while their squared distance to the span of those kept before is above ``eta``: a few rows then
    span what all of them do. It is trained in the features ``k(x, kept rows)``.

    Parameters
    ----------
    eta : float, default=1e-3
        Threshold for a row to be kept, relative to the largest k(x, x). Smaller keeps more rows; with 0 the
        classifier is that of all rows. Below 1.
    selection : {"order", "pivoted", "inputs"}, default="order"
        ``"order"``: rows as they come, in one pass. ``"pivoted"``: always the row farthest from those kept, which
        needs 7-21 % fewer for the same eta. ``"inputs"`` (linear kernel only): no rows, the inputs themselves are
        the features.
    regularizer : {"kernel", "identity"} or object of `slimsvm.regularizers`, default="kernel"
        ``"kernel"``: the norm of f in the kernel's space; C means the same as in the SVM over all rows.
        ``"identity"``: the sum of squared coefficients, as in [1]_.
    slack : {"l1", "l2"} or object of `slimsvm.losses`, default="l1"
        C times the sum of slacks, or C/2 times the sum of their squares.
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <probability>
    <primal_tol>
    <n_jobs>

    Attributes
    ----------
    <vectors_>
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are; not with ``selection="inputs"``.
    <small_objective_>
    <probability_coef_>
    <kernel_>

    References
    ----------
    .. [1] K. Iwamura, S. Abe. Sparse Support Vector Machines Trained in the Reduced Empirical Feature Space.
       IJCNN 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import EmpiricalSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = EmpiricalSVC(eta=0.01).fit(X, y)
    >>> clf.n_vectors_ < 50
    True
    """

    def __init__(
        self,
        eta: float = 1e-3,
        selection: str = "order",
        *,
        regularizer: Any = "kernel",
        slack: Any = "l1",
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        probability: bool = False,
    ):
        super().__init__(
            regularizer=regularizer,
            slack=slack,
            C=C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            class_weight=class_weight,
            multi_class=multi_class,
            decision_function_shape=decision_function_shape,
            tol=tol,
            max_iter=max_iter,
            cache_size=cache_size,
            n_jobs=n_jobs,
            probability=probability,
        )
        self.eta = eta
        self.selection = selection

    def _check_params(self) -> None:
        super()._check_params()
        check_number("eta", self.eta, at_least=0)
        check_choice("selection", self.selection, ("order", "pivoted", "inputs"))
        if self.selection == "inputs" and kernels.resolve(self.kernel) != kernels.Linear():
            raise ValueError(
                "selection='inputs' uses the inputs themselves as features, as only kernel='linear' does; "
                f"kernel={self.kernel!r} needs selection='order' or 'pivoted'"
            )
        if self.eta >= 1:
            raise ValueError(
                f"eta={self.eta!r} leaves no row: it is relative to the largest k(x, x); use a number from 0 to below 1"
            )

    def _vectors(self) -> dict[str, Any]:
        basis = bases.Inputs() if self.selection == "inputs" else bases.Cholesky(self.eta, self.selection)
        return {"n_vectors": None, "basis": basis}
