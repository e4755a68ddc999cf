"""Tables of the papers behind the methods, one script each: ``python -m benchmarks.papers.wu``."""
