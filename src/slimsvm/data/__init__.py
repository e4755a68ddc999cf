"""Labelled rows: the data set, duplicates, weights, folds, the reservoir of a stream."""
