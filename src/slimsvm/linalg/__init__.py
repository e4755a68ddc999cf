"""Arrays as the core sees them, products and factors, L-BFGS, the array API."""
