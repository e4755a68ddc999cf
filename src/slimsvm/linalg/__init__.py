"""Views of arrays for the core, matrix products and factors, L-BFGS, the array API."""
