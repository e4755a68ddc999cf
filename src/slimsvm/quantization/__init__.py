"""Models in 8-bit vectors and 16-bit coefficients, as a device computes with them."""
