"""Solvers of convex problems; every solution has a duality gap."""
