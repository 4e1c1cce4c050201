"""All rows, on the CPU and on a GPU, in the order of the report. To add a row, add an entry in one of these files.

A suite is measured in one run, and stored in one file. Its rows are imported on demand, because rows of a GPU need more
libraries.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..row import Row

SUITES = {  # (is_on_gpu, kind): the name of the list of rows in each file, then the files
    (False, ""): ("ROWS", "host", "large", "functions", "products", "convolutions", "training", "start"),
    (True, ""): ("ROWS", "gpu_host", "gpu_memory", "gpu_matmul", "gpu_tensor_cores", "gpu_compile"),
    (False, "fusion"): ("ROWS", "fusion", "fusion_step"),
    (True, "fusion"): ("GPU_ROWS", "gpu_fusion", "fusion_step"),
    (False, "networks"): ("ROWS", "networks"),
    (True, "networks"): ("GPU_ROWS", "networks"),
    (False, "sweeps"): ("ROWS", "sweeps", "threads"),
    (True, "sweeps"): ("GPU_ROWS", "sweeps"),
    (False, "costs"): ("ROWS", "costs"),
    (True, "costs"): ("GPU_ROWS", "costs"),
    (False, "held-out"): ("ROWS", "held_out"),
    (True, "held-out"): ("GPU_ROWS", "held_out"),
    (False, "loop-nests"): ("ROWS", "loop_nests"),
    (True, "loop-nests"): ("GPU_ROWS", "loop_nests"),
    (False, "library"): ("ROWS", "library"),
    (True, "library"): ("GPU_ROWS", "library"),
}


@cache
def rows_of(is_on_gpu: bool = False, kind: str = "") -> tuple["Row", ...]:
    """Return the rows of a suite."""
    name, *files = SUITES[is_on_gpu, kind]
    modules = [import_module(f"{__name__}.{file}") for file in files]
    return tuple(row for module in modules for row in getattr(module, name))
