"""Speed, memory and exactness of slimsvm beside its peers: ``python -m benchmarks --help``."""
