"""The least-squares support vector machine: one linear system."""

from __future__ import annotations

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem import slacks
from ..problem.formulation import EQUALITY, Constraint, Slack
from ..training.full import FullSpec, train_least_squares
from . import validation
from .all_rows import AllRowsClassifier
from .documentation import documented


@documented
class LeastSquaresSVC(AllRowsClassifier):
    """Least-squares support vector machine of Suykens & Vandewalle.

    Minimises ``1/2 |f|^2 + C/2 * sum(xi**2)`` with ``xi = 1 - y (f(x) + b)``: ridge regression on the labels in the
    kernel's space. Every row becomes a vector.

    Problems whose kernel matrix fits in ``cache_size`` are solved directly, which also gives the leave-one-out
    residuals. Larger ones are solved by conjugate gradients with a low-rank preconditioner: the matrix is never
    formed, its products are computed from the rows, for all classes at once where ``multi_class="ovr"``.

    Parameters
    ----------
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    tol : float, default=1e-3
        The fit ends when the relative duality gap is at most this.
    max_iter : int, default=-1
        Most iterations of conjugate gradients; -1: no limit. The direct solution counts as one.
    cache_size : float, default=400
        Megabytes for the kernel matrix (direct) or for the preconditioner.
    precision : {"float32", "float64"}, default="float32"
        Of the kernel values in the iterations. The solution is certified in float64 either way, and the
        iterations turn to float64 by themselves where float32 is not enough.
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_>
    <objective_>
    <kernel_>
    loo_residuals_ : ndarray of shape (n_outputs, n_samples) or None
        ``y - f(x)`` of each row for the classifier trained without it, y = 1 or -1; below 1 in size where that one is
        right. NaN for rows that a binary problem does not use. None where the system was not solved directly.

    References
    ----------
    .. [1] J. Suykens, J. Vandewalle. Least Squares Support Vector Machine Classifiers. Neural Processing
       Letters 9, 1999.
    .. [2] G. Cawley, N. Talbot. Fast exact leave-one-out cross-validation of sparse least-squares support vector
       machines. Neural Networks 17, 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import LeastSquaresSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = LeastSquaresSVC(C=10.0).fit(X, y)
    >>> loo_errors = int((abs(clf.loo_residuals_[0]) > 1).sum())
    """

    def _norm(self) -> tuple[Slack, Constraint]:
        return slacks.SquaredTwoNorm(), EQUALITY

    def _merges_copies(self, slack: Slack) -> bool:
        return False  # leaving one of two equal rows out is not leaving both out

    def _train(self, dataset: Dataset, spec: FullSpec) -> Model:
        return train_least_squares(dataset, validation.named_kernel(self, dataset), spec)
