"""Errors of the command: one line and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CommandError(Exception):
    """The command cannot use the data or a file: exit code 1."""

    code = 1


class WrongUse(CommandError):
    """Invalid options, or options that exclude each other: exit code 2."""

    code = 2


class Interrupted(CommandError):
    """Ctrl-C: exit code 130."""

    code = 130


def needs(package: str, what: str, extra: str) -> CommandError:
    """The error about an optional package that is not installed."""
    return CommandError(f"{what} needs {package}, which is not installed: pip install 'slimsvm[{extra}]'")


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Names in quotes; the first few of many."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def suggestion(name: str, among: Iterable[str]) -> str:
    """A hint for an unknown name: '; did you mean …?' with similar names, else the names that exist."""
    among = list(among)
    exact = [one for one in among if one.strip().lower() == name.strip().lower()]
    near = exact or difflib.get_close_matches(name, among, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(one) for one in near)}?"
    return f"; columns: {listed(among)}"


def one_line(error: BaseException) -> str:
    """The message of any exception, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        text = text or "not enough memory for these data"
    return text or type(error).__name__
