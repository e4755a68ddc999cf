"""The search for settings: which candidates are tried, on which rows, and which of them wins."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from problems import blobs
from slimsvm import SlimSVC
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import ClassTargets
from slimsvm.problem import bases
from slimsvm.training import search
from slimsvm.training.spec import Hyperparameters
from slimsvm.training.trials import TrialRunner, TrialScore
from small_models import FEW_ITERATIONS

pytestmark = pytest.mark.filterwarnings(FEW_ITERATIONS)


def run(monkeypatch, error, n, **given):
    """The search among settings whose errors are given by a function of the setting and the fold's number."""
    X, y = blobs(n, seed=3)
    estimator = SlimSVC(3, **given)
    dataset = checked_data.checked_dataset(estimator, X, y, None, ClassTargets())
    spec = estimator._spec().training_spec(dataset)

    def trial(self, setting, before, fold):
        mine, size = error(setting, fold), self.folds[fold].test.size
        wrong = np.arange(size) < mine * size
        return TrialScore(float(wrong.mean()), float(mine), wrong / size)

    monkeypatch.setattr(TrialRunner, "_run", trial)
    space = search.search_space(dataset, estimator.C, estimator.gamma, estimator.scales, spec)
    return search.search(dataset, spec, space), space


def valley(best, width=0.02):
    """Errors that grow with the distance from the best setting, in factors of ten."""

    def error(setting, fold):
        far = abs(np.log10(setting.C / best.C)) + 2 * abs(np.log10(setting.gamma / best.gamma))
        return 0.1 + width * far + 0.05 * (setting.scaled != best.scaled)

    return error


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("cost", [0.1, 3.0, 30.0, 300.0])
def test_the_best_setting_is_found(monkeypatch, cost, scaled):
    unit = run(monkeypatch, valley(Hyperparameters(1.0, 1.0)), 1200)[1].gamma_unit
    best = Hyperparameters(cost, 0.3 * unit, scaled)
    found, _ = run(monkeypatch, valley(best), 1200)
    assert found.hyperparameters.scaled == scaled
    assert found.hyperparameters.gamma == pytest.approx(best.gamma)
    assert cost == found.hyperparameters.C


def test_a_wide_kernel_is_seen_at_a_large_cost(monkeypatch):
    """At a small cost the widest kernel is the worst; with a large one it is the best of all."""

    def error(setting, fold):
        linear = setting.C * setting.gamma / unit
        return 0.1 + 0.1 * abs(np.log10(linear)) + 0.05 * np.log10(setting.gamma / unit) + 0.1 * setting.scaled

    for n in (400, 1200):
        unit = run(monkeypatch, valley(Hyperparameters(1.0, 1.0)), n)[1].gamma_unit
        found, _ = run(monkeypatch, error, n)
        assert found.hyperparameters.gamma < 0.05 * unit
        assert found.hyperparameters.C >= 30


def test_ranges_go_on_where_the_best_is_at_their_end(monkeypatch):
    found, space = run(monkeypatch, valley(Hyperparameters(3000.0, 1e-9)), 1200)
    assert max(found.table["C"]) > 1000
    assert min(found.table["gamma"]) < 0.01 * space.gamma_unit
    assert found.hyperparameters.C >= 900
    found, space = run(monkeypatch, valley(Hyperparameters(1e9, 1e9)), 1200)
    assert max(found.table["C"]) <= search.MAX_COST[space.is_regression]
    assert max(found.table["gamma"]) <= search.LARGEST_GAMMA * space.gamma_unit * 1.001


def test_a_single_lucky_run_does_not_win_where_rows_are_few(monkeypatch):
    """One cost is better than its neighbours by luck; a range of others is better without it."""

    def error(setting, fold):
        if setting.scaled:
            return 0.3
        return 0.14 if setting.C == 0.1 else 0.15 if setting.C in (10.0, 30.0, 100.0) else 0.25

    assert run(monkeypatch, error, 400, gamma=0.2)[0].hyperparameters.C in (10.0, 30.0, 100.0)
    assert run(monkeypatch, error, 1200, gamma=0.2)[0].hyperparameters.C == 0.1


def test_the_second_look_is_on_other_rows(monkeypatch):
    """What is best on the first fold only is found out."""

    def error(setting, fold):
        first = 0.10 if setting.scaled else 0.12
        later = 0.20 if setting.scaled else 0.12
        return (first if fold == 0 else later) + 0.02 * abs(np.log10(setting.C / 3))

    found, _ = run(monkeypatch, error, 1200, gamma=0.2)
    assert not found.hyperparameters.scaled
    assert {1, 3} <= set(found.table["folds"])
    tests = [set(fold.test.indices) for fold in found.folds]
    assert not tests[0] & tests[1]
    assert not tests[1] & tests[2]


def test_where_rows_are_few_learned_scales_have_to_be_worth_it(monkeypatch):
    """A difference below the noise does not buy learned scales; a large one does, and so does a small one that many
    rows confirm."""

    def error(gain):
        return lambda setting, fold: 0.25 - gain * setting.scaled + 0.02 * abs(np.log10(setting.C))

    assert not run(monkeypatch, error(0.01), 400)[0].hyperparameters.scaled
    assert run(monkeypatch, error(0.1), 400)[0].hyperparameters.scaled
    assert run(monkeypatch, error(0.01), 1200)[0].hyperparameters.scaled


def test_the_random_state_does_not_change_the_settings():
    X, y = blobs(200, seed=4)
    one, other = (SlimSVC(4, bases.Learned(iterations=5), random_state=seed).fit(X, y) for seed in (0, 1))
    np.testing.assert_equal(one.search_results_, other.search_results_)
    assert not np.array_equal(one.vectors_, other.vectors_)


def test_what_is_given_is_not_searched(monkeypatch):
    found, _ = run(monkeypatch, valley(Hyperparameters(1.0, 1.0)), 1200, C=7.0, scales="learned")
    assert set(found.table["C"]) == {7.0}
    assert set(found.table["scales"]) == {"learned"}
    found, _ = run(monkeypatch, valley(Hyperparameters(1.0, 1.0)), 1200, gamma=0.2, scales="fixed")
    assert set(found.table["gamma"]) == {0.2}


@pytest.mark.parametrize("classes", [2, 3])
def test_neither_threads_nor_blas_change_the_model(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 5))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=len(X)), [0.5, 2.0][: classes - 1])
    models = []
    for n_jobs, limit in [(None, 1), (None, 2), (2, 2)]:
        with threadpool_limits(limit):
            models.append(SlimSVC(6, bases.Learned(iterations=15), n_jobs=n_jobs).fit(X, y))
    for other in models[1:]:
        np.testing.assert_equal(other.search_results_, models[0].search_results_)
        np.testing.assert_array_equal(other.vectors_, models[0].vectors_)
        np.testing.assert_array_equal(other.vector_coef_, models[0].vector_coef_)


@pytest.mark.parametrize("n", [200, 1500])
def test_trials_that_run_ahead_change_nothing(n):
    """On several threads the search takes the same way: the same trials, the same results, the same model."""
    X, y = blobs(n, d=4, seed=1)
    alone, together = (SlimSVC(4, n_jobs=jobs).fit(X, y) for jobs in (1, 3))
    assert alone.search_results_ == together.search_results_
    np.testing.assert_array_equal(alone.vectors_, together.vectors_)
    np.testing.assert_array_equal(alone.vector_coef_, together.vector_coef_)


def test_costs_of_very_many_rows_are_those_of_a_million():
    few = search.SearchSpace(None, None, [False], 0.5, total_weight=2e5)
    many = search.SearchSpace(None, None, [False], 0.5, total_weight=5e7)
    assert few.costs == list(search.COSTS)
    np.testing.assert_allclose(many.costs, np.array(search.COSTS) / 50)
    assert pytest.approx(few.initial(0.5, False).C / 50) == many.initial(0.5, False).C
