"""The cuda backend: kernels as Python for Numba CUDA, on a GPU or lane by lane in the interpreter."""
