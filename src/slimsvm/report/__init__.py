"""One HTML file about a model: its data, size, vectors, mistakes, and how to make it again."""

from .page import report, write_report

__all__ = ["report", "write_report"]
