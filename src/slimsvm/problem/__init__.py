"""The optimisation problem, declared: kernels, slack norms, losses, regularizers, bases."""
