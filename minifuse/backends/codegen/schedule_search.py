"""Search the schedule of a loop nest on a GPU by timing its neighbors, from the schedule of the closed form on.

A *neighbor* differs in one choice: an axis has twice or half as many threads, registers or elements of a chunk, its threads
are moved to another axis, or it has vectors or none. The search is greedy. It times all neighbors of the best schedule
together, goes on from the fastest one, and ends where no neighbor is faster. How a schedule is timed is up to the caller.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf, prod
from typing import NamedTuple

from ...core.dtypes import bool_
from ...core.rounding import ceil_div
from .gpu_facts import WARP, Facts
from .gpu_schedule import MAX_TILE_BYTES, complete_schedule
from .schedule import LoopSchedule, Tile

MAX_CANDIDATES = 64  # schedules that are timed, with the first one
MIN_GAIN = 0.02  # part of the time by which a neighbor must be faster: less is noise
MAX_THREADS = 1024  # of a block
MAX_ELEMENTS = 64  # that a thread has in registers; more are stored in memory
MAX_THREADED_AXES = 2  # threads of a reduced axis combine their results along x or y
MAX_CHUNK = 64
TILE_PAD = 4  # elements by which a row of a tile in shared memory may be longer

Timer = Callable[[Sequence[LoopSchedule]], Sequence[float]]  # returns the time of each schedule; inf if it has no kernel


class SearchResult(NamedTuple):
    """The fastest schedule of a search, and the times by which it was chosen."""

    schedule: LoopSchedule
    us: float
    """Microseconds of the schedule."""
    first_us: float
    """Microseconds of the first schedule, that of the closed form."""
    candidates: int
    """How many schedules were timed."""


def search(
    first: LoopSchedule,
    neighbors: Callable[[LoopSchedule], Iterator[LoopSchedule]],
    time: Timer,
    limit: int = MAX_CANDIDATES,
) -> SearchResult:
    """Return the fastest schedule that can be reached from the first one in steps to faster neighbors.

    Each step times the best schedule again with its neighbors, and the winner is compared with the first schedule at the
    end, so a drift of the clock chooses nothing. The search is deterministic if the timer is.
    """
    best, seen, is_faster = first, {first._replace(why="")}, True
    while is_faster:
        found = dict.fromkeys(x for x in neighbors(best) if x not in seen)
        batch = [*found][: limit - len(seen)]
        seen.update(batch)
        best_us, *others = time([best, *batch]) if batch else [0.0]
        fastest_us, k = min(((us, k) for k, us in enumerate(others)), default=(inf, 0))
        is_faster = fastest_us < (1 - MIN_GAIN) * best_us
        best = batch[k] if is_faster else best
    first_us, best_us = time([first, best])
    if best == first or best_us >= first_us:
        why = f"{first.why}; of {len(seen)} timed schedules none is faster"
        return SearchResult(first._replace(why=why), first_us, first_us, len(seen))
    why = f"found by timing {len(seen)} schedules: {best_us / first_us:.2f} of the time of the closed form's"
    return SearchResult(best._replace(why=why), best_us, first_us, len(seen))


def neighbors(schedule: LoopSchedule, facts: Facts) -> Iterator[LoopSchedule]:
    """Yield the neighbors of a schedule that have a kernel, without a reason in words."""
    axes = [a for a in (*facts.free, *facts.outer) if not schedule.tiles[a].is_constant and facts.sizes[a] > 1]
    changes: list[dict[int, Tile]] = []
    for a in axes:
        tile = schedule.tiles[a]
        changes += [{a: scaled(tile, name, factor)} for name in ("threads", "registers", "chunk") for factor in (2, 0.5)]
        if tile.vector > 1 or may_have_vectors(a, schedule, facts):
            changes.append({a: tile._replace(vector=1 if tile.vector > 1 else facts.width)})
        changes += [{a: scaled(tile, "threads", 0.5), b: scaled(schedule.tiles[b], "threads", 2)} for b in axes if b != a]
    for change in changes:
        found = with_tiles(schedule, facts, change)
        if found is not None and found != schedule._replace(why=""):
            yield found


def scaled(tile: Tile, name: str, factor: float) -> Tile:
    """Return a tile with a multiple of its threads, registers or elements of a chunk."""
    fields = tile._asdict()
    return Tile(**fields | {name: int(fields[name] * factor)})


def may_have_vectors(a: int, schedule: LoopSchedule, facts: Facts) -> bool:
    """Return whether the printer has vectors along an axis that has none. Chunks begin at multiples of the old tile."""
    if facts.short or a in schedule.split or not facts.can_vectorize(a) or any(t.vector > 1 for t in schedule.tiles):
        return False
    if a not in facts.nest.reduced and facts.long:  # the threads reach barriers together, so there is no tail
        has_bools = any(e.dtype is bool_ for e in facts.nest.reductions)
        return not (has_bools or facts.nest.kernel.pointwise_outputs or facts.sizes[a] % facts.width)
    return True


def with_tiles(schedule: LoopSchedule, facts: Facts, change: dict[int, Tile]) -> LoopSchedule | None:
    """Return a schedule with other tiles along some axes; None if it has no kernel, or wastes threads or registers."""
    tiles = list(schedule.tiles)
    for a, tile in change.items():
        n, step = facts.sizes[a], tile.threads * tile.vector
        if not step or (schedule.staged and tile.vector != tiles[a].vector):
            return None
        if a in facts.nest.reduced and not tile.serial:  # the row is in registers
            tile = tile._replace(registers=ceil_div(n, step))
            if n % tile.vector:
                return None
        if not tile.registers or step >= 2 * n or (tile.registers - 1) * step >= n:
            return None
        if tile.chunk > MAX_CHUNK or (tiles[a].chunk and not tile.chunk) or (tile.chunk and tile.length > 1):
            return None
        tiles[a] = tile
    order = tuple(a for a in (*schedule.order, *sorted(change.keys() - {*schedule.order})) if tiles[a].threads > 1)
    has_tail = [a for a, tile in enumerate(tiles) if tile.vector > 1 and facts.sizes[a] % tile.vector]
    tail = has_tail[0] if has_tail and not schedule.staged else None
    found = schedule._replace(tiles=tuple(tiles), order=order, tail=tail, why="")
    elements = prod(tile.elements for tile in tiles if not tile.is_constant)
    is_small = found.threads < min(WARP, schedule.threads) or len(order) > MAX_THREADED_AXES
    if is_small or found.threads > MAX_THREADS or elements > MAX_ELEMENTS or tile_bytes(found, facts) > MAX_TILE_BYTES:
        return None
    return complete_schedule(found, facts)


def tile_bytes(schedule: LoopSchedule, facts: Facts) -> int:
    """Return the most bytes that the tiles of a block have in shared memory."""
    spans = [schedule.span(a) for a in range(len(schedule.tiles))]
    strides = [facts.nest.strides[name] for name in schedule.staged]
    return sum(4 * prod(n + TILE_PAD for n, s in zip(spans, own, strict=True) if s and n > 1) for own in strides)
