"""Where learning starts: no start, and no seed, leads to a model far worse than the others."""

from functools import partial

import numpy as np
import pytest
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from papers.datasets import made
from slimsvm import SlimSVC, SlimSVR, bases
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import RegressionTargets
from slimsvm.training.spec import Hyperparameters

pytestmark = pytest.mark.filterwarnings("ignore:learning ended at its limit")

WORST = 1.15  # times the median objective of the seeds


# --- the same problem from eight seeds -------------------------------------------------------------------------------


def of_sklearn(make, n, noise_inputs=0, standardised=False, **options):
    X, y = make(n_samples=n, **options)
    X = np.c_[X, np.random.default_rng(0).normal(size=(n, noise_inputs))]
    return (StandardScaler().fit_transform(X) if standardised else X), y


def of_made(make, n):
    X, y = make()
    return X[:n], y[:n]


def bundled(load, n):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:n]
    return StandardScaler().fit_transform(X)[order], y[order]


def values(f, n, inputs, noise=0.1):
    rng = np.random.default_rng(inputs)
    X = rng.uniform(-1, 1, size=(n, inputs))
    return X, f(X) + noise * rng.normal(size=n)


friedman1 = partial(of_sklearn, datasets.make_friedman1, random_state=5)
moons = partial(of_sklearn, datasets.make_moons, random_state=3)
mixture = partial(of_sklearn, datasets.make_classification, random_state=0)

# Name: the rows, and how many vectors.
CLASSES = {
    "moons": (partial(moons, 500, noise=0.25), 8),
    "moons, noise inputs": (partial(moons, 1000, 8, noise=0.25), 20),
    "moons, two noise inputs": (partial(moons, 600, 2, noise=0.15), 12),
    "circles, noise inputs": (
        partial(of_sklearn, datasets.make_circles, 600, 4, noise=0.15, factor=0.5, random_state=1),
        10,
    ),
    "quantiles": (partial(of_sklearn, datasets.make_gaussian_quantiles, 500, n_features=4, random_state=0), 10),
    "mixture": (partial(mixture, 500, n_features=10, flip_y=0.1), 12),
    "mixture, unbalanced": (partial(mixture, 600, n_features=6, weights=[0.85], flip_y=0.05), 8),
    "mixture, three classes": (partial(mixture, 450, n_features=8, n_classes=3, n_informative=5), 12),
    "xor": (lambda: (lambda X: (X, np.sign(X[:, 0] * X[:, 1])))(np.random.default_rng(2).normal(size=(500, 6))), 12),
    "hastie": (partial(of_sklearn, datasets.make_hastie_10_2, 600, random_state=0), 20),
    "twonorm": (partial(of_made, made.twonorm, 400), 5),
    "ringnorm": (partial(of_made, made.ringnorm, 400), 10),
    "waveform": (partial(of_made, made.waveform, 600), 10),
    "digits": (partial(bundled, datasets.load_digits, 400), 15),
    "breast cancer": (partial(bundled, datasets.load_breast_cancer, 400), 8),
}
TARGETS = {
    "friedman1, 9 vectors": (partial(friedman1, 400, noise=0.3), 9),
    "friedman1, 10 vectors": (partial(friedman1, 400, noise=0.3), 10),
    "friedman1, 20 vectors": (partial(friedman1, 400, standardised=True, noise=0.3), 20),
    "friedman1, noisy": (partial(friedman1, 500, noise=2.0), 15),
    "friedman2": (partial(of_sklearn, datasets.make_friedman2, 400, standardised=True, noise=10.0, random_state=5), 10),
    "friedman3": (partial(of_sklearn, datasets.make_friedman3, 400, standardised=True, noise=0.1, random_state=5), 12),
    "diabetes": (partial(bundled, datasets.load_diabetes, 300), 8),
    "sinc": (partial(values, lambda X: np.sinc(4 * X[:, 0]), 300, 1), 6),
    "waves": (partial(values, lambda X: np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]), 500, 2), 12),
    "waves, noise inputs": (partial(values, lambda X: np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]), 500, 8), 15),
    "product": (partial(values, lambda X: 3 * X[:, 0] * X[:, 1] + X[:, 2] ** 2, 400, 5), 10),
    "kinks": (partial(values, lambda X: np.abs(X[:, :3]).sum(axis=1), 500, 6, 0.05), 16),
    "steps": (partial(values, lambda X: (X[:, 0] > 0) + 0.5 * (X[:, 1] > 0.3), 600, 4), 12),
    "ridge": (partial(values, lambda X: np.tanh(2 * X[:, :4] @ np.array([1, -1, 0.5, 0.5])), 400, 10), 8),
    "swiss roll": (
        partial(of_sklearn, datasets.make_swiss_roll, 600, standardised=True, noise=0.3, random_state=0),
        20,
    ),
}
MODES = ("search", "learned", "fixed")


def objectives(name, mode, seeds):
    """Of models that differ in the seed alone."""
    rows, count = (CLASSES | TARGETS)[name]
    X, y = rows()
    if mode == "search":
        given = {}
    elif name in CLASSES:
        given = {"C": 10.0, "gamma": "scale", "scales": mode}
    else:
        given = {"C": 1000 / np.var(y), "gamma": 0.3 / (X.shape[1] * X.var()), "scales": mode}
    estimator = SlimSVC if name in CLASSES else SlimSVR
    return np.array([estimator(count, random_state=s, **given).fit(X, y).objective_.sum() for s in range(seeds)])


# Eight vectors cannot follow this function of ten inputs, and the minima differ: whatever the starts and iterations (12
# starts, the best two run to the end, 1,600 iterations), 24 seeds end between 0.8 and 1.2 times their median.
FAR_APART = pytest.param(
    "ridge", "fixed", marks=pytest.mark.xfail(strict=False, reason="local minima differ by more than 15 %")
)


@pytest.mark.grid(45)
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        FAR_APART if (name, mode) == FAR_APART.values else (name, mode)
        for name in (*CLASSES, *TARGETS)
        for mode in MODES
    ],
)
def test_no_seed_is_far_worse_than_the_others(name, mode):
    found = objectives(name, mode, 8)
    assert found.max() <= WORST * np.median(found), found


@pytest.mark.parametrize(("name", "mode"), [("friedman1, 9 vectors", "learned"), ("waves, noise inputs", "fixed")])
def test_no_seed_settles_without_an_input_that_matters(name, mode):
    """From one start, one seed in four ended at 1.6 to 6 times the median."""
    found = objectives(name, mode, 6)
    assert found.max() <= WORST * np.median(found), found


def test_moons_among_many_rows_and_noise_inputs():
    """This seed lost the first input for good, and ended at 38,583."""
    X, y = moons(20_000, 8, noise=0.25)
    model = SlimSVC(20, C=10, gamma=0.1063055904, scales="learned", random_state=0).fit(X, y)
    assert model.objective_[0] < 17_000
    assert model.score(X, y) > 0.94


@pytest.mark.grid(4)
@pytest.mark.parametrize("count", [8, 9, 10, 11, 12])
def test_trials_do_not_settle_without_inputs_that_matter(count):
    """They did with learned scales, so that scales stayed fixed: 9 and 10 vectors had R^2 of 0.924, 8 had 0.978."""
    X, y = friedman1(1400, noise=0.3)
    assert SlimSVR(count).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.985


# --- the rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("init", "different"), [("kmeans", 4), ("cholesky", 4), (np.eye(5, 3), 1)])
def test_starts_differ(init, different):
    """The user's own vectors are the only start."""
    X, y = values(lambda X: np.sin(3 * X[:, 0]) + X[:, 1] ** 2, 150, 3)
    estimator = SlimSVR(5, bases.Learned(init=init))
    dataset = checked_data.checked_dataset(estimator, X, y, None, RegressionTargets(alike=False))
    spec = estimator._spec().training_spec(dataset)
    candidates = spec.candidates(dataset, Hyperparameters(1.0, 1.0), np.random.default_rng(0))
    found = candidates.initial_vectors(bases.resolve(spec.basis.init), 5, 4)
    assert len({Z.tobytes() for Z in found}) == len(found) == different
    assert {Z.shape for Z in found} == {(5, 3)}
