"""Attention on a GPU: forward and backward kernels."""
