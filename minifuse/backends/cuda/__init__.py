"""The cuda backend: Python kernels compiled by Numba CUDA for a GPU, or run lane by lane in the interpreter."""
