"""What is solved, declared: kernels, slack norms, losses, regularizers, bases."""
