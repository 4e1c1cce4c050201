"""Choose the schedule of a loop nest on a GPU, in closed form.

The choice looks at strides, sizes and reuse only. Adjacent threads take the axis along which most bytes are adjacent in
memory (the *lanes*). A reduction along the lanes is shared by the threads of a row; a reduction across them is computed by
each thread for its own column, and by more threads per column if there are few columns. Each choice has a reason in words.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...core.dtypes import bool_
from ...core.rounding import ceil_div, power_of_two
from .gpu_facts import MAX_CHEAP_COST, WARP, Facts, grid_blocks, split_grid_yz
from .nest import KernelNest, cost_of
from .schedule import LoopSchedule, Tile

PROCESSORS = 132  # multiprocessors of the GPU
BUSY_THREADS = PROCESSORS * 2048  # threads that fill the GPU
MAX_ROW_BYTES = 128  # bytes of a row that a thread keeps in registers
MAX_ROW_ELEMENTS = 16  # elements of a row, or vectors, that a thread keeps in registers
MAX_LONG_ROW_THREADS = 1024
MAX_COLUMN_THREADS = 512  # of a block that keeps columns in registers: another one runs while it waits for its loads
MAX_REPEATED_COST = 64  # cost of a point in additions, above which a thread computes one vector only
THREADS_PER_PROCESSOR = 1024  # that keep a multiprocessor busy with loads
MIN_POINTS_TO_SPLIT = 1 << 16  # points below which one more launch costs more than idle multiprocessors
MIN_STEPS_PER_CHUNK = 4
CHUNK_THREADS = 256  # smaller blocks are not more chunks: another launch reads a result of each
WAVES = 4  # times that blocks of chunks fill the GPU: with one, a few blocks too many would double the time
MAX_SHARE = 4  # threads of a block that share a column which is split over the grid
MIN_OWN_LENGTH = 2048  # of a column that is split over the grid, from which each thread has columns of its own
MIN_NEIGHBORS = 5  # loads of a point, from which a block has several rows: threads of neighboring rows load the same lines
MAX_TURNED_THREADS = 512  # threads of a block that has threads along the axes of an operand that it transposes
MAX_LOADED = 64  # elements that a thread loads before it computes
MAX_STREAMS = 2  # outputs, above which a block stores to one row only
MAX_TILE_BYTES = 46 * 1024  # of all tiles of a block in shared memory
SECTOR = 8  # adjacent elements of 4 bytes that memory moves together
POWERS = (512, 256, 128, 64, 32, 16, 8, 4, 2)
IN_FLIGHT = 32  # bytes that a thread should load before it waits


def choose_schedule(nest: KernelNest, width: int = 4, has_constants: bool = True) -> LoopSchedule:
    """Return the schedule of a loop nest, with vectors of at most `width` elements.

    If `has_constants` is false, the text contains no size of a reduction.
    """
    facts = Facts(nest, width, has_constants)
    is_constant = [n == 1 or a in facts.short or a in facts.small for a, n in enumerate(nest.sizes)]
    tiles = [Tile(registers=n, is_constant=True) if c else Tile() for n, c in zip(nest.sizes, is_constant, strict=True)]
    schedule = schedule_reduction(facts, tiles) if facts.long else schedule_points(facts, tiles)
    return complete_schedule(schedule, facts)


def complete_schedule(schedule: LoopSchedule, facts: Facts) -> LoopSchedule:
    """Return a schedule with everything that follows from its tiles."""
    return schedule._replace(
        vectors=facts.vector_operands(schedule), blocks=facts.wanted_blocks(schedule), row=facts.row_axis(schedule)
    )


def schedule_points(facts: Facts, tiles: list[Tile]) -> LoopSchedule:
    """Return the schedule of a kernel whose reductions, if any, are short: each thread computes its points alone."""
    nest, lanes = facts.nest, facts.lanes
    n = facts.sizes[lanes]
    vector = 4 if not facts.short and facts.can_vectorize(lanes) else 1
    cost = cost_of(nest.kernel.order)
    points = facts.rows
    nbytes, short = facts.loaded_bytes(lanes), prod(facts.sizes[a] for a in facts.short)
    if vector > 1:
        registers = 2 if 0 < vector * nbytes < IN_FLIGHT and cost <= MAX_REPEATED_COST else 1
    else:
        registers = 4 if cost * short <= MAX_REPEATED_COST else 2 if cost * short <= 2 * MAX_REPEATED_COST else 1
        if len(facts.accesses) > 4 and any(abs(nest.strides[name][lanes]) > 1 for name, _ in facts.accesses):
            registers = min(registers, 2)
    loads = len(facts.loads())
    while registers > 1 and (points < BUSY_THREADS * vector * registers or registers * loads > MAX_LOADED):
        registers //= 2
    elements = registers * vector
    most = 128 if elements > 4 else 256
    threads = min(most, power_of_two(ceil_div(n, elements)))
    if vector == 1 and loads >= MIN_NEIGHBORS and len(nest.kernel.outputs) <= MAX_STREAMS:
        threads, most = min(threads, WARP), 128
    threads, registers = least_waste(n, threads, registers, vector, WARP // 2 if vector == 1 else WARP)
    if n == 1:
        return LoopSchedule(tuple(tiles), (), why="there is one point")
    tiles[lanes] = Tile(threads, registers, vector)
    order = [lanes]
    others = [a for a in facts.free if a != lanes and facts.sizes[a] > 1]
    turned = facts.turned_axis(lanes)
    inner = facts.interleaved_axis(lanes) if turned is None else None
    if inner is not None:  # adjacent threads store adjacent elements
        others.remove(inner)
        order.insert(0, inner)
        tiles[inner] = Tile(power_of_two(facts.sizes[inner]))
        threads = most = min(most // tiles[inner].threads, power_of_two(n))
        tiles[lanes] = Tile(threads, registers)
    if turned is not None:  # threads along both axes load the same sectors
        threads, most = min(power_of_two(n), WARP), MAX_TURNED_THREADS
        if facts.short:  # windows are read often, from a cache; results are stored once
            threads, most = min(threads, SECTOR), SECTOR * WARP
        tiles[lanes] = Tile(threads, min(registers, 2, ceil_div(n, threads)))
    if threads < most and others:
        y = others[-1] if turned is None else turned
        shares = any(not nest.strides[name][lanes] and nest.strides[name][y] for name, _ in facts.accesses)
        down = 4 if facts.short and shares and points >= 16 * BUSY_THREADS else 1
        if turned is not None and cost * short <= MAX_CHEAP_COST:  # a thread copies adjacent elements by several loads
            most, down = SECTOR * threads, min(4, ceil_div(facts.sizes[y], SECTOR))
        tiles[y] = Tile(min(most // threads, power_of_two(facts.sizes[y])), down)
        if tiles[y].threads > 1:
            order.append(y)
    shared = facts.axis_of_dear_work(lanes) if vector == 1 and turned is None else None
    if shared is not None:  # what does not depend on this axis is computed once for several points along it
        count = min(4, power_of_two(points / (2 * BUSY_THREADS * registers)), facts.sizes[shared])
        tiles[shared] = Tile(tiles[shared].threads, max(count, tiles[shared].registers))
    tail = lanes if n % vector else None
    return LoopSchedule(tuple(tiles), tuple(order), lanes, tail, why="each thread computes its points alone")


def least_waste(n: int, threads: int, registers: int, vector: int, narrowest: int = WARP) -> tuple[int, int]:
    """Return threads and registers that leave few threads idle at the end of rows, and do not halve the registers.

    Of those that cost about as much, it returns the most threads.
    """

    def cost(t: int, r: int) -> int:
        length, adjacent = t * r * vector, t * vector
        waste = ceil_div(n, length) * length / n
        narrow = 0.3 if adjacent < SECTOR else 0.1 if adjacent < WARP else 0
        return round(20 * waste * (1 + 0.1 * (registers / r - 1) + narrow))

    options = [(t, r) for t in POWERS for r in range(registers, 0, -1) if narrowest <= t <= threads]
    return min(options, key=lambda x: cost(*x)) if options else (threads, registers)


def schedule_reduction(facts: Facts, tiles: list[Tile]) -> LoopSchedule:
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


def schedule_serial(facts: Facts, tiles: list[Tile]) -> LoopSchedule:
    """Return a schedule in which each thread computes its results alone, along the largest axis of the result."""
    lanes = max((a for a in facts.free if a not in facts.small), key=lambda a: facts.sizes[a], default=None)
    why = "each thread computes its results alone, since reductions are nested in reductions"
    if lanes is None or facts.sizes[lanes] == 1:
        return LoopSchedule(tuple(tiles), (), why=why)
    tiles[lanes] = Tile(threads=min(128, power_of_two(facts.sizes[lanes])))
    return LoopSchedule(tuple(tiles), (lanes,), lanes, why=why)


def schedule_rows(facts: Facts, tiles: list[Tile], lanes: int) -> LoopSchedule:
    """Return a schedule in which adjacent threads share a row, which they keep in registers if several stages need it."""
    n, rows = facts.sizes[lanes], facts.rows
    vector = 4 if facts.can_vectorize(lanes) else 1
    kept = facts.kept_bytes()
    if kept and n % vector:
        vector = 1  # a row in registers has no tail
    fits = False
    why = "adjacent threads share a row"
    if kept and len(facts.long) == 1:
        groups = ceil_div(n, vector)
        limit = row_registers(kept, vector)
        most = limit if rows >= 1024 else max(limit // 4, 1)
        has_stages = max(facts.nest.depth.values()) > 1  # then exchanges between threads take longer than narrow loads
        least = min(power_of_two(groups), 8 if vector > 1 or has_stages else WARP)
        threads = min(max(power_of_two(ceil_div(groups, most)), least), 512)
        if vector == 1 and threads == 512 and ceil_div(groups, threads) > min(limit, 12):
            threads = MAX_LONG_ROW_THREADS
        registers = ceil_div(groups, threads)
        fits = registers <= limit
        if fits:
            tiles[lanes] = Tile(threads, registers, vector)
            why = "adjacent threads share a row and keep it in registers, since several stages need it"
    if kept and facts.outer == facts.long and len(facts.long) == 2 and keep_rows_of_two_axes(facts, tiles, lanes, vector):
        why = "threads along both axes of a row keep it in registers, since several stages need it"
        return LoopSchedule(tuple(tiles), (lanes, *[a for a in facts.long if a != lanes]), why=why)
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
        if kept and rows >= 4 * PROCESSORS and not facts.nest.kernel.is_nested:
            threads = min(max(power_of_two(groups), least), MAX_LONG_ROW_THREADS)
            registers = max(min(64 // nbytes // vector, groups // threads, 8), 1)
            why = "adjacent threads share a row, which they read again from a cache, since few rows are read at a time"
        tiles[lanes] = Tile(threads, registers, vector, serial=True)
        if vector == 1 and WARP < n <= 4 * WARP and rows >= 1024 and len(facts.long) == 1:
            threads = WARP // 2
            tiles[lanes] = Tile(threads, ceil_div(n, threads))
    turned = facts.turned_loads(lanes) if len(facts.long) == 1 else ()
    if turned and (staged := schedule_turned_rows(facts, tiles, lanes, turned)) is not None:
        return staged
    threads = tiles[lanes].threads
    order = [lanes]
    others = [a for a in facts.outer if a != lanes]
    tail = lanes if n % vector else None
    if others and rows < 4 * PROCESSORS and not fits:
        registers, y = tiles[lanes].registers, max(others, key=lambda a: facts.sizes[a])
        most = 512 if registers * vector == 1 else 256
        widest = WARP if facts.turned_operands(lanes) else most  # threads along both axes load the same sectors
        x, registers = least_waste(n, widest, registers, vector, narrowest=2)
        tiles[lanes] = Tile(x, registers, vector, serial=True)
        tiles[y] = Tile(threads=min(most // x, power_of_two(facts.sizes[y])), serial=True)
        if tiles[y].threads > 1:
            order.append(y)
        return LoopSchedule(tuple(tiles), tuple(order), None, tail, why="all threads share the points of a row")
    rest = [a for a in facts.free if facts.sizes[a] > 1]
    if threads <= WARP and rest:
        y = max(rest, key=lambda a: facts.sizes[a])
        tiles[y] = Tile(threads=min(max(128 // threads, 1), power_of_two(facts.sizes[y])))
        if tiles[y].threads > 1:
            order.append(y)
    return LoopSchedule(tuple(tiles), tuple(order), None, tail, why=why)


def row_registers(kept: int, vector: int) -> int:
    """Return how many vectors of a row a thread keeps, each element of which has some bytes."""
    return max(min(MAX_ROW_BYTES // kept, MAX_ROW_ELEMENTS * vector) // vector, 1)


def keep_rows_of_two_axes(facts: Facts, tiles: list[Tile], lanes: int, vector: int) -> bool:
    """Distribute rows of two axes to threads that keep them in registers. Return False if the rows are too long."""
    (across,) = [a for a in facts.long if a != lanes]
    groups, n = ceil_div(facts.sizes[lanes], vector), facts.sizes[across]
    limit = row_registers(facts.kept_bytes(), vector)
    x = min(power_of_two(groups), 256)
    registers = ceil_div(groups, x)
    least = ceil_div(n, max(limit // registers, 1))
    y = max(power_of_two(least), min(256 // x, power_of_two(n)) if facts.rows < 1024 else 1)
    if x * y > 512 or registers * ceil_div(n, y) > limit or n % y:  # all threads have elements along this axis
        return False
    tiles[lanes], tiles[across] = Tile(x, registers, vector), Tile(y, ceil_div(n, y))
    return True


def schedule_contraction(facts: Facts, tiles: list[Tile], lanes: int, other: int) -> LoopSchedule:
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
    return LoopSchedule(tuple(tiles), (lanes, other), lanes, staged=staged, why=why)


def schedule_turned_rows(facts: Facts, tiles: list[Tile], lanes: int, turned: tuple[str, ...]) -> LoopSchedule | None:
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
    return LoopSchedule(tuple(made), (lanes, other), None, staged=turned, why=why)


def schedule_columns(facts: Facts, tiles: list[Tile], lanes: int) -> LoopSchedule:
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
        x, most = WARP, MAX_COLUMN_THREADS
        share = power_of_two(ceil_div(length, registers_most))
        if share * SECTOR > most:
            most = MAX_LONG_ROW_THREADS
        while share * x > most and x > SECTOR:
            x //= 2
        share = min(share, most // x)
        registers = ceil_div(length, share)
        if registers <= registers_most:
            tiles[lanes], tiles[main] = Tile(threads=min(x, power_of_two(n))), Tile(share, registers)
            why = "threads share columns and keep them in registers, since several stages need them"
            return LoopSchedule(tuple(tiles), (lanes, main), lanes, why=why)
    columns = facts.rows // vector // prod(facts.sizes[a] for a in facts.small)
    x, across = min(WARP, power_of_two(ceil_div(n, vector))), 1
    is_split = columns < x * PROCESSORS and not nest.kernel.is_nested  # the axis is split over the grid
    if is_split and vector == 1 and facts.has_dear_row_values(lanes):
        x, across = least_waste(n, 4 * WARP, 2, 1)  # computed once for two columns
    share = min(power_of_two(BUSY_THREADS / max(columns, 1) / 2), power_of_two(max(length // 8, 1)))
    most = 512 // x
    if is_split:
        most = 256 // x if x < WARP else MAX_SHARE if length < MIN_OWN_LENGTH else 1
    share = max(min(share, most), 1)
    if share == 1:
        x = min(128, power_of_two(ceil_div(n, vector)))
    if nest.kernel.is_nested and x == WARP and columns < WAVES * x * PROCESSORS and share < length // 8:
        x, share = x // 2, 2 * share  # arithmetic counts, and narrow loads come from a cache
    count = sum(1 for e in facts.loads() if nest.axes_of[e] & nest.reduced)
    registers = 4 if length >= 4 * share and count * vector <= 8 else 2 if length >= 2 * share else 1
    tiles[lanes] = Tile(x, across, vector)
    tiles[main] = Tile(threads=share, registers=registers, serial=True)
    order = [lanes, *([main] if share > 1 else [])]
    if x * share < 64:
        rest = [a for a in facts.free if a != lanes and facts.sizes[a] > 1]
        if rest and share == 1:
            tiles[rest[-1]] = Tile(threads=min(128 // x, power_of_two(facts.sizes[rest[-1]])))
            order.append(rest[-1])
    return LoopSchedule(
        tuple(tiles), tuple(order), lanes, why="each thread reduces its own columns, along which memory is adjacent"
    )


class ChunkedAxis(NamedTuple):
    """A reduced axis in `chunks` parts of `length` elements, the last of which is shorter."""

    axis: int
    chunks: int
    length: int


class Split(NamedTuple):
    """Reduced axes that are split over the grid: each block reduces one chunk of each of them."""

    parts: tuple[ChunkedAxis, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are split."""
        return tuple(part.axis for part in self.parts)

    @property
    def chunks(self) -> int:
        """The number of chunks of a row."""
        return prod(part.chunks for part in self.parts)


def choose_split(nest: KernelNest, schedule: LoopSchedule, processors: int) -> Split | None:
    """Return how to split serial axes over the grid; None if there are blocks enough without it.

    A chunk has at least MIN_STEPS_PER_CHUNK steps of the loops, and blocks fill the GPU WAVES times. If the longest axis has
    too few steps for a quarter of the GPU, the next one is split, too.
    """
    serial = [a for a in nest.reduced if schedule.tiles[a].serial]
    if not serial or prod(nest.sizes) < MIN_POINTS_TO_SPLIT:
        return None
    blocks = prod(grid_blocks(schedule, nest.sizes, nest.reduced).values())
    slots = processors * max(2 * THREADS_PER_PROCESSOR // schedule.threads, 1)  # blocks that run at the same time
    if 2 * blocks >= slots:
        return None
    steps = {a: ceil_div(nest.sizes[a], schedule.span(a)) for a in serial}
    unrolled = prod(schedule.tiles[a].registers for a in nest.reduced if schedule.tiles[a].is_constant)
    least = ceil_div(MIN_STEPS_PER_CHUNK, unrolled)
    has_threads = any(schedule.tiles[a].threads > 1 for a in serial)
    waves = WAVES if has_threads else 1
    wanted = waves * processors * (2 * THREADS_PER_PROCESSOR // max(schedule.threads, CHUNK_THREADS)) // blocks
    count = min(max(wanted, 2), prod(steps.values()) // least)
    parts = list[ChunkedAxis]()
    for a in sorted(steps, key=lambda a: -steps[a]):
        if count < 2 or steps[a] < 2 or (parts and 4 * blocks >= slots):
            break
        length = ceil_div(steps[a], min(count, steps[a])) * schedule.span(a)
        parts.append(ChunkedAxis(a, ceil_div(nest.sizes[a], length), length))
        blocks *= parts[-1].chunks
        count = slots // blocks
    return Split(tuple(parts)) if parts else None


def launch_grid(
    schedule: LoopSchedule, sizes: Sequence[int], reduced: frozenset[int], chunks: int = 1
) -> tuple[int, int, int]:
    """Return the blocks along x, y and z. There may be a few more along y and z than needed, if the schedule has no row."""
    blocks = grid_blocks(schedule, sizes, reduced)
    column = 1 if schedule.column is None else blocks.pop(schedule.column, 1)
    row = None if schedule.row is None else blocks.pop(schedule.row)
    rest = prod(blocks.values()) * chunks
    if schedule.column is None:
        return rest, 1, 1
    if row is not None:
        return column, row, rest
    return column, *split_grid_yz(rest)
