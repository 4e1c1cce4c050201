"""From a graph to few kernels.

Greedy: every value that must lie in memory (an output, an operand of a product, a fold that its user cannot hold)
becomes a kernel that computes all it can on the way: elementwise functions always, folds where the space and the folded
dims are the kernel's own, a matrix product where the kernel's points are its sums. Values over the same space and fold share
one kernel. Elementwise values are computed again in every kernel that needs them, unless they lie in memory anyway.

What a kernel could not hold, and why, is kept in `refusals`; all that was decided on the way, in `record`, if somebody asks.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.interning import Task, run_trampolined, toposort
from ..core.layout import Layout, dense_like, row_major
from ..ir.array_functions import CompositeOutput, Copy, Matmul, PadSlice, Reduce, SliceUpdate, View
from ..ir.gather import Gather, ScatterAdd
from ..ir.graph import Node, inputs_of, strip_views
from ..ir.kernel_ir import Accumulator, Expression, Kernel, Load, MatmulKernel, OpaqueOutput
from ..ir.steps import NO_BUFFER, BufferView, KernelLaunch, LibraryCall, MatmulLaunch, Step
from .fusible_region import FusibleRegion
from .fusion_log import EMITTED, GROUPED, INLINED, REFUSED, RESTARTED, Refusal, active_log
from .horizontal_fusion import KernelGroups, hoist_common_reductions, partition_by_inputs
from .kernel_builder import (
    ONE_MATMUL_PER_KERNEL,
    PROLOGUE_IS_POINTWISE,
    IterationSpace,
    KernelBuilder,
    copy_kernel,
    drop_unused_operands,
    keep_layout,
    shift_loads,
)
from .kernel_limits import split_points
from .lower_gather import GATHER_NOT_IN_MATMUL, lower_scatter_add
from .materialize import choose_materialized
from .shared_inputs import connected_components, set_bits, shared_input_masks
from .slice_updates import SEPARATE_STEPS, alias_identity, schedule_slice_update

EPILOGUE_NOT_STRIDED = "what its epilogue reads cannot be seen in the shape of the product"

LoweredOperand = tuple[Expression, KernelBuilder]


class KernelScheduler:
    """Steps that compute nodes. `place` says in which slot of the call's memory, and in which layout, a node lies.

    `roots` are all nodes that will be asked for, `saved` those of them that only a backward pass needs.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        layouts: Sequence[Layout | None],
        backend: Backend,
        roots: Iterable[Node],
        saved: Iterable[Node] = (),
    ) -> None:
        places = enumerate(zip(arguments, layouts, strict=True))
        self.buffers: dict[Node, BufferView] = {node: (k, layout) for k, (node, layout) in places if layout is not None}
        self.first_buffer, self.backend = len(arguments), backend
        self.copies: dict[Node, BufferView] = {}  # in row-major order
        self.layouts: dict[Node, Layout] = {}  # how some nodes are to lie
        self.preassigned: dict[Node, BufferView] = {}  # where nodes that are not computed yet are to lie
        self.buffer_nbytes: list[int] = []  # bytes, of each buffer
        self.steps: list[Step] = []
        self.unfusable_matmuls: dict[Node, str] = {}  # products that are kernels of their own, and why
        self.refusals: dict[Refusal, None] = {}  # in order
        self.origin_of: dict[Node, Node | None] = {}  # nodes of our own making, and what they are for; None for their parts
        self.log = active_log.log
        self.roots, self.saved = dict.fromkeys(map(strip_views, roots)), set(map(strip_views, saved))
        order = toposort(self.roots, inputs_of)
        self.rank: dict[Node, float] = {node: k for k, node in enumerate(order)}
        self.users: dict[Node, set[Node]] = {}
        self.reads_memory: dict[Node, bool] = {}  # whether a node is computed from any array
        for node in order:
            self.reads_memory[node] = any(self.reads_memory[x] for x in node.inputs) if node.inputs else node in self.buffers
            for x in node.inputs:
                self.users.setdefault(x, set()).add(node)
        self.kept = choose_materialized(order, self.roots)  # what must lie in memory before it is read, and why
        self.ways = FusibleRegion(self.buffers, self.kept)
        self.push_views_up, self.inlined_inputs, self.space = (
            self.ways.push_views_up,
            self.ways.inlined_inputs,
            self.ways.space,
        )

    def allocate(self, node: Node, layout: Layout) -> BufferView:
        """A new buffer for a node."""
        self.buffer_nbytes.append(layout.size * node.dtype.itemsize)
        self.buffers[node] = self.first_buffer + len(self.buffer_nbytes) - 1, layout
        return self.buffers[node]

    def refuse(self, producer: Node, consumer: Node, reason: str) -> None:
        """Note that a kernel loads what it could have computed."""
        is_input = producer in self.buffers and self.buffers[producer][0] < self.first_buffer
        if not is_input:
            is_saved = producer in self.saved
            why = "it is saved for the backward pass" if is_saved else "it lies in memory: another kernel has computed it"
            refusal = Refusal(producer, consumer, reason or why)
            if self.log and refusal not in self.refusals:
                self.log.note(REFUSED, -1, refusal[:2], refusal.reason)
            self.refusals.setdefault(refusal)

    def begin(self, space: IterationSpace, nodes: Iterable[Node]) -> KernelBuilder:
        """A kernel for some nodes, which holds nothing yet."""
        body = KernelBuilder(self, space)
        if self.log:
            body.kernel = self.log.begin(self.origins(nodes), f"{'the rows of ' * bool(space.dims)}{space}")
        return body

    def origins(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes of the graph: what those of our own making are for."""
        found = (self.origin_of.get(node, node) for node in nodes)
        return list(dict.fromkeys(node for node in found if node is not None))

    def note(self, kind: str, body: KernelBuilder, nodes: Iterable[Node], reason: str = "") -> None:
        """Write down what becomes of a kernel, if somebody asks."""
        if self.log and body.kernel is not None and (known := self.origins(nodes)):
            self.log.note(kind, body.kernel, known, reason)

    def add(self, step: Step, node: Node, reason: str) -> None:
        """A step that only puts a node somewhere."""
        self.steps.append(step)
        if self.log:
            self.log.copy(node, reason)

    def is_read_outside(self, node: Node, inside: set[Node], stored: Iterable[Node]) -> bool:
        """Whether anybody needs a node but the kernel that computes the nodes `inside`, of which it stores some."""
        front, done = [node], {*stored} - {node}
        while front:
            x = front.pop()
            if x in done:
                continue
            done.add(x)
            if x in self.roots:
                return True
            for user in self.users.get(x, ()):
                if not isinstance(user.function, View) and user not in inside:
                    return True
                front.append(user)
        return False

    def compute(self, nodes: Iterable[Node]) -> None:
        """Steps for several nodes."""
        run_trampolined(self.schedule_nodes(nodes))

    def schedule_nodes(self, nodes: Iterable[Node]) -> Task[None]:
        """Steps for several nodes: what others need first; those over one space that read a common array share a kernel."""
        groups: KernelGroups = {}
        for node in dict.fromkeys(map(strip_views, nodes)):
            if node in self.buffers or (yield alias_identity(self, node)):
                continue
            if isinstance(node.function, SEPARATE_STEPS):
                yield self.materialize(node)
            else:
                space = self.space(node)
                groups.setdefault((space, self.find_matmul(node, space)), []).append(node)
        yield hoist_common_reductions(self, groups)
        self.merge_pointwise_into_reductions(groups)
        for (space, product), members in sorted(groups.items(), key=lambda item: max(map(self.rank_of, item[1]))):
            for related in [members] if product is not None else self.split_unrelated(space, members):
                yield self.emit_kernel(space, related)

    def rank_of(self, node: Node) -> float:
        """A number that is higher than those of all that a node is computed from."""
        for x in toposort([node], lambda x: () if x in self.rank else x.inputs):
            if x not in self.rank:  # of our own making
                self.rank[x] = max((self.rank[i] for i in x.inputs), default=0) + 0.001
                self.reads_memory[x] = any(self.reads_memory[i] for i in x.inputs)
        return self.rank[node]

    def merge_pointwise_into_reductions(self, groups: KernelGroups) -> None:
        """Let kernels that fold rows store points of the same space too; note why others stay apart."""
        keys = list(groups)
        sharing = self.shared_input_masks(list(groups.values()))
        for k, key in enumerate(keys):
            space, product = key
            near = [j for j in set_bits(sharing[k]) if j != k and keys[j] in groups]
            folding = [j for j in near if keys[j][0].shape == space.shape and keys[j][0].dims and keys[j][1] is None]
            if folding and product is None and not space.dims:
                other = groups[keys[folding[0]]]
                if self.log:
                    self.log.note(GROUPED, -1, (groups[key][0], other[0]), str(space))
                other.extend(groups.pop(key))
                sharing = [mask | sharing[k] if j == folding[0] else mask for j, mask in enumerate(sharing)]
            elif before := [j for j in near if j < k]:
                reason = f"one kernel runs over {keys[before[0]][0]}, the other over {space}"
                self.refuse(groups[keys[before[0]]][0], groups[key][0], reason)

    def split_unrelated(self, space: IterationSpace, nodes: Sequence[Node]) -> list[list[Node]]:
        """Nodes by what they read: a kernel for values that have no array in common would only be larger."""
        groups = connected_components(self.shared_input_masks([[node] for node in nodes]))
        return [part for members in groups for part in partition_by_inputs(self.ways, space, [nodes[k] for k in members])]

    def shared_input_masks(self, groups: Sequence[Sequence[Node]]) -> list[int]:
        """For each group a mask of those that read an array which it reads too."""
        return shared_input_masks(
            groups, self.rank_of, lambda node: node in self.buffers or self.reads_memory[node], self.buffers
        )

    def locate(self, node: Node) -> BufferView:
        """The place of a node, after the steps that put it there."""
        return run_trampolined(self.materialize(node))

    def materialize(self, node: Node) -> Task[BufferView]:
        """The same, as a task."""
        under = strip_views(node)
        function = under.function
        if node in self.buffers or under in self.buffers:
            pass
        elif isinstance(function, Matmul):
            body = self.begin(IterationSpace(under.shape, ()), [under])
            yield body.own(under)
            yield self.emit_matmul(under, body, [], {})
        elif isinstance(function, PadSlice | SliceUpdate):
            yield schedule_slice_update(self, under)
        elif isinstance(function, ScatterAdd):
            yield self.emit_scatter_add(under)
        elif isinstance(function, CompositeOutput):
            yield self.emit_library_call(under, function)
        elif not (yield alias_identity(self, under)):
            yield self.emit_kernel(self.space(under), [under])
        return self.locate_stored(node)

    def locate_stored(self, node: Node) -> BufferView:
        """The place of views of what lies in memory; a copy of it where strides do not allow them."""
        views, x = list[Node](), node
        while x not in self.buffers:
            views.append(x)
            (x,) = x.inputs
        slot, layout = self.buffers[x]
        for view in reversed(views):
            try:
                layout = view.function.layout(layout)
            except ShapeError:
                slot, layout = self.copy_to_row_major(view.inputs[0], (slot, layout))
                layout = view.function.layout(layout)
        return slot, layout

    def emit_scatter_add(self, node: Node) -> Task[None]:
        """What adds up by index: as a fold, in a kernel that stores it, since it is all there only at the end."""
        fold = lower_scatter_add(node)
        chosen = fold.inputs[0]
        is_here = chosen.inputs[0]
        self.origin_of |= {
            fold: node,
            chosen: None,
            is_here: None,
            **{strip_views(x): None for x in is_here.inputs if x.is_pointwise},
        }
        yield self.emit_kernel(self.space(fold), [fold])
        self.buffers[node] = self.locate_stored(fold.reshape(node.shape))

    def emit_library_call(self, node: Node, function: CompositeOutput) -> Task[None]:
        """All outputs of a function that the backend knows as a whole."""
        defined, inputs = function.op, list[BufferView]()
        for x in node.inputs:
            inputs.append((yield self.materialize(x)))
        inferred = defined.infer(*node.inputs)
        outputs = [Node(CompositeOutput(defined, k), node.inputs, *kind) for k, kind in enumerate(inferred)]
        for x, like in zip(outputs, defined.output_layout_like, strict=True):
            if x in self.preassigned:
                self.buffers[x] = self.preassigned.pop(x)
            else:
                read = [] if like is None else [inputs[like][1]]
                self.allocate(x, self.layouts.get(x, dense_like(read, x.shape)))
        loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
        kernel = Kernel(tuple(OpaqueOutput(repr(x.function), loads, x.dtype) for x in outputs), ())
        step = LibraryCall(defined, kernel, [self.buffers[x] for x in outputs], inputs)
        self.add(step, node, "which the backend computes as a whole")

    def copy_to_row_major(self, node: Node, source: BufferView) -> BufferView:
        """The place of a copy in row-major order."""
        if node not in self.copies:
            self.copies[node] = self.allocate(node, row_major(node.shape))
            self.buffers[node] = source
            self.add(
                KernelLaunch(copy_kernel(node), node.shape, (), [self.copies[node]], [source]),
                node,
                "a copy in order, as a view of it needs",
            )
        return self.copies[node]

    def emit_kernel(self, space: IterationSpace, nodes: Iterable[Node]) -> Task[None]:
        """One kernel for those of the nodes that lie nowhere yet."""
        nodes = [node for node in dict.fromkeys(nodes) if node not in self.buffers]
        if not nodes:
            return
        if len(batches := self.split_into_batches(space, nodes)) > 1:
            for batch in batches:
                yield self.emit_kernel(space, batch)
            return
        if space.dims and all(self.space(node) != space for node in nodes):
            yield self.schedule_nodes(nodes)  # the rows of the space are folded by now: what is left runs over less
            return
        if (yield self.split_long_kernel(space, nodes)):
            yield self.emit_kernel(space, nodes)
            return
        body, found = self.begin(space, nodes), dict[Node, Expression]()
        with self.ways.inside_kernel_of(nodes):
            for node in nodes:
                found[node] = yield body.expression(node, space.sees(node.shape))
        if body.unmaterialized:
            self.note(RESTARTED, body, dict.fromkeys(body.unmaterialized))
            yield self.schedule_nodes(body.unmaterialized)
            yield self.emit_kernel(space, nodes)  # more lies in memory now: look again
        elif body.matmul is not None and body.gathers:
            for node in body.gathers:
                self.refuse(node, nodes[0], GATHER_NOT_IN_MATMUL)
            self.note(RESTARTED, body, body.gathers)
            yield self.schedule_nodes(body.gathers)
            yield self.emit_kernel(space, nodes)
        elif body.matmul is not None:
            yield self.emit_matmul(body.matmul, body, nodes, found)
        elif needed := [x for x in body.reductions if self.is_needed_again(x, body, nodes)]:
            self.note(RESTARTED, body, needed, "another kernel needs it as well")
            yield self.emit_kernel(space, [*nodes, *needed])
        else:
            elements = [node for node in nodes if node.shape == space.shape]
            rows = [node for node in nodes if node.shape != space.shape]
            outputs = [self.allocate_output(node, body) for node in elements + rows]
            kernel = Kernel(tuple(found[node] for node in elements), tuple(found[node] for node in rows))
            numbers = [source for source, _ in body.numbers]
            self.steps.append(
                KernelLaunch(kernel, space.shape, space.dims, outputs, list(body.inputs), numbers, list(body.raws))
            )
            self.note(EMITTED, body, elements + rows)

    def split_into_batches(self, space: IterationSpace, nodes: list[Node]) -> list[list[Node]]:
        """Split nodes into batches, each a kernel: a node that is kept is stored before others read a view of it."""
        members = self.kept.keys() & nodes
        if len(nodes) == 1 or not members:
            return [nodes]
        inside, levels = self.ways.inside(space), dict[Node, int]()

        def inputs(x: Node) -> Sequence[Node]:
            under = strip_views(x)
            if under in members:
                return self.ways.own(under) if x is under else (under,)
            return inside(x)

        for x in toposort(nodes, lambda x: (*inputs(x), *self.ways.gathered_from(x, members))):
            levels[x] = max((levels[i] for i in inputs(x)), default=0) + (
                strip_views(x) in members and x is not strip_views(x)
            )
            levels[x] = max((levels[x], *(levels[i] + 1 for i in self.ways.gathered_from(x, members))))
        batches: dict[int, list[Node]] = {}
        for node in nodes:
            batches.setdefault(levels[node], []).append(node)
        return [batches[level] for level in sorted(batches)]

    def is_needed_again(self, fold: Node, body: KernelBuilder, nodes: Iterable[Node]) -> bool:
        """Whether another kernel would fold the same again, so that its few results should be stored."""
        stored = {*nodes, *body.reductions}
        return fold not in set(nodes) and self.is_read_outside(fold, body.inside, stored)

    def allocate_output(self, node: Node, body: KernelBuilder) -> BufferView:
        """Where a kernel stores a node, as its space sees that place: laid out like what the kernel reads."""
        wanted = self.preassigned.pop(node, None)
        if wanted is not None and (seen := body.reindex_buffer(wanted, node.shape)) is not None:
            self.buffers[node] = wanted
            return seen
        is_plain = node.shape != body.space.shape or isinstance(node.function, Copy | Gather)
        is_plain = is_plain or (body.matmul is not None and node.shape != body.matmul.shape)
        read = [layout for slot, layout in body.inputs if slot != NO_BUFFER]
        layout = row_major(node.shape) if is_plain else dense_like(read, node.shape)
        slot, layout = self.allocate(node, self.layouts.get(node, layout))
        return slot, body.space.sees(node.shape)(layout)

    def matmul_output(self, product: Node) -> BufferView:
        """Where the sums of a product are stored as they are."""
        if product in self.preassigned:
            self.buffers[product] = self.preassigned.pop(product)
            return self.buffers[product]
        return self.allocate(product, row_major(product.shape))

    def split_long_kernel(self, space: IterationSpace, nodes: Sequence[Node]) -> Task[bool]:
        """Let other kernels compute parts of what would be a very long one; whether there was any."""
        inside, asked = self.ways.inside(space), set(nodes)
        with self.ways.inside_kernel_of(nodes):
            found = split_points([x for x in toposort(nodes, inside) if not x.is_number], inside, nodes)
        for stored, reason in found:
            for node in stored:
                if node not in asked:
                    self.refuse(strip_views(node), nodes[0], reason)
            yield self.schedule_nodes(stored)
        return bool(found)

    # Matrix products.

    def find_matmul(self, node: Node, space: IterationSpace) -> Node | None:
        """The matrix product whose sums the kernel of a node would finish."""
        body = KernelBuilder(self, space)
        for leaf in [] if self.ways.is_pointwise(node) else toposort([node], self.inlined_inputs):
            under = strip_views(leaf)
            if (
                isinstance(under.function, Matmul)
                and under not in self.buffers
                and not body.why_not_fusible(leaf, keep_layout)
            ):
                return under
        return None

    def emit_matmul(
        self, product: Node, body: KernelBuilder, nodes: list[Node], found: dict[Node, Expression]
    ) -> Task[None]:
        """One matrix product, and what is done to its operands and its sums; less of that where the backend refuses."""
        if product not in set(nodes) and (not nodes or self.is_read_outside(product, body.inside, nodes)):
            nodes, found = [*nodes, product], {**found, product: Accumulator(product.dtype)}
        is_alone, before = len(nodes) == 1 and nodes[0] is product, len(self.buffers)
        for is_merged in (True, False):
            operands = list[LoweredOperand]()
            for x in product.inputs:
                operands.append((yield self.lower_operand(x, product, body, is_merged)))
            if len(self.buffers) > before and not is_alone:
                self.note(RESTARTED, body, islice(self.buffers, before, None))
                yield self.emit_kernel(body.space, nodes)
                return
            kernel, inputs, reason = self.merge_operands(product, body, [found[node] for node in nodes], operands)
            reason = reason or self.backend.why_not_fused(
                kernel, [row_major(product.shape)] * len(nodes), [layout.without_offset() for _, layout in inputs]
            )
            merged = [strip_views(x) for x, (e, _) in zip(product.inputs, operands, strict=True) if not isinstance(e, Load)]
            if not reason:
                break
            for x in merged:
                self.refuse(x, product, reason)
            if not merged and not is_alone:
                self.unfusable_matmuls[product] = reason
                self.note(RESTARTED, body, [product], reason)
                yield self.emit_kernel(body.space, nodes)
                return
        outputs = [self.matmul_output(x) if x is product else self.allocate_output(x, body) for x in nodes]
        outputs = [(slot, layout.reshape(*product.shape)) for slot, layout in outputs]
        numbers = [source for source, _ in body.numbers]
        self.steps.append(MatmulLaunch(*drop_unused_operands(kernel, outputs, inputs, numbers)))
        if merged:
            prologue = dict.fromkeys(strip_views(x) for _, inner in operands for x in inner.seen)
            self.note(INLINED, body, prologue, "in its prologue")
        self.note(EMITTED, body, nodes)

    def lower_operand(self, x: Node, product: Node, body: KernelBuilder, is_merged: bool) -> Task[LoweredOperand]:
        """An operand of a product: computed on its way in, where nobody else needs it, or loaded."""
        is_new = strip_views(x) not in self.buffers and bool(self.inlined_inputs(x))
        if is_merged and is_new and not self.is_read_outside(strip_views(x), {product}, [product]):
            inner = KernelBuilder(self, IterationSpace(x.shape, ()), body.numbers, holds=False)
            e = yield inner.expression(x, keep_layout, product)
            if inner.unmaterialized:
                yield self.schedule_nodes(inner.unmaterialized)
                found: LoweredOperand = yield self.lower_operand(x, product, body, is_merged)
                return found
            if inner.inputs:
                return e, inner
        elif is_new and is_merged:
            self.refuse(strip_views(x), product, "others need it too, so it lies in memory")
        elif is_merged and isinstance(strip_views(x).function, Matmul | Reduce):
            self.refuse(
                strip_views(x),
                product,
                ONE_MATMUL_PER_KERNEL if isinstance(strip_views(x).function, Matmul) else PROLOGUE_IS_POINTWISE,
            )
        inner = KernelBuilder(self, IterationSpace(x.shape, ()))
        yield self.materialize(x)
        return inner.load(x, keep_layout), inner

    def merge_operands(
        self, product: Node, body: KernelBuilder, elements: Sequence[Expression], operands: Sequence[LoweredOperand]
    ) -> tuple[MatmulKernel, list[BufferView], str]:
        """Operands and epilogue as one kernel with one count of loads, the places of those, and what is against it."""
        inputs: list[BufferView] = []
        parts = list[Expression]()
        for e, inner in operands:
            parts.append(shift_loads(e, len(inputs)))
            inputs += inner.inputs
        a, b = parts
        precision = product.function.precision_of(product.dtype, self.backend.has_reduced_precision)
        kernel = MatmulKernel(a, b, tuple(shift_loads(e, len(inputs)) for e in elements), precision)
        try:
            return kernel, inputs + [(slot, layout.reshape(*product.shape)) for slot, layout in body.inputs], ""
        except ShapeError:
            return kernel, inputs, EPILOGUE_NOT_STRIDED
