"""Names of other projects that our pages link to. Inventories are written from this table, not fetched.

A page of those projects that moves leaves a dead link outward, never a build that fails.
"""

import zlib
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

# Project: its documentation, where the page of a name is ($: the name), the names.
PROJECTS = {
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/$.html#$", ["numpy.ndarray", "numpy.memmap"]),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "reference/generated/$.html#$", ["scipy.sparse.csr_matrix"]),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        "modules/generated/$.html#$",
        [
            "sklearn.calibration.CalibratedClassifierCV",
            "sklearn.exceptions.ConvergenceWarning",
            "sklearn.kernel_approximation.Nystroem",
            "sklearn.model_selection.GridSearchCV",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing.StandardScaler",
            "sklearn.svm.LinearSVC",
            "sklearn.svm.NuSVC",
            "sklearn.svm.NuSVR",
            "sklearn.svm.OneClassSVM",
            "sklearn.svm.SVC",
            "sklearn.svm.SVR",
        ],
    ),
    "matplotlib": (
        "https://matplotlib.org/stable/",
        "api/_as_gen/$.html#$",
        ["matplotlib.axes.Axes", "matplotlib.figure.Figure", "matplotlib.lines.Line2D"],
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        "reference/api/$.html#$",
        ["pandas.DataFrame", "pandas.read_csv"],
    ),
    "onnx": ("https://onnx.ai/onnx/", "api/classes.html#$", ["onnx.ModelProto"]),
}
MORE = {  # on pages of their own kind
    "numpy": [
        "array_like std:term 1 glossary.html#term-$ -\n",
        "numpy.random.RandomState py:class 1 reference/random/legacy.html#$ -\n",
    ]
}
NAMES = {name for _, _, names in PROJECTS.values() for name in names}
SHORT = {name.rpartition(".")[2]: name for name in NAMES}

# Words in the types of parameters. Python's own have no links: everybody knows what a float is.
ALIASES = {
    **{word: word for word in DEFAULT_LINKS if "python:" in DEFAULT_LINKS[word]},
    "array": "numpy.ndarray",
    "array-like": ":term:`array-like <numpy:array_like>`",
    "ndarray": "numpy.ndarray",
    "DataFrame": "pandas.DataFrame",
    "ModelProto": "onnx.ModelProto",
    "axes": "matplotlib.axes.Axes",
    "figure": "matplotlib.figure.Figure",
    "Figure": "matplotlib.figure.Figure",
    "Axes": "matplotlib.axes.Axes",
    "Line2D": "matplotlib.lines.Line2D",
    "Pipeline": "sklearn.pipeline.Pipeline",
    "Frontier": "slimsvm.Frontier",
    "Compression": "slimsvm.compression.Compression",
    "CReport": "slimsvm.export.CReport",
    "CSource": "slimsvm.export.CSource",
    "Quantized": "slimsvm.export.Quantized",
}


def mapping(folder: Path) -> dict:
    """`intersphinx_mapping`, with its inventories in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for project, (home, page, names) in PROJECTS.items():
        lines = [f"{name} py:{_kind(name)} 1 {page} -\n" for name in names] + MORE.get(project, [])
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        file = folder / f"{project}.inv"
        file.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
        written[project] = (home, str(file))
    return written


def _kind(name):
    last = name.rpartition(".")[2]
    return "function" if last.startswith("read_") else "class"
