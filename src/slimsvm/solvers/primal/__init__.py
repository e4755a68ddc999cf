"""Machines over few vectors: linear machines in explicit features, met in sums over blocks of rows."""
