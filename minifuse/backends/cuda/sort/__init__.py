"""Stable radix sort on a GPU."""
