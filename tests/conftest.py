"""Settings that every test shares."""

import importlib.util
import zlib

import hypothesis
import pytest
import sklearn
import threadpoolctl

from slimsvm.data.duplicates import row_keys

# Recipes and data sets of the papers are in a checkout and not in the package.
if importlib.util.find_spec("papers") is None:
    collect_ignore_glob = ["test_papers*.py", "test_datasets.py", "test_starts.py"]

# The same examples on every machine and in every run; a slow machine is no reason to fail.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="every case of every grid, not a sample (make test-all)")


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's own tests")
    config.addinivalue_line(
        "markers",
        "grid(keep, always=()): of its cases one in `keep` runs, and those whose name has one of the words `always`, "
        "such as the cases that have failed before; all of them with --all",
    )


def pytest_collection_modifyitems(config, items):
    """A sample of the large grids, by the names of their cases: it is the same everywhere. A case asked for runs."""
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    kept, left_out = [], []
    for item in items:
        (kept if in_sample(item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def in_sample(item):
    """Whether a case runs without --all."""
    grid = item.get_closest_marker("grid")
    if grid is None or any(word in item.name for word in grid.kwargs.get("always", ())):
        return True
    return zlib.crc32(item.name.encode()) % grid.args[0] == 0


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
        monkeypatch.setattr("slimsvm.estimators.checked_data.row_keys", lambda contents, threads: row_keys(X))

    return fix
