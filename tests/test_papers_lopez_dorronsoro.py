"""López & Dorronsoro: the recipes of Table 2 and Figure 1."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
import pytest

from papers import datasets, lopez_dorronsoro, run
from papers import recipes as all_recipes
from slimsvm import LeastOneNormSVC, LeastSquaresSVC

TABLE, FIGURE = lopez_dorronsoro.TABLE_2, lopez_dorronsoro.FIGURE_1


def made_outcomes() -> dict:
    found = {}
    for task in TABLE.tasks():
        name = task.arguments[0]
        if task.work is lopez_dorronsoro.choice:
            found[task.name] = [20.0 + k for k in range(len(lopez_dorronsoro.COSTS))]
        elif task.work is lopez_dorronsoro.own_choice:
            found[task.name] = {name + lopez_dorronsoro.OWN: {"LS error, %": 1.0, "L1N error, %": 2.0}}
        else:
            columns = [column.name for column in TABLE.columns if "choice" not in column.name]
            found[task.name] = {name: dict.fromkeys(columns, 3.0)}
    return found


def test_names():
    names = [recipe.name for recipe in all_recipes("lopez_dorronsoro")]
    assert names == ["lopez_dorronsoro-table-2", "lopez_dorronsoro-figure-1"]


@pytest.mark.parametrize("recipe", [TABLE, FIGURE], ids=lambda recipe: recipe.name)
def test_tasks(recipe):
    tasks = list(recipe.tasks())
    assert len({task.name for task in tasks}) == len(tasks)
    assert any(task.quick for task in tasks)


def test_declaration():
    cells = TABLE.gather(made_outcomes())
    assert {column for _, column in cells} == {column.name for column in TABLE.columns}
    assert set(TABLE.printed) <= set(cells)
    assert set(TABLE.rows) == {row for row, _ in cells}
    for pattern in TABLE.reasons:
        assert any(all(map(fnmatchcase, cell, pattern)) for cell in cells)


def test_choices_are_on_the_grid():
    for sigma, C in lopez_dorronsoro.CHOSEN.values():
        assert sigma in lopez_dorronsoro.SIGMAS
        assert C in lopez_dorronsoro.COSTS


@pytest.mark.parametrize("machine", ["LS", "L1N"])
def test_the_papers_algorithm_solves_the_same_problem(machine):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1, -1)
    X = rng.normal(size=(60, 3)) + 0.5 * y[:, None]
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 3)
    a, iterations = lopez_dorronsoro.smo(K, y, 2.0, machine, tol=1e-6)
    assert iterations > 0
    assert abs(a.sum()) < 1e-10
    kind = {"LS": LeastSquaresSVC, "L1N": LeastOneNormSVC}[machine]
    model = kind(C=2.0, gamma=1 / 3, tol=1e-9).fit(X, y)
    values = model.decision_function(X) - model.intercept_[0]
    np.testing.assert_allclose(K @ a, values, atol=1e-3)


def test_few_vectors_on_titanic_are_an_artefact_of_the_start():
    """Equal rows share a weight in any way: the paper's algorithm leaves some at zero, and keeps more than differ."""
    X = np.repeat(np.arange(4.0)[:, None], 10, axis=0)
    y = np.where(np.arange(40) % 10 < np.repeat([1, 4, 6, 9], 10), 1, -1)
    K = np.exp(-((X - X.T) ** 2))
    a, _ = lopez_dorronsoro.smo(K, y, 1.0, "L1N")
    model = LeastOneNormSVC(C=1.0, gamma=1.0).fit(X, y)
    assert model.n_vectors_ <= 8 < np.count_nonzero(a) < 40


def test_merged_rows_are_the_same_problem():
    rng = np.random.default_rng(1)
    X, y = rng.integers(3, size=(80, 2)).astype(float), rng.choice([-1, 1], 80)
    rows, labels, counts = lopez_dorronsoro.merged(X, y)
    assert counts.sum() == 80
    few = LeastSquaresSVC(gamma=1.0).fit(rows, labels, sample_weight=counts)
    many = LeastSquaresSVC(gamma=1.0).fit(X, y)
    np.testing.assert_allclose(few.decision_function(X), many.decision_function(X), atol=1e-6)


def test_a_split():
    rng = np.random.default_rng(3)
    y = rng.choice([-1, 1], 80)
    X = rng.normal(size=(80, 4)) + y[:, None]
    found = lopez_dorronsoro.compared("heart", datasets.Split(X[:50], y[:50], X[50:], y[50:]))
    assert set(found) == {"heart"}
    assert found["heart"]["LS vectors"] <= 50
    assert found["heart"]["L1N error, %"] < 30


@pytest.mark.skipif(not datasets.available("titanic"), reason="titanic is not here")
def test_a_split_of_titanic():
    found = lopez_dorronsoro.split_of("titanic", 0)["titanic"]
    assert found["L1N vectors that differ"] <= 24 < found["L1N vectors"] < 150


def test_lines_of_the_toy_problem():
    line = np.array([1.0, 0.0, -2.5])
    assert lopez_dorronsoro.middle(line) == pytest.approx(np.hypot(5, 2) / 2)
    assert lopez_dorronsoro.angle(np.array([1.0, 0.0]), np.array([0.0, 2.0])) == pytest.approx(90)
    best = np.array([-5.0, -2.0, 14.5])  # halfway between the centres, and square to the way
    assert lopez_dorronsoro.true_error(best) < lopez_dorronsoro.true_error(-line) < 1


def test_outliers():
    result = run(FIGURE, quick=True)
    cells = {(cell.row, cell.column.name): cell for cell in result.cells}
    turned = cells["LS less L1N", lopez_dorronsoro.TURNED]
    assert turned.ours > 0
    figure = pytest.importorskip("matplotlib.figure").Figure()
    FIGURE.draw(figure, result)
    assert len(figure.axes) == 4
