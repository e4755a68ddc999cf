"""Recipes of Huang, Zheng, King & Lyu: sound, and their smallest pieces run."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

import papers
from papers import datasets
from papers.huang import RECIPES, figure_5, pictures, ripley, sets, table_4, table_5
from papers.huang.originals import EveryCopy, TippingRVM
from papers.result import Result, _fits
from slimsvm import LpSVC

NAMES = [recipe.name for recipe in RECIPES]
BY_NAME = dict(zip(NAMES, RECIPES, strict=True))


def needs(name):
    return pytest.mark.skipif(not datasets.available(name), reason=f"the set {name} is not stored here")


def result(recipe, outcomes):
    return Result(recipe, outcomes, len(list(recipe.tasks())))


def drawn(found):
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    found.recipe.draw(figure, found)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


# --- declarations ---------------------------------------------------------------------------------


def test_all_tables_and_figures_are_there():
    wanted = [f"huang-table-{k}" for k in (1, 2, 4, 5)] + [f"huang-figure-{k}" for k in (1, 3, 4, 5)]
    assert NAMES == wanted == [recipe.name for recipe in papers.recipes("huang")]


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_a_recipe_is_sound(recipe):
    columns = {column.name for column in recipe.columns}
    assert len(set(recipe.rows)) == len(recipe.rows)
    assert {row for row, _ in recipe.printed} <= set(recipe.rows)
    assert {column for _, column in recipe.printed} <= columns
    tasks = list(recipe.tasks())
    assert len({task.name for task in tasks}) == len(tasks)
    assert any(task.quick for task in tasks)
    assert {name for task in tasks for name in task.data} <= set(datasets.names())
    for row, column in recipe.reasons:
        assert any(_fits(place, row, column) for place in recipe.printed), (row, column)


def test_the_last_row_of_table_4_is_the_mean_of_the_printed_ratios():
    """It tells what the scan does not: colon's accuracies."""
    printed = table_4.TABLE_4.printed
    for machine in (sets.L0, sets.RVM):
        for what, digits in ((table_4.RIGHT, 0.01), (table_4.VECTORS, 0.01)):
            column, of = table_4.column(machine, what), table_4.column(sets.SVM, what)
            mean = np.mean([100 * printed[name, column].value / printed[name, of].value for name in sets.ALL])
            assert mean == pytest.approx(printed[table_4.RATIO, column].value, abs=digits)


def test_the_paper_s_mean_speed_follows_from_its_times():
    printed = table_5.TABLE_5.printed
    mean = np.mean([printed[name, table_5.FASTER].value for name in sets.ALL])
    assert mean == pytest.approx(printed[table_5.MEAN, table_5.FASTER].value, abs=0.03)  # times are rounded


# --- pieces ---------------------------------------------------------------------------------------


def test_ripley():
    """A draw of Tables 1 and 2: far fewer vectors than the support vector machine, and no worse than chance."""
    numbers = ripley.one_draw(0, 0.05)
    assert set(numbers) <= set(ripley.TABLE_2.rows)
    for name in ("L0", "RVM", ripley.RVM_FAST):
        row = numbers[ripley.row(name, 0.05)]
        assert row[ripley.VECTORS] < 20
        assert row[ripley.ERROR] < 25
    assert numbers["SVM, 5% flipped"][ripley.VECTORS] > 30


@pytest.mark.parametrize("name", ["huang-figure-1", "huang-figure-3", "huang-figure-4"])
def test_pictures(name):
    recipe = BY_NAME[name]
    shown = [task for task in recipe.tasks() if task.quick][:3]
    found = papers.run(recipe, quick=True) if len(shown) == 1 else result(recipe, _done(shown))
    assert len(drawn(found).axes) == {"huang-figure-1": 2, "huang-figure-3": 3, "huang-figure-4": 9}[name]
    assert found.cells


def _done(tasks):
    return {task.name: task.work(*task.arguments) for task in tasks}


@needs("thyroid")
def test_a_part_of_the_grid():
    outcome = table_4.part_of_grid("thyroid", 0, 0, 0.3)
    assert [len(outcome["scores"][name]) for name in (sets.SVM, sets.L0, sets.RVM, sets.FAST)] == [3, 12, 1, 1]
    assert all(0 <= score[3] <= 100 for scores in outcome["scores"].values() for score in scores)


@needs("thyroid")
def test_seconds_and_rounds():
    for kind in table_5.KINDS:
        assert table_5.seconds("thyroid", 0, kind)["thyroid"][kind] > 0
    found = result(figure_5.FIGURE_5, {"thyroid, fold 0": figure_5.history("thyroid", 0)})
    left = found.outcomes["thyroid, fold 0"]["vectors"]
    assert left == sorted(left, reverse=True)
    assert left[0] == 193
    assert left[-1] < 30
    assert len(drawn(found).axes) == 4


@pytest.mark.parametrize("name", list(sets.ALL))
def test_folds_test_each_row_once(name):
    if not datasets.available(name):
        pytest.skip(f"the set {name} is not stored here")
    one, rows = sets.ALL[name], len(datasets.load(name).y)
    if name in ("twonorm", "lymphoma"):
        assert len(sets.fold(name, 0, 0).y_test) in (rows // one.folds, rows // one.folds + 1)
        return
    assert sum(len(sets.fold(name, 1, part).y_test) for part in range(one.folds)) == rows


# --- the choice of settings -----------------------------------------------------------------------


def made(name="colon", seed=0):
    """Outcomes of all tasks of a set, with random scores."""
    rng = np.random.default_rng(seed)
    found = {}
    for task in table_4.TABLE_4.tasks():
        if task.arguments[0] == name:
            _, division, part, width = task.arguments
            scores: dict[str, list] = {}
            for machine, setting in sets.settings(name, width):
                scores.setdefault(machine, []).append([*setting, rng.uniform(60, 90), int(rng.integers(1, 50)), 0.01])
            found[task.name] = {"set": name, "division": division, "fold": part, "scores": scores}
    return found


def test_a_choice_on_the_same_folds_is_never_worse_than_the_honest_one():
    """Of any scores: the best mean is above that of settings which were chosen without the fold."""
    cells = table_4.gather(made())
    assert len(cells["colon", "L0 right, %"]) == sets.ALL["colon"].divisions
    for machine in table_4.MACHINES:
        column = table_4.column(machine, table_4.RIGHT)
        honest = cells[table_4.OTHER_FOLDS.format("colon"), column]
        assert all(a >= b for a, b in zip(cells["colon", column], honest, strict=True))


def test_the_order_of_tasks_does_not_matter_and_unfinished_divisions_do_not_count():
    outcomes = made()
    backwards = dict(reversed(outcomes.items()))
    assert table_4.gather(backwards) == table_4.gather(outcomes)
    outcomes.pop(next(iter(outcomes)))
    assert len(table_4.gather(outcomes)["colon", "SVM vectors"]) == sets.ALL["colon"].divisions - 1


def test_ratios_need_all_sets():
    some = {**made("colon"), **made("lymphoma")}
    assert not any(row == table_4.RATIO for row, _ in table_4.gather(some))
    every = {key: value for name in sets.ALL for key, value in made(name).items()}
    cells = table_4.gather(every)
    assert len(cells[table_4.RATIO, "L0 vectors"]) == min(one.divisions for one in sets.ALL.values())
    assert {row for row, _ in cells} == set(table_4.TABLE_4.rows)


# --- machines as the paper had them ---------------------------------------------------------------


def test_without_copies_the_paper_s_machine_is_ours():
    X, y = make_moons(80, noise=0.25, random_state=3)
    y = 2 * y - 1
    theirs = EveryCopy(C=1.0, C_alpha=0.2, gamma=1.0, eps=1e-6, max_iter=500).fit(X, y)
    ours = LpSVC(C=1.0, C_alpha=0.2, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-3)
    assert theirs.n_vectors_ == ours.n_vectors_


def test_copies_are_counted_and_cost():
    X, y = make_moons(60, noise=0.25, random_state=0)
    y = 2 * y - 1
    twice = EveryCopy(C=0.5, C_alpha=0.1, gamma=1.0).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    once = EveryCopy(C=1.0, C_alpha=0.2, gamma=1.0).fit(X, y)
    assert (twice.n_vectors_, twice.n_distinct_) == (2 * once.n_vectors_, once.n_distinct_)


def test_tipping_s_first_machine():
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = TippingRVM(gamma=2.0).fit(X, 2 * y - 1)
    assert len(model.support_) < 20
    assert np.mean(model.predict(X) == 2 * y - 1) > 0.9


def test_pictures_show_the_same_rows():
    X, y = pictures.wave(0)
    again = pictures.both(0)
    np.testing.assert_allclose(again["X"], X, atol=1e-4)
    assert again["rows"]["SVM"][pictures.AGREE] == 100
    assert set(y) == {-1, 1}
