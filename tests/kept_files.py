"""Models of the files in tests/data, which every later version must load.

``python tests/kept_files.py FOLDER`` writes them: once for each version of the format, into a folder of its own.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from problems import blobs, three_classes
from slimsvm import AnyNormSVC, LpSVC, RelevanceVectorClassifier, SlimSVC, bases, compress, kernels

FOLDER = Path(__file__).parent / "data"
ROWS = 12  # whose values are kept with a file


def slim(**params):
    return SlimSVC(4, bases.Learned(iterations=5), C=1.0, gamma=0.4, **{"scales": "fixed", **params})


def columns():
    """Numbers with gaps, and two columns of categories."""
    X, y = blobs(60)
    X[::7, 0] = np.nan
    X[:, 2] = np.arange(60) % 3
    X[:, 3] = np.arange(60) % 2
    return X, y


def models():
    """Fitted models by name, with rows to predict."""
    X, y = blobs(60)
    X3, y3 = three_classes(60)
    words = np.where(y > 0, "yes", "no")
    made = {
        "two_classes": (make_pipeline(StandardScaler(), slim()).fit(X, words), X),
        "several_classes": (slim(scales="learned", probability=True).fit(X3, y3), X3),
        "objects": (LpSVC(gamma=0.4, kernel="laplacian").fit(X, words.astype(object)), X),
        "relevance": (RelevanceVectorClassifier(gamma=0.4).fit(X3, np.array([2.0, -1.0, 7.0])[y3]), X3),
        "auto": (SlimSVC("auto", bases.Learned(iterations=3), C=1.0, gamma=0.4, scales="fixed").fit(X, y), X),
        "sparse": (
            AnyNormSVC(slimsvm.slacks.TopSum(9.0), C=2.0, kernel=kernels.Gaussian(0.3)).fit(
                sp.csr_array(X.astype(np.float32)), y > 0
            ),
            X.astype(np.float32),
        ),
        "precomputed": (AnyNormSVC(kernel="precomputed").fit(X @ X.T, y.astype(int)), X @ X.T),
        "regressor": (compress(SVR(gamma=0.3).fit(X, X[:, 0]), 4), X),
        "one_class": (compress(OneClassSVM(gamma=0.3).fit(X), 4), X),
        "compressed": (
            compress(make_pipeline(MinMaxScaler(), SVC()).fit(X3, y3), 5, X3, y3, probability=True),
            X3,
        ),
    }
    made |= _with_much_preprocessing(X, words)
    return {name: (model, rows[:ROWS]) for name, (model, rows) in made.items()}


def _with_much_preprocessing(X, words):
    numbers = Pipeline([("fill", SimpleImputer(add_indicator=True)), ("scale", RobustScaler())])
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    chosen = ColumnTransformer(
        [("numbers", numbers, [0, 1]), ("categories", OneHotEncoder(handle_unknown="ignore"), slice(2, 3))],
        remainder=codes,
    )
    curves = PowerTransformer(), VarianceThreshold(), PolynomialFeatures(2), QuantileTransformer(n_quantiles=10), PCA(2)
    # Bins of the rows themselves, whose numbers are round: elsewhere the last digit would choose the bin.
    features = FeatureUnion([("curves", make_pipeline(*curves)), ("bins", KBinsDiscretizer(3, strategy="uniform"))])
    kinds = [
        OneHotEncoder(drop="first", max_categories=3, handle_unknown="infrequent_if_exist", sparse_output=False),
        OneHotEncoder(drop="if_binary"),
        OneHotEncoder(min_frequency=8, handle_unknown="ignore", dtype=np.float32),
    ]
    encoders = ColumnTransformer([(f"kind{k}", kind, [k, k + 1]) for k, kind in enumerate(kinds)])
    gaps, _ = columns()
    return {
        "categories": (make_pipeline(encoders, slim()).fit(np.round(X), words), np.round(X)),
        "columns": (Pipeline([("columns", chosen), ("svm", slim())]).fit(gaps, words), gaps),
        "features": (make_pipeline(features, slim()).fit(X, words), X),
    }


def answers(model, X):
    """What a model says of rows, by the name of the method."""
    methods = ("predict", "decision_function", "predict_proba")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (model, X) in models().items():
        slimsvm.save(model, folder / f"{name}.slim", metadata={"name": name})
        said = {method: values.tolist() for method, values in answers(model, X).items()}
        text = json.dumps({"rows": X.tolist(), "dtype": str(X.dtype), "answers": said})
        (folder / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(Path(sys.argv[1]))
