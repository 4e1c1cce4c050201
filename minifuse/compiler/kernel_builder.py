"""What one kernel computes: the space that it runs over, and its expressions, made of nodes.

A kernel holds elementwise functions, the folds of its own rows, or one matrix product. What it cannot hold it loads.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from ..core.dtypes import bool_, int64
from ..core.errors import ShapeError
from ..core.interning import Task, topological
from ..core.layout import Layout, row_major
from ..core.operators import Operator, detach
from ..ir import kernel_ir
from ..ir.array_functions import Embed, Fold, Insert, Matmul, Output, Range, Same, View
from ..ir.gather import At, Put, Take
from ..ir.graph import Argument, Literal, Node, base, seen
from ..ir.kernel_ir import Constant, Dot, Expression, Kernel, Load, Parameter, Position, ProductKernel, replace
from ..ir.steps import NOWHERE, Place
from .fusion_log import HELD, TAKEN
from .lower_gather import APART, FROM_MEMORY, NOT_IN_PRODUCT, as_at, outside, picked
from .reindexing import RESHAPED, Chains, without_ones

IN_TEXT = {"0", "1", "2", "0.0", "1.0", "2.0"}  # literals that stay in the source; others, sizes among them, are numbers
ONE = "a kernel holds one matrix product"
POINTS = "an operand of a matrix product is computed point by point, and a fold is not"

See = Callable[[Layout], Layout]


class Space(NamedTuple):
    """What a kernel runs over: the points of a shape, in rows along the folded dims."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    def __str__(self) -> str:
        if not self.dims:
            return f"the points of {self.shape}"
        return f"{self.shape} along dim{'s' * (len(self.dims) > 1)} {', '.join(map(str, self.dims))}"

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
        return walks(leaf, see, lambda layout: layout.expand(*self.shape))

    def is_all_of(self, leaf: Node, see: See) -> bool:
        """Whether the points of the space are the elements of what lies under a leaf, in the same order."""
        return walks(leaf, see, lambda layout: layout.reshape(*self.shape))


def walks(leaf: Node, see: See, order: See) -> bool:
    """Whether a space sees what lies under a leaf in an order."""
    layout = row_major(base(leaf).shape)
    try:
        return see(seen_through(leaf, layout)).walks_like(order(layout))
    except ShapeError:
        return False


def seen_through(node: Node, layout: Layout) -> Layout:
    """The layout of views of something that lies in a layout."""
    views = []
    while isinstance(node.function, View):
        views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        layout = view.layout(layout)
    return layout


class Body:
    """The expressions of one kernel, and what they load.

    `inside` are the nodes that it computes, `held` the folds among them, `product` the matrix product whose sums it
    finishes. What is `missing` must be computed first: until then, expressions mean nothing. Without `holds` it is
    elementwise: there a kernel computes an operand of a product. What one refuses that nobody will run is not `is_noted`.
    """

    def __init__(self, schedule: Any, space: Space, numbers: Any = None, holds: bool = True, is_noted: bool = True) -> None:
        self.schedule, self.space, self.holds, self.is_noted = schedule, space, holds, is_noted
        self.kernel: int | None = None  # its number, where somebody asks what is decided
        self.inputs: dict[Place, int] = {}
        self.raws: dict[Place, int] = {}  # what is picked from by index
        self.takes: dict[Node, None] = {}  # what picks there
        self.numbers: dict[tuple[Any, Any], int] = {} if numbers is None else numbers
        self.inside: set[Node] = set()
        self.held: list[Node] = []  # folds
        self.whole: dict[Node, Expression] = {}  # folds and products that were met, as expressions
        self.missing: list[Node] = []  # what must lie in memory first
        self.product: Node | None = None
        self.found: dict[Node, Expression] = {}  # what is computed at the points of the space itself
        self.seen: dict[Node, None] = {}  # what is computed, as it is seen

    def expression(self, root: Node, see: See, consumer: Node | None = None) -> Task[Expression]:
        """A node as an expression; `see` gives a layout of the node's shape as the kernel's space sees it.

        The `consumer` is what is computed from it, the node itself if left out.
        """
        schedule, found = self.schedule, self.found if see is as_it_is else dict[Node, Expression]()
        for node in topological([root], lambda x: () if x in found else schedule.on_the_way(x)):
            inputs = schedule.on_the_way(node)
            if node in found and inputs:
                continue
            if node.is_number:
                found[node] = self.number(node)
            elif inputs:
                function, xs = schedule.opened(node).function, [found[x] for x in inputs]
                if isinstance(function, At):
                    found[node] = self.pick(node, xs, root if consumer is None else consumer)
                else:
                    found[node] = function(*xs) if isinstance(function, Operator) else kernel_ir.cast(xs[0], node.dtype)
                self.hold(node)
            else:
                found[node] = yield self.leaf(node, see, root if consumer is None else consumer)
        return found[root]

    def as_seen(self, place: Place, shape: tuple[int, ...]) -> Place | None:
        """A place of something of a shape, as the kernel would store there; None where strides do not allow that."""
        slot, layout = place
        try:
            layout = self.space.sees(shape)(layout)
            return slot, layout if self.product is None else layout.reshape(*self.product.shape)
        except ShapeError:
            return None

    def pick(self, node: Node, indices: Sequence[Expression], consumer: Node) -> Expression:
        """Elements of something that lies in memory, at an index along each of its dims."""
        at, schedule = self.schedule.opened(node), self.schedule
        x = without_marks(at.inputs[0], schedule.place)
        under = base(x)
        if not self.holds:
            self.miss(base(node), consumer, NOT_IN_PRODUCT)
        elif under not in schedule.place:
            self.miss(under, base(node), FROM_MEMORY)
        else:
            self.refuse(under, base(node), "")
            self.takes[base(node)] = None
            raw = self.raws.setdefault(schedule.located(x), len(self.raws))
            dim, other = at.function.dim, Literal(kernel_ir.constant(outside(x), x.dtype).text)
            last = self.number(Node(Literal(str(x.shape[dim] - 1)), (), (), int64))
            return picked(x, dim, indices, raw, last, self.number(Node(other, (), (), x.dtype)))
        return kernel_ir.constant(0, node.dtype)

    def hold(self, node: Node) -> None:
        """Note that a node, and what it is a view of, is computed here."""
        self.seen[node] = None
        if self.kernel is not None and (under := base(node)) not in self.inside:
            self.schedule.note(TAKEN if under.is_pointwise else HELD, self, (under,))
        self.inside.add(node)
        while isinstance(node.function, View):
            (node,) = node.inputs
            self.inside.add(node)

    def leaf(self, node: Node, see: See, consumer: Node) -> Task[Expression]:
        """What a kernel does not compute point by point: its own fold, its own product, or a load."""
        under = base(node)
        if under in self.schedule.place:
            self.refuse(under, consumer, "")
            return self.load(node, see)
        if isinstance(under.function, Range):
            place = NOWHERE, see(seen_through(node, row_major(under.shape)))
            return Position(self.inputs.setdefault(place, len(self.inputs)), node.dtype)
        if isinstance(under.function, Argument):
            return self.load(node, see)
        reason = self.schedule.kept[under] if self.schedule.ways.is_kept(under) else self.refused(node, see)
        if not reason and under not in self.whole:
            self.whole[under] = yield self.own(under)
        if not reason:
            self.hold(node)
            return self.whole[under]
        self.miss(under, consumer, reason)
        return kernel_ir.constant(0, node.dtype)

    def miss(self, node: Node, consumer: Node, reason: str) -> None:
        """Note that something must be computed first, by another kernel."""
        self.refuse(node, consumer, reason)
        self.missing.append(node)

    def refuse(self, producer: Node, consumer: Node, reason: str) -> None:
        """Note that it loads what it could have computed."""
        if self.is_noted:
            self.schedule.refuse(producer, consumer, reason)

    def load(self, node: Node, see: See) -> Expression:
        """The elements of something that lies in memory."""
        slot, layout = self.schedule.located(node)
        return Load(self.inputs.setdefault((slot, see(layout)), len(self.inputs)), node.dtype)

    def own(self, under: Node) -> Task[Expression]:
        """A product, or a fold, that the kernel holds."""
        if isinstance(under.function, Matmul):
            self.product = under
            self.hold(under)
            return Dot(under.dtype)
        x = yield self.expression(under.inputs[0], as_it_is, under)
        self.hold(under)
        self.held.append(under)
        return kernel_ir.fold(under.function.operator, x)

    def refused(self, leaf: Node, see: See) -> str:
        """Why this kernel cannot hold what lies under a leaf; empty if it can."""
        under = base(leaf)
        if isinstance(under.function, Fold):
            if not self.holds:
                return POINTS
            own = Space(under.inputs[0].shape, under.function.dims)
            if own != self.space:
                return f"it folds {own}, this kernel {'folds' if self.space.dims else 'runs over'} {self.space}"
            return "" if self.space.folds(leaf, see) else "its results are not seen one a row, as they are made"
        if isinstance(under.function, Matmul):
            if not self.holds:
                return ONE
            if self.space.dims:
                return "what folds rows needs whole rows of the product, and a tile holds parts of many"
            if not self.space.is_all_of(leaf, see):
                return "the product is seen through a view that repeats or reorders it"
            if under in self.schedule.apart:
                return str(self.schedule.apart[under])
            return "" if self.product is None or self.product is under else ONE
        if isinstance(under.function, Embed | Insert):
            return "what is put in a place needs memory around it"
        if isinstance(under.function, Put):
            return APART
        if isinstance(under.function, Output):
            return "the backend computes it as a whole"
        return RESHAPED

    def number(self, node: Node) -> Expression:
        """A literal that stays in the text, or a number that travels with the launch."""
        function = node.function
        if isinstance(function, Literal) and (function.text in IN_TEXT or node.dtype is bool_):
            return Constant(function.text, node.dtype)
        source = function.text if isinstance(function, Literal) else function.index
        return Parameter(self.numbers.setdefault((source, node.dtype), len(self.numbers)), node.dtype)


def as_it_is(layout: Layout) -> Layout:
    """The layout itself."""
    return layout


def opened(node: Node, lies: Callable[[Node], bool], chains: Chains) -> Node:
    """Return a view of a value that is not stored as that value of views of its inputs.

    A value that is picked by index is opened too: it is the element at its indices. `chains` remembers one chain of views
    for each order of elements, so that equal elements become one node.
    """
    views = []
    x = node
    while isinstance(x.function, View) and not lies(x):
        views.append(x.function)
        (x,) = x.inputs
    if not x.is_pointwise or lies(x):
        return node
    if isinstance(x.function, Take):
        x = as_at(x)
    elif not views:
        return node
    chain = chains.shortest(x.shape, tuple(views[::-1])) if views else ()
    if chain is None:
        return node
    for view in chain:
        whole = x.inputs[: len(x.inputs) - len(points_of(x))]
        inputs = [i if i.is_number else view(i) for i in points_of(x)]
        x = Node(x.function, (*whole, *inputs), seen(view, x.shape)[0], x.dtype)
    return x


def without_marks(node: Node, place: Container[Node]) -> Node:
    """The same elements where they lie: without what tells values apart for gradients alone."""
    views = []
    while node not in place and (isinstance(node.function, View | Same) or node.function is detach):
        if isinstance(node.function, View):
            views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        node = view(node)
    return node


def points_of(node: Node) -> tuple[Node, ...]:
    """Of the inputs of what is computed point by point those that are needed at the same point: of an At, its indices."""
    return node.inputs[1:] if isinstance(node.function, At) else node.inputs


def without_unused(
    kernel: ProductKernel, outputs: list[Place], inputs: list[Place], numbers: list[Any]
) -> tuple[ProductKernel, list[Place], list[Place], list[Any]]:
    """A product with the inputs and the numbers that it reads, counted without gaps."""
    loads = [x.index for part in kernel.loads() for x in part]
    parameters = [x.index for x in kernel.parameters()]

    def counted(e: Expression) -> Expression:
        e = replace(e, Load, lambda x: type(x)(loads.index(x.index), x.dtype))
        return replace(e, Parameter, lambda x: Parameter(parameters.index(x.index), x.dtype))

    kernel = ProductKernel(counted(kernel.a), counted(kernel.b), tuple(map(counted, kernel.elements)), kernel.precision)
    return kernel, outputs, [inputs[k] for k in loads], [numbers[k] for k in parameters]


def shifted(e: Expression, count: int) -> Expression:
    """An expression whose loads are counted from somewhere else."""
    return replace(e, Load, lambda x: type(x)(x.index + count, x.dtype)) if count else e


def copy_of(node: Node) -> Kernel:
    """The kernel that copies."""
    return Kernel((Load(0, node.dtype),), ())
