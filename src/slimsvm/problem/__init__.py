"""What is solved: kernels, slack norms, losses, regularizers and bases, as declarations without solvers."""
