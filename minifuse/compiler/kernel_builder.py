"""What one kernel computes: the space that it runs over, and its expressions, made of nodes.

A kernel holds elementwise functions, the folds of its own rows, or one matrix product. What it cannot hold it loads.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from ..core.dtypes import bool_, int64
from ..core.errors import ShapeError
from ..core.interning import Task, toposort
from ..core.layout import Layout, row_major
from ..core.operators import Operator, detach
from ..ir import kernel_ir
from ..ir.array_functions import CompositeOutput, Identity, Iota, Matmul, PadSlice, Reduce, SliceUpdate, View
from ..ir.gather import Gather, GatherND, ScatterAdd
from ..ir.graph import Argument, Literal, Node, strip_views, view_shape
from ..ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    MatmulKernel,
    replace,
)
from ..ir.steps import NO_BUFFER, BufferView
from .fusion_log import INLINED, REDUCTION_FUSED
from .lower_gather import (
    GATHER_NEEDS_MEMORY,
    GATHER_NOT_IN_MATMUL,
    SCATTER_ADD_ENDS_KERNEL,
    clamped_load,
    fill_value,
    lower_gather,
)
from .reindexing import RESHAPE_NEEDS_COPY, ViewChains, drop_ones

INLINE_LITERALS = {
    "0",
    "1",
    "2",
    "0.0",
    "1.0",
    "2.0",
}  # literals that stay in the source; others, sizes among them, are numbers
ONE_MATMUL_PER_KERNEL = "a kernel holds one matrix product"
PROLOGUE_IS_POINTWISE = "an operand of a matrix product is computed point by point, and a fold is not"

Reindex = Callable[[Layout], Layout]


class IterationSpace(NamedTuple):
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

    def sees(self, shape: tuple[int, ...]) -> Reindex:
        """How it sees layouts of a shape: its own as they are, that of its rows repeated along them."""
        if shape == self.shape:
            return keep_layout
        return lambda layout: layout.reshape(*self.rows).expand(*self.shape)

    def contains_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether values of a shape are its elements, or its rows."""
        return shape == self.shape or drop_ones(shape) == drop_ones(self.rows)

    def is_own_reduction(self, leaf: Node, see: Reindex) -> bool:
        """Whether a leaf is the fold of this space's own rows, under views that only repeat it along the row."""
        fold = strip_views(leaf)
        if not isinstance(fold.function, Reduce) or (fold.inputs[0].shape, fold.function.dims) != self:
            return False
        return has_same_traversal(leaf, see, lambda layout: layout.expand(*self.shape))

    def is_all_of(self, leaf: Node, see: Reindex) -> bool:
        """Whether the points of the space are the elements of what lies under a leaf, in the same order."""
        return has_same_traversal(leaf, see, lambda layout: layout.reshape(*self.shape))


def has_same_traversal(leaf: Node, see: Reindex, order: Reindex) -> bool:
    """Whether a space sees what lies under a leaf in an order."""
    layout = row_major(strip_views(leaf).shape)
    try:
        return see(layout_through_views(leaf, layout)).same_traversal(order(layout))
    except ShapeError:
        return False


def layout_through_views(node: Node, layout: Layout) -> Layout:
    """The layout of views of something that lies in a layout."""
    views = []
    while isinstance(node.function, View):
        views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        layout = view.layout(layout)
    return layout


class KernelBuilder:
    """The expressions of one kernel, and what they load.

    `inside` are the nodes that it computes, `held` the folds among them, `product` the matrix product whose sums it
    finishes. What is `missing` must be computed first: until then, expressions mean nothing. Without `holds` it is
    elementwise: there a kernel computes an operand of a product. What one refuses that nobody will run is not `is_noted`.
    """

    def __init__(
        self, schedule: Any, space: IterationSpace, numbers: Any = None, holds: bool = True, is_noted: bool = True
    ) -> None:
        self.schedule, self.space, self.holds, self.is_noted = schedule, space, holds, is_noted
        self.kernel: int | None = None  # its number, where somebody asks what is decided
        self.inputs: dict[BufferView, int] = {}
        self.raws: dict[BufferView, int] = {}  # what is picked from by index
        self.gathers: dict[Node, None] = {}  # what picks there
        self.numbers: dict[tuple[Any, Any], int] = {} if numbers is None else numbers
        self.inside: set[Node] = set()
        self.reductions: list[Node] = []  # folds
        self.memo: dict[Node, Expression] = {}  # folds and products that were met, as expressions
        self.unmaterialized: list[Node] = []  # what must lie in memory first
        self.matmul: Node | None = None
        self.found: dict[Node, Expression] = {}  # what is computed at the points of the space itself
        self.seen: dict[Node, None] = {}  # what is computed, as it is seen

    def expression(self, root: Node, see: Reindex, consumer: Node | None = None) -> Task[Expression]:
        """A node as an expression; `see` gives a layout of the node's shape as the kernel's space sees it.

        The `consumer` is what is computed from it, the node itself if left out.
        """
        schedule, found = self.schedule, self.found if see is keep_layout else dict[Node, Expression]()
        for node in toposort([root], lambda x: () if x in found else schedule.inlined_inputs(x)):
            inputs = schedule.inlined_inputs(node)
            if node in found and inputs:
                continue
            if node.is_number:
                found[node] = self.lower_number(node)
            elif inputs:
                function, xs = schedule.push_views_up(node).function, [found[x] for x in inputs]
                if isinstance(function, GatherND):
                    found[node] = self.gather_load(node, xs, root if consumer is None else consumer)
                else:
                    found[node] = function(*xs) if isinstance(function, Operator) else kernel_ir.cast(xs[0], node.dtype)
                self.inline(node)
            else:
                found[node] = yield self.visit_leaf(node, see, root if consumer is None else consumer)
        return found[root]

    def reindex_buffer(self, place: BufferView, shape: tuple[int, ...]) -> BufferView | None:
        """A place of something of a shape, as the kernel would store there; None where strides do not allow that."""
        slot, layout = place
        try:
            layout = self.space.sees(shape)(layout)
            return slot, layout if self.matmul is None else layout.reshape(*self.matmul.shape)
        except ShapeError:
            return None

    def gather_load(self, node: Node, indices: Sequence[Expression], consumer: Node) -> Expression:
        """Elements of something that lies in memory, at an index along each of its dims."""
        at, schedule = self.schedule.push_views_up(node), self.schedule
        x = strip_identities(at.inputs[0], schedule.buffers)
        under = strip_views(x)
        if not self.holds:
            self.miss(strip_views(node), consumer, GATHER_NOT_IN_MATMUL)
        elif under not in schedule.buffers:
            self.miss(under, strip_views(node), GATHER_NEEDS_MEMORY)
        else:
            self.refuse(under, strip_views(node), "")
            self.gathers[strip_views(node)] = None
            raw = self.raws.setdefault(schedule.locate_stored(x), len(self.raws))
            dim, other = at.function.dim, Literal(kernel_ir.constant(fill_value(x), x.dtype).text)
            last = self.lower_number(Node(Literal(str(x.shape[dim] - 1)), (), (), int64))
            return clamped_load(x, dim, indices, raw, last, self.lower_number(Node(other, (), (), x.dtype)))
        return kernel_ir.constant(0, node.dtype)

    def inline(self, node: Node) -> None:
        """Note that a node, and what it is a view of, is computed here."""
        self.seen[node] = None
        if self.kernel is not None and (under := strip_views(node)) not in self.inside:
            self.schedule.note(INLINED if under.is_pointwise else REDUCTION_FUSED, self, (under,))
        self.inside.add(node)
        while isinstance(node.function, View):
            (node,) = node.inputs
            self.inside.add(node)

    def visit_leaf(self, node: Node, see: Reindex, consumer: Node) -> Task[Expression]:
        """What a kernel does not compute point by point: its own fold, its own product, or a load."""
        under = strip_views(node)
        if under in self.schedule.buffers:
            self.refuse(under, consumer, "")
            return self.load(node, see)
        if isinstance(under.function, Iota):
            place = NO_BUFFER, see(layout_through_views(node, row_major(under.shape)))
            return IndexValue(self.inputs.setdefault(place, len(self.inputs)), node.dtype)
        if isinstance(under.function, Argument):
            return self.load(node, see)
        reason = self.schedule.kept[under] if self.schedule.ways.must_be_loaded(under) else self.why_not_fusible(node, see)
        if not reason and under not in self.memo:
            self.memo[under] = yield self.own(under)
        if not reason:
            self.inline(node)
            return self.memo[under]
        self.miss(under, consumer, reason)
        return kernel_ir.constant(0, node.dtype)

    def miss(self, node: Node, consumer: Node, reason: str) -> None:
        """Note that something must be computed first, by another kernel."""
        self.refuse(node, consumer, reason)
        self.unmaterialized.append(node)

    def refuse(self, producer: Node, consumer: Node, reason: str) -> None:
        """Note that it loads what it could have computed."""
        if self.is_noted:
            self.schedule.refuse(producer, consumer, reason)

    def load(self, node: Node, see: Reindex) -> Expression:
        """The elements of something that lies in memory."""
        slot, layout = self.schedule.locate_stored(node)
        return Load(self.inputs.setdefault((slot, see(layout)), len(self.inputs)), node.dtype)

    def own(self, under: Node) -> Task[Expression]:
        """A product, or a fold, that the kernel holds."""
        if isinstance(under.function, Matmul):
            self.matmul = under
            self.inline(under)
            return Accumulator(under.dtype)
        x = yield self.expression(under.inputs[0], keep_layout, under)
        self.inline(under)
        self.reductions.append(under)
        return kernel_ir.reduce_expr(under.function.operator, x)

    def why_not_fusible(self, leaf: Node, see: Reindex) -> str:
        """Why this kernel cannot hold what lies under a leaf; empty if it can."""
        under = strip_views(leaf)
        if isinstance(under.function, Reduce):
            if not self.holds:
                return PROLOGUE_IS_POINTWISE
            own = IterationSpace(under.inputs[0].shape, under.function.dims)
            if own != self.space:
                return f"it folds {own}, this kernel {'folds' if self.space.dims else 'runs over'} {self.space}"
            return "" if self.space.is_own_reduction(leaf, see) else "its results are not seen one a row, as they are made"
        if isinstance(under.function, Matmul):
            if not self.holds:
                return ONE_MATMUL_PER_KERNEL
            if self.space.dims:
                return "what folds rows needs whole rows of the product, and a tile holds parts of many"
            if not self.space.is_all_of(leaf, see):
                return "the product is seen through a view that repeats or reorders it"
            if under in self.schedule.unfusable_matmuls:
                return str(self.schedule.unfusable_matmuls[under])
            return "" if self.matmul is None or self.matmul is under else ONE_MATMUL_PER_KERNEL
        if isinstance(under.function, PadSlice | SliceUpdate):
            return "what is put in a place needs memory around it"
        if isinstance(under.function, ScatterAdd):
            return SCATTER_ADD_ENDS_KERNEL
        if isinstance(under.function, CompositeOutput):
            return "the backend computes it as a whole"
        return RESHAPE_NEEDS_COPY

    def lower_number(self, node: Node) -> Expression:
        """A literal that stays in the text, or a number that travels with the launch."""
        function = node.function
        if isinstance(function, Literal) and (function.text in INLINE_LITERALS or node.dtype is bool_):
            return Constant(function.text, node.dtype)
        source = function.text if isinstance(function, Literal) else function.index
        return KernelParameter(self.numbers.setdefault((source, node.dtype), len(self.numbers)), node.dtype)


def keep_layout(layout: Layout) -> Layout:
    """The layout itself."""
    return layout


def push_views_up(node: Node, lies: Callable[[Node], bool], chains: ViewChains) -> Node:
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
    if isinstance(x.function, Gather):
        x = lower_gather(x)
    elif not views:
        return node
    chain = chains.shortest(x.shape, tuple(views[::-1])) if views else ()
    if chain is None:
        return node
    for view in chain:
        whole = x.inputs[: len(x.inputs) - len(pointwise_inputs(x))]
        inputs = [i if i.is_number else view(i) for i in pointwise_inputs(x)]
        x = Node(x.function, (*whole, *inputs), view_shape(view, x.shape)[0], x.dtype)
    return x


def strip_identities(node: Node, place: Container[Node]) -> Node:
    """The same elements where they lie: without what tells values apart for gradients alone."""
    views = []
    while node not in place and (isinstance(node.function, View | Identity) or node.function is detach):
        if isinstance(node.function, View):
            views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        node = view(node)
    return node


def pointwise_inputs(node: Node) -> tuple[Node, ...]:
    """Of the inputs of what is computed point by point those that are needed at the same point: of an At, its indices."""
    return node.inputs[1:] if isinstance(node.function, GatherND) else node.inputs


def drop_unused_operands(
    kernel: MatmulKernel, outputs: list[BufferView], inputs: list[BufferView], numbers: list[Any]
) -> tuple[MatmulKernel, list[BufferView], list[BufferView], list[Any]]:
    """A product with the inputs and the numbers that it reads, counted without gaps."""
    loads = [x.index for part in kernel.loads() for x in part]
    parameters = [x.index for x in kernel.parameters()]

    def counted(e: Expression) -> Expression:
        e = replace(e, Load, lambda x: type(x)(loads.index(x.index), x.dtype))
        return replace(e, KernelParameter, lambda x: KernelParameter(parameters.index(x.index), x.dtype))

    kernel = MatmulKernel(
        counted(kernel.a), counted(kernel.b), tuple(map(counted, kernel.pointwise_outputs)), kernel.precision
    )
    return kernel, outputs, [inputs[k] for k in loads], [numbers[k] for k in parameters]


def shift_loads(e: Expression, count: int) -> Expression:
    """An expression whose loads are counted from somewhere else."""
    return replace(e, Load, lambda x: type(x)(x.index + count, x.dtype)) if count else e


def copy_kernel(node: Node) -> Kernel:
    """The kernel that copies."""
    return Kernel((Load(0, node.dtype),), ())
