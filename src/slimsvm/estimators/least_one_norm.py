"""The least-1-norm SVM: median regression on the labels."""

from __future__ import annotations

from ..problem import slacks
from ..problem.formulation import EQUALITY, Constraint, Slack
from .all_rows import AllRowsClassifier
from .documentation import documented


@documented
class LeastOneNormSVC(AllRowsClassifier):
    """Least-1-norm support vector machine of Lopez & Dorronsoro.

    Minimises ``1/2 |f|^2 + C * sum(|xi|)`` with ``xi = 1 - y (f(x) + b)``: rows beyond the margin cost as much as rows
    short of it. It is to the least-squares SVM what the median is to the mean, and support vector
    regression on the labels with a tube of width 0.

    Parameters
    ----------
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <dual_tol>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_>
    <objective_>
    <kernel_>

    References
    ----------
    .. [1] J. Lopez, J. R. Dorronsoro. Least 1-Norm SVMs: a New SVM Variant between Standard and LS-SVMs.
       ESANN 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import LeastOneNormSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> LeastOneNormSVC(C=1.0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _norm(self) -> tuple[Slack, Constraint]:
        return slacks.OneNorm(), EQUALITY
