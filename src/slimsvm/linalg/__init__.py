"""Arrays: as the core sees them, products and factors, L-BFGS, and arrays of other libraries."""
