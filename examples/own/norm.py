"""A slack norm of your own: the Huber hinge, quadratic for small slacks and linear for large ones."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_moons

from slimsvm import AnyNormSVC
from slimsvm.problem.formulation import FeasibleSet
from slimsvm.slacks import Norm


@dataclass(frozen=True)
class HuberHinge(Norm):
    """Slacks cost ``xi^2 / (2 delta)`` up to delta, and ``xi - delta / 2`` beyond."""

    delta: float = 0.5

    def feasible_set(self, y, C, weights, constraint):
        """Where the signed duals a = y * alpha may lie; the ridge is added to the kernel's diagonal."""
        return FeasibleSet.box(y, C * weights, constraint, ridge=self.delta / (C * weights))

    def value(self, slacks, weights, constraint):
        """The term itself, without C: with it the duality gap is computed."""
        size = np.abs(slacks)
        small, large = size**2 / (2 * self.delta), size - self.delta / 2
        return float(weights @ np.where(size < self.delta, small, large))

    def pull(self, sizes, weights):
        """The derivative of the value: `Norm` finds the best bias with it."""
        return weights * np.minimum(sizes / self.delta, 1.0)


def main():
    X, y = make_moons(1000, noise=0.25, random_state=0)
    for slack in ("l1", HuberHinge(0.1), HuberHinge(1.0), "l2"):
        clf = AnyNormSVC(slack, C=10, gamma=1.0, tol=1e-6).fit(X, y)
        proved = clf.duality_gap_[0] <= 1e-6
        value = clf.objective_[0]
        print(f"{slack}: {clf.n_vectors_} vectors, objective {value:.2f}, proved: {proved}")


if __name__ == "__main__":
    main()
