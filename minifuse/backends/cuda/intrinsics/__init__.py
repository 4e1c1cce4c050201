"""Device functions that Numba CUDA lacks, each with an implementation in Python for the interpreter."""
