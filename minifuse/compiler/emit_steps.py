"""Emit the steps of a call: the expressions of each kernel, and buffers for what it stores.

The kernels are in order, so all that a kernel loads is in memory when its turn comes.
"""

from ..backends.base import Backend
from ..core.layout import dense_like
from ..ir.array_functions import Matmul, PadSlice, SliceUpdate
from ..ir.collectives import CollectiveOp
from ..ir.composite_op import CompositeOutput
from ..ir.gather import ScatterReduce
from ..ir.graph import Node
from ..ir.scan import Scan
from ..ir.steps import BufferView, Step
from .graph import EARLY, EXACT, LATE, Graph, KernelGroup
from .iteration_space import reduction_space
from .kernel_builder import Emission, emit_kernel
from .matmul_fusion import emit_matmul
from .rules import composite_kernel
from .slice_targets import SliceEmission


def emit_steps(graph: Graph, target: Backend) -> Graph:
    """Emit the steps that launch the kernels, and assign a buffer to each node that is stored.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> _, after = run_pass(emit_steps, trace(lambda x: x.sum(1), (4, 3)))
    >>> (step,) = after.steps
    >>> step.shape, step.dims
    ((4, 3), (1,))
    """
    emission = (SliceEmission if graph.has(PadSlice, SliceUpdate) else Emission)(graph, target)
    for phase in graph.phases:
        if phase != LATE:
            emit_phase(emission, phase)
    late_step, buffers = len(emission.steps), emission.buffers
    if graph.late:
        emission.buffers = buffers | {node: buffers[argument] for argument, node in graph.contents}
        emit_phase(emission, LATE)
        # A value that is also the new contents of an argument is where it was computed, until the argument is changed.
        contents = {node for _, node in graph.contents} - buffers.keys()
        buffers = {node: buffer for node, buffer in (emission.buffers | buffers).items() if node not in contents}
    return graph.decide(
        steps=tuple(emission.steps),
        late_step=late_step,
        buffers=buffers,
        copies=emission.copies,
        buffer_nbytes=tuple(emission.buffer_nbytes),
        refusals=(*graph.refusals, *emission.refusals),
    )


def emit_phase(emission: Emission, phase: int) -> None:
    """Add the steps of the kernels of a phase, and the copies that views of its results need."""
    graph = emission.graph
    emission.loaded = graph.loaded_nodes(phase)
    for group in graph.kernels:
        if group.phase == phase:
            emit_group(emission, group)
    results = [x for x in graph.results if (x in graph.late) == (phase == LATE)]
    values = [store.value for store in graph.stores] if phase == EARLY else []
    for node in [*results, *values] if phase != EXACT else []:
        emission.locate(node)
    for argument, update, value in graph.stores if phase == EARLY else ():
        slot, layout = graph.memory[argument]
        emission.add_copy(value, (slot, update.region_layout(layout)), value, "a copy into the argument")


def emit_group(emission: Emission, group: KernelGroup) -> None:
    """Add the steps of one kernel."""
    node = group.members[0]
    emission.open_members(group.members)
    match node.function:
        case PadSlice() | SliceUpdate() if isinstance(emission, SliceEmission):
            emission.emit(node)
        case ScatterReduce():
            emit_kernel(emission, reduction_space(node), [node])
        case CompositeOutput(op=op) if not isinstance(op, Scan):
            emit_composite(emission, node, node.function)
        case _ if isinstance(emission, SliceEmission) and emission.share_buffer(node):
            pass
        case _ if emission.graph.has(Matmul) and any(isinstance(x.function, Matmul) for x in group.members):
            emit_matmul(emission, group)
        case _:
            emit_kernel(emission, group.space, group.stored)


def emit_composite(emission: Emission, node: Node, function: CompositeOutput) -> None:
    """Add the step that computes all outputs of a composite op by one call of the backend."""
    op = function.op
    inputs = [emission.locate(x) for x in node.inputs]
    if isinstance(op, CollectiveOp):  # engines send contiguous memory
        inputs = [emission.row_major_view(x, view) for x, view in zip(node.inputs, inputs, strict=True)]
    outputs = [Node(CompositeOutput(op, k), node.inputs, *kind) for k, kind in enumerate(op.infer(*node.inputs))]
    reserved = [emission.reserve(x, lambda buffer: buffer) for x in outputs]
    buffers = list[BufferView]()
    for x, like, view in zip(outputs, op.output_layout_like, reserved, strict=True):
        read = [] if like is None else [inputs[like][1]]
        buffers.append(view or emission.allocate(x, emission.layout_of(x, dense_like(read, x.shape))))
    step = Step(composite_kernel(node, op), outputs[0].shape, (), buffers, inputs)
    emission.commit()
    emission.add_unfused_step(step, node, "computed by the backend's own kernel for this op")
