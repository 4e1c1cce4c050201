"""Whether prologue and epilogue should be part of a product's kernels, or kernels of their own: integers, a model of time.

An epilogue almost always pays: it saves a pass over memory, and comes once a sum. A prologue is done again by every block
that reads the element, which a copy through memory does not need. So it pays where an operand is read by few blocks: where
the product has few columns, or few rows, or is so small that a launch counts.
"""

from collections.abc import Sequence
from math import prod

from ....core.layout import Layout
from ....ir.kernel_ir import Expression, Kernel, Load, Position, ProductKernel
from .heuristics import CUT, MEMORY, best_way
from .launches import LARGEST_SHARED, pieces
from .operands import is_matrix, whole_product

MOST_COST = 160  # additions of an epilogue; more keep the few threads that a product has too long
MOST_OPERANDS = 8  # that an epilogue reads and stores: four neighbours of each wait in registers, beside the sums
ALIGNED = (True, True, True)


def refusal(
    kernel: ProductKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    most_shared: int = LARGEST_SHARED,
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
    found = refused_epilogue(kernel) or refused_loads("a", kernel.a, inputs) or refused_loads("b", kernel.b, inputs)
    return found or refused_changes(kernel, outputs, inputs, multiprocessors, most_shared)


def refused_epilogue(kernel: ProductKernel) -> str:
    """Why an epilogue is too much for the threads of a product."""
    part = Kernel(kernel.elements, ())
    operands = len(part.each(Load)) + len(kernel.elements)
    if operands > MOST_OPERANDS:
        return f"the epilogue reads and stores {operands} arrays; more than {MOST_OPERANDS} leave the sums too few registers"
    if part.cost() > MOST_COST:
        return f"the epilogue costs {part.cost()} additions a sum; above {MOST_COST} a kernel with more threads is faster"
    return ""


def refused_loads(name: str, e: Expression, inputs: Sequence[Layout]) -> str:
    """Why a kernel cannot load what a prologue reads: a tile is one array, of the type that is multiplied."""
    loads = [x for x in Kernel((e,), ()).each(Load) if not isinstance(x, Position)]
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


def refused_changes(
    kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout], multiprocessors: int, most_shared: int
) -> str:
    """Why a prologue would take longer than a kernel of its own."""
    product, _ = whole_product(kernel, outputs, inputs)
    if not any(product.changes):
        return ""

    def cycles(changes: tuple[int, int]) -> float:
        found = pieces(product._replace(changes=changes))
        return sum(best_way(kernel.a.dtype, p, multiprocessors, ALIGNED, most_shared).cycles for p in found)

    plain = cycles((0, 0))
    for k, (name, e) in enumerate((("a", kernel.a), ("b", kernel.b))):
        alone = (product.changes[0], 0) if k == 0 else (0, product.changes[1])
        if any(alone) and cycles(alone) - plain > pass_time(e, inputs, multiprocessors):
            return (
                f"the prologue of {name} would be computed again by each block that reads an element; once, in a kernel of "
                "its own, is faster"
            )
    return ""


def pass_time(e: Expression, inputs: Sequence[Layout], multiprocessors: int) -> float:
    """About how many cycles a kernel of its own takes to compute an operand: a launch, what it reads, what it stores."""
    layouts = [inputs[x.index] for x in Kernel((e,), ()).each(Load)]
    shape = layouts[0].shape
    size = prod(n for d, n in enumerate(shape) if any(layout.strides[d] for layout in layouts))
    arrays = 1 + any(is_matrix(layout) for layout in layouts)
    return CUT + size * arrays * e.dtype.itemsize / (MEMORY * multiprocessors)
