"""Dekel & Singer, Support Vector Machines on a Budget (NIPS 2006): ``python -m benchmarks.papers.dekel_singer``.

Their section 5. Random splits of the ten digits of MNIST into two groups of five; 1000 rows to train, 4000 to test,
Gaussian kernel with sigma = 1 on rows scaled to an average norm of 1. For each budget B: the L1 machine with
C = 10 / B, the L2 one with C = 10 / sqrt(B), and beside them the standard machine; for B = 60 also the hard budgets,
which keep at most 60 vectors. The table gives test error and the number of vectors.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from slimsvm import AnyNormSVC, BudgetSVC, datasets

BUDGETS = (20, 40, 60, 100, 200, 300, 600, 1000)
N_TRAIN, N_TEST = 1000, 4000


def problem(X: np.ndarray, digit: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """One random group of five digits against the others."""
    rng = np.random.default_rng(seed)
    group = rng.choice(10, 5, replace=False)
    rows = rng.choice(len(X), N_TRAIN + N_TEST, replace=False)
    data = X[rows].astype(np.float64)
    data /= np.linalg.norm(data[:N_TRAIN], axis=1).mean()
    y = np.where(np.isin(digit[rows], group), 1, -1)
    return data[:N_TRAIN], y[:N_TRAIN], data[N_TRAIN:], y[N_TRAIN:]


def measure(model, train_X, train_y, test_X, test_y) -> tuple[float, int]:
    model.fit(train_X, train_y)
    return 100 * float(np.mean(model.predict(test_X) != test_y)), model.n_vectors_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=10, help="random problems (the paper has 50)")
    parser.add_argument("--only", default="", help="machines whose name contains this, such as 'B = 60'")
    options = parser.parse_args()
    try:
        mnist = datasets.load("mnist", download=False)
    except datasets.MissingData as error:
        print(error)
        return
    X, digit = mnist.X, mnist.y
    warnings.simplefilter("ignore")
    machines = {f"hinge, C = {C:g}": AnyNormSVC("l1", C=C, gamma=0.5) for C in (1, 10, 100)}
    for B in BUDGETS:
        machines[f"budget-L1, B = {B}"] = BudgetSVC(B, "l1", C=10 / B, gamma=0.5)
    for B in BUDGETS:
        machines[f"budget-L2, B = {B}"] = BudgetSVC(B, "l2", C=10 / B**0.5, gamma=0.5)
    for hard in ("select", "learn"):
        machines[f"budget-L1, B = 60, {hard}"] = BudgetSVC(60, "l1", hard, C=10 / 60, gamma=0.5)
        machines[f"budget-L2, B = 60, {hard}"] = BudgetSVC(60, "l2", hard, C=10 / 60**0.5, gamma=0.5)
    machines = {name: model for name, model in machines.items() if options.only in name}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in machines}
    for seed in range(options.problems):
        data = problem(X, digit, seed)
        for name, model in machines.items():
            found[name].append(measure(model, *data))
    print(f"MNIST, 5 digits against 5, {N_TRAIN} rows, mean of {options.problems} problems\n")
    print(f"{'machine':<28}{'test error %':>14}{'vectors':>10}")
    for name, results in found.items():
        error, vectors = np.mean(results, axis=0)
        print(f"{name:<28}{error:>14.2f}{vectors:>10.0f}")


if __name__ == "__main__":
    main()
