"""The operands of a matrix product and its launches: which array is at which address, and the arguments of fused parts.

All configurations of a product share these definitions; `launches` decides which configuration runs. Integers only.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ....core.dtypes import DType, int64
from ....core.layout import Layout
from ....ir.kernel_ir import Accumulator, Expression, IndexValue, Kernel, Load, MatmulKernel, ReadOutput, stride_kind
from ....simt import Pointer
from ...codegen.loop_emitter import operand_name
from ..device.tensor_maps import TensorMapBox
from ..geometry import MAX_GRID_YZ, ceil_div
from ..launch_plan import KernelArgument, LaunchPlan
from ..tile_shapes import GpuKernel
from .element_types import MAX_TALL_BLOCKS, MIN_TALL_PARTS, SUM_PARTS_BLOCK, make_sum_parts
from .epilogue import AXES, GemmHooks, build_hooks, hook_expressions
from .heuristics import BatchAxis, FusedOperand, GpuGemmProblem, problem_of

OUT, WORKSPACE = 0, -1
MAX_BATCH_AXES = 2  # axes of the batch that one launch iterates over


class OperandAddress(NamedTuple):
    """An address: `offset` elements after the first one of an operand (outputs are counted first) or of the workspace."""

    operand: int
    offset: int = 0


class NumberArgument(NamedTuple):
    """One of the numbers that are passed with a launch."""

    position: int


class TensorMapArgument(NamedTuple):
    """The tensor map of an operand: the address of its description."""

    place: OperandAddress
    box: TensorMapBox


Argument = OperandAddress | NumberArgument | TensorMapArgument | int | float
PointerOf = Callable[[OperandAddress], int | Pointer]  # an address or, for the interpreter, a pointer


class GpuGemmLaunch(NamedTuple):
    """One launch of a kernel over operands without their addresses."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]  # of the types in the kernel's signature

    def at(self, pointer: PointerOf, numbers: Sequence[int | np.generic] = ()) -> LaunchPlan:
        """Return the launch plan; `pointer` converts each operand address to an address or an interpreter's pointer."""
        arguments = tuple(
            numbers[x.position] if isinstance(x, NumberArgument) else resolve_argument(x, pointer) for x in self.arguments
        )
        return LaunchPlan(self.kernel.function, self.grid, self.block, arguments, self.kernel.shared)


def resolve_argument(x: OperandAddress | TensorMapArgument | float, pointer: PointerOf) -> KernelArgument:
    """Replace an operand's address or tensor map by a pointer. Other arguments are returned unchanged."""
    if isinstance(x, TensorMapArgument):
        return pointer(x.place)
    return pointer(x) if isinstance(x, OperandAddress) else x


class GpuGemmPlan(NamedTuple):
    """The launches of a product in order, and the bytes of workspace that they share."""

    launches: tuple[GpuGemmLaunch, ...] = ()
    workspace: int = 0


class GpuGemmOperands(NamedTuple):
    """Roles of a product's operands, outputs first: a and b, which its kernels load, and those of prologue and epilogue."""

    a: int
    b: int
    fused: tuple[tuple[int, str, bool, Layout], ...]  # in the form that `problem_of` takes
    outputs: int  # number of outputs

    @property
    def mains(self) -> tuple[int, int]:
        """Return the load indices of a and b."""
        return self.a - self.outputs, self.b - self.outputs

    def name(self, x: FusedOperand) -> str:
        """Return an operand's name in the text of prologue and epilogue."""
        k = x.operand - self.outputs
        return f"out{x.operand}" if k < 0 else operand_name((Load if x.in_memory else IndexValue)(k, int64))


def plain_matmul(dtype: DType) -> MatmulKernel:
    """Return the matmul kernel without prologue and epilogue."""
    return MatmulKernel(Load(0, dtype), Load(1, dtype), (Accumulator(dtype),))


def matmul_operands(kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> GpuGemmOperands:
    """Return the roles of operands. The kernel itself loads the first array of a prologue that is not a vector."""
    count, (of_a, of_b, others) = len(outputs), kernel.loads()
    a, b = (max(loads, key=lambda x: main_load_priority(x, inputs)) for loads in (of_a, of_b))
    is_read = any(e.index == 0 for e in Kernel(kernel.pointwise_outputs, ()).find_all(ReadOutput))
    fused = [(k, "out", True, layout) for k, layout in enumerate(outputs) if k or is_read]
    for space, loads in (("out", others), ("a", of_a), ("b", of_b)):
        fused += [(count + x.index, space, not isinstance(x, IndexValue), inputs[x.index]) for x in loads if x not in (a, b)]
    return GpuGemmOperands(count + a.index, count + b.index, tuple(fused), count)


def main_load_priority(x: Load, inputs: Sequence[Layout]) -> tuple[bool, bool]:
    """Return a sort key that is largest for the load of a prologue that the kernel itself does."""
    return not isinstance(x, IndexValue), is_matrix(inputs[x.index])


def is_matrix(layout: Layout) -> bool:
    """Return whether both of the last two axes have more than one element and a nonzero stride."""
    return all(stride and size > 1 for stride, size in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def matmul_problem(
    kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
) -> tuple[GpuGemmProblem, GpuGemmOperands]:
    """Return the sizes and strides of a product, and its operands."""
    operands = matmul_operands(kernel, outputs, inputs)
    a, b = (inputs[main] for main in operands.mains)
    costs = prologue_cost(kernel.a), prologue_cost(kernel.b)
    return problem_of(outputs[0], a, b, operands.fused)._replace(prologue_costs=costs), operands


def prologue_cost(e: Expression) -> int:
    """Return the cost of a prologue in additions, without the load that the kernel does anyway."""
    return 0 if isinstance(e, Load) else max(1, Kernel((e,), ()).cost() - 1)


def hooks_and_arguments(
    kernel: MatmulKernel, operands: GpuGemmOperands, p: GpuGemmProblem, is_first: bool, is_last: bool
) -> tuple[GemmHooks, list[OperandAddress | NumberArgument | int]]:
    """Return the prologue and epilogue of one kernel, and the arguments that they need."""
    axes, arguments_by_name, stride_kinds = (
        padded_batch(p),
        dict[str, OperandAddress | NumberArgument | int](),
        list[tuple[str, str]](),
    )
    for e, x in enumerate(p.fused):
        name, strides = operands.name(x), (*[axis.fused[e] for axis in axes], x.m, x.n, x.k)
        arguments_by_name[name] = OperandAddress(x.operand, x.start)
        arguments_by_name |= {f"{name}_{axis}": stride for axis, stride in zip(AXES, strides, strict=True)}
        if is_last if x.space == "out" else is_first:
            stride_kinds.append((name, "".join(map(stride_kind, strides))))
    arguments_by_name |= {f"p{parameter.index}": NumberArgument(k) for k, parameter in enumerate(kernel.parameters())}
    hooks = build_hooks(hook_expressions(kernel, operands.mains, p.is_transposed, is_first, is_last), tuple(stride_kinds))
    return hooks, [arguments_by_name[name] for name in hooks.extra]


def padded_batch(p: GpuGemmProblem) -> tuple[BatchAxis, ...]:
    """Return the axes of the batch, with axes of size 1 in front up to MAX_BATCH_AXES."""
    one = BatchAxis(1, 0, 0, 0, (0,) * len(p.fused))
    return (one,) * (MAX_BATCH_AXES - len(p.batch)) + p.batch


def sum_parts_launch(
    matmul: MatmulKernel,
    operands: GpuGemmOperands,
    p: GpuGemmProblem,
    parts: OperandAddress,
    out: OperandAddress,
    count: int,
    is_wide: bool,
) -> GpuGemmLaunch:
    """Return the launch that sums the parts of a product with a split K and applies the epilogue."""
    outer, inner = padded_batch(p)
    size, target = p.matrices * p.M * p.N, (p.out_row, p.out_col, inner.size, inner.out, outer.out)
    across, down = ceil_div(p.N, 4 * SUM_PARTS_BLOCK[0]), ceil_div(p.M, SUM_PARTS_BLOCK[1])
    is_tall = count >= MIN_TALL_PARTS and across * down * p.matrices <= MAX_TALL_BLOCKS
    grid = across, min(p.M if is_tall else down, MAX_GRID_YZ), p.matrices
    hooks, extra = hooks_and_arguments(matmul, operands, p, False, True)
    arguments = out, parts, count, size, p.M, p.N, *target, int(is_wide), *extra
    return GpuGemmLaunch(make_sum_parts(matmul.a.dtype, is_tall, hooks), grid, SUM_PARTS_BLOCK, arguments)
