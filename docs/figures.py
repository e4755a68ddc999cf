"""The pictures of *How it works*: ``python docs/figures.py [FOLDER]`` draws them into docs/figures.

Backgrounds are transparent and lines of a middle brightness, so that they serve light and dark pages.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from slimsvm import AnyNormSVC, SlimSVC
from slimsvm.bases import Learned

HERE = Path(__file__).parent
INK, BLUE, ORANGE, GREEN, PINK = "#808080", "#3f8fd2", "#d9771e", "#1f9e77", "#cc6ea8"
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 2,
    "font.size": 10,
    "svg.hashsalt": "slimsvm",  # the same file each time
}
SOFT = {"C": 3.0, "gamma": 1.0}


def moons(n: int) -> tuple[np.ndarray, np.ndarray]:
    return make_moons(n, noise=0.2, random_state=1)


def panels(count: int, width: float = 8.6, height: float = 3.2, **keys: object) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained", **keys)
    return figure, list(np.atleast_1d(axes))


def plain(axis: Axes) -> None:
    """No ticks, as the place does not matter."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def rows(axis: Axes, X: np.ndarray, y: np.ndarray) -> None:
    for label, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
        axis.scatter(*X[y == label].T, s=12, c=colour, marker=marker, alpha=0.55, lw=0)


def contours(axis: Axes, clf: object, X: np.ndarray, levels: tuple = (-1, 0, 1)) -> None:
    lo, hi = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    x, y = np.meshgrid(np.linspace(lo[0], hi[0], 200), np.linspace(lo[1], hi[1], 200))
    f = clf.decision_function(np.c_[x.ravel(), y.ravel()]).reshape(x.shape)  # type: ignore[attr-defined]
    styles = ["--" if level else "-" for level in levels]
    axis.contour(x, y, f, levels, colors=INK, linestyles=styles, linewidths=1.4)


def margins() -> Figure:
    """Boundary, margins and vectors: of an SVM over all rows, and of five learned vectors."""
    X, y = moons(150)
    figure, axes = panels(2)
    full, slim = AnyNormSVC(**SOFT).fit(X, y), SlimSVC(5, scales="fixed", **SOFT).fit(X, y)
    for axis, clf, title in zip(
        axes, (full, slim), ("all rows may be vectors: {}", "vectors are learned: {}"), strict=True
    ):
        rows(axis, X, y)
        contours(axis, clf, X)
        kept = clf.vectors_
        if clf is full:
            axis.scatter(*kept.T, s=46, facecolors="none", edgecolors=GREEN, lw=1.3)
        else:
            axis.scatter(*kept.T, s=110, c=GREEN, marker="*", lw=0, zorder=3)
        axis.set_title(title.format(clf.n_vectors_))
        plain(axis)
    return figure


def parts() -> Figure:
    """Four parts, one problem, two solvers, one kind of model."""
    figure, (axis,) = panels(1, height=3.3)
    axis.set(xlim=(0, 100), ylim=(0, 40))
    plain(axis)

    def box(x: float, y: float, text: str, colour: str, width: float = 19.0, height: float = 8.0) -> None:
        shape = {"boxstyle": "round,pad=0.2,rounding_size=1.2", "lw": 1.6, "fc": "none", "ec": colour}
        axis.add_patch(FancyBboxPatch((x, y), width, height, **shape))
        axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=colour, fontsize=9.5)

    def arrow(start: tuple[float, float], end: tuple[float, float]) -> None:
        axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK, "lw": 1.3})

    named = (
        "kernel\nhow rows compare",
        "slack or loss\nwhat errors cost",
        "basis\nwhich vectors",
        "regulariser\nwhat $f$ costs",
    )
    for k, text in enumerate(named):
        box(1 + 26 * k, 31, text, BLUE)
        arrow((10.5 + 26 * k, 30.5), (37 + 9 * k, 26.5))
    box(28, 18, r"one problem:  $\Psi R^{-1} \Psi^\top$, a dual set, a ridge", GREEN, width=45)
    for x, text in ((8, "dual solver\nall rows: block SMO"), (67, "primal solver\nfew vectors: passes over rows")):
        arrow((50, 17.5), (x + 13, 12.6))
        box(x, 4, text, ORANGE, width=26)
        arrow((x + 13, 3.5), (50, 0.3))
    axis.text(
        50, -2.2, "vectors, coefficients, bias, and a proof: the duality gap", ha="center", va="center", color=INK
    )
    axis.set_ylim(-4, 40)
    return figure


def costs() -> Figure:
    """What a slack costs, and the set that each cost leaves to two duals."""
    figure, (left, right) = panels(2)
    margin = np.linspace(-1.2, 2.4, 300)
    xi = np.maximum(1 - margin, 0)
    left.plot(margin, xi, color=BLUE, label='"l1": hinge')
    left.plot(margin, xi**2 / 2, color=ORANGE, ls="--", label='"l2": squared hinge')
    left.plot(margin, (1 - margin) ** 2 / 2, color=PINK, ls=":", label='"l2", equality: least squares')
    left.set(xlabel="$y\\,(f(x) + b)$", ylabel="cost", ylim=(-0.05, 2.6), title="what a row costs")
    left.legend(fontsize=8.5, loc="upper right")
    angle = np.linspace(0, np.pi / 2, 100)
    right.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color=BLUE, label="OneNorm: a box")
    right.plot([0, 1, 1, 0.4, 0], [0, 0, 0.4, 1, 1], color=GREEN, ls="-.", label="TopSum: a box and a cap")
    right.plot(np.cos(angle), np.sin(angle), color=ORANGE, ls="--", label="TwoNorm: a ball")
    right.set(
        xlabel=r"$\alpha_1$",
        ylabel=r"$\alpha_2$",
        xlim=(-0.05, 2.1),
        ylim=(-0.05, 1.3),
        title="where its duals may lie",
    )
    right.set(xticks=[0, 1], xticklabels=["0", "$C$"], yticks=[0, 1], yticklabels=["0", "$C$"], aspect="equal")
    right.legend(fontsize=8.5, loc="center left", bbox_to_anchor=(0.53, 0.62))
    return figure


def gap() -> Figure:
    """Primal and dual values of fits that are stopped early: the optimum is between them."""
    X, y = make_moons(1500, noise=0.25, random_state=0)
    figure, (axis,) = panels(1, width=6.2)
    steps = np.unique(np.geomspace(60, 800, 24).astype(int))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for most in steps:
            clf = AnyNormSVC(C=10, gamma=1.0, tol=1e-6, max_iter=int(most)).fit(X, y)
            found.append((clf.objective_[0], clf.objective_[0] / (1 + clf.duality_gap_[0])))
    primal, dual = np.minimum.accumulate(np.array(found)[:, 0]), np.maximum.accumulate(np.array(found)[:, 1])
    axis.fill_between(steps, dual, primal, color=GREEN, alpha=0.18, lw=0, label="the optimum is in here")
    axis.plot(steps, primal, color=ORANGE, label="$P$: the model found")
    axis.plot(steps, dual, color=BLUE, label="$D$: no model is below")
    axis.set(xscale="log", xlabel="steps of the solver", ylabel="objective", title="the gap closes")
    axis.set_ylim(0.6 * primal[-1], 1.3 * primal[-1])
    axis.legend(fontsize=9)
    return figure


def learning() -> Figure:
    """How vectors move, and what that is worth."""
    X, y = moons(300)
    figure, (left, right) = panels(2)
    counts = [0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64, 85]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that learning ended early is the point
        start = SlimSVC(5, "kmeans", scales="fixed", **SOFT).fit(X, y)
        models = [
            SlimSVC(5, Learned(init=start.vectors_, iterations=k), scales="fixed", **SOFT).fit(X, y) for k in counts[1:]
        ]
    models = [start, *models]
    paths = np.array([clf.vectors_ for clf in models])
    rows(left, X, y)
    contours(left, models[-1], X, levels=(0,))
    for path in paths.transpose(1, 0, 2):
        left.plot(*path.T, color=GREEN, lw=1.4)
        left.scatter(*path[0], s=26, facecolors="none", edgecolors=GREEN, zorder=3)
        left.scatter(*path[-1], s=110, c=GREEN, marker="*", lw=0, zorder=3)
    left.set_title("from centres of clusters (o) to where they help (★)")
    every = np.vstack([X, *paths])
    left.set(
        xlim=(every[:, 0].min() - 0.1, every[:, 0].max() + 0.1), ylim=(every[:, 1].min() - 0.1, every[:, 1].max() + 0.1)
    )
    plain(left)
    right.plot(counts, [clf.objective_[0] for clf in models], "o-", ms=4, color=GREEN, label="5 vectors")
    right.axhline(AnyNormSVC("l2", **SOFT).fit(X, y).objective_[0], color=INK, ls=":", label="all rows")
    right.set(
        xlabel="iterations of learning",
        ylabel="objective $W(Z)$",
        ylim=(0, None),
        title="the best classifier over them",
    )
    right.legend()
    return figure


def relevance() -> Figure:
    """Learned scales say which inputs matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    y = (X[:, 2] ** 2 + X[:, 6] > 1).astype(int)
    figure, (axis,) = panels(1, width=6.2, height=2.6)
    clf = SlimSVC(8, scales="learned", C=10, gamma=0.1).fit(X, y)
    sizes = np.abs(clf.kernel_.scales) / np.abs(clf.kernel_.scales).max()
    axis.bar(np.arange(10), sizes, color=[ORANGE if k in (2, 6) else BLUE for k in range(10)])
    axis.set(xlabel="input", ylabel="scale", xticks=range(10), title="labels depend on inputs 2 and 6 only")
    return figure


ALL: dict[str, Callable[[], Figure]] = {
    "margins": margins,
    "parts": parts,
    "costs": costs,
    "gap": gap,
    "learning": learning,
    "scales": relevance,
}


def main(folder: Path) -> None:
    """Every picture, as SVG."""
    folder.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, draw in ALL.items():
            figure = draw()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "figures")
