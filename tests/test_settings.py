"""One setting, one effect; and nothing is silently left undone."""

from __future__ import annotations

import pickle
import time
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from problems import blobs, three_classes
from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    EmpiricalSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    estimators,
    kernels,
    regularizers,
    slacks,
)

SMALL = SlimSVC(5, C=2.0, gamma=0.4, scales="fixed")
MODELS = {
    "slim": SMALL,
    "slim scales": SlimSVC(5, C=2.0, gamma=0.4, scales="learned"),
    "slim searched": SlimSVC(5, bases.Learned(iterations=30)),
    "slim hinge": SlimSVC(5, C=2.0, gamma=0.4, scales="fixed", slack="l1"),
    "slim random": SlimSVC(5, "random", C=2.0, gamma=0.4, scales="fixed"),
    "slim forward": SlimSVC(5, bases.Forward(candidates=5), C=2.0, gamma=0.4, scales="fixed"),
    "slim kmeans": SlimSVC(5, "kmeans", C=2.0, gamma=0.4, scales="fixed"),
    "any norm": AnyNormSVC(tol=1e-9),
    "budget": BudgetSVC(20, tol=1e-9),
    "budget learned": BudgetSVC(10, hard="learn"),
    "least squares": LeastSquaresSVC(),
    "pivoted": EmpiricalSVC(1e-2, "pivoted"),
    "reduced": ReducedSVC(8),
    "lp": LpSVC(),
    "rvm": RelevanceVectorClassifier(),
}
every_model = pytest.mark.parametrize("name", MODELS)


def values(model, X, y, at, **fit):
    return model.fit(X, y, **fit).decision_function(at)


@every_model
def test_a_weight_is_a_number_of_copies_whatever_their_order(name):
    X, y = blobs(120, d=3, seed=4)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y))
    copies = rng.permutation(np.repeat(np.arange(len(y)), weight))
    model = clone(MODELS[name])
    weighted = values(model, X, y, X, sample_weight=weight)
    np.testing.assert_allclose(values(model, X[copies], y[copies], X), weighted, rtol=1e-9, atol=1e-9)


@every_model
def test_order_layout_and_cache_do_not_change_the_model(name):
    X, y = blobs(150, d=3, seed=5)
    model = clone(MODELS[name])
    expected = values(model, X, y, X)
    shuffled = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(values(model, np.asfortranarray(X), y, X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values(model, X[shuffled], y[shuffled], X), expected, rtol=1e-9, atol=1e-9)
    if "cache_size" in model.get_params() and name != "least squares":  # which is iterative with a small one
        np.testing.assert_allclose(values(model.set_params(cache_size=1), X, y, X), expected, rtol=1e-9, atol=1e-9)


def test_conflicting_copies_are_few_rows():
    X = np.random.default_rng(0).integers(0, 3, (20000, 4)).astype(float)
    y = np.random.default_rng(1).integers(0, 2, len(X))
    for C in (1e3, 1e6):
        begun = time.process_time()
        model = AnyNormSVC(C=C).fit(X, y)
        assert time.process_time() - begun < 10
        assert model.duality_gap_[0] <= model.tol
        assert model.n_vectors_ <= 2 * 3**4


# --- nothing is silent -----------------------------------------------------------------------------------------


def test_max_iter_is_obeyed_and_named():
    X, y = blobs(200, d=3, noise=1.5)
    small = SlimSVC(10, "kmeans", C=1e3, gamma=3.0, scales="fixed", max_iter=1)
    for model in (small, ReducedSVC(30, C=1e4, max_iter=1)):
        with pytest.warns(ConvergenceWarning, match="max_iter=1 ended"):
            model.fit(X, y)
        assert (model.n_iter_ <= 1).all()


def test_rounds_that_end_at_their_limit_are_told():
    X, y = blobs(100, d=3)
    norm = regularizers.ReweightedNorm(0.0, 0.1, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        SlimSVC(10, "random", C=1.0, gamma=0.3, regularizer=norm).fit(X, y)


def test_learning_that_ends_at_its_limit_is_told():
    X, y = make_moons(400, noise=0.2, random_state=0)
    short = SlimSVC(8, bases.Learned(iterations=4), C=10.0, gamma=0.05, scales="learned")
    with pytest.warns(ConvergenceWarning, match="limit of 4 iterations"):
        short.fit(X, y)
    assert short.learning_iter_ == 4
    assert short.learning_gain_left_ > 0.02
    long = SlimSVC(2, bases.Learned(iterations=2000), C=1.0, gamma=0.5, scales="fixed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        long.fit(X, y)
    assert long.learning_iter_ < 2000
    assert long.learning_gain_left_ == 0


def test_settings_that_leave_no_vector_or_contradict_each_other():
    X, y = blobs(60)
    with pytest.raises(ValueError, match=r"eta=2.* below 1"):
        EmpiricalSVC(eta=2.0).fit(X, y)
    with pytest.raises(ValueError, match="decision_function_shape='ovo'"):
        AnyNormSVC(multi_class="ovr", decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match="verbose='yes'"):
        SlimSVC(verbose="yes").fit(X, y)
    with pytest.warns(UserWarning, match="init has 3 vectors"):
        model = clone(SMALL).set_params(basis=bases.Learned(init=X[:3])).fit(X, y)
    assert model.n_vectors_ == 3
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="no vector raises the evidence"):
        RelevanceVectorClassifier(gamma=1e-9).fit(rng.normal(size=(40, 2)), np.arange(40) % 2)


def test_a_basis_that_does_not_say_what_it_does():
    class Bare:
        def choose(self, rows, count):
            return rows.choice(rows.at_random()[:count])

    X, y = blobs(40)
    with pytest.raises(ValueError, match="must say keeps_rows and learns"):
        SlimSVC(3, Bare(), C=1.0, gamma=0.3).fit(X, y)
    Bare.keeps_rows, Bare.learns = True, False
    assert SlimSVC(3, Bare(), C=1.0, gamma=0.3).fit(X, y).n_vectors_ == 3


def test_a_linear_machine_has_no_more_vectors_than_inputs():
    X, y = blobs(100, d=3)
    model = SlimSVC(20, kernel="linear", C=1.0, scales="fixed").fit(X, y)
    assert model.n_vectors_ == 3


# --- unscaled columns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", estimators.ALL)
def test_unscaled_columns_are_named(kind):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = X[y < 2], y[y < 2]
    model = kind(C=1.0, gamma="scale", scales="fixed") if kind is SlimSVC else kind()
    with pytest.warns(UserWarning, match=r"columns proline vary .*StandardScaler"):
        clone(model).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        make_pipeline(StandardScaler(), model).fit(X, y)


def test_one_large_column_among_two():
    X, y = blobs(60, d=2)
    with pytest.warns(UserWarning, match="columns 1 vary"):
        AnyNormSVC().fit(X * [1, 1e6], y)


# --- the search ------------------------------------------------------------------------------------------------


def test_the_search_ends_where_nothing_can_be_won():
    X, y = make_moons(300, noise=0.02, random_state=0)
    model = SlimSVC(20).fit(X, y)
    tried = model.search_results_
    assert min(tried["error"]) == 0
    assert len(tried["error"]) <= 7  # widths at one cost each


def test_no_scales_where_inputs_outnumber_rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 200), density=0.1, random_state=rng, format="csr")
    y = (X[:, :5].sum(axis=1) > X[:, 5:10].sum(axis=1)).astype(int)
    model = SlimSVC(4, bases.Learned(iterations=5)).fit(X, y)
    assert set(model.search_results_["scales"]) == {"fixed"}


def test_the_search_is_for_the_slack_that_was_asked_for(monkeypatch):
    from slimsvm.basis import learning

    seen = set()
    plain = learning.Objective.__init__

    def spy(self, kernel, X, labels, loss, *args, **kwargs):
        seen.add(type(loss).__name__)
        plain(self, kernel, X, labels, loss, *args, **kwargs)

    monkeypatch.setattr(learning.Objective, "__init__", spy)
    X, y = blobs(80)
    SlimSVC(3, bases.Learned(iterations=2), slack="l1").fit(X, y)
    assert seen == {"HuberHinge"}


# --- objects ---------------------------------------------------------------------------------------------------


def test_a_shared_part_is_not_changed():
    kernel = kernels.Scaled(kernels.Gaussian(0.5), 2.0)
    first, second = AnyNormSVC(kernel=kernel), AnyNormSVC(kernel=kernel)
    first.set_params(kernel__kernel__gamma=7.0, C=3.0)
    assert first.kernel == kernels.Scaled(kernels.Gaussian(7.0), 2.0)
    assert first.C == 3.0
    assert second.kernel is kernel
    assert kernel.gamma == 0.5
    with pytest.raises(ValueError, match="has no parameter 'colour'"):
        second.set_params(kernel__colour=1)
    assert AnyNormSVC(slacks.TopSum(5)).set_params(slack__budget=9).slack == slacks.TopSum(9)


def test_parts_with_arrays_are_compared_by_what_they_hold():
    Z = np.arange(6.0).reshape(3, 2)
    assert bases.Given(Z) == bases.Given(Z.copy())
    assert bases.Given(Z) != bases.Given(Z + 1)
    assert bases.Given(sp.csr_array(Z)) == bases.Given(sp.csr_array(Z))
    assert bases.Learned(init=Z) == bases.Learned(init=Z.copy())
    assert hash(bases.Given(Z)) == hash(bases.Given(Z.copy()))
    assert bases.Learned(iterations=3) != bases.Learned()


@pytest.mark.parametrize("scales", ["fixed", "learned"])
def test_a_fitted_kernel_has_gamma_and_scales(scales):
    X, y = blobs(60)
    kernel = SlimSVC(4, C=1.0, gamma=0.3, scales=scales).fit(X, y).kernel_
    assert kernel.gamma == 0.3
    assert np.shape(kernel.scales) == ((4,) if scales == "learned" else ())


def test_learned_vectors_have_the_precision_of_the_rows():
    X, y = blobs(60)
    for dtype in (np.float32, np.float64):
        model = clone(SMALL).fit(X.astype(dtype), y)
        assert model.vectors_.dtype == dtype
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_pickles_of_many_classes_are_small():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 6)
    X = rng.normal(size=(60, 4))[y] + 0.5 * rng.normal(size=(len(y), 4))
    model = AnyNormSVC().fit(X, y)
    assert model.vector_coef_.nbytes > 4_000_000
    data = pickle.dumps(model)
    assert len(data) < 600_000
    again = pickle.loads(data)
    np.testing.assert_array_equal(again.vector_coef_, model.vector_coef_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_parallel_config_is_followed():
    from slimsvm.utils.threads import thread_count

    assert thread_count(None) == 1
    with joblib.parallel_config(n_jobs=3):
        assert thread_count(None) == 3
        assert thread_count(1) == 1


def test_three_classes_share_what_one_fit_found():
    X, y = three_classes(90)
    model = clone(SMALL).fit(X, y)
    assert model.vector_coef_.shape == (3, 5)
    assert model.regularizer_.epsilon == pytest.approx(1e-6)
