"""From a graph to few kernels.

Greedy: every value that must lie in memory (an output, an operand of a product, a fold that its user cannot hold)
becomes a kernel that computes all it can on the way: elementwise functions always, folds where the space and the folded
dims are the kernel's own. Values over the same space and fold share one kernel. Elementwise values are computed again
in every kernel that needs them, unless they lie in memory anyway.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from .. import kernels
from ..dag import topological
from ..dtypes import bool_
from ..errors import ShapeError
from ..functions import Copy, Embed, Fold, Matmul, View
from ..kernels import Constant, Expression, Kernel, Load, Parameter
from ..layout import Layout, dense_like, row_major
from ..operators import Operator
from .node import Literal, Node, base, inputs_of, substitute
from .steps import Launch, Place, Product, Step

PIECE = 1 << 14  # elements of a long row that are folded in one go
FEW = 64  # rows, which are cut earlier, since they are too few to keep threads busy
MANY = 1 << 18  # elements from which on columns are folded in pieces
PIECES = 16  # of a column, at least
COLUMN_PIECE = 1 << 10  # elements of a column, at most: they are added one after the other
IN_TEXT = {"0", "1", "2", "0.0", "1.0", "2.0"}  # literals that stay in the source; others, sizes among them, are numbers

See = Callable[[Layout], Layout]


class Space(NamedTuple):
    """What a kernel runs over: the points of a shape, in rows along the folded dims."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of values that are one a row."""
        return tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))

    def sees(self, shape: tuple[int, ...]) -> See:
        """How it sees layouts of a shape: its own as they are, that of its rows repeated along them."""
        if shape == self.shape:
            return as_it_is
        return lambda layout: layout.reshape(*self.rows).expand(*self.shape)

    def has(self, shape: tuple[int, ...]) -> bool:
        """Whether values of a shape are its elements, or its rows."""
        return shape == self.shape or without_ones(shape) == without_ones(self.rows)

    def folds(self, leaf: Node, see: See) -> bool:
        """Whether a leaf is the fold of this space's own rows, under views that only repeat it along the row."""
        fold = base(leaf)
        if not isinstance(fold.function, Fold) or (fold.inputs[0].shape, fold.function.dims) != self:
            return False
        views = []
        while leaf is not fold:
            views.append(leaf.function)
            (leaf,) = leaf.inputs
        layout = row_major(fold.shape)
        try:
            for view in reversed(views):
                layout = view.layout(layout)
            return see(layout).walks_like(row_major(fold.shape).expand(*self.shape))
        except ShapeError:
            return False


class Schedule:
    """Steps that compute nodes. `place` says in which slot of the call's memory, and in which layout, a node lies."""

    def __init__(self, arguments: Sequence[Node], layouts: Sequence[Layout | None]) -> None:
        places = enumerate(zip(arguments, layouts, strict=True))
        self.place: dict[Node, Place] = {node: (k, layout) for k, (node, layout) in places if layout is not None}
        self.first = len(arguments)
        self.sizes: list[int] = []  # bytes, of each buffer
        self.steps: list[Step] = []

    def allocate(self, node: Node, layout: Layout) -> Place:
        """A new buffer for a node."""
        self.sizes.append(layout.size * node.dtype.itemsize)
        self.place[node] = self.first + len(self.sizes) - 1, layout
        return self.place[node]

    def compute(self, nodes: Iterable[Node]) -> None:
        """Steps for several nodes: what others need first; those over one space that read a common array share a kernel."""
        groups: dict[Space, list[Node]] = {}
        for node in map(base, nodes):
            if node in self.place or isinstance(node.function, Matmul | Embed):
                self.locate(node)
            else:
                groups.setdefault(self.space(node), []).append(node)
        order = topological([node for members in groups.values() for node in members], inputs_of)
        rank = {node: k for k, node in enumerate(order)}
        for space, members in sorted(groups.items(), key=lambda item: max(rank[node] for node in item[1])):
            for related in self.related(members):
                self.launch(space, related)

    def related(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Nodes by what they read: a kernel for values that have no array in common would only be larger."""
        groups: list[tuple[set[Node], list[Node]]] = []
        for node in nodes:
            found = topological([node], lambda x: () if x in self.place else x.inputs)
            arrays = {x for x in found if x in self.place}
            joined = [group for group in groups if group[0] & arrays]
            groups = [group for group in groups if not group[0] & arrays]
            members = [x for group in joined for x in group[1]]
            groups.append((arrays.union(*[group[0] for group in joined]), [*members, node]))
        return [members for _, members in groups]

    def locate(self, node: Node) -> Place:
        """The place of a node, after the steps that put it there."""
        function = node.function
        if node in self.place:
            return self.place[node]
        if isinstance(function, View):
            slot, layout = self.locate(*node.inputs)
            try:
                return slot, function.layout(layout)
            except ShapeError:
                slot, layout = self.copied(*node.inputs)
                return slot, function.layout(layout)
        if isinstance(function, Matmul):
            operands = [self.locate(x) for x in node.inputs]
            self.steps.append(Product(node.dtype, [self.allocate(node, row_major(node.shape))], operands))
        elif isinstance(function, Embed):
            self.embed(node, function)
        else:
            self.launch(self.space(node), [node])
        return self.place[node]

    def embed(self, node: Node, function: Embed) -> None:
        """Zeros, then the input in its place."""
        source = self.locate(*node.inputs)
        slot, layout = self.allocate(node, row_major(node.shape))
        part = layout.slice(*function.ranges)
        zeros = Kernel((kernels.constant(0, node.dtype),), ())
        self.steps.append(Launch(zeros, node.shape, (), [(slot, layout)], []))
        self.steps.append(Launch(copy_of(node), part.shape, (), [(slot, part)], [source]))

    def copied(self, node: Node) -> Place:
        """The place of a copy in row-major order."""
        source = self.locate(node)
        target = self.allocate(node, row_major(node.shape))
        self.steps.append(Launch(copy_of(node), node.shape, (), [target], [source]))
        return target

    def opened(self, node: Node) -> Node:
        """A view of a value that lies nowhere, as that value of views: views end at memory, and become strides."""
        views = []
        x = node
        while isinstance(x.function, View) and x not in self.place:
            views.append(x)
            (x,) = x.inputs
        if not views or not x.is_elementwise or x in self.place:
            return node
        for view in reversed(views):
            if view.function.method == "reshape" and without_ones(x.shape) != without_ones(view.shape):
                return node
            inputs = tuple(i if i.is_number else view.function(i) for i in x.inputs)
            x = Node(x.function, inputs, view.shape, x.dtype)
        return x

    def on_the_way(self, node: Node) -> tuple[Node, ...]:
        """What a kernel computes on the way to a node: the inputs of an elementwise function."""
        opened = self.opened(node)
        return opened.inputs if opened.is_elementwise and opened not in self.place else ()

    def space(self, node: Node) -> Space:
        """The space of the kernel that computes a node: that of a fold which it can hold, or its own shape."""
        if isinstance(node.function, Fold):
            return Space(node.inputs[0].shape, node.function.dims)
        for leaf in topological([node], self.on_the_way):
            fold = base(leaf)
            if isinstance(fold.function, Fold) and fold not in self.place:
                space = Space(fold.inputs[0].shape, fold.function.dims)
                if space.has(node.shape) and space.folds(leaf, space.sees(node.shape)):
                    return space
        return Space(node.shape, ())

    def launch(self, space: Space, nodes: Iterable[Node]) -> None:
        """One kernel for those of the nodes that lie nowhere yet."""
        nodes, before = [node for node in dict.fromkeys(nodes) if node not in self.place], len(self.place)
        if not nodes:
            return
        body = Body(self, space)
        found = {node: body.expression(node, space.sees(node.shape)) for node in nodes}
        if len(self.place) > before:  # inputs were computed first, so that more lies in memory now: look again
            self.launch(space, nodes)
            return
        elements = [node for node in nodes if node.shape == space.shape]
        rows = [node for node in nodes if node.shape != space.shape]
        read, outputs = [layout for _, layout in body.inputs], []
        for node in elements + rows:
            is_plain = node.shape != space.shape or isinstance(node.function, Copy)
            slot, layout = self.allocate(node, row_major(node.shape) if is_plain else dense_like(read, node.shape))
            outputs.append((slot, space.sees(node.shape)(layout)))
        kernel = Kernel(tuple(found[node] for node in elements), tuple(found[node] for node in rows))
        numbers = [source for source, _ in body.numbers]
        self.steps.append(Launch(kernel, space.shape, space.dims, outputs, list(body.inputs), numbers))

    def store(self, source: Place, target: Place, node: Node) -> None:
        """Put an output where an argument lies: by the step that computes it, or by a copy if either is read later."""
        later = False
        for k in reversed(range(len(self.steps))):
            step = self.steps[k]
            if source in step.outputs and isinstance(step, Launch) and not later:
                reads = [place for place in step.inputs if place[0] == target[0]]
                if not step.dims and all(place == target for place in reads):
                    self.steps[k] = step.in_place(step.outputs.index(source), target)
                    return
            later = later or any(slot in (source[0], target[0]) for slot, _ in step.inputs)
        self.steps.append(Launch(copy_of(node), node.shape, (), [target], [source]))


class Body:
    """The expressions of one kernel, and what they load."""

    def __init__(self, schedule: Schedule, space: Space) -> None:
        self.schedule, self.space = schedule, space
        self.inputs: dict[Place, int] = {}
        self.numbers: dict[tuple[Any, Any], int] = {}

    def expression(self, root: Node, see: See) -> Expression:
        """A node as an expression; `see` gives a layout of the node's shape as the kernel's space sees it."""
        schedule, found = self.schedule, dict[Node, Expression]()
        for node in topological([root], schedule.on_the_way):
            function, xs = schedule.opened(node).function, [found[x] for x in schedule.on_the_way(node)]
            if node.is_number:
                found[node] = self.number(node)
            elif xs:
                found[node] = function(*xs) if isinstance(function, Operator) else kernels.cast(xs[0], node.dtype)
            elif self.space.folds(node, see) and base(node) not in schedule.place:
                fold = base(node)
                found[node] = kernels.fold(fold.function.operator, self.expression(fold.inputs[0], as_it_is))
            else:
                slot, layout = schedule.locate(node)
                found[node] = Load(self.inputs.setdefault((slot, see(layout)), len(self.inputs)), node.dtype)
        return found[root]

    def number(self, node: Node) -> Expression:
        """A literal that stays in the text, or a number that travels with the launch."""
        function = node.function
        if isinstance(function, Literal) and (function.text in IN_TEXT or node.dtype is bool_):
            return Constant(function.text, node.dtype)
        source = function.text if isinstance(function, Literal) else function.index
        return Parameter(self.numbers.setdefault((source, node.dtype), len(self.numbers)), node.dtype)


def copy_of(node: Node) -> Kernel:
    """The kernel that copies."""
    return Kernel((Load(0, node.dtype),), ())


def as_it_is(layout: Layout) -> Layout:
    """The layout itself."""
    return layout


def without_ones(shape: tuple[int, ...]) -> list[int]:
    """The sizes that mean something."""
    return [n for n in shape if n != 1]


def in_pieces(outputs: list[Node]) -> list[Node]:
    """Large folds become folds of pieces, and a fold of their results.

    Pieces run side by side, rounding errors stay small, and the order of summation does not depend on the number of threads.
    """
    folds = [node for node in topological(outputs, inputs_of) if isinstance(node.function, Fold)]
    return substitute(outputs, {node: cut for node in folds if (cut := pieces_of(node)) is not node})


def pieces_of(fold: Node) -> Node:
    """A fold in pieces, or itself where that would not pay.

    It pays where rows are long, most of all if they are few, and where columns are: walked whole, they lie in memory one
    after the other.
    """
    (x,), operator = fold.inputs, fold.function.operator
    dims = [d for d in fold.function.dims if x.shape[d] > 1]
    row = x.size // max(fold.size, 1)
    is_few = row >= (4 if fold.size <= FEW else 16) * PIECE
    is_columns = len(dims) == 1 and prod(x.shape[dims[0] + 1 :]) > 1 and fold.size > FEW and x.size >= MANY
    if is_few and len(dims) > 1:
        rest = pieces_of(Fold(operator, tuple(dims[1:]))(x))
        return pieces_of(Fold(operator, (dims[0],))(rest))
    if is_few:
        return cut(fold, dims[0], PIECE)
    if is_columns and x.shape[dims[0]] >= PIECES * PIECES:
        return cut(fold, dims[0], min(x.shape[dims[0]] // PIECES, COLUMN_PIECE))
    return fold


def cut(fold: Node, dim: int, length: int) -> Node:
    """A fold along one dim as a fold of the results of pieces of a length."""
    (x,), operator = fold.inputs, fold.function.operator
    count = x.shape[dim] // length
    whole, rest = part(x, dim, 0, count * length), part(x, dim, count * length, x.shape[dim])
    partial = Fold(operator, (dim + 1,))(View("split", (dim, count))(whole))
    y: Node = Fold(operator, (dim, dim + 1))(partial).reshape(fold.shape)
    return operator(y, Fold(operator, (dim,))(rest)) if rest.size else y


def part(x: Node, dim: int, start: int, stop: int) -> Node:
    """The elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y
