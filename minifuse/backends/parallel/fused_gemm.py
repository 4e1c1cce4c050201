"""Matrix products with a prologue and an epilogue on the CPU: pointwise kernels that run inside of the loops of `gemm`.

A *stage* is such a kernel. It evaluates a block of an operand before that is multiplied, or finishes a strip of sums while
the cache holds them. It is printed and compiled as any pointwise kernel. The loops call it through its address, for one part
of its space after the other, so they are compiled once for each element type, whatever stands around a product. A call
takes some 20 ns, for a part of some thousand points.

Sums that are not finished yet wait in an output, which is then changed in place, or, where no output has a place for them,
in an array of the thread. An operand that is evaluated is never in memory as a whole.

Not here: functions of whole rows of the output; which parts of a program become one product, which the schedule decides.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from ...core.dtypes import DType
from ...core.layout import Layout
from ...ir.kernel_ir import (
    Accumulator,
    Expression,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    MatmulKernel,
    ReadOutput,
    renumber_operands,
    replace,
    stride_kind,
)
from .compiler import compile_kernel_text
from .cpu_codegen import kernel_text
from .driver import THREADS
from .gemm import GemmPlan, batch_matrices, compile_loops, make_problem, plan_gemm
from .gemm_config import ceil_div, choose_config, lanes_of
from .launcher import CpuKernelLauncher

THREAD_LOCAL = -1  # the array that the loops have for a stage: a block of an operand, or sums that are kept
ARGUMENT_BYTES = 2048  # for operands, numbers and strides of a stage, 8 bytes each
LAUNCH_COST = 9000  # cycles, 3.5 us, of a launch of its own, with memory for its output
RELOAD_COST = 0.2  # cycles to store an element of it and to load that again
MAX_SLOWDOWN = 1.03  # a prologue inside may take so much longer, since it needs no memory

PART = """
from minifuse.backends.parallel.fused_gemm import ARGUMENT_BYTES
from minifuse.backends.parallel.micro_kernel import scratch, shift
from minifuse.backends.parallel.stage_call import call_kernel

def kernel(start, stop, part):
    values, words, place, matrix = pointer_i64(part[0]), pointer_i64(part[1]), part[2], part[3]
    row, column, rows, columns = part[4], part[5], part[6], part[7]
    stage, is_turned, is_flat, axes, operands = words[1], words[2], words[3], words[4], words[5]
    numbers, constants, sizes = words[6], words[7], shift(words, 8)
    if is_turned:
        row, column, rows, columns = column, row, columns, rows
    if is_flat:
        rows, columns = 1, rows * columns
    arguments, steps = scratch(part, ARGUMENT_BYTES), shift(sizes, axes)
    for k in range(operands):
        first = place if steps[0] < 0 else values[steps[0]]
        arguments[k] = first + row * steps[1] + column * steps[2]
        steps = shift(steps, 3)
    for axis in range(axes):
        index, matrix = matrix % sizes[axis], matrix // sizes[axis]
        for k in range(operands):
            arguments[k] += index * steps[k]
        steps = shift(steps, operands)
    for k in range(numbers):
        arguments[operands + k] = values[steps[k]]
    arguments[operands + numbers] = columns
    for k in range(constants):
        arguments[operands + numbers + 1 + k] = steps[numbers + k]
    call_kernel(arguments, stage, rows)
"""  # writes the arguments of a stage for a part of its space, and calls it


class FusedStage(NamedTuple):
    """A pointwise kernel inside of a product, and which values of the launch it takes."""

    kernel: Kernel
    operands: tuple[int, ...]  # outputs, then inputs; among them LOCAL
    numbers: tuple[int, ...]

    def cost(self, dtype: DType) -> float:
        """Cycles for each point, about; fitted to functions from relu to gelu in float32."""
        return 0.3 + 0.6 * self.kernel.cost() / lanes_of(dtype)


class StageTraversal(NamedTuple):
    """How a stage walks a part of its space: the strides of its operands along its outer and its inner axis, in elements."""

    stage: FusedStage
    strides: tuple[tuple[int, int], ...]
    is_turned: bool = False  # whether its outer axis is that of the columns
    is_flat: bool = False  # whether a part is one row to it, since rows follow each other in memory

    def text(self) -> str:
        """The kernel as it is compiled."""
        return kernel_text(self.stage.kernel, 1, tuple("".join(map(stride_kind, strides)) for strides in self.strides))


class FusedMatmul:
    """A product and its stages, planned for given layouts.

    Parameters
    ----------
    kernel : ProductKernel
        What is computed.
    outputs, inputs : sequence of Layout
        As for `Backend.bind_fused_matmul`, for outputs that are not empty.
    threads : int
        How many may be used; one is, where the work is less than some 50 us.

    Notes
    -----
    Values are those of the launch, by their number: outputs, inputs, numbers.
    """

    def __init__(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout], threads: int = THREADS
    ) -> None:
        self.kernel, self.dtype, self.outputs = kernel, kernel.a.dtype, len(outputs)
        layouts, loads = [*outputs, *inputs], kernel.loads()
        self.addresses = len(layouts)
        self.units = [
            e.dtype.itemsize for e in kernel.pointwise_outputs
        ]  # bytes of an element; of a position, it is counted
        self.units += [1 if isinstance(e, IndexValue) else e.dtype.itemsize for of in loads for e in of]
        left, right, others = [[self.outputs + e.index for e in of] for of in loads]
        spaces = [*range(self.outputs), *others], left, right
        *shape, columns = outputs[0].shape
        depth = layouts[left[0]].shape[-1]
        self.of = batch_matrices(shape, columns, depth, *[[layouts[v].strides for v in space] for space in spaces])
        self.order = {v: k for k, v in enumerate(v for space in spaces for v in space)}

        self.sums = self.accumulator_output()
        self.places = max(self.sums, 0), left[0], right[0]
        self.a, self.b, self.epilogue = make_stages(kernel, self.sums)
        costs = [stage.cost(self.dtype) if stage else 0 for stage in (self.a, self.b, self.epilogue)]
        product = make_problem(self.of, *map(self.strides, self.places), self.sums == THREAD_LOCAL, *costs)
        if self.a:
            a_m, a_k = contiguous_strides([self.strides(v) for v in left], (product.M, product.K))
            product = product._replace(a_m=a_m, a_k=a_k)
        if self.b:
            b_k, b_n = contiguous_strides([self.strides(v) for v in right], (product.K, product.N))
            product = product._replace(b_k=b_k, b_n=b_n)
        self.product = product
        out, a, b = [self.order[v] for v in self.places]
        self.plan: GemmPlan = plan_gemm(self.dtype, self.of, product, (out, a, b), threads)

    def strides(self, value: int) -> tuple[int, int]:
        """Of one matrix of a value."""
        return self.of.matrix[self.order[value]]

    def accumulator_output(self) -> int:
        """An output that can hold sums until they are finished, best one that is just these; else LOCAL."""
        elements = self.kernel.pointwise_outputs
        read = {old.index for old in Kernel(elements, ()).find_all(ReadOutput)}
        fits = [
            k
            for k, e in enumerate(elements)
            if e.dtype is self.dtype and k not in read and (isinstance(e, Accumulator) or 1 in self.strides(k))
        ]
        return min(fits, key=lambda k: not isinstance(elements[k], Accumulator), default=THREAD_LOCAL)

    # Whether they belong inside.

    def why_too_many_arguments(self) -> str:
        """Why a stage cannot run inside of the product, in words; empty if all can."""
        for stage in (self.a, self.b, self.epilogue):
            count = 3 * len(stage.operands) + len(stage.numbers) + 1 if stage else 0
            if 8 * count > ARGUMENT_BYTES:
                return f"it takes {count} arguments, and inside of a product there is room for {ARGUMENT_BYTES // 8}"
        return ""

    def why_not_fused(self) -> str:
        """Why a stage should not run inside of the product, in words; empty if all should.

        Notes
        -----
        An epilogue meets each sum once, in the cache, and is never refused.

        A prologue is evaluated again for each block of columns, or for each tile, that reads the operand. All that it saves
        is a launch, and to store each element and load it again. So two estimates are compared: this plan, and that of the
        same product of plain operands with PASS_COST, RELOAD_COST and one evaluation of each element. On an AVX-512
        processor, with relu, gelu and a mask, a prologue took 0.3 to 0.9 of the time of two launches where these are below
        100 us, and 0.9 to 1.05 where they take longer, as long as each element is evaluated once. At 512 x 512 x 512, where
        it is evaluated three times, relu took as long and gelu 1.2 times as long.
        """
        p, way = self.plan.config.product, self.plan.config
        if (reason := self.why_too_many_arguments()) or not (self.a or self.b):
            return reason
        a, b = (self.b, self.a) if self.plan.is_swapped else (self.a, self.b)
        times_a = ceil_div(p.N, self.plan.tile_n) * ceil_div(self.plan.tile_n, way.block_n)
        times_b = ceil_div(p.M, self.plan.tile_m)
        again = (times_a - ceil_div(p.N, way.block_n)) * p.cost_a * p.M * p.K + (times_b - 1) * p.cost_b * p.K * p.N
        matrices = prod(size for size, _ in self.of.batch)
        apart = choose_config(self.product.with_stored_operands(), self.dtype)[0].cost * matrices
        for stage, cost, size in ((a, p.cost_a, p.M * p.K), (b, p.cost_b, p.K * p.N)):
            if stage:
                moving = [n for n, s in self.of.batch if any(s[self.order[v]] for v in stage.operands if v != THREAD_LOCAL)]
                apart += LAUNCH_COST + (cost + RELOAD_COST) * size * prod(moving)
        if (way.cost + again) * matrices <= MAX_SLOWDOWN * apart:
            return ""
        times = max(times_a if a else 1, times_b if b else 1)
        if times > 1 or matrices > 1:
            return f"it would be evaluated {times * matrices} times, once for each block of the output that reads it"
        return "so few rows or columns are multiplied fastest where the operands lie in memory"

    # How they run.

    def traversals(self) -> tuple[StageTraversal | None, ...]:
        """How the stages of the way's a, of its b and of the sums walk."""
        way, p = self.plan.config, self.plan.config.product
        a, b = (self.b, self.a) if self.plan.is_swapped else (self.a, self.b)
        is_one_block = self.plan.tile_n == p.N and way.block_n >= p.N
        return (
            a and self.traverse(a, (p.a_m, p.a_k), (p.M, p.K), way.block_k >= p.K),
            b and self.traverse(b, (p.b_k, p.b_n), (p.K, p.N), is_one_block),
            self.epilogue and self.traverse(self.epilogue, (p.out_m, p.out_n), (p.M, p.N), is_one_block),
        )

    def traverse(
        self, stage: FusedStage, local: tuple[int, int], size: tuple[int, int], has_whole_rows: bool
    ) -> StageTraversal:
        """How one of them does: `local` are the strides of the array that the loops have, `size` is that of all parts."""
        seen = [
            local if v == THREAD_LOCAL else self.strides(v)[:: -1 if self.plan.is_swapped else 1] for v in stage.operands
        ]
        strides = [(outer if size[0] > 1 else 0, inner if size[1] > 1 else 0) for outer, inner in seen]
        stored = [*zip(*strides[: len(stage.kernel.pointwise_outputs)], strict=True)]
        if size[1] == 1 or (1 in stored[0] and 1 not in stored[1]):
            return StageTraversal(stage, tuple((inner, outer) for outer, inner in strides), is_turned=True)
        is_flat = has_whole_rows and all(outer == inner * size[1] for outer, inner in strides)
        return StageTraversal(stage, tuple(strides), is_flat=is_flat)

    def words(self, walk: StageTraversal) -> list[int]:
        """What PART reads of a stage. Of LOCAL it is given the place, so that has no steps."""
        operands, numbers = walk.stage.operands, walk.stage.numbers
        units = [0 if v == THREAD_LOCAL else self.units[v] for v in operands]
        words = [part_kernel(), compile_stage(walk.text()), walk.is_turned, walk.is_flat]
        constants = [s for strides in walk.strides for s in strides if stride_kind(s) == "s"]
        words += len(self.of.batch), len(operands), len(numbers), len(constants)
        words += [size for size, _ in self.of.batch]
        for v, (outer, inner), unit in zip(operands, walk.strides, units, strict=True):
            words += v, outer * unit, inner * unit
        for _, strides in self.of.batch:
            words += [strides[self.order.get(v, 0)] * unit for v, unit in zip(operands, units, strict=True)]
        return [*words, *numbers, *constants]

    def bind(self) -> CpuKernelLauncher:
        """Compile what is not compiled yet, and write the arguments."""
        out, a, b = self.places
        words = [self.words(walk) if walk else [] for walk in self.traversals()]
        numbers = self.plan.numbers((out, b, a) if self.plan.is_swapped else (out, a, b), words)
        loops, given = compile_loops(self.dtype), self.kernel.parameters()
        return CpuKernelLauncher(loops, self.plan.tiles, self.plan.chunks, self.addresses, given, header=numbers)

    def source(self) -> str:
        """The texts of the stages, under what they are called for."""
        names = ("b", "a") if self.plan.is_swapped else ("a", "b")
        parts = [*[f"a block of {name} that is needed next" for name in names], "a strip of sums that are finished"]
        lines = [f"# a matrix product of {self.dtype}, whose loops call, for\n"]
        lines += [f"# {part}\n{walk.text()}" for part, walk in zip(parts, self.traversals(), strict=True) if walk]
        return "\n".join(lines)


@lru_cache(1024)
def make_stages(kernel: MatmulKernel, sums: int) -> tuple[FusedStage | None, FusedStage | None, FusedStage | None]:
    """What evaluates a and b and what finishes sums that wait in an output, or LOCAL; None where there is nothing to do."""
    outputs, inputs = len(kernel.pointwise_outputs), sum(map(len, kernel.loads()))

    def stage(elements: Sequence[Expression], stored: Sequence[int]) -> FusedStage:
        """It knows its own loads and numbers only. The load after those of the product is that of the sums."""
        new, used = renumber_operands(elements)
        numbers = Kernel(new, ()).find_all(KernelParameter)
        renumbered = {p: KernelParameter(k, p.dtype) for k, p in enumerate(numbers)}
        pointwise = Kernel(tuple(replace(e, KernelParameter, renumbered.__getitem__) for e in new), ())
        read = [outputs + k if k < inputs else sums for k in used]
        return FusedStage(pointwise, (*stored, *read), tuple(outputs + inputs + p.index for p in numbers))

    a, b = [None if isinstance(e, Load) else stage([e], [THREAD_LOCAL]) for e in (kernel.a, kernel.b)]
    elements = {k: e for k, e in enumerate(kernel.pointwise_outputs) if k != sums or not isinstance(e, Accumulator)}
    if not elements:
        return a, b, None
    stored = [*elements]
    dot = ReadOutput(stored.index(sums), kernel.a.dtype) if sums in elements else Load(inputs, kernel.a.dtype)
    moved = [replace(e, ReadOutput, lambda old: ReadOutput(stored.index(old.index), old.dtype)) for e in elements.values()]
    return a, b, stage([replace(e, Accumulator, lambda _: dot) for e in moved], stored)


compile_stage = lru_cache(1024)(compile_kernel_text)  # by its text alone: a new size asks again


@cache
def part_kernel() -> int:
    """The address of the kernel that runs one part of a stage; compiled in 0.2 s, once on a machine."""
    return compile_kernel_text(PART)


def contiguous_strides(strides: Sequence[tuple[int, int]], size: tuple[int, int]) -> tuple[int, int]:
    """Strides that tell along which axis operands have their neighbours: (1, 2) down the rows, else (2, 1)."""
    first = next(((abs(x), abs(y)) for x, y in strides if x and y and x != y), (2, 1))
    return (1, 2) if size[1] == 1 or (size[0] > 1 and first[0] < first[1]) else (2, 1)
