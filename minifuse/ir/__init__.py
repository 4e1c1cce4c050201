"""Intermediate representations: array functions, graphs, their gradients, kernels and steps."""
