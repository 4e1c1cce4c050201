"""Choose the sizes and strides that the text of a CPU kernel contains as constants; all others are arguments of the launch.

Compilers unroll a loop of few elements if its size is a constant, and vectorize the loop around it.
"""

from math import prod

from ...ir.kernel_ir import Kernel, Load, LoopNest, ReduceExpr
from .expression_printer import operand_name

MAX_UNROLLED_ROW = 32  # elements of a row whose loop is unrolled
MAX_UNROLLED_AXIS = 8  # the same for a row without reductions
MIN_VECTORIZED_ROWS = 8  # rows that fill a vector; with fewer, there is no loop to vectorize around the unrolled one
MIN_UNROLLED_POINTS = 1 << 14  # with fewer, a text for each size of rows takes longer to compile than it saves
MAX_LITERAL_STRIDE = 64  # larger strides are arguments of the launch
MAX_VECTOR_STRIDE = 8  # the same along long rows
MIN_STORED_COLUMNS = 32  # columns that are processed in blocks, if short rows are reduced and stored

Literals = tuple[tuple[str, int], ...]  # names in a text, and their values


def short_literals(kernel: Kernel, nest: LoopNest) -> Literals:
    """Return the sizes of the axes along a row of few elements, and small strides along the row and across rows.

    If a row is long or there are few rows, only the smallest strides along its last axis are returned: with such a constant,
    compilers load vectors and pick elements, instead of loading each element. The size of a short axis across rows says that
    its elements do not fill a vector.
    """
    rows, sizes = nest.row_axes, nest.sizes
    max_size = MAX_UNROLLED_ROW if kernel.find_all(ReduceExpr) else MAX_UNROLLED_AXIS
    is_short = rows > 0 and prod(sizes[rows:]) <= max_size and sizes[rows - 1] >= MIN_VECTORIZED_ROWS
    is_short = is_short and not stores_columns(kernel, nest)
    axes, max_stride = (
        (range(rows - 1, len(sizes)), MAX_LITERAL_STRIDE) if is_short else (range(len(sizes))[-1:], MAX_VECTOR_STRIDE)
    )
    names = [f"out{k}" for k in range(len(kernel.outputs))] + [operand_name(e) for e in kernel.find_all(Load)]
    literals = [(f"n{axis}", sizes[axis]) for axis in axes if is_short and axis >= rows]
    if kernel.find_all(ReduceExpr) and not is_short and sizes[rows - 1] < MIN_VECTORIZED_ROWS:
        literals.append((f"n{rows - 1}", sizes[rows - 1]))
    for name, strides in zip(names, nest.strides, strict=True):
        inner = [(axis, strides[axis]) for axis in axes]
        literals += [(f"{name}_{axis}", s) for axis, s in inner if s not in (0, 1) and abs(s) <= max_stride]
    return tuple(literals)


def stores_columns(kernel: Kernel, nest: LoopNest) -> bool:
    """Return whether a kernel reduces and stores short rows that are better processed in blocks of columns.

    A loop over rows around unrolled loads and stores is vectorized only if their distances are known to differ: if there are
    few of them, with strides in the text.
    """
    rows, sizes = nest.row_axes, nest.sizes
    if not (kernel.find_all(ReduceExpr) and kernel.pointwise_outputs) or sizes[rows - 1] < MIN_STORED_COLUMNS:
        return False
    contiguous = [strides[rows:] for strides in nest.strides[len(kernel.outputs) :] if strides[rows - 1] == 1]
    is_far = any(abs(stride) > MAX_LITERAL_STRIDE for strides in contiguous for stride in strides)
    return is_far or (prod(sizes[rows:]) > MAX_UNROLLED_AXIS and bool(contiguous))
