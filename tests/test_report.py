"""The report is true, complete in itself, harmless, and the same each time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from problems import blobs, three_classes
from slimsvm import AnyNormSVC, CompressedClassifier, RelevanceVectorClassifier, bases, compress, frontier
from slimsvm.export import quantize
from slimsvm.report import provenance, report, write_report
from slimsvm.report.confusion import ConfusionCounts
from small_models import FEW_ITERATIONS, learned, slim

pytestmark = pytest.mark.filterwarnings(FEW_ITERATIONS)

SECTIONS = ["data", "size", "model", "vectors", "mistakes", "calibration", "device", "made"]
VOID = {"meta", "link", "br", "hr", "img"}
HOSTILE = '<script>alert("1")</script>&amp;\'"$title'


class Page(HTMLParser):
    """Elements with their attributes, texts by the element that they are in; tags must match."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    def inside(self, tag):
        return [data for path, data in self.texts if tag in path]

    @property
    def text(self):
        return " ".join(data.strip() for path, data in self.texts if "style" not in path)


@pytest.fixture(scope="module")
def rows():
    """To train on, and to judge by."""
    X, y = blobs(240)
    y = (y > 0).astype(int)
    return X[:140], y[:140], X[140:], y[140:]


@pytest.fixture(scope="module")
def found(rows):
    estimator = make_pipeline(StandardScaler(), slim(probability=True))
    return frontier(*rows[:2], sizes=(2, 4, 8), estimator=estimator)


@pytest.fixture(scope="module")
def page(found, rows):
    return report(found.models[4], *rows[2:], frontier=found, title="Blobs", made={"date": "today", "command": "a b"})


# --- complete in itself ----------------------------------------------------------------------------------------------


def test_a_page_for_every_reader(page):
    """Language, viewport, headings, captions, words for pictures, names that are there once."""
    found = Page(page)
    assert found.all("html") == [{"lang": "en"}]
    assert any(meta.get("name") == "viewport" for meta in found.all("meta"))
    assert found.inside("title")[0] == "Blobs"
    assert len(found.all("h1")) == 1
    assert [section["id"] for section in found.all("section")] == SECTIONS
    assert len(found.all("table")) == len(found.all("caption"))
    assert all(th["scope"] in ("col", "row") for th in found.all("th"))
    ids = Counter(attributes["id"] for _, attributes in found.elements if "id" in attributes)
    assert max(ids.values()) == 1
    for _, attributes in found.elements:
        for name in ("aria-labelledby", "href", "xlink:href"):
            wanted = attributes.get(name) or ""
            if name == "aria-labelledby" and wanted:
                assert wanted in ids
            elif wanted.startswith("#"):
                assert wanted[1:] in ids
    drawings = found.all("svg")
    assert len(drawings) == 3
    assert all(svg["role"] == "img" and svg["aria-labelledby"] for svg in drawings)


def test_nothing_is_loaded_and_nothing_runs(page):
    assert "http" not in page
    assert "@import" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert not re.search(r"url\((?!#)", page)
    assert "<script" not in page
    assert not re.search(r"\son\w+=", page)


def test_pictures_follow_the_page(page):
    """Colours of pictures are the page's variables; sizes are the reader's."""
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    for drawing in drawings:
        assert "var(--ink)" in drawing
        assert "#0b0c0d" not in drawing
        assert not re.search(r"<svg[^>]*(width|height)=", drawing)
        assert "font-family" not in drawing
    assert "prefers-color-scheme: dark" in page


def test_the_same_bytes_each_time(page, found, rows, tmp_path):
    options = {"frontier": found, "title": "Blobs", "made": {"date": "today", "command": "a b"}}
    with matplotlib.style.context("dark_background"):  # the reader's own style is not the report's
        write_report(tmp_path / "again.html", found.models[4], *rows[2:], **options)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_the_same_bytes_in_another_process(tmp_path):
    code = (
        "import sys, numpy as np; from slimsvm import SlimSVC; from slimsvm.report import write_report\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)); y = np.where(X[:, 0] > 0, 'a', 'b')\n"
        "clf = SlimSVC(3, C=1.0, gamma=0.5, scales='fixed', kernel=lambda A, B: A @ B.T, basis='random').fit(X, y)\n"
        "write_report(sys.argv[1], clf, X, y)"
    )
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    exec(code.replace("sys.argv[1]", repr(str(here))), {})
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    subprocess.run([sys.executable, "-c", code, str(there)], check=True, timeout=120, env=environment)
    assert here.read_bytes() == there.read_bytes()


# --- true ------------------------------------------------------------------------------------------------------------


def test_mistakes_are_those_of_scikit_learn():
    X, y = three_classes(150)
    names = np.array(["a", "b", "c"])
    model = slim(4).fit(X[:60], names[y[:60]])
    judged = ConfusionCounts.of(model, model.classes_, X[60:], names[y[60:]])
    predicted = model.predict(X[60:])
    np.testing.assert_array_equal(judged.confusion, confusion_matrix(names[y[60:]], predicted, labels=names))
    expected = precision_recall_fscore_support(names[y[60:]], predicted, labels=names, zero_division=np.nan)
    mine = np.array([line[2:] for line in judged.per_class]).T
    np.testing.assert_allclose(mine, expected[:3])
    assert judged.accuracy == pytest.approx(model.score(X[60:], names[y[60:]]))


@pytest.mark.parametrize(("right", "rows"), [(0, 1), (1, 1), (0, 50), (50, 50), (180, 200)])
def test_the_interval_holds_the_share(right, rows):
    low, high = ConfusionCounts((0, 1), np.array([[right, rows - right], [0, 0]])).interval
    assert 0 <= low <= right / rows <= high <= 1
    assert high - low < 1


def test_what_the_page_says(page, found, rows):
    model, full = found.models[4], found.full.model
    text = Page(page).text
    wrong = int(np.sum(model.predict(rows[2]) != rows[3]))
    assert f"gets {100 - wrong} of 100 rows right" in text
    assert f"{wrong} mistake{'' if wrong == 1 else 's'} on 100 rows" in text
    assert f"The full machine makes {int(np.sum(full.predict(rows[2]) != rows[3]))} mistake" in text
    small = quantize(model)
    assert f"{small.n_bytes:,} bytes" in text
    assert f"{int(np.sum(small.predict(rows[2]) != model.predict(rows[2]))):,} get another answer" in text
    for name in small.parts():
        assert name in text
    assert found.chosen.why in text
    if found.best_size() != 4:
        assert "This report is about the model of 4 vectors" in text
    assert "StandardScaler" in text
    assert "today" in text
    assert "a b" in Page(page).inside("pre")


def test_which_rows_judged_what(page, rows):
    text = Page(page).text
    assert "sizes, in the frontier training rows held out" in re.sub(r"\s+", " ", text)
    assert "the same 100 rows" in text
    alone = Page(report(slim(3).fit(*rows[:2]), *rows[2:])).text
    assert "frontier" not in alone
    assert "this model: mistakes, the integers" in alone


def test_what_it_was_made_with(page, rows):
    text = Page(page).text
    for module in ("numpy", "scipy", "sklearn"):
        assert sys.modules[module].__version__ in text
    assert f"Made by slimsvm {slimsvm.__version__}." in text
    made = {"versions": {"slimsvm": "0.0.7"}, "seed": 12345, "settings": {"vectors": [4, 8]}, "where": {"on": "a ship"}}
    text = Page(report(slim(3).fit(*rows[:2]), *rows[2:], made=made)).text
    for said in ("0.0.7", "12345", "4, 8", "on: a ship"):
        assert said in text
    assert np.__version__ not in text


MADE = {
    "a model": lambda X, y: slim(4, learned(init="forward")).fit(X, y),
    "a pipeline": lambda X, y: make_pipeline(StandardScaler(), slim(4, probability=True)).fit(X, y),
    "a size of a frontier": None,
    "all rows": lambda X, y: AnyNormSVC(C=3.0, class_weight={0: 1, 1: 2}).fit(X, y),
    "compressed": lambda X, y: compress(SVC(C=2.0).fit(X, y), 5),
    "compressed in a pipeline": lambda X, y: compress(make_pipeline(StandardScaler(), SVC()).fit(X, y), 5),
    "compressed with rows": lambda X, y: compress(SVC(C=2.0).fit(X, y), 5, X, y),
    "compressed by an estimator": lambda X, y: CompressedClassifier(SVC(), n_vectors=4, method="refit").fit(X, y),
    "vectors that are given": lambda X, y: slim(basis=bases.Given(X[:3])).fit(X, y),
}


@pytest.mark.parametrize("name", MADE)
def test_its_lines_make_the_model_again(name, rows, found, monkeypatch):
    monkeypatch.setattr("slimsvm.report.device.MAX_ROUNDED_VECTORS", 10)  # quick: this is not about integers
    X, y, X_test, y_test = rows
    given = found if MADE[name] is None else None
    model = found.models[2] if given else MADE[name](X, y)
    page = Page(report(model, X_test, y_test, frontier=given))
    lines = page.inside("pre")[-1]
    names = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    exec(compile(lines, "the report", "exec"), names)
    np.testing.assert_array_equal(names["model"].decision_function(X_test), model.decision_function(X_test))
    assert f"# {model.score(X_test, y_test):.4f} here" in lines


def test_what_cannot_be_made_again_is_said(rows):
    model = slim(3, random_state=None).fit(*rows[:2])
    assert "random_state is None" in Page(report(model, *rows[2:])).text


# --- harmless --------------------------------------------------------------------------------------------------------


def test_names_are_text_and_nothing_else(rows):
    X, y, X_test, y_test = rows
    labels = np.array([HOSTILE, "$no$ & never"], dtype=object)
    model = make_pipeline(StandardScaler(), slim(4, probability=True)).fit(X, labels[y])
    made = {HOSTILE: HOSTILE, "command": HOSTILE, "settings": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}}
    names = [HOSTILE, "$\\frac{", "--><b>", "\N{SNOWMAN}中"]
    source = report(model, X_test, labels[y_test], title=HOSTILE, made=made, names=names)
    page = Page(source)
    assert not page.all("script", "b")
    assert "<script" not in source
    assert "onerror" not in source
    assert page.inside("h1") == [HOSTILE]
    assert HOSTILE in page.inside("th")
    assert "--><b>" in page.text
    assert HOSTILE in page.inside("pre")


# --- every kind of model ---------------------------------------------------------------------------------------------


def table(X, y):
    pandas = pytest.importorskip("pandas")
    found = pandas.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "red", None), "flag": X[:, 2] > 0})
    found.loc[3, "size"] = np.nan
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder())
    steps = ColumnTransformer([("numbers", numbers, ["size"]), ("words", words, ["kind"])], remainder="passthrough")
    return make_pipeline(steps, slim(4)).fit(found, y), found, y


MODELS = {
    "two inputs": lambda X, y: (slim(3).fit(X[:, :2], y), X[:, :2], y),
    "one input, one vector": lambda X, y: (slim(1).fit(X[:, :1], y), X[:, :1], y),
    "string labels": lambda X, y: (slim(3).fit(X, np.array(["no", "yes"])[y]), X, np.array(["no", "yes"])[y]),
    "truth": lambda X, y: (slim(3).fit(X, y == 1), X, y == 1),
    "three classes": lambda X, y: (slim(5, probability=True).fit(*three_classes(90)), *three_classes(60, seed=1)),
    "learned scales": lambda X, y: (slim(3, scales="learned").fit(X, y), X, y),
    "linear": lambda X, y: (slim(2, kernel="linear").fit(X, y), X, y),
    "no integers": lambda X, y: (slim(3, kernel="poly").fit(X, y), X, y),
    "sparse": lambda X, y: (slim(3).fit(sp.csr_array(X), y), sp.csr_array(X), y),
    "relevance": lambda X, y: (RelevanceVectorClassifier().fit(X, y), X, y),
    "outliers": lambda X, y: (compress(OneClassSVM(nu=0.2).fit(X), 5), X, np.where(y == 1, 1, -1)),
    "new labels": lambda X, y: (slim(3, probability=True).fit(X, y), X, np.where(np.arange(len(y)) < 3, 9, y)),
    "one row": lambda X, y: (slim(3).fit(X, y), X[:1], y[:1]),
    "a table": table,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_kind_of_model(name, rows):
    model, X, y = MODELS[name](*rows[:2])
    page = Page(report(model, X, y))
    assert [section["id"] for section in page.all("section")] == [s for s in SECTIONS if s != "size"]
    assert ">nan<" not in page.text


def test_labels_that_are_new_are_mistakes(rows):
    model, X, y = MODELS["new labels"](*rows[:2])
    text = Page(report(model, X, y)).text
    assert "has never seen, and always gets wrong: 9" in text
    assert "Not judged: some rows have labels that the model has never seen" in text


def test_without_probabilities_or_integers(rows):
    model, X, y = MODELS["no integers"](*rows[:2])
    text = Page(report(model, X, y)).text
    assert "fit with probability=True" in text
    assert "There is no form in integers: kernel 'poly' has no fixed-point form" in text


def test_many_vectors_are_counted_not_rounded(rows, monkeypatch):
    model = AnyNormSVC().fit(*rows[:2])
    monkeypatch.setattr("slimsvm.report.device.MAX_ROUNDED_VECTORS", 10)
    text = Page(report(model, *rows[2:])).text
    assert "more than 10 vectors: its answers in integers were not looked at" in text
    assert f"{model.model_bytes_:,} bytes" in text


def test_many_rows_make_no_large_page():
    X, y = blobs(3000, d=2)
    page = report(slim(3).fit(X[:100], y[:100]), X, y)
    assert "800 of 3,000" in Page(page).text
    assert len(page) < 300_000


def test_images():
    X, y = load_digits(return_X_y=True)
    page = report(slim(6, gamma=0.001).fit(X[:150], y[:150]), X[150:250], y[150:250], shape=(8, 8))
    figure = re.search(r'<figure class="images wide">.*?</figure>', page, flags=re.DOTALL).group(0)
    assert figure.count("<image") == 6
    assert "30 of 64" in Page(page).text


def test_a_compressed_model_shows_its_compression(rows):
    small = compress(SVC().fit(*rows[:2]), 5, rows[0])
    text = Page(report(small, *rows[2:])).text
    told = small.compression_
    assert f"{told.vectors_before} → {told.vectors_after}" in text
    assert f"{100 * told.agreement_on_X:.2f}" in text
    assert told.method in text


def test_the_c_header_is_told_of(rows, found):
    model = found.models[4]
    text = Page(report(model, *rows[2:])).text
    assert "from slimsvm.to_c" in text
    for dtype in ("float32", "int8"):
        told = slimsvm.to_c(model, dtype=dtype).report
        line = [dtype, told.flash, told.ram, told.multiply_adds, told.exponentials]
        assert re.search(r"\s+".join(f"{value:,}" if value != dtype else dtype for value in line), text)


@pytest.mark.parametrize("most", [2, 300])
@pytest.mark.parametrize("params", [{}, {"probability": True}, {"kernel": "linear"}, {"scales": "learned"}], ids=str)
@pytest.mark.parametrize("steps", [[], [StandardScaler()]], ids=["alone", "scaled"])
def test_bytes_in_float32_are_those_of_the_header(steps, params, most, rows, monkeypatch):
    """Also where there are so many vectors that no header is written."""
    monkeypatch.setattr("slimsvm.report.device.MAX_ROUNDED_VECTORS", most)
    model = make_pipeline(*steps, slim(4, **params)).fit(*rows[:2])
    told = slimsvm.to_c(model).report
    layer = sum(size for name, size in told.tables.items() if name.startswith("layer_"))
    text = Page(report(model, *rows[2:])).text
    assert f"float32: {told.flash - layer:,}" in text
    assert ("The model itself, without probabilities" in text) == (layer > 0)
    assert (f"Probabilities take {layer:,} bytes in float32" in text) == (layer > 0 and most == 300)


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (lambda X, y: compress(SVR().fit(X, X[:, 0]), 3), {}, "no classes"),
        (lambda X, y: slim(3), {}, "call fit first"),
        (lambda X, y: SVC().fit(X, y), {}, "SVC is a machine of scikit-learn"),
        (lambda X, y: slim(3).fit(X, y), {"frontier": 3}, "what slimsvm.frontier returns"),
        (lambda X, y: slim(3).fit(X, y), {"names": ["a"]}, "1 names for 4 inputs"),
        (lambda X, y: slim(3).fit(X, y), {"shape": (3, 3)}, "height x width = 4"),
    ],
)
def test_what_makes_no_report(make, params, message, rows):
    with pytest.raises(ValueError, match=message):
        report(make(*rows[:2]), *rows[2:], **params)


def test_how_it_was_made_is_a_dictionary(rows):
    with pytest.raises(TypeError, match=r"made='x' \(type str\) must be a dictionary"):
        report(slim(3).fit(*rows[:2]), *rows[2:], made="x")


def test_rows_and_labels_must_be_as_many(rows):
    with pytest.raises(ValueError, match="inconsistent numbers"):
        report(slim(3).fit(*rows[:2]), rows[2], rows[3][:-1])


@pytest.mark.parametrize(
    ("labels", "given"),
    [(lambda y: y.astype(str), r"y has '0', '1' \(str\)"), (lambda y: y + 7, r"y has 7, 8 \(int\)")],
)
def test_labels_of_something_else_are_no_mistakes(labels, given, rows):
    """Wrong answers on every row would be said of the model, not of the labels."""
    with pytest.raises(ValueError, match=given + r", the model has 0, 1 \(int\); give labels as"):
        report(slim(3).fit(*rows[:2]), rows[2], labels(rows[3]))


def test_without_matplotlib(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'slimsvm\[plot\]'"):
        report(slim(3).fit(*rows[:2]), *rows[2:])


def test_code_that_makes_a_model_again_imports_from_public_modules():
    kinds = (slimsvm.kernels.Gaussian, bases.Learned, slimsvm.SlimSVC, StandardScaler)
    modules = [provenance._public_module(kind) for kind in kinds]
    assert modules == ["slimsvm.kernels", "slimsvm.bases", "slimsvm", "sklearn.preprocessing"]
