"""All rows, of the CPU and of a GPU, in the order of the report. A new row is an entry in one of these files."""

from . import (
    functions,
    fusion,
    fusion_step,
    gpu_compile,
    gpu_fusion,
    gpu_host,
    gpu_matmul,
    gpu_memory,
    gpu_tensor_cores,
    host,
    large,
    networks,
    products,
    start,
    sweep,
    training,
)

ROWS = [*host.ROWS, *large.ROWS, *functions.ROWS, *products.ROWS, *training.ROWS, *start.ROWS, *sweep.ROWS]
FUSION_ROWS = [*fusion.ROWS, *fusion_step.ROWS]
GPU_ROWS = [*gpu_host.ROWS, *gpu_memory.ROWS, *gpu_matmul.ROWS, *gpu_tensor_cores.ROWS, *gpu_compile.ROWS]
GPU_FUSION_ROWS = [*gpu_fusion.ROWS, *fusion_step.GPU_ROWS]

SUITES = {  # by whether they run on a GPU, and their kind
    (False, ""): ROWS,
    (True, ""): GPU_ROWS,
    (False, "fusion"): FUSION_ROWS,
    (True, "fusion"): GPU_FUSION_ROWS,
    (False, "networks"): networks.ROWS,
    (True, "networks"): networks.GPU_ROWS,
}
