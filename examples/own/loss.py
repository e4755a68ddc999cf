"""A loss of your own: the logistic loss, for logistic regression over few vectors."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy
from sklearn.datasets import make_moons

from slimsvm import SlimSVC
from slimsvm.problem.formulation import Part


@dataclass(frozen=True)
class Logistic(Part):
    """``C log(1 + exp(-y f))``; rows x outputs, C is 0 where a row takes no part in an output."""

    smooth: ClassVar[bool] = True  # so Newton's method solves it, with the two derivatives below
    pieces: ClassVar[None] = None  # not piecewise quadratic

    def value(self, F, Y, C):
        """The loss of each output."""
        return (C * np.logaddexp(0, -Y * F)).sum(axis=0)

    def duals(self, F, Y, C):
        """Minus the derivative in f."""
        return C * Y * expit(-Y * F)

    def curvature(self, F, Y, C):
        """The second derivative."""
        return C * expit(F) * expit(-F)

    def conjugate(self, A, Y, C):
        """What feasible duals add to the lower bound: an entropy."""
        share = np.divide(Y * A, C, out=np.zeros_like(A), where=C > 0)  # between 0 and 1
        return -(C * (xlogy(share, share) + xlogy(1 - share, 1 - share))).sum(axis=0)


def main():
    X, y = make_moons(1000, noise=0.25, random_state=0)
    clf = SlimSVC(8, slack=Logistic(), C=10, gamma=1.0, scales="fixed").fit(X, y)
    right, proved = 100 * clf.score(X, y), clf.duality_gap_[0] <= 1e-6
    print(f"{clf.n_vectors_} vectors, {right:.1f} % right, proved: {proved}")
    print("probability of class 1:", (1 / (1 + np.exp(-clf.decision_function(X[:4])))).round(2))


if __name__ == "__main__":
    main()
