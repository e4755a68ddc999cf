"""Reduced support vector machine: vectors drawn at random from the training rows."""

from __future__ import annotations

from typing import Any

from ..problem import bases
from .documentation import documented
from .small_basis import SmallBasisClassifier
from .validation import check_number


@documented
class ReducedSVC(SmallBasisClassifier):
    """Kernel classifier over training rows drawn at random.

    The baseline of small classifiers: quick to train, and less accurate than as many learned vectors.

    Parameters
    ----------
    n_vectors : int, default=50
        How many vectors the model keeps at most, all classes together. Duplicates are not drawn.
    regularizer : {"identity", "kernel"} or object of `slimsvm.regularizers`, default="identity"
        ``"identity"``: the sum of squared coefficients (RSVM [1]_); ``"kernel"``: the norm of f in the kernel's space
        (MRSVM [2]_).
    slack : {"l2", "l1"} or object of `slimsvm.losses`, default="l2"
        C/2 times the sum of squared slacks, or C times the sum of slacks.
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <probability>
    <primal_tol>
    <n_jobs>
    <random_state>

    Attributes
    ----------
    <vectors_>
    <support_>
    <small_objective_>
    <probability_coef_>
    <kernel_>

    References
    ----------
    .. [1] Y.-J. Lee, O. L. Mangasarian. RSVM: Reduced Support Vector Machines. SDM 2001.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir. Building Sparse Large Margin Classifiers. ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import ReducedSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> ReducedSVC(n_vectors=15, C=100).fit(X, y).n_vectors_
    15
    """

    def __init__(
        self,
        n_vectors: int = 50,
        *,
        regularizer: Any = "identity",
        slack: Any = "l2",
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
        random_state: Any = 0,
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
        self.n_vectors = n_vectors
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_number("n_vectors", self.n_vectors, at_least=1, integer=True)

    def _vectors(self) -> dict[str, Any]:
        return {"n_vectors": self.n_vectors, "basis": bases.Random(), "random_state": self.random_state}
