"""Matmuls with prologues and an epilogue on the CPU: pointwise kernels that run inside the loops of `gemm`.

These kernels are called *stages*: a prologue computes a block of an operand before it is multiplied, an epilogue processes a
strip of sums while it is in the cache. A stage is emitted and compiled like any pointwise kernel. The loops call it by its
address, for one part of its iteration space after the other. So the loops are compiled once for each element type, for
any stages. A call takes about 20 ns, for a part of some thousand points.

Until the epilogue runs, unfinished sums are stored in an output, which the epilogue then modifies in place. If no output can
store them, they are in a thread-local array. An operand that a prologue computes is never stored as a whole.

Limits: an epilogue cannot need whole rows of the output. The compiler decides which ops of a program become one matmul.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from ...core.dtypes import DType
from ...core.layout import Layout
from ...core.rounding import ceil_div
from ...ir.kernel_ir import (
    Accumulator,
    Expression,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    ReadOutput,
    renumber_operands,
    replace,
    stride_kind,
)
from ...ir.step_kernels import MatmulKernel
from ..matmul.problem import matmul_problem
from .compiler import compile_kernel_text, kernel_text
from .driver import THREADS, CpuKernelLauncher
from .gemm import compile_loops, plan_gemm
from .gemm_config import choose_config, lanes_of, with_stored_operands, with_unit_strides

THREAD_LOCAL = -1  # index of the thread-local operand of a stage: a block of a or b, or unfinished sums
ARGUMENT_BYTES = 2048  # size of the arguments of a stage: operands, numbers and strides, 8 bytes each
LAUNCH_CYCLES = 9000  # (3.5 us) of a prologue's separate launch, including the allocation of its output
RELOAD_CYCLES = 0.2  # to store and reload one element of the output of a prologue's separate launch
MAX_SLOWDOWN = 1.03  # a matmul may take this much longer with a fused prologue, which needs no memory for its result

PART_TEXT = """
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
"""  # packs the arguments of a stage for a part of its space, and calls it


class FusedStage(NamedTuple):
    """A pointwise kernel inside a matmul, and the indices of the values of the launch that it takes."""

    kernel: Kernel
    operands: tuple[int, ...]  # outputs, then inputs; may contain THREAD_LOCAL
    numbers: tuple[int, ...]

    def cost(self, dtype: DType) -> float:
        """Estimate the cycles for each point. The formula is fitted to functions from relu to gelu in float32."""
        return 0.3 + 0.6 * self.kernel.cost() / lanes_of(dtype)


class StageTraversal(NamedTuple):
    """The loops of a stage over a part: strides of its operands along its outer and inner axis, in elements."""

    stage: FusedStage
    strides: tuple[tuple[int, int], ...]
    is_transposed: bool = False  # whether its outer loop is over columns
    is_flat: bool = False  # whether it processes a part as one row, since the rows are adjacent in memory

    def text(self) -> str:
        """Return the source text of the kernel."""
        return kernel_text(self.stage.kernel, 1, tuple("".join(map(stride_kind, strides)) for strides in self.strides))


class FusedMatmul:
    """A matmul with its stages, planned for given layouts.

    Parameters
    ----------
    kernel : MatmulKernel
        The matmul to compute, with its prologues and its epilogue.
    outputs, inputs : sequence of Layout
        The layouts of a matmul step; no output is empty.
    threads : int
        Use at most this many threads; work of less than about 50 us uses one thread.

    Notes
    -----
    Values of the launch are identified by their index: outputs, inputs, numbers.
    """

    def __init__(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout], threads: int = THREADS
    ) -> None:
        self.kernel, self.dtype = kernel, kernel.a.dtype
        self.address_count = len(outputs) + len(inputs)
        self.units = [e.dtype.itemsize for e in kernel.pointwise_outputs]  # bytes of an element; index values count elements
        self.units += [1 if isinstance(e, IndexValue) else e.dtype.itemsize for group in kernel.loads() for e in group]
        p = matmul_problem(kernel, outputs, inputs)
        self.operands = {x.address_index: x for x in sorted((p.out, p.a, p.b, *p.fused))}

        self.sums_output = self.accumulator_output()
        out = self.operands[max(self.sums_output, 0)]._replace(in_memory=self.sums_output != THREAD_LOCAL)
        self.a, self.b, self.epilogue = make_stages(kernel, self.sums_output)
        costs = [stage.cost(self.dtype) if stage else 0 for stage in (self.a, self.b, self.epilogue)]
        p = with_unit_strides(p._replace(out=out, fused=(), cost_a=costs[0], cost_b=costs[1], cost_out=costs[2]))
        strides = {space: [x.matrix_strides for x in self.operands.values() if x.space == space] for space in ("a", "b")}
        if self.a:
            m, k = contiguous_strides(strides["a"], (p.M, p.K))
            p = p._replace(a=p.a._replace(m=m, k=k))
        if self.b:
            k, n = contiguous_strides(strides["b"], (p.K, p.N))
            p = p._replace(b=p.b._replace(k=k, n=n))
        self.problem, self.plan = p, plan_gemm(p, threads)

    def accumulator_output(self) -> int:
        """Return the index of an output that can store the sums until the epilogue, preferably theirs; else THREAD_LOCAL."""
        elements = self.kernel.pointwise_outputs
        read_outputs = {old.index for old in Kernel(elements, ()).find_all(ReadOutput)}
        candidates = [k for k, e in enumerate(elements) if e.dtype is self.dtype and k not in read_outputs]
        candidates = [k for k in candidates if isinstance(elements[k], Accumulator) or 1 in self.operands[k].matrix_strides]
        return min(candidates, key=lambda k: not isinstance(elements[k], Accumulator), default=THREAD_LOCAL)

    # The decision whether stages are fused.

    def why_too_many_arguments(self) -> str:
        """Return why a stage has too many arguments to run inside the matmul; "" if no stage has."""
        for stage in (self.a, self.b, self.epilogue):
            count = 3 * len(stage.operands) + len(stage.numbers) + 1 if stage else 0
            if 8 * count > ARGUMENT_BYTES:
                return f"it takes {count} arguments, and a kernel inside a matmul can take {ARGUMENT_BYTES // 8}"
        return ""

    def why_not_fused(self) -> str:
        """Return why a stage should not run inside the matmul; "" if all should.

        Notes
        -----
        An epilogue processes each sum once, in the cache, so it is always fused.

        A prologue is computed again for each block of columns, or for each tile, that reads the operand. Fusing it saves
        only a launch, and storing and loading each element. So two estimates are compared: this plan, and a plain matmul
        plus LAUNCH_CYCLES, RELOAD_CYCLES and one computation of each element.

        Measured on an AVX-512 processor with relu, gelu and a mask: if each element is computed once, a fused prologue took
        0.3 to 0.9 of the time of two launches that take less than 100 us, and 0.9 to 1.05 of longer ones. At 512 x 512 x
        512, where each element is computed three times, relu took as long as two launches, and gelu 1.2 times as long.
        """
        config, p = self.plan.config, self.plan.problem
        if (reason := self.why_too_many_arguments()) or not (self.a or self.b):
            return reason
        a, b = (self.b, self.a) if p.is_transposed else (self.a, self.b)
        times_a = ceil_div(p.N, self.plan.tile_n) * ceil_div(self.plan.tile_n, config.block_n)
        times_b = ceil_div(p.M, self.plan.tile_m)
        recompute_cycles = (times_a - ceil_div(p.N, config.block_n)) * p.cost_a * p.M * p.K + (
            times_b - 1
        ) * p.cost_b * p.K * p.N
        separate_cycles = choose_config(with_stored_operands(self.problem)).cycles * p.matrix_count
        for stage, cost, size in ((a, p.cost_a, p.M * p.K), (b, p.cost_b, p.K * p.N)):
            if stage:
                batches = [self.operands[v].batch for v in stage.operands if v != THREAD_LOCAL]
                copies = prod(n for n, *strides in zip(p.batch, *batches, strict=True) if any(strides))
                separate_cycles += LAUNCH_CYCLES + (cost + RELOAD_CYCLES) * size * copies
        if (config.cycles + recompute_cycles) * p.matrix_count <= MAX_SLOWDOWN * separate_cycles:
            return ""
        times = max(times_a if a else 1, times_b if b else 1)
        if times > 1 or p.matrix_count > 1:
            return f"it would be computed {times * p.matrix_count} times, once for each block of the output that reads it"
        return "with so few rows or columns, a matmul of operands in memory is faster"

    # The loops of stages.

    def traversals(self) -> tuple[StageTraversal | None, ...]:
        """Return the loops of the prologues of the configuration's a and b, and of the epilogue; None if there is none."""
        config, p = self.plan.config, self.plan.problem
        a, b = (self.b, self.a) if p.is_transposed else (self.a, self.b)
        is_one_block = self.plan.tile_n == p.N and config.block_n >= p.N
        return (
            a and self.traverse(a, (p.a.m, p.a.k), (p.M, p.K), config.block_k >= p.K),
            b and self.traverse(b, (p.b.k, p.b.n), (p.K, p.N), is_one_block),
            self.epilogue and self.traverse(self.epilogue, p.out.matrix_strides, (p.M, p.N), is_one_block),
        )

    def traverse(
        self, stage: FusedStage, local_strides: tuple[int, int], size: tuple[int, int], has_whole_rows: bool
    ) -> StageTraversal:
        """Return the loops of a stage over `size` rows and columns. The thread-local array has `local_strides`."""
        direction = -1 if self.plan.problem.is_transposed else 1
        strides = []
        for v in stage.operands:
            outer, inner = local_strides if v == THREAD_LOCAL else self.operands[v].matrix_strides[::direction]
            strides.append((outer if size[0] > 1 else 0, inner if size[1] > 1 else 0))
        stored = [*zip(*strides[: len(stage.kernel.pointwise_outputs)], strict=True)]
        if size[1] == 1 or (1 in stored[0] and 1 not in stored[1]):
            return StageTraversal(stage, tuple((inner, outer) for outer, inner in strides), is_transposed=True)
        is_flat = has_whole_rows and all(outer == inner * size[1] for outer, inner in strides)
        return StageTraversal(stage, tuple(strides), is_flat=is_flat)

    def encode(self, loops: StageTraversal) -> list[int]:
        """Encode a stage for PART_TEXT. The thread-local array begins at the part, so its steps are 0."""
        operands, numbers = loops.stage.operands, loops.stage.numbers
        units = [0 if v == THREAD_LOCAL else self.units[v] for v in operands]
        words = [part_kernel(), compile_stage(loops.text()), loops.is_transposed, loops.is_flat]
        constants = [s for strides in loops.strides for s in strides if stride_kind(s) == "s"]
        batch = self.problem.batch
        words += len(batch), len(operands), len(numbers), len(constants), *reversed(batch)
        for v, (outer, inner), unit in zip(operands, loops.strides, units, strict=True):
            words += v, outer * unit, inner * unit
        for axis in reversed(range(len(batch))):
            words += [self.operands[max(v, 0)].batch[axis] * unit for v, unit in zip(operands, units, strict=True)]
        return [*words, *numbers, *constants]

    def bind(self) -> CpuKernelLauncher:
        """Compile the loops and the stages, and return the launch."""
        words = [self.encode(stage) if stage else [] for stage in self.traversals()]
        numbers = self.plan.numbers(words)
        loops, parameters = compile_loops(self.dtype), self.kernel.find_all(KernelParameter)
        return CpuKernelLauncher(loops, self.plan.tiles, self.plan.chunks, self.address_count, parameters, header=numbers)

    def source(self) -> str:
        """Return the source texts of the stages, each with a comment on when it is called."""
        names = ("b", "a") if self.plan.problem.is_transposed else ("a", "b")
        parts = [*[f"each block of {name}, before it is multiplied" for name in names], "each strip of finished sums"]
        stages = [(part, loops.text()) for part, loops in zip(parts, self.traversals(), strict=True) if loops]
        texts = [f"# its loops call this kernel for {part}\n{text}" for part, text in stages]
        return "\n".join([f"# a matmul of {self.dtype}\n", *texts])


@lru_cache(1024)
def make_stages(kernel: MatmulKernel, sums_output: int) -> tuple[FusedStage | None, FusedStage | None, FusedStage | None]:
    """Return the prologues of a and b, and the epilogue; None if there is none. Output `sums_output` stores the sums."""
    output_count, input_count = len(kernel.pointwise_outputs), sum(map(len, kernel.loads()))

    def stage(elements: Sequence[Expression], stored: Sequence[int]) -> FusedStage:
        """Return a stage with renumbered loads and numbers. Load number `input_count` reads the sums."""
        expressions, input_indices = renumber_operands(elements)
        numbers = Kernel(expressions, ()).find_all(KernelParameter)
        renumbered = {p: KernelParameter(k, p.dtype) for k, p in enumerate(numbers)}
        pointwise = Kernel(tuple(replace(e, KernelParameter, renumbered.__getitem__) for e in expressions), ())
        loaded = [output_count + k if k < input_count else sums_output for k in input_indices]
        return FusedStage(pointwise, (*stored, *loaded), tuple(output_count + input_count + p.index for p in numbers))

    a, b = [None if isinstance(e, Load) else stage([e], [THREAD_LOCAL]) for e in (kernel.a, kernel.b)]
    elements = {k: e for k, e in enumerate(kernel.pointwise_outputs) if k != sums_output or not isinstance(e, Accumulator)}
    if not elements:
        return a, b, None
    stored = [*elements]
    is_stored = sums_output in elements
    total = ReadOutput(stored.index(sums_output), kernel.a.dtype) if is_stored else Load(input_count, kernel.a.dtype)
    renumbered = [
        replace(e, ReadOutput, lambda old: ReadOutput(stored.index(old.index), old.dtype)) for e in elements.values()
    ]
    return a, b, stage([replace(e, Accumulator, lambda _: total) for e in renumbered], stored)


compile_stage = lru_cache(1024)(compile_kernel_text)  # cached by text, since each new size binds its stages again


@cache
def part_kernel() -> int:
    """Compile the kernel that runs one part of a stage, and return its address. This takes 0.2 s, once on a machine."""
    return compile_kernel_text(PART_TEXT)


def contiguous_strides(strides: Sequence[tuple[int, int]], size: tuple[int, int]) -> tuple[int, int]:
    """Return (1, 2) if the first operand with two different strides has the smaller one along axis 0, else (2, 1)."""
    first = next(((abs(x), abs(y)) for x, y in strides if x and y and x != y), (2, 1))
    return (1, 2) if size[1] == 1 or (size[0] > 1 and first[0] < first[1]) else (2, 1)
