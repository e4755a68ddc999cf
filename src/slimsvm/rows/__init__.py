"""Where rows live (memory, files, Dask, devices), and passes that return sums over them.

`from_blocks`, `from_parquet`, `from_arrow`, `from_csv` and `from_svmlight` give labelled rows that are read a block at
a time: ``SlimSVC().fit(slimsvm.rows.from_parquet("rows.parquet", target="label"))``.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import `blocks` and `files` on first use: solvers import this package and need neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import blocks, files

    return getattr(blocks if name in ("Blocks", "from_blocks") else files, name)


__all__ = ["Blocks", "from_arrow", "from_blocks", "from_csv", "from_parquet", "from_svmlight"]
