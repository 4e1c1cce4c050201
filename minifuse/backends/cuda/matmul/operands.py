"""The operands of a matrix product and its launches: what is at which address, and what prologue and epilogue need of it.

Words that all ways of computing a product share; which of them is taken is decided in `product`. Integers only.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core.dtypes import DType, int64
from ....core.layout import Layout
from ....ir.kernel_ir import Accumulator, Expression, IndexValue, Kernel, Load, MatmulKernel, ReadOutput, stride_kind
from ...codegen.loop_emitter import operand_name
from ..device.tensor_maps import TensorMapBox
from ..launch_plan import LaunchPlan
from ..tile_shapes import GpuKernel
from .element_types import MAX_TALL_BLOCKS, MIN_TALL_PARTS, SUM_PARTS_BLOCK, make_sum_parts
from .epilogue import AXES, GemmHooks, build_hooks, hook_expressions
from .heuristics import MAX_GRID_BLOCKS, BatchAxis, FusedOperand, GpuGemmProblem, ceil_div, problem_of

OUT, WORKSPACE = 0, -1
MAX_BATCH_AXES = 2  # of the batch that one launch walks


class OperandAddress(NamedTuple):
    """An address: so many elements after the first one of an operand, counted outputs first, or of the workspace."""

    operand: int
    offset: int = 0


class NumberArgument(NamedTuple):
    """One of the numbers that travel with a launch."""

    position: int


class TensorMapArgument(NamedTuple):
    """The tensor map of an operand: the address of a description of it."""

    place: OperandAddress
    box: TensorMapBox


class GpuGemmLaunch(NamedTuple):
    """One launch of a kernel over operands whose addresses are still open."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[
        OperandAddress | NumberArgument | TensorMapArgument | int | float, ...
    ]  # of the types in the kernel's signature

    def at(self, pointer: Callable[[OperandAddress], Any], numbers: Sequence[Any] = ()) -> LaunchPlan:
        """The launch, with what `pointer` gives for each place: an address, or the interpreter's pointer."""
        arguments = tuple(
            numbers[x.position] if isinstance(x, NumberArgument) else resolve_argument(x, pointer) for x in self.arguments
        )
        return LaunchPlan(self.kernel.function, self.grid, self.block, arguments, self.kernel.shared)


def resolve_argument(x: Any, pointer: Callable[[OperandAddress], Any]) -> Any:
    """An argument that is no number of the call: places as pointers, a map as that to what it describes."""
    return (
        pointer(x.place if isinstance(x, TensorMapArgument) else x)
        if isinstance(x, OperandAddress | TensorMapArgument)
        else x
    )


class GpuGemmPlan(NamedTuple):
    """The launches of a product, one after the other, and the bytes of workspace that they share."""

    launches: tuple[GpuGemmLaunch, ...] = ()
    workspace: int = 0


class GpuGemmOperands(NamedTuple):
    """What the addresses of a product's launch are, outputs first: a and b, which its kernels load, and all else."""

    a: int
    b: int
    beside: tuple[tuple[int, str, bool, Layout], ...]  # as `problem_of` takes them
    outputs: int  # how many

    @property
    def mains(self) -> tuple[int, int]:
        """The loads of a and b."""
        return self.a - self.outputs, self.b - self.outputs

    def name(self, x: FusedOperand) -> str:
        """What an operand is called in the text of prologue and epilogue."""
        k = x.operand - self.outputs
        return f"out{x.operand}" if k < 0 else operand_name((Load if x.in_memory else IndexValue)(k, int64))


def plain(dtype: DType) -> MatmulKernel:
    """The product of two matrices, and nothing else."""
    return MatmulKernel(Load(0, dtype), Load(1, dtype), (Accumulator(dtype),))


def matmul_operands(kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> GpuGemmOperands:
    """The roles of a product's operands. Of what a prologue reads, the kernel loads the first array that is no vector."""
    count, (of_a, of_b, others) = len(outputs), kernel.loads()
    a, b = (max(loads, key=lambda x: main_load_priority(x, inputs)) for loads in (of_a, of_b))
    is_read = any(e.index == 0 for e in Kernel(kernel.pointwise_outputs, ()).find_all(ReadOutput))
    beside = [(k, "out", True, layout) for k, layout in enumerate(outputs) if k or is_read]
    for space, loads in (("out", others), ("a", of_a), ("b", of_b)):
        beside += [
            (count + x.index, space, not isinstance(x, IndexValue), inputs[x.index]) for x in loads if x not in (a, b)
        ]
    return GpuGemmOperands(count + a.index, count + b.index, tuple(beside), count)


def main_load_priority(x: Load, inputs: Sequence[Layout]) -> tuple[bool, bool]:
    """Largest for the load of a prologue that a kernel does itself."""
    return not isinstance(x, IndexValue), is_matrix(inputs[x.index])


def is_matrix(layout: Layout) -> bool:
    """Whether it has an element of its own at each place of its last two axes."""
    return all(stride and size > 1 for stride, size in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def matmul_problem(
    kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
) -> tuple[GpuGemmProblem, GpuGemmOperands]:
    """Sizes and strides of a product, and what its operands are."""
    operands = matmul_operands(kernel, outputs, inputs)
    a, b = (inputs[main] for main in operands.mains)
    changes = prologue_cost(kernel.a), prologue_cost(kernel.b)
    return problem_of(outputs[0], a, b, operands.beside)._replace(changes=changes), operands


def prologue_cost(e: Expression) -> int:
    """Additions of a prologue, besides the load that the kernel does anyway."""
    return 0 if isinstance(e, Load) else max(1, Kernel((e,), ()).cost() - 1)


def hooks_and_arguments(
    kernel: MatmulKernel, operands: GpuGemmOperands, p: GpuGemmProblem, is_first: bool, is_last: bool
) -> tuple[GemmHooks, list[OperandAddress | NumberArgument | int]]:
    """The prologue and epilogue of one kernel, and the arguments that they need."""
    axes, known, classes = padded_batch(p), dict[str, OperandAddress | NumberArgument | int](), list[tuple[str, str]]()
    for e, x in enumerate(p.beside):
        name, strides = operands.name(x), (*[axis.beside[e] for axis in axes], x.m, x.n, x.k)
        known[name] = OperandAddress(x.operand, x.start)
        known |= {f"{name}_{axis}": stride for axis, stride in zip(AXES, strides, strict=True)}
        if is_last if x.space == "out" else is_first:
            classes.append((name, "".join(map(stride_kind, strides))))
    known |= {f"p{parameter.index}": NumberArgument(k) for k, parameter in enumerate(kernel.parameters())}
    hooks = build_hooks(hook_expressions(kernel, operands.mains, p.is_swapped, is_first, is_last), tuple(classes))
    return hooks, [known[name] for name in hooks.extra]


def padded_batch(p: GpuGemmProblem) -> tuple[BatchAxis, ...]:
    """The axes of the batch, filled up in front to KERNEL_AXES."""
    one = BatchAxis(1, 0, 0, 0, (0,) * len(p.beside))
    return (one,) * (MAX_BATCH_AXES - len(p.batch)) + p.batch


def sum_parts_launch(
    product: MatmulKernel,
    operands: GpuGemmOperands,
    p: GpuGemmProblem,
    parts: OperandAddress,
    out: OperandAddress,
    count: int,
    is_wide: bool,
) -> GpuGemmLaunch:
    """The launch that adds up what a product with a cut K has written, and does the epilogue."""
    outer, inner = padded_batch(p)
    size, target = p.matrices * p.M * p.N, (p.out_row, p.out_col, inner.size, inner.out, outer.out)
    across, down = ceil_div(p.N, 4 * SUM_PARTS_BLOCK[0]), ceil_div(p.M, SUM_PARTS_BLOCK[1])
    is_tall = count >= MIN_TALL_PARTS and across * down * p.matrices <= MAX_TALL_BLOCKS
    grid = across, min(p.M if is_tall else down, MAX_GRID_BLOCKS), p.matrices
    hooks, extra = hooks_and_arguments(product, operands, p, False, True)
    arguments = out, parts, count, size, p.M, p.N, *target, int(is_wide), *extra
    return GpuGemmLaunch(make_sum_parts(product.a.dtype, is_tall, hooks), grid, SUM_PARTS_BLOCK, arguments)
