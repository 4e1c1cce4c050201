"""What the schedule of a loop nest on a GPU depends on: strides, sizes and reuse."""

from collections.abc import Sequence
from functools import cached_property
from math import prod

from ...core.dtypes import bool_
from ...core.rounding import ceil_div
from ...ir.index_values import index_values
from ...ir.kernel_ir import Expression, IndexedLoad, IndexValue, Load, Op, ReadOutput
from .expression_printer import operand_name
from .nest import KernelNest, cost_of
from .schedule import LoopSchedule

WARP = 32
MAX_CONSTANT_POINTS = 32  # steps of short reductions that are unrolled completely
MAX_CONTIGUOUS_CONSTANT = 8  # length of a contiguous axis that one thread reduces alone
MIN_CONTRACTED_SIZE = 32  # results along each axis that share operands
MIN_CONTRACTED_LENGTH = 16
MAX_GRID_YZ = 65535  # blocks along y, and along z
MAX_SMALL_AXIS = 4
MIN_COMPUTE_BOUND = 64  # points for each element moved, above which arithmetic takes longer than memory
MAX_CHEAP_COST = 8  # additions, above which a value is computed once for several elements
MIN_DEAR_WORK = 64  # additions, from which a thread computes several points that share this work
MIN_SHARED_SIZE = 4  # points along the axis on which this work does not depend
MAX_LANE_STRIDE = 4  # elements between those that adjacent threads load, where caches still help


class Facts:
    """What the choice of a schedule depends on."""

    def __init__(self, nest: KernelNest, width: int = 4, has_constants: bool = True) -> None:
        self.nest, self.sizes, self.width, self.has_constants = nest, nest.sizes, width, has_constants
        self.free = [a for a in range(len(self.sizes)) if a not in nest.reduced]
        self.accesses = nest.memory_operands()
        self.short = self.constant_axes()
        self.long = [a for a in sorted(nest.reduced) if a not in self.short and self.sizes[a] != 1]

    @cached_property
    def outer(self) -> list[int]:
        """The long axes of reductions whose results depend on no other reduced axis: only these may have threads."""
        nest = self.nest
        inner = {a for e in nest.reductions if nest.axes_of[e] & nest.reduced for a in nest.axes_reduced_by(e)}
        return [a for a in self.long if a not in inner]

    @cached_property
    def rows(self) -> int:
        """The number of rows: the size of a result of a reduction."""
        return prod(self.sizes[a] for a in self.free)

    def bytes_moved(self, name: str, itemsize: int) -> int:
        """Return the bytes of an operand, each counted once."""
        return itemsize * prod(n for n, stride in zip(self.sizes, self.nest.strides[name], strict=True) if stride)

    def contiguous_axis(self, name: str) -> int | None:
        """Return the axis of more than four elements along which an operand has the smallest stride."""
        found = [(abs(s), a) for a, s in enumerate(self.nest.strides[name]) if s and self.sizes[a] > 4]
        return min(found, default=(0, None))[1]

    @cached_property
    def small(self) -> list[int]:
        """The axes of a result with few elements, on which a part of the work does not depend: one thread has them all."""
        has_shared_part = self.nest.kernel.is_nested and self.has_constants
        return [
            a for a in self.free if has_shared_part and 1 < self.sizes[a] <= MAX_SMALL_AXIS and self.rows > self.sizes[a]
        ]

    def constant_axes(self) -> list[int]:
        """Return the short reduced axes that the text unrolls, shortest first."""
        found: list[int] = []
        if not self.has_constants:
            return found
        for a in sorted(self.nest.reduced, key=lambda a: self.sizes[a]):
            is_contiguous = any(self.nest.strides[name][a] == 1 for name, _ in self.accesses)
            limit = MAX_CONTIGUOUS_CONSTANT if is_contiguous and self.sizes[a] > 4 else MAX_CONSTANT_POINTS
            if self.sizes[a] and prod(self.sizes[b] for b in found) * self.sizes[a] <= limit:
                found.append(a)
        return found

    @cached_property
    def lanes(self) -> int:
        """The axis whose neighbors most bytes are adjacent along."""
        score = {a: 0.0 for a in range(len(self.sizes)) if a not in self.short and a not in self.small}
        for name, itemsize in self.accesses:
            axis = self.contiguous_axis(name)
            if axis in score:
                weight = 1.0 if abs(self.nest.strides[name][axis]) <= 2 else 0.3
                score[axis] += weight * self.bytes_moved(name, itemsize) * (1.01 if name.startswith("out") else 1)
        for e in self.nest.kernel.find_all(IndexedLoad):
            index = self.nest.contiguous_index(e)
            for x in [] if index is None else index_values(index):
                strides = self.nest.strides[operand_name(x)]
                axis = min((a for a in score if strides[a]), key=lambda a: abs(strides[a]), default=None)
                if axis is not None and abs(strides[axis]) <= MAX_LANE_STRIDE:
                    score[axis] += e.dtype.itemsize * prod(self.sizes[a] for a in self.nest.axes_of[e])
        if not score:
            return self.free[-1]
        moved = sum(self.bytes_moved(name, size) // size for name, size in self.accesses)
        if self.nest.reduced and prod(self.sizes) >= MIN_COMPUTE_BOUND * moved:
            wide = [a for a in self.free if a in score]  # arithmetic counts: threads that share nothing need no exchange
            if wide:
                return max(wide, key=lambda a: (self.sizes[a] >= WARP, score[a], self.sizes[a]))
        return max(score, key=lambda a: (score[a], self.sizes[a]))

    def can_vectorize(self, a: int) -> bool:
        """Return whether operands move in vectors along an axis: every vector starts at a multiple of its length."""
        contiguous, width = 0, self.width
        if width == 1 or self.nest.raws:
            return False
        for name, _ in self.accesses:
            strides = self.nest.strides[name]
            others = [s for b, s in enumerate(strides) if b != a]
            if strides[a] == 1:
                contiguous += 1
                if any(s % width for s in others):
                    return False
            elif strides[a]:
                return False
        return bool(contiguous) and self.sizes[a] >= width

    def vector_operands(self, schedule: LoopSchedule) -> tuple[str, ...]:
        """Return the operands that move in vectors: they are contiguous along an axis of vectors, and aligned."""
        axes = [a for a, tile in enumerate(schedule.tiles) if tile.vector > 1 and self.width > 1]
        found = []
        for name, _ in self.accesses:
            strides = self.nest.strides[name]
            a = next((a for a in axes if strides[a] == 1), None)
            is_aligned = a is not None and all(s % 4 == 0 for b, s in enumerate(strides) if b != a)
            if is_aligned and name not in schedule.staged and (a == schedule.tail or self.sizes[a or 0] % 4 == 0):
                found.append(name)
        return tuple(found)

    def row_axis(self, schedule: LoopSchedule) -> int | None:
        """Return the axis whose blocks are along y of the grid, so that no index is computed by a division for it."""
        if schedule.column is None:
            return None
        blocks = grid_blocks(schedule, self.sizes, self.nest.reduced)
        others = [a for a in blocks if a != schedule.column]
        if not others or blocks[others[-1]] > MAX_GRID_YZ or prod(blocks[a] for a in others[:-1]) > MAX_GRID_YZ:
            return None
        return others[-1]

    def wanted_blocks(self, schedule: LoopSchedule) -> int:
        """Return how many blocks should share a multiprocessor: as many as registers allow for what a thread keeps."""
        if not self.long or schedule.staged:
            return 0
        is_kept = not any(tile.serial for tile in schedule.tiles)
        kept = self.kept_bytes() // 4 * prod(schedule.tiles[a].elements for a in self.long) if is_kept else 0
        threads = 1536 if not is_kept else 2048 if kept <= 12 else 1024
        return max(threads // schedule.threads, 1)

    def shared_operations(self, a: int) -> list[Op]:
        """Return the operations whose results are the same for all points along an axis, but not for all points."""
        axes = self.nest.axes_of
        return [e for e in self.nest.kernel.order if isinstance(e, Op) and axes[e] and a not in axes[e]]

    def has_dear_row_values(self, lanes: int) -> bool:
        """Return whether a value that costs more than a few additions is the same for all lanes."""
        return cost_of(self.shared_operations(lanes)) > MAX_CHEAP_COST

    def axis_of_dear_work(self, lanes: int) -> int | None:
        """Return the axis along which most work is the same for all points; None if it is less than MIN_DEAR_WORK.

        Examples are tests and divisions of indices: a thread computes them once for several points along the axis.
        """
        axes, short = self.nest.axes_of, {*self.short}
        work = {
            a: sum(cost_of([e]) * prod(self.sizes[b] for b in axes[e] & short) for e in self.shared_operations(a))
            for a in self.free
            if a != lanes and self.sizes[a] >= MIN_SHARED_SIZE
        }
        axis = max(work, key=lambda a: (work[a], self.sizes[a]), default=None)
        return axis if axis is not None and work[axis] >= MIN_DEAR_WORK else None

    def loaded_bytes(self, a: int) -> int:
        """Return the bytes that one element along an axis loads."""
        return sum(size for name, size in self.accesses if name.startswith("in") and self.nest.strides[name][a])

    def loads(self) -> list[Expression]:
        """Return all loads of memory."""
        return [
            e
            for e in self.nest.kernel.order
            if isinstance(e, Load | ReadOutput | IndexedLoad) and not isinstance(e, IndexValue)
        ]

    def contracted_axes(self) -> tuple[int, int] | None:
        """Return two axes of the output for each of which an operand has no stride: its elements are used many times.

        The first one is the axis of the lanes.
        """
        if len(self.long) != 1 or max(self.nest.depth.values()) > 1 or self.nest.kernel.indexed_dtypes():
            return None
        main = self.long[0]
        if self.sizes[main] < MIN_CONTRACTED_LENGTH:
            return None
        if any(e.dtype.itemsize != 4 or e.dtype is bool_ for e in self.loads()):
            return None
        strides = [s for name, _ in self.accesses if (s := self.nest.strides[name])[main]]
        large = [a for a in self.free if self.sizes[a] >= MIN_CONTRACTED_SIZE]
        pairs = [
            (a, b)
            for a in large
            for b in large
            if a != b and any(s[a] and not s[b] for s in strides) and any(s[b] and not s[a] for s in strides)
        ]
        if not pairs:
            return None
        outputs = [self.nest.strides[f"out{k}"] for k in range(len(self.nest.kernel.outputs))]
        return max(pairs, key=lambda p: (self.sizes[p[0]] * self.sizes[p[1]], any(s[p[0]] == 1 for s in outputs)))

    def turned_operands(self, lanes: int) -> list[tuple[str, int]]:
        """Return (name, bytes of an element) of the large operands whose neighbors are along another axis than the lanes.

        Each moves at least an eighth of the bytes of the largest operand.
        """
        most = max(self.bytes_moved(name, size) for name, size in self.accesses)
        return [
            (name, size)
            for name, size in self.accesses
            if self.nest.strides[name][lanes] > MAX_LANE_STRIDE
            and 1 in self.nest.strides[name]
            and 8 * self.bytes_moved(name, size) >= most
        ]

    def turned_loads(self, lanes: int) -> tuple[str, ...]:
        """Return the inputs of 4 bytes among the turned operands: a block can transpose them in shared memory."""
        return tuple(name for name, size in self.turned_operands(lanes) if name.startswith("in") and size == 4)

    def turned_axis(self, lanes: int) -> int | None:
        """Return the axis of the result along which the largest turned operand is contiguous; None if there is none."""
        found = [
            (self.bytes_moved(name, size), a)
            for name, size in self.turned_operands(lanes)
            if (a := self.contiguous_axis(name)) in self.free and self.nest.strides[name][a] == 1
        ]
        return max(found)[1] if found else None

    def interleaved_axis(self, lanes: int) -> int | None:
        """Return the axis of few elements that are adjacent in all results, whose groups are adjacent along the lanes."""
        names = [f"out{k}" for k in range(len(self.nest.kernel.outputs))]
        for a in self.free:
            strides = [self.nest.strides[name] for name in names]
            if (
                a != lanes
                and all((abs(s[a]), abs(s[lanes])) == (1, self.sizes[a]) for s in strides)
                and 1 < self.sizes[a] <= 4
            ):
                return a
        return None

    def kept_bytes(self) -> int:
        """Return the bytes per point of a row that several stages need: they should stay in registers."""
        return sum(
            e.dtype.itemsize
            for e in self.loads()
            if self.nest.axes_of[e] & self.nest.reduced and len(self.nest.sinks_of[e]) > 1
        )


def grid_blocks(schedule: LoopSchedule, sizes: Sequence[int], reduced: frozenset[int]) -> dict[int, int]:
    """Return how many blocks there are along each axis of the grid."""
    return {
        a: ceil_div(n, tile.length)
        for a, (n, tile) in enumerate(zip(sizes, schedule.tiles, strict=True))
        if a not in reduced and not tile.is_constant
    }


def split_grid_yz(count: int) -> tuple[int, int]:
    """Distribute `count` blocks along y and z. There may be a few more blocks than `count`."""
    y = min(count, MAX_GRID_YZ)
    return y, ceil_div(count, y)
