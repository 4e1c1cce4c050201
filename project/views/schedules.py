"""Schedules dealt by hand: one kernel, the text for the tiles of its axes, and the trace of its launch.

The text is printed by the library for a schedule that the reader chooses, instead of the one that `choose_schedule` returns.
The launch runs in the interpreter on arrays with random elements.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen.gpu_facts import Facts
from minifuse.backends.codegen.nest import KernelNest
from minifuse.backends.codegen.schedule import LoopSchedule, Tile
from minifuse.backends.cuda.codegen.select import GeneratedKernel, patterns_of, print_scheduled, schedule_by_closed_form
from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.backends.cuda.launcher import kernel_geometry, python_kernel, sizes_and_strides
from minifuse.core.errors import MinifuseError
from minifuse.core.layout import row_major
from minifuse.inspect.dry_run import RecordingBackend, RecordingDevice
from minifuse.ir.kernel_ir import Kernel, LoopNest

VECTOR = 4  # elements of 4 bytes that one instruction moves
MAX_THREADS = 1024  # of a block
MAX_ELEMENTS = 64  # that a thread has in registers
MAX_POINTS, MAX_LAUNCHED = 1 << 16, 1 << 12  # points, and threads of a launch: the interpreter runs each of them in seconds
Sizes = Sequence[int]


class Computation(NamedTuple):
    """A kernel whose axes can be dealt out: a function, the names of its axes, and its arrays as axes of each of them."""

    function: Callable[..., Any]
    reference: Callable[..., np.ndarray]
    axes: tuple[str, ...]
    reduced: str
    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


COMPUTATIONS = {
    "row sum": Computation(
        lambda x: x.sum(1), lambda x: x.sum(1), ("row", "column"), "column", (("row", "column"),), ("row",)
    ),
    "row softmax": Computation(
        lambda x: x.softmax(1),
        lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
        ("row", "column"),
        "column",
        (("row", "column"),),
        ("row", "column"),
    ),
    "pairwise distance": Computation(
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2),
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2),
        ("a", "b", "dim"),
        "dim",
        (("a", "dim"), ("b", "dim")),
        ("a", "b"),
    ),
}

LOOP = Tile(serial=True)
# name -> (tiles, axis of the lanes), for each computation
EXAMPLES: dict[str, dict[str, tuple[tuple[Tile, ...], str]]] = {
    "row sum": {
        "a thread for each row": ((Tile(32), LOOP), "row"),
        "a warp for each row": ((Tile(), Tile(32, serial=True)), "column"),
        "four loads in flight": ((Tile(), Tile(32, 4, serial=True)), "column"),
        "vectors of four": ((Tile(), Tile(32, 1, 4, serial=True)), "column"),
        "four warps, a row each": ((Tile(4), Tile(32, 1, 4, serial=True)), "column"),
    },
    "row softmax": {
        "a thread for each row": ((Tile(32), LOOP), "row"),
        "a warp for each row, read three times": ((Tile(), Tile(32, serial=True)), "column"),
        "a warp, rows in registers": ((Tile(), Tile(32, 4)), "column"),
        "vectors in registers": ((Tile(), Tile(32, 1, 4)), "column"),
        "four warps, a row each": ((Tile(4), Tile(32, 1, 4)), "column"),
    },
    "pairwise distance": {
        "a thread for each pair": ((Tile(), Tile(32), LOOP), "b"),
        "blocks of 8 x 32 threads": ((Tile(8), Tile(32), LOOP), "b"),
        "2 x 2 results in registers": ((Tile(8, 2), Tile(32, 2), LOOP), "b"),
        "4 x 4 results in registers": ((Tile(4, 4), Tile(16, 4), LOOP), "b"),
        "chunks in shared memory": ((Tile(8, 1, 4), Tile(16, 1, 4), Tile(serial=True, chunk=16)), "b"),
    },
}


SIZES = {"row sum": (32, 128), "row softmax": (32, 128), "pairwise distance": (32, 64, 16)}
"""The sizes on the page: small, since the interpreter runs each thread."""


class Owner(NamedTuple):
    """Where an index of an axis is computed: index = ((outer * registers + register) * threads + thread) * vector + lane."""

    outer: int
    """The number of the block along this axis or, on a reduced axis, the step of the loop."""
    register: int
    thread: int
    element: int
    """The position in the vector."""


class Counts(NamedTuple):
    """The counts of a traced launch."""

    blocks: int
    threads: int
    requests: int
    """Requests of warps to global memory."""
    sectors: int
    barriers: int

    @property
    def sectors_per_request(self) -> float:
        """The mean number of sectors of a request."""
        return self.sectors / max(self.requests, 1)


@dataclass(frozen=True)
class DealtKernel:
    """A kernel with a schedule that was dealt by hand, ready to launch."""

    computation: Computation
    sizes: tuple[int, ...]
    schedule: LoopSchedule
    generated: GeneratedKernel
    plan: LaunchPlan
    inputs: tuple[np.ndarray, ...]
    output: np.ndarray

    @property
    def text(self) -> str:
        """The text of the kernel."""
        return self.generated.text

    @cached_property
    def trace(self) -> simt.Trace:
        """The trace of the launch."""
        return simt.trace(self.plan)

    @cached_property
    def is_right(self) -> bool:
        """Whether the launch ended without a hazard, with the result of NumPy."""
        if not self.trace.is_complete or self.trace.hazards():
            return False
        return np.allclose(self.output, self.computation.reference(*self.inputs), rtol=1e-4, atol=1e-5)

    @cached_property
    def counts(self) -> Counts:
        """Return the counts of the trace."""
        requests = self.trace.requests()
        is_global = requests.sectors > 0
        grid, block = prod(self.plan.grid), prod(self.plan.block)
        return Counts(grid, grid * block, int(is_global.sum()), int(requests.sectors.sum()), len(self.trace.barriers))

    def owners(self, axis: str) -> list[Owner]:
        """Return the owner of each index along an axis."""
        a = self.computation.axes.index(axis)
        return [owner_of(i, self.schedule.tiles[a]) for i in range(self.sizes[a])]

    def describe(self) -> str:
        """Return the schedule in words, axis by axis."""
        return self.schedule.describe(self.sizes)


def owner_of(index: int, tile: Tile) -> Owner:
    """Return where the formula of a tile places an index.

    Examples
    --------
    >>> owner_of(7, Tile(threads=2, registers=2, vector=2))
    Owner(outer=0, register=1, thread=1, element=1)
    >>> owner_of(8, Tile(threads=2, registers=2, vector=2))
    Owner(outer=1, register=0, thread=0, element=0)
    """
    rest, element = divmod(index, tile.vector)
    rest, thread = divmod(rest, tile.threads)
    outer, register = divmod(rest, tile.registers)
    return Owner(outer, register, thread, element)


def deal(name: str, sizes: Sizes, tiles: Sequence[Tile], lanes: str) -> DealtKernel:
    """Deal out the axes of a computation, and print its kernel.

    Parameters
    ----------
    name : str
        One of COMPUTATIONS.
    sizes, tiles : sequence of int, sequence of Tile
        The size and the tile of each axis.
    lanes : str
        The axis whose threads are adjacent: they are along x of the block.

    Raises
    ------
    MinifuseError
        No kernel has this schedule. The message says what to write instead.
    """
    computation = find_computation(name)
    check_schedule(name, computation, sizes, tiles, lanes)
    nest = nest_of(computation, sizes)
    axes = computation.axes
    reduced, first = axes.index(computation.reduced), axes.index(lanes)
    with_threads = [a for a, tile in enumerate(tiles) if tile.threads > 1]
    order = tuple(sorted(with_threads, key=lambda a: (a != first, a != reduced)))  # threads combine along x or y only
    has_chunks = any(tile.chunk for tile in tiles)
    schedule = LoopSchedule(
        tuple(tiles),
        order,
        column=first if first != reduced else None,
        staged=operand_names(computation)[1:] if has_chunks else (),
        why="it was dealt by hand",
    )
    facts = Facts(KernelNest(kernel_of(name), nest))
    schedule = schedule._replace(vectors=facts.vector_operands(schedule))
    return prepare(computation, sizes, kernel_of(name), schedule)


@cache
def deal_as_compiler(name: str, sizes: tuple[int, ...]) -> DealtKernel:
    """Return the kernel with the schedule that the compiler chooses.

    Raises
    ------
    MinifuseError
        The compiler has a template for this kernel, without a schedule.
    """
    computation = find_computation(name)
    found = schedule_by_closed_form(kernel_of(name), nest_of(computation, sizes), (), True, (), True)
    if found is None:
        raise MinifuseError(f"{name}: got sizes {sizes}, for which the compiler has a template; write others")
    return prepare(computation, sizes, *found)


def prepare(computation: Computation, sizes: Sizes, kernel: Kernel, schedule: LoopSchedule) -> DealtKernel:
    """Print a kernel with a schedule, and plan its launch on arrays with random elements."""
    nest, names = nest_of(computation, sizes), operand_names(computation)
    constants = tuple(n if tile.is_constant else 0 for n, tile in zip(sizes, schedule.tiles, strict=True))
    generated = print_scheduled(kernel, nest.row_axes, patterns_of(nest), (), (), constants, schedule)
    random = np.random.default_rng(0)
    extent = dict(zip(computation.axes, sizes, strict=True))
    inputs = tuple(random.random([extent[a] for a in x], np.float32) for x in computation.inputs)
    output = np.empty([extent[a] for a in computation.output], np.float32)
    arrays = dict(zip(names, (output, *inputs), strict=True))
    values: dict[str, Any] = {
        **sizes_and_strides(generated, nest, names),
        **{key: x.reshape(-1) for key, x in arrays.items()},
    }
    grid, block = kernel_geometry(generated, nest)
    if (count := prod(grid) * prod(block)) > MAX_LAUNCHED:
        raise MinifuseError(
            f"got {count:,} threads in {prod(grid):,} blocks, expected at most {MAX_LAUNCHED:,}, since the interpreter runs "
            "each of them; deal fewer threads, or more registers"
        )
    arguments = tuple(values[key] for key, _ in generated.parameters)
    plan = LaunchPlan(python_kernel(generated), grid, block, arguments)
    return DealtKernel(computation, tuple(sizes), schedule, generated, plan, inputs, output)


def operand_names(computation: Computation) -> tuple[str, ...]:
    """Return the names of the arrays in the text of a kernel, the output first."""
    return "out0", *[f"in{k}" for k in range(len(computation.inputs))]


def describe_sizes(name: str) -> str:
    """Return the axes of a computation on the page, with their sizes."""
    return ", ".join(f"{axis} {n}" for axis, n in zip(COMPUTATIONS[name].axes, SIZES[name], strict=True))


def find_computation(name: str) -> Computation:
    """Return a computation by its name."""
    if name not in COMPUTATIONS:
        raise MinifuseError(f"deal: got {name!r}, expected one of {', '.join(map(repr, COMPUTATIONS))}")
    return COMPUTATIONS[name]


def nest_of(computation: Computation, sizes: Sizes) -> LoopNest:
    """Return the loops of a computation over row-major arrays."""
    extent = dict(zip(computation.axes, sizes, strict=True))

    def strides(axes: tuple[str, ...]) -> tuple[int, ...]:
        steps = dict(zip(axes, row_major([extent[a] for a in axes]).strides, strict=True))
        return tuple(steps.get(axis, 0) for axis in computation.axes)

    operands = [strides(axes) for axes in (computation.output, *computation.inputs)]
    return LoopNest.of_axes(list(sizes), len(computation.axes) - 1, operands)


@cache
def kernel_of(name: str) -> Kernel:
    """Return the kernel of a computation, which the compiler makes for any sizes."""
    computation, backend = COMPUTATIONS[name], RecordingBackend(RecordingDevice())
    extent = {axis: 48 + 4 * k for k, axis in enumerate(computation.axes)}
    shapes = [[extent[a] for a in axes] for axes in computation.inputs]
    arguments = tuple(mf.Tensor.from_numpy(np.zeros(shape, np.float32), backend) for shape in shapes)
    entry, _ = mf.fuse(computation.function).get_entry(arguments, {})
    (step,) = entry.plan.steps
    assert isinstance(step.kernel, Kernel)
    return step.kernel


# Which schedules a kernel can have.


def check_schedule(name: str, computation: Computation, sizes: Sizes, tiles: Sequence[Tile], lanes: str) -> None:
    """Raise an error if no kernel has these tiles."""
    axes = computation.axes
    if not len(sizes) == len(tiles) == len(axes):
        raise MinifuseError(
            f"{name}: got {len(sizes)} sizes and {len(tiles)} tiles, expected one of each for {', '.join(axes)}"
        )
    if min(sizes) < 2 or prod(sizes) > MAX_POINTS:
        raise MinifuseError(
            f"{name}: got sizes {tuple(sizes)}, expected sizes of at least 2 with a product of at most {MAX_POINTS:,}; "
            "write smaller ones, since the interpreter runs each thread"
        )
    threads = prod(tile.threads for tile in tiles)
    if threads > MAX_THREADS:
        raise MinifuseError(
            f"{name}: got {threads:,} threads, expected at most {MAX_THREADS:,} per block; deal more registers"
        )
    if lanes not in axes or (tiles[axes.index(lanes)].threads == 1 and threads > 1):
        with_threads = [a for a, tile in zip(axes, tiles, strict=True) if tile.threads > 1]
        raise MinifuseError(
            f"{name}: got lanes={lanes!r}, expected an axis with threads; write one of {', '.join(with_threads) or axes[0]}"
        )
    if all(tile.threads > 1 for tile in tiles) and len(tiles) > 2:
        raise MinifuseError(
            f"{name}: got threads along all {len(tiles)} axes, expected at most 2, since threads combine their results "
            "along x or y of a block; write threads=1 for one axis"
        )
    elements = prod(tile.elements for tile in tiles)
    if elements > MAX_ELEMENTS:
        raise MinifuseError(
            f"{name}: got {elements} elements per thread, expected at most {MAX_ELEMENTS}; deal more threads"
        )
    has_chunks = any(tile.chunk for tile in tiles)
    adjacent = {array[-1] for array in (computation.output, *computation.inputs)}
    for axis, size, tile in zip(axes, sizes, tiles, strict=True):
        if tile.vector > 1 and axis not in adjacent and not has_chunks:
            raise MinifuseError(
                f"{name}, axis {axis!r}: got vectors of {tile.vector}, but no array has adjacent elements along it; "
                "write vector=1"
            )
        if message := why_not_dealt(computation, axis, size, tile):
            raise MinifuseError(f"{name}, axis {axis!r}: {message}")
    if has_chunks and not all(t.vector == VECTOR for t in tiles[: axes.index(computation.reduced)]):
        raise MinifuseError(f"{name}: a chunk in shared memory is read in vectors; write vector={VECTOR} for the other axes")


def why_not_dealt(computation: Computation, axis: str, size: int, tile: Tile) -> str:
    """Return why an axis cannot have a tile, and what to write instead; empty if it can."""
    is_reduced = axis == computation.reduced
    threads, registers, vector = tile[:3]
    if min(threads, registers, vector) < 1:
        return f"got {threads} threads, {registers} registers and a vector of {vector}; write at least 1 for each"
    if is_reduced and threads & (threads - 1):
        return f"got {threads} threads, expected a power of 2: threads combine their results in pairs; write threads=32"
    if vector not in (1, VECTOR):
        return f"got vectors of {vector}, expected 1 or {VECTOR}: a thread moves 4 or 16 bytes; write vector={VECTOR}"
    has_chunks = bool(tile.chunk)
    if tile.serial and not is_reduced:
        return "got a loop, but only a reduced axis has one: the outer index of other axes counts blocks; write serial=False"
    if tile.is_constant and (registers != size or threads > 1 or vector > 1):
        return f"got a constant tile of {registers} registers, expected all {size} elements; write registers={size}"
    need = -(-size // (threads * vector))
    if is_reduced and not tile.serial and not tile.is_constant and registers != need:
        return (
            f"got {tile.length} elements, expected the {size} elements, since there is no loop; write serial=True or "
            f"registers={need}"
        )
    if has_chunks and (computation.output != ("a", "b") or not is_reduced or threads > 1 or registers > 1):
        return "got a chunk, but only a serial axis of a pairwise distance has one, without threads; write chunk=0"
    if has_chunks and (not tile.serial or size % tile.chunk):
        return f"got chunks of {tile.chunk} for {size} elements; write serial=True and a chunk that divides {size}"
    if vector > 1 and size % vector:
        return f"got vectors of {vector} for {size} elements, so rows are not aligned to 16 bytes; write vector=1"
    return ""
