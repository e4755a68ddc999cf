"""Headers on emulated processors: what they answer is what Python says, and they take what the report says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernel_table
from slimsvm import AnyNormSVC, SlimSVC, to_c
from slimsvm.export import quantize

boards = pytest.importorskip("benchmarks.embedded.boards", reason="benchmarks are not beside the tests")

IRIS = load_iris(return_X_y=True)
MOONS = make_moons(200, noise=0.2, random_state=0)
SLIM = {"C": 2.0, "gamma": 0.4}
MODELS = {
    "common step": lambda: SlimSVC(6, scales="fixed", **SLIM).fit(*MOONS),
    "own steps": lambda: SlimSVC(8, scales="learned", C=2.0, gamma=5.0).fit(*IRIS),
    "scaler": lambda: make_pipeline(StandardScaler(), SlimSVC(6, scales="fixed", probability=True, **SLIM)).fit(*IRIS),
    **{
        name: lambda name=name: SlimSVC(6, kernel=name, scales="fixed", **SLIM).fit(*IRIS)
        for name in kernel_table.names(radial=True, fixed_point=True)
        if name != "rbf"  # that of the others
    },
    "linear": lambda: AnyNormSVC(kernel="linear").fit(*IRIS),
}
WAYS = [(model, "int8", "int16") for model in MODELS] + [
    ("common step", "float32", "float"),
    ("scaler", "float32", "float"),
    ("scaler", "int8", "float"),
    ("own steps", "int8", "float"),
    ("own steps", "int8", "readings"),
]
every_board = pytest.mark.parametrize("board", [boards.M0, boards.M4], ids=lambda board: board.name)


@pytest.fixture(scope="module")
def fitted():
    """Model and its integers by name, each made once."""
    known = {}

    def get(name):
        if name not in known:
            model = MODELS[name]()
            known[name] = model, quantize(model, probabilities=True)
        return known[name]

    return get


def need(board, *, run=True):
    """Skip the test where compiler or emulator is not there."""
    missing = [tool for tool in board.missing() if run or tool == board.tools[0]]
    if missing:
        pytest.skip(f"{missing[0]} is not installed (Debian: {boards.PACKAGES[missing[0]]})")


def question(model, small, dtype, entry, n=80):
    """Rows for an entry of a header, far ones too, and the class numbers that must come back."""
    rng = np.random.default_rng(0)
    X = (IRIS if small.grid.inputs == 4 else MOONS)[0]
    X = X[rng.permutation(len(X))[:n]]
    far = np.concatenate([X, 100 * X, rng.choice([-1e30, 1e9, -40.0, 0.0], size=(20, X.shape[1]))])
    if dtype == "float32":
        return X, np.searchsorted(model.classes_, model.predict(X))
    if entry == "float":
        return far, np.searchsorted(model.classes_, small.predict(far))
    rows = rng.integers(-32768, 32768, size=(n, small.grid.inputs), dtype=np.int16)
    if entry == "readings":
        rows[: n // 2] = np.rint(X[: n // 2])
        on_grid = small.grid.readings.rows(rows[:, small.grid.used])
    else:
        rows[: n // 2] = small.grid.rows(X)[: n // 2]
        rows[n // 2 : n // 2 + 10] //= 2
        on_grid = rows
    return rows, small._winners(small.sums(on_grid, small.weights) + small.bias)


@every_board
@pytest.mark.parametrize(("name", "dtype", "entry"), WAYS)
def test_answers_are_those_of_python(fitted, board, name, dtype, entry):
    """int8: for every row, however far out. float32: labels of the model."""
    need(board)
    model, small = fitted(name)
    rows, expected = question(model, small, dtype, entry)
    found = boards.run(board, boards.unit_of(str(to_c(model, dtype=dtype)), entry), rows)
    assert (found.answers == expected).all()
    assert len(np.unique(expected)) > 1
    assert found.cost > 50  # instructions


@pytest.mark.parametrize("board", [boards.M0, boards.M4, boards.AVR], ids=lambda board: board.name)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", ["own steps", "scaler"])
def test_a_header_is_flash_and_stack_alone(fitted, board, dtype, name, tmp_path):
    """No warning, nothing in RAM, tables and about a kilobyte of code."""
    need(board, run=False)
    model, _ = fitted(name)
    header = to_c(model, dtype=dtype)
    unit = boards.unit_of(str(header))
    made = boards.compiled(board, unit, tmp_path, "-Wall", "-Wextra", "-Werror")
    lines = boards.called([f"{board.prefix}size", "-A", made.name], tmp_path).splitlines()
    assert not [line for line in lines if line.startswith((".data", ".bss")) and int(line.split()[1])]
    code = boards.object_bytes(board, unit) - header.report.flash
    assert -header.report.tables.get("layer_coef", 0) - 20 < code < (1024 if board is not boards.AVR else 2560)


@every_board
def test_stack_is_near_what_the_report_says(fitted, board):
    need(board, run=False)
    model, _ = fitted("scaler")
    for dtype in ("float32", "int8"):
        header = to_c(model, dtype=dtype)
        assert header.report.ram <= boards.stack_bytes(board, boards.unit_of(str(header))) <= header.report.ram + 160


def test_an_uno_answers(fitted):
    need(boards.AVR)
    model, small = fitted("own steps")
    rows, expected = question(model, small, "int8", "float", 6)
    found = boards.run(boards.AVR, boards.unit_of(str(to_c(model, dtype="int8"))), rows)
    assert (found.answers == expected).all()


@every_board
def test_instructions_are_counted(board):
    """A loop of known length: so many more rounds, so many more instructions."""
    need(board)
    costs = []
    for rounds in (100, 1100):
        loop = f'for (int i = 0; i < {rounds}; ++i) __asm__ volatile("nop\\n nop\\n nop");'
        costs.append(
            boards.run(
                board, boards.Unit(f"int answer(const float *x) {{ {loop} return x[0] > 0; }}"), np.ones((3, 1))
            ).cost
        )
    assert (costs[1] - costs[0]) / 1000 == pytest.approx(round((costs[1] - costs[0]) / 1000), abs=0.01)
    assert 5 <= round((costs[1] - costs[0]) / 1000) <= 7


def test_what_does_not_fit_says_so(fitted):
    need(boards.M0, run=False)
    big = boards.Unit("static const char big[300000] = {1}; int answer(const float *x) { return big[(int)x[0]]; }")
    with pytest.raises(boards.DoesNotFit, match=r"overflow|will not fit"):
        boards.linked_bytes(boards.M0, big, 1)


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
def test_three_against_eight_fits_six_kilobytes():
    """usps, 20 vectors, int8: 6 KB of code and data on Cortex-M0, and 99.5 % of the labels."""
    path = Path(__file__).parents[2] / "shared" / "data" / "usps.npz"
    if not path.exists():
        pytest.skip("usps.npz is not here")
    with np.load(path) as file:
        X, y, train, test = file["X"], file["y"], file["train_idx"][0], file["test_idx"][0]
    train, test = train[np.isin(y[train], [3, 8])], test[np.isin(y[test], [3, 8])]
    model = SlimSVC(20, C=1.0, gamma=0.006, scales="fixed", random_state=0).fit(X[train], y[train])
    header = to_c(model, dtype="int8", X=X[test])
    assert header.report.changed <= 0.005
    assert boards.object_bytes(boards.M0, boards.unit_of(str(header))) <= 6144
