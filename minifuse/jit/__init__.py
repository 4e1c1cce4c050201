"""Capture: a Python function becomes a graph."""
