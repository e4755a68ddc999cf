"""The search tries the machine that is asked for: its slack, on each kind of basis."""

from __future__ import annotations

import numpy as np
import pytest

import reference_bases as slow
from fuzz.machines import learned
from problems import blobs
from slimsvm import SlimSVC
from small_models import textbook

SLACKS = {"l1": "Hinge", "l2": "SquaredHinge"}
BASES = {
    "learned": learned(5),
    "forward": {"basis": "forward"},
    "kmeans": {"basis": "kmeans"},
    "random": {"basis": "random"},
    "cholesky": {"basis": "cholesky"},
}
every_basis = pytest.mark.parametrize("basis", BASES)


@every_basis
@pytest.mark.parametrize("slack", SLACKS)
def test_the_final_machine_is_the_best_at_the_settings_found(basis, slack):
    X, y = blobs(60, d=2, seed=21)
    model = SlimSVC(4, slack=slack, regularizer="identity", tol=1e-8, **BASES[basis]).fit(X, y)
    results = model.search_results_
    assert model.C_ in results["C"]
    K = textbook(model.kernel_, X, model.vectors_)
    best = slow.machine(K, np.eye(len(model.vectors_)), y, model.C_, SLACKS[slack])
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-6)


@every_basis
def test_another_slack_is_another_search(basis):
    """The same settings, validated for the hinge and for its square: the machines differ, so do their errors."""
    X, y = blobs(120, d=2, seed=22, noise=1.5)
    losses = {}
    for slack in SLACKS:
        model = SlimSVC(4, slack=slack, gamma=0.5, scales="fixed", **BASES[basis]).fit(X, y)
        results = model.search_results_
        losses[slack] = dict(zip(results["C"], results["loss"], strict=True))
    common = sorted(set(losses["l1"]) & set(losses["l2"]))
    assert common
    assert not np.allclose([losses["l1"][C] for C in common], [losses["l2"][C] for C in common], rtol=1e-4)
