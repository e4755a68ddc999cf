"""Settings that every test shares."""

import os

# Kernel rows are the library's own work: a threaded BLAS in the references would only fight it for the cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import hypothesis
import pytest

# The same examples on every machine and in every run; a slow machine is no reason to fail.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture
def metadata_routing():
    """scikit-learn's routing of sample weights, for one test."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield
