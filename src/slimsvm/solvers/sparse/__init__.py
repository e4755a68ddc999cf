"""Models whose training determines their number of vectors."""
