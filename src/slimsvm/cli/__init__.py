"""The command ``slimsvm``: train, predict, score, frontier, compress, export, info."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

MISSING = "slimsvm: the command needs typer and rich: pip install 'slimsvm[cli]'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments as they stand after the name of the command; those of the process unless given.

    Returns
    -------
    int
        0: done; 1: something is wrong with data or files; 2: wrong use; 130: interrupted.

    Examples
    --------
    >>> from slimsvm.cli import main
    >>> main(["info", "no_such_file.slim"])
    1
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 1
    from .app import run

    return run(arguments or ["--help"], debug=_wants_tracebacks(arguments))


def _wants_tracebacks(arguments: Sequence[str]) -> bool:
    return "--debug" in arguments or os.environ.get("SLIMSVM_DEBUG", "") not in ("", "0")
