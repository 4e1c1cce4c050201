"""The parallel backend: kernels as machine code on CPU threads."""
