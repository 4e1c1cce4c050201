"""Device functions that Numba CUDA lacks, with a Python meaning for the interpreter."""
