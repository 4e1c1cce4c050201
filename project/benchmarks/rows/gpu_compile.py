"""The cost of a new pointwise kernel on a GPU: compiled, and, in another process, found on disk."""

from .compiling import calls

ROWS = calls("cuda", "gpu-compile", cold_ms=100, warm_ms=10)
