"""Solvers: each takes a convex problem and gives its solution with a duality gap."""
