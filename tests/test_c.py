"""Headers in C: compiled with every warning an error, run, and compared with Python."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine, make_friedman1, make_moons
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import kernel_table
from c_programs import (
    COMPILERS,
    DECISION,
    INTEGERS,
    PREDICT,
    PROBABILITIES,
    READ_VALUE,
    READINGS,
    VALUES,
    answers,
    build,
    compiler,
)
from slimsvm import (
    AnyNormSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    SlimSVR,
    compress,
    kernels,
    to_c,
    to_micropython,
)
from slimsvm.export import quantize
from slimsvm.export.c.fixed.rows import add_inputs
from slimsvm.export.c.text import ROM, HeaderWriter
from slimsvm.kernels import Gaussian, Scaled
from slimsvm.model.inference import inference_model
from slimsvm.quantization.grid import Grid, two_byte_gains, upper_half
from slimsvm.quantization.integers import rounding_shift

GIVEN = {"C": 3.0, "gamma": "scale", "scales": "fixed"}
SANITIZED = ("-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
BAR = 2e-5  # of decision values, in units of the largest one where that is above 1


def moons():
    return rounded(*make_moons(300, noise=0.2, random_state=0))


def wine():
    return rounded(*load_wine(return_X_y=True))


def digits():
    X, y = load_digits(return_X_y=True)
    return rounded(X[:400] / 16, y[:400])


def rounded(X, y):
    """Rows that float32 holds: a device gets no others."""
    return X.astype(np.float32).astype(np.float64), y


def slim(count, **params):
    return SlimSVC(count, **(GIVEN | params))


def scaled(model, scaler=None):
    return make_pipeline(scaler or StandardScaler(), model)


def own_scales():
    X, y = wine()
    kernel = Scaled(Gaussian(1e-3), np.where(np.arange(13) % 3 == 0, 0.0, np.linspace(0.1, 2, 13)))
    return AnyNormSVC(kernel=kernel, C=10.0).fit(X, y), X


def of_two(model):
    X, y = moons()
    return model.fit(X, y), X


def of_three(model, labels=None):
    X, y = wine()
    return model.fit(X, y if labels is None else np.array(labels)[y]), X


def of_ten(model):
    X, y = digits()
    return model.fit(X, y), X


def relevance():
    X, y = wine()
    return scaled(RelevanceVectorClassifier(gamma=0.01)).fit(X[::2], y[::2]), X


def one_class():
    X, _ = moons()
    return compress(OneClassSVM(nu=0.1).fit(X), 10, X), X


def regressor(**params):
    X, y = rounded(*make_friedman1(300, noise=0.5, random_state=0))
    return compress(scaled(SVR(C=10.0, **params)).fit(X, y), 15, X, y), X


def like_a_regressor(change):
    """A machine that differs from one that was fitted by what is changed."""
    model, X = regressor()
    last = deepcopy(model[-1])
    change(last)
    return make_pipeline(model[0], last), X


def in_another_unit(unit, far):
    def change(model):
        model.vector_coef_, model.intercept_ = unit * model.vector_coef_, unit * (model.intercept_ + far)

    return like_a_regressor(change)


def several_targets():
    """Of very different sizes, over the same vectors."""

    def change(model):
        a = model.vector_coef_
        model.vector_coef_ = np.vstack([a, 1e-4 * a[:, ::-1], 1e5 * np.roll(a, 3)])
        model.intercept_ = np.array([float(model.intercept_[0]), 7.0, -3e8])

    return like_a_regressor(change)


def learned_targets():
    X, y = rounded(*make_friedman1(300, noise=0.5, random_state=0))
    return scaled(SlimSVR(10, **GIVEN)).fit(X, np.column_stack([y, X[:, 0] * X[:, 1]])), X


def laplacian():
    """A kernel that `SVR` has not."""

    def change(model):
        model.kernel_ = kernels.Laplacian(0.1)

    return like_a_regressor(change)


def values_of(model, X):
    machine = inference_model(model)
    return machine.expansion.decision(machine.inputs(X))


def svc(shape):
    X, y = digits()
    return compress(SVC(decision_function_shape=shape).fit(X, y), 20, X, y), X


LEARNED = kernel_table.names(semidefinite=True)
WITHOUT_INTEGERS = tuple(kernel_table.names(fixed_point=False))
MODELS = {
    **{f"{kernel}, two": lambda kernel=kernel: of_two(slim(5, kernel=kernel)) for kernel in LEARNED},
    **{
        f"{kernel}, three, scaler": lambda kernel=kernel: of_three(scaled(slim(5, kernel=kernel))) for kernel in LEARNED
    },
    "sigmoid": lambda: of_two(ReducedSVC(10, kernel="sigmoid", gamma=0.1)),
    "learned scales": lambda: of_three(scaled(slim(6, scales="learned", probability=True), MinMaxScaler())),
    "inputs that do not count": own_scales,
    "wide kernel": lambda: of_two(slim(12, C=300.0, gamma=1e-3, probability=True)),
    "linear with probabilities": lambda: of_three(scaled(slim(3, kernel="linear", probability=True))),
    "relevance, two": lambda: of_two(RelevanceVectorClassifier()),
    "relevance, three": relevance,
    "one output a class": lambda: of_ten(slim(20, multi_class="ovr", probability=True)),
    "pairs": lambda: of_ten(slim(20, probability=True)),
    "compressed": lambda: svc("ovr"),
    "compressed, pairs shown": lambda: svc("ovo"),
    "made for bytes": lambda: of_three(scaled(slim(3, max_bytes=150, multi_class="ovr", scales="learned"))),
    "one class": one_class,
    "regressor": regressor,
    "regressor, linear": lambda: regressor(kernel="linear"),
    "regressor, laplacian": laplacian,
    "regressor, tiny values": lambda: in_another_unit(1e-9, 0.0),
    "regressor, values far from zero": lambda: in_another_unit(1.0, 1e6),
    "several targets": several_targets,
    "several targets, learned": learned_targets,
}
VALUES_ONLY = sorted(name for name in MODELS if name.startswith(("regressor", "several")))
FIXED = sorted(name for name in MODELS if not name.startswith(WITHOUT_INTEGERS) and name not in VALUES_ONLY)


@cache
def fitted(name):
    return MODELS[name]()


def statements(machine):
    """What a program prints: class, scores, probabilities."""
    if machine.classes is None:
        return [VALUES]
    return [PREDICT, DECISION, *([PROBABILITIES] if machine.layer is not None else [])]


def split(found, machine):
    """Class numbers, scores, probabilities."""
    classes = 0 if machine.layer is None else len(machine.classes)
    return found[:, 0].astype(int), found[:, 1 : found.shape[1] - classes], found[:, found.shape[1] - classes :]


# --- what is computed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_float32_gives_what_python_gives(tmp_path, name):
    model, X = fitted(name)
    machine = inference_model(model)
    found = answers(build(tmp_path, to_c(model), statements(machine)), X)
    if machine.classes is None:
        expected = values_of(model, X)
        assert (np.abs(found - expected).max(axis=0) <= BAR * np.abs(expected).max(axis=0)).all()
        return
    numbers, scores, p = split(found, machine)
    expected = model.decision_function(X).reshape(scores.shape)
    np.testing.assert_array_equal(machine.classes[numbers], model.predict(X))
    assert np.abs(scores - expected).max() <= BAR * max(1, np.abs(expected).max())
    if machine.layer is not None:
        np.testing.assert_allclose(p, model.predict_proba(X), rtol=0, atol=1e-5)
        assert (p.argmax(axis=1) == numbers).all()


@pytest.mark.parametrize("name", FIXED)
def test_int8_gives_exactly_the_integers(tmp_path, name):
    """Under the sanitizers: no overflow, no shift of a negative number, nothing out of bounds."""
    model, X = fitted(name)
    machine, small = inference_model(model), quantize(model, probabilities=True)
    found = answers(build(tmp_path, to_c(model, dtype="int8"), statements(machine), flags=SANITIZED), X)
    numbers, scores, p = split(found, machine)
    np.testing.assert_array_equal(small.classes[numbers], small.predict(X))
    if machine.shown is None:
        exact = small.decision(X).reshape(scores.shape)
        np.testing.assert_allclose(scores, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
    if machine.layer is not None:
        np.testing.assert_array_equal(p.astype(np.float32), small.probabilities(X))
        assert (p.argmax(axis=1) == numbers).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=len(machine.classes) / 32768)
        # Where the class is another one, its probability had to be moved.
        same = machine.classes[numbers] == model.predict(X)
        np.testing.assert_allclose(p[same], model.predict_proba(X)[same], atol=0.02)


@pytest.mark.parametrize("name", VALUES_ONLY)
def test_int8_gives_exactly_the_values(tmp_path, name):
    """The integers are Python's, and floats the nearest to them; the error that they add is small."""
    model, X = fitted(name)
    small, header = quantize(model), to_c(model, dtype="int8", X=X)
    found = answers(build(tmp_path, header, [VALUES, INTEGERS], flags=SANITIZED), X)
    outputs = len(small.bias)
    np.testing.assert_array_equal(found[:, outputs:], small.accumulators(X))
    exact = small.accumulators(X) * small.steps
    np.testing.assert_array_equal(found[:, :outputs].astype(np.float32), exact.astype(np.float32))
    np.testing.assert_array_equal(small.predict(X).reshape(exact.shape), exact)
    expected = values_of(model, X)
    added = np.sqrt(((exact - expected) ** 2).mean(axis=0)) / expected.std(axis=0)
    assert added.max() < 0.03
    assert header.report.added == pytest.approx(added.max())
    assert np.isnan(header.report.changed)
    assert np.isnan(header.report.r2)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", ["regressor", "several targets", "regressor, linear"])
def test_examples_print_values(tmp_path, name, dtype):
    model, X = fitted(name)
    source, command = to_c(model, dtype=dtype), compiler("gcc")
    (tmp_path / "model.h").write_text(source)
    (tmp_path / "main.c").write_text(source.example)
    flags = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    subprocess.run([*command, *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    rows = "\n".join(" ".join(map(repr, map(float, row))) for row in X[:20])
    out = subprocess.run([tmp_path / "main"], input=rows.encode(), capture_output=True, check=True).stdout.decode()
    printed = np.array([[float(word) for word in line.split()] for line in out.splitlines()])
    expected = values_of(model, X[:20])
    assert (np.abs(printed - expected).max(axis=0) < 0.2 * expected.std(axis=0)).all()


@pytest.mark.parametrize("name", VALUES_ONLY)
def test_no_row_leaves_31_bits(name):
    """Not even one at which every kernel value takes the sign of its coefficient."""
    small = quantize(fitted(name)[0])
    sums = np.abs(small.weights.astype(np.int64)).sum(axis=1) << 15
    for sign in (-1, 1):
        most = rounding_shift(sign * sums, small.shift.astype(np.int64)) + small.bias
        assert (np.abs(most) < 2**31).all()


def test_values_of_readings(tmp_path):
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    X = np.rint(1000 * X)
    model = compress(scaled(SVR(C=10.0)).fit(X, y), 15, X, y)
    value = 'printf("%.9g", (double)model_predict(x));'
    found = answers(build(tmp_path, to_c(model, dtype="int8"), [value, READ_VALUE], flags=SANITIZED), X)
    small = quantize(model)
    readings = small.grid.readings.rows(X[:, small.grid.used])
    sums = rounding_shift(small.sums(readings, small.weights), small.shift.astype(np.int64)) + small.bias
    np.testing.assert_array_equal(found[:, 1:], sums)
    np.testing.assert_allclose(found[:, 1] * small.steps[0], found[:, 0], atol=0.02 * y.std())


def test_report_of_a_regressor():
    """With targets it says what they lose; coefficients are then fitted to them."""
    model, X = fitted("regressor")
    y = make_friedman1(300, noise=0.5, random_state=0)[1]
    for dtype in ("float32", "int8"):
        report = to_c(model, dtype=dtype, X=X, y=y).report
        assert report.r2_before == pytest.approx(model.score(X, y))
        assert abs(report.r2 - report.r2_before) < 0.002
        assert "R²" in str(report)
        assert "labels" not in str(report)
        assert 0 < report.added < 0.03
    assert report.r2 == pytest.approx(r2_score(y, quantize(model, X, y).predict(X)))
    assert report.flash == quantize(model).n_bytes + 130
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        to_c(model, dtype="int8", X=X, y=y[1:])


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_compiler_takes_it_without_a_warning(tmp_path, name, dtype):
    fit, X = fitted("several targets")
    build(tmp_path, to_c(fit, dtype=dtype), [VALUES, *([INTEGERS] if dtype == "int8" else [])], name)
    for model in ("learned scales", "pairs", "laplacian, three, scaler", "linear with probabilities", "one class"):
        fit, X = fitted(model)
        machine = inference_model(fit)
        numbers = answers(build(tmp_path, to_c(fit, dtype=dtype), statements(machine), name), X)[:, 0].astype(int)
        assert np.mean(machine.classes[numbers] == fit.predict(X)) > 0.98


@pytest.mark.parametrize("kernel", LEARNED)
def test_scalers_far_from_zero(tmp_path, kernel):
    """A float has no room for all digits of such a mean: the header makes up for them, and its report is right."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    X = np.rint(X * 5 + 5e6)
    model = scaled(slim(5, kernel=kernel)).fit(X, y)
    source = to_c(model, X=X)
    found = answers(build(tmp_path, source, [PREDICT, DECISION]), X)
    expected = model.decision_function(X)
    np.testing.assert_array_equal(found[:, 0], model.predict(X))
    assert np.abs(found[:, 1] - expected).max() <= BAR * max(1, np.abs(expected).max())
    assert source.report.difference <= BAR
    module = {}
    exec(to_micropython(model), module)
    assert [module["predict"](row) for row in X.tolist()] == model.predict(X).tolist()


def test_pipelines_in_pipelines():
    X, y = wine()
    inner = make_pipeline(MinMaxScaler(), slim(4))
    assert to_c(make_pipeline(StandardScaler(), inner).fit(X, y)) == to_c(
        make_pipeline(StandardScaler(), MinMaxScaler(), slim(4)).fit(X, y)
    )


def test_readings_in_integers(tmp_path):
    """A model trained on integers needs no float on the device, and nearly always gives the same."""
    X, y = load_wine(return_X_y=True)
    X = np.rint(X * [100, 100, 100, 10, 1, 100, 100, 100, 100, 100, 100, 100, 1])
    model = scaled(slim(6)).fit(X, y)
    program = build(tmp_path, to_c(model, dtype="int8"), [PREDICT, READINGS], flags=SANITIZED)
    found = answers(program, X).astype(int)
    small = quantize(model)
    readings = small.grid.readings.rows(X[:, small.grid.used])
    sums = small.sums(readings, small.weights) + small.bias
    np.testing.assert_array_equal(found[:, 1], small._winners(sums))
    assert np.abs(readings.astype(int) - small.grid.rows(X)).max() <= 2 + small.grid.gain.max() / 256
    assert np.mean(found[:, 0] == found[:, 1]) > 0.99


@pytest.mark.parametrize(("gain_bytes", "offset_bytes"), [(2, 0), (2, 2), (2, 4), (4, 4)])
def test_readings_by_the_bits_of_floats(tmp_path, gain_bytes, offset_bytes):
    """Gains and offsets of any size, from the tables that rows of floats have, too: to the last unit Python's."""
    rng, d = np.random.default_rng(0), 40
    gain = np.exp2(rng.uniform(-45, 15, d)) if gain_bytes == 2 else np.exp2(rng.uniform(-100, 15, d))
    offset = rng.choice([-1, 1], d) * np.exp2(rng.uniform(-20, 21.9, d))
    offset[:4] = 0, 0.5 / 256, -1.5 / 256, 1e-42
    offset = upper_half(offset) if offset_bytes == 2 else offset if offset_bytes else np.full(d, 3.25)
    gain = two_byte_gains(gain) if gain_bytes == 2 else gain
    used = np.arange(0, 2 * d, 2)
    grid = Grid(
        2 * d, used, gain.astype(np.float32), offset.astype(np.float32), np.zeros(d, int), 8, gain_bytes, offset_bytes
    )
    out = HeaderWriter("model")
    out.add("#include <stdint.h>\n#include <string.h>")
    out.define(INPUTS=grid.inputs, USED=d)
    out.add(ROM)
    add_inputs(out, grid)
    show = (
        "{ int16_t r[MODEL_INPUTS], u[MODEL_USED]; for (int i = 0; i < MODEL_INPUTS; ++i) r[i] = (int16_t)x[i]; "
        'model_from_readings(r, u); for (int n = 0; n < MODEL_USED; ++n) printf(" %d", u[n]); }'
    )
    X = rng.integers(-(2**15), 2**15, (300, 2 * d))
    X[:100, used] = np.clip(np.rint(offset + rng.normal(size=(100, d)) / gain), -(2**15), 2**15 - 1)
    found = answers(build(tmp_path, out.text(), [show], flags=SANITIZED), X)
    np.testing.assert_array_equal(found, grid.readings.rows(X[:, used]))
    exact = (X[:, used] - offset) * gain
    assert np.abs(found - np.clip(exact, -32767, 32767)).max() <= 0.501 + gain.max() / 512


def test_refitted_where_labels_are_given():
    X, y = moons()
    model = slim(5).fit(X, y)
    assert to_c(model, dtype="int8", X=X, y=y) != to_c(model, dtype="int8", X=X)
    assert to_c(model, X=X, y=y) == to_c(model)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_rows_that_are_no_numbers_do_no_harm(tmp_path, dtype):
    model, X = fitted("learned scales")
    program = build(tmp_path, to_c(model, dtype=dtype), statements(inference_model(model)), flags=SANITIZED)
    for value in (np.nan, np.inf, -np.inf, 3e38):
        assert answers(program, np.full((2, X.shape[1]), value))[:, 0].max() < 3


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_models_without_vectors(tmp_path, dtype):
    X, y = moons()
    model = slim(4).fit(X, y)
    model.vectors_, model.vector_coef_, model.n_vectors_ = model.vectors_[:0], model.vector_coef_[:, :0], 0
    found = answers(build(tmp_path, to_c(model, dtype=dtype), [PREDICT, DECISION]), X)
    np.testing.assert_allclose(found[:, 1], model.intercept_[0], rtol=1e-4)


def test_sparse_vectors():
    X, y = moons()
    model = ReducedSVC(10).fit(X, y)
    other = ReducedSVC(10).fit(sp.csr_array(X), y)
    assert sp.issparse(other.vectors_)
    assert to_c(model) == to_c(other)


# --- what the header is -----------------------------------------------------------------------------------------------

SIZES = {"float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4}


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", ["learned scales", "pairs", "linear with probabilities", "inputs that do not count"])
def test_report_counts_the_tables(name, dtype):
    model, X = fitted(name)
    header = to_c(model, dtype=dtype, X=X)
    tables = re.findall(r"static const (\w+) model_(\w+)\[(\d+)\]", header)
    counted = {t: SIZES[kind] * int(n) for kind, t, n in tables}
    counted |= {t: SIZES[kind] * int(n) for kind, t, n in re.findall(r"  static const (\w+) (\w+)\[(\d+)\]", header)}
    assert header.report.tables == counted
    assert header.report.flash == sum(counted.values())
    assert "malloc" not in header
    if dtype == "int8":
        shared = 8 - 4 * bool(quantize(model).grid.gain_bytes) - 4 * bool(quantize(model).grid.offset_bytes)
        assert header.report.flash == quantize(model, probabilities=True).n_bytes - shared + 130
    assert header.report.changed == 0
    assert 0 < header.report.difference < (1e-5 if dtype == "float32" else 0.05)
    for word in ("flash", "RAM", "multiply-adds", "labels"):
        assert word in str(header.report)


@pytest.mark.parametrize("labels", ["numbers", "own numbers", "words"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_flash_is_what_an_object_file_holds(tmp_path, dtype, kernel, labels):
    """Every constant of the header, whatever calls it: scalers, readings, labels, probabilities."""
    if shutil.which("gcc") is None or shutil.which("nm") is None:
        pytest.skip("gcc and nm are not there")
    X, y = load_wine(return_X_y=True)
    y = {"numbers": y, "own numbers": 7 * y - 3, "words": np.array(["red", "white", "rosé"])[y]}[labels]
    model = scaled(slim(5, kernel=kernel, probability=True)).fit(np.rint(10 * X), y)
    header = to_c(model, dtype=dtype)
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "unit.c").write_text('#include "model.h"\n')
    options = ["-O0", "-fkeep-static-consts", "-fkeep-inline-functions", "-c", "unit.c", "-o", "unit.o"]
    subprocess.run(["gcc", "-std=c99", *options], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "-S", "unit.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    objects = {
        n: int(size, 16) for size, kind, n in re.findall(r"^\w+ (\w+) (\w) (\S+)$", listed, re.M) if kind in "rRdD"
    }
    held = sum(objects.values())
    if labels == "words":  # pointers have four bytes on a device, and their text has no name
        held += sum(len(label.encode()) + 1 for label in model.classes_) - 3 * (np.dtype(np.intp).itemsize - 4)
    assert header.report.flash == held
    assert ("model_predict_readings" in header) == (dtype == "int8")


# --- a budget for all of it -------------------------------------------------------------------------------------------


def test_a_scaler_that_breaks_a_budget_is_named():
    """What a pipeline takes beside its estimator's max_bytes, and a budget for the whole."""
    X, y = load_wine(return_X_y=True)
    model = scaled(slim(1, max_bytes=120, scales="fixed")).fit(X, y)
    with pytest.warns(UserWarning, match=r"with its scaler, which SlimSVC\(max_bytes=120\) does not count") as said:
        takes = quantize(model).n_bytes
    assert model[-1].model_bytes_ <= 120 < takes
    assert f"takes {takes} bytes" in str(said[0].message)
    with pytest.warns(UserWarning, match=f"takes {takes} bytes with its scaler"):
        to_c(model, dtype="int8")
    with pytest.raises(ValueError, match=f"max_bytes={takes - 1} is too little: the model takes {takes} bytes"):
        to_c(model, dtype="int8", max_bytes=takes - 1)
    with pytest.raises(ValueError, match=f"max_bytes={takes - 1} is too little: the model takes {takes} bytes"):
        quantize(model, max_bytes=takes - 1)
    with pytest.raises(ValueError, match=r"max_bytes=120 .*SlimSVC\(max_bytes=(\d+)\)") as refused:
        to_c(model, dtype="int8", max_bytes=120)
    with pytest.raises(ValueError, match=r"takes .*Try dtype='int8'"):
        to_c(model, max_bytes=takes)
    for write in (to_c, quantize):
        with pytest.raises(ValueError, match=r"max_bytes=0\.5 must be a whole number"):
            write(model, max_bytes=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = to_c(model, dtype="int8", max_bytes=takes)
        assert whole.report.flash <= takes + 130
        quantize(model[-1])
        to_c(model[-1], dtype="int8", max_bytes=120)
        room = int(re.search(r"SlimSVC\(max_bytes=(\d+)\)", str(refused.value))[1])
        assert f"To stay within 120 bytes, fit SlimSVC(max_bytes={room}), or scale rows" in str(said[0].message)
        less = scaled(slim(1, max_bytes=room, scales="fixed")).fit(X, y)
        to_c(less, dtype="int8", max_bytes=120)
        assert quantize(less, max_bytes=120).n_bytes <= 120
    far_below = scaled(slim(2, max_bytes=2048, scales="fixed")).fit(X[::9], y[::9])
    with pytest.raises(ValueError, match=rf"SlimSVC\(max_bytes={far_below[-1].model_bytes_ - 1}\)"):
        quantize(far_below, max_bytes=quantize(far_below).n_bytes - 1)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_nothing_of_the_library_but_expf(tmp_path, dtype):
    compiler("gcc")
    model, _ = fitted("pairs")
    (tmp_path / "model.h").write_text(to_c(model, dtype=dtype))
    calls = "int p(const float x[]) { return model_predict(x); } void q(const float x[], float y[]) { @ }"
    calls = calls.replace("@", "model_decision(x, y); model_probabilities(x, y);")
    (tmp_path / "one.c").write_text(f'#include "model.h"\n{calls}')
    subprocess.run(["gcc", "-std=c99", "-O2", "-c", "one.c"], cwd=tmp_path, check=True)
    needed = subprocess.run(["nm", "-u", "one.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert set(needed.split()) - {"U", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"} <= (
        {"expf"} if dtype == "float32" else {"memcpy"}
    )


def test_two_models_in_one_program(tmp_path):
    command = compiler("gcc")
    first, second = fitted("pairs")[0], fitted("rbf, two")[0]
    (tmp_path / "first.h").write_text(to_c(first, name="first", dtype="int8"))
    (tmp_path / "second.h").write_text(to_c(second, name="second"))
    (tmp_path / "main.c").write_text(
        '#include "first.h"\n#include "second.h"\n#include "first.h"\n'
        "int main(void) { static float x[64]; return first_predict(x) + second_predict(x) > 100; }"
    )
    subprocess.run([*command, "-Wall", "-Werror", "main.c", "-lm"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b\\c", 'say "no"??/*/'],
        ["é", "日本", "two words"],
        [10, -5, 2**31 - 1],
        [-(2**31), 0, 7],
        [1.0, 5.0, -3.0],
        [2**40, 3, 4],
        [0, 1, 2],
    ],
    ids=str,
)
def test_labels_of_any_type(tmp_path, labels, dtype):
    """The example program prints them as Python has them."""
    model, X = of_three(scaled(slim(4)), labels)
    command = compiler("gcc")
    source = to_c(model, dtype=dtype, name="wine")
    (tmp_path / "wine.h").write_text(source)
    (tmp_path / "main.c").write_text(source.example)
    flags = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    subprocess.run([*command, *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    rows = "\n".join(" ".join(map(repr, map(float, row))) for row in X[::9])
    out = subprocess.run([tmp_path / "main"], input=rows.encode(), capture_output=True, check=True).stdout.decode()
    printed = [str(label) for label in model.predict(X[::9]).tolist()]
    assert len(set(printed)) == 3
    if isinstance(labels[0], float):
        assert [float(line.split()[0]) for line in out.splitlines()] == [float(v) for v in printed]
    else:
        for line, label in zip(out.splitlines(), printed, strict=True):
            assert line.startswith(f"{label} ")


def test_words_of_the_user_cannot_leave_the_comment(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = moons()
    names = ["*/ int main(void) { return 1; } /*", "zwölf\n\\"]
    model = slim(3).fit(pandas.DataFrame(X, columns=names), y)
    build(tmp_path, to_c(model), [PREDICT])


def test_same_model_same_text():
    model, _ = fitted("learned scales")
    assert to_c(model, dtype="int8") == to_c(model, dtype="int8")


# --- wrong uses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "1st", "my model", "a-b", "int", "main", "_hidden", "x" * 60, None, 3])
def test_names_that_c_does_not_take(name):
    with pytest.raises(ValueError, match="name="):
        to_c(fitted("rbf, two")[0], name=name)


def test_what_cannot_be_exported():
    X, y = moons()
    model = fitted("rbf, two")[0]
    with pytest.raises(ValueError, match=r"dtype='int4' is not known; use one of \['float32', 'int8'\]"):
        to_c(model, dtype="int4")
    with pytest.raises(ValueError, match="y was given without X"):
        to_c(model, y=y)
    with pytest.raises(ValueError, match="call fit first"):
        to_c(SlimSVC())
    with pytest.raises(ValueError, match=r"SVC is a machine of scikit-learn.*compress\(model, n_vectors\)"):
        to_c(SVC().fit(X, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        to_c(model, X=X, y=y[:-1])
    with pytest.raises(ValueError, match="no form in C"):
        to_c(AnyNormSVC(kernel=lambda A, B: A @ B.T).fit(X, y))
    with pytest.raises(ValueError, match="no fixed-point form"):
        to_c(fitted("poly, two")[0], dtype="int8")
    with pytest.raises(ValueError, match="must scale each input by itself"):
        to_c(make_pipeline(PolynomialFeatures(), slim(3)).fit(X, y))
    with pytest.raises(ValueError, match="X has 3 features, the model takes 2"):
        to_c(model, X=np.ones((4, 3)))
