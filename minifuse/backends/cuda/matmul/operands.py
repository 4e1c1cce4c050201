"""The operands of a matrix product: which array is at which address, and the arguments of fused parts.

All configurations of a product share these definitions; `launches` decides which configuration runs.
"""

from collections.abc import Sequence
from math import prod

from ....core.dtypes import int64
from ....core.layout import Layout
from ....core.rounding import ceil_div
from ....ir.kernel_ir import Expression, IndexValue, Kernel, KernelParameter, Load, stride_kind
from ....ir.step_kernels import MatmulKernel
from ...codegen.expression_printer import operand_name
from ...codegen.gpu_facts import MAX_GRID_YZ
from ...matmul.problem import MatmulOperand, MatmulProblem, matmul_problem
from ..launch_plan import OUT, GpuLaunch, NumberArgument, OperandAddress
from .element_types import MAX_TALL_BLOCKS, MIN_TALL_PARTS, SUM_PARTS_BLOCK, make_sum_parts
from .epilogue import AXES, GemmHooks, build_hooks, hook_expressions

MAX_BATCH_AXES = 2  # axes of the batch that one launch iterates over


def gpu_problem(kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> MatmulProblem:
    """Return the problem of a kernel, with the costs of its prologues in additions."""
    costs = prologue_cost(kernel.a), prologue_cost(kernel.b)
    return matmul_problem(kernel, outputs, inputs)._replace(cost_a=costs[0], cost_b=costs[1])


def prologue_cost(e: Expression) -> int:
    """Return the cost of a prologue in additions, without the load that the kernel does anyway."""
    return 0 if isinstance(e, Load) else max(1, Kernel((e,), ()).cost() - 1)


def hooks_and_arguments(
    kernel: MatmulKernel, p: MatmulProblem, is_first: bool, is_last: bool
) -> tuple[GemmHooks, list[OperandAddress | NumberArgument | int]]:
    """Return the prologue and epilogue of one kernel, and the arguments that they need."""
    arguments_by_name, stride_kinds = dict[str, OperandAddress | NumberArgument | int](), list[tuple[str, str]]()
    output_count, (a, b) = len(kernel.pointwise_outputs), (p.b, p.a) if p.is_transposed else (p.a, p.b)
    for x in p.fused:
        load = (Load if x.in_memory else IndexValue)(x.address_index - output_count, int64)
        name, strides = (
            f"out{x.address_index}" if x.address_index < output_count else operand_name(load),
            (*x.batch, x.m, x.n, x.k),
        )
        arguments_by_name[name] = OperandAddress(x.address_index, x.start)
        arguments_by_name |= {f"{name}_{axis}": stride for axis, stride in zip(AXES, strides, strict=True)}
        if is_last if x.space == "out" else is_first:
            stride_kinds.append((name, "".join(map(stride_kind, strides))))
    parameters = kernel.find_all(KernelParameter)
    arguments_by_name |= {f"p{parameter.index}": NumberArgument(k) for k, parameter in enumerate(parameters)}
    main_loads = a.address_index - output_count, b.address_index - output_count  # the loads of the kernel itself
    hooks = build_hooks(hook_expressions(kernel, main_loads, p.is_transposed, is_first, is_last), tuple(stride_kinds))
    return hooks, [arguments_by_name[name] for name in hooks.extra]


def with_all_batch_axes(p: MatmulProblem) -> MatmulProblem:
    """Return the problem with MAX_BATCH_AXES axes of the batch: axes of size 1 are added in front."""
    missing = MAX_BATCH_AXES - len(p.batch)
    p = p._replace(batch=(1,) * missing + p.batch)
    return p.map_operands(lambda x: x._replace(batch=(0,) * missing + x.batch))


def dense_output(p: MatmulProblem) -> MatmulOperand:
    """Return the output with a dense row-major layout, which is the layout of each part of a split K."""
    dense = [p.M * p.N * prod(p.batch[axis + 1 :]) if size > 1 else 0 for axis, size in enumerate(p.batch)]
    return p.out._replace(m=p.N, n=1, batch=tuple(dense), start=0)


def sum_parts_launch(matmul: MatmulKernel, p: MatmulProblem, parts: OperandAddress, count: int, is_wide: bool) -> GpuLaunch:
    """Return the launch that sums the parts of a product with a split K and applies the epilogue."""
    (outer, inner), size = p.out.batch, p.matrix_count * p.M * p.N
    target = p.out.m, p.out.n, p.batch[1], inner, outer
    across, down = ceil_div(p.N, 4 * SUM_PARTS_BLOCK[0]), ceil_div(p.M, SUM_PARTS_BLOCK[1])
    is_tall = count >= MIN_TALL_PARTS and across * down * p.matrix_count <= MAX_TALL_BLOCKS
    grid = across, min(p.M if is_tall else down, MAX_GRID_YZ), p.matrix_count
    hooks, extra = hooks_and_arguments(matmul, p, False, True)
    arguments = OperandAddress(OUT, p.out.start), parts, count, size, p.M, p.N, *target, int(is_wide), *extra
    return GpuLaunch(make_sum_parts(matmul.a.dtype, is_tall, hooks), grid, SUM_PARTS_BLOCK, arguments)
