"""Warnings, progress lines, threads, versions, and what is used of scikit-learn's private modules."""
