"""Matmuls for all compiled backends: the problem, and the search for its configuration."""
