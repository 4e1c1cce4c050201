"""The cost of a new pointwise kernel on a GPU: compiled, and loaded from the disk cache in another process."""

from .compiling import calls

ROWS = calls("cuda", "gpu-compile", cold_ms=100, warm_ms=10)
