"""Generate the text of a kernel over a loop nest: by a schedule, or by the template of a kernel that still has one.

Sizes affect the schedule and the selection of a template. Of all sizes, the text contains only those of constant tiles.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ....core.layout import Layout
from ....ir.kernel_ir import IndexedLoad, IndexValue, Kernel, Load, LoopNest, ReduceExpr, stride_kinds_of
from ....ir.segment_sum import match_segment_sum
from ...codegen.expression_printer import operand_name
from ...codegen.gpu_facts import Facts
from ...codegen.gpu_schedule import choose_schedule
from ...codegen.nest import KernelNest, Reductions, nested_reductions
from ...codegen.schedule import LoopSchedule
from .base import CudaSource
from .indexed import RawSource
from .loop_nest import LoopNestPrinter
from .padded_loads import with_padded_loads
from .reciprocals import with_reciprocals
from .rows_in_shared import RowSource
from .segment_sum import SegmentSumSource
from .segment_sum_blocked import BandSource, is_banded
from .transpose import SIDE, TileSource, axis_across


class GeneratedKernel(NamedTuple):
    """The text of a kernel, and the properties that its launch needs."""

    text: str
    form: str  # points, tiles, rows or columns
    parameters: tuple[tuple[str, str], ...]  # names and types, in the order of the launch
    wide: tuple[str, ...]  # operands that are loaded or stored four elements at a time
    counted: int  # number of leading axes that are distributed over blocks
    each: int = 1  # elements of a thread along the last axis
    across: int | None = None  # the axis along which tiled operands are contiguous
    tiled: tuple[str, ...] = ()  # operands that are transposed in shared memory
    held: int = 0  # bytes of one element of each operand that is cached in shared memory, in total
    schedule: LoopSchedule | None = None  # of a loop nest whose axes are dealt out by a schedule
    has_rows: bool = False  # whether it reduces rows


# Returns a schedule that is better than that of a generated kernel, if one is known. The bool is `is_aligned`.
FindSchedule = Callable[[GeneratedKernel, LoopNest, bool], LoopSchedule | None]


def generate_kernel(
    kernel: Kernel,
    nest: LoopNest,
    indexed: Sequence[Layout] = (),
    is_aligned: bool = True,
    split: tuple[int, ...] = (),
    has_constants: bool = True,
    find_schedule: FindSchedule | None = None,
) -> GeneratedKernel:
    """Generate a kernel over a loop nest.

    Parameters
    ----------
    kernel : Kernel
    nest : LoopNest
    indexed : sequence of Layout
        The layouts of indexed operands.
    is_aligned : bool
        Whether operands may move in vectors whatever their addresses are. A template looks at the addresses.
    split : tuple of int
        Axes of which each block reduces one chunk.
    has_constants : bool
        Whether the text may contain the size of a reduction.
    find_schedule : function, optional
        Replaces the schedule of the closed form.
    """
    raws = stride_kinds_of(indexed)
    found = schedule_by_closed_form(kernel, nest, raws, is_aligned, split, has_constants)
    if found is None:
        return generate_by_template(kernel, nest, raws)
    described, schedule = found

    def generate(schedule: LoopSchedule) -> GeneratedKernel:
        constants = tuple(n if tile.is_constant else 0 for n, tile in zip(nest.sizes, schedule.tiles, strict=True))
        reductions, bits = nested_reductions(described, nest), index_bits(nest, indexed, schedule)
        return print_scheduled(described, nest.row_axes, patterns_of(nest), raws, reductions, constants, schedule, bits)

    generated = generate(schedule)
    better = find_schedule(generated, nest, is_aligned) if find_schedule else None
    return generated if better is None else generate(better)


def schedule_by_closed_form(
    kernel: Kernel, nest: LoopNest, raws: tuple[str, ...], is_aligned: bool, split: tuple[int, ...], has_constants: bool
) -> tuple[Kernel, LoopSchedule] | None:
    """Return the kernel that is printed and its schedule; None for a kernel that has a template."""
    is_general = bool(split) or kernel.is_nested or kernel.has_states  # no template prints it
    if not is_general and has_template(kernel, nest, raws, is_aligned):
        return None
    described = describe_nest(kernel, nest, raws)
    schedule = choose_schedule(described, 4 if is_aligned else 1, has_constants)
    if not is_general and is_read_again(described, schedule):
        return None
    return described.kernel, schedule._replace(split=split)


def describe_nest(kernel: Kernel, nest: LoopNest, raws: tuple[str, ...]) -> KernelNest:
    """Return the kernel that is printed, which divides by no value of a row, over its axes."""
    described = KernelNest(kernel, nest, raws)
    if not described.reduced or kernel.is_nested:
        return described
    varies = {e: bool(axes & described.reduced) for e, axes in described.axes_of.items()}
    return KernelNest(with_reciprocals(kernel, varies), nest, raws)


def index_bits(nest: LoopNest, indexed: Sequence[Layout], schedule: LoopSchedule) -> int:
    """Return the bits of indices and positions: 32 if all of them fit, also those past the end of an axis, else 64.

    A GPU computes 64-bit integers by several instructions, and divides them by more than a hundred.
    """
    ends = [n + tile.length for n, tile in zip(nest.sizes, schedule.tiles, strict=True)]
    spans = [sum(abs(s) * n for s, n in zip(strides, ends, strict=True)) for strides in nest.strides]
    spans += [sum(abs(s) * n for s, n in zip(x.strides, x.shape, strict=True)) for x in indexed]
    free = prod(n for a, n in enumerate(nest.sizes) if a < nest.row_axes or schedule.split)
    return 32 if max([*ends, *spans, free]) < 2**31 else 64


def has_template(kernel: Kernel, nest: LoopNest, raws: tuple[str, ...], is_aligned: bool) -> bool:
    """Return whether a template generates a kernel: effects, segment sums, gathers in vectors, large transposed operands."""
    across = axis_across(kernel, nest)
    if is_aligned and across is not None and min(nest.sizes[across], nest.sizes[-1]) >= SIDE:
        return True
    is_segment_sum = match_segment_sum(kernel, nest.row_axes, nest.stride_kinds) is not None
    has_vectors = nest.sizes[-1] % 4 == 0 or not kernel.find_all(ReduceExpr)
    return bool(kernel.effects) or (has_vectors and has_plain_gather(kernel, raws)) or is_segment_sum


def has_plain_gather(kernel: Kernel, raws: tuple[str, ...]) -> bool:
    """Return whether an indexed load reads adjacent elements, in rows that a loaded index selects: vectors may load them."""
    described = ((e, dict(zip(raws[e.index], e.inputs, strict=False))) for e in kernel.find_all(IndexedLoad))
    return any(isinstance(inputs.get("1"), IndexValue) and has_loaded_index(e) for e, inputs in described)


def has_loaded_index(e: IndexedLoad) -> bool:
    """Return whether an index of a load is an element of an array: otherwise the load is at a shifted or padded index."""
    indices = Kernel(tuple(e.inputs), ())
    return any(not isinstance(x, IndexValue) for x in indices.find_all(Load)) or bool(indices.find_all(IndexedLoad))


def is_read_again(nest: KernelNest, schedule: LoopSchedule) -> bool:
    """Return whether a long row is read by several stages, though adjacent threads share it: shared memory is faster."""
    is_shared = any(schedule.tiles[a].serial for a in nest.reduced) and schedule.column is None
    return is_shared and Facts(nest).kept_bytes() > 0


def patterns_of(nest: LoopNest) -> tuple[tuple[int, ...], ...]:
    """Return the strides of all operands, with small numbers for those that are neither 0 nor 1.

    Operands with equal strides get equal numbers, so equal patterns have equal texts.
    """
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(
        tuple(s if s in (0, 1) else 2 + numbers.setdefault(strides, len(numbers)) for s in strides)
        for strides in nest.strides
    )


@lru_cache(1024)
def print_scheduled(
    kernel: Kernel,
    row_axes: int,
    patterns: tuple[tuple[int, ...], ...],
    raws: tuple[str, ...],
    reductions: Reductions,
    constants: tuple[int, ...],
    schedule: LoopSchedule,
    bits: int = 64,
) -> GeneratedKernel:
    """Print a kernel with a schedule and an index of some bits.

    Of the loop nest, it needs the pattern of the strides, and the sizes of constant axes, with 0 for the others.
    """
    nest = LoopNest.of_axes(constants, row_axes, patterns)
    described = KernelNest(with_padded_loads(kernel) if raws else kernel, nest, raws, reductions)
    printer = LoopNestPrinter(described, schedule, kernel, bits)
    text = printer.emit()
    parameters = tuple(printer.parameters())
    return GeneratedKernel(
        text, "nest", parameters, schedule.vectors, 0, schedule=schedule, has_rows=bool(described.reduced)
    )


def source_of(kernel: Kernel, rows: int, classes: tuple[str, ...], raws: tuple[str, ...], is_band: bool) -> CudaSource:
    """Return the template for a variant of a kernel without tiles."""
    if (found := match_segment_sum(kernel, rows, classes)) is not None:
        return (BandSource if is_band else SegmentSumSource)(kernel, rows, classes, raws, found[0])
    if kernel.effects:
        return RawSource(kernel, rows, classes, raws)
    return RowSource(kernel, rows, classes, raws)


def picked_wide(source: CudaSource) -> tuple[str, ...]:
    """Return the indexed operands that are loaded four elements at a time, and the index values in their indices."""
    found = [e for e in source.kernel.find_all(IndexedLoad) if source.is_wide and source.last_axis_stride_kind(e) == "1"]
    places = [operand_name(x) for x in map(source.contiguous_index, found) if x is not None]
    return tuple(dict.fromkeys([f"raw{e.index}" for e in found] + places))


def generate_by_template(kernel: Kernel, nest: LoopNest, raws: tuple[str, ...]) -> GeneratedKernel:
    """Generate a kernel by its template."""
    found = match_segment_sum(kernel, nest.row_axes, nest.stride_kinds)
    is_band = found is not None and is_banded(kernel, nest, found[1])
    return fill_template(kernel, nest.row_axes, nest.stride_kinds, axis_across(kernel, nest), raws, is_band)


@lru_cache(1024)
def fill_template(
    kernel: Kernel, rows: int, classes: tuple[str, ...], across: int | None, raws: tuple[str, ...], is_band: bool
) -> GeneratedKernel:
    """Generate a kernel by the template of its variant: tiles, if there is an axis across, or another one."""
    if across is None:
        source = source_of(kernel, rows, classes, raws, is_band)
        operands = {name: c for name, c in source.stride_kinds.items() if not name.startswith("base")}
        wide = tuple(name for name, c in operands.items() if source.is_wide and c[-1] == "1") + picked_wide(source)
        each = max(4 * source.groups, 1)
        held = sum(e.dtype.itemsize for e in source.held) if isinstance(source, RowSource) else 0
        text, parameters = source.emit(), tuple(source.parameters())
        return GeneratedKernel(text, source.form, parameters, wide, source.counted, each, held=held)
    tiles = TileSource(kernel, rows, classes, across)
    operands = {name: c for name, c in tiles.stride_kinds.items() if not name.startswith("base")}
    wide = tuple(name for name, c in operands.items() if tiles.is_wide and (c[-1] == "1" or name in tiles.tiled))
    return GeneratedKernel(tiles.emit(), "tiles", tuple(tiles.parameters()), wide, 0, 1, across, tuple(tiles.tiled))
