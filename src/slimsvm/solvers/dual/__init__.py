"""Machines over all rows: the dual, solved by the core."""
