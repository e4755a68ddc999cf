"""One HTML file about a model: data, size, vectors, mistakes, how to reproduce it."""

from .page import report, write_report

__all__ = ["report", "write_report"]
