"""Warnings, progress lines, threads, versions, plot helpers, scikit-learn's private API."""
