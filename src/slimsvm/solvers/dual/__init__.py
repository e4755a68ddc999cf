"""Dual problems over all training rows, solved by the core."""
