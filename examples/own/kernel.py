"""A kernel of your own: inputs that go in circles, such as hours of a day or angles."""

from dataclasses import dataclass

import numpy as np

from slimsvm import AnyNormSVC, SlimSVC
from slimsvm.kernels import Base


@dataclass(frozen=True)
class Periodic(Base):
    """``exp(-2 sum_k sin^2(pi (x_k - z_k) / period) / width^2)``"""

    period: float = 24.0
    width: float = 1.0
    positive_semidefinite = True  # surely: then the duality gap is a proof
    translation_invariant = True  # it depends on x - z only

    def __call__(self, X, Z, out=None, threads=1):
        turns = np.pi * (X[:, None, :] - Z) / self.period
        K = np.exp(-2 * (np.sin(turns) ** 2).sum(axis=2) / self.width**2)
        if out is None:
            return K
        out[...] = K
        return out

    def diagonal(self, X):
        return np.ones(X.shape[0])

    def pullback(self, X, Z, W, K=None):
        """``sum_i W_ij dk(x_i, z_j)/dz_j``: with it, vectors can be learned."""
        K = self(X, Z) if K is None else K
        turns = np.pi * (X[:, None, :] - Z) / self.period
        slope = 2 * np.pi / (self.period * self.width**2) * np.sin(2 * turns)
        return np.einsum("ij,ijk->jk", W * K, slope)


def nights(n, seed=0):
    """Hours of the day, and whether it is dark: from 20 to 6, with some clouds."""
    rng = np.random.default_rng(seed)
    hours = rng.uniform(0, 24, size=(n, 1))
    dark = (hours[:, 0] > 20) | (hours[:, 0] < 6)
    return hours, dark ^ (rng.random(n) < 0.05)


def main():
    X, y = nights(400)
    full = AnyNormSVC(kernel=Periodic(), C=10).fit(X, y)
    slim = SlimSVC(2, kernel=Periodic(), C=10, scales="fixed").fit(X, y)
    for clf in (full, slim):
        at_night, at_noon = clf.predict([[0.0], [24.0]]), clf.predict([[12.0]])
        print(f"{clf.n_vectors_} vectors, at midnight: {at_night}, at noon: {at_noon}")


if __name__ == "__main__":
    main()
