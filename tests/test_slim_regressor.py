"""SlimSVR: what it promises to users, and what every fit of it proves."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import cvxpy as cp
import dask.array as dask_array
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import slimsvm
from slimsvm import SlimSVR, losses
from slimsvm.data.targets import rounded_targets
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import RegressionTargets
from slimsvm.training.intervals import held_out_residuals, residual_quantiles
from slimsvm.training.spec import Hyperparameters

QUICK = {"C": 10.0, "gamma": 0.5, "scales": "fixed"}
NAMES = ["squared_error", "epsilon_insensitive", "squared_epsilon_insensitive", "huber"]
every_loss = pytest.mark.parametrize("loss", NAMES)


@pytest.fixture(scope="module")
def data():
    X, y = make_friedman1(240, n_features=5, noise=0.5, random_state=0)
    return X, y


def optimum(model, X, y, C, loss, weight=None):
    """The least objective over the model's vectors, for the user's own targets, by a conic solver."""
    K, gram = model.kernel_(X, model.vectors_), model.kernel_(model.vectors_, model.vectors_)
    L = np.linalg.cholesky(model.regularizer_.matrix(gram))
    beta, b, d = cp.Variable(len(gram)), cp.Variable(), cp.Variable(len(y), nonneg=True)
    e = cp.Variable(len(y), nonneg=True)
    part = [d + e >= cp.abs(y - K @ beta - b) - loss.epsilon]
    if loss.width == 0:
        each = d + e
    elif np.isinf(loss.most):
        each, part = cp.square(d) / 2, [*part, e == 0]
    else:
        each = cp.square(d) / (2 * loss.width) + e
    cost = C * (np.ones(len(y)) if weight is None else weight)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(L.T @ beta) / 2 + cp.sum(cp.multiply(cost, each))), part)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@every_loss
def test_the_objective_is_the_users_problem(data, loss):
    """``1/2 |f|^2 + C sum loss`` in units of y: C and epsilon mean what they say."""
    X, y = data
    weight = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    model = SlimSVR(8, "kmeans", loss=loss, epsilon=0.7, **QUICK).fit(X, y, weight)
    best = optimum(model, X, y, 10.0, losses.resolve(loss, 0.7), weight)
    assert model.C_ == 10.0
    assert model.duality_gap_[0] <= model.tol
    assert model.objective_[0] == pytest.approx(best, rel=1e-5)


def test_of_all_rows_it_is_the_svr_of_scikit_learn(data):
    """With every row a vector."""
    X, y = data[0][:60], data[1][:60]
    full = SVR(C=10.0, gamma=0.5, epsilon=0.3, tol=1e-8).fit(X, y)
    model = SlimSVR(60, X, loss="epsilon_insensitive", epsilon=0.3, tol=1e-9, **QUICK).fit(X, y)
    np.testing.assert_allclose(model.predict(X), full.predict(X), atol=1e-3)


@every_loss
@pytest.mark.parametrize("settings", [QUICK, {}], ids=["given", "searched"])
def test_units_of_the_targets_do_not_matter(data, loss, settings):
    X, y = data[0][:100], data[1][:100]
    settings = dict(settings)
    # Costs of a loss that grows like |r| are relative to |f|^2 in other units.
    cost = 1000.0 if loss in ("epsilon_insensitive", "huber") else 1.0
    model = SlimSVR(6, loss=loss, epsilon=0.5, **settings).fit(X, y)
    if "C" in settings:
        settings["C"] *= cost
    other = SlimSVR(6, loss=loss, epsilon=500.0, **settings).fit(X, 1000 * y + 5)
    np.testing.assert_allclose(other.predict(X), 1000 * model.predict(X) + 5, rtol=1e-6)
    np.testing.assert_allclose(other.C_, cost * model.C_)


@every_loss
@pytest.mark.parametrize("place", ["memory", "blocks"])
@pytest.mark.parametrize(("unit", "shift"), [(1.0, 1e6), (1.0, -3e7), (1e-3, 1.0), (1e90, 1e96)])
def test_shifted_and_scaled_targets_give_the_same_model(data, loss, place, unit, shift):
    """As far as they have digits for it: vectors are those of other targets, to the last bit, however long they learn.

    A shift of a million leaves ten digits, and learning makes differences grow by as many.
    """
    X, y = data[0][:120], data[1][:120]

    def fitted(unit, shift):
        cost = 10.0 if loss in ("squared_error", "squared_epsilon_insensitive") else 10.0 * unit
        model = SlimSVR(8, loss=loss, epsilon=0.5 * unit, C=cost, gamma=0.5, scales="fixed")
        given = X, unit * y + shift
        if place == "memory":
            return model.fit(*given)
        return model.fit(slimsvm.rows.from_blocks([[part[:70] for part in given], [part[70:] for part in given]]))

    model, other = fitted(1.0, 0.0), fitted(unit, shift)
    np.testing.assert_array_equal(other.vectors_, model.vectors_)
    rounding = np.finfo(float).eps * abs(shift) / unit
    np.testing.assert_allclose((other.predict(X) - shift) / unit, model.predict(X), atol=1e-8 + 100 * rounding)


def test_a_search_for_shifted_targets_finds_the_same(data):
    X, y = data[0][:120], data[1][:120]
    model, other = (
        SlimSVR(6, loss="huber", epsilon=0.5, gamma=0.5, scales="fixed").fit(X, y + shift) for shift in (0.0, 1e6)
    )
    np.testing.assert_array_equal(other.vectors_, model.vectors_)
    np.testing.assert_allclose(other.predict(X) - 1e6, model.predict(X), atol=1e-7)


def test_outliers_do_not_coarsen_what_vectors_are_learned_from():
    targets = np.random.default_rng(0).normal(size=(300, 1))
    for size in (0.0, 1e4, 1e8):
        targets[:3] = size
        spread = (targets - targets.mean()) / targets.std()
        middle = np.ptp(np.quantile(spread, (0.25, 0.75)))
        assert np.abs(rounded_targets(spread) - spread).max() < max(2.0**-16 * middle, 2.0**-32)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_targets_whose_squares_are_no_numbers_are_refused(data, size):
    X, y = data
    with pytest.raises(ValueError, match=r"standard deviation of 5.*squared errors.*Fit y / 5e"):
        SlimSVR(3, **QUICK).fit(X, size * y)
    np.testing.assert_allclose(SlimSVR(3, **QUICK).fit(X, np.full(len(X), size)).predict(X), size)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_neither_order_nor_copies_change_the_model(data):
    X, y = data[0][:120], data[1][:120]
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    model = SlimSVR(6).fit(X, y, weight)
    rows = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight))
    copied = SlimSVR(6).fit(X[rows], y[rows])
    np.testing.assert_allclose(copied.vectors_, model.vectors_, rtol=1e-9)
    np.testing.assert_allclose(copied.predict(X), model.predict(X), rtol=1e-9)


def test_equal_rows_keep_their_own_targets():
    """Of two targets at one place, the mean is the best."""
    X = np.repeat(np.linspace(0, 1, 20), 2)[:, None]
    y = np.tile([0.0, 2.0], 20) + X[:, 0]
    model = SlimSVR(4, C=1e4, gamma=1.0, scales="fixed").fit(X, y)
    np.testing.assert_allclose(model.predict(X), 1 + X[:, 0], atol=0.02)


def test_several_targets_share_the_vectors(data):
    X, y = data
    Y = np.c_[y, 100 * np.sin(3 * X[:, 0]), np.full(len(y), 7.0)]
    model = SlimSVR(12, gamma=0.5, scales="fixed").fit(X, Y)
    assert model.vectors_.shape == (12, 5)
    assert model.vector_coef_.shape == (3, 12)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y[:, :]) > 0.9
    np.testing.assert_allclose(model.predict(X)[:, 2], 7.0, atol=1e-9)
    column = SlimSVR(5, **QUICK).fit(X, y[:, None])
    assert column.predict(X).shape == (len(y), 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], SlimSVR(5, **QUICK).fit(X, y).predict(X))


def test_threads_do_not_change_the_model(data):
    X, y = data
    one, two = (SlimSVR(6, n_jobs=jobs, **QUICK).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.vector_coef_, two.vector_coef_)


@every_loss
@pytest.mark.parametrize("value", [0.0, 3.0, 1e9, -1e-9])
def test_targets_that_are_all_the_same(value, loss, recwarn):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = SlimSVR(3, loss=loss).fit(X, np.full(30, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12)
    assert model.duality_gap_[0] <= model.tol
    assert not [w for w in recwarn if "gap" in str(w.message)]


def test_sparse_rows_are_dense_rows(data):
    X, y = np.where(data[0] < 0.3, 0, data[0]), data[1]
    dense, sparse = (SlimSVR(6, "forward", **QUICK).fit(rows, y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), rtol=1e-6)


def test_huber_heeds_outliers_less(data):
    X, y = data
    wild = y.copy()
    wild[::12] += 200
    robust, square = (SlimSVR(8, loss=loss, epsilon=1.0).fit(X, wild) for loss in ("huber", "squared_error"))
    assert robust.score(X, y) > max(0.7, square.score(X, y))


# --- how many vectors --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_as_few_vectors_as_do():
    """A line needs few, a wave of five periods more; both are as good as any number would be."""
    x = np.linspace(0, 1, 300)[:, None]
    noise = 0.1 * np.random.default_rng(0).normal(size=300)
    found = [SlimSVR("auto", gamma=g, scales="fixed").fit(x, f(x[:, 0]) + noise) for g, f in ((1, line), (50, wave))]
    for model, f in zip(found, (line, wave), strict=True):
        assert model.n_vectors_ in model.frontier_.sizes
        assert model.frontier_.scores.max() <= 1
        assert np.abs(model.predict(x) - f(x[:, 0])).mean() < 0.05
    assert found[0].n_vectors_ < found[1].n_vectors_


def line(x):
    return 2 * x


def wave(x):
    return np.sin(10 * np.pi * x)


@pytest.mark.parametrize("columns", [0, 2])
def test_a_frontier_of_regressors(data, columns):
    X, y = data
    Y = y if not columns else np.c_[y, 100 * y]
    prototype = make_pipeline(StandardScaler(), SlimSVR(C=10.0, gamma=0.1, scales="fixed"))
    found = slimsvm.frontier(X, Y, estimator=prototype, sizes=(2, 8))
    assert found.scoring == "r2"
    assert found.full.score > found.curve.scores[0]
    assert 0 < found.curve.scores[0] < found.curve.scores[1] < 1
    assert found.best().score(X, Y) > 0.8
    other = slimsvm.frontier(X, Y, estimator=prototype, sizes=(2, 8), scoring="neg_mean_absolute_error", cv=3)
    assert (other.curve.scores < 0).all()


# --- intervals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("n", [150, 1500])
def test_intervals_cover_new_rows(n, coverage):
    """As often as they should, up to what the draws of training and test rows leave open: four standard errors."""
    X, y = make_friedman1(n + 4000, n_features=5, noise=1.0, random_state=3)
    model = SlimSVR(8, intervals=True, **QUICK).fit(X[:n], y[:n])
    low, high = model.predict_interval(X[n:], coverage).T
    right = ((low <= y[n:]) & (y[n:] <= high)).mean()
    error = np.sqrt(coverage * (1 - coverage) * (1 / 4000 + 1 / len(model.residuals_)))
    # Models of parts know fewer rows: their residuals are larger, never smaller, than those of the model.
    assert coverage - 4 * error <= right <= coverage + 4 * error + (0.1 if n < 1000 else 0.03)
    np.testing.assert_allclose((low + high) / 2, model.predict(X[n:]))


def test_intervals_of_several_targets_have_their_units(data):
    X, y = data
    Y = np.c_[y, 100 * y]
    model = SlimSVR(6, intervals=True, **QUICK).fit(X, Y)
    ends = model.predict_interval(X, 0.8)
    assert ends.shape == (len(y), 2, 2)
    width = ends[:, :, 1] - ends[:, :, 0]
    np.testing.assert_allclose(width[:, 1], 100 * width[:, 0], rtol=1e-6)


def test_quantiles_are_those_of_the_finite_sample():
    r, ones = np.arange(1.0, 10)[:, None], np.ones(9)
    assert residual_quantiles(r, ones, 0.9) == [9.0]  # ceil(0.9 * 10) of nine
    assert residual_quantiles(r, ones, 0.5) == [5.0]
    assert residual_quantiles(r, ones, 0.95) == [np.inf]  # nine rows cannot tell
    copies, weighted = np.repeat(r, 3, axis=0), residual_quantiles(r, 3 * ones, 0.7)
    assert residual_quantiles(copies, np.ones(27), 0.7) == weighted


@dataclass(frozen=True)
class MissesBy:
    """A model of targets that are the rows' first input, each missed by the same amount."""

    amount: float

    def decision(self, X, threads=1):
        return X[:, :1] + self.amount


def test_residuals_are_larger_by_as_much_as_the_final_model_is_worse():
    """A final model that misses the rows it knows by twice as much doubles the held-out residuals; one that is better
    than the models of the folds leaves them as they are."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    dataset = checked_data.checked_dataset(SlimSVR(), X, X[:, 0], None, RegressionTargets(alike=False))
    dataset = replace(dataset, targets=dataset.X[:, :1].copy())
    spec, setting = SlimSVR(4, gamma=0.05, scales="fixed")._spec().training_spec(dataset), Hyperparameters(10.0, 0.05)

    def residuals(amount):
        return held_out_residuals(dataset, spec, setting, np.random.default_rng(0), MissesBy(amount))[0]

    plain, worse, twice = residuals(0.0), residuals(3.0), residuals(6.0)
    np.testing.assert_allclose(twice, 2 * worse, rtol=1e-12)
    assert (worse > 2 * plain).all()
    np.testing.assert_array_equal(residuals(1e-12), plain)


def test_without_intervals_the_error_says_so(data):
    X, y = data
    model = SlimSVR(4, **QUICK).fit(X, y)
    assert not hasattr(model, "predict_interval")
    with pytest.raises(AttributeError, match="intervals=True"):
        _ = model.predict_interval
    with pytest.raises(ValueError, match="coverage=2"):
        SlimSVR(4, intervals=True, **QUICK).fit(X, y).predict_interval(X, 2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "mse"}, "loss='mse' is not known"),
        ({"loss": losses.Hinge()}, r"loss=Hinge\(\) is not known"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"C": 0.0}, "C=0.0"),
        ({"n_vectors": 0}, "n_vectors=0"),
    ],
)
def test_parameters_that_make_no_sense(data, settings, words):
    with pytest.raises(ValueError, match=words):
        SlimSVR(**settings).fit(*data)


def test_a_fit_that_fails_leaves_the_model(data):
    X, y = data
    model = SlimSVR(5, **QUICK).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        model.fit(X, np.where(y > 10, np.nan, y))
    np.testing.assert_array_equal(model.predict(X), before)
    assert clone(model).get_params() == model.get_params()


# --- streams -------------------------------------------------------------------------------------------------------


def fed(model, X, y, size=60, **kwargs):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], **kwargs)
    return model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stream_that_fits_into_memory_is_learned_as_a_whole(data):
    X, y = data
    model = fed(SlimSVR(8, **QUICK), X, y)
    whole = SlimSVR(8, **QUICK).fit(X, y)
    assert model.n_samples_seen_ == len(y)
    assert model.stream_.memory.size == len(y)
    assert model.score(X, y) > whole.score(X, y) - 0.02
    assert model.objective_[0] == pytest.approx(optimum(model, X, y, 10.0, losses.SquaredError()), rel=1e-5)


@pytest.mark.parametrize("loss", ["squared_error", "epsilon_insensitive"])
def test_the_same_rows_in_blocks_of_any_size_are_remembered(data, loss):
    X, y = data
    settings = {"memory": 80, "loss": loss, "C": "search", "gamma": 0.5, "scales": "fixed"}
    one, two = (fed(SlimSVR(5, **settings), X, y, size) for size in (40, 60))
    np.testing.assert_array_equal(one.stream_.memory.X, two.stream_.memory.X)
    np.testing.assert_array_equal(one.stream_.memory.targets, two.stream_.memory.targets)
    rows = one.stream_.memory.numbers
    np.testing.assert_array_equal(one.stream_.memory.targets[:, 0], y[rows])


def test_the_last_rows_are_followed(data):
    """Targets change their sign: a memory of recent rows forgets."""
    X, y = data
    model = fed(SlimSVR(8, memory=120, recent=True, **QUICK), np.vstack([X, X]), np.r_[y, -y])
    assert model.score(X, -y) > 0.8


def test_a_stream_of_other_targets_is_refused(data):
    X, y = data
    model = SlimSVR(4, **QUICK).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has shape \(n_samples, 2\), and had shape \(n_samples,\)"):
        model.partial_fit(X, np.c_[y, y])


# --- out of Python, and back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [0, 2])
def test_files_and_pickles_keep_the_model(data, columns, tmp_path):
    X, y = data
    Y = y if not columns else np.c_[y, -y][:, :columns]
    for model in (SlimSVR(5, intervals=True, **QUICK).fit(X, Y), fed(SlimSVR(5, **QUICK), X, Y)):
        slimsvm.save(model, tmp_path / "model.slim")
        for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            assert again.get_params() == model.get_params()
            if model.intervals:
                np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
            else:
                np.testing.assert_array_equal(again.partial_fit(X, Y).predict(X), clone_of(model, X, Y).predict(X))


def clone_of(model, X, Y):
    return pickle.loads(pickle.dumps(model)).partial_fit(X, Y)


def test_a_loss_object_is_kept_in_a_file(data, tmp_path):
    model = SlimSVR(4, loss=losses.Huber(0.5, 0.1), **QUICK).fit(*data)
    slimsvm.save(model, tmp_path / "model.slim")
    assert slimsvm.load(tmp_path / "model.slim").loss == losses.Huber(0.5, 0.1)


def test_scikit_learn_and_a_predictor_say_the_same(data):
    X, y = data
    model = SlimSVR(5, **QUICK).fit(X, y)
    np.testing.assert_allclose(slimsvm.to_sklearn(model).predict(X), model.predict(X), rtol=1e-9)
    predictor = slimsvm.Predictor(model)
    np.testing.assert_allclose([predictor.predict(x) for x in X[:5]], model.predict(X[:5]), rtol=1e-9)


def test_a_smaller_one_by_compression(data):
    X, y = data
    model = SlimSVR(30, **QUICK).fit(X, y)
    small = slimsvm.compress(model, 10, X, y)
    assert small.n_vectors_ == 10
    assert small.score(X, y) > model.score(X, y) - 0.03


def test_rows_that_are_elsewhere(data, tmp_path):
    """They are predicted where they are."""
    X, y = data
    model = SlimSVR(5, **QUICK).fit(X, y)
    rows = slimsvm.rows.from_blocks([(X[:100], y[:100]), (X[100:], y[100:])])
    np.testing.assert_allclose(model.predict(rows), model.predict(X))
    assert model.score(rows) == pytest.approx(model.score(X, y))
    far = dask_array.from_array(X, chunks=(80, 5))
    np.testing.assert_allclose(model.predict(far).compute(), model.predict(X))
    many = SlimSVR(5, **QUICK).fit(X, np.c_[y, -y])
    np.testing.assert_allclose(many.predict(far).compute(), many.predict(X))
