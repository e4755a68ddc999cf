"""The duality gap is a proof: recomputed in float64 numpy from the fitted attributes, it is the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import kernel_table
import reference
import slack_table
from problems import MACHINES, ONE_OF_EACH, all_duals, blobs, check_optimal, machine_name, three_classes
from slimsvm import AnyNormSVC, kernels, losses, slacks
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.solvers import certificate

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
row_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def recomputed(model, X, y, C, gamma):
    """Primal, dual and gap from vectors_, vector_coef_ and intercept_ alone: a stranger could do this."""
    slack = slacks.resolve(model.slack)
    K = reference.kernel_matrix("rbf", X, X, gamma=gamma)
    K_vectors = reference.kernel_matrix("rbf", X, model.vectors_, gamma=gamma)
    f, norm = K_vectors @ model.vector_coef_[0], 0.0
    a = all_duals(model, len(y))
    norm = model.vector_coef_[0] @ f[model.support_]
    assert norm == pytest.approx(a @ K @ a, rel=1e-9)
    primal = norm / 2 + reference.loss(slack, y, C, f, model.intercept_[0], model.constraint)
    dual = y @ a - norm / 2 - (slack_table.entry_of(slack).ridge(C, np.ones(len(y))) @ a**2) / 2
    return primal, dual, (primal - dual) / abs(dual)


@row_types
@pytest.mark.parametrize("machine", ONE_OF_EACH[::2], ids=machine_name)
def test_gap_of_a_hard_problem(machine, dtype):
    """C = 1000 on noisy labels: with duals this large, float32 rows alone claim more than they reach."""
    slack, constraint = machine
    X, y = blobs(1500, d=8, seed=1, noise=0.3)
    model = AnyNormSVC(slack, constraint, C=1000.0, gamma=0.05).fit(X.astype(dtype), y)
    primal, _, gap = recomputed(model, X, y, 1000.0, 0.05)
    assert gap <= model.tol
    assert gap == pytest.approx(model.duality_gap_[0], rel=1e-3, abs=1e-9)
    assert primal == pytest.approx(model.objective_[0], rel=1e-9)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("machine", ONE_OF_EACH, ids=machine_name)
def test_gap_is_at_most_tol(machine, tol):
    slack, constraint = machine
    X, y = blobs(200, seed=2)
    model = AnyNormSVC(slack, constraint, C=10.0, gamma=0.3, tol=tol).fit(X, y)
    check_optimal(model, reference.kernel_matrix("rbf", X, X, gamma=0.3), y, 10.0)


@row_types
@pytest.mark.parametrize("n", [120, 700])
@machines
def test_common_offset_in_the_features(machine, n, dtype):
    """The Gaussian kernel sees differences only: adding 10^4 to every feature is the same problem."""
    slack, constraint = machine
    X, y = blobs(n, seed=3)
    far = (X + 1e4).astype(dtype)
    np.testing.assert_array_equal(far.astype(np.float64) - 1e4, X)  # nothing is lost by the shift itself
    model = AnyNormSVC(slack, constraint, C=10.0, gamma=0.3).fit(far, y)
    K = reference.kernel_matrix("rbf", X, X, gamma=0.3)
    check_optimal(model, K, y, 10.0)
    expected = K @ all_duals(model, n) + model.intercept_[0]
    size = np.abs(model.vector_coef_).sum()
    np.testing.assert_allclose(model.decision_function(far), expected, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("kernel", kernel_table.names(radial=True))
def test_predictions_with_a_huge_offset(kernel):
    """Time stamps: float64 holds them exactly. Training takes the offset out, so must prediction."""
    X, y = blobs(100, seed=4)
    far = X + 2.0**30
    model = AnyNormSVC(kernel=kernel, C=10.0, gamma=0.3).fit(far, y)
    K = reference.kernel_matrix(kernel, X, X, gamma=0.3)
    check_optimal(model, K, y, 10.0)
    expected = K @ all_duals(model, 100) + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(far), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.kernel_(far, far), K, rtol=0, atol=1e-9)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_each_of_several_machines_is_certified(multi_class):
    X, labels = three_classes()
    model = AnyNormSVC(C=5.0, gamma=0.5, tol=1e-6, multi_class=multi_class).fit(X, labels)
    pairs = [(0, 1), (0, 2), (1, 2)] if multi_class == "ovo" else [(c, None) for c in range(3)]
    for output, (first, second) in enumerate(pairs):
        rows = np.isin(labels, (first, second)) if second is not None else np.full(len(labels), True)
        y = np.where(labels[rows] == first, 1.0, -1.0)
        K = reference.kernel_matrix("rbf", X[rows], X[rows], gamma=0.5)
        a = all_duals(model, len(labels), output)
        assert not a[~rows].any()
        slack = slacks.resolve(model.slack)
        primal, _, gap = reference.certificate(K, y, a[rows], model.intercept_[output], slack, 5.0, "inequality")
        assert gap <= 1e-6
        assert gap == pytest.approx(model.duality_gap_[output], abs=1e-9)
        assert primal == pytest.approx(model.objective_[output], rel=1e-9)


def true_gap(model, X, y, C, gamma, slack):
    """Objective and relative gap of the returned model, in long double, kernel by differences."""
    X, vectors = (np.asarray(rows, dtype=np.longdouble) for rows in (X, model.vectors_))
    K = np.exp(-np.longdouble(gamma) * sum((X[:, k, None] - vectors[:, k]) ** 2 for k in range(X.shape[1])))
    a = model.vector_coef_[0].astype(np.longdouble)
    f, at = K @ a, model.support_
    xi = np.maximum(0, 1 - y * (f + model.intercept_[0]))
    loss, ridge = (C * xi.sum(), 0.0) if slack == "l1" else (C / 2 * (xi**2).sum(), 1 / C)
    norm = a @ f[at]
    primal, dual = norm / 2 + loss, y[at] @ a - norm / 2 - ridge * (a @ a) / 2
    assert abs(a.sum()) <= 1e-12 * abs(a).sum()
    return float(primal), float((primal - dual) / dual)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@row_types
@pytest.mark.parametrize("size", [1.0, 1e6, 1e8])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_one_large_column(slack, C, size, dtype, container):
    """A column of 0 and 10^6: products of rows lose all the digits of the others."""
    rng = np.random.default_rng(0)
    X = np.c_[size * rng.integers(0, 2, 60), rng.standard_normal((60, 2))].astype(dtype)
    y = np.where(X[:, 1] + rng.standard_normal(60) > 0, 1, -1)
    model = AnyNormSVC(slack, C=C, gamma=0.5).fit(container(X), y)
    if container is sp.csr_array:
        model.vectors_ = model.vectors_.toarray()
    primal, gap = true_gap(model, X, y, C, 0.5, slack)
    assert gap <= 1e-3
    assert gap == pytest.approx(model.duality_gap_[0], abs=1e-9)
    assert primal == pytest.approx(model.objective_[0], rel=1e-9)


def wide(n, rng):
    """256 columns, clusters: few vectors, most rows clear of their margin."""
    centres = rng.standard_normal((20, 256))
    which = rng.integers(0, 20, n)
    return centres[which] + 0.5 * rng.standard_normal((n, 256)), np.where(which % 2, 1, -1)


FAR = {
    "narrow": lambda rng: labelled_line(rng, 1500, 4),
    "wide": lambda rng: wide(1500, rng),
    "sparse": lambda rng: sparse_line(rng, 1500, 60),
}


def labelled_line(rng, n, d):
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.1 * rng.standard_normal(n) > 0, 1, -1)


def sparse_line(rng, n, d):
    X = (rng.random((n, d)) < 0.2) * 1.0
    score = X @ rng.standard_normal(d)
    return sp.csr_array(X), np.where(score > np.median(score), 1, -1)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("case", FAR)
def test_rows_far_from_the_margin(case, C):
    """Their values are not all computed in float64: none may look better than it is, and the objective stays true."""
    X, y = FAR[case](np.random.default_rng(0))
    n, gamma = len(y), (0.2 if case == "wide" else 1.0) / X.shape[1]
    order = np.argsort(y, kind="stable")
    kernel = kernels.Gaussian(gamma)
    machine = kernel.training_matrix(X, order, [int((y < 0).sum()), int((y > 0).sum())], 1 << 28, 1)
    y = y[order].astype(float)
    found = machine.solve([0, 1], y, np.minimum(0, C * y), np.maximum(0, C * y), np.zeros(n), None, np.inf, 1e-3)
    assert found["converged"]
    assert not found["double_rows"]
    dense = np.asarray(X.toarray() if sp.issparse(X) else X)[order]
    squares = np.einsum("ij,ij->i", dense, dense)
    f = np.exp(-gamma * (squares[:, None] + squares - 2 * dense @ dense.T)) @ found["duals"]
    assert (y * (f - found["product"]) >= -1e-9 * C).all()
    if C == 1:  # not all were computed, or this test shows nothing
        assert (np.abs(f - found["product"]) > 1e-6).any()
    vectors = found["duals"] != 0
    np.testing.assert_allclose(found["product"][vectors], f[vectors], rtol=0, atol=1e-9 * C)
    model = AnyNormSVC(C=C, gamma=gamma).fit(X, np.where(y[np.argsort(order)] > 0, 1, -1))
    f = model.decision_function(X).ravel() * y[np.argsort(order)]
    a = all_duals(model, n)
    primal = model.objective_[0] - C * np.maximum(0, 1 - f).sum()
    norm = a @ (model.decision_function(X).ravel() - model.intercept_[0])
    assert primal == pytest.approx(norm / 2, rel=1e-7)


@pytest.mark.parametrize("loss", [losses.SquaredHinge(), losses.HuberHinge()], ids=lambda loss: type(loss).__name__)
def test_certificate_of_rows_equals_textbook_formula(loss):
    """``1/2 |w|^2 + C sum loss``, and the best multiple of the loss's duals, balanced to sum to zero."""
    rng = np.random.default_rng(0)
    P, Y, C = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=(40, 2)), rng.uniform(0.5, 2, size=(40, 2))
    V = rng.normal(size=(2, 4))
    rows = DenseFeatures(P, RowLabels(Y, C))
    proof = certificate.certify_rows(rows, loss, np.arange(2), V, rounding=False)
    objective, gap = proof.primal, proof.gap
    F = P @ V[:, :3].T + V[:, 3]
    A = loss.duals(F, Y, C)
    for o in range(2):
        a = A[:, o]
        up, down = a[a > 0].sum(), -a[a < 0].sum()
        a = np.where(a > 0, a * min(up, down) / up, a * min(up, down) / down)

        def dual(share, a=a, o=o):
            conjugate = loss.conjugate(share * a[:, None], Y[:, [o]], C[:, [o]])[0]
            return conjugate - 0.5 * share**2 * ((P.T @ a) ** 2).sum()

        primal = 0.5 * (V[o, :3] ** 2).sum() + loss.value(F, Y, C)[o]
        bend, slope, _ = np.polyfit([0.0, 0.5, 1.0], [dual(0.0), dual(0.5), dual(1.0)], 2)  # quadratic in the share
        best = dual(np.clip(-slope / (2 * bend), 0, 1))
        assert objective[o] == pytest.approx(primal, rel=1e-13)
        assert gap[o] == pytest.approx((primal - best) / best, rel=1e-6)
    assert (certificate.certify_rows(rows, loss, np.arange(2), V).gap >= gap).all()
