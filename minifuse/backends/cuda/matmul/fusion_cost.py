"""Decide whether a prologue and an epilogue should be fused into a matrix product, by a model of time.

An epilogue almost always pays: it saves a pass over memory and runs once per element of the result. A prologue is recomputed
by every block that reads the element; a separate kernel computes it once. So a fused prologue pays only if few blocks read
an operand: if the product has few columns or few rows, or is so small that the launch matters.
"""

from collections.abc import Sequence
from math import prod

from ....core.layout import Layout
from ....ir.kernel_ir import Expression, IndexValue, Kernel, Load
from ....ir.step_kernels import MatmulKernel
from ...matmul.problem import is_matrix
from ..geometry import MAX_SHARED_BYTES
from .heuristics import EXTRA_LAUNCH_CYCLES, MEMORY_BYTES_PER_CYCLE, GpuLimits, choose_config
from .launches import split_for_grid
from .operands import gpu_problem

MAX_EPILOGUE_COST = 160  # additions per element; a product has too few threads for more
MAX_EPILOGUE_ARRAYS = 8  # arrays loaded and stored: four elements of each are in registers, beside the accumulators


def why_not_fused_matmul(
    kernel: MatmulKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    max_shared_bytes: int = MAX_SHARED_BYTES,
) -> str:
    """Return why a product should not be one kernel with its prologue and epilogue, or "" if it should.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.kernel_ir import Accumulator
    >>> from minifuse.core.layout import row_major
    >>> from minifuse.core.operators import relu
    >>> a, b, product = Load(0, float32), Load(1, float32), Accumulator(float32)
    >>> big = row_major((4096, 4096))
    >>> why_not_fused_matmul(MatmulKernel(a, b, (relu(product),)), [big], [big, big])
    ''
    >>> print(why_not_fused_matmul(MatmulKernel(relu(a), b, (product,)), [big], [big, big]))
    each block would recompute the prologue of a for the elements that it reads; a separate kernel computes it once
    """
    if outputs[0].size == 0:
        return ""
    reason = why_not_epilogue(kernel) or why_not_loadable("a", kernel.a, inputs) or why_not_loadable("b", kernel.b, inputs)
    return reason or why_not_prologue(kernel, outputs, inputs, multiprocessors, max_shared_bytes)


def why_not_epilogue(kernel: MatmulKernel) -> str:
    """Return why an epilogue is too expensive for the threads of a product, or ""."""
    part = Kernel(kernel.pointwise_outputs, ())
    operands = len(part.find_all(Load)) + len(kernel.pointwise_outputs)
    if operands > MAX_EPILOGUE_ARRAYS:
        limit = MAX_EPILOGUE_ARRAYS
        return (
            f"the epilogue loads and stores {operands} arrays; "
            f"with more than {limit} the accumulators do not fit in registers"
        )
    if part.cost() > MAX_EPILOGUE_COST:
        limit = MAX_EPILOGUE_COST
        return (
            f"the epilogue costs {part.cost()} additions per element; "
            f"above {limit}, a separate kernel with more threads is faster"
        )
    return ""


def why_not_loadable(name: str, e: Expression, inputs: Sequence[Layout]) -> str:
    """Return why a kernel cannot load the operands of a prologue, or "": a tile is one array of the multiplied type."""
    loads = [x for x in Kernel((e,), ()).find_all(Load) if not isinstance(x, IndexValue)]
    if not loads:
        return f"the prologue of {name} loads no array, and a tile is copied from memory"
    if isinstance(e, Load):
        return ""
    matrices = [x for x in loads if is_matrix(inputs[x.index])]
    if len(matrices) > 1:
        return f"the prologue of {name} loads {len(matrices)} arrays, and a tile is copied from one array"
    main = (matrices or loads)[0]
    if main.dtype is not e.dtype:
        return (
            f"the prologue of {name} converts {main.dtype} to {e.dtype}, but a tile is copied in the type that is multiplied"
        )
    return ""


def why_not_prologue(
    kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout], multiprocessors: int, max_shared_bytes: int
) -> str:
    """Return why a fused prologue would take longer than a separate kernel, or ""."""
    problem, gpu = gpu_problem(kernel, outputs, inputs), GpuLimits(multiprocessors, max_shared_bytes)
    if not (problem.cost_a or problem.cost_b):
        return ""

    def cycles(cost_a: float, cost_b: float) -> float:
        return sum(choose_config(p, gpu).cycles for p in split_for_grid(problem._replace(cost_a=cost_a, cost_b=cost_b)))

    without_prologue = cycles(0, 0)
    for k, (name, e) in enumerate((("a", kernel.a), ("b", kernel.b))):
        costs = (problem.cost_a, 0) if k == 0 else (0, problem.cost_b)
        if any(costs) and cycles(*costs) - without_prologue > unfused_cycles(e, inputs, multiprocessors):
            return (
                f"each block would recompute the prologue of {name} for the elements that it reads; "
                "a separate kernel computes it once"
            )
    return ""


def unfused_cycles(e: Expression, inputs: Sequence[Layout], multiprocessors: int) -> float:
    """Estimate the cycles of a separate kernel for an operand: the launch, its loads and its stores."""
    layouts = [inputs[x.index] for x in Kernel((e,), ()).find_all(Load)]
    shape = layouts[0].shape
    size = prod(n for d, n in enumerate(shape) if any(layout.strides[d] for layout in layouts))
    arrays = 1 + any(is_matrix(layout) for layout in layouts)
    return EXTRA_LAUNCH_CYCLES + size * arrays * e.dtype.itemsize / (MEMORY_BYTES_PER_CYCLE * multiprocessors)
