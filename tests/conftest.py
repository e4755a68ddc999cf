"""Settings that every test shares."""

import hypothesis
import pytest
import sklearn
import threadpoolctl

from slimsvm.data import row_keys

# The same examples on every machine and in every run; a slow machine is no reason to fail.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_blas():
    """A threaded BLAS in the references would only fight the other tests for the cores."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture
def metadata_routing():
    """scikit-learn's routing of sample weights, for one test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def same_draws(monkeypatch):
    """What is drawn at random depends on the contents of the rows: here, whatever is fitted, on those of X."""

    def fix(X):
        monkeypatch.setattr("slimsvm.estimators.validation.row_keys", lambda contents: row_keys(X))

    return fix
