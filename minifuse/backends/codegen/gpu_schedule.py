"""Choose the schedule of a loop nest on a GPU, in closed form.

The choice looks at strides, sizes and reuse only. Adjacent threads take the axis along which most bytes are adjacent in
memory (the *lanes*). A reduction along the lanes is shared by the threads of a row; a reduction across them is computed by
each thread for its own column, and by more threads per column if there are few columns. Each choice has a reason in words.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

from ...core.dtypes import bool_
from ...ir.kernel_ir import Expression, IndexedLoad, IndexValue, Kernel, Load, ReadOutput
from .nest import KernelNest, cost_of, leaf_operand
from .schedule import Schedule, Tile

WARP = 32
PROCESSORS = 132  # multiprocessors of the GPU
BUSY_THREADS = PROCESSORS * 2048  # threads that fill the GPU
MAX_CONSTANT_POINTS = 32  # steps of short reductions that are unrolled completely
MAX_CONTIGUOUS_CONSTANT = 8  # length of a contiguous axis that one thread reduces alone
MAX_ROW_BYTES = 128  # bytes of a row that a thread keeps in registers
MAX_LONG_ROW_THREADS = 1024
MAX_REPEATED_COST = 64  # cost of a point in additions, above which a thread computes one vector only
THREADS_PER_PROCESSOR = 1024  # that keep a multiprocessor busy with loads
MIN_POINTS_TO_SPLIT = 1 << 16  # points below which one more launch costs more than idle multiprocessors
MIN_STEPS_PER_CHUNK = 4
MIN_CONTRACTED_SIZE = 32  # results along each axis that share operands
MIN_CONTRACTED_LENGTH = 16
MAX_SMALL_AXIS = 4
MIN_COMPUTE_BOUND = 64  # points for each element moved, above which arithmetic takes longer than memory
MAX_LANE_STRIDE = 4  # elements between those that adjacent threads load, where caches still help
MAX_TILE_BYTES = 46 * 1024  # of all tiles of a block in shared memory
IN_FLIGHT = 32  # bytes that a thread should load before it waits


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def power_of_two(n: float) -> int:
    """Return the smallest power of two that is at least n."""
    return 1 << max(int(-(-n // 1)) - 1, 0).bit_length()


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
            for x in [] if index is None else Kernel((index,), ()).find_all(IndexValue):
                strides = self.nest.strides[leaf_operand(x)]
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

    def vector_operands(self, schedule: Schedule) -> tuple[str, ...]:
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

    def wanted_blocks(self, schedule: Schedule) -> int:
        """Return how many blocks should share a multiprocessor: as many as registers allow for what a thread keeps."""
        if not self.long or schedule.staged:
            return 0
        is_kept = not any(tile.serial for tile in schedule.tiles)
        kept = self.kept_bytes() // 4 * prod(schedule.tiles[a].elements for a in self.long) if is_kept else 0
        threads = 1536 if not is_kept else 2048 if kept <= 12 else 1024
        return max(threads // schedule.threads, 1)

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

    def turned_loads(self, lanes: int) -> tuple[str, ...]:
        """Return the large inputs whose neighbors are along another axis than the lanes, although they vary along these."""
        most = max(self.bytes_moved(name, size) for name, size in self.accesses)
        return tuple(
            name
            for name, size in self.accesses
            if name.startswith("in")
            and size == 4
            and self.nest.strides[name][lanes] > 4
            and 1 in self.nest.strides[name]
            and 8 * self.bytes_moved(name, size) >= most
        )

    def kept_bytes(self) -> int:
        """Return the bytes per point of a row that several stages need: they should stay in registers."""
        return sum(
            e.dtype.itemsize
            for e in self.loads()
            if self.nest.axes_of[e] & self.nest.reduced and len(self.nest.sinks_of[e]) > 1
        )


def choose_schedule(nest: KernelNest, width: int = 4, has_constants: bool = True) -> Schedule:
    """Return the schedule of a loop nest, with vectors of at most `width` elements.

    If `has_constants` is false, the text contains no size of a reduction.
    """
    facts = Facts(nest, width, has_constants)
    is_constant = [n == 1 or a in facts.short or a in facts.small for a, n in enumerate(nest.sizes)]
    tiles = [Tile(registers=n, is_constant=True) if c else Tile() for n, c in zip(nest.sizes, is_constant, strict=True)]
    schedule = schedule_reduction(facts, tiles) if facts.long else schedule_points(facts, tiles)
    return schedule._replace(vectors=facts.vector_operands(schedule), blocks=facts.wanted_blocks(schedule))


def schedule_points(facts: Facts, tiles: list[Tile]) -> Schedule:
    """Return the schedule of a kernel whose reductions, if any, are short: each thread computes its points alone."""
    nest, lanes = facts.nest, facts.lanes
    n = facts.sizes[lanes]
    vector = 4 if not facts.short and facts.can_vectorize(lanes) else 1
    cost = cost_of(nest.kernel.order)
    points = facts.rows
    nbytes = facts.loaded_bytes(lanes)
    if vector > 1:
        registers = 2 if 0 < vector * nbytes < IN_FLIGHT and cost <= MAX_REPEATED_COST else 1
    else:
        short = prod(facts.sizes[a] for a in facts.short)
        registers = 4 if cost * short <= MAX_REPEATED_COST else 2 if cost * short <= 2 * MAX_REPEATED_COST else 1
        if len(facts.accesses) > 4 and any(abs(nest.strides[name][lanes]) > 1 for name, _ in facts.accesses):
            registers = min(registers, 2)
    while registers > 1 and points < BUSY_THREADS * vector * registers:
        registers //= 2
    elements = registers * vector
    most = 128 if elements > 4 else 256
    threads = min(most, power_of_two(ceil_div(n, elements)))
    threads, registers = least_waste(n, threads, registers, vector)
    if n == 1:
        return Schedule(tuple(tiles), (), why="there is one point")
    tiles[lanes] = Tile(threads, registers, vector)
    order = [lanes]
    others = [a for a in facts.free if a != lanes and facts.sizes[a] > 1]
    if threads < most and others:
        y = others[-1]
        shares = any(not nest.strides[name][lanes] and nest.strides[name][y] for name, _ in facts.accesses)
        down = 4 if facts.short and shares and points >= 16 * BUSY_THREADS else 1
        tiles[y] = Tile(min(most // threads, power_of_two(facts.sizes[y])), down)
        if tiles[y].threads > 1:
            order.append(y)
    tail = lanes if n % vector or tiles[lanes].registers > 1 else None
    return Schedule(tuple(tiles), tuple(order), lanes, tail, why="each thread computes its points alone")


def least_waste(n: int, threads: int, registers: int, vector: int) -> tuple[int, int]:
    """Return threads and registers that leave few threads idle at the end of rows, and do not halve the registers."""

    def cost(t: int, r: int) -> float:
        length = t * r * vector
        return ceil_div(n, length) * length / n * (1 + 0.1 * (registers / r - 1))

    options = [(t, r) for t in (256, 128, 64, 32) for r in range(registers, 0, -1) if t <= threads]
    return min(options, key=lambda x: cost(*x)) if options else (threads, registers)


def schedule_reduction(facts: Facts, tiles: list[Tile]) -> Schedule:
    """Return the schedule of a kernel with long reductions."""
    lanes = facts.lanes
    pair = facts.contracted_axes()
    if pair is not None:
        return schedule_contraction(facts, tiles, *pair)
    for a in facts.long:
        tiles[a] = Tile(serial=True)
    if not facts.outer or (lanes in facts.nest.reduced and lanes not in facts.outer):
        return schedule_serial(facts, tiles)
    if lanes in facts.nest.reduced:
        return schedule_rows(facts, tiles, lanes)
    return schedule_columns(facts, tiles, lanes)


def schedule_serial(facts: Facts, tiles: list[Tile]) -> Schedule:
    """Return a schedule in which each thread computes its results alone, along the largest axis of the result."""
    lanes = max((a for a in facts.free if a not in facts.small), key=lambda a: facts.sizes[a], default=None)
    why = "each thread computes its results alone, since reductions are nested in reductions"
    if lanes is None or facts.sizes[lanes] == 1:
        return Schedule(tuple(tiles), (), why=why)
    tiles[lanes] = Tile(threads=min(128, power_of_two(facts.sizes[lanes])))
    return Schedule(tuple(tiles), (lanes,), lanes, why=why)


def schedule_rows(facts: Facts, tiles: list[Tile], lanes: int) -> Schedule:
    """Return a schedule in which adjacent threads share a row, which they keep in registers if several stages need it."""
    n, rows = facts.sizes[lanes], facts.rows
    vector = 4 if facts.can_vectorize(lanes) else 1
    kept = facts.kept_bytes()
    if kept and n % vector:
        vector = 1  # a row in registers has no tail
    is_whole = n % vector == 0
    fits = False
    why = "adjacent threads share a row"
    if kept and len(facts.long) == 1 and is_whole:
        groups = ceil_div(n, vector)
        limit = max(MAX_ROW_BYTES // (1 if vector > 1 else 2) // kept // vector, 1)
        most = limit if rows >= 1024 else max(limit // 4, 1)
        least = min(power_of_two(groups), 8 if vector > 1 else WARP)
        threads = min(max(power_of_two(ceil_div(groups, most)), least), 512)
        if vector == 1 and threads == 512 and ceil_div(groups, threads) > 8:
            threads = MAX_LONG_ROW_THREADS
        registers = ceil_div(groups, threads)
        fits = registers <= limit
        if fits:
            tiles[lanes] = Tile(threads, registers, vector)
            why = "adjacent threads share a row and keep it in registers, since several stages need it"
    if not fits:
        vector = 4 if facts.can_vectorize(lanes) else 1
        groups = ceil_div(n, vector)
        least = min(power_of_two(groups), 8 if vector > 1 else WARP)
        per_thread = 32 if rows >= 1024 else 8
        if len(facts.long) > 1:
            per_thread = 16
        threads = min(max(power_of_two(ceil_div(n, per_thread * max(vector // 4, 1))), least), 256)
        nbytes = max(facts.loaded_bytes(lanes), 1)
        registers = max(min(64 // nbytes // vector, groups // threads, 4), 1)
        tiles[lanes] = Tile(threads, registers, vector, serial=True)
    turned = facts.turned_loads(lanes) if len(facts.long) == 1 else ()
    if turned and (staged := schedule_turned_rows(facts, tiles, lanes, turned)) is not None:
        return staged
    threads = tiles[lanes].threads
    order = [lanes]
    others = [a for a in facts.outer if a != lanes]
    tail = lanes if n % vector else None
    if others and rows < 4 * PROCESSORS and not fits and n < 8 * WARP:
        x = min(threads, WARP)
        y = max(others, key=lambda a: facts.sizes[a])
        tiles[lanes] = tiles[lanes]._replace(threads=x)
        tiles[y] = Tile(threads=min(512 // x, power_of_two(facts.sizes[y])), serial=True)
        if tiles[y].threads > 1:
            order.append(y)
        return Schedule(tuple(tiles), tuple(order), None, tail, why="all threads share the points of a row")
    rest = [a for a in facts.free if facts.sizes[a] > 1]
    if threads <= WARP and rest:
        y = max(rest, key=lambda a: facts.sizes[a])
        tiles[y] = Tile(threads=min(max(128 // threads, 1), power_of_two(facts.sizes[y])))
        if tiles[y].threads > 1:
            order.append(y)
    return Schedule(tuple(tiles), tuple(order), None, tail, why=why)


def schedule_contraction(facts: Facts, tiles: list[Tile], lanes: int, other: int) -> Schedule:
    """Return a schedule in which a thread computes a small matrix of results, from chunks in shared memory."""
    nest, main = facts.nest, facts.long[0]
    rest = prod(facts.sizes[a] for a in facts.free if a not in (lanes, other))
    options = []
    for threads_x, threads_y, across, down in ((16, 16, 8, 8), (16, 8, 8, 8), (16, 16, 8, 4), (16, 16, 4, 4), (16, 8, 4, 4)):
        x, y = threads_x * across, threads_y * down
        blocks = ceil_div(facts.sizes[lanes], x) * ceil_div(facts.sizes[other], y)
        waste = blocks * x * y / (facts.sizes[lanes] * facts.sizes[other])
        slots = PROCESSORS * (512 // (threads_x * threads_y))
        fill = blocks * rest / (ceil_div(blocks * rest, slots) * slots)
        reuse = across * down / (across + down)
        options.append((reuse / (reuse + 1) * fill**0.5 / waste, threads_x, threads_y, across, down))
    _, threads_x, threads_y, across, down = max(options)
    tiles[lanes], tiles[other] = Tile(threads_x, across // 4, 4), Tile(threads_y, down // 4, 4)
    tiles[main] = Tile(serial=True, chunk=16)
    staged = tuple(name for name, _ in facts.accesses if name.startswith("in") and nest.strides[name][main])
    why = "each thread computes a small matrix of results, from chunks in shared memory"
    return Schedule(tuple(tiles), (lanes, other), lanes, staged=staged, why=why)


def schedule_turned_rows(facts: Facts, tiles: list[Tile], lanes: int, turned: tuple[str, ...]) -> Schedule | None:
    """Return a schedule in which a block transposes some rows in shared memory; None if they are too long for it."""
    n = facts.sizes[lanes]
    other = facts.contiguous_axis(turned[0])
    registers = ceil_div(n, WARP)
    if other is None or other in facts.nest.reduced or facts.sizes[other] < 8:
        return None
    room = MAX_TILE_BYTES // (4 * len(turned) * (registers * WARP + 1))
    rows = 16 if room >= 16 else 8 if room >= 8 else 0
    if not rows or registers * max(facts.kept_bytes(), 4) > MAX_ROW_BYTES:
        return None
    made = list(tiles)
    made[lanes], made[other] = Tile(WARP, registers), Tile(rows)
    why = "adjacent threads share a row, which is not adjacent in memory: blocks transpose rows in shared memory"
    return Schedule(tuple(made), (lanes, other), None, staged=turned, why=why)


def schedule_columns(facts: Facts, tiles: list[Tile], lanes: int) -> Schedule:
    """Return a schedule in which each thread has its own columns, and several threads share a column if they are few."""
    nest, n = facts.nest, facts.sizes[lanes]
    main = max(facts.outer, key=lambda a: facts.sizes[a])
    length = facts.sizes[main]
    has_bools = any(e.dtype is bool_ for e in nest.reductions)
    vector = 1
    if not has_bools and not facts.nest.kernel.pointwise_outputs and facts.can_vectorize(lanes) and n % 4 == 0 and n >= 512:
        vector = 4
    kept = facts.kept_bytes()
    if kept and len(facts.long) == 1 and length <= 4096 * 4 // kept and facts.rows >= WARP * PROCESSORS:
        registers_most = max(MAX_ROW_BYTES // kept, 1)
        x = WARP
        share = power_of_two(ceil_div(length, min(registers_most, 24)))
        while share * x > MAX_LONG_ROW_THREADS and x > 8:
            x //= 2
        share = min(share, MAX_LONG_ROW_THREADS // x)
        registers = ceil_div(length, share)
        if registers <= registers_most:
            tiles[lanes], tiles[main] = Tile(threads=min(x, power_of_two(n))), Tile(share, registers)
            why = "threads share columns and keep them in registers, since several stages need them"
            return Schedule(tuple(tiles), (lanes, main), lanes, why=why)
    columns = facts.rows // vector
    x = min(WARP, power_of_two(ceil_div(n, vector)))
    share = min(power_of_two(BUSY_THREADS / max(columns, 1) / 2), 512 // x, power_of_two(max(length // 8, 1)))
    share = max(share, 1)
    if share == 1:
        x = min(128, power_of_two(ceil_div(n, vector)))
    count = sum(1 for e in facts.loads() if nest.axes_of[e] & nest.reduced)
    registers = 4 if length >= 4 * share and count * vector <= 8 else 2 if length >= 2 * share else 1
    tiles[lanes] = Tile(threads=x, vector=vector)
    tiles[main] = Tile(threads=share, registers=registers, serial=True)
    order = [lanes, *([main] if share > 1 else [])]
    if x * share < 64:
        rest = [a for a in facts.free if a != lanes and facts.sizes[a] > 1]
        if rest and share == 1:
            tiles[rest[-1]] = Tile(threads=min(128 // x, power_of_two(facts.sizes[rest[-1]])))
            order.append(rest[-1])
    return Schedule(
        tuple(tiles), tuple(order), lanes, why="each thread reduces its own columns, along which memory is adjacent"
    )


class Split(NamedTuple):
    """A reduced axis that is split over the grid into `count` chunks of `length` elements, the last of which is shorter."""

    axis: int
    count: int  # type: ignore[assignment]  # a method of tuples
    length: int


def choose_split(nest: KernelNest, schedule: Schedule, processors: int) -> Split | None:
    """Return how to split the longest serial axis over the grid; None if there are blocks enough without it.

    A chunk has at least MIN_STEPS_PER_CHUNK steps of the loop, and blocks fill the GPU once or twice.
    """
    serial = [a for a in nest.reduced if schedule.tiles[a].serial]
    span = schedule.span
    if not serial or prod(nest.sizes) < MIN_POINTS_TO_SPLIT:
        return None
    axis = max(serial, key=lambda a: ceil_div(nest.sizes[a], span(a)))
    n = nest.sizes[axis]
    column, rest = launch_geometry(schedule, nest.sizes, nest.reduced)
    blocks = column * rest
    steps_inside = prod(ceil_div(nest.sizes[a], span(a)) for a in serial if a != axis)
    slots = processors * max(2 * THREADS_PER_PROCESSOR // schedule.threads, 1)  # blocks that run at the same time
    if 2 * blocks >= slots:
        return None
    steps = ceil_div(n, span(axis))
    count = min(max(slots // blocks, 2), max(steps * steps_inside // MIN_STEPS_PER_CHUNK, 1), steps)
    if count < 2:
        return None
    length = ceil_div(steps, count) * span(axis)
    return Split(axis, ceil_div(n, length), length)


def launch_geometry(schedule: Schedule, sizes: Sequence[int], reduced: frozenset[int]) -> tuple[int, int]:
    """Return how many blocks there are along the column axis, and how many along all other axes of the grid together."""
    blocks = {
        a: ceil_div(n, tile.length)
        for a, (n, tile) in enumerate(zip(sizes, schedule.tiles, strict=True))
        if a not in reduced and not tile.is_constant
    }
    column = 1 if schedule.column is None else blocks.pop(schedule.column, 1)
    return column, prod(blocks.values())
