"""Forward gathers from joined or padded arrays to the parts of these, which are in memory anyway."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from ..backends.base import Backend
from ..core.operators import lt, maximum, minimum, where
from ..ir.array_functions import PadSlice
from ..ir.gather import GatherND, fill_value
from ..ir.graph import Node, literal
from .graph import Graph, needs
from .slice_updates import is_update, slice_ranges, strip_fill

MAX_PARTS = 4  # each of which every element of the result is selected from


@needs(GatherND)
def forward_gathers(graph: Graph, target: Backend) -> Graph:
    """Gather from the parts of an array that was put together of slices, if nothing else reads it: it is not stored then.

        gather(pad(x), i)    ->  where(i >= before, x[i - before], 0)
        gather(cat(x, y), i) ->  where(i >= len(x), y[i - len(x)], x[i])

    >>> from minifuse.core.dtypes import float32, int64
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> pad = PadSlice((5,), ((1, 1, 4),))
    >>> graph = trace(lambda x, i: GatherND(None)(pad(x), i), (4,), (3,), dtypes=(float32, int64))
    >>> print(run_pass(forward_gathers, graph, inlines_padding=True)[1])
    ge0 = x1 >= 1
    sub0 = x1 - 1
    maximum0 = maximum(sub0, 0)
    minimum0 = minimum(maximum0, 3)
    gather_nd0 = gather_nd(x0, minimum0)
    where0 = where(ge0, gather_nd0, 0)
    """
    if not target.inlines_padding or not graph.has(PadSlice):
        return graph

    def rule(old: Node, new: Node) -> Node:
        match new:
            case Node(GatherND(dim=dim), (x, *indices)) if is_update(x) and new.size <= x.size:
                parts = parts_of(old.inputs[0], graph)
                if parts and len(parts) <= MAX_PARTS:
                    return gather_from_parts(new, dim, indices)
        return new

    return graph.rebuild(rule)


def parts_of(x: Node, graph: Graph) -> list[Node]:
    """Return the updates that an array consists of, the last one first; none if it is stored, or not made of slices."""
    parts = []
    while is_update(x):
        ranges = slice_ranges(x)
        is_plain = isinstance(x.function, PadSlice) or len(x.function.views) == 1
        if x not in graph.read_once or not is_plain or ranges is None or any(step != 1 for _, step, n in ranges if n > 1):
            return []
        parts.append(x)
        if isinstance(x.function, PadSlice):
            return parts
        x = x.inputs[0]
    return []


def gather_from_parts(gather: Node, dim: int | None, indices: Sequence[Node]) -> Node:
    """Return a gather as a selection of the elements of each part. An index along `dim` may be out of range."""
    (x, *_), result = gather.inputs, select_part(gather.inputs[0], dim, indices)
    if dim is not None:
        is_valid = (indices[dim] >= 0) & lt(indices[dim], x.shape[dim])
        result = where(is_valid, result, literal(fill_value(x.dtype), x.dtype))
    selected: Node = result.to(x.dtype).expand(*gather.shape)
    return selected


def select_part(x: Node, dim: int | None, indices: Sequence[Node]) -> Node:
    """Return the elements of an array at some indices: those of its last slice, and else those of the array before.

    Kernels load elements of a slice, without clamps, where the conditions hold. So these include the range of each index
    that may be out of the range of the slice.
    """
    ranges, value = slice_ranges(x), x.inputs[-1]
    assert ranges is not None
    conditions, inner = list[Node](), [*indices]
    for d, ((start, _, size), n) in enumerate(zip(ranges, x.shape, strict=True)):
        index, end, is_free = indices[d], start + size, d == dim
        conditions += [index >= start] * (start > 0 or is_free) + [lt(index, end)] * (end < n or is_free)
        if size < n or is_free:
            inner[d] = minimum(maximum(index - start if start else index, 0), size - 1)
    number = strip_fill(value)
    element = number.to(x.dtype) if number.is_number else GatherND(None)(value, *inner)
    if not conditions:
        return element
    before = literal(0, x.dtype) if isinstance(x.function, PadSlice) else select_part(x.inputs[0], dim, indices)
    selected: Node = where(reduce(and_, conditions), element, before)
    return selected
