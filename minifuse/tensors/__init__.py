"""Tensors: creation, mutation, transforms and serialization."""
