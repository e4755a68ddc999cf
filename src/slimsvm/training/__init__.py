"""Training over few vectors: search, sizes, byte budgets, probabilities, streams."""
