"""Backends, which run kernels: the contract, the reference backend, and the compiled backends for CPU and GPU."""
