"""Emit matmuls. Pointwise ops before a matmul are fused as its prologue, those after it as its epilogue.

The scheduler of `form_kernels` calls these functions. The backend decides: if it cannot run a kernel with a prologue, the
operands are stored first; if it cannot run one with the epilogue either, the matmul is a separate kernel.
"""

from collections.abc import Sequence
from itertools import islice

from ..core.errors import ShapeError
from ..core.interning import Task, toposort
from ..core.layout import row_major
from ..ir.array_functions import Matmul, Reduce
from ..ir.graph import Node, strip_views
from ..ir.kernel_ir import Accumulator, Expression, KernelParameter, Load, MatmulKernel, replace
from ..ir.steps import BufferView, MatmulLaunch
from .fusion_log import EMITTED, INLINED, RESTARTED
from .iteration_space import IterationSpace, keep_layout
from .kernel_builder import ONE_MATMUL_PER_KERNEL, PROLOGUE_IS_POINTWISE, KernelBuilder
from .scheduler import Scheduler

EPILOGUE_NOT_STRIDED = "no strides describe this epilogue operand in the shape of the matmul's result"
OPERAND_IS_SHARED = "other kernels read it too, so it is stored"

LoweredOperand = tuple[Expression, KernelBuilder]


def find_matmul(scheduler: Scheduler, node: Node, space: IterationSpace) -> Node | None:
    """Return the matmul whose epilogue the kernel of a node would be, or None."""
    if scheduler.region.is_pointwise(node):
        return None
    builder = KernelBuilder(scheduler, space)
    for leaf in toposort([node], scheduler.inlined_inputs):
        source = strip_views(leaf)
        is_pending = isinstance(source.function, Matmul) and source not in scheduler.buffers
        if is_pending and not builder.why_not_fusible(leaf, keep_layout):
            return source
    return None


def emit_matmul(
    scheduler: Scheduler, matmul: Node, builder: KernelBuilder, nodes: list[Node], expressions: dict[Node, Expression]
) -> Task[None]:
    """Add the step of a matmul with its prologue and epilogue, or without those that the backend refuses.

    Parameters
    ----------
    scheduler : Scheduler
    matmul : Node
    builder : KernelBuilder
        The kernel under construction, whose expressions become the epilogue.
    nodes : list of Node
        The nodes that the kernel stores; empty if it stores only the matmul.
    expressions : dict
        The expression of each of `nodes`.
    """
    if matmul not in set(nodes) and (not nodes or scheduler.is_read_outside(matmul, builder.computed, nodes)):
        nodes, expressions = [*nodes, matmul], {**expressions, matmul: Accumulator(matmul.dtype)}
    is_alone, stored_count = len(nodes) == 1 and nodes[0] is matmul, len(scheduler.buffers)
    for has_prologue in (True, False):
        operands = list[LoweredOperand]()
        for x in matmul.inputs:
            operands.append((yield lower_operand(scheduler, x, matmul, builder, has_prologue)))
        if len(scheduler.buffers) > stored_count and not is_alone:
            builder.note(RESTARTED, islice(scheduler.buffers, stored_count, None))
            yield scheduler.emit_kernel(builder.space, nodes)
            return
        kernel, inputs, reason = merge_operands(scheduler, matmul, builder, [expressions[node] for node in nodes], operands)
        reason = reason or scheduler.backend.why_not_fused(
            kernel, [row_major(matmul.shape)] * len(nodes), [layout.without_offset() for _, layout in inputs]
        )
        prologue_sources = [
            strip_views(x) for x, (e, _) in zip(matmul.inputs, operands, strict=True) if not isinstance(e, Load)
        ]
        if not reason:
            break
        for x in prologue_sources:
            scheduler.record_refusal(x, matmul, reason)
        if not prologue_sources and not is_alone:
            scheduler.unfusable_matmuls[matmul] = reason
            builder.note(RESTARTED, [matmul], reason)
            yield scheduler.emit_kernel(builder.space, nodes)
            return
    outputs = [matmul_output(scheduler, x) if x is matmul else builder.allocate_output(x) for x in nodes]
    outputs = [(slot, layout.reshape(*matmul.shape)) for slot, layout in outputs]
    parameters = [source for source, _ in builder.parameters]
    scheduler.steps.append(MatmulLaunch(*drop_unused_operands(kernel, outputs, inputs, parameters)))
    if prologue_sources:
        prologue = dict.fromkeys(strip_views(x) for _, operand in operands for x in operand.inlined)
        builder.note(INLINED, prologue, "in its prologue")
    builder.note(EMITTED, nodes)


def matmul_output(scheduler: Scheduler, matmul: Node) -> BufferView:
    """Return the buffer in which the result of a matmul is stored without an epilogue."""
    if matmul in scheduler.preassigned:
        scheduler.buffers[matmul] = scheduler.preassigned.pop(matmul)
        return scheduler.buffers[matmul]
    return scheduler.allocate(matmul, row_major(matmul.shape))


def lower_operand(
    scheduler: Scheduler, x: Node, matmul: Node, builder: KernelBuilder, has_prologue: bool
) -> Task[LoweredOperand]:
    """Return an operand of a matmul: computed in the prologue if no other kernel needs it, else loaded."""
    source = strip_views(x)
    is_pending = source not in scheduler.buffers and bool(scheduler.inlined_inputs(x))
    if has_prologue and is_pending and not scheduler.is_read_outside(source, {matmul}, [matmul]):
        operand = KernelBuilder(scheduler, IterationSpace(x.shape, ()), builder.parameters, is_prologue=True)
        e = yield operand.expression(x, keep_layout, matmul)
        if operand.unmaterialized:
            yield scheduler.schedule_nodes(operand.unmaterialized)
            lowered: LoweredOperand = yield lower_operand(scheduler, x, matmul, builder, has_prologue)
            return lowered
        if operand.inputs:
            return e, operand
    elif has_prologue and is_pending:
        scheduler.record_refusal(source, matmul, OPERAND_IS_SHARED)
    elif has_prologue and isinstance(source.function, Matmul):
        scheduler.record_refusal(source, matmul, ONE_MATMUL_PER_KERNEL)
    elif has_prologue and isinstance(source.function, Reduce):
        scheduler.record_refusal(source, matmul, PROLOGUE_IS_POINTWISE)
    operand = KernelBuilder(scheduler, IterationSpace(x.shape, ()))
    yield scheduler.materialize(x)
    return operand.load(x, keep_layout), operand


def merge_operands(
    scheduler: Scheduler,
    matmul: Node,
    builder: KernelBuilder,
    outputs: Sequence[Expression],
    operands: Sequence[LoweredOperand],
) -> tuple[MatmulKernel, list[BufferView], str]:
    """Merge prologue and epilogue into one kernel, and number the loads of both consecutively.

    Returns
    -------
    kernel : MatmulKernel
    inputs : list of BufferView
        The buffers that the loads of the kernel read.
    reason : str
        Why the epilogue cannot be fused; empty if it can.
    """
    inputs: list[BufferView] = []
    factors = list[Expression]()
    for e, operand in operands:
        factors.append(shift_loads(e, len(inputs)))
        inputs += operand.inputs
    a, b = factors
    precision = matmul.function.precision_of(matmul.dtype, scheduler.backend.has_reduced_precision)
    kernel = MatmulKernel(a, b, tuple(shift_loads(e, len(inputs)) for e in outputs), precision)
    try:
        return kernel, inputs + [(slot, layout.reshape(*matmul.shape)) for slot, layout in builder.inputs], ""
    except ShapeError:
        return kernel, inputs, EPILOGUE_NOT_STRIDED


def shift_loads(e: Expression, count: int) -> Expression:
    """Add `count` to the index of each load of an expression."""
    return replace(e, Load, lambda x: type(x)(x.index + count, x.dtype)) if count else e


def drop_unused_operands(
    kernel: MatmulKernel, outputs: list[BufferView], inputs: list[BufferView], parameters: list[int | str]
) -> tuple[MatmulKernel, list[BufferView], list[BufferView], list[int | str]]:
    """Drop inputs and parameters that the kernel does not read, and renumber the others without gaps."""
    load_indices = [x.index for part in kernel.loads() for x in part]
    parameter_indices = [x.index for x in kernel.parameters()]

    def renumber(e: Expression) -> Expression:
        e = replace(e, Load, lambda x: type(x)(load_indices.index(x.index), x.dtype))
        return replace(e, KernelParameter, lambda x: KernelParameter(parameter_indices.index(x.index), x.dtype))

    a, b, *rest = map(renumber, (kernel.a, kernel.b, *kernel.pointwise_outputs))
    renumbered = MatmulKernel(a, b, tuple(rest), kernel.precision)
    return renumbered, outputs, [inputs[k] for k in load_indices], [parameters[k] for k in parameter_indices]
