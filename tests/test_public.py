"""The names that users import. A change here is a change for them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import kernel_table
import reference_bases
import slack_table
import slimsvm

ESTIMATORS = {
    "AnyNormSVC",
    "BudgetSVC",
    "EmpiricalSVC",
    "LeastOneNormSVC",
    "LeastSquaresSVC",
    "LpSVC",
    "ReducedSVC",
    "RelevanceVectorClassifier",
    "SlimSVC",
}
COMPRESSED = {"CompressedClassifier", "CompressedOutlierDetector", "CompressedRegressor"}
DETECTORS = {"SlimOneClass"}
REGRESSORS = {"SlimSVR"}
FAMILY = {"NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"}
SIZE = {"Frontier", "frontier"}
PICTURES = {"CalibrationDisplay", "FrontierDisplay", "VectorsDisplay"}
EXPORT = {"to_c", "to_micropython", "to_onnx", "to_sklearn"}
FILES = {"load", "save"}
OTHERS = {"Predictor", "__version__", "compress", "report", "show_versions"}
PATCHES = {"patch_sklearn", "unpatch_sklearn"}
PARTS = {
    "bases": {"AllRows", "Cholesky", "Forward", "Given", "Inputs", "KMeans", "Random"},
    "kernels": {"Function", "Precomputed", "Scaled", *(entry.class_name for entry in kernel_table.ENTRIES.values())},
    "losses": {"Between", *reference_bases.LOSSES},
    "regularizers": {"Identity", "KernelNorm", "ReweightedNorm"},
    "slacks": {"Norm", *slack_table.ENTRIES},
}


def test_the_package():
    functions = EXPORT | FILES | SIZE | OTHERS | PATCHES
    machines = ESTIMATORS | COMPRESSED | DETECTORS | REGRESSORS | FAMILY
    assert set(slimsvm.__all__) == machines | PICTURES | set(PARTS) | functions
    assert {kind.__name__ for kind in slimsvm.estimators.COMPRESSED} == COMPRESSED
    assert {kind.__name__ for kind in slimsvm.estimators.DETECTORS} == DETECTORS
    assert {kind.__name__ for kind in slimsvm.estimators.FAMILY} == FAMILY
    assert {kind.__name__ for kind in slimsvm.estimators.ALL} == ESTIMATORS
    assert {kind.__name__ for kind in slimsvm.estimators.REGRESSORS} == REGRESSORS


@pytest.mark.parametrize("part", PARTS)
def test_parts(part):
    """Classes of a part by name; every one in its list ALL that needs no base of its own is public."""
    module = importlib.import_module(f"slimsvm.{part}")
    assert module is getattr(slimsvm, part)
    assert PARTS[part] <= set(module.__all__)
    assert {kind.__name__ for kind in module.ALL} <= set(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name), name


@pytest.mark.parametrize(
    "statement", [f"import slimsvm.{part}" for part in PARTS] + ["from slimsvm.slacks import PNorm"]
)
def test_a_part_can_be_imported_first(statement):
    """In a process of its own: nothing else has loaded the package."""
    subprocess.run([sys.executable, "-c", statement], check=True, timeout=120)
