"""The table of edges: why the kernel of one node cannot compute another node, too. Each reason is shown by `explain`."""

from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType

from ..backends.base import Backend
from ..core.dtypes import bool_
from ..core.operators import Operator
from ..core.wording import format_count
from ..ir.array_functions import Matmul, PadSlice, Reduce, SliceUpdate
from ..ir.composite_op import CompositeOutput
from ..ir.gather import ScatterReduce
from ..ir.graph import Node, strip_views
from ..ir.scan import Scan
from .iteration_space import IterationSpace, reduction_space

SAVED_FOR_BACKWARD = "it is saved for the backward pass"
ALREADY_STORED = "another kernel has computed and stored it"
WOULD_WAIT = "its other inputs are computed from results of that kernel"
ONE_MATMUL_PER_KERNEL = "a kernel computes one matmul"
OPERAND_IS_SHARED = "other kernels read it too, so it is stored"
OPERAND_ENDS_ROWS = "the kernel that reduces its rows stores it in the same pass"
OPERAND_IS_INDEX = "the prologue of a matmul reads arrays, and this operand is a range of integers"
PROLOGUE_IS_POINTWISE = "the prologue of a matmul must be pointwise, and this operand is a reduction"
SCANNED_IS_POINTWISE = "the prologue of a scan is pointwise, and this operand is not"
SCANNED_IS_GATHERED = "the prologue of a scan reads elements in the order of the scan"
SCAN_NEEDS_ROWS = "a row reduction needs complete rows; a block of a scan has short lines only, or parts"
SCAN_REORDERED = "an epilogue reads each element of its scan once and in order, and a view repeats or reorders them"
SCANS_ARE_COMBINED = "it is one array, and the results of scans that it combines are several"
ONE_SCAN_PER_KERNEL = "a kernel computes one scan"
SCAN_NOT_VECTORIZED = "a CPU computes a scan one element after the other, and this takes too many ops for that"
REDUCTION_NEEDS_ROWS = "a row reduction needs complete rows; a matmul tile holds only parts"
REDUCTION_REORDERED = "a kernel has one result of its reduction per row, and a view reorders or repeats these results"
MATMUL_REORDERED = "an epilogue reads each element of its matmul once and in order, and a view repeats or reorders them"
UPDATE_NEEDS_MEMORY = "a slice update writes a part of an array, so the array must be in memory"
COLUMNS_ARE_STRIDED = "the loops of a kernel that reduces columns would store other values with large strides"
COMPOSITE_IS_ONE_CALL = "the backend computes this composite op with a kernel of its own"
SCATTER_ADD_ENDS_KERNEL = "a scatter-add is complete only when its kernel ends"
VALUE_IS_SELECTED = "a thread of a sum by index waits for each value that it selects, so the values are computed before"
GATHER_NEEDS_MEMORY = "a gather may read any element, so its source must be in memory first"
GATHER_NOT_IN_MATMUL = "a matmul copies whole tiles of its operands, and gathered elements are not adjacent"

NESTED_HAS_STATES = "a reduction inside another one has one state"
NESTED_NEEDS_VIEWS = "it is read through a view that a kernel cannot compute"
MAX_NESTED_SIZE = 32  # elements that a nested reduction reduces for each result
MIN_NESTED_ROWS = 64  # rows of a kernel with nested reductions: with fewer, threads would be idle
MAX_CACHED_ROW = 1 << 10  # results of a nested reduction that a kernel keeps for all passes over a row
MAX_SHARED_AXIS = 16  # indices of a row axis for which a kernel computes a nested reduction once, if all need it
MAX_OPS_PER_BYTE = 2  # ops that may be computed again for each byte that is not stored or loaded
MIN_POINTS_TO_SPLIT = 1 << 16  # points; a kernel over fewer takes less time than one more launch
MAX_RECOMPUTED_COST = 8  # additions; ops that cost more are not computed again, nor one element after the other
SEPARATE = (PadSlice, SliceUpdate, ScatterReduce, CompositeOutput)  # functions whose kernels compute nothing else


def why_not_fusible(leaf: Node, consumer: Node, not_nested: Mapping[Node, str] = MappingProxyType({})) -> str | None:
    """Return why the kernel that computes the source of a leaf cannot compute a consumer of it, too; None if it can.

    A leaf is a node, or a view of it, as the consumer reads it. Pointwise nodes are fusible here: whether a kernel can read
    their own inputs through the views is another edge. `not_nested` are the reasons why a reduction is not computed inside
    kernels with other loops.
    """
    producer, space = strip_views(leaf), own_space(consumer)
    match producer.function:
        case PadSlice() | SliceUpdate():
            return UPDATE_NEEDS_MEMORY
        case ScatterReduce():
            return SCATTER_ADD_ENDS_KERNEL
        case CompositeOutput(op=Scan() as op) if space.dims and space != IterationSpace(producer.shape, (op.dim,)):
            return SCAN_NEEDS_ROWS
        case CompositeOutput(op=Scan()):
            return None if leaf.shape == producer.shape and space.is_read_in_order(leaf) else SCAN_REORDERED
        case CompositeOutput():
            return COMPOSITE_IS_ONE_CALL
        case Matmul() if space.dims:
            return REDUCTION_NEEDS_ROWS
        case Matmul():
            return None if space.is_read_in_order(leaf) else MATMUL_REORDERED
        case Reduce():
            rows = reduction_space(producer)
            if space != rows and (space.dims or not rows.contains_shape(consumer.shape)):
                why = f"; {not_nested[producer]}" if producer in not_nested else ""
                return f"it reduces {rows}, and this kernel {'reduces' if space.dims else 'loops over'} {space}{why}"
            return None if rows.is_own_reduction(leaf) else REDUCTION_REORDERED
    return None


def why_not_in_space(root: Node, space: IterationSpace, producers: Iterable[Node]) -> str | None:
    """Return why the loops of a kernel without a matmul cannot compute a root; None if they can.

    `producers` are the nodes of the kernel that the root is computed from. A value with one element per row can join the
    kernel if one of them has one element per row, too.
    """
    own, sources = own_space(root), [*producers]
    if own.dims:
        return why_not_merged(space, own)
    if root.shape == space.shape:
        return None if any(is_reduction(x) for x in sources) else why_not_merged(space, own)
    is_row = space.contains_shape(root.shape) and any(has_rows(x, space) for x in sources)
    return None if is_row else spaces_differ(space, own)


def why_not_merged(a: IterationSpace, b: IterationSpace) -> str | None:
    """Return why two kernels without matmuls cannot have the same loops; None if they can.

    The elements of a column are far apart in memory. A kernel that reduces large columns visits them one by one, so it
    stores other values only if it must compute them from its results.
    """
    if a.shape != b.shape or len({a.dims, b.dims} - {()}) > 1:
        return spaces_differ(a, b)
    last = max((d for d, n in enumerate(a.shape) if n > 1), default=0)
    are_columns = a.dims != b.dims and last not in (a.dims or b.dims)
    return COLUMNS_ARE_STRIDED if are_columns and prod(a.shape) > MIN_POINTS_TO_SPLIT else None


def why_not_nested(row_size: int, rows: int, times: int, ops: int, saved_nbytes: int) -> str | None:
    """Return why a reduction is stored for reductions of other dims, instead of being computed inside their kernels.

    Parameters
    ----------
    row_size : int
        The elements that it reduces for each result.
    rows : int
        The rows of the kernel that would compute it.
    times : int
        How often each result would be computed.
    ops : int
        The ops of all computations but the first.
    saved_nbytes : int
        The bytes that need not be stored and loaded, less those of arrays that would be loaded again.

    Examples
    --------
    >>> why_not_nested(3, 4096, times=3, ops=8_000, saved_nbytes=8_000)
    >>> why_not_nested(3, 4096, times=100, ops=900_000, saved_nbytes=8_000)
    'to compute it 100 times takes 900,000 more ops, and to store and load it takes 8,000 B'
    """
    if row_size > MAX_NESTED_SIZE:
        return f"rows of {row_size} elements are too long to be reduced wherever the result is needed"
    if rows < MIN_NESTED_ROWS:
        return f"to compute it in a kernel of {format_count(rows, 'row')} would leave threads idle"
    if saved_nbytes <= 0:
        return f"to compute it {times} times would load more than to store it and load it"
    if ops > MAX_OPS_PER_BYTE * saved_nbytes:
        return f"to compute it {times} times takes {ops:,} more ops, and to store and load it takes {saved_nbytes:,} B"
    return None


def why_not_prologue(source: Node) -> str:
    """Return why a matmul loads an operand that is not pointwise, or that is stored, instead of computing it."""
    match source.function:
        case Matmul():
            return ONE_MATMUL_PER_KERNEL
        case Reduce():
            return PROLOGUE_IS_POINTWISE
    return ALREADY_STORED


def has_rows(node: Node, space: IterationSpace) -> bool:
    """Return whether a node of a kernel has one element per row of its space."""
    return is_reduction(node) or (node.shape != space.shape and space.contains_shape(node.shape))


def own_space(node: Node) -> IterationSpace:
    """Return the loops of a kernel that computes only one node."""
    return reduction_space(node) if is_reduction(node) else IterationSpace(node.shape, ())


def has_dear_op(computed: Iterable[Node]) -> bool:
    """Return whether the op of a node costs much, such as an exponential, which a CPU computes in vectors."""
    return any(isinstance(x.function, Operator) and x.function.cost > MAX_RECOMPUTED_COST for x in computed)


def reduces_scanned_rows(root: Node, scan: Node, target: Backend) -> bool:
    """Return whether the kernel of a scan may compute a reduction of the same dim of its results."""
    has_one_state = len(root.function.operator.states) == 1 and root.dtype is not bool_
    return has_one_state and has_short_lines(scan, target)


def has_short_lines(scan: Node, target: Backend) -> bool:
    """Return whether the kernel of a scan has whole lines, along the last dim, and so may reduce them."""
    dim = scan.function.op.dim
    return bool(dim == scan.ndim - 1 and 1 < scan.shape[dim] <= target.max_scanned_row)


def is_serial(scan: Node, target: Backend) -> bool:
    """Return whether the kernel of a scan has no vectors: on a CPU, if its dim is the last one."""
    return target.is_host and scan.function.op.dim == scan.ndim - 1


def is_reduction(node: Node) -> bool:
    """Return whether a node is a reduction."""
    return isinstance(node.function, Reduce)


def spaces_differ(a: IterationSpace, b: IterationSpace) -> str:
    """Return the refusal for two kernels with different loops."""
    return f"one kernel loops over {a}, the other over {b}"
