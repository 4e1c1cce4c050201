"""Compute views and padding before a reduction: a view of a reduction is a reduction of a view.

    view(sum(x, dims))  ->  sum(view'(x'), leading dims), where x' is x with its reduced dims first

A slice is moved, so that fewer elements are reduced; and whatever is between two reductions, so that they become one.
"""

from collections.abc import Sequence
from types import UnionType

from ..backends.base import Backend
from ..core.indexing import Shape
from ..core.operators import add
from ..ir.array_functions import PadSlice, Reduce, View
from ..ir.graph import Node, strip_views
from ..ir.nested_reduce import with_leading_dims
from .fusibility import why_not_nested
from .graph import Graph, needs
from .nest_reductions import count_ops, find_reductions, inlined_nodes, row_size
from .reindexing import find_kept_dims, is_reshape, is_unflatten


@needs(Reduce)
def slice_before_reduction(graph: Graph, _target: Backend) -> Graph:
    """Reduce only the elements of a slice, where nothing reads the other results of a reduction.

    A gradient of padding reads a slice of a sum over windows. A slice that the call returns as a view is not changed: it has
    the strides of the whole.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x: Reduce(add, (0,))(x * x).reshape(9, 3)[1:8], (5, 9, 3))
    >>> before, after = run_pass(slice_before_reduction, graph)
    >>> print(before)
    mul0 = x0 * x0
    sum0 = sum(mul0, dim=0)
    reshape0 = reshape(sum0, 9, 3)
    slice0 = slice(reshape0, 1:8, 0:3)
    >>> print(after)
    mul0 = x0 * x0
    slice0 = slice(mul0, 0:5, 1:8, 0:3)
    sum0 = sum(slice0, dim=0)
    reshape0 = reshape(sum0, 7, 3)
    """

    def rule(node: Node, new: Node) -> Node:
        is_slice = isinstance(node.function, View) and node.function.method == "slice"
        reduction = find_reduction(graph, node, View) if is_slice and node.size else None
        if reduction is None or reduction in graph.required_layouts or not graph.read_once.issuperset(reduction.inputs):
            return new
        return reduce_view(new)

    return graph.rebuild(rule)


@needs(Reduce)
def merge_reductions(graph: Graph, target: Backend) -> Graph:
    """Make one reduction of two with views or padding in between, if that costs less and the target wants it.

        max(windows(max(windows(x))))  ->  max(windows(windows(x)))
        sum(pad_slice(sum(x)))         ->  sum(pad_slice(x))

    An element of x may be read more often then: the kernels of the target must read it from a cache.

    >>> from minifuse.core.operators import maximum
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> rows = lambda x: Reduce(maximum, (2,))(x.unfold(0, 3, 1))
    >>> graph = trace(lambda x: Reduce(maximum, (3,))(rows(x).unfold(1, 3, 1)), (64, 64))
    >>> print(run_pass(merge_reductions, graph, inlines_padding=True)[1])
    sliding_windows0 = sliding_windows(x0, 0, 3, 1, 1)
    permute0 = permute(sliding_windows0, 2, 0, 1)
    reshape0 = reshape(permute0, 3, 62, 64, 1)
    sliding_windows1 = sliding_windows(reshape0, 2, 3, 1, 1)
    max0 = max(sliding_windows1, dim=0, 4)
    reshape1 = reshape(max0, 62, 62, 1, 1)
    """
    if not target.inlines_padding or len(find_reductions(graph)) < 2:
        return graph

    def rule(node: Node, new: Node) -> Node:
        inner = find_reduction(graph, node, View | PadSlice) if has_one_state(node) else None
        return merge_reduction(new) if inner is not None and has_one_state(inner) else new

    return graph.rebuild(rule)


def has_one_state(node: Node) -> bool:
    """Return whether a node is a reduction of one input."""
    return isinstance(node.function, Reduce) and len(node.inputs) == 1


def find_reduction(graph: Graph, node: Node, kinds: type | UnionType) -> Node | None:
    """Return the reduction that a node reads through some kinds of functions, if nothing else reads it or those; or None."""
    (x,) = node.inputs
    while isinstance(x.function, kinds) and x in graph.read_once:
        (x,) = x.inputs
    return x if isinstance(x.function, Reduce) and x in graph.read_once else None


def strip_to_reduction(node: Node) -> tuple[Node, list[View | PadSlice]]:
    """Return the reduction under the views and padding of a node, and these functions, the first one first."""
    functions = list[View | PadSlice]()
    while not isinstance(node.function, Reduce):
        functions.append(node.function)
        (node,) = node.inputs
    return node, functions[::-1]


def move_before(reduction: Node, functions: Sequence[View | PadSlice]) -> list[Node] | None:
    """Apply views or padding of a reduction to its inputs, with their reduced dims first; None if that is impossible."""
    dims, shape = reduction.function.dims, reduction.inputs[0].shape
    sizes, kept = tuple(shape[d] for d in dims), [d for d in range(len(shape)) if d not in dims]
    arrays = [x.permute(*dims, *kept) for x in reduction.inputs]
    rows = [View("reshape", reduction.shape)] * (not any(map(is_reshape, functions[:1])))
    for function in (*rows, *functions):
        lifted = with_leading_dims(function, sizes)
        if isinstance(lifted, PadSlice):
            arrays = [pad(lifted, x) for x in arrays]
            is_padded_twice = isinstance(strip_views(*strip_views(arrays[0]).inputs).function, PadSlice)
            is_forward = all(step >= 1 for _, step, _ in lifted.ranges)
            if reduction.function.operator is not add or is_padded_twice or not is_forward:
                return None
        elif lifted is None or (lifted.method == "reshape" and not is_unflatten(arrays[0].shape, lifted.parameters)):
            return None
        else:
            arrays = [lifted(x) for x in arrays]
    return arrays


def reduce_view(view: Node) -> Node:
    """Return a view of a reduction as a reduction of views, if that is possible and reduces no more elements.

    Reduced dims behind all others, along which memory is contiguous, stay behind them.
    """
    reduction, functions = strip_to_reduction(view)
    arrays, x, dims = move_before(reduction, functions), reduction.inputs[0], reduction.function.dims
    if arrays is None or arrays[0].size > x.size:
        return view
    last_kept = max([d for d, n in enumerate(reduction.shape) if n > 1], default=-1)
    first, count, rank = sum(d < last_kept for d in dims), len(dims), arrays[0].ndim
    order = *range(first), *range(count, rank), *range(first, count)
    reduced = Reduce(reduction.function.operator, (*range(first), *range(rank - count + first, rank)))
    y: Node = reduced(*[a.permute(*order) for a in arrays]).reshape(view.shape)
    return y


def merge_reduction(outer: Node) -> Node:
    """Return a reduction of views or padding of another reduction as one, if that is possible and costs less."""
    (inner, functions), operator = strip_to_reduction(*outer.inputs), outer.function.operator
    order = inlined_nodes(inner)
    if inner.function.operator is not operator or order is None:
        return outer
    repeated = max(outer.inputs[0].size - inner.size, 0)
    ops, saved = repeated * row_size(inner) * count_ops(order), 2 * inner.size * inner.dtype.itemsize
    if why_not_nested(row_size(inner) * row_size(outer), outer.size, 2, ops, saved) is not None:
        return outer
    arrays, count = move_before(inner, functions), len(inner.function.dims)
    if arrays is None:
        return outer
    merged: Node = Reduce(operator, (*range(count), *[d + count for d in outer.function.dims]))(*arrays)
    return merged.reshape(outer.shape)


def pad(padding: PadSlice, x: Node) -> Node:
    """Return a padded array. If the array is a view of another padded one, both are one padded array, if possible."""
    moved, views, source = padding, list[tuple[View, Shape]](), x
    while isinstance(source.function, View) and (before := move_before_view(moved, source)) is not None:
        views.append((source.function, moved.shape))
        moved, (source,) = before, source.inputs
    if not isinstance(source.function, PadSlice):
        return padding(x)
    pairs = zip(moved.ranges, source.function.ranges, strict=True)
    ranges = tuple((a + s * b, s * t, n) for (a, s, _), (b, t, n) in pairs)
    y: Node = PadSlice(moved.shape, ranges)(*source.inputs)
    for view, shape in reversed(views):
        y = y.reshape(shape) if is_reshape(view) else view(y)
    return y


def move_before_view(padding: PadSlice, x: Node) -> PadSlice | None:
    """Return the padding of the array that x is a view of, with which the view is x with padding; None if there is none."""
    view, (source,) = x.function, x.inputs
    dims = find_kept_dims(view, source.shape, x.shape)
    if view.method == "skew":
        dims = {d: d for d in range(x.ndim) if d not in view.parameters[:2]}
    padded = {d for d, n in enumerate(x.shape) if (padding.shape[d], padding.ranges[d]) != (n, (0, 1, n))}
    if dims is None or not padded <= {*dims.values()}:
        return None
    whole = {d: (n, (0, 1, n)) for d, n in enumerate(source.shape)}
    moved = whole | {d: (padding.shape[k], padding.ranges[k]) for d, k in dims.items()}
    return PadSlice(tuple(n for n, _ in moved.values()), tuple(r for _, r in moved.values()))
