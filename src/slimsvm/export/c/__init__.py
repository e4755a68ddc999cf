"""Models as C99 headers."""

from .source import CReport, CSource, to_c

__all__ = ["CReport", "CSource", "to_c"]
