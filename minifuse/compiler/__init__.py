"""Captured computations: nodes, their gradients, the kernels they become, and the plans that run them."""
