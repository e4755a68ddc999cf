"""Rows on a device: the model that the same rows give in memory, and nothing but sums and few rows come back.

array-api-strict stands for any library that follows the standard, with a device of its own and one without float64;
torch, where it is installed, for those that need help to follow it.
"""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from pass_problems import KERNELS, LOSSES
from slimsvm import AnyNormSVC, EmpiricalSVC, LeastSquaresSVC, ReducedSVC, SlimSVC, kernels, losses
from slimsvm.bases import Learned
from slimsvm.basis.learning import FusedObjective
from slimsvm.data.duplicates import row_keys
from slimsvm.linalg.array_api import namespace, to_numpy
from slimsvm.problem.regularizers import KernelNorm
from slimsvm.rows import device
from slimsvm.rows.device import DeviceRows
from slimsvm.rows.labels import ClassLabels
from slimsvm.rows.memory import LazyFeatures
from slimsvm.solvers.primal.passes import CertificateSums, Conjugate, Equations, Line

strict = pytest.importorskip("array_api_strict")
pytest.importorskip("array_api_compat")

PLACES = ["strict", "torch"]
every_place = pytest.mark.parametrize("place", PLACES)
FIXED = {"C": 1.0, "gamma": 0.5, "scales": "fixed"}


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    """torch is on the CPU here: scikit-learn's switch says that it stays what it is."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def there(X, place="strict"):
    """An array on a device."""
    if place == "torch":
        return pytest.importorskip("torch").asarray(np.ascontiguousarray(X))
    return strict.asarray(X, device=strict.Device("device1" if place == "strict" else place))


def rows(n, classes=2, d=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    y = np.digitize(f + 0.1 * rng.standard_normal(n), np.quantile(f, np.arange(1, classes) / classes))
    return X.astype(dtype), y


@pytest.fixture
def nothing_comes_here(monkeypatch):
    """However few rows there are, samples stay on the device; blocks are small."""
    monkeypatch.setattr(device, "MAX_COPIED_ENTRIES", 0)
    monkeypatch.setattr(device, "MIN_BLOCK_BYTES", 1 << 14)


def placed(problem, place="strict"):
    X, codes, counts = problem
    return DeviceRows(there(X, place), codes, counts)


def problem(n=300, d=6, classes=3, weights=False, seed=0):
    X, codes = rows(n, classes, d, seed)
    counts = np.random.default_rng(seed).uniform(0.5, 2, n) if weights else np.broadcast_to(1.0, n)
    return X, codes.astype(np.int8), counts


def tables(codes, counts, cost=2.0):
    """Three pairs of classes, which leave rows out."""
    side = np.array([[1.0, 1, 0], [-1, 0, 1], [0, -1, -1]])
    return ClassLabels(codes, counts, side, cost * np.abs(side))


# --- passes ------------------------------------------------------------------------------------------------------


@every_place
@pytest.mark.parametrize("weights", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", KERNELS)
def test_passes_are_those_of_rows_in_memory(name, weights, place, nothing_comes_here):
    kernel, data = KERNELS[name], problem(weights=weights)
    rng, m = np.random.default_rng(1), 7
    labels, Z, T = tables(*data[1:]), rng.standard_normal((m, 6)), rng.standard_normal((m, m))
    here = LazyFeatures(kernel, data[0], labels, Z, T)
    home = placed(data, place).feature_source(kernel, labels, Z, T, np.float64, 1, 2.0**30)
    assert home.shape == here.shape
    assert len(list(home.blocks())) > 1
    np.testing.assert_allclose(home.features(np.array([3, 77])), here.features(np.array([3, 77])), rtol=1e-9, atol=1e-9)
    V, D = rng.standard_normal((2, 3, m + 1))
    V, D = 0.1 * V / max(1, np.abs(T).max()), 0.1 * D
    which = np.arange(3)
    known = [(np.array([2, 150]), np.array([0.5, -0.25]))] * 3
    for loss in LOSSES.values():
        asked = [
            (CertificateSums(loss), which, V, known, np.ones(3), 1e-12),
            (Conjugate(loss), which, V, (), np.ones(3), np.ones(3)),
        ]
        if loss.smooth:
            asked += [(Equations(loss), which, V), (Equations(loss), which[1:2], V[1:2])]
            asked += [(Line(loss), which, V, D, np.array([[0.5, 1.0]] * 3))]
        for work, *small in asked:
            for found, expected in zip(home.total(work, *small), here.total(work, *small), strict=True):
                size = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * size, err_msg=type(work).__name__)


@every_place
@pytest.mark.parametrize("scaled", [False, True], ids=["", "scales"])
@pytest.mark.parametrize("name", ["linear", "rbf", "cube", "constant", "sigmoid"])
def test_the_gradient_is_that_of_the_core(name, scaled, place, nothing_comes_here):
    X, codes, counts = problem()
    kernel, labels, m = KERNELS[name], tables(codes, counts), 4
    rng = np.random.default_rng(3)
    Z, scales = rng.standard_normal((m, 6)), rng.uniform(0.5, 1.5, 6) if scaled else None
    found = []
    for home in (X, DeviceRows(there(X, place), codes, counts)):
        regularizer = KernelNorm(1e-3)
        objective = FusedObjective(kernel, home, labels, losses.SquaredHinge(), regularizer, m, scaled)
        found.append(objective(objective.pack(Z, scales)))
    (a, slope), (b, other) = found
    assert b == pytest.approx(a, rel=1e-7)
    np.testing.assert_allclose(other, slope, atol=1e-5 * np.abs(slope).max())


@every_place
def test_keys_are_those_of_rows_in_memory(place):
    X = np.random.default_rng(0).standard_normal((50, 7))
    X[3, 2], X[4, 1] = 0.0, -0.0
    for dtype in (np.float64, np.float32):
        data = X.astype(dtype)
        found = DeviceRows(there(data, place), np.zeros(50, np.int8), np.ones(50)).row_keys()
        assert np.array_equal(found, row_keys(data))


@every_place
def test_a_kernel_function_gets_the_arrays_of_the_device(place):
    def cauchy(X, Z):
        xp = namespace(X)
        return 1 / (1 + xp.sum(X * X, axis=1)[:, None] + xp.sum(Z * Z, axis=1) - 2 * X @ Z.T)

    X, y = rows(400)
    one, other = (ReducedSVC(15, kernel=cauchy).fit(data, y) for data in (X, there(X, place)))
    same(one, other, X, place)


# --- models ------------------------------------------------------------------------------------------------------


def same(one, other, X, place, objective=1e-7):
    """The same vectors, objective, certificate and answers; answers are where the rows are."""
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    assert isinstance(other.vectors_, np.ndarray)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=objective)
    assert (other.duality_gap_ <= other.tol).all()
    np.testing.assert_array_equal(one.classes_, other.classes_)
    Xd = there(X, place)
    for method in ("predict", "decision_function"):
        found, expected = getattr(other, method)(Xd), getattr(other, method)(X)
        assert type(found) is type(Xd)
        assert found.device == Xd.device
        np.testing.assert_allclose(to_numpy(found), expected, atol=1e-9 * max(1, np.abs(expected).max()))


@every_place
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_the_model_is_that_of_rows_in_memory(slack, scheme, classes, weighted, place):
    X, y = rows(900, classes)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    model = ReducedSVC(15, slack=slack, multi_class=scheme, gamma=0.5, random_state=1)
    one = clone(model).fit(X, y, weight)
    other = clone(model).fit(there(X, place), there(y, place), None if weight is None else there(weight, place))
    same(one, other, X, place)
    np.testing.assert_array_equal(one.support_, other.support_)


@every_place
def test_the_hinge_with_many_rows(place, nothing_comes_here):
    X, y = rows(6000, dtype=np.float32)
    one, other = (ReducedSVC(10, slack="l1", gamma=0.5).fit(data, y) for data in (X, there(X, place)))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-6)


@every_place
def test_models_over_independent_rows(place):
    X, y = rows(500)
    one, other = (EmpiricalSVC(gamma=0.3).fit(data, y) for data in (X, there(X, place)))
    same(one, other, X, place, 1e-6)


@every_place
@pytest.mark.parametrize("scales", ["fixed", "learned"])
def test_learning_on_the_device(scales, place, nothing_comes_here):
    """Not to the last bit: learning follows the last digits. The objective is as good, and certified."""
    X, y = rows(1500, 3, dtype=np.float32)
    model = SlimSVC(6, Learned(iterations=25), C=1.0, gamma=0.5, scales=scales)
    one, other = (clone(model).fit(data, y) for data in (X, there(X, place)))
    assert other.objective_.sum() == pytest.approx(one.objective_.sum(), rel=0.03)
    assert (other.duality_gap_ <= other.tol).all()
    assert np.mean(to_numpy(other.predict(there(X, place))) == one.predict(X)) > 0.95


@every_place
def test_search_of_few_rows_is_that_of_rows_in_memory(place):
    X, y = rows(800)
    one, other = (SlimSVC(5).fit(data, y) for data in (X, there(X, place)))
    assert (one.C_, one.kernel_.gamma) == (other.C_, other.kernel_.gamma)
    same(one, other, X, place)


def test_search_on_the_device(nothing_comes_here):
    X, y = rows(600, dtype=np.float32)
    model = SlimSVC(4, Learned(iterations=10)).fit(there(X), y)
    assert model.score(there(X), there(y)) > 0.8
    assert model.duality_gap_[0] <= model.tol


def test_only_sums_and_few_rows_come_here(monkeypatch, nothing_comes_here):
    brought = []

    def counted(X):
        found = to_numpy(X)
        brought.append(found.size)
        return found

    X, y = rows(100_000, d=3, dtype=np.float32)
    data = there(X)
    monkeypatch.setattr(device, "to_numpy", counted)
    monkeypatch.setattr(device, "_device_row_keys", lambda X: row_keys(to_numpy(X)))  # a number for each row, once
    SlimSVC(5, Learned(rows=100_000, iterations=20, init=X[:5]), **FIXED).fit(data, y)
    assert max(brought) < 40_000 * 3  # fewer than that give the start of a solver, and the vectors that do nothing
    assert np.median(brought) < 100


def test_without_float64_the_certificate_is_computed_here():
    """As on Apple's devices."""
    X, y = rows(600, dtype=np.float32)
    one, other = (ReducedSVC(10, gamma=0.5).fit(data, y) for data in (X, there(X, "no_float64")))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-6)
    assert (other.duality_gap_ <= other.tol).all()
    found = other.predict(there(X, "no_float64"))
    assert found.device == strict.Device("no_float64")
    assert np.mean(to_numpy(found) == one.predict(X)) == 1


@every_place
def test_probabilities(place):
    X, y = rows(500, 3)
    one, other = (SlimSVC(6, **FIXED, probability=True).fit(data, y) for data in (X, there(X, place)))
    found = other.predict_proba(there(X, place))
    assert type(found) is type(there(X, place))
    np.testing.assert_allclose(to_numpy(found), one.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(to_numpy(found).sum(axis=1), 1, rtol=1e-9)


def test_labels_that_are_words_are_numpy():
    X, y = rows(300)
    words = np.array(["no", "yes"])[y]
    model = ReducedSVC(10).fit(there(X), words)
    found = model.predict(there(X))
    assert isinstance(found, np.ndarray)
    assert model.score(there(X), words) == np.mean(found == words)


def test_a_model_of_a_device_serves_rows_in_memory_and_the_other_way_round(tmp_path):
    import slimsvm

    X, y = rows(300)
    model = SlimSVC(5, **FIXED).fit(there(X), there(y))
    slimsvm.save(model, tmp_path / "model")
    loaded = slimsvm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), to_numpy(model.predict(there(X))))


def test_rows_that_require_a_gradient():
    torch = pytest.importorskip("torch")
    X, y = rows(200)
    data = torch.asarray(X).requires_grad_()
    assert not SlimSVC(3, **FIXED).fit(data, y).decision_function(data).requires_grad


# --- what is asked for, and what is refused -----------------------------------------------------------------------


def test_arrays_in_the_cpus_memory_are_numpys_unless_the_switch_is_set():
    X, y = rows(200)
    cpu = strict.asarray(X)
    with sklearn.config_context(array_api_dispatch=False):
        assert isinstance(SlimSVC(3, **FIXED).fit(cpu, y).predict(cpu), np.ndarray)
        # On another device there is nothing to switch.
        assert not isinstance(SlimSVC(3, **FIXED).fit(there(X), y).predict(there(X)), np.ndarray)
    assert not isinstance(SlimSVC(3, **FIXED).fit(cpu, y).predict(cpu), np.ndarray)


@pytest.mark.parametrize(
    "model",
    [AnyNormSVC(), SlimSVC(5, "cholesky", **FIXED), SlimSVC(max_bytes=512), ReducedSVC(5, regularizer="identity")],
)
def test_in_the_cpus_memory_every_estimator_works_with_the_switch_on(model):
    X, y = rows(150)
    cpu = strict.asarray(X)
    one, other = clone(model).fit(X, y), clone(model).fit(cpu, strict.asarray(y))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    assert type(other.predict(cpu)) is type(cpu)


def test_a_stream_of_arrays_in_the_cpus_memory():
    X, y = rows(300)
    one, other = SlimSVC(4, **FIXED), SlimSVC(4, **FIXED)
    one.partial_fit(X, y, classes=[0, 1])
    other.partial_fit(strict.asarray(X), strict.asarray(y), classes=[0, 1])
    np.testing.assert_array_equal(one.vectors_, other.vectors_)


def test_compressed_models_answer_there():
    from sklearn.svm import SVC

    from slimsvm import compress

    X, y = rows(300)
    small = compress(SVC().fit(X, y), 20)
    assert small.predict(there(X)).device == strict.Device("device1")
    np.testing.assert_array_equal(to_numpy(small.predict(there(X))), small.predict(X))
    assert small.score(there(X), there(y)) == small.score(X, y)


@pytest.mark.parametrize("model", [AnyNormSVC(), LeastSquaresSVC()])
def test_other_estimators_say_what_to_do(model):
    X, y = rows(60)
    with pytest.raises(
        TypeError,
        match=r"needs all rows in the CPU's memory.*SlimSVC, SlimSVR, SlimOneClass, ReducedSVC and EmpiricalSVC",
    ):
        model.fit(there(X), y)
    # Their models answer there all the same.
    assert model.fit(X, y).predict(there(X)).device == strict.Device("device1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, 0], y), "rows x columns are needed"),
        (lambda X, y: (X[:0], y[:0]), r"X has shape \(0, 5\); a row and a column"),
        (lambda X, y: (X[:, :0], y), r"X has shape \(50, 0\); a row and a column"),
        (lambda X, y: (X.astype(complex), y), "real numbers are needed"),
        (lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y), r"NaN or infinite values, in columns \[1\]"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X, None), "requires y to be passed"),
        (lambda X, y: (X, np.zeros(len(y), dtype=int)), "one class only"),
    ],
)
def test_bad_rows(change, message):
    X, y = change(*rows(50))
    with pytest.raises(ValueError, match=message):
        SlimSVC(3, **FIXED).fit(there(X), y)


def test_other_columns_than_those_of_the_fit():
    X, y = rows(100)
    model = SlimSVC(3, **FIXED).fit(there(X), y)
    with pytest.raises(ValueError, match="X has 4 features, but SlimSVC is expecting 5"):
        model.predict(there(X[:, :4]))


def test_what_needs_rows_in_memory():
    X, y = rows(100)
    with pytest.raises(ValueError, match="needs a matrix in memory"):
        ReducedSVC(5, kernel="precomputed").fit(there(X @ X.T), y)
    with pytest.raises(ValueError, match="max_bytes"):
        SlimSVC(max_bytes=512).fit(there(X), y)
    with pytest.raises(TypeError, match="in the CPU's memory"):
        SlimSVC(3).partial_fit(there(X), y, classes=[0, 1])


@every_place
def test_vectors_of_a_device(place):
    X, y = rows(200)
    for basis in (X[:6], Learned(init=X[:6], iterations=3)):
        given = there(X[:6], place)
        other = given if isinstance(basis, np.ndarray) else Learned(init=given, iterations=3)
        one, two = SlimSVC(6, basis, **FIXED).fit(X, y), SlimSVC(6, other, **FIXED).fit(there(X, place), y)
        np.testing.assert_allclose(one.vectors_, two.vectors_, atol=1e-6)


def test_frontier_takes_rows_in_memory():
    from slimsvm import frontier
    from slimsvm import rows as of_files

    X, y = rows(120)
    with pytest.raises(TypeError, match="frontier needs all rows in the CPU's memory"):
        frontier(there(X), y)
    with pytest.raises(TypeError, match="is read a block at a time"):
        frontier(of_files.from_blocks([(X, y)]), y)
    assert len(frontier(strict.asarray(X), strict.asarray(y), sizes=(2, 4)).models) == 2


def test_integers_become_floats():
    X, y = rows(200)
    whole = np.rint(4 * X).astype(np.int32)
    one, other = (ReducedSVC(8, gamma=0.05).fit(data, y) for data in (whole, there(whole)))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)


def test_learning_with_a_kernel_that_has_its_derivative_in_memory_only(nothing_comes_here):
    X, y = rows(300)
    model = SlimSVC(4, Learned(iterations=5), kernel=kernels.Laplacian(0.3), C=1.0).fit(there(X), y)
    assert model.score(there(X), y) > 0.6


# --- blocks of a dask collection on devices ------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_dask_blocks_on_devices(slack, kernel, weighted):
    da = pytest.importorskip("dask.array")
    X, y = rows(900, 3)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    far = da.from_array(X, chunks=(300, 5)).map_blocks(there, dtype=X.dtype, meta=np.empty((0, 0)))
    model = ReducedSVC(12, slack=slack, kernel=kernel, random_state=1)
    one = clone(model).fit(X, y, weight)
    other = clone(model).fit(far, da.from_array(y, chunks=300), None if weight is None else da.from_array(weight, 300))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-7)
    assert (other.duality_gap_ <= other.tol).all()
    parts = [other.predict(part.compute()) for part in far.to_delayed().ravel()]
    np.testing.assert_array_equal(np.concatenate([to_numpy(part) for part in parts]), one.predict(X))
