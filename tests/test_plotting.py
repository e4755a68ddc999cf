"""Displays show what the model is: their artists hold its numbers, and nothing hides anything."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR, OneClassSVM

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from problems import blobs, three_classes
from slimsvm import AnyNormSVC, CalibrationDisplay, FrontierDisplay, SlimSVC, VectorsDisplay, compress, frontier
from small_models import FEW_ITERATIONS, slim

pytestmark = pytest.mark.filterwarnings(FEW_ITERATIONS)


@pytest.fixture(autouse=True)
def no_figures_stay():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    return make_moons(200, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def found():
    return frontier(*blobs(120), estimator=slim(), sizes=(2, 4, 8))


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


def out_of_view(figure):
    """Labels of ticks that are not drawn: they lie beyond the ends of their axis."""
    for axis in figure.findobj(matplotlib.axis.Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                yield from (tick.label1, tick.label2)


def assert_nothing_hidden(figure):
    """No text on another one, none cut off."""
    figure.canvas.draw()
    hidden = set(out_of_view(figure))
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_visible() and text not in hidden]
    found = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text().strip()]
    paper = figure.bbox.padded(1)
    for k, (text, box) in enumerate(found):
        assert paper.x0 <= box.x0 <= box.x1 <= paper.x1, text
        assert paper.y0 <= box.y0 <= box.y1 <= paper.y1, text
        for other, its in found[:k]:
            assert not box.padded(-1).overlaps(its.padded(-1)), (text, other)


# --- the frontier ----------------------------------------------------------------------------------------------------


def test_the_frontier_is_drawn_as_found(found):
    display = FrontierDisplay.from_frontier(found, bytes_axis=True)
    line = display.errorbar_.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), found.sizes)
    np.testing.assert_allclose(line.get_ydata(), 100 * (1 - found.curve.scores))
    bars = display.errorbar_.lines[2][0].get_segments()
    heights = [segment[1, 1] - segment[0, 1] for segment in bars]
    np.testing.assert_allclose(heights, 200 * found.curve.standard_errors)
    assert display.chosen_.get_xdata() == [found.best_size()]
    assert display.full_line_.get_ydata()[0] == pytest.approx(100 * (1 - found.full.score))
    shown = [int(label.get_text()) for label in display.bytes_ax_.get_xticklabels()]
    assert shown == [row["bytes"] for row in found.rows]
    assert display.frontier_ is found
    assert_nothing_hidden(display.figure_)


def test_the_frontier_draws_itself_by_its_display(found):
    _, ax = plt.subplots()
    assert found.plot(ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"chosen: {found.best_size()} vectors",
        f"full machine: {found.full.vectors} vectors",
        "SlimSVC",
    ]
    assert found.plot().figure is not ax.figure


def test_a_frontier_from_an_estimator():
    X, y = blobs(100)
    pipeline = make_pipeline(StandardScaler(), slim())
    _, ax = plt.subplots()
    display = FrontierDisplay.from_estimator(pipeline, X, y, sizes=(2, 4), full=False, scoring="roc_auc", ax=ax)
    assert display.ax_ is ax
    assert ax.get_ylabel() == "roc_auc"
    assert display.full_line_ is None
    same = frontier(X, y, sizes=(2, 4), estimator=pipeline, full=False, scoring="roc_auc")
    np.testing.assert_array_equal(display.scores, same.curve.scores)


def test_sizes_that_lie_close_keep_their_names_apart():
    sizes = [2, 3, 4, 5, 6, 60, 61, 62, 63, 64, 100, 101, 128]
    n = len(sizes)
    display = FrontierDisplay(sizes, np.linspace(0.5, 0.9, n), np.full(n, 0.01), chosen=62, bytes=np.array(sizes) * 997)
    display.plot(bytes_axis=True)
    shown = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert {"2", "62", "128"} <= set(shown)
    assert_nothing_hidden(display.figure_)


# --- vectors ---------------------------------------------------------------------------------------------------------


def test_vectors_in_the_plane_in_the_units_of_the_user(moons):
    X, y = moons
    model = make_pipeline(StandardScaler(), slim(5)).fit(1000 + 50 * X, y)
    display = VectorsDisplay.from_estimator(model, 1000 + 50 * X, y)
    assert display.kind == "plane"
    expected = model[0].inverse_transform(model[-1].vectors_)
    inside = display.plane.inside(expected)
    np.testing.assert_allclose(display.vectors_.get_offsets(), expected[inside])
    for drawn, label in zip(display.rows_, (0, 1), strict=True):
        np.testing.assert_allclose(drawn.get_offsets(), 1000 + 50 * X[y == label])
    assert_nothing_hidden(display.figure_)


def test_boundary_and_margins_are_where_the_decision_says(moons):
    X, y = moons
    model = make_pipeline(MinMaxScaler(), slim(5, C=100.0, gamma=4.0)).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    boundary, margins = display.boundary_
    assert np.abs(model.decision_function(boundary.get_paths()[0].vertices)).max() < 0.02
    for path, value in zip(margins.get_paths(), margins.levels, strict=True):
        assert np.abs(model.decision_function(path.vertices) - value).max() < 0.02


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_regions_of_several_classes_are_the_predictions(multi_class):
    X, y = make_blobs(150, centers=4, cluster_std=1.5, random_state=3)
    y = np.array(list("dcba"))[y]
    model = make_pipeline(StandardScaler(), slim(6, multi_class=multi_class)).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y, grid_resolution=40)
    grid = np.stack([g.ravel() for g in np.meshgrid(display.plane.x0, display.plane.x1)], axis=1)
    np.testing.assert_array_equal(display.classes[display.plane.values.ravel()], model.predict(grid))
    assert len(display.rows_) == 4
    assert_nothing_hidden(display.figure_)


def test_vectors_that_are_rows_are_rings(moons):
    X, y = moons
    model = AnyNormSVC(C=10).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    np.testing.assert_allclose(display.vectors_.get_offsets(), model.vectors_)
    assert not len(display.vectors_.get_facecolors())


def test_vectors_far_out_are_counted_not_drawn(moons):
    X, y = moons
    model = slim(basis=np.array([[0.0, 0.0], [1.0, 0.5], [90.0, 90.0]])).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    assert len(display.vectors_.get_offsets()) == 2
    assert "(1 outside)" in display.vectors_.get_label()


def test_vectors_as_images():
    X, y = digits()
    model = slim(12, gamma=0.1).fit(X, y)
    display = VectorsDisplay.from_estimator(model, shape=(8, 8))
    order = display.order()
    assert (np.diff(display.speaks_for[order]) >= 0).all()
    for image, number in zip(display.vectors_, order, strict=True):
        np.testing.assert_array_equal(image.get_array(), model.vectors_[number].reshape(8, 8))
    titles = [axis.get_title() for axis in display.axes_]
    expected = [f"{display.classes[display.speaks_for[k]]} {display.weights[k]:+.2g}" for k in order]
    assert titles == expected
    assert_nothing_hidden(display.figure_)
    assert len(display.plot(most_vectors=5).axes_) == 5


def test_a_vector_speaks_for_the_class_of_its_coefficient():
    X, y = blobs(80)
    model = slim(6).fit(X, y)
    display = VectorsDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.speaks_for, model.vector_coef_[0] > 0)
    np.testing.assert_array_equal(display.weights, model.vector_coef_[0])


def test_inputs_count_by_scale_and_spread():
    X, y = blobs(120, d=4)
    X[:, 1] *= 50
    model = make_pipeline(StandardScaler(), slim(5, scales="learned")).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, names=["a", "b", "c", "d"])
    scaled = model[0].transform(X)
    counts = np.abs(model[-1].kernel_.scales) * scaled.std(axis=0)
    np.testing.assert_allclose(display.counting, counts / counts.max())
    order = np.argsort(-counts)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], display.counting[order])
    bars, *_ = display.axes_
    assert [label.get_text() for label in bars.get_yticklabels()] == [list("abcd")[k] for k in order]
    # Pictured against the rows: in spreads from their mean, columns by class.
    values = (display.vectors - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(display.vectors_.get_array(), values[display.order()][:, order].T)
    assert_nothing_hidden(display.figure_)


def test_inputs_of_a_linear_model_count_by_their_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 5.0, 1.0]
    model = SlimSVC(2, kernel="linear", C=1.0, scales="fixed").fit(X, X[:, 0] - 3 * X[:, 2] > 0)
    counting = VectorsDisplay.from_estimator(model, X).counting
    weights = np.abs(model.vector_coef_ @ model.vectors_)[0] * X.std(axis=0)
    np.testing.assert_allclose(counting, weights / weights.max())
    assert counting.argmax() == 2


def test_many_inputs_show_those_that_count_most():
    X, y = digits()
    model = slim(70, gamma=0.1, basis="random").fit(X, y)
    display = VectorsDisplay.from_estimator(model, X)
    assert len(display.bars_) == 20
    assert display.vectors_.get_array().shape == (20, 60)
    assert "20 of 64" in display.axes_[0].get_xlabel()
    assert "60 loudest of 70" in display.axes_[1].get_xlabel()
    assert_nothing_hidden(display.figure_)


def test_steps_that_cannot_be_undone_show_what_they_make():
    X, y = blobs(100, d=3)
    model = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), slim(4)).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X)
    assert display.names == tuple(model[:-1].get_feature_names_out())
    np.testing.assert_array_equal(display.vectors, model[-1].vectors_)


def test_columns_of_a_table_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, y = blobs(100, d=2)
    table = pandas.DataFrame({"size": X[:, 0], "$colour$": np.where(X[:, 1] > 0, "red", "blue")})
    steps = ColumnTransformer([("numbers", StandardScaler(), ["size"]), ("words", OneHotEncoder(), ["$colour$"])])
    display = VectorsDisplay.from_estimator(make_pipeline(steps, slim(4)).fit(table, y), table)
    assert display.names == ("numbers__size", "words__$colour$_blue", "words__$colour$_red")
    assert_nothing_hidden(display.figure_)
    plain = make_pipeline(StandardScaler(), slim(4)).fit(table[["size"]], y)
    assert VectorsDisplay.from_estimator(plain).names == ("size",)


def test_regressors_and_outlier_detectors_have_vectors_too(moons):
    X, _ = moons
    regressor = compress(SVR().fit(X, X[:, 0]), 6)
    display = VectorsDisplay.from_estimator(regressor, X)
    grid = np.stack([g.ravel() for g in np.meshgrid(display.plane.x0, display.plane.x1)], axis=1)
    np.testing.assert_allclose(display.plane.values.ravel(), regressor.predict(grid))
    detector = compress(OneClassSVM(nu=0.1).fit(X), 6)
    assert VectorsDisplay.from_estimator(detector, X).classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (lambda X, y: slim(4).fit(X, y), {"kind": "plane"}, "needs a model of two inputs; this one has 4"),
        (lambda X, y: slim(4).fit(X, y), {"kind": "cube"}, "kind='cube'"),
        (lambda X, y: slim(4).fit(X, y), {"shape": (3, 3)}, r"height x width = 4 inputs; shape=\(3, 3\)"),
        (lambda X, y: slim(4).fit(X, y), {"names": ["a"]}, "1 names for 4 inputs"),
        (lambda X, y: slim(4).fit(X, y), {"grid_resolution": 1}, "grid_resolution=1"),
        (lambda X, y: slim(4).fit(X, y), {"most_inputs": 0}, "most_inputs=0"),
        (lambda X, y: slim(4), {}, "not a fitted estimator"),
        (lambda X, y: LogisticRegression().fit(X, y), {}, "LogisticRegression is not a fitted estimator of slimsvm"),
        (lambda X, y: AnyNormSVC(kernel="precomputed").fit(X @ X.T, y), {}, "precomputed"),
    ],
)
def test_vectors_that_cannot_be_drawn(make, params, message):
    with pytest.raises(ValueError, match=message):
        VectorsDisplay.from_estimator(make(*blobs(60)), **params)


# --- calibration -----------------------------------------------------------------------------------------------------


def draw_probabilities(n, classes, rng):
    P = rng.dirichlet(np.ones(classes), size=n)
    return P, np.array([rng.choice(classes, p=p) for p in P])


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_the_calibration_error_is_that_of_the_definition(classes, n_bins):
    P, y = draw_probabilities(400, classes, np.random.default_rng(0))
    display = CalibrationDisplay.from_predictions(y, P, n_bins=n_bins)
    sure, right = P.max(axis=1), P.argmax(axis=1) == y
    slow = 0.0
    for b in range(n_bins):
        mine = (sure >= b / n_bins) & (sure < (b + 1) / n_bins)
        slow += abs(sure[mine].sum() - right[mine].sum()) / len(y)
    assert display.ece == pytest.approx(slow)
    assert display.log_loss == pytest.approx(log_loss(y, P))
    assert display.counts.sum() == 400
    np.testing.assert_allclose(display.line_.get_xydata(), np.column_stack([display.prob_pred, display.prob_true]))
    assert [bar.get_height() for bar in display.bars_] == display.counts.tolist()
    assert f"ECE {display.ece:.3f}, log-loss {display.log_loss:.3f}" in display.line_.get_label()
    assert_nothing_hidden(display.figure_)


def test_bins_of_equally_many_rows():
    P, y = draw_probabilities(103, 3, np.random.default_rng(1))
    display = CalibrationDisplay.from_predictions(y, P, strategy="quantile", n_bins=10)
    assert set(display.counts.tolist()) == {10, 11}
    assert (np.diff(display.prob_pred) > 0).all()


def test_the_probability_of_one_class():
    P, y = draw_probabilities(300, 3, np.random.default_rng(2))
    names = np.array(["a", "b", "c"])
    display = CalibrationDisplay.from_predictions(names[y], P, pos_label="b", n_bins=4)
    for left, pred, true in zip(display.edges[:, 0], display.prob_pred, display.prob_true, strict=True):
        mine = (P[:, 1] >= left) & (P[:, 1] < left + 0.25)
        assert pred == pytest.approx(P[mine, 1].mean())
        assert true == pytest.approx(np.mean(y[mine] == 1))
    assert display.ax_.get_xlabel() == "probability of b"


def test_two_models_share_axes():
    X, y = blobs(200)
    model = slim(5, probability=True).fit(X[:100], y[:100])
    first = CalibrationDisplay.from_estimator(model, X[100:], y[100:])
    other = LogisticRegression().fit(X[:100], y[:100])
    second = CalibrationDisplay.from_estimator(other, X[100:], y[100:], ax=first.ax_, show_counts=False)
    assert second.ax_ is first.ax_
    assert second.ideal_ is first.ideal_
    assert [text.get_text().split("\n")[0] for text in first.ax_.get_legend().get_texts()] == [
        "SlimSVC",
        "LogisticRegression",
    ]
    low, high = first.ax_.get_ylim()
    for display in (first, second):
        assert low <= display.prob_true.min() <= display.prob_true.max() <= high
    assert_nothing_hidden(first.figure_)


def test_calibration_in_a_pipeline_and_of_one_column():
    X, y = three_classes(120)
    model = make_pipeline(StandardScaler(), slim(6, probability=True)).fit(X, y)
    display = CalibrationDisplay.from_estimator(model, X, y, n_bins=5)
    same = CalibrationDisplay.of(y, model.predict_proba(X), n_bins=5)
    assert (display.name, display.ece, display.lowest) == ("SlimSVC", same.ece, 1 / 3)
    p = np.array([0.1, 0.7, 0.8])
    column = CalibrationDisplay.of([0, 1, 1], p)
    assert column.log_loss == CalibrationDisplay.of([0, 1, 1], np.column_stack([1 - p, p])).log_loss


@pytest.mark.parametrize(
    ("y", "p", "params", "message"),
    [
        ([0, 1], [0.5, 0.5], {"n_bins": 0}, "n_bins=0"),
        ([0, 1], [0.5, 0.5], {"strategy": "odd"}, "strategy='odd'"),
        ([0, 1], [0.5, 1.5], {}, "between 0 and 1"),
        ([0, 1], [[0.5, 0.4], [0.2, 0.8]], {}, "sum 1"),
        ([0, 1, 2], [0.5, 0.5, 0.5], {}, "for 3 classes"),
        ([0, 7], [0.5, 0.5], {"classes": [0, 1]}, r"no classes: \['7'\]"),
        ([0, 1], [0.5, 0.5], {"pos_label": "x"}, "pos_label='x' is no class"),
        ([0, 1], [0.5, 0.5, 0.1], {}, "inconsistent numbers of samples"),
        ([], np.empty((0, 2)), {"classes": [0, 1]}, "no rows"),
    ],
)
def test_probabilities_that_make_no_sense(y, p, params, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions(y, p, **params)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (lambda X: X[:, :1], None, "X has 1 features, the model takes 2"),
        (lambda X: X[0], None, r"X has the shape \(2,\)"),
        (lambda X: X, [0, 1], r"y has the shape \(2,\), X has 200 rows"),
        (lambda X: None, [0, 1], "y was given without X"),
    ],
)
@pytest.mark.parametrize("steps", [[], [StandardScaler()]], ids=["alone", "scaled"])
def test_rows_that_are_not_the_models(rows, labels, message, steps, moons):
    model = make_pipeline(*steps, slim(4)).fit(*moons)
    for kind in ("plane", "inputs"):
        with pytest.raises(ValueError, match=message):
            VectorsDisplay.from_estimator(model, rows(moons[0]), labels, kind=kind)
    with pytest.raises(ValueError, match=message):
        VectorsDisplay([[0.0, 1.0]], [1.0], [0], X=rows(moons[0]), y=labels)


def test_a_frontier_is_wanted():
    with pytest.raises(TypeError, match=r"found=5 \(type int\) must be what slimsvm\.frontier returns"):
        FrontierDisplay.from_frontier(5)


def test_calibration_needs_probabilities():
    X, y = blobs(40)
    with pytest.raises(ValueError, match="fit it with probability=True"):
        CalibrationDisplay.from_estimator(slim(3).fit(X, y), X, y)


# --- matplotlib ------------------------------------------------------------------------------------------------------


def test_axes_that_are_given_make_no_figure(found, moons):
    X, y = moons
    model = slim(4, probability=True).fit(X, y)
    figure, axes = plt.subplots(1, 3, layout="constrained", figsize=(14, 4))
    FrontierDisplay.from_frontier(found, ax=axes[0])
    VectorsDisplay.from_estimator(model, X, y, ax=axes[1])
    CalibrationDisplay.from_estimator(model, X, y, ax=axes[2])
    assert plt.get_fignums() == [figure.number]
    assert_nothing_hidden(figure)


def test_without_matplotlib(monkeypatch, found):
    X, y = blobs(40)
    model = slim(3, probability=True).fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (
        found.plot,
        lambda: FrontierDisplay.from_estimator(slim(), X, y),
        lambda: VectorsDisplay.from_estimator(model),
        lambda: CalibrationDisplay.from_estimator(model, X, y),
    ):
        with pytest.raises(ImportError, match=r"pip install 'slimsvm\[plot\]'"):
            draw()
    assert CalibrationDisplay.of(y, model.predict_proba(X)).ece >= 0


def test_the_package_does_not_load_matplotlib():
    code = "import slimsvm, sys; assert not any(name.startswith('matplotlib') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
