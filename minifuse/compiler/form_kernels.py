"""Form kernels from a graph, and the steps that launch them.

The algorithm is greedy. A value becomes a kernel if it must be in memory: an output, an operand of a matmul, a reduction
that its user cannot inline. The kernel inlines as much as it can: pointwise ops always, a reduction if it runs over the
kernel's own rows, a matmul if the kernel is its epilogue. Values with equal loops that read a common array share a kernel.
Pointwise values are recomputed in every kernel that needs them, unless they are in memory.

`refusals` lists the values that a kernel loads although it could have computed them, with the reasons. `log` lists all
decisions, if a fusion log is active.
"""

from collections.abc import Iterable, Sequence

from ..core.interning import Task, run_trampolined, toposort
from ..core.layout import dense_like
from ..ir.array_functions import CompositeOutput, Matmul, PadSlice, SliceUpdate
from ..ir.gather import ScatterAdd
from ..ir.graph import Node, strip_views
from ..ir.kernel_ir import Expression, Kernel, Load, OpaqueOutput
from ..ir.steps import BufferView, KernelLaunch, LibraryCall
from .fusion_log import EMITTED, GROUPED, RESTARTED
from .horizontal_fusion import KernelGroups, hoist_common_reductions, partition_by_inputs
from .iteration_space import IterationSpace
from .kernel_builder import KernelBuilder
from .kernel_limits import split_into_parts
from .lower_gather import GATHER_NOT_IN_MATMUL, lower_scatter_add
from .matmul_fusion import emit_matmul, find_matmul
from .scheduler import Scheduler
from .shared_inputs import connected_components, set_bits, shared_input_masks
from .slice_updates import SEPARATE_STEPS, alias_identity, schedule_slice_update

REDUCTION_IS_SHARED = "another kernel needs it as well"


class KernelScheduler(Scheduler):
    """Forms kernels for requested nodes, and lists the steps that launch them."""

    def begin_kernel(self, space: IterationSpace, nodes: Iterable[Node]) -> KernelBuilder:
        """Return an empty kernel for some nodes."""
        builder = KernelBuilder(self, space)
        if self.log:
            loops = f"the rows of {space}" if space.dims else str(space)
            builder.number_in_log = self.log.begin(self.origins(nodes), loops)
        return builder

    def compute(self, nodes: Iterable[Node]) -> None:
        """Add the steps that compute some nodes."""
        run_trampolined(self.schedule_nodes(nodes))

    def schedule_nodes(self, nodes: Iterable[Node]) -> Task[None]:
        """Add the steps that compute some nodes. Nodes with equal loops that read a common array share a kernel."""
        groups: KernelGroups = {}
        for node in dict.fromkeys(map(strip_views, nodes)):
            if node in self.buffers or (yield alias_identity(self, node)):
                continue
            if isinstance(node.function, SEPARATE_STEPS):
                yield self.materialize(node)
            else:
                space = self.space(node)
                groups.setdefault((space, find_matmul(self, node, space)), []).append(node)
        yield hoist_common_reductions(self, groups)
        self.merge_pointwise_into_reductions(groups)
        for (space, matmul), members in sorted(groups.items(), key=lambda item: max(map(self.rank_of, item[1]))):
            for related in [members] if matmul is not None else self.split_unrelated(space, members):
                yield self.emit_kernel(space, related)

    def merge_pointwise_into_reductions(self, groups: KernelGroups) -> None:
        """Let the kernel of a reduction also store pointwise values of its shape; record why other groups are not merged."""
        keys = list(groups)
        masks = self.shared_input_masks(list(groups.values()))
        for k, key in enumerate(keys):
            space, matmul = key
            related = [j for j in set_bits(masks[k]) if j != k and keys[j] in groups]
            reducing = [j for j in related if keys[j][0].shape == space.shape and keys[j][0].dims and keys[j][1] is None]
            if reducing and matmul is None and not space.dims:
                other = groups[keys[reducing[0]]]
                if self.log:
                    self.log.note(GROUPED, -1, (groups[key][0], other[0]), str(space))
                other.extend(groups.pop(key))
                masks = [mask | masks[k] if j == reducing[0] else mask for j, mask in enumerate(masks)]
            elif before := [j for j in related if j < k]:
                reason = f"one kernel loops over {keys[before[0]][0]}, the other over {space}"
                self.record_refusal(groups[keys[before[0]]][0], groups[key][0], reason)

    def split_unrelated(self, space: IterationSpace, nodes: Sequence[Node]) -> list[list[Node]]:
        """Split nodes by their inputs: nodes with a common input may share a kernel, others gain nothing from it."""
        groups = connected_components(self.shared_input_masks([[node] for node in nodes]))
        return [part for members in groups for part in partition_by_inputs(self.region, space, [nodes[k] for k in members])]

    def shared_input_masks(self, groups: Sequence[Sequence[Node]]) -> list[int]:
        """Return for each group a mask of the groups that read one of its arrays, too."""

        def reads_memory(node: Node) -> bool:
            return node in self.buffers or self.reads_memory[node]

        return shared_input_masks(groups, self.rank_of, reads_memory, self.buffers)

    def locate(self, node: Node) -> BufferView:
        """Return the buffer of a node, after adding the steps that store it there."""
        return run_trampolined(self.materialize(node))

    def materialize(self, node: Node) -> Task[BufferView]:
        """Add the steps that store a node, and return its buffer."""
        source = strip_views(node)
        function = source.function
        if node in self.buffers or source in self.buffers:
            pass
        elif isinstance(function, Matmul):
            builder = self.begin_kernel(IterationSpace(source.shape, ()), [source])
            yield builder.inline_root(source)
            yield emit_matmul(self, source, builder, [], {})
        elif isinstance(function, PadSlice | SliceUpdate):
            yield schedule_slice_update(self, source)
        elif isinstance(function, ScatterAdd):
            yield self.emit_scatter_add(source)
        elif isinstance(function, CompositeOutput):
            yield self.emit_library_call(source, function)
        elif not (yield alias_identity(self, source)):
            yield self.emit_kernel(self.space(source), [source])
        return self.locate_stored(node)

    def emit_scatter_add(self, node: Node) -> Task[None]:
        """Add the kernel of a scatter-add, which is lowered to a reduction. No later op is fused with it."""
        reduction = lower_scatter_add(node)
        (selected,) = reduction.inputs
        is_selected = selected.inputs[0]
        self.origin_of |= {reduction: node, selected: None, is_selected: None}
        self.origin_of |= {strip_views(x): None for x in is_selected.inputs if x.is_pointwise}
        yield self.emit_kernel(self.space(reduction), [reduction])
        self.buffers[node] = self.locate_stored(reduction.reshape(node.shape))

    def emit_library_call(self, node: Node, function: CompositeOutput) -> Task[None]:
        """Add the step that computes all outputs of a composite op by one call of the backend."""
        op, inputs = function.op, list[BufferView]()
        for x in node.inputs:
            inputs.append((yield self.materialize(x)))
        outputs = [Node(CompositeOutput(op, k), node.inputs, *kind) for k, kind in enumerate(op.infer(*node.inputs))]
        for x, like in zip(outputs, op.output_layout_like, strict=True):
            if x in self.preassigned:
                self.buffers[x] = self.preassigned.pop(x)
            else:
                read = [] if like is None else [inputs[like][1]]
                self.allocate(x, self.required_layouts.get(x, dense_like(read, x.shape)))
        loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
        kernel = Kernel(tuple(OpaqueOutput(repr(x.function), loads, x.dtype) for x in outputs), ())
        step = LibraryCall(op, kernel, [self.buffers[x] for x in outputs], inputs)
        self.add_unfused_step(step, node, "computed by the backend's own kernel for this op")

    def emit_kernel(self, space: IterationSpace, nodes: Iterable[Node]) -> Task[None]:
        """Add a kernel that stores the nodes that are not in memory yet, or several kernels if one cannot store them all."""
        nodes = [node for node in dict.fromkeys(nodes) if node not in self.buffers]
        if not nodes:
            return
        if len(batches := self.split_into_batches(space, nodes)) > 1:
            for batch in batches:
                yield self.emit_kernel(space, batch)
            return
        if space.dims and all(self.space(node) != space for node in nodes):
            yield self.schedule_nodes(nodes)  # the reductions are stored by now, so the nodes need shorter loops
            return
        if (yield self.split_long_kernel(space, nodes)):
            yield self.emit_kernel(space, nodes)
            return
        builder, found = self.begin_kernel(space, nodes), dict[Node, Expression]()
        with self.region.inside_kernel_of(nodes):
            for node in nodes:
                found[node] = yield builder.expression(node, space.reindex_for(node.shape))
        if builder.unmaterialized:
            builder.note(RESTARTED, dict.fromkeys(builder.unmaterialized))
            yield self.schedule_nodes(builder.unmaterialized)
            yield self.emit_kernel(space, nodes)  # more nodes are in memory now, so the loops may differ
        elif builder.matmul is not None and builder.gathers:
            for node in builder.gathers:
                self.record_refusal(node, nodes[0], GATHER_NOT_IN_MATMUL)
            builder.note(RESTARTED, builder.gathers)
            yield self.schedule_nodes(builder.gathers)
            yield self.emit_kernel(space, nodes)
        elif builder.matmul is not None:
            yield emit_matmul(self, builder.matmul, builder, nodes, found)
        elif shared := [x for x in builder.reductions if self.is_shared_reduction(x, builder, nodes)]:
            builder.note(RESTARTED, shared, REDUCTION_IS_SHARED)
            yield self.emit_kernel(space, [*nodes, *shared])
        else:
            self.emit_launch(space, nodes, builder, found)

    def emit_launch(
        self, space: IterationSpace, nodes: Sequence[Node], builder: KernelBuilder, found: dict[Node, Expression]
    ) -> None:
        """Add the launch of a finished kernel that stores some nodes."""
        pointwise = [node for node in nodes if node.shape == space.shape]
        rows = [node for node in nodes if node.shape != space.shape]
        outputs = [builder.allocate_output(node) for node in pointwise + rows]
        kernel = Kernel(tuple(found[node] for node in pointwise), tuple(found[node] for node in rows))
        inputs, indexed_operands = list(builder.inputs), list(builder.indexed_operands)
        parameters = [source for source, _ in builder.parameters]
        self.steps.append(KernelLaunch(kernel, *space, outputs, inputs, parameters, indexed_operands))
        builder.note(EMITTED, pointwise + rows)

    def split_into_batches(self, space: IterationSpace, nodes: list[Node]) -> list[list[Node]]:
        """Split nodes into batches, each a kernel: a materialized node is stored before others read views of it."""
        members = self.materialized.keys() & nodes
        if len(nodes) == 1 or not members:
            return [nodes]
        inputs_in_kernel, levels = self.region.inputs_in_kernel(space), dict[Node, int]()

        def inputs(x: Node) -> Sequence[Node]:
            source = strip_views(x)
            if source in members:
                return self.region.root_inputs(source) if x is source else (source,)
            return inputs_in_kernel(x)

        for x in toposort(nodes, lambda x: (*inputs(x), *self.region.find_gather_source(x, members))):
            is_view_of_member = strip_views(x) in members and x is not strip_views(x)
            level = max((levels[i] for i in inputs(x)), default=0) + is_view_of_member
            levels[x] = max((level, *(levels[i] + 1 for i in self.region.find_gather_source(x, members))))
        batches: dict[int, list[Node]] = {}
        for node in nodes:
            batches.setdefault(levels[node], []).append(node)
        return [batches[level] for level in sorted(batches)]

    def is_shared_reduction(self, reduction: Node, builder: KernelBuilder, nodes: Iterable[Node]) -> bool:
        """Return whether another kernel would compute the same reduction again, so that its results should be stored."""
        stored = {*nodes, *builder.reductions}
        return reduction not in set(nodes) and self.is_read_outside(reduction, builder.computed, stored)

    def split_long_kernel(self, space: IterationSpace, nodes: Sequence[Node]) -> Task[bool]:
        """Let other kernels compute parts of a kernel that would be too long. Return whether any were split off."""
        inputs, asked = self.region.inputs_in_kernel(space), set(nodes)
        with self.region.inside_kernel_of(nodes):
            parts = split_into_parts([x for x in toposort(nodes, inputs) if not x.is_number], inputs, nodes)
        for stored, reason in parts:
            for node in stored:
                if node not in asked:
                    self.record_refusal(strip_views(node), nodes[0], reason)
            yield self.schedule_nodes(stored)
        return bool(parts)
