"""Labelled rows: the data set, equal rows, weights, folds, the reservoir of a stream."""
