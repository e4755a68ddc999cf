"""Labelled rows in memory: the data set, equal rows, sample weights, folds, and the reservoir of a stream."""
