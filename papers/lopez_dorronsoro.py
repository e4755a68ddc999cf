"""López & Dorronsoro: slacks that count on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from slimsvm import LeastOneNormSVC, LeastSquaresSVC
from slimsvm.linalg.arrays import Array

from . import datasets
from .recipe import Column, Outcomes, Paper, Printed, Recipe, Samples, Task, by_row_and_column, printed
from .result import Result

PAPER = Paper(
    "lopez_dorronsoro",
    "López & Dorronsoro",
    "Least 1-Norm SVMs: a New SVM Variant between Standard and LS-SVMs",
    "ESANN",
    2010,
)

MACHINES: dict[str, Any] = {"LS": LeastSquaresSVC, "L1N": LeastOneNormSVC}

# --- Table 2: four sets ---------------------------------------------------------------------------

RUNS, QUICK_RUNS = 100, 5
OWN_CHOICES = 50  # splits of each set that choose settings themselves
FILES = {"titanic": "titanic", "heart": "heart", "cancer": "breast-cancer", "german": "german"}
CHECKED = ("heart", "cancer")  # whose choice is made again
SIGMAS = tuple(k / 2 for k in range(9))  # as powers of 10; the paper gives ranges, not steps
COSTS = tuple(k / 2 for k in range(5))
# What 10 times 10-fold cross-validation over the whole set chooses, the smallest of equals: sigma and C as powers of
# 10. The tasks "choice" do that again on the two smallest sets, and the table shows how far from the best these are.
CHOSEN = {
    ("titanic", "LS"): (0.0, 0.0),
    ("titanic", "L1N"): (0.0, 0.0),
    ("heart", "LS"): (2.5, 0.0),
    ("heart", "L1N"): (2.5, 0.0),
    ("cancer", "LS"): (1.5, 0.0),
    ("cancer", "L1N"): (1.5, 0.0),
    ("german", "LS"): (1.5, 0.0),
    ("german", "L1N"): (2.5, 2.0),
}
OWN = ", chosen on training rows"


def _columns(machine: str) -> tuple[str, ...]:
    return tuple(f"{machine} {what}" for what in ("error, %", "vectors", "iterations", "above the best choice, %"))


DISTINCT = "L1N vectors that differ"


def made(machine: str, sigma: float, C: float) -> Any:
    """The machine at powers of 10 for sigma, of exp(-d²/sigma), and C."""
    return MACHINES[machine](C=10**C, gamma=10**-sigma, n_jobs=1)


def smo(K: Array, y: Array, C: float, machine: str, tol: float = 1e-3, most: int = 1_000_000) -> tuple[Array, int]:
    """The paper's algorithm from a = 0: signed duals a, and iterations. The pair is the one that violates most."""
    least = machine == "L1N"
    K = K if least else K + np.eye(len(y)) / C
    limit = C if least else math.inf
    a, gradient = np.zeros(len(y)), -y.astype(float)
    falls, rises = np.ones(len(y), bool), np.ones(len(y), bool)
    for done in range(most):
        u = int(np.where(falls, gradient, -np.inf).argmax())
        v = int(np.where(rises, gradient, np.inf).argmin())
        apart = gradient[u] - gradient[v]
        if apart <= tol:
            return a, done
        curvature = K[u, u] + K[v, v] - 2 * K[u, v]
        room_u, room_v = limit + a[u], limit - a[v]
        step = min(apart / curvature if curvature > 1e-12 else math.inf, room_u, room_v)
        a[u] = -limit if step == room_u else a[u] - step
        a[v] = limit if step == room_v else a[v] + step
        gradient += step * (K[v] - K[u])
        for i in (u, v):
            falls[i], rises[i] = a[i] > -limit, a[i] < limit
    return a, most


def split_of(name: str, k: int) -> dict[str, dict[str, float]]:
    """Both machines on a split: errors of ours, solved; vectors and iterations of the paper's algorithm."""
    return compared(name, datasets.load(FILES[name], split=k))


def compared(name: str, data: datasets.Split) -> dict[str, dict[str, float]]:
    """As `split_of`, on rows that are given."""
    numbers: dict[str, float] = {}
    squares = (data.X**2).sum(axis=1)
    squares = np.maximum(squares[:, None] + squares - 2 * data.X @ data.X.T, 0)
    for machine in MACHINES:
        sigma, C = CHOSEN[name, machine]
        error, vectors, iterations, _ = _columns(machine)
        model = made(machine, sigma, C).fit(data.X, data.y)
        a, count = smo(np.exp(-squares / 10**sigma), data.y, 10**C, machine)
        numbers |= {error: data.error(model), vectors: int(np.count_nonzero(a)), iterations: count}
        if machine == "L1N":
            numbers[DISTINCT] = model.n_vectors_
    return {name: numbers}


def own_choice(name: str, k: int) -> dict[str, dict[str, float]]:
    """Errors with the settings that cross-validation chooses on the training rows of the split."""
    data = datasets.load(FILES[name], split=k)
    numbers = {}
    for machine in MACHINES:
        errors = {(s, C): validated(machine, s, C, data.X, data.y, 5, 1, k) for s in SIGMAS for C in COSTS}
        best = min(errors, key=lambda place: errors[place])
        numbers[_columns(machine)[0]] = data.error(made(machine, *best).fit(data.X, data.y))
    return {name + OWN: numbers}


def choice(name: str, machine: str, sigma: float) -> list[float]:
    """Cross-validation over the whole set, 10 times 10 parts, for each C."""
    data = datasets.load(FILES[name])
    return [validated(machine, sigma, C, data.X, data.y, 10, 10, 0) for C in COSTS]


def validated(machine: str, sigma: float, C: float, X: Array, y: Array, parts: int, times: int, seed: int) -> float:
    """Mean error over the parts, in percent."""
    found = []
    for train, test in RepeatedStratifiedKFold(n_splits=parts, n_repeats=times, random_state=seed).split(X, y):
        rows, labels, counts = merged(X[train], y[train])
        model = made(machine, sigma, C).fit(rows, labels, sample_weight=counts)
        found.append(100 * np.mean(model.predict(X[test]) != y[test]))
    return float(np.mean(found))


def merged(X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Equal rows of a class once, with their number as weight: the same problem, and a small one for titanic."""
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    return rows[:, :-1], rows[:, -1].astype(int), counts.astype(float)


def table_2_tasks() -> Iterator[Task]:
    for name, file in FILES.items():
        for k in range(RUNS):
            yield Task(f"{name}, split {k}", split_of, (name, k), (file,), quick=k < QUICK_RUNS)
    for name, file in FILES.items():
        for k in range(OWN_CHOICES):
            quick = name in ("titanic", "heart") and k < QUICK_RUNS
            yield Task(f"own choice, {name}, split {k}", own_choice, (name, k), (file,), quick)
    for name in CHECKED:
        for machine in MACHINES:
            for sigma in SIGMAS:
                yield Task(f"choice, {name}, {machine}, {sigma}", choice, (name, machine, sigma), (FILES[name],))


def gather(outcomes: Outcomes) -> Samples:
    """Splits as they are; of the choices, how far above the best the chosen one is."""
    of_splits = {name: found for name, found in outcomes.items() if not name.startswith("choice, ")}
    found = by_row_and_column(of_splits)
    for name, machine in CHOSEN:
        errors = choices(outcomes, name, machine)
        if len(errors) == len(SIGMAS) * len(COSTS):  # the best of some would say nothing
            above = errors[CHOSEN[name, machine]] - min(errors.values())
            found[name, _columns(machine)[3]] = [above]
    return found


def choices(outcomes: Outcomes, name: str, machine: str) -> dict[tuple[float, float], float]:
    """Cross-validation errors by sigma and C, as far as they were measured."""
    lines = {sigma: outcomes.get(f"choice, {name}, {machine}, {sigma}", ()) for sigma in SIGMAS}
    return {(sigma, C): error for sigma, line in lines.items() for C, error in zip(COSTS, line, strict=False)}


_LS, _L1N = (_columns(machine) for machine in MACHINES)
_NUMBERS = {
    "titanic": ((22.4, 1.0), (150.0, 0.0), (390.1, 14.7), (22.4, 1.0), (71.4, 9.8), (53.7, 6.1)),
    "heart": ((15.6, 3.2), (169.9, 0.3), (261.3, 7.8), (15.6, 3.5), (169.9, 0.3), (120.1, 14.7)),
    "cancer": ((25.7, 4.5), (199.8, 0.5), (424.6, 7.9), (25.9, 4.5), (195.9, 2.3), (3510.7, 701.9)),
    "german": ((23.3, 2.1), (699.4, 0.8), (3329.8, 38.0), (23.3, 2.2), (699.9, 0.3), (16167.4, 1419.3)),
}
_PRINTED = {name: [Printed(*number, RUNS) for number in numbers] for name, numbers in _NUMBERS.items()}


def _settings() -> str:
    texts = [f"{name} {machine} {10**s:.3g}, {10**C:.3g}" for (name, machine), (s, C) in CHOSEN.items()]
    return "; ".join(texts)


TABLE_2 = Recipe(
    name="lopez_dorronsoro-table-2",
    paper=PAPER,
    title="Table 2: least squares and the least 1-norm on four sets",
    protocol=(
        f"{RUNS} splits of each set as in the paper: the 10 published ones that are here, others drawn at random in "
        "the same sizes. Kernel exp(-d²/sigma). The paper takes sigma in 1 ... 10^4 and C in 1 ... 100 by 10 times "
        "10-fold cross-validation over the whole set, test rows included, and prints neither the steps nor the choice. "
        f"Here: steps of half a power of ten, the smallest of equals (sigma, C): {_settings()}; "
        "made again here for heart and cancer. Rows 'chosen on "
        f"training rows' choose anew for each of {OWN_CHOICES} splits, by 5-fold cross-validation without its test "
        "rows: not the paper's protocol, so not compared with its numbers. Errors are of `LeastSquaresSVC` and "
        "`LeastOneNormSVC`, solved to a duality gap of 0.1 %. Vectors and iterations are of the paper's own algorithm, "
        "SMO by most violating pairs from zero to a violation of 0.001, written again here: rows that it never touches "
        "count as left out. Iterations depend on sigma and C, so they are shown and not judged."
    ),
    tasks=table_2_tasks,
    columns=(
        Column(_LS[0], "low"),
        Column(_LS[1]),
        Column(_LS[2], judged=False),
        Column(_LS[3], step=0.01),
        Column(_L1N[0], "low"),
        Column(_L1N[1]),
        Column(_L1N[2], judged=False),
        Column(_L1N[3], step=0.01),
        Column(DISTINCT),
    ),
    rows=tuple(name + end for name in FILES for end in ("", OWN)),
    printed=printed((*_LS[:3], *_L1N[:3]), _PRINTED),
    runs=RUNS,
    gather=gather,
    reasons={
        ("german", _LS[1]): (
            "left out are rows that SMO never touches: as few at three other C and sigma that were tried (699.65 to "
            "699.75 are left, 60 splits). If weights below 0.001 counted as zero, 699.1 would be left"
        ),
        ("german", _L1N[0]): (
            "90 of the 100 splits are not the paper's. Settings that validate within 0.05 % of this one, such as "
            "(31.6, 3.16) and (100, 31.6), have errors of 23.9 and 24.1 on the same splits"
        ),
        ("cancer", _L1N[1]): (
            "equal rows share a weight, and which of them SMO leaves at zero depends on its path: 196.2 to 197.2 for "
            "other C and sigma near the chosen ones, 197.0 with the rows in reverse order"
        ),
    },
)

# --- Figure 1: outliers ---------------------------------------------------------------------------

DRAWS, QUICK_DRAWS = 200, 50
OF_A_CLASS = 20
CENTRES = {1: (0.0, 0.0), -1: (5.0, 2.0)}
TURNED, MOVED, ERROR, ERROR_AFTER = "turned by, degrees", "moved by", "error, %", "error with outliers, %"


def toy(seed: int) -> tuple[Array, Array, Array]:
    """Points of two classes, their labels, and the labels when one point of each class has the other's."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, -1], OF_A_CLASS)
    X = rng.normal(size=(2 * OF_A_CLASS, 2)) + np.array([CENTRES[label] for label in y])
    switched = y.copy()
    switched[rng.integers(OF_A_CLASS) + np.array([0, OF_A_CLASS])] *= -1
    return X, y, switched


def toy_draw(seed: int) -> dict[str, Any]:
    """The lines of both machines with and without outliers, and how far they are apart."""
    X, y, switched = toy(seed)
    found: dict[str, Any] = {"X": X.round(4).tolist(), "y": y.tolist(), "switched": switched.tolist(), "lines": {}}
    rows = {}
    for name, machine in MACHINES.items():
        lines = []
        for labels in (y, switched):
            model = machine(C=1.0, kernel="linear", tol=1e-6, n_jobs=1).fit(X, labels)
            lines.append([*(model.vector_coef_ @ model.vectors_)[0].tolist(), float(model.intercept_[0])])
        found["lines"][name] = lines
        before, after = (np.array(line) for line in lines)
        rows[name] = {
            TURNED: angle(before[:2], after[:2]),
            MOVED: abs(middle(before) - middle(after)),
            ERROR: true_error(before),
            ERROR_AFTER: true_error(after),
        }
    rows["LS less L1N"] = {column: rows["LS"][column] - rows["L1N"][column] for column in rows["LS"]}
    return found | {"rows": rows}


def angle(first: Array, second: Array) -> float:
    """Between two directions, in degrees."""
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    return math.degrees(math.acos(min(max(float(cosine), -1.0), 1.0)))


def middle(line: Array) -> float:
    """Where the line crosses the way from one centre to the other, in units of the plane from the first."""
    start, end = (np.array(CENTRES[label]) for label in (1, -1))
    values = [float(line[:2] @ centre + line[2]) for centre in (start, end)]
    return values[0] / (values[0] - values[1]) * float(np.linalg.norm(end - start))


def true_error(line: Array) -> float:
    """Error over the distributions that the points come from, in percent."""
    far = [label * (line[:2] @ np.array(centre) + line[2]) for label, centre in CENTRES.items()]
    size = math.sqrt(2) * float(np.linalg.norm(line[:2]))
    return 100 * float(np.mean([math.erfc(value / size) / 2 for value in far]))


def figure_1_tasks() -> Iterator[Task]:
    for seed in range(DRAWS):
        yield Task(f"draw {seed}", toy_draw, (seed,), quick=seed < QUICK_DRAWS)


def gather_draws(outcomes: Outcomes) -> Samples:
    return by_row_and_column({name: found["rows"] for name, found in outcomes.items()})


def typical(outcomes: Outcomes) -> Any:
    """The draw with the median of how much further one line turns than the other."""
    order = sorted(outcomes.values(), key=lambda found: found["rows"]["LS less L1N"][TURNED])
    return order[len(order) // 2]


def draw(figure: Any, result: Result) -> None:
    """A draw in the middle of all: above as it is, below with outliers; on the left LS, on the right L1N."""
    found = typical(result.outcomes)
    X, y = np.array(found["X"]), np.array(found["y"])
    figure.set_size_inches(8.0, 5.4)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    low, high = X.min(axis=0) - 0.7, X.max(axis=0) + 0.7
    plane = np.meshgrid(np.linspace(low[0], high[0], 60), np.linspace(low[1], high[1], 60))
    for column, (name, lines) in zip(axes.T, found["lines"].items(), strict=True):
        for axis, line, labels in zip(column, lines, (y, np.array(found["switched"])), strict=True):
            f = line[0] * plane[0] + line[1] * plane[1] + line[2]
            axis.contour(*plane, f, levels=(-1, 0, 1), colors="black", linestyles=("--", "-", "--"), linewidths=1)
            for label, marker, colour in ((1, "o", "#0072b2"), (-1, "s", "#d55e00")):
                axis.scatter(*X[labels == label].T, marker=marker, color=colour, s=20)
            wrong = labels != y
            axis.scatter(*X[wrong].T, s=110, facecolors="none", edgecolors="black", linewidths=1.2)
            axis.set_title(f"{name}, two labels switched" if wrong.any() else name)
            axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")


FIGURE_1 = Recipe(
    name="lopez_dorronsoro-figure-1",
    paper=PAPER,
    title="Figure 1: outliers",
    protocol=(
        f"{OF_A_CLASS} points of each class, unit Gaussians around (0, 0) and (5, 2), linear kernel, C = 1; then the "
        "labels of one random point of each class are switched. The paper shows one draw and says in words that the "
        f"line of LS turns much and that of L1N less. Here: means over {DRAWS} draws; the picture is the draw with the "
        "median difference of the turns. Moved: along the way between the centres. Errors are exact, over the two "
        "Gaussians. In the picture solid lines are boundaries, dashed ones where the decision is -1 and 1; rings mark "
        "switched labels."
    ),
    tasks=figure_1_tasks,
    columns=(
        Column(TURNED, step=0.1),
        Column(MOVED, step=0.01),
        Column(ERROR, step=0.01),
        Column(ERROR_AFTER, step=0.01),
    ),
    rows=(*MACHINES, "LS less L1N"),
    gather=gather_draws,
    draw=draw,
    row_name="machine",
)

RECIPES = (TABLE_2, FIGURE_1)
