"""Models over few vectors: linear models in explicit features, solved by sums over blocks of rows."""
