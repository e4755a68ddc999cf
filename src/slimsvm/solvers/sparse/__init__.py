"""Machines that find their size by themselves."""
