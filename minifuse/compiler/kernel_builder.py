"""A fused kernel under construction: the expressions that it computes, and the buffers that they load.

A kernel inlines pointwise ops and the reductions of its own rows, or it computes one matmul with its epilogue. It loads
everything else from memory.
"""

from collections.abc import Iterable, Sequence

from ..core.dtypes import DType, WeakType, bool_, int64
from ..core.errors import ShapeError
from ..core.interning import Task, toposort
from ..core.layout import dense_like, row_major
from ..core.operators import Operator
from ..ir import kernel_ir
from ..ir.array_functions import CompositeOutput, Copy, Iota, Matmul, PadSlice, Reduce, SliceUpdate, View
from ..ir.gather import Gather, GatherND, ScatterAdd
from ..ir.graph import Argument, Literal, Node, strip_views
from ..ir.kernel_ir import Accumulator, Constant, Expression, IndexValue, KernelParameter, Load
from ..ir.steps import NO_BUFFER, BufferView
from .fusible_region import strip_identities
from .fusion_log import INLINED, REDUCTION_FUSED
from .iteration_space import IterationSpace, Reindex, keep_layout, layout_through_views, reduction_space
from .lower_gather import (
    GATHER_NEEDS_MEMORY,
    GATHER_NOT_IN_MATMUL,
    SCATTER_ADD_ENDS_KERNEL,
    clamped_load,
    fill_value,
)
from .reindexing import RESHAPE_NEEDS_COPY
from .scheduler import Scheduler

ParameterSource = tuple[int | str, DType | WeakType]  # the slot of a number, or a literal; and its dtype

INLINE_LITERALS = frozenset({"0", "1", "2", "0.0", "1.0", "2.0"})  # other literals, sizes too, are parameters of the launch

ONE_MATMUL_PER_KERNEL = "a kernel computes one matmul"
PROLOGUE_IS_POINTWISE = "the prologue of a matmul must be pointwise, and this operand is a reduction"
REDUCTION_NEEDS_ROWS = "a row reduction needs complete rows; a matmul tile holds only parts"
REDUCTION_REORDERED = "a kernel has one result of its reduction per row, and a view reorders or repeats these results"
MATMUL_REORDERED = "an epilogue reads each element of its matmul once and in order, and a view repeats or reorders them"
UPDATE_NEEDS_MEMORY = "a slice update writes a part of an array, so the array must be in memory"
COMPOSITE_IS_ONE_CALL = "the backend computes this composite op with a kernel of its own"


class KernelBuilder:
    """A fused kernel under construction.

    Parameters
    ----------
    scheduler : Scheduler
        Has the buffers of the nodes in memory, and records refusals.
    space : IterationSpace
        The loops of the kernel.
    parameters : dict, optional
        The numbers of the launch, each with its index. The prologue of a matmul shares those of its kernel.
    is_prologue : bool
        Build an operand of a matmul: pointwise ops only.
    logs_refusals : bool
        False for a kernel that is built on trial: it never runs, so its refusals are not recorded.

    Attributes
    ----------
    computed : set of Node
        Nodes that the kernel computes.
    reductions : list of Node
        The reductions among them.
    matmul : Node or None
        The matmul whose epilogue the kernel computes.
    unmaterialized : list of Node
        Nodes that other kernels must compute first. Until they are in memory, the expressions are placeholders.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        space: IterationSpace,
        parameters: dict[ParameterSource, int] | None = None,
        is_prologue: bool = False,
        logs_refusals: bool = True,
    ) -> None:
        self.scheduler, self.space, self.is_prologue, self.logs_refusals = scheduler, space, is_prologue, logs_refusals
        self.number_in_log: int | None = None  # None if nothing is logged
        self.inputs: dict[BufferView, int] = {}
        self.indexed_operands: dict[BufferView, int] = {}  # sources of gathers
        self.gathers: dict[Node, None] = {}
        self.parameters: dict[ParameterSource, int] = {} if parameters is None else parameters
        self.computed: set[Node] = set()
        self.reductions: list[Node] = []
        self.unmaterialized: list[Node] = []
        self.matmul: Node | None = None
        self.roots: dict[Node, Expression] = {}  # reductions of the kernel's rows, and its matmul
        self.expressions: dict[Node, Expression] = {}  # expressions of nodes that have the shape of the space
        self.inlined: dict[Node, None] = {}  # nodes that the kernel computes, in order, without the views under them

    def expression(self, root: Node, reindex: Reindex, consumer: Node | None = None) -> Task[Expression]:
        """Return a node as an expression.

        Parameters
        ----------
        root : Node
            The node to compute.
        reindex : Reindex
            Maps a layout of the node's shape to the layout that the loops of the kernel read.
        consumer : Node, optional
            The node that is computed from `root`, for refusals. Default: `root`.
        """
        scheduler = self.scheduler
        found = self.expressions if reindex is keep_layout else dict[Node, Expression]()
        consumer = root if consumer is None else consumer
        for node in toposort([root], lambda x: () if x in found else scheduler.inlined_inputs(x)):
            inputs = scheduler.inlined_inputs(node)
            if node in found and inputs:
                continue
            if node.is_number:
                found[node] = self.lower_number(node)
            elif inputs:
                function, operands = scheduler.push_views_up(node).function, [found[x] for x in inputs]
                if isinstance(function, GatherND):
                    found[node] = self.gather_load(node, operands, consumer)
                elif isinstance(function, Operator):
                    found[node] = function(*operands)
                else:
                    found[node] = kernel_ir.cast(operands[0], node.dtype)
                self.mark_inlined(node)
            else:
                found[node] = yield self.visit_leaf(node, reindex, consumer)
        return found[root]

    def reindex_buffer(self, buffer: BufferView, shape: tuple[int, ...]) -> BufferView | None:
        """Return the view through which the kernel stores to a buffer of a shape; None if no strides describe it."""
        slot, layout = buffer
        try:
            layout = self.space.reindex_for(shape)(layout)
            return slot, layout if self.matmul is None else layout.reshape(*self.matmul.shape)
        except ShapeError:
            return None

    def allocate_output(self, node: Node) -> BufferView:
        """Allocate the buffer of an output, by default in the inputs' layout. Return its view in the loops' shape."""
        scheduler = self.scheduler
        preassigned = scheduler.preassigned.pop(node, None)
        if preassigned is not None and (buffer := self.reindex_buffer(preassigned, node.shape)) is not None:
            scheduler.buffers[node] = preassigned
            return buffer
        is_row_major = node.shape != self.space.shape or isinstance(node.function, Copy | Gather)
        is_row_major = is_row_major or (self.matmul is not None and node.shape != self.matmul.shape)
        read = [layout for slot, layout in self.inputs if slot != NO_BUFFER]
        layout = row_major(node.shape) if is_row_major else dense_like(read, node.shape)
        slot, layout = scheduler.allocate(node, scheduler.required_layouts.get(node, layout))
        return slot, self.space.reindex_for(node.shape)(layout)

    def gather_load(self, node: Node, indices: Sequence[Expression], consumer: Node) -> Expression:
        """Return the elements of an array in memory at given indices, one along each dim."""
        scheduler = self.scheduler
        gather = scheduler.push_views_up(node)
        source = strip_identities(gather.inputs[0], scheduler.buffers)
        array = strip_views(source)
        if self.is_prologue:
            self.require(strip_views(node), consumer, GATHER_NOT_IN_MATMUL)
        elif array not in scheduler.buffers:
            self.require(array, strip_views(node), GATHER_NEEDS_MEMORY)
        else:
            self.record_refusal(array, strip_views(node), "")
            self.gathers[strip_views(node)] = None
            operand = self.indexed_operands.setdefault(scheduler.locate_stored(source), len(self.indexed_operands))
            dim, fill = gather.function.dim, Literal(kernel_ir.constant(fill_value(source), source.dtype).text)
            last = self.lower_number(Node(Literal(str(source.shape[dim] - 1)), (), (), int64))
            fill_number = self.lower_number(Node(fill, (), (), source.dtype))
            return clamped_load(source, dim, indices, operand, last, fill_number)
        return kernel_ir.constant(0, node.dtype)

    def note(self, kind: str, nodes: Iterable[Node], reason: str = "") -> None:
        """Write a decision about this kernel to the fusion log, if there is one."""
        log, number = self.scheduler.log, self.number_in_log
        if log and number is not None and (origins := self.scheduler.origins(nodes)):
            log.note(kind, number, origins, reason)

    def mark_inlined(self, node: Node) -> None:
        """Record that this kernel computes a node, and all nodes of which that node is a view."""
        self.inlined[node] = None
        if self.number_in_log is not None and (source := strip_views(node)) not in self.computed:
            self.note(INLINED if source.is_pointwise else REDUCTION_FUSED, (source,))
        self.computed.add(node)
        while isinstance(node.function, View):
            (node,) = node.inputs
            self.computed.add(node)

    def visit_leaf(self, node: Node, reindex: Reindex, consumer: Node) -> Task[Expression]:
        """Return a node that is not pointwise: the kernel's own reduction, its matmul, or a load."""
        source = strip_views(node)
        if source in self.scheduler.buffers:
            self.record_refusal(source, consumer, "")
            return self.load(node, reindex)
        if isinstance(source.function, Iota):
            buffer = NO_BUFFER, reindex(layout_through_views(node, row_major(source.shape)))
            return IndexValue(self.inputs.setdefault(buffer, len(self.inputs)), node.dtype)
        if isinstance(source.function, Argument):
            return self.load(node, reindex)
        if self.scheduler.region.must_be_loaded(source):
            reason = self.scheduler.materialized[source]
        else:
            reason = self.why_not_fusible(node, reindex)
        if not reason and source not in self.roots:
            self.roots[source] = yield self.inline_root(source)
        if not reason:
            self.mark_inlined(node)
            return self.roots[source]
        self.require(source, consumer, reason)
        return kernel_ir.constant(0, node.dtype)

    def require(self, node: Node, consumer: Node, reason: str) -> None:
        """Record that another kernel must compute a node first."""
        self.record_refusal(node, consumer, reason)
        self.unmaterialized.append(node)

    def record_refusal(self, producer: Node, consumer: Node, reason: str) -> None:
        """Record that the kernel loads a value that it could have computed."""
        if self.logs_refusals:
            self.scheduler.record_refusal(producer, consumer, reason)

    def load(self, node: Node, reindex: Reindex) -> Expression:
        """Return the elements of an array in memory."""
        slot, layout = self.scheduler.locate_stored(node)
        return Load(self.inputs.setdefault((slot, reindex(layout)), len(self.inputs)), node.dtype)

    def inline_root(self, node: Node) -> Task[Expression]:
        """Make a matmul or a reduction part of this kernel."""
        if isinstance(node.function, Matmul):
            self.matmul = node
            self.mark_inlined(node)
            return Accumulator(node.dtype)
        x = yield self.expression(node.inputs[0], keep_layout, node)
        self.mark_inlined(node)
        self.reductions.append(node)
        return kernel_ir.reduce_expr(node.function.operator, x)

    def why_not_fusible(self, leaf: Node, reindex: Reindex) -> str:
        """Return why this kernel cannot compute the value under the views of a leaf; empty if it can."""
        source = strip_views(leaf)
        match source.function:
            case Reduce():
                return self.why_not_reduced(leaf, reindex)
            case Matmul():
                return self.why_not_multiplied(leaf, reindex)
            case PadSlice() | SliceUpdate():
                return UPDATE_NEEDS_MEMORY
            case ScatterAdd():
                return SCATTER_ADD_ENDS_KERNEL
            case CompositeOutput():
                return COMPOSITE_IS_ONE_CALL
        return RESHAPE_NEEDS_COPY

    def why_not_reduced(self, leaf: Node, reindex: Reindex) -> str:
        """Return why this kernel cannot compute the reduction under the views of a leaf; empty if it can."""
        if self.is_prologue:
            return PROLOGUE_IS_POINTWISE
        space = reduction_space(strip_views(leaf))
        if space != self.space:
            return f"it reduces {space}, and this kernel {'reduces' if self.space.dims else 'loops over'} {self.space}"
        return "" if self.space.is_own_reduction(leaf, reindex) else REDUCTION_REORDERED

    def why_not_multiplied(self, leaf: Node, reindex: Reindex) -> str:
        """Return why this kernel cannot be the epilogue of the matmul under the views of a leaf; empty if it can."""
        matmul = strip_views(leaf)
        if self.is_prologue:
            return ONE_MATMUL_PER_KERNEL
        if self.space.dims:
            return REDUCTION_NEEDS_ROWS
        if not self.space.is_read_in_order(leaf, reindex):
            return MATMUL_REORDERED
        if matmul in self.scheduler.unfusable_matmuls:
            return str(self.scheduler.unfusable_matmuls[matmul])
        return "" if self.matmul is None or self.matmul is matmul else ONE_MATMUL_PER_KERNEL

    def lower_number(self, node: Node) -> Expression:
        """Return a literal of the kernel's text, or a parameter of the launch."""
        function = node.function
        if isinstance(function, Literal) and (function.text in INLINE_LITERALS or node.dtype is bool_):
            return Constant(function.text, node.dtype)
        source = function.text if isinstance(function, Literal) else function.index
        return KernelParameter(self.parameters.setdefault((source, node.dtype), len(self.parameters)), node.dtype)
