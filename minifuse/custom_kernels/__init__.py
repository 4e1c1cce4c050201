"""Kernels that users write as Python functions of single elements."""
