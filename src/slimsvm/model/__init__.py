"""Fitted models: the expansion over vectors, votes, probabilities, prediction."""
