"""Dekel & Singer: the recipe of Figure 1."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
import pytest

from papers import Result, datasets, dekel_singer

RECIPE = dekel_singer.FIGURE_1


@pytest.fixture(scope="module")
def rows():
    """Two classes that overlap a little, as many rows as a problem of the paper has to train on."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1100) < 0.5, 1, -1)
    X = rng.normal(size=(1100, 2)) + 1.5 * y[:, None]
    return datasets.Split(X[:1000], y[:1000], X[1000:], y[1000:])


def outcomes(problems: int = 3) -> dict:
    rng = np.random.default_rng(1)
    size = len(dekel_singer.BUDGETS)
    found = {}
    for norm in dekel_singer.NORMS:
        for seed in range(problems):
            found[f"budgets {norm}, problem {seed}"] = {
                "vectors": rng.integers(400, 1000, size).tolist(),
                "errors": (5 + 45 * rng.random((size, size))).tolist(),
                "again": (10 + rng.random(size)).tolist(),
                "early": (10 + rng.random(size)).tolist() if norm == "l1" else [],
            }
            hard = {kind: rng.random(len(dekel_singer.HARD)).tolist() for kind in ("select", "learn")}
            found[f"hard {norm}, problem {seed}"] = hard
    return found


def test_declaration():
    tasks = list(RECIPE.tasks())
    assert len({task.name for task in tasks}) == len(tasks) == 5 * dekel_singer.PROBLEMS
    assert any(task.quick for task in tasks)
    columns = {column.name for column in RECIPE.columns}
    cells = RECIPE.gather(outcomes())
    assert {column for _, column in cells} == columns
    assert set(RECIPE.printed) <= set(cells)
    assert set(RECIPE.rows) <= {row for row, _ in cells}
    for pattern in RECIPE.reasons:
        assert any(all(map(fnmatchcase, cell, pattern)) for cell in cells)


def test_cells_come_from_their_places():
    found = outcomes()
    cells = RECIPE.gather(found)
    row, place = "budget-L2, B = 60", dekel_singer.BUDGETS.index(60)
    maps = [found[f"budgets l2, problem {seed}"] for seed in range(3)]
    assert cells[row, dekel_singer.PRUNED] == [one["errors"][place][place] for one in maps]
    assert cells[row, dekel_singer.KEPT] == [one["errors"][place][-1] for one in maps]
    mean = np.mean([one["errors"] for one in maps], axis=0)
    assert np.mean(cells["budget-L2, lightest region", dekel_singer.TOLD]) == pytest.approx(mean.min())


def test_some_tasks_are_enough():
    """A run may have been broken off, or have no data for a part."""
    some = {name: found for name, found in outcomes().items() if name.startswith("hard l1")}
    assert {column for _, column in RECIPE.gather(some)} == {dekel_singer.SELECT, dekel_singer.LEARN}


def test_picture():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    RECIPE.draw(figure, Result(RECIPE, outcomes(), 12))
    assert len(figure.axes) == 5  # two maps and their colours, two plots


@pytest.mark.parametrize("norm", dekel_singer.NORMS)
def test_keeping_all_weights_is_the_machine(rows, norm):
    from slimsvm import BudgetSVC

    B = 60
    found = dekel_singer.map_of(rows, norm, (B,))
    model = BudgetSVC(B, norm, C=dekel_singer.cost(norm, B), gamma=dekel_singer.GAMMA, tol=1e-6).fit(rows.X, rows.y)
    assert found["vectors"] == [model.n_vectors_]
    assert found["vectors"][0] >= B  # the budget is a lower bound
    assert found["errors"][0][-1] == pytest.approx(rows.error(model))
    assert len(found["errors"][0]) == len(dekel_singer.BUDGETS)


def test_machines_beside(rows):
    found = dekel_singer.others(datasets.Split(rows.X[:200], rows.y[:200], rows.X_test, rows.y_test))
    assert len(found) == 7
    assert all(numbers[dekel_singer.VECTORS] <= 60 for name, numbers in found.items() if name.startswith("60"))


def test_best_bias_has_the_fewest_errors():
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = np.where(rng.random(30) < 0.4, 1, -1)
        f = np.round(rng.normal(size=30) + y, 1)  # with ties
        b = dekel_singer.best_bias(f, y)
        wrong = np.sum(np.where(f + b > 0, 1, -1) != y)
        assert wrong == min(np.sum(np.where(f > cut, 1, -1) != y) for cut in [-np.inf, *f])


def test_the_papers_algorithm_solves_the_problem_when_it_may(rows):
    """Ended early it has few vectors; in the end it is the machine, which has more of them than the budget says."""
    from slimsvm import BudgetSVC

    X, y, B = rows.X[:150], rows.y[:150], 10
    K = np.exp(-dekel_singer.GAMMA * ((X[:, None] - X) ** 2).sum(-1))
    early, late = (dekel_singer.ended_early(K, y, B, 1.0, steps) for steps in (B // 2, 20_000))
    assert np.count_nonzero(early) <= B < np.count_nonzero(late)
    for a in (early, late):
        assert abs(a.sum()) < 1e-9
        assert np.abs(a).sum() <= B + 1e-9
        assert np.all((a * y >= 0) & (a * y <= 1 + 1e-12))
    model = BudgetSVC(B, "l1", C=1.0, gamma=dekel_singer.GAMMA, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(K @ late, model.decision_function(X) - model.intercept_[0], atol=1e-3)


@pytest.mark.skipif(not datasets.available("mnist"), reason="mnist is not here")
def test_a_problem():
    data = dekel_singer.problem(3)
    assert data.X.shape == (1000, 784)
    assert data.X_test.shape == (4000, 784)
    assert np.linalg.norm(data.X, axis=1).mean() == pytest.approx(1)
    assert set(data.y) == {-1, 1}
    assert np.array_equal(data.X, dekel_singer.problem(3).X)
