"""Versions for a bug report: slimsvm, its core, the system, packages and thread pools."""

from __future__ import annotations

import importlib
import platform
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from itertools import chain

# Packages that slimsvm requires, and packages of its extras.
REQUIRED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
OPTIONAL = ("pandas", "polars", "pyarrow", "matplotlib", "onnx", "skl2onnx", "onnxruntime", "skops", "typer", "rich")


def show_versions() -> None:
    """Print what a bug report needs.

    The version of slimsvm, what its core was compiled with and the instructions it uses here, the system, the packages
    that it works with, and the libraries that do the linear algebra. Nothing in it names you, your files or your data.

    Examples
    --------
    >>> import slimsvm
    >>> slimsvm.show_versions()
    slimsvm: ...
    <BLANKLINE>
    Core
      compiler: ...
      instructions: ...
      ...
    """
    print(f"slimsvm: {version('slimsvm')}")
    for title, facts in (
        ("Core", _core()),
        ("System", _system()),
        ("Packages", _packages()),
        ("Thread pools", _thread_pools()),
    ):
        print(f"\n{title}")
        for name, value in facts.items():
            print(f"  {name}: {value}")


def _core() -> dict[str, str]:
    from .. import _core as core

    try:  # written by the build
        compiler = importlib.import_module("slimsvm._build").compiler
    except ImportError:
        compiler = "not recorded"
    suffix = core.__file__.rpartition("_core.")[2]
    return {"compiler": compiler, "instructions": core.instruction_set, "module": suffix}


def _system() -> dict[str, str]:
    threads = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return {
        "Python": f"{platform.python_version()} ({platform.python_implementation()}{threads})",
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _packages() -> dict[str, str]:
    found = {name: _version_of(name) for name in chain(REQUIRED, OPTIONAL)}
    return {name: found[name] or "missing" for name in found if found[name] or name in REQUIRED}


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _thread_pools() -> dict[str, str]:
    """Every loaded BLAS and OpenMP library, each copy by itself: a process may have loaded a BLAS twice."""
    from threadpoolctl import threadpool_info

    pools = sorted(threadpool_info(), key=lambda pool: (pool["user_api"], pool["prefix"], str(pool["version"])))
    facts = {}
    for number, pool in enumerate(pools, 1):
        more = [str(pool[key]) for key in ("version", "threading_layer", "architecture") if pool.get(key)]
        words = [pool["internal_api"], *more, f"{pool['num_threads']} threads"]
        facts[f"{number} {pool['user_api']}"] = ", ".join(words)
    return facts or {"none": "no BLAS or OpenMP that threadpoolctl knows"}
