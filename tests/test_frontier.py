"""Models of several sizes, the rows that judge them, and the choice among them."""

from __future__ import annotations

import io
import pickle
import re
import sys
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from problems import blobs, three_classes
from slimsvm import SVR, AnyNormSVC, Frontier, FrontierDisplay, SlimSVC, SlimSVR, frontier, kernels
from slimsvm.basis.selection import forward_rows, forward_vectors
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import ClassTargets
from slimsvm.frontiers import full_machine, scorers
from slimsvm.problem.losses import SquaredHinge
from slimsvm.quantization.quantize import model_bytes
from slimsvm.report import report
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.rows.protocol import decision
from slimsvm.solvers.primal.newton import newton
from slimsvm.training import sizes as sizing
from slimsvm.training.scoring import margins
from small_models import FEW_ITERATIONS, learned, slim

pytestmark = pytest.mark.filterwarnings(FEW_ITERATIONS)


def found_for(X, y, estimator=None, sizes=(2, 4, 8), **params):
    """Without search, with few iterations, without the full machine."""
    return frontier(X, y, estimator=estimator or slim(), sizes=sizes, **{"full": False, **params})


def task_of(X, y, weight=None, merge=True):
    return checked_data.checked_dataset(SlimSVC(), X, y, weight, ClassTargets(), merge)


# --- the path ------------------------------------------------------------------------------------------------


def best_additions(K, gram, labels, count):
    """Forward selection, slowly: for each candidate, the part of its feature outside the span of the chosen ones, by
    the Schur complement, and what one Newton step along it gains, g^2 / 2h."""
    loss, kept = SquaredHinge(), []
    for _ in range(count):
        R = gram[np.ix_(kept, kept)]
        whitened = K[:, kept] @ np.linalg.inv(np.linalg.cholesky(R)).T if kept else np.zeros((len(K), 0))
        F = decision(whitened, newton(DenseFeatures(whitened, labels), loss, tol=1e-12).V)
        gains = {}
        for j in set(range(len(gram))) - set(kept):
            weights = np.linalg.solve(R, gram[kept, j])
            left = K[:, j] - K[:, kept] @ weights
            q = left / np.sqrt(gram[j, j] - gram[j, kept] @ weights)
            g = q @ loss.duals(F, labels.Y, labels.C)
            h = 1 + q**2 @ loss.curvature(F, labels.Y, labels.C)
            gains[j] = float((g**2 / (2 * h)).sum())
        kept.append(max(gains, key=gains.get))
    return kept


@pytest.mark.parametrize("outputs", [1, 3])
def test_vectors_are_chosen_for_what_they_gain(outputs):
    X, y = three_classes(60)
    Y = np.where(y[:, None] == np.arange(outputs), 1.0, -1.0)
    labels = RowLabels(Y, np.full(Y.shape, 2.0))
    kernel = kernels.Gaussian(0.7)
    Z = np.random.default_rng(0).normal(size=(12, 2))
    assert forward_vectors(kernel(X, Z), kernel(Z, Z), labels, 6).tolist() == best_additions(
        kernel(X, Z), kernel(Z, Z), labels, 6
    )


def test_among_the_rows_it_is_forward_selection_of_rows():
    X, y = blobs(50)
    labels = RowLabels(y[:, None], np.ones((50, 1)))
    kernel = kernels.Gaussian(0.3)
    K = kernel(X, X)
    rows = forward_rows(kernel, X, labels, 7, np.random.default_rng(0), candidates=None)
    assert forward_vectors(K, K, labels, 7).tolist() == rows.tolist()


def test_copies_of_a_vector_add_nothing():
    X, y = blobs(40)
    labels = RowLabels(y[:, None], np.ones((40, 1)))
    kernel = kernels.Gaussian(0.3)
    Z = np.repeat(X[:3], 4, axis=0)
    kept = forward_vectors(kernel(X, Z), kernel(Z, Z), labels, 9)
    assert len(kept) == 3 == len(np.unique(Z[kept], axis=0))


@pytest.mark.parametrize("data", [blobs(120), three_classes(120)], ids=["two classes", "three"])
@pytest.mark.parametrize("params", [{}, {"slack": "l1"}, {"scales": "learned"}, {"kernel": "laplacian"}], ids=str)
def test_learned_models_have_their_size_and_a_proof(data, params):
    found = found_for(*data, slim(**params), sizes=(12, 3, 7))
    assert found.sizes == tuple(found.models) == (3, 7, 12)
    for size, model in found.models.items():
        assert model.n_vectors_ == size == model.n_vectors
        assert (model.duality_gap_ <= model.tol).all()
        assert model.C_ == 2.0
        assert model.search_results_ == {}
        assert model.score(*data) > 0.5


@pytest.mark.parametrize("basis", ["forward", "random", "cholesky"])
def test_bases_of_rows_give_nested_models(basis):
    X, y = blobs(150)
    models = found_for(X, y, slim(basis=basis), sizes=(3, 5, 11)).models
    supports = [set(models[size].support_) for size in (3, 5, 11)]
    assert [len(s) for s in supports] == [3, 5, 11]
    assert supports[0] < supports[1] < supports[2]
    for size, model in models.items():
        np.testing.assert_array_equal(model.vectors_, X[model.support_])
        assert (model.duality_gap_ <= model.tol).all()
        assert model.n_vectors_ == size


def test_of_given_vectors_the_best_are_kept():
    X, y = blobs(100)
    models = found_for(X, y, slim(basis=X[:10]), sizes=(2, 6)).models
    assert [model.n_vectors_ for model in models.values()] == [2, 6]
    rows = {tuple(row) for row in X[:10]}
    assert {tuple(v) for v in models[2].vectors_} < {tuple(v) for v in models[6].vectors_} < rows


def test_smaller_models_begin_where_larger_ones_ended():
    """Without iterations of their own, vectors and scales are those of the largest model."""
    X, y = blobs(120)
    models = found_for(X, y, slim(basis=learned(iterations=0), scales="fixed"), sizes=(3, 9)).models
    assert {tuple(v) for v in models[3].vectors_} < {tuple(v) for v in models[9].vectors_}


@pytest.mark.parametrize("seed", range(3))
def test_smaller_models_keep_the_vectors_that_gain_most(seed):
    X, y = blobs(120)
    basis = learned(init="random", iterations=0)
    models = found_for(X, y, slim(basis=basis, scales="fixed"), sizes=(3, 9), random_state=seed).models
    Z, kernel = models[9].vectors_, models[9].kernel_
    labels = RowLabels(y[:, None], np.full((120, 1), models[9].C_))
    best = best_additions(kernel(X, Z), kernel(Z, Z), labels, 3)
    assert set(best) != {0, 1, 2}  # the first ones would not do
    assert {tuple(v) for v in models[3].vectors_} == {tuple(v) for v in Z[best]}


def test_sizes_that_have_no_room():
    X, y = blobs(40, d=3)
    assert found_for(X, y, slim(kernel="linear"), sizes=(2, 50, 100)).sizes[-1] <= 4
    assert max(found_for(X, y, sizes=(5, 300)).sizes) <= 40


# --- the rows that judge -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "count"), [(200, 5), (3500, 3)])
def test_folds(n, count):
    """Each row judges once; equal rows are on one side, whatever their labels; classes keep their shares."""
    X, y = blobs(n)
    X[1::10] = X[::10]
    dataset = task_of(X, y)
    held_out = sizing.size_folds(dataset, np.random.default_rng(0))
    assert len(held_out) == count
    tested = np.concatenate([part.test.indices for part in held_out])
    assert sorted(tested) == sorted(dataset.indices)
    for part in held_out:
        assert not set(part.test.keys) & set(part.train.keys)
        assert part.test.size + part.train.size == dataset.size
        assert np.mean(part.test.codes) == pytest.approx(np.mean(dataset.codes), abs=0.1)


def test_many_rows_are_judged_by_one_part(monkeypatch):
    monkeypatch.setattr(sizing, "FIVE_FOLDS_BELOW", 100)
    monkeypatch.setattr(sizing, "ONE_FOLD_FROM", 450)
    monkeypatch.setattr(sizing, "MAX_SIZE_ROWS", 450)
    X, y = blobs(1000)
    y[:12] = 7  # a rare class keeps rows on both sides
    dataset = task_of(X, y)
    (part,) = sizing.size_folds(dataset, np.random.default_rng(0))
    assert part.test.size + part.train.size == pytest.approx(450, abs=15)
    assert part.test.size == pytest.approx(150, abs=5)
    assert {2} < set(part.test.codes)
    assert 2 in part.train.codes
    assert part.train.counts.sum() == pytest.approx(2 / 3 * dataset.counts.sum(), rel=0.05)  # as in the whole


def test_rows_with_many_copies_judge_themselves():
    X, y = blobs(12)
    dataset = task_of(np.repeat(X, 20, axis=0), np.repeat(y, 20))
    (part,) = sizing.size_folds(dataset, np.random.default_rng(0))
    assert part.train is part.test is dataset
    assert found_for(np.repeat(X, 20, axis=0), np.repeat(y, 20)).curve.scores.min() > 0.5


def test_a_class_of_one_row():
    X, y = blobs(60)
    y[0] = 9
    found = found_for(X, y)
    assert list(found.best().classes_) == [-1, 1, 9]


def test_scores_are_those_of_models_trained_on_the_other_rows():
    X, y = blobs(150)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model = slim(basis="forward")
    found = found_for(X, y, model, cv=cv, sizes=(6,))
    rights = []
    for train, test in cv.split(X, y):
        inner = found_for(X[train], y[train], model, cv=2, sizes=(6,)).models[6]
        rights.append(inner.score(X[test], y[test]))
    # Draws differ: the seed is drawn after the folds.
    assert found.curve.scores[0] == pytest.approx(np.mean(rights), abs=0.08)
    error = (150 * (1 - found.curve.scores[0]) + 1) / 152
    assert found.curve.standard_errors[0] == pytest.approx(np.sqrt(error * (1 - error) / 150), rel=0.1)


def test_what_a_row_says_by_hand():
    """A part with a model that is known to be wrong on some rows."""
    part = SimpleNamespace(
        X=np.arange(8.0)[:, None],
        y=np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        weights=np.array([1.0, 1, 1, 1, 2, 1, 1, 1]),
        keys=np.arange(8),
        train=SimpleNamespace(classes=np.array([0, 1]), class_weights=np.array([1.0, 3.0])),
    )
    # f = x - 4.5: row 4 is wrong, with a weight of 2 * 3 in 19.
    model = slim(kernel="linear", basis="random").fit([[-1.0], [0.0], [1.0], [2.0]], [0, 0, 1, 1])
    model._scores = lambda X: X - 4.5
    verdict = scorers.score_accuracy(part, model)
    assert verdict.score == pytest.approx(1 - 6 / 19)
    about = (8 * 6 / 19 + 1) / 10
    assert verdict.variance == pytest.approx(about * (1 - about) / 8)
    np.testing.assert_allclose(
        verdict.soft_errors, 1 / (1 + np.exp(4 * np.abs(np.arange(8) - 4.5) * np.where(part.X[:, 0] == 4, -1, 1)))
    )
    np.testing.assert_array_equal(verdict.weights, part.weights * [1, 1, 1, 1, 3, 3, 3, 3])


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_margins(multi_class):
    """Against the definition: all binary problems that a row's class takes part in."""
    X, y = three_classes(60)
    model = slim(multi_class=multi_class).fit(X, y)
    scores = model._scores(X)
    pairs = [(0, 1), (0, 2), (1, 2)] if multi_class == "ovo" else [(0, None), (1, None), (2, None)]
    for row, label in enumerate(y):
        mine = []
        for o, (positive, negative) in enumerate(pairs):
            if label == positive:
                mine.append(scores[row, o])
            elif negative is None or label == negative:
                mine.append(-scores[row, o])
        assert margins(scores, model.classes_, multi_class == "ovo", y)[row] == min(mine)
    assert (margins(scores, model.classes_, multi_class == "ovo", np.full(60, 7)) == -np.inf).all()
    two = slim().fit(X[y < 2], y[y < 2])
    np.testing.assert_array_equal(margins(two._scores(X), two.classes_, False, np.ones(60)), two.decision_function(X))


def test_margins_that_are_clearly_worse():
    """Soft errors on the same rows: the mean difference in its standard errors; copies add nothing."""
    rng = np.random.default_rng(0)
    good = rng.random(400)
    bad = good + 0.1 * rng.normal(size=400) + 0.02
    verdicts = [[sizing.FoldScore(0.9, 0.01, soft, np.ones(400))] for soft in (bad, good)]
    part = SimpleNamespace(keys=np.arange(400))
    behind = sizing._behind(verdicts, [part])
    difference = bad - good
    np.testing.assert_allclose(behind, [difference.mean() / (difference.std() / 20), 0])
    halves = [SimpleNamespace(keys=part.keys[:200]), SimpleNamespace(keys=part.keys[200:])]
    split = [
        [sizing.FoldScore(0.9, 0.01, s[k], np.ones(200)) for k in (slice(200), slice(200, 400))] for s in (bad, good)
    ]
    np.testing.assert_allclose(sizing._behind(split, halves), behind)
    np.testing.assert_allclose(sizing._behind([found * 2 for found in split], halves * 2), behind)
    curve = sizing.Curve((4, 8, 16), np.array([0.9, 0.9, 0.9]), np.full(3, 0.02), np.array([5.0, 1.0, 0.0]))
    assert curve.best(0.5) == 8
    assert curve.best(2) == 4
    assert curve.best(0) == 16  # of equal scores the best margins


def test_a_difference_that_is_sure_but_nothing():
    """On a flat curve larger models have larger margins by a hair: that alone is no reason for them."""
    good = np.random.default_rng(0).random(400)
    noise = 1e-4 * np.random.default_rng(1).normal(size=400)
    soft = [good + 2e-2 + noise, good + 5e-4 + noise, good]
    verdicts = [[sizing.FoldScore(0.9, 0.01, one, np.ones(400))] for one in soft]
    behind = sizing._behind(verdicts, [SimpleNamespace(keys=np.arange(400))])
    assert behind[0] > 100
    assert (behind[1:] == 0).all()


def test_settings_serve_more_than_two_vectors():
    """They are searched for a quarter of the largest size, but for eight vectors where that is less."""
    assert sizing.search_size((2, 4, 8, 16, 32, 64, 128)) == 32
    assert sizing.search_size((2, 4, 8, 16)) == 8
    assert sizing.search_size((2, 4, 8)) == 8
    assert sizing.search_size((2, 4)) == 4
    assert sizing.search_size((1,)) == 1


def test_rows_that_judge_twice_count_once():
    X, y = blobs(100)
    folds = list(StratifiedKFold(4).split(X, y))
    once, twice = found_for(X, y, cv=folds), found_for(X, y, cv=folds + folds)
    np.testing.assert_allclose(once.curve.scores, twice.curve.scores)
    np.testing.assert_allclose(once.curve.standard_errors, twice.curve.standard_errors)


def test_the_jackknife_of_a_mean():
    """Of a score that is a mean over equal groups it gives the variance of a mean of groups."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 100)
    rows = {"X": rng.normal(size=(200, 1)), "y": y, "weights": np.ones(200), "keys": rng.permutation(200)}
    part, model = SimpleNamespace(train=SimpleNamespace(targets=None), **rows), SimpleNamespace()
    right = np.zeros(200)
    right[rng.random(200) < 0.7] = 1
    where = {value: k for k, value in enumerate(part.X[:, 0])}
    verdict = scorers.score_by(lambda m, X, y: np.mean([right[where[v]] for v in X[:, 0]]), "mean", False, part, model)
    group = scorers.jackknife_groups(part)
    means = [right[group == g].mean() for g in range(scorers.N_JACKKNIFE_GROUPS)]
    assert verdict.score == pytest.approx(right.mean())
    assert verdict.variance == pytest.approx(np.var(means, ddof=1) / scorers.N_JACKKNIFE_GROUPS)


@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", "f1_macro", "balanced_accuracy", make_scorer(f1_score), lambda model, X, y: model.score(X, y)],
    ids=["roc_auc", "f1_macro", "balanced_accuracy", "scorer", "function"],
)
def test_scorers(scoring):
    X, y = blobs(150)
    found = found_for(X, y, scoring=scoring)
    assert (found.curve.scores > 0.5).all()
    assert (found.curve.standard_errors > 0).all()
    assert repr(found)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_scorers_of_probabilities(scoring):
    """Each part's models have a layer of their own: the scores are those of a cross-validation."""
    X, y = three_classes(120)
    parts = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    model = slim(probability=True, n_vectors=8)
    with pytest.warns(UserWarning, match="the full machine is left out"):
        found = found_for(X, y, model, sizes=(8,), scoring=scoring, cv=parts, full=True)
    assert found.full is None
    by_hand = cross_val_score(model, X, y, scoring=scoring, cv=parts).mean()
    assert found.curve.scores[0] == pytest.approx(by_hand, abs=0.05)
    assert found.best().predict_proba(X).shape == (120, 3)
    with pytest.raises(ValueError, match=f"scoring='{scoring}' cannot judge .*probability=True"):
        found_for(X, y, scoring=scoring)


@pytest.mark.filterwarnings("ignore:Only one class")
def test_scores_that_are_not_numbers():
    """A part without rows of the rare class has no ROC curve; nothing is chosen by NaN."""
    X, y = blobs(60)[0], np.repeat([1, 0], [3, 57])
    with pytest.raises(ValueError, match=r"'roc_auc' is not a number .* are \[0\], the model's \[0, 1\].*cv=2"):
        found_for(X, y, scoring="roc_auc")
    assert np.isfinite(found_for(X, y, scoring="roc_auc", cv=2).curve.scores).all()


def test_accuracy_by_name_is_the_default():
    X, y = blobs(150)
    mine, theirs = found_for(X, y), found_for(X, y, scoring="accuracy")
    np.testing.assert_allclose(mine.curve.scores, theirs.curve.scores)


def test_class_weights_count():
    """In the default score; a scorer decides for itself."""
    X, y = blobs(150)
    balanced = slim(class_weight="balanced")
    y = np.where(np.arange(150) % 3 == 0, y, -1)
    found = found_for(X, y, balanced, scoring=None)
    theirs = found_for(X, y, balanced, scoring="balanced_accuracy")
    np.testing.assert_allclose(found.curve.scores, theirs.curve.scores, atol=0.03)


def test_groups_of_rows():
    X, y = blobs(120)
    groups = np.arange(120) % 4
    seen = []

    def watch(model, X_test, y_test):
        seen.append({int(groups[np.flatnonzero((row == X).all(axis=1))[0]]) for row in X_test})
        return accuracy_score(y_test, model.predict(X_test))

    found = found_for(X, y, scoring=watch, cv=LeaveOneGroupOut(), groups=groups)
    assert all(len(of_one_part) == 1 for of_one_part in seen)
    assert set().union(*seen) == {0, 1, 2, 3}
    by_hand = found_for(X, y, cv=[(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(4)])
    np.testing.assert_allclose(found.curve.scores, by_hand.curve.scores, atol=0.02)  # parts of equal size
    assert found_for(X, y, cv=GroupKFold(4), groups=groups).sizes == (2, 4, 8)


def test_a_part_without_a_class():
    """The models of that part know fewer classes; a part with one class is named."""
    X, y = three_classes(90)
    order = np.argsort(y, kind="stable")
    found = found_for(X, y, cv=[(order[:60], order[60:]), (order[30:], order[:30])])
    assert found.curve.scores.max() == 0
    with pytest.raises(ValueError, match=r"part 2 of cv .* one class"):
        found_for(X, y, cv=[(order[:60], order[60:]), (order[:30], order[30:])])


# --- the same answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_weights_are_copies(scoring):
    X, y = three_classes(90)
    copies = np.arange(90) % 4
    weighted = found_for(X, y, sample_weight=copies, scoring=scoring)
    repeated = found_for(np.repeat(X, copies, axis=0), np.repeat(y, copies), scoring=scoring)
    np.testing.assert_allclose(weighted.curve.scores, repeated.curve.scores)
    np.testing.assert_allclose(weighted.curve.standard_errors, repeated.curve.standard_errors)
    for size in weighted.sizes:
        np.testing.assert_allclose(weighted.models[size].objective_, repeated.models[size].objective_, rtol=1e-5)


def test_the_order_of_rows_and_threads_change_nothing():
    X, y = three_classes(120)
    order = np.random.default_rng(1).permutation(120)
    model = slim(C="search")
    first = found_for(X, y, model)
    for other in (found_for(X[order], y[order], model), found_for(X, y, model, n_jobs=2)):
        assert other.best_size() == first.best_size()
        np.testing.assert_allclose(other.curve.scores, first.curve.scores, atol=0.02)  # two rows at a boundary
        assert other.models[4].C_ == first.models[4].C_


def test_the_same_seed_gives_the_same_models():
    X, y = blobs(150)
    first, again = found_for(X, y), found_for(X, y)
    other = found_for(X, y, random_state=1)
    for size in first.sizes:
        np.testing.assert_array_equal(first.models[size].vectors_, again.models[size].vectors_)
    assert not np.array_equal(first.models[8].vectors_, other.models[8].vectors_)
    assert other.models[8].random_state == 1


def test_sparse_rows():
    X, y = blobs(150, density=0.5)
    dense, sparse = found_for(X, y, full=True), found_for(sp.csr_array(X), y, full=True)
    np.testing.assert_allclose(dense.curve.scores, sparse.curve.scores, atol=0.03)
    assert sparse.best().predict(sp.csr_array(X)).shape == (150,)


def test_a_precomputed_kernel():
    X, y = blobs(120)
    by_rows = found_for(X, y, slim(basis="forward"), full=True)
    K = kernels.Gaussian(0.4)(X, X)
    model = slim(basis="forward", kernel="precomputed")
    for params in ({}, {"cv": StratifiedKFold(4)}):
        by_matrix = found_for(K, y, model, full=True, **params)
        assert by_matrix.best().score(K, y) > 0.7
        assert by_matrix.full.model.score(K, y) > 0.7
    assert by_matrix.curve.scores.max() == pytest.approx(by_rows.curve.scores.max(), abs=0.1)


# --- the choice ----------------------------------------------------------------------------------------------


def hand_made(sizes, scores, error=0.02, classes=2, inputs=10, behind=0.0, **others):
    outputs = classes * (classes - 1) // 2
    rng = np.random.default_rng(0)
    models = {
        m: SimpleNamespace(
            _labels_and_votes=lambda: (np.arange(classes), None),
            kernel_=kernels.Gaussian(0.1),
            vectors_=rng.normal(size=(m, inputs)),
            vector_coef_=np.zeros((outputs, m)),
            intercept_=np.zeros(outputs),
            n_vectors_=m,
        )
        for m in sizes
    }
    errors, behind = np.full(len(sizes), error), np.broadcast_to(behind, len(sizes))
    curve = sizing.Curve(tuple(sizes), np.array(scores), errors, behind)
    floor = sizing.smallest_size(classes)
    return Frontier(models, curve, dict.fromkeys(sizes, 0.1), None, "accuracy", floor, **others)


def test_the_rule():
    found = hand_made((2, 4, 8, 16, 32), (0.80, 0.885, 0.895, 0.90, 0.899))
    assert found.best_size() == 8  # within half of 0.02
    assert found.best_size(0.2) == 16
    assert found.best_size(0) == 16
    assert found.best_size(1) == 4
    assert found.best_size(10) == 4  # the floor
    assert found.best_size(10, floor=1) == 2
    assert found.best() is found.models[8]
    assert [row["chosen"] for row in found.rows] == [False, False, True, False, False]


def random_curve(rng):
    sizes = tuple(np.cumsum(rng.integers(1, 9, size=rng.integers(1, 9))).tolist())
    errors = rng.choice([0.0, 0.01, 0.02], size=len(sizes))
    behind = rng.choice([0.0, 0.5, 1.0, 2.0, 4.0, 9.0], size=len(sizes))
    return sizing.Curve(sizes, rng.choice(8, size=len(sizes)) / 100, errors, behind)


def test_a_larger_within_never_gives_a_larger_model():
    """Whatever the table, the floor and the bytes are: also from 0 on, and where no size is good in both ways."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        curve = random_curve(rng)
        allowed = [size for size in curve.sizes if rng.random() < 0.7] or curve.sizes
        found = [curve.best(within, floor=5, allowed=allowed) for within in (0, 0.1, 0.25, 0.5, 1, 2, 4, 1e9)]
        assert found == sorted(found, reverse=True), curve
        possible = [size for size in allowed if size >= 5] or [max(allowed)]
        assert set(found) <= set(possible)
        scores, behind = ([part[curve.sizes.index(m)] for m in possible] for part in (curve.scores, curve.behind))
        both = np.flatnonzero((scores == np.max(scores)) & (behind == np.min(behind)))
        if len(both):  # the best in both ways is what 0 asks for
            assert found[0] == possible[both[0]]


def test_moons_by_within():
    """Five vectors have the best score by luck, and surely worse margins than eight."""
    scores, behind = [0.902, 0.914, 0.91333, 0.90933, 0.91, 0.91067], [9.5, 8.2, 6.8, 0.0, 0.0, 0.0]
    found = hand_made((2, 3, 5, 8, 12, 20), scores, error=0.00726, behind=behind)
    assert [found.best_size(within) for within in (0, 0.25, 0.5, 1, 2)] == [20, 20, 12, 8, 5]


def test_the_reason_is_true():
    """In each case the sentence names the sizes that decided it."""
    found = hand_made((2, 4, 8, 16, 32), (0.80, 0.885, 0.895, 0.90, 0.899))
    assert found.chosen.why == (
        "8 vectors are chosen: the fewest whose score is within 0.5 standard errors of the best (that of 16)"
    )
    assert found.choice(0).why == "16 vectors are chosen: the fewest that have the best score"
    assert "within 1 standard error of the best (that of 16)" in found.choice(1).why
    assert found.choice(10).why.endswith(
        "; 2 would do by this table, but fewer than 4 are not chosen: "
        "the rows held out are too few to judge such small models"
    )
    needed = {size: 10 * size for size in found.sizes}
    assert found.choice(bytes=80, bytes_by_size=needed).why == (
        "8 vectors are chosen: of those that fit in 80 bytes, the fewest that have the best score; "
        "16 vectors do better, but take more than 80 bytes"
    )
    assert found.choice(bytes=20, bytes_by_size=needed).why.startswith("2 vectors are chosen: no other size fits; 16 ")
    margins = hand_made((4, 8, 16), (0.905, 0.899, 0.90), behind=[9.0, 1.0, 0.0])
    assert margins.chosen.why.endswith(
        "(that of 4) and whose margins on the same rows are not clearly worse than the best"
    )
    assert margins.choice(0.01).why == (
        "16 vectors are chosen: no size is close enough to both the best score (4 vectors; limit 0.01 standard errors) "
        "and the best margins (16 vectors; limit 0.04 standard errors of the difference); this one comes closest"
    )
    assert "and the best errors" in replace(margins, scoring="r2", chosen=None).choice(0.01).why
    assert hand_made((2,), (0.9,)).chosen.why == "2 vectors are chosen: it is the only size"
    small = hand_made((1, 2, 3), (0.9, 0.9, 0.8)).chosen.why
    assert small == ("3 vectors are chosen: all sizes are below the minimum of 4, so the largest is taken")
    exact = hand_made((4, 8), (0.9, 0.9), behind=[1.0, 0.0]).choice(0).why
    assert exact.endswith(
        "the fewest that have the best score and whose margins on the same rows are as good as the best"
    )


def test_the_floor_is_named_only_where_it_decided():
    """Among curves at random: a smaller size "would do" only if it is below the floor and the chosen one is not."""
    rng, named = np.random.default_rng(0), 0
    for _ in range(300):
        scores, behind = rng.choice([0.88, 0.89, 0.9], 4), rng.choice([0.0, 3.0, 9.0], 4)
        found = hand_made((2, 3, 4, 8), scores, error=0.01, behind=behind)
        chosen = found.choice(rng.choice([0.0, 0.5, 1.0]))
        would = re.search(r"; (\d+) would do by this table, but fewer than 4", chosen.why)
        if would is not None:
            named += 1
            assert int(would[1]) < 4 <= chosen.size
    assert named > 20


def test_every_way_out_gives_the_same_reason(monkeypatch):
    """Print, HTML, picture and report; whoever chooses otherwise, as the command does, has another one in all."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    X, y = blobs(120)
    found = found_for(X[:80], y[:80])
    for shown in (found, replace(found, chosen=found.choice(9.0))):
        page = unescape(report(shown.models[8], X[80:], y[80:], frontier=shown))
        texts = repr(shown), unescape(shown._repr_html_()), shown.plot().get_title(), page
        for text in texts:
            assert shown.chosen.why in " ".join(text.split())
            assert text.count("are chosen:") == 1
        assert [row["size"] for row in shown.rows if row["chosen"]] == [shown.chosen.size]
        assert FrontierDisplay.from_frontier(shown).chosen == shown.chosen.size


def test_the_floor():
    flat = (0.9, 0.9, 0.9, 0.9)
    assert hand_made((2, 4, 8, 16), flat).best_size() == 4
    assert hand_made((2, 4, 8, 16), flat, classes=7).best_size() == 8
    assert hand_made((1, 2, 3), (0.9, 0.9, 0.8)).best_size() == 3  # nothing is above it
    # The best of all is below the floor: what counts is the best from there on.
    assert hand_made((2, 4, 8, 16), (0.99, 0.5, 0.9, 0.9)).best_size() == 8


def test_bytes():
    found = hand_made((2, 4, 8, 16), (0.5, 0.7, 0.895, 0.9))
    needed = [row["bytes"] for row in found.rows]
    assert needed == [model_bytes(model) for model in found.models.values()]
    assert np.array_equal(np.diff(needed), 12 * np.diff(found.sizes))  # ten inputs, a coefficient of two bytes
    assert found.best_size(bytes=10_000) == 16
    assert found.best_size(bytes=needed[2]) == 8
    assert found.best_size(bytes=needed[2] - 1) == 4
    assert found.best_size(bytes=needed[0]) == 2  # too small is better than none
    assert found.best_size(0.5, bytes=10_000) == 8
    with pytest.raises(ValueError, match=f"no model fits in bytes=20: the smallest, of 2 vectors, takes {needed[0]}"):
        found.best(bytes=20)


def test_default_sizes():
    assert sizing.size_grid(1, 2) == (2, 4, 8, 16, 32, 64, 128)
    assert sizing.size_grid(4, 2) == (4, 8, 16, 32, 64, 128)
    assert sizing.size_grid(26, 26) == (32, 64, 128)
    assert sizing.size_grid(100, 100) == (128, 256)
    assert sizing.search_size((2, 4, 8, 16, 32, 64, 128)) == 32
    assert sizing.search_size((5,)) == 5


def test_the_full_machine():
    X, y = blobs(150)
    found = found_for(X, y, slim(C="search", gamma="search"), full=True)
    machine = found.full.model
    assert isinstance(machine, AnyNormSVC)
    assert machine.C in full_machine.FULL_COSTS
    assert found.full.vectors == machine.n_vectors_ > 8
    tried = found.models[8].search_results_
    assert machine.gamma in tried["gamma"]
    again = clone(machine).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), machine.decision_function(X), atol=0.01)
    assert "full machine" in repr(found)
    given = found_for(X, y, slim(C=3.0, gamma=0.2), full=True).full.model
    assert (given.C, given.gamma) == (3.0, 0.2)


# --- the full machine of values --------------------------------------------------------------------------------


def friedman(n=200, noise=1.0):
    return make_friedman1(n, n_features=5, noise=noise, random_state=0)


def slim_values(**params):
    return SlimSVR(basis=learned(), **{"C": 10.0, "gamma": 0.5, "scales": "fixed", **params})


def test_the_full_machine_of_values():
    X, y = friedman()
    found = found_for(X, y, slim_values(C="search", gamma="search"), full=True)
    machine, spread = found.full.model, y.std()
    assert isinstance(machine, SVR)
    assert machine.C / spread == pytest.approx(min(full_machine.FULL_COSTS, key=lambda C: abs(C - machine.C / spread)))
    assert machine.epsilon / spread == pytest.approx(
        min(full_machine.FULL_TUBES, key=lambda tube: abs(tube - machine.epsilon / spread))
    )
    assert machine.gamma in found.models[8].search_results_["gamma"]
    assert found.full.vectors == machine.n_vectors_ > 8
    assert found.full.score > found.curve.scores[0]
    again = clone(machine).fit(X, y)
    np.testing.assert_allclose(again.predict(X), machine.predict(X), atol=0.02 * spread)
    np.testing.assert_allclose(X[machine.support_], machine.vectors_)
    assert "full machine" in repr(found)
    assert found_for(X, y, slim_values(), full=False).full is None


def test_its_score_is_that_of_machines_without_the_rows_held_out():
    X, y = friedman()
    parts = list(KFold(3, shuffle=True, random_state=0).split(X))
    found = found_for(X, y, slim_values(loss="epsilon_insensitive", epsilon=0.5), full=True, cv=parts)
    machine = found.full.model
    assert (machine.C, machine.epsilon, machine.gamma) == (pytest.approx(10.0), pytest.approx(0.5), 0.5)
    scores = [clone(machine).fit(X[train], y[train]).score(X[test], y[test]) for train, test in parts]
    assert found.full.score == pytest.approx(np.mean(scores), abs=1e-3)


def test_a_full_machine_for_each_target():
    """Each is that of its target alone; the score is the mean, whatever the units."""
    X, y = friedman()
    Y = np.column_stack([y, 1000 * np.sin(3 * X[:, 0])])
    parts = list(KFold(3, shuffle=True, random_state=0).split(X))
    pipeline = make_pipeline(StandardScaler(), slim_values(gamma=0.1))
    frame = pd.DataFrame(X, columns=list("abcde"))
    found = found_for(frame, Y, pipeline, full=True, cv=parts)
    assert found.full.model.predict(frame).shape == Y.shape
    machines = found.full.machines
    assert found.full.vectors == sum(machine.n_vectors_ for machine in machines)
    np.testing.assert_allclose(machines[1].C / machines[0].C, Y[:, 1].std() / Y[:, 0].std())
    scores = []
    for o, machine in enumerate(machines):
        alone = make_pipeline(StandardScaler(), clone(machine))
        scores.append(np.mean([alone.fit(X[a], Y[a, o]).score(X[b], Y[b, o]) for a, b in parts]))
    assert found.full.score == pytest.approx(np.mean(scores), abs=2e-3)
    with_constant = found_for(X, np.column_stack([y, np.full(len(y), 7.0)]), slim_values(), full=True).full
    np.testing.assert_allclose(with_constant.model.predict(X)[:, 1], 7.0)
    assert with_constant.bytes > 0


def test_units_of_values_do_not_matter():
    X, y = friedman(150)
    one, other = (found_for(X, values, slim_values(C="search"), full=True).full for values in (y, 1000 * y + 5))
    assert other.score == pytest.approx(one.score, abs=1e-3)
    np.testing.assert_allclose(other.model.C, 1000 * one.model.C)
    np.testing.assert_allclose(other.model.epsilon, 1000 * one.model.epsilon)


def test_full_machines_of_values_with_weights_copies_and_other_scores():
    X, y = friedman(120)
    weight = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)[::-1]
    one = found_for(X, y, slim_values(), full=True, sample_weight=weight).full
    two = found_for(X[rows], y[rows], slim_values(), full=True).full
    assert one.score == pytest.approx(two.score, abs=1e-3)
    np.testing.assert_allclose(one.model.predict(X), two.model.predict(X), atol=0.02 * y.std())
    judged = found_for(X, y, slim_values(), full=True, scoring="neg_mean_absolute_error").full
    assert -y.std() < judged.score < 0
    assert judged.standard_error > 0


def test_full_machines_of_values_of_sparse_rows_and_of_a_matrix():
    X, y = friedman(120)
    model = slim_values().set_params(basis="forward")
    parts = list(KFold(3).split(X))
    plain = found_for(X, y, model, full=True, cv=parts).full
    K = kernels.Gaussian(0.5)(X, X)
    for rows, kernel in ((sp.csr_array(X), "rbf"), (K, "precomputed")):
        other = found_for(rows, y, clone(model).set_params(kernel=kernel), full=True, cv=parts).full
        assert other.score == pytest.approx(plain.score, abs=0.02)
        np.testing.assert_allclose(other.model.predict(rows), plain.model.predict(X), atol=0.1 * y.std())


def test_many_rows_are_drawn_for_the_full_machine_of_values(monkeypatch):
    monkeypatch.setattr(full_machine, "MAX_FULL_ROWS", 60)
    X, y = friedman(300)
    machine = found_for(X, y, slim_values(), full=True).full.model
    assert machine.n_vectors_ <= 60
    np.testing.assert_allclose(X[machine.support_], machine.vectors_)
    assert machine.score(X, y) > 0.5


# --- what users see ------------------------------------------------------------------------------------------


def test_the_table(monkeypatch):
    X, y = blobs(100)
    found = found_for(X, y, full=True)
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table["size"]) == [2, 4, 8]
    assert found.table["chosen"].sum() == 1
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert found.table == found.rows
    assert found.rows[0]["size"] == 2
    assert "chosen" in repr(found)
    assert "error, %" in repr(found)
    assert found._repr_html_().count("<tr") == 5
    assert "full machine" in found._repr_html_()


def test_the_plot(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    found = found_for(*blobs(100), full=True, scoring="roc_auc")
    _, axis = plt.subplots()
    assert found.plot(axis) is axis
    assert axis.get_ylabel() == "roc_auc"
    assert found.plot() is not axis
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        found.plot()


def test_progress(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    model = found_for(*blobs(100), verbose=True).best()
    assert "frontier: " in stream.getvalue()
    assert "vectors do" in stream.getvalue()
    assert not model.verbose


def test_an_interrupt_gets_through():
    def interrupted(model, X, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found_for(*blobs(60), scoring=interrupted)


def test_a_pipeline():
    X, y = blobs(150)
    X = X * [1, 10, 1, 1]
    pipeline = make_pipeline(StandardScaler(), slim())
    found = found_for(X, y, pipeline, full=True)
    best = found.best()
    assert type(best) is type(pipeline)
    assert best[-1].n_vectors == found.best_size()
    assert best.score(X, y) > 0.7
    assert found.full.model.score(X, y) > 0.7
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(best[0].transform(X), scaled)
    np.testing.assert_allclose(found.models[8][-1].vectors_, found_for(scaled, y).models[8].vectors_, atol=1e-6)
    assert not hasattr(pipeline[-1], "vectors_")  # the user's own is not touched


@pytest.mark.filterwarnings("error")
def test_names_of_columns():
    X, y = blobs(120)
    names = pd.DataFrame(X, columns=list("abcd"))
    labels = pd.Series(np.where(y > 0, "yes", "no"))
    found = found_for(names, labels, full=True, scoring="f1_macro")
    assert list(found.best().feature_names_in_) == list("abcd")
    assert set(found.best().predict(names)) == {"yes", "no"}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sizes": ()}, "sizes is empty"),
        ({"sizes": (2, 0)}, "sizes=0 must be an integer of at least 1"),
        ({"sizes": "many"}, "sizes='many'"),
        ({"estimator": AnyNormSVC()}, "must be a SlimSVC or SlimSVR, or a Pipeline"),
        ({"estimator": SlimSVC(C=-1.0)}, "C=-1.0"),
        ({"cv": 1}, "cv=1 must be an integer of at least 2"),
        ({"cv": 2.5}, "cv=2.5"),
        ({"scoring": "no such score"}, "no such score"),
        ({"scoring": lambda model, X, y: 0.0, "sample_weight": np.arange(60)}, "must take sample_weight"),
        ({"cv": [(np.arange(30), np.empty(0, int))]}, "holds out no row"),
    ],
)
def test_what_makes_no_sense(params, message):
    with pytest.raises(ValueError, match=message):
        found_for(*blobs(60), **params)


def test_a_frontier_can_be_kept():
    found = found_for(*blobs(80), full=True)
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)


# --- SlimSVC(n_vectors="auto") -------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [blobs(150), three_classes(90)], ids=["two classes", "three"])
def test_auto_is_the_best_of_the_frontier(data):
    X, y = data
    model = slim("auto").fit(X, y)
    found = frontier(X, y, estimator=slim(), full=False)
    assert model.n_vectors_ == found.best().n_vectors_
    np.testing.assert_allclose(model.vectors_, found.best().vectors_)
    assert model.frontier_.sizes == tuple(size for size in found.sizes if size >= 4)
    np.testing.assert_allclose(model.frontier_.scores, found.curve.scores[-len(model.frontier_.sizes) :])
    assert (model.duality_gap_ <= model.tol).all()


def test_auto_takes_few_where_few_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    line = slim("auto", C=30.0, gamma=1.0).fit(X, X[:, 0] > 0)
    checks = slim("auto", C=30.0, gamma=1.0).fit(X, np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]) > 0)
    assert line.n_vectors_ < checks.n_vectors_


def test_auto_with_scikit_learn():
    X, y = blobs(150)
    model = slim("auto", "forward")
    assert clone(model).n_vectors == "auto"
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.frontier_.sizes == model.frontier_.sizes
    grid = GridSearchCV(model, {"n_vectors": ["auto", 4]}, cv=2).fit(X, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=2).min() > 0.5


def test_auto_with_vectors_to_start_from():
    X, y = blobs(150)
    model = slim("auto", learned(init=X[:20]))
    assert 4 <= model.fit(X, y).n_vectors_ <= 20
    with pytest.raises(ValueError, match="init has 140 vectors, n_vectors='auto', which is 128 at most"):
        slim("auto", learned(init=X[:140])).fit(X, y)


def test_a_number_or_a_word():
    X, y = blobs(30)
    for wrong in ("many", 0, 2.5, None):
        with pytest.raises(ValueError, match=r"n_vectors=.* or 'auto'"):
            SlimSVC(wrong).fit(X, y)
