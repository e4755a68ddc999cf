"""Warnings, progress lines, threads, versions, helpers of plots, scikit-learn's private names."""
