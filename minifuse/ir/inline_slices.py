"""Inline the slices that a scatter combines: an expression of their position, and of the arrays that it is computed from.

A scatter by a sorted index reads each element of its values once. So these need not be stored: the kernel computes them, for
example the messages of a graph, which are gathered and scaled.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..core.dtypes import DType, int64
from ..core.errors import ShapeError
from ..core.layout import Layout, row_major
from ..core.operators import Operator
from .array_functions import Alias, Cast, Copy, Full, Iota, View
from .gather import GatherND, clamped_load, fill_value
from .graph import Literal, Node
from .kernel_ir import Constant, Expression, IndexedLoad, IndexValue, Kernel, Load, Op, cast, constant

MAX_REPEATED_OPS = 4  # operators of a value that is computed again for each element of a dim along which it is expanded
MIN_REPEATS = 4
MAX_OPS = 64  # the kernel contains the expression for each of several slices and columns
AXES = tuple(IndexValue(axis, int64) for axis in range(3))  # the batch, the slice and the column
Views = tuple[View, ...]


class InlinedSlices(NamedTuple):
    """The slices of a scatter. `Load(k)` is an element of leaf k at a point, `IndexedLoad(k)` at computed indices."""

    value: Expression
    leaves: tuple[Node, ...]


def inline_slices(values: Node) -> InlinedSlices:
    """Return values of the shape (batch, count, columns) as an expression of the AXES and of leaves."""
    inliner = SliceInliner()
    value = inliner.expression(values, ())
    if len(Kernel((value,), ()).find_all(Op)) > MAX_OPS:
        return InlinedSlices(Load(0, values.dtype), (values,))
    return InlinedSlices(value, tuple(inliner.leaves))


class SliceInliner:
    """The leaves of an expression under construction."""

    def __init__(self) -> None:
        self.leaves: list[Node] = []
        self.found: dict[tuple[Node, Views], Expression] = {}

    def expression(self, node: Node, views: Views) -> Expression:
        """Return the elements of views of a node."""
        key = node, views
        if key not in self.found:
            self.found[key] = self.compute(node, views)
        return self.found[key]

    def compute(self, node: Node, views: Views) -> Expression:
        """Return the elements of views of a node: of its inputs, if it is pointwise."""
        function, inputs = node.function, node.inputs
        match function:
            case View(method="expand"):
                return self.repeated(node, views)
            case View():
                return self.expression(inputs[0], (function, *views))
            case Alias() | Copy():
                return self.expression(inputs[0], views)
            case Literal() if isinstance(node.dtype, DType):
                return Constant(function.text, node.dtype)
            case Full() if isinstance(inputs[0].function, Literal):
                return Constant(inputs[0].function.text, node.dtype)
            case Iota(size=size):
                layout = viewed(row_major((size,)), views)
                if layout is not None:
                    terms = (x if s == 1 else x * s for x, s in zip(AXES, layout.strides, strict=True) if s)
                    return sum(terms, start=constant(layout.offset, int64))
            case GatherND(dim=dim) if inputs[0].size:
                indices = [self.expression(x, views) for x in inputs[1:]]
                return self.gather(inputs[0], dim, indices)
            case Operator() | Cast() if not any(x.is_number and not is_constant(x) for x in inputs):
                operands = [self.expression(x, () if x.is_number else views) for x in inputs]
                return cast(operands[0], node.dtype) if isinstance(function, Cast) else function(*operands)
        return self.leaf(node, views)

    def repeated(self, node: Node, views: Views) -> Expression:
        """Return the elements of an expanded node. Its input is a leaf if it would be computed many times."""
        (x,), leaf_count = node.inputs, len(self.leaves)
        e = self.expression(x, (node.function, *views))
        kernel = Kernel((e,), ())
        is_costly = len(kernel.find_all(Op)) > MAX_REPEATED_OPS or kernel.find_all(IndexedLoad)
        if not is_costly or node.size < MIN_REPEATS * x.size:
            return e
        del self.leaves[leaf_count:]
        self.found = {key: e for key, e in self.found.items() if max_leaf(e) < leaf_count}
        return self.leaf(x, (node.function, *views))

    def leaf(self, node: Node, views: Views) -> Expression:
        """Return the elements of a node that is in memory."""
        if viewed(row_major(node.shape), views) is None:
            indices = pull_back(AXES, node.shape, views)
            if indices is not None:
                return IndexedLoad(self.add(node), 0, tuple(indices), node.dtype)
        for view in views:
            node = view(node)
        return Load(self.add(node), node.dtype)

    def gather(self, x: Node, dim: int | None, indices: Sequence[Expression]) -> Expression:
        """Return the elements of a node in memory at some indices."""
        k = self.add(x)
        if dim is None:
            return IndexedLoad(k, 0, tuple(indices), x.dtype)
        last, fill = constant(x.shape[dim] - 1, int64), constant(fill_value(x.dtype), x.dtype)
        return clamped_load(x.dtype, dim, indices, k, last, fill)

    def add(self, node: Node) -> int:
        """Return the number of a leaf, which is added if it is new."""
        if not any(node is x for x in self.leaves):
            self.leaves.append(node)
        return next(k for k, x in enumerate(self.leaves) if x is node)


def is_constant(x: Node) -> bool:
    """Return whether a node is a number in the program, which no call changes."""
    return isinstance(x.function, Literal) and isinstance(x.dtype, DType)


def max_leaf(e: Expression) -> int:
    """Return the largest number of a leaf in an expression; -1 if there is none."""
    kernel = Kernel((e,), ())
    loads = [x.index for x in kernel.find_all(Load) if not isinstance(x, IndexValue)]
    return max([*loads, *[x.index for x in kernel.find_all(IndexedLoad)]], default=-1)


def viewed(layout: Layout, views: Views) -> Layout | None:
    """Return a layout through views; None if no strides describe it."""
    try:
        for view in views:
            layout = view.layout(layout)
    except ShapeError:
        return None
    return layout


def pull_back(indices: Sequence[Expression], shape: tuple[int, ...], views: Views) -> list[Expression] | None:
    """Return the indices of an element of an array, given those of its views; None if a view is of another kind."""
    shapes = [shape]
    for view in views:
        shapes.append(view.layout(row_major(shapes[-1])).shape)
    for view, source, result in zip(reversed(views), shapes[-2::-1], shapes[:0:-1], strict=True):
        match view.method, view.parameters:
            case "permute", order:
                indices = [indices[order.index(d)] for d in range(len(source))]
            case "slice", ranges:
                indices = [start + step * x for (start, step, _), x in zip(ranges, indices, strict=True)]
            case "expand", _:
                own = indices[len(result) - len(source) :]
                indices = [constant(0, int64) if n == 1 else x for n, x in zip(source, own, strict=True)]
            case "reshape", _:
                indices = reshaped_index(indices, result, source)
            case _:
                return None
    return list(indices)


def reshaped_index(indices: Sequence[Expression], old: tuple[int, ...], new: tuple[int, ...]) -> list[Expression]:
    """Return the index of an element of an array after a reshape."""
    same = 0
    while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
        same += 1
    old, new, kept = old[: len(old) - same], new[: len(new) - same], list(indices[len(old) - same :])
    flat: Expression = constant(0, int64)
    for d, n in enumerate(old):
        if n > 1:
            flat = flat + indices[d] * prod(old[d + 1 :])
    found = list[Expression]()
    for d, n in enumerate(new):
        after = prod(new[d + 1 :])
        quotient = flat // after if after > 1 else flat
        found.append(constant(0, int64) if n == 1 else quotient if d == 0 else quotient % n)
    return found + kept
