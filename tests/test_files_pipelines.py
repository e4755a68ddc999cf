"""Pipelines in files: the usual preprocessing of scikit-learn comes back as it was."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import slimsvm
from kept_files import columns, slim
from problems import blobs, three_classes
from slimsvm import AnyNormSVC, compress
from slimsvm.persistence import FileError, from_bytes, sklearn_classes, to_bytes
from test_files import again, check, same

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X, Y = blobs(60)
GAPS, _ = columns()

TRANSFORMERS = {
    "StandardScaler": StandardScaler(),
    "StandardScaler without": StandardScaler(with_mean=False, with_std=False),
    "MinMaxScaler": MinMaxScaler((-1, 1), clip=True),
    "MaxAbsScaler": MaxAbsScaler(),
    "RobustScaler": RobustScaler(quantile_range=(10.0, 90.0)),
    "Normalizer": Normalizer("l1"),
    "Binarizer": Binarizer(threshold=0.1),
    "PCA": PCA(2, whiten=True),
    "PCA of a share": PCA(0.9, svd_solver="full"),
    "TruncatedSVD": TruncatedSVD(2),
    "PolynomialFeatures": PolynomialFeatures((1, 3), interaction_only=True, include_bias=False),
    "PowerTransformer": PowerTransformer(),
    "PowerTransformer not standardized": PowerTransformer(standardize=False),
    "QuantileTransformer": QuantileTransformer(n_quantiles=20, output_distribution="normal", random_state=0),
    "VarianceThreshold": VarianceThreshold(0.1),
    "KBinsDiscretizer": KBinsDiscretizer(4, strategy="uniform"),
    "KBinsDiscretizer dense": KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
    "KBinsDiscretizer ordinal": KBinsDiscretizer([2, 3, 2, 4], encode="ordinal", strategy="kmeans"),
    "FunctionTransformer": FunctionTransformer(),
    "OneHotEncoder": OneHotEncoder(handle_unknown="ignore", min_frequency=5),
    "OneHotEncoder dense": OneHotEncoder(drop="first", sparse_output=False, dtype=np.float32, max_categories=4),
    "OrdinalEncoder": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "SimpleImputer": SimpleImputer(strategy="median", add_indicator=True),
    "SimpleImputer constant": SimpleImputer(strategy="constant", fill_value=-1.0, missing_values=0.0),
    "union": make_union(StandardScaler(), PCA(1), "passthrough"),
    "weighted union": FeatureUnion([("a", PCA(1)), ("b", "drop")], transformer_weights={"a": 2.0}),
    "inner pipeline": make_pipeline(make_pipeline(StandardScaler(), "passthrough"), PCA(3)),
    "columns": make_column_transformer((StandardScaler(), [0, 1]), (MinMaxScaler(), [-1]), remainder="drop"),
    "columns with a rest": ColumnTransformer([("a", "passthrough", slice(1, 3))], remainder=PCA(1)),
    "columns by mask": ColumnTransformer(
        [("a", "drop", np.array([True, False, False, True]))], remainder="passthrough"
    ),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("classifier", [AnyNormSVC(), slim()], ids=["all rows", "few vectors"])
def test_every_transformer(name, classifier):
    rows = np.round(X) if "Encoder" in name else GAPS if name == "SimpleImputer" else X
    model = make_pipeline(clone(TRANSFORMERS[name]), clone(classifier))
    assert same(again(model), model)
    check(model.fit(rows, Y), rows)


def test_every_class_of_the_list_is_tested():
    """And is one of scikit-learn's own."""
    tested = {name.split()[0] for name in TRANSFORMERS}
    others = {
        "Pipeline",
        "FeatureUnion",
        "ColumnTransformer",
        "make_column_selector",
        "MissingIndicator",
        "LabelEncoder",
    }
    assert set(sklearn_classes.PREPROCESSING) == {name for name in tested if name[0].isupper()} | others
    for name in sklearn_classes.PREPROCESSING:
        kind = sklearn_classes.kind_of(name)
        assert inspect.isclass(kind)
        assert kind.__module__.startswith("sklearn.")


def test_sparse_rows_through_a_pipeline():
    rows = sp.csr_matrix(X.astype(np.float32))
    check(make_pipeline(MaxAbsScaler(), StandardScaler(with_mean=False), AnyNormSVC()).fit(rows, Y), rows)


def test_label_encoder():
    check(LabelEncoder().fit(["b", "a", "c"]), ["a", "b"])


def test_compressed_pipeline():
    from sklearn.svm import SVC

    rows, labels = three_classes(60)
    full = make_pipeline(StandardScaler(), SVC()).fit(rows, labels)
    check(compress(full, 5, rows), rows)


# --- data frames -----------------------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    pd = pytest.importorskip("pandas")
    made = pd.DataFrame(GAPS[:, :2], columns=["length", "Breite"])
    made["colour"] = np.array(["red", "green", None, "blue"], dtype=object)[np.arange(60) % 4]
    made["size"] = pd.Categorical(np.array(["s", "m", "l"])[np.arange(60) % 3])
    made["useful"] = np.arange(60) % 2 == 0
    return made


def table(numbers, categories):
    """Preprocessing as people write it."""
    fill = make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return ColumnTransformer([("numbers", fill, numbers), ("categories", encode, categories)], remainder="passthrough")


def test_columns_by_name(frame):
    frame = frame.drop(columns="size")
    check(make_pipeline(table(["length", "Breite"], ["colour"]), slim()).fit(frame, Y), frame)


def test_columns_chosen_by_type(frame):
    chosen = table(make_column_selector(dtype_include=np.number), make_column_selector("colo", dtype_include=object))
    frame = frame.drop(columns="size")
    check(make_pipeline(chosen, slim()).fit(frame, Y), frame)


def test_columns_as_an_index_become_a_list(frame):
    """`frame.columns[:2]` is how many people write it; the names are what counts."""
    frame = frame.drop(columns="size")
    model = make_pipeline(table(frame.columns[:2], frame.columns[2:3]), slim()).fit(frame, Y)
    loaded = again(model)
    assert loaded[0].transformers[0][2] == ["length", "Breite"]
    assert same(loaded.decision_function(frame), model.decision_function(frame))
    assert same(clone(loaded).fit(frame, Y).predict(frame), model.predict(frame))


def test_categories_of_pandas(frame):
    model = make_pipeline(OneHotEncoder(), slim()).fit(frame[["size", "useful"]], Y)
    check(model, frame[["size", "useful"]])


def test_output_as_frames(frame):
    numbers = frame[["length", "Breite"]]
    model = make_pipeline(SimpleImputer(), StandardScaler(), slim()).set_output(transform="pandas").fit(numbers, Y)
    check(model, numbers)
    assert list(again(model)[:-1].transform(numbers).columns) == ["length", "Breite"]


# --- what cannot be saved --------------------------------------------------------------------------------------------

REFUSED = {
    "a function": (FunctionTransformer(np.abs), r"Pipeline.steps\['step'\].func is the function absolute"),
    "a lambda for columns": (
        ColumnTransformer([("a", StandardScaler(), lambda frame: [0])]),
        r"transformers\['a'\] is the function <lambda>",
    ),
    "another transformer": (SplineTransformer().fit(X), r"steps\['step'\] is .*SplineTransformer"),
    "an imputer that keeps rows": (KNNImputer().fit(X), "KNNImputer"),
    "a score function": (SelectKBest(k=2).fit(X, Y), "SelectKBest"),
    "names of columns by a function": (OneHotEncoder(feature_name_combiner=str.join), "feature_name_combiner"),
    "an attribute of one's own": (StandardScaler(), "transform"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    step, words = REFUSED[name]
    if name.startswith("an attribute"):
        step = clone(step)
        step.transform = [1, 2]  # hides a method
    with pytest.raises((TypeError, ValueError), match=words):
        to_bytes(Pipeline([("step", step), ("svm", AnyNormSVC())]))


def test_a_cache_of_a_pipeline_is_not_saved(tmp_path):
    """A later fit would run the pickles that somebody put there."""
    with pytest.raises(ValueError, match="memory must be None"):
        to_bytes(make_pipeline(StandardScaler(), AnyNormSVC(), memory=str(tmp_path)))


def test_requests_of_metadata(metadata_routing):
    with pytest.raises(TypeError, match="set_fit_request"):
        to_bytes(StandardScaler().set_fit_request(sample_weight=True))


# --- other versions --------------------------------------------------------------------------------------------------


def made_with(monkeypatch, **versions):
    """A file of a pipeline that says it was made with other versions."""
    now = slimsvm.persistence._versions()
    with monkeypatch.context() as patched:
        patched.setattr(slimsvm.persistence, "_versions", lambda: now | versions)
        return to_bytes(make_pipeline(StandardScaler(), AnyNormSVC()).fit(X, Y)), to_bytes(AnyNormSVC().fit(X, Y))


@pytest.mark.filterwarnings("error")
def test_another_version_of_scikit_learn(monkeypatch):
    major, minor = map(int, sklearn.__version__.split(".")[:2])
    other, same_minor = f"{major}.{minor - 1}.3", f"{major}.{minor}.99"
    pipeline, alone = made_with(monkeypatch, **{"scikit-learn": other})
    with pytest.warns(UserWarning, match=f"made with scikit-learn {other}.*StandardScaler"):
        from_bytes(pipeline)
    from_bytes(alone)  # its attributes are ours
    from_bytes(made_with(monkeypatch, **{"scikit-learn": same_minor})[0])


def with_attribute(name, value, monkeypatch, **versions):
    """A file of a model that has one more attribute."""
    form = slimsvm.persistence.schema.schema_named("slimsvm.AnyNormSVC")
    with monkeypatch.context() as patched:
        patched.setitem(form.fitted, name, slimsvm.persistence.checks.DATA)
        model = AnyNormSVC().fit(X, Y)
        setattr(model, name, value)
        now = slimsvm.persistence._versions()
        patched.setattr(slimsvm.persistence, "_versions", lambda: now | versions)
        return to_bytes(model)


def test_attributes_of_a_newer_version_are_left_out(monkeypatch):
    data = with_attribute("novel_", np.arange(3), monkeypatch, slimsvm="99.1")
    with pytest.warns(UserWarning, match="slimsvm 99.1.*AnyNormSVC.novel_"):
        loaded = from_bytes(data)
    assert not hasattr(loaded, "novel_")
    assert same(loaded.decision_function(X), AnyNormSVC().fit(X, Y).decision_function(X))
    with pytest.raises(FileError, match="novel_"):  # no version of this library had it
        from_bytes(with_attribute("novel_", 1, monkeypatch))


def test_parameters_that_an_older_version_had_not(monkeypatch):
    """They have their defaults, as in code that was written then."""
    form = slimsvm.persistence.schema.schema_named("slimsvm.AnyNormSVC")
    model = AnyNormSVC().fit(X, Y)
    kept = vars(model).copy()
    del model.cache_size
    with monkeypatch.context() as patched:
        patched.delitem(form.params, "cache_size")
        data = to_bytes(model)
    assert vars(from_bytes(data)).keys() == kept.keys()
    assert from_bytes(data).cache_size == AnyNormSVC().cache_size
