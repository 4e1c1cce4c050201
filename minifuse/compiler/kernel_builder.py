"""Fused kernels under construction: the expressions that they compute, the buffers that they load, the steps so far.

A kernel inlines pointwise ops, the reductions of its own rows and nested reductions, or it computes one matmul or scan with
its epilogue. It loads everything else from memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ..backends.base import Backend
from ..core.dtypes import DType, WeakType, bool_, int64
from ..core.errors import ShapeError
from ..core.layout import Layout, dense_like, row_major
from ..core.operators import Operator, floordiv, mod
from ..ir import kernel_ir
from ..ir.array_functions import Copy, Iota, Matmul, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND, clamped_load, fill_value
from ..ir.graph import Argument, Literal, Node, strip_views
from ..ir.index_values import index_values
from ..ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    IndexedLoad,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    OpaqueOutput,
    ReduceExpr,
    copy_kernel,
)
from ..ir.nested_reduce import NestedReduce
from ..ir.scan import Scan
from ..ir.step_kernels import ScanKernel
from ..ir.steps import NO_BUFFER, BufferView, Step
from .fusible_region import FusibleRegion, LoadedByKernel, is_recomputable, strip_identities
from .fusion_log import EMITTED, INLINED, REDUCTION_FUSED, REFUSED, active_log
from .graph import Graph, Refusal, locate_view
from .iteration_space import IterationSpace, Reindex, keep_layout, layout_through_views
from .nested_axes import NestedAxes, finish_nested
from .reindexing import ViewChains

ReindexBuffer = Callable[
    [BufferView], BufferView | None
]  # maps a buffer to the view of it that the loops of a kernel store to
ParameterSource = tuple[int | str, DType | WeakType]  # the slot of a number, or a literal; and its dtype

INLINE_LITERALS = frozenset({"0", "1", "2", "0.0", "1.0", "2.0"})  # other literals, sizes too, are parameters of the launch
MAX_INLINE_DIVISOR = 16  # a division of integers by a constant is a multiplication: larger divisors are sizes


class Emission:
    """The steps of a call while they are emitted, and where each value is stored.

    Attributes
    ----------
    buffers : dict of Node to BufferView
        The buffer and the layout of each node that is in memory.
    buffer_nbytes : list of int
        The size of each buffer of the call, in bytes. The first of them is slot `first_buffer`.
    loaded : set of Node
        The nodes that kernels of this phase load, but for the kernel that computes them.
    region : FusibleRegion
        The nodes that the current kernel inlines.
    """

    def __init__(self, graph: Graph, backend: Backend) -> None:
        self.graph, self.backend = graph, backend
        self.buffers = dict(graph.memory)
        self.first_buffer = len(graph.arguments)
        self.copies: dict[Node, BufferView] = {}
        self.buffer_nbytes: list[int] = []
        self.steps: list[Step] = []
        self.refusals: dict[Refusal, None] = {}
        self.chains = ViewChains()
        self.loaded: set[Node] = set()
        self.region: FusibleRegion
        self.log = active_log.log
        if self.log:
            for refusal in graph.refusals:
                self.log.note(REFUSED, -1, refusal[:2], refusal.reason)

    def open_members(self, members: Iterable[Node]) -> None:
        """Let the current kernel inline its members."""
        inlined = {x for x in members if is_recomputable(x)}
        self.region = FusibleRegion(LoadedByKernel(self.loaded, inlined), self.chains)

    def layout_of(self, node: Node, default: Layout | None = None) -> Layout:
        """Return the layout in which a node is stored: the one that is required, or a default, or row-major."""
        return self.graph.required_layouts.get(node, row_major(node.shape) if default is None else default)

    def allocate(self, node: Node, layout: Layout) -> BufferView:
        """Store a node in a new buffer."""
        self.buffers[node] = self.new_buffer(node, layout)
        return self.buffers[node]

    def new_buffer(self, node: Node, layout: Layout | None = None) -> BufferView:
        """Add a buffer that is as large as a node, which is stored there later."""
        layout = layout or self.layout_of(node)
        self.buffer_nbytes.append(layout.size * node.dtype.itemsize)
        return self.first_buffer + len(self.buffer_nbytes) - 1, layout

    def locate(self, node: Node) -> BufferView:
        """Return where a view of a stored node is in memory. If no strides describe the view, add a copy."""
        return self.buffers.get(node) or locate_view(node, self.buffers, self.copies, self.copy_for_view)

    # A kernel stores a node in a buffer of its own, except in the slices of `SliceEmission`.

    def reserve(self, node: Node, reindex: ReindexBuffer) -> BufferView | None:
        """Return the slice in which the current kernel is to store a node, as its loops see it, or None."""
        return None

    def reserve_copies(self, node: Node, reindex: ReindexBuffer) -> list[BufferView]:
        """Return the slices in which the current kernel is to store copies of a node, as its loops see them."""
        return []

    def commit(self) -> None:
        """Note that the kernel which stores the reserved slices is emitted."""

    def copy_for_view(self, base: Node, source: BufferView) -> None:
        """Add a row-major copy of a node, which is in memory at `source`."""
        self.copies[base] = self.new_buffer(base, row_major(base.shape))
        copy = Step(copy_kernel(base.dtype), base.shape, (), [self.copies[base]], [source])
        self.add_unfused_step(copy, base, "a row-major copy, because a view needs one")

    def row_major_view(self, node: Node, view: BufferView) -> BufferView:
        """Return where a stored node is in row-major order: at `view`, or in a copy."""
        if view[1].is_contiguous:
            return view
        target = self.new_buffer(node, row_major(node.shape))
        self.add_copy(node, target, node, "a row-major copy, because a collective needs one")
        return target

    def add_copy(self, node: Node, target: BufferView, consumer: Node, reason: str) -> None:
        """Add a step that copies a stored node to a target."""
        copy = Step(copy_kernel(node.dtype), target[1].shape, (), [target], [self.locate(node)])
        self.add_unfused_step(copy, consumer, reason)

    def add_unfused_step(self, step: Step, node: Node, reason: str) -> None:
        """Add a step that fuses nothing, such as a copy, and log its reason."""
        self.add_step(step, self.log.copy(node, reason) if self.log else None)

    def add_step(self, step: Step, kernel_number: int | None) -> None:
        """Add a step that launches a kernel, which has a number if there is a fusion log."""
        step.kernel_numbers = () if kernel_number is None else (kernel_number,)
        self.steps.append(step)

    def record_refusal(self, producer: Node, consumer: Node, reason: str) -> None:
        """Record that the backend does not fuse two nodes."""
        refusal = Refusal(producer, consumer, reason)
        if self.log and refusal not in self.refusals:
            self.log.note(REFUSED, -1, refusal[:2], reason)
        self.refusals.setdefault(refusal)


def lower_number(node: Node, parameters: dict[ParameterSource, int], is_divisor: bool = False) -> Expression:
    """Return a number as a literal, or as a parameter, which is added to `parameters` with its index."""
    function = node.function
    if isinstance(function, Literal):
        is_small_divisor = is_divisor and function.text.isdigit() and int(function.text) <= MAX_INLINE_DIVISOR
        if function.text in INLINE_LITERALS or node.dtype is bool_ or is_small_divisor:
            return Constant(function.text, node.dtype)
    source = function.text if isinstance(function, Literal) else function.index
    return KernelParameter(parameters.setdefault((source, node.dtype), len(parameters)), node.dtype)


class KernelBuilder:
    """A fused kernel under construction.

    Parameters
    ----------
    emission : Emission
        Has the buffers of the nodes in memory, and the nodes that the kernel inlines.
    space : IterationSpace
        The loops of the kernel, without those of nested reductions.
    parameters : dict, optional
        The numbers of the launch, each with its index. The prologue of a matmul adds its numbers to those of the kernel.

    Attributes
    ----------
    matmul : Node or None
        The matmul whose epilogue the kernel computes.
    scan : Scan or None
        The scan whose epilogue the kernel computes.
    """

    def __init__(
        self, emission: Emission, space: IterationSpace, parameters: dict[ParameterSource, int] | None = None
    ) -> None:
        self.emission, self.space = emission, space
        self.number_in_log: int | None = None  # None if nothing is logged
        self.inputs: dict[BufferView, int] = {}
        self.gathers: list[tuple[Layout, Sequence[Expression]]] = []  # arrays that are read at indices, and these
        self.indexed_operands: dict[BufferView, int] = {}  # sources of gathers
        self.parameters: dict[ParameterSource, int] = {} if parameters is None else parameters
        self.matmul: Node | None = None
        self.scan: Scan | None = None
        self.roots: dict[Node, Expression] = {}  # reductions of the kernel's rows, and its matmul
        self.expressions: dict[Node, Expression] = {}  # expressions of nodes that have the shape of the space
        self.logged: set[Node] = set()
        self.inlined: dict[Node, None] = {}  # nodes that the kernel computes, in order, without the views under them
        self.nested: NestedAxes | None = None  # the axes of nested reductions, if there are any

    def expression(self, root: Node, reindex: Reindex) -> Expression:
        """Return a node as an expression. `reindex` maps a layout of the node's shape to the layout that the loops read."""
        region = self.emission.region
        found = self.expressions if reindex is keep_layout else dict[Node, Expression]()
        order = region.walk_level(root, stop=found)
        divisors = {region.resolve(node)[0].inputs[1] for node in order if node.function in (floordiv, mod)}
        for node in order:
            if node in found:
                continue
            computed, inputs = region.resolved[node]
            if node.is_number:
                found[node] = lower_number(node, self.parameters, is_divisor=node in divisors)
            elif isinstance(computed.function, NestedReduce) and inputs:
                found[node] = self.nested_reduction(computed, reindex)
                self.mark_inlined(node)
            elif inputs:
                function, operands = computed.function, [found[x] for x in inputs]
                if isinstance(function, GatherND):
                    found[node] = self.gather_load(computed, operands)
                elif isinstance(function, Operator):
                    found[node] = (function if self.emission.backend.has_fast_math else function.exact)(*operands)
                else:
                    found[node] = kernel_ir.cast(operands[0], node.dtype)
                self.mark_inlined(node)
            else:
                found[node] = self.visit_leaf(node, reindex)
        return found[root]

    def reindex_buffer(self, buffer: BufferView, shape: tuple[int, ...]) -> BufferView | None:
        """Return the view through which the kernel stores to a buffer of a shape; None if no strides describe it."""
        slot, layout = buffer
        try:
            if self.matmul is None or shape != self.matmul.shape:
                layout = self.space.reindex_for(shape)(layout)
            return slot, layout if self.matmul is None else layout.reshape(*self.matmul.shape)
        except ShapeError:
            return None

    def allocate_outputs(self, nodes: Sequence[Node]) -> list[BufferView]:
        """Allocate the buffers of the outputs, or find their slices. Return their views in the shape of the loops."""
        reserved = [self.emission.reserve(x, partial(self.reindex_buffer, shape=x.shape)) for x in nodes]
        return [view or self.allocate_output(x) for x, view in zip(nodes, reserved, strict=True)]

    def allocate_output(self, node: Node) -> BufferView:
        """Allocate the buffer of an output. Return its view in the shape of the loops."""
        emission, layout = self.emission, row_major(node.shape)
        if node is self.matmul:
            return emission.allocate(node, layout)
        slot, layout = emission.allocate(node, emission.layout_of(node, self.layout_like_inputs(node, layout)))
        return slot, self.space.reindex_for(node.shape)(layout)

    def layout_like_inputs(self, node: Node, default: Layout) -> Layout:
        """Return the layout of a new buffer: that of the inputs if it is dense, or the row-major default."""
        shape = node.shape
        if len(shape) != len(self.space.shape) or isinstance(node.function, Copy | GatherND):
            return default
        if self.matmul is not None and shape != self.matmul.shape:
            return default
        if shape != self.space.shape and node in self.emission.graph.stored_roots:
            return default  # a result that is reduced is row-major, as the tracer promises
        inputs = [layout for slot, layout in self.inputs if slot != NO_BUFFER]
        if self.nested is not None:
            inputs = [*map(self.nested.strip, inputs)]
        read = [Layout(shape, layout.strides, 0) for layout in inputs if len(layout.shape) == len(shape)]
        read += [self.layout_of_gather(layout, indices, shape) for layout, indices in self.gathers]
        if read[:1] == [default]:
            return default
        wanted = layout_for_readers(node, self.emission.graph.users) if len(shape) > 2 else None
        return dense_like(read, shape, wanted)

    def layout_of_gather(self, layout: Layout, indices: Sequence[Expression], shape: tuple[int, ...]) -> Layout:
        """Return the strides along the loops of an array that is read at indices, if each index grew by 1 with one loop."""
        views, strides = list(self.inputs), [0] * len(shape)
        for stride, index in zip(layout.strides, indices, strict=True):
            for x in index_values(index):
                for d, step in enumerate(views[x.index][1].strides[: len(shape)]):
                    strides[d] += stride * step
        return Layout(shape, tuple(strides), 0)

    def reserve_copies(self, node: Node) -> list[BufferView]:
        """Return the slices in which this kernel stores copies of an output that is read elsewhere, too."""
        return self.emission.reserve_copies(node, partial(self.reindex_buffer, shape=node.shape))

    def gather_load(self, gather: Node, indices: Sequence[Expression]) -> Expression:
        """Return the elements of an array in memory at given indices, one along each dim."""
        emission = self.emission
        source = strip_identities(gather.inputs[0], emission.buffers)
        view = emission.locate(source)
        operand = self.indexed_operands.setdefault(view, len(self.indexed_operands))
        self.gathers.append((view[1], indices))
        dim = gather.function.dim
        if dim is None:
            return IndexedLoad(operand, 0, tuple(indices), source.dtype)
        fill = Literal(kernel_ir.constant(fill_value(source.dtype), source.dtype).text)
        last = lower_number(Node(Literal(str(source.shape[dim] - 1)), (), (), int64), self.parameters)
        fill_number = lower_number(Node(fill, (), (), source.dtype), self.parameters)
        return clamped_load(source.dtype, dim, indices, operand, last, fill_number)

    def note(self, kind: str, nodes: Iterable[Node], reason: str = "") -> None:
        """Write a decision about this kernel to the fusion log, if there is one."""
        log, number = self.emission.log, self.number_in_log
        if log and number is not None:
            log.note(kind, number, dict.fromkeys(nodes), reason)

    def mark_inlined(self, node: Node) -> None:
        """Record that this kernel computes a node."""
        self.inlined[node] = None
        if self.number_in_log is not None and (source := strip_views(node)) not in self.logged:
            self.logged.add(source)
            self.note(INLINED if source.is_pointwise else REDUCTION_FUSED, (source,))

    def visit_leaf(self, node: Node, reindex: Reindex) -> Expression:
        """Return a node that is not inlined: the kernel's own reduction, its matmul or scan, or a load."""
        source = strip_views(node)
        if isinstance(source.function, Iota):
            buffer = NO_BUFFER, reindex(layout_through_views(node, row_major(source.shape)))
            return IndexValue(self.input_index(buffer), node.dtype)
        if source in self.emission.buffers or isinstance(source.function, Argument):
            return self.load(node, reindex)
        if source not in self.roots:
            self.roots[source] = self.inline_root(source)
        return self.roots[source]

    def load(self, node: Node, reindex: Reindex) -> Expression:
        """Return the elements of an array in memory."""
        slot, layout = self.emission.locate(node)
        return Load(self.input_index((slot, reindex(layout))), node.dtype)

    def input_index(self, buffer: BufferView) -> int:
        """Return the index of an input, which is added if it is new."""
        slot, layout = buffer
        layout = layout if self.nested is None else self.nested.pad(layout)
        return self.inputs.setdefault((slot, layout), len(self.inputs))

    def nested_reduction(self, node: Node, reindex: Reindex) -> Expression:
        """Return a nested reduction, with axes of its own for the dims that it reduces."""
        self.nested = nested = self.nested or NestedAxes(self.space.shape)
        ((x,), count), depth = (node.inputs, node.function.count), nested.depth
        axes = nested.axes(x.shape[-count:])
        self.inputs = {(slot, nested.pad(layout)): k for (slot, layout), k in self.inputs.items()}
        nested.depth += 1
        operand = self.expression(x, lambda layout: nested.reindex(layout, axes, reindex))
        lowest = nested.depth_of(self.varying_axes(operand) - {*axes})
        nested.depth = depth
        if lowest == depth:
            return kernel_ir.reduce_expr(node.function.operator, operand, axes)
        nested.depth = lowest  # it is constant along the axes of the reductions around it, and shared by them
        e = self.nested_reduction(node, reindex)
        nested.depth = depth
        return e

    def varying_axes(self, e: Expression) -> set[int]:
        """Return the axes along which the arrays are read that an expression is computed from."""
        layouts, varying = [layout for _, layout in self.inputs], dict[Expression, set[int]]()
        for x in kernel_ir.expressions_of(e):
            own = layouts[x.index].strides if isinstance(x, Load) else ()
            varying[x] = {d for d, stride in enumerate(own) if stride}.union(*[varying[i] for i in x.inputs])
            varying[x] -= {*x.reduced(self.space.dims)} if isinstance(x, ReduceExpr) else set()
        return varying[e]

    def inline_root(self, node: Node) -> Expression:
        """Make a matmul, a scan or a reduction part of this kernel."""
        if isinstance(node.function, Matmul):
            self.matmul = node
            self.mark_inlined(node)
            return Accumulator(node.dtype)
        inputs = tuple(self.expression(x, keep_layout) for x in node.inputs)
        self.mark_inlined(node)
        if isinstance(node.function, CompositeOutput) and isinstance(node.function.op, Scan):
            self.scan = node.function.op
            return OpaqueOutput(repr(node.function), inputs, node.dtype)
        return kernel_ir.reduce_expr(node.function.operator, inputs)


def layout_for_readers(node: Node, users: Mapping[Node, Iterable[Node]]) -> Layout:
    """Return a dense layout of which the first reader that permutes and then reshapes a node needs no copy.

    If there is no such reader, the layout is row-major.
    """
    for user in users.get(node, ()):
        order = [*range(node.ndim)]
        while isinstance(user.function, View) and user.function.method == "permute":
            order = [order[d] for d in user.function.parameters]
            user = next(iter(users.get(user, ())), node)
        if isinstance(user.function, View) and user.function.method == "reshape" and order != sorted(order):
            return row_major(node.shape[d] for d in order).permute(*sorted(order, key=order.__getitem__))
    return row_major(node.shape)


def begin_kernel(emission: Emission, space: IterationSpace, nodes: Iterable[Node]) -> KernelBuilder:
    """Return an empty kernel for some nodes."""
    builder = KernelBuilder(emission, space)
    if emission.log:
        loops = f"the rows of {space}" if space.dims else str(space)
        builder.number_in_log = emission.log.begin(nodes, loops)
    return builder


def emit_kernel(emission: Emission, space: IterationSpace, nodes: Sequence[Node]) -> None:
    """Add the launch of a kernel that stores some nodes."""
    builder = begin_kernel(emission, space, nodes)
    found = {node: builder.expression(node, space.reindex_for(node.shape)) for node in nodes}
    pointwise = [node for node in nodes if node.shape == space.shape]
    nodes = [*pointwise, *[node for node in nodes if node.shape != space.shape]]
    outputs, pointwise_outputs, row_outputs = list[BufferView](), list[Expression](), list[Expression]()
    for node, view in zip(nodes, builder.allocate_outputs(nodes), strict=True):
        stored = [view, *builder.reserve_copies(node)]
        outputs += stored
        (pointwise_outputs if node.shape == space.shape else row_outputs).extend([found[node]] * len(stored))
    results = tuple(pointwise_outputs), tuple(row_outputs)
    kernel = ScanKernel(builder.scan, *results) if builder.scan else Kernel(*results)
    inputs, indexed_operands = list(builder.inputs), list(builder.indexed_operands)
    parameters = [source for source, _ in builder.parameters]
    step = Step(kernel, *space, outputs, inputs, parameters, indexed_operands)
    emission.add_step(step if builder.nested is None else finish_nested(step, builder.nested), builder.number_in_log)
    emission.commit()
    builder.note(EMITTED, nodes)
