"""Batch a graph: rewrite it so that each node that depends on batched inputs has a leading dim. This is `mf.vmap`.

There is one rule for each kind of function. A function without a rule raises FuseError.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..core.dtypes import NumpyArray
from ..core.errors import FuseError
from ..core.indexing import Shape
from ..core.interning import toposort
from ..core.layout import row_major
from ..core.operators import Operator, add, where
from .along_dim import GatherAlong, UpdateAlong
from .array_functions import Alias, Cast, Copy, CustomVJP, Matmul, PadSlice, Reduce, SliceUpdate, View
from .composite_op import CompositeOp, CompositeOutput
from .gather import Gather, GatherND, Scatter
from .graph import Argument, Node
from .numpy_op import NumpyOp
from .scan import Scan
from .selection import Selection
from .sort import Sort

_example_count = count()


def example(shape: Shape, dtype: Any) -> Node:
    """Return a new input node, which is in no other graph."""
    return Node(Argument(("example", next(_example_count))), (), shape, dtype)  # type: ignore[arg-type]


def batch(outputs: Sequence[Node], batched: Mapping[Node, Node], size: int) -> list[Node | None]:
    """Return the outputs with a leading dim of `size`, given nodes that have one; None for one that depends on none."""
    new = dict(batched)
    for node in toposort(outputs, lambda node: () if node in batched else node.inputs):
        if node not in new and any(x in new for x in node.inputs):
            new[node] = batch_node(node, [new.get(x) for x in node.inputs], size)
    return [new.get(y) for y in outputs]


def lead(x: Node, size: int) -> Node:
    """Return a node repeated along a new leading dim; a number stays a number."""
    return x if x.is_number else x.expand(size, *x.shape)


def batch_node(node: Node, batched: Sequence[Node | None], size: int) -> Node:
    """Return a node with a leading dim, given its inputs with one, or None for those that have none."""
    function = node.function
    inputs = [lead(x, size) if y is None else y for x, y in zip(node.inputs, batched, strict=True)]
    x = inputs[0]
    match function:
        case Operator() | Cast() | Copy() | Alias():
            return Node(function, tuple(inputs), (size, *node.shape), node.dtype)
        case View():
            for view in batch_view(function, node.inputs[0].shape, node.shape, size):
                x = view(x)
            return x
        case PadSlice(shape=shape, ranges=ranges):
            return PadSlice((size, *shape), ((0, 1, size), *ranges))(x)
        case SliceUpdate(views=views):
            new_views, shape = list[View](), node.inputs[0].shape
            for view in views:
                viewed = view.layout(row_major(shape)).shape
                new_views += batch_view(view, shape, viewed, size)
                shape = viewed
            return SliceUpdate(tuple(new_views))(*inputs)
        case CustomVJP():
            return x
        case Reduce(operator=operator, dims=dims):
            return type(function)(operator, tuple(d + 1 for d in dims))(*inputs)
        case Matmul():
            weight = node.inputs[1]
            if batched[1] is None and weight.ndim == 2:  # one product of all rows
                return function(x.reshape(-1, x.shape[-1]), weight).reshape(size, *node.shape)
            return function(*inputs)
        case Gather() | Scatter():
            return batch_indexed(node, batched, inputs, size)
        case GatherND(dim=dim):
            own = x.positions(size).reshape(size, *[1] * len(node.shape)).expand(size, *node.shape)
            return GatherND(dim if dim is None else dim + 1)(x, own, *inputs[1:])
        case CompositeOutput(op=GatherAlong() as op, index=index):
            return CompositeOutput(GatherAlong(op.dim + 1), index)(*inputs)
        case CompositeOutput(op=UpdateAlong() as op, index=index):
            return CompositeOutput(UpdateAlong(op.operator, op.dim + 1), index)(*inputs)
        case CompositeOutput(op=Scan() as scan, index=index):
            return CompositeOutput(Scan(scan.operator, scan.dim + 1, scan.reverse, scan.kept), index)(*inputs)
        case CompositeOutput(op=Sort() as sort, index=index):
            return CompositeOutput(Sort(sort.dim + 1, sort.descending, sort.names, sort.digits), index)(*inputs)
        case CompositeOutput(op=Selection() as op, index=index):
            return CompositeOutput(Selection(op.dim + 1, op.descending, op.names, op.count), index)(*inputs)
        case CompositeOutput(op=NumpyOp() as op, index=index):
            mapped = NumpyOp(map_slices, (size, *op.shape), op.dtype, (op.compute, op.parameters))
            return CompositeOutput(mapped, index)(*inputs)
        case CompositeOutput(op=op, index=index):
            flags = tuple(y is not None for y in batched)
            operands = [old if y is None else y for old, y in zip(node.inputs, batched, strict=True)]
            return CompositeOutput(BatchedOp(op, flags, size), index)(*operands)
    raise FuseError(f"vmap: there is no rule for {function}; write the function for a batch, or a loop over x.unbind()")


def map_slices(*arguments: Any) -> NumpyArray:
    """Apply a function of NumPy arrays, the last argument but one, to each slice along the first dim of the others."""
    *arrays, compute, parameters = arguments
    return np.stack([compute(*slices, *parameters) for slices in zip(*arrays, strict=True)])


def batch_view(view: View, shape: Shape, viewed: Shape, size: int) -> list[View]:
    """Return the views of an array with a leading dim that act on the others as a view does."""
    match view.method, view.parameters:
        case "permute", order:
            return [View("permute", (0, *[d + 1 for d in order]))]
        case "slice", ranges:
            return [View("slice", ((0, 1, size), *ranges))]
        case "reshape", _:
            return [View("reshape", (size, *viewed))]
        case "expand", _:
            ones = (1,) * (len(viewed) - len(shape))
            return [View("reshape", (size, *ones, *shape)), View("expand", (size, *viewed))]
        case "sliding_windows", (dim, *others):
            return [View("sliding_windows", (dim + 1, *others))]
        case "patches", _:  # of dims counted from the end
            return [view]
        case "skew", (dim, along, *others):
            return [View("skew", (dim + 1, along + 1, *others))]
    raise FuseError(f"vmap: there is no rule for the view {view}; use another view, or a loop over x.unbind()")


def batch_indexed(node: Node, batched: Sequence[Node | None], inputs: Sequence[Node], size: int) -> Node:
    """Return a gather or a scatter with a leading dim.

    An index with a leading dim selects from, or adds to, its own part of one long dim.
    """
    function, (x, index) = node.function, inputs
    dim, is_gather = function.dim, isinstance(function, Gather)
    if batched[1] is None:
        shared = Gather(dim + 1) if is_gather else Scatter(function.operator, dim + 1, function.size)
        return shared(x, node.inputs[1])
    others = [d for d in range(1, x.ndim) if d <= dim], [d for d in range(1, x.ndim) if d > dim]
    x = x.permute(*others[0], 0, *others[1])  # (before, size, dim and after)
    part = node.inputs[0].shape[dim] if is_gather else function.size
    first = index.positions(size).to(index.dtype).reshape(size, *(1,) * (index.ndim - 1)) * part
    own = where(index >= 0, where(index < part, index + first, -1), -1)
    y: Node
    if is_gather:
        y = Gather(dim)(x.reshape(*x.shape[:dim], size * part, *x.shape[dim + 2 :]), own)
    else:
        y = Scatter(function.operator, dim, size * part)(x, own)
        y = y.reshape(*y.shape[:dim], size, part, *y.shape[dim + 1 :])
    order = (dim, *[d for d in range(y.ndim) if d != dim])
    return y.permute(*order)


class BatchedOp(CompositeOp):
    """A composite op with a leading dim: its definition and its VJP are those of the op, batched.

    `flags` tells which inputs have the dim.
    """

    def __init__(self, op: CompositeOp, flags: tuple[bool, ...], size: int) -> None:
        self.op, self.flags, self.size = op, flags, size
        self.names = tuple(f"batched {name}" for name in op.names)
        self.output_layout_like = (None,) * len(op.names)

    def examples(self, inputs: Sequence[Any]) -> tuple[list[Node], dict[Node, Node]]:
        """Return the inputs without the leading dim, and {each that had it: the input}."""
        pairs = [(example(x.shape[1:], x.dtype), x) if flag else (x, x) for x, flag in zip(inputs, self.flags, strict=True)]
        return [a for a, _ in pairs], {a: x for (a, x), flag in zip(pairs, self.flags, strict=True) if flag}

    def infer(self, *inputs: Any) -> Any:
        """Return the shape and dtype of each output."""
        return tuple(((self.size, *shape), dtype) for shape, dtype in self.op.infer(*self.examples(inputs)[0]))

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the definition of the op, batched."""
        xs, batched = self.examples(inputs)
        ys = self.op.body(*xs)
        return tuple(lead(y, self.size) if z is None else z for y, z in zip(ys, batch(ys, batched, self.size), strict=True))

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...] | None:
        """Return the VJP of the op, batched. The gradient of an input without the dim is the sum over it."""
        xs, batched = self.examples(inputs)
        one = example(g.shape[1:], g.dtype)
        gradients = self.op.vjp(index, one, *xs)
        if gradients is None:
            return None
        present = [x for x in gradients if x is not None]
        found = dict(zip(present, batch(present, {**batched, one: g}, self.size), strict=True))
        results = [None if x is None else lead(x, self.size) if found[x] is None else found[x] for x in gradients]
        return tuple(
            y if y is None or flag else Reduce(add, (0,))(y).reshape(y.shape[1:])
            for y, flag in zip(results, self.flags, strict=True)
        )
