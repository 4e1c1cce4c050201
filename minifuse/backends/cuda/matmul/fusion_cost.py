"""Whether prologue and epilogue should be part of a product's kernels, or kernels of their own: integers, a model of time.

An epilogue almost always pays: it saves a pass over memory, and comes once a sum. A prologue is done again by every block
that reads the element, which a copy through memory does not need. So it pays where an operand is read by few blocks: where
the product has few columns, or few rows, or is so small that a launch counts.
"""

from collections.abc import Sequence
from math import prod

from ....core.layout import Layout
from ....ir.kernel_ir import Expression, IndexValue, Kernel, Load, MatmulKernel
from .heuristics import EXTRA_LAUNCH_CYCLES, MEMORY_BYTES_PER_CYCLE, choose_config
from .launches import MAX_SHARED_BYTES, split_for_grid
from .operands import is_matrix, matmul_problem

MAX_EPILOGUE_COST = 160  # additions of an epilogue; more keep the few threads that a product has too long
MAX_EPILOGUE_ARRAYS = 8  # that an epilogue reads and stores: four neighbours of each wait in registers, beside the sums
ALL_ALIGNED = (True, True, True)


def why_not_fused_matmul(
    kernel: MatmulKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    most_shared: int = MAX_SHARED_BYTES,
) -> str:
    """Why a product should not be one kernel with its prologue and epilogue, in words; empty if it should.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.kernel_ir import Dot
    >>> from minifuse.core.layout import row_major
    >>> from minifuse.core.operators import relu
    >>> a, b, dot = Load(0, float32), Load(1, float32), Dot(float32)
    >>> big = row_major((4096, 4096))
    >>> refusal(ProductKernel(a, b, (relu(dot),)), [big], [big, big])
    ''
    >>> print(refusal(ProductKernel(relu(a), b, (dot,)), [big], [big, big]))
    the prologue of a would be computed again by each block that reads an element; once, in a kernel of its own, is faster
    """
    if outputs[0].size == 0:
        return ""
    found = why_not_epilogue(kernel) or why_not_loadable("a", kernel.a, inputs) or why_not_loadable("b", kernel.b, inputs)
    return found or why_not_prologue(kernel, outputs, inputs, multiprocessors, most_shared)


def why_not_epilogue(kernel: MatmulKernel) -> str:
    """Why an epilogue is too much for the threads of a product."""
    part = Kernel(kernel.pointwise_outputs, ())
    operands = len(part.find_all(Load)) + len(kernel.pointwise_outputs)
    if operands > MAX_EPILOGUE_ARRAYS:
        limit = MAX_EPILOGUE_ARRAYS
        return f"the epilogue reads and stores {operands} arrays; more than {limit} leave the sums too few registers"
    if part.cost() > MAX_EPILOGUE_COST:
        limit = MAX_EPILOGUE_COST
        return f"the epilogue costs {part.cost()} additions a sum; above {limit} a kernel with more threads is faster"
    return ""


def why_not_loadable(name: str, e: Expression, inputs: Sequence[Layout]) -> str:
    """Why a kernel cannot load what a prologue reads: a tile is one array, of the type that is multiplied."""
    loads = [x for x in Kernel((e,), ()).find_all(Load) if not isinstance(x, IndexValue)]
    if not loads:
        return f"{name} reads no array; a tile is copied from memory"
    if isinstance(e, Load):
        return ""
    matrices = [x for x in loads if is_matrix(inputs[x.index])]
    if len(matrices) > 1:
        return f"the prologue of {name} reads {len(matrices)} arrays; a tile is copied past the registers, from one"
    main = (matrices or loads)[0]
    if main.dtype is not e.dtype:
        return f"the prologue of {name} makes {e.dtype} of {main.dtype}; a tile is copied as it is multiplied"
    return ""


def why_not_prologue(
    kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout], multiprocessors: int, most_shared: int
) -> str:
    """Why a prologue would take longer than a kernel of its own."""
    product, _ = matmul_problem(kernel, outputs, inputs)
    if not any(product.changes):
        return ""

    def cycles(changes: tuple[int, int]) -> float:
        found = split_for_grid(product._replace(changes=changes))
        return sum(choose_config(kernel.a.dtype, p, multiprocessors, ALL_ALIGNED, most_shared).cycles for p in found)

    plain = cycles((0, 0))
    for k, (name, e) in enumerate((("a", kernel.a), ("b", kernel.b))):
        alone = (product.changes[0], 0) if k == 0 else (0, product.changes[1])
        if any(alone) and cycles(alone) - plain > unfused_cycles(e, inputs, multiprocessors):
            return (
                f"the prologue of {name} would be computed again by each block that reads an element; once, in a kernel of "
                "its own, is faster"
            )
    return ""


def unfused_cycles(e: Expression, inputs: Sequence[Layout], multiprocessors: int) -> float:
    """About how many cycles a kernel of its own takes to compute an operand: a launch, what it reads, what it stores."""
    layouts = [inputs[x.index] for x in Kernel((e,), ()).find_all(Load)]
    shape = layouts[0].shape
    size = prod(n for d, n in enumerate(shape) if any(layout.strides[d] for layout in layouts))
    arrays = 1 + any(is_matrix(layout) for layout in layouts)
    return EXTRA_LAUNCH_CYCLES + size * arrays * e.dtype.itemsize / (MEMORY_BYTES_PER_CYCLE * multiprocessors)
