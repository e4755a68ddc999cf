"""Progress of long work: one updating line on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Show = Callable[[str, str], None]  # called with a label and a state
_shows: list[Show] = []


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Within this context, progress goes to ``show`` instead of to standard error."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)


class ProgressLine:
    """A progress line with a label, the current state and the elapsed time."""

    def __init__(self, label: str, stream: TextIO | None = None):
        self.label = label
        self.show = _shows[-1] if _shows and stream is None else None
        self.stream = stream or sys.stderr
        self.start = self.last = time.perf_counter()

    def update(self, text: str) -> None:
        """Show the state, at most every 0.1 seconds on a terminal and every 5 seconds elsewhere."""
        now = time.perf_counter()
        if self.show is not None or self.stream.isatty():
            if now - self.last > 0.1:
                self.last = now
                self._write(text, end="")
        elif now - self.last > 5:
            self.last = now
            self._write(text, end="\n")

    def finish(self, text: str) -> None:
        """Show the last state and end the line."""
        self._write(text, end="\n")

    def _write(self, text: str, end: str) -> None:
        if self.show is not None:
            self.show(self.label, text)
            return
        text = f"{self.label}: {text}, {time.perf_counter() - self.start:.1f} s"
        self.stream.write(f"\r{text:<78}{end}" if self.stream.isatty() else text + end)
        self.stream.flush()


class Iterations:
    """The progress line of vector learning: called with each iteration and its objective."""

    def __init__(self, label: str):
        self.line = ProgressLine(label)

    def __call__(self, iteration: int, value: float) -> None:
        self.line.update(f"iteration {iteration}, objective {value:.6g}")

    def finish(self, iterations: int, value: float) -> None:
        """Show the last state."""
        self.line.finish(f"{iterations} iterations, objective {value:.6g}")
