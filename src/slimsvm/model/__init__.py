"""Fitted models: the kernel expansion over vectors, votes, probabilities, prediction."""
