"""The examples of the gallery run as they are, leave nothing behind, and what their text says is so."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem.removeprefix("plot_") for path in EXAMPLES.glob("plot_*.py"))


def run(name):
    """The names that an example defines, with what fits warn of as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


# --- what the texts say -----------------------------------------------------------------------------------------------


def boundary(said):
    errors = said["errors"]
    assert errors[2] > 2 * errors[4]
    assert errors[4] > errors[8]
    assert max(errors[4], errors[8], errors[16]) <= said["full_error"]


def budget(said):
    for size, *models in zip(said["budgets"], *said["models"].values(), strict=True):
        soft, *hard = (model.n_vectors_ for model in models)
        assert soft > 5 * size
        assert hard == [size] * 3
    at_20 = {name: models[2].score(said["X_test"], said["y_test"]) for name, models in said["models"].items()}
    assert at_20['hard="learn"'] > at_20['hard="select"'] > at_20["largest coefficients"]
    assert at_20['hard="learn"'] > at_20["soft"] - 0.005


def c(said):
    flash = said["flash"]
    assert flash["slim, int8"] < flash["slim, float32"] < 32 * 1024 < flash["full, int8"] < flash["full, float32"]
    assert all(share >= 0.99 for share in said["same"].values())
    assert list(said["same"]) == (list(flash) if said["compiler"] else [])


def compress(said):
    assert said["agreement"] >= 0.99
    nearest, decisions, labels = (models[0] for models in said["found"].values())
    expected = said["decided"]
    agree = [np.mean(model.predict(said["X_test"]) == expected) for model in (nearest, decisions, labels)]
    assert min(agree[1:]) > agree[0] + 0.05


def digits(said):
    assert said["scores"]["learned"] > said["scores"]["drawn"] + 0.05
    assert said["eight"].shape == (64,)


def frontier(said):
    cancer, board, digits = said["frontiers"].values()

    def lost(found, size):
        """In standard errors, against the full machine."""
        at = found.sizes.index(size)
        return (found.full.score - found.curve.scores[at]) / found.curve.standard_errors[at]

    assert lost(cancer, 4) < 1
    assert lost(board, 32) > 3
    assert board.best_size() > 36
    assert lost(digits, 8) > 2
    assert lost(digits, 32) < 1
    assert said["small"].model_bytes_ <= 4096


def kernel(said):
    assert said["slope"] == pytest.approx(said["difference"], rel=1e-5)
    assert max(said["errors"]["ours"], said["errors"]["two"]) < said["errors"]["rbf"] / 2
    assert said["slim"].n_vectors_ == 2
    X, shifted = said["X"][:5], np.roll(said["X"][:5], 7, axis=1)
    np.testing.assert_allclose(said["slim"].decision_function(X), said["slim"].decision_function(shifted), rtol=1e-9)


def lp(said):
    assert said["vectors"]["simple boundary"].max() <= 6
    svm, errors = said["svms"]["wavy boundary"], said["errors"]["wavy boundary"]
    assert svm.score(said["X_test"], said["y_test"]) > 1 - errors[-1]
    quarter = said["vectors"]["wavy boundary"] <= len(svm.support_) / 4
    assert errors[quarter].min() < 1 - svm.score(said["X_test"], said["y_test"]) + 0.01


def outliers(said):
    last = {name: errors[-1] for name, errors in said["errors"].items()}
    assert min(last["sum of squares"], last["least squares"]) > 2 * max(last["sum of slacks"], last["least 1-norm"])
    assert min(said["many"].values()) > 0.25


def reliability(said):
    for vectors in (10, 40):
        slim, svc = (
            said["shown"][f"SlimSVC, {vectors} vectors", vectors],
            said["shown"]["SVC(probability=True)", vectors],
        )
        assert slim.log_loss < svc.log_loss
    assert said["shown"]["SlimSVC, 10 vectors", 10].ece < 0.02


def report(said):
    assert said["found"].best_size() <= 8
    assert said["page"].startswith("<!")
    framed = said["Framed"](said["page"])._repr_html_()
    assert framed.count('"') == 6  # the page within is escaped


def rvm(said):
    grow, *stay = (counts.mean(axis=1) for counts in said["counts"].values())
    assert grow[-1] > 4 * grow[0]
    assert all(counts.max() < 10 for counts in stay)
    svm, *others = (errors[-1].mean() for errors in said["errors"].values())
    assert max(others) < svm + 0.01


def scales(said):
    errors = said["errors"]
    assert max(errors["10 vectors, learned scales"], errors["25 inputs"]) < errors["SVC"] < errors["10 vectors, plain"]
    made = {(place, said["LETTERS"].index(letter)) for p in ("DONOR", "ACCEPTOR") for place, letter in said[p].items()}
    found = {divmod(int(number), 4) for number in said["largest"]}
    assert len(made & found) >= len(made) - 3


def stream(said):
    first, sample, last = (np.array(scores) for scores in said["scores"].values())
    settled = slice(said["CHANGE"] + 3, None)
    assert last[settled].mean() > max(first[settled].mean(), sample[settled].mean()) + 0.1
    assert last[settled].min() > 0.9


def vectors(said):
    assert said["display"].counting.max() == pytest.approx(1)


CLAIMS = {claim.__name__: claim for claim in (boundary, budget, c, compress, digits, frontier, kernel, lp, outliers)}
CLAIMS |= {claim.__name__: claim for claim in (reliability, report, rvm, scales, stream, vectors)}


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder to run in, and matplotlib as it comes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt.switch_backend("Agg")
    with plt.rc_context():
        yield tmp_path
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_example(name, elsewhere, capsys):
    said = run(name)
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    assert not list(elsewhere.iterdir())
    assert 0 < len(capsys.readouterr().out.splitlines()) <= 20
    CLAIMS[name](said)


@pytest.mark.parametrize("name", NAMES)
def test_form(name):
    """A title, a text, and blocks: what the gallery makes a page of."""
    text = (EXAMPLES / f"plot_{name}.py").read_text()
    title, line, rest = re.match(r'"""\n(.+)\n(=+)\n\n(.+?)"""', text, flags=re.DOTALL).groups()
    assert len(title) == len(line)
    assert len(rest.split()) > 20
    assert "# %%\n" in text


def test_style(elsewhere):
    """matplotlib reads the style of the gallery: nothing behind pictures, ink that is neither light nor dark."""
    plt.style.use(EXAMPLES / "gallery.mplstyle")
    assert plt.rcParams["figure.facecolor"] == plt.rcParams["axes.facecolor"] == "none"
    red, green, blue = plt.matplotlib.colors.to_rgb(plt.rcParams["text.color"])
    assert 0.4 < min(red, green, blue) <= max(red, green, blue) < 0.6
