"""Training of models: search, sizes, byte budgets, probabilities, intervals, streams."""
