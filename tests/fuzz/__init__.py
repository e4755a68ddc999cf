"""Random and hostile problems for every estimator, judged in long double. Nothing here trusts slimsvm's own evaluation.

`data` makes problems, `machines` draws an estimator for each, `judge` computes again what the fitted model claims, and
`python -m fuzz --problems 2000 --seed 1` (`make fuzz`) runs many of them. A problem is its seed and its number.
"""
