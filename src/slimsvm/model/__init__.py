"""Fitted models: the expansion over vectors, votes of binary problems, and prediction."""
