"""Training of models over few vectors: hyperparameter search, sizes, byte budgets, probabilities, intervals."""
