"""Emit matmuls. Pointwise ops before a matmul are fused as its prologue, those after it as its epilogue.

The backend decides: if it cannot run a kernel with a prologue, the operands are stored first; if it cannot run one with the
epilogue either, the matmul is a separate kernel.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.errors import ShapeError
from ..core.layout import row_major
from ..ir.array_functions import Matmul
from ..ir.graph import Node, strip_views
from ..ir.kernel_ir import Expression, Load, replace
from ..ir.step_kernels import MatmulKernel
from ..ir.steps import NO_BUFFER, BufferView, Step
from .fusion_log import EMITTED, INLINED, RESTARTED
from .graph import KernelGroup
from .iteration_space import IterationSpace, keep_layout
from .kernel_builder import Emission, KernelBuilder, begin_kernel, emit_kernel

EPILOGUE_NOT_STRIDED = "no strides describe this epilogue operand in the shape of the matmul's result"


class LoweredOperand(NamedTuple):
    """An operand of a matmul as an expression, and the kernel that has its loads."""

    source: Node
    expression: Expression
    builder: KernelBuilder

    @property
    def is_prologue(self) -> bool:
        """True if the matmul computes the operand, False if it loads it."""
        return not isinstance(self.expression, Load)


def emit_matmul(emission: Emission, group: KernelGroup) -> None:
    """Add the step of a matmul with its prologue and epilogue, or without those that the backend refuses."""
    matmul = next(x for x in group.members if isinstance(x.function, Matmul))
    epilogue = [x for x in group.stored if x is not matmul]
    is_stored = not epilogue or len(epilogue) < len(group.stored)
    nodes = [*epilogue, *[matmul] * is_stored]
    for has_prologue in (True, False):
        builder = begin_kernel(emission, group.space if epilogue else IterationSpace(matmul.shape, ()), nodes)
        expressions = [builder.expression(x, keep_layout) for x in epilogue]
        expressions += [builder.expression(matmul, keep_layout)] * is_stored
        operands = [lower_operand(emission, x, builder, has_prologue) for x in matmul.inputs]
        kernel, inputs, reason = merge_operands(emission, matmul, builder, expressions, operands)
        outputs = [(NO_BUFFER, row_major(matmul.shape))] * len(nodes)
        reason = reason or emission.backend.supports(Step(kernel, matmul.shape, (), outputs, inputs)) or ""
        prologue = [x for x in operands if x.is_prologue]
        if not reason or not (prologue or epilogue):
            add_launch(emission, matmul, builder, nodes, kernel, inputs, prologue)
            return
        for operand in prologue:
            emission.record_refusal(operand.source, matmul, reason)
            builder.note(RESTARTED, [operand.source], reason)
            emit_alone(emission, operand.source)
        if not prologue:
            break
    builder.note(RESTARTED, [matmul], reason)
    for node in epilogue:
        emission.record_refusal(matmul, node, reason)
    emit_matmul(emission, group._replace(members=(matmul,), stored=(matmul,)))
    emission.open_members(epilogue)
    emit_kernel(emission, group.space, epilogue)


def add_launch(
    emission: Emission,
    matmul: Node,
    builder: KernelBuilder,
    nodes: Sequence[Node],
    kernel: MatmulKernel,
    inputs: list[BufferView],
    prologue: Sequence[LoweredOperand],
) -> None:
    """Add the launch of a matmul that stores some nodes."""
    outputs = [(slot, layout.reshape(*matmul.shape)) for slot, layout in builder.allocate_outputs(nodes)]
    numbers = [source for source, _ in builder.parameters]
    emission.add_step(Step(kernel, matmul.shape, (), outputs, inputs, numbers), builder.number_in_log)
    emission.commit()
    if prologue:
        builder.note(
            INLINED,
            dict.fromkeys(strip_views(x) for operand in prologue for x in operand.builder.inlined),
            "in its prologue",
        )
    builder.note(EMITTED, nodes)


def lower_operand(emission: Emission, x: Node, builder: KernelBuilder, has_prologue: bool) -> LoweredOperand:
    """Return an operand of a matmul: computed in the prologue, or loaded if it is in memory."""
    if has_prologue and strip_views(x) not in emission.buffers:
        operand = KernelBuilder(emission, IterationSpace(x.shape, ()), dict(builder.parameters))
        e = operand.expression(x, keep_layout)
        if operand.inputs:
            builder.parameters |= operand.parameters
            return LoweredOperand(strip_views(x), e, operand)
    source = strip_views(x)
    if source not in emission.buffers:  # computed from numbers only
        emit_alone(emission, source)
    operand = KernelBuilder(emission, IterationSpace(x.shape, ()))
    return LoweredOperand(source, operand.load(x, keep_layout), operand)


def emit_alone(emission: Emission, node: Node) -> None:
    """Add a kernel that stores one pointwise node."""
    region = emission.region
    emission.open_members([node])
    emit_kernel(emission, IterationSpace(node.shape, ()), [node])
    emission.region = region


def merge_operands(
    emission: Emission,
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
    for _, e, operand in operands:
        factors.append(shift_loads(e, len(inputs)))
        inputs += operand.inputs
    a, b = factors
    precision = matmul.function.precision_of(matmul.dtype, emission.backend.has_reduced_precision)
    kernel = MatmulKernel(a, b, tuple(shift_loads(e, len(inputs)) for e in outputs), precision)
    try:
        return kernel, inputs + [(slot, layout.reshape(*matmul.shape)) for slot, layout in builder.inputs], ""
    except ShapeError:
        return kernel, inputs, EPILOGUE_NOT_STRIDED


def shift_loads(e: Expression, count: int) -> Expression:
    """Add `count` to the index of each load of an expression."""
    return replace(e, Load, lambda x: type(x)(x.index + count, x.dtype)) if count else e
