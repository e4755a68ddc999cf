"""A basis of your own: typical rows, those nearest to the centres of clusters."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import scale

from slimsvm import SlimSVC
from slimsvm.problem.formulation import Part


@dataclass(frozen=True)
class Typical(Part):
    """The training row nearest to each centre of a cluster within its class."""

    most_rows: int = 10_000
    keeps_rows: ClassVar[bool] = True  # vectors are training rows
    learns: ClassVar[bool] = False  # nothing is moved by gradients

    def choose(self, rows, count):
        """At most ``count`` vectors from the candidates."""
        some = rows.sample(self.most_rows)
        centres = some.centres(count, max_iter=15)
        return some.choice(np.unique(pairwise_distances_argmin(centres, some.X)))


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    for basis in ("random", Typical(), "forward", "learned"):
        clf = SlimSVC(6, basis=basis, C=1, gamma="scale", scales="fixed").fit(X, y)
        print(f"{basis}: {clf.n_vectors_} vectors, objective {clf.objective_[0]:.1f}")


if __name__ == "__main__":
    main()
