"""Wu, Schölkopf & Bakir: Table 1, Figure 1, training times, and what goes beyond the paper."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from papers import Result, datasets, recipes, wu
from papers.wu import beyond, digits, figure_1, methods, table_1, times
from papers.wu.settings import ERROR, RVM_ERROR, RVM_SHARE, VECTORS, at, share
from slimsvm import compress

NAMES = ["wu-table-1", "wu-figure-1", "wu-times", "wu-beyond"]


def outcome(task):
    """What a task of Table 1 may return, made."""
    row, *rest = task.arguments
    if task.work is digits.digit_task:
        kind, draw = rest
        columns = {
            "SVM and reduced sets": [ERROR, *(at(name, r) for name in ("RS", "MRS") for r in (0.05, 0.1))],
            "SLMC": [at(name, r) for name in ("SLMC", "SLMC, squared hinge") for r in (0.05, 0.1)],
            "RSVM": [at(name, r) for name in ("RSVM", "MRSVM") for r in (0.05, 0.1)],
            "RVM": [RVM_ERROR],
        }[kind]
        values = [1.0 if k == row else 0.0 for k in range(10)]
        facts = {"digit": row, "draw": draw, "rows": [row], "SVM vectors": 10, "RVM vectors": 1}
        return {**facts, "values": dict.fromkeys(columns, values)}
    if task.work is table_1.relevant:
        split, width = rest
        numbers = {RVM_SHARE: width, RVM_ERROR: 100 * width}
        return {"set": row, "split": split, "held out": abs(width - 1), "numbers": numbers}
    names = {
        table_1.reduced: ["RS", "MRS", "RS by fixed points"],
        table_1.random_ones: ["RSVM", "MRSVM", "SLMC", "SLMC, squared hinge"],
        table_1.hinge_itself: ["SLMC, hinge itself"],
    }[task.work]
    numbers = {at(name, ratio): 1.0 for name in names for ratio in (0.05, 0.1)}
    return {row: numbers | ({VECTORS: 2.0, ERROR: 3.0} if task.work is table_1.reduced else {})}


# --- declarations ---------------------------------------------------------------------------------


def test_names():
    assert [recipe.name for recipe in recipes("wu")] == NAMES


@pytest.mark.parametrize("recipe", wu.RECIPES, ids=lambda recipe: recipe.name)
def test_tasks_have_names_of_their_own(recipe):
    tasks = list(recipe.tasks())
    assert len({task.name for task in tasks}) == len(tasks)
    assert any(task.quick for task in tasks)
    assert {name for task in tasks for name in task.data} <= set(datasets.names())
    columns = {column.name for column in recipe.columns}
    assert {column for _, column in recipe.printed} <= columns
    assert {row for row, _ in recipe.printed} <= set(recipe.rows)


def test_every_cell_of_table_1_has_tasks():
    recipe = table_1.TABLE_1
    cells = recipe.gather({task.name: outcome(task) for task in recipe.tasks()})
    assert set(recipe.printed) <= set(cells)
    assert {row for row, _ in cells} == set(recipe.rows)
    assert {column for _, column in cells} == {column.name for column in recipe.columns}
    for pattern in recipe.reasons:
        assert any(all(map(fnmatchcase, cell, pattern)) for cell in recipe.printed), pattern
    assert len(cells["banana", ERROR]) == 10
    assert len(cells["image", at("SLMC", 0.05)]) == 9 * table_1.DRAWS


def test_the_table_is_that_of_the_paper():
    """Cells at its corners, and how many there are."""
    printed = table_1.TABLE_1.printed
    assert len(printed) == 7 * 14
    corners = [
        printed["usps", VECTORS],
        printed["image", ERROR],
        printed["usps", RVM_ERROR],
        printed["image", RVM_SHARE],
    ]
    assert [one.value for one in corners] == [2683, 2.8, 5.1, 20.1]
    assert printed["banana", at("SLMC", 0.1)].value == 11.0
    assert printed["german", at("MRSVM", 0.05)].value == 23.9


# --- bringing outcomes together -------------------------------------------------------------------


def test_the_width_of_an_rvm_is_chosen_on_rows_held_out():
    tasks = [task for task in table_1.tasks() if task.work is table_1.relevant]
    cells = table_1.gather({task.name: outcome(task) for task in tasks})
    assert set(cells["banana", RVM_ERROR]) == {100.0}  # of the width 1, whatever the test rows say


def test_the_largest_of_ten_values_is_the_digit():
    rng = np.random.default_rng(0)
    truth, values = rng.integers(10, size=200), rng.normal(size=(10, 200))
    some = [
        {"digit": k, "draw": 0, "rows": np.flatnonzero(truth == k).tolist(), "SVM vectors": k, "values": {ERROR: row}}
        for k, row in enumerate(values.tolist())
    ]
    (ten,) = digits.together(some[::-1])
    assert ten["errors"][ERROR] == pytest.approx(100 * np.mean(values.argmax(axis=0) != truth))
    assert ten["SVM vectors"] == 45
    assert digits.together(some[1:]) == []  # nine digits are no table


def test_seconds_of_digits_are_added():
    found = times.gather({f"usps, digit {k}": {"USPS, SLMC": {times.SECONDS: 1.5}} for k in range(10)})
    assert found == {("USPS, SLMC", times.SECONDS): [15.0]}


# --- methods --------------------------------------------------------------------------------------


def distance(svm, vectors, coef):
    """Squared, in the kernel's space, as a part of the squared norm."""
    X, a, gamma = svm.support_vectors_, svm.dual_coef_[0], svm.gamma
    whole = a @ rbf_kernel(X, gamma=gamma) @ a
    mixed = coef @ rbf_kernel(vectors, X, gamma=gamma) @ a
    return (whole - 2 * mixed + coef @ rbf_kernel(vectors, gamma=gamma) @ coef) / whole


def test_fixed_points_come_nearer_and_joint_descent_is_nearer_still():
    X, y = make_moons(200, noise=0.2, random_state=0)
    svm = SVC(C=10.0, gamma=2.0).fit(X, 2 * y - 1)
    sets = [methods.FixedPoints.of(svm, count) for count in (2, 4, 8)]
    distances = [distance(svm, one.vectors, one.coef) for one in sets]
    assert 1 > distances[0] > distances[1] > distances[2] > 0
    joint = compress(svm, 8, method="reduced_set")
    assert distance(svm, joint.vectors_, joint.vector_coef_[0]) < distances[2]


def test_rsvm_and_mrsvm_have_the_same_vectors():
    X, y = make_moons(200, noise=0.2, random_state=0)
    chosen = methods.rsvm_settings(X[:100], y[:100], 6, 2.0, 0)
    first, second = (make(6, 1, **chosen).fit(X, y) for make in (methods.rsvm, methods.mrsvm))
    np.testing.assert_array_equal(first.vectors_, second.vectors_)


def test_random_vectors_are_from_both_classes_alike():
    """However rare one of them is."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]]
    model = methods.rsvm(9, 0, C=10.0, gamma=2.0).fit(X[rows], y[rows])
    assert sorted(np.bincount(y[rows][model.support_])) == [4, 5]


def test_images_are_blurred_within_their_range():
    X = np.random.default_rng(0).uniform(-1, 1, (3, 256))
    blurred = digits.smoothed(X)
    assert blurred.shape == X.shape
    assert blurred.std() < X.std()
    assert np.abs(blurred).max() <= 1
    np.testing.assert_allclose(digits.smoothed(np.full((1, 256), -1.0)), -1)  # background stays what it is


# --- the smallest pieces ---------------------------------------------------------------------------


def needs(name):
    return pytest.mark.skipif(not datasets.available(name), reason=f"the set {name} is not here")


@needs("titanic")
def test_a_split_of_table_1():
    numbers = table_1.reduced("titanic", 0)["titanic"]
    assert 50 < numbers[VECTORS] < 90
    assert numbers[at("MRS", 0.1)] < 30
    again = table_1.relevant("titanic", 0, 1.0)
    assert again == table_1.relevant("titanic", 0, 1.0)
    assert again["numbers"][RVM_SHARE] < 30


@needs("usps")
def test_figure_1():
    """Twelve vectors do nearly as well as all support vectors, and can be drawn."""
    outcomes = {"all": figure_1.full(), "start 0": figure_1.small(0)}
    result = Result(figure_1.FIGURE_1, outcomes, 2)
    errors = {cell.row: cell.ours for cell in result.cells if cell.column.name == figure_1.ERROR}
    assert errors["SLMC"] <= errors["SVM"] + 1
    matplotlib = pytest.importorskip("matplotlib.figure")
    figure = matplotlib.Figure()
    figure_1.draw(figure, result)
    assert len(figure.axes) == 12


@needs("banana")
def test_a_split_of_the_times():
    found = times.banana(0)
    assert set(found) == {"banana, SVM", "banana, SLMC", "banana, RVM"}
    assert 1 <= found["banana, SLMC"][times.LEARNING] <= 200


@needs("splice")
@pytest.mark.filterwarnings("ignore:learning ended")
def test_beyond():
    found = beyond.splice()
    assert found["splice, vectors learned"][beyond.VECTORS] == 20
    assert found["splice, vectors learned"][beyond.ERROR] < found["splice, SVM"][beyond.ERROR] + 3


def test_at_least_one_vector():
    assert [share(0.05, count) for count in (3, 30, 100)] == [1, 2, 5]
