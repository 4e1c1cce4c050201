"""Loop nests, machines and schedules for the checks of task 5.7: some with names, and others that are drawn."""

from random import Random
from typing import NamedTuple

from .nests import Machine, Nest, Schedule

MACHINE = Machine()


class NamedNest(NamedTuple):
    """A nest with a name, and the time of the best schedule that a search of all powers of two finds."""

    name: str
    nest: Nest
    best: int
    is_split: bool = False
    """True if the best schedule splits the reduction."""


NESTS = (
    NamedNest("sums of rows", Nest((64, 512), (False, True), ((512, 1),), (1, 0)), 644),
    NamedNest("sums of rows of a transposed array", Nest((64, 512), (False, True), ((1, 64),), (1, 0)), 642),
    NamedNest("sums of columns", Nest((512, 64), (True, False), ((64, 1),), (0, 1)), 642),
    NamedNest("a sum of all", Nest((20000,), (True,), ((1,),), (0,)), 873, True),
    NamedNest("a transposed copy", Nest((96, 160), (False, False), ((1, 96),), (160, 1)), 840),
    NamedNest("rows plus a vector", Nest((1500, 9), (False, False), ((9, 1), (0, 1)), (9, 1)), 804),
    NamedNest("three long rows", Nest((3, 4001), (False, True), ((4001, 1),), (1, 0)), 692, True),
    NamedNest("a @ b", Nest((32, 48, 40), (False, False, True), ((40, 0, 1), (0, 1, 48)), (48, 1, 0)), 768),
    NamedNest("sums along the middle", Nest((6, 40, 50), (False, True, False), ((2000, 50, 1),), (50, 0, 1)), 400),
)
LARGE = (
    NamedNest(
        "a large a @ b",
        Nest((4096, 1024, 2048), (False, False, True), ((2048, 0, 1), (0, 1, 1024)), (1024, 1, 0)),
        75_579_392,
    ),
    NamedNest("three huge rows", Nest((3, 5_000_011), (False, True), ((5_000_011, 1),), (1, 0)), 391_057, True),
)
"""Nests whose iterations cannot be counted one by one: `best` is the time of the model."""


def row_major(sizes: list[int]) -> list[int]:
    """Return the strides of a contiguous array."""
    strides = [1] * len(sizes)
    for d in range(len(sizes) - 1, 0, -1):
        strides[d - 1] = strides[d] * sizes[d]
    return strides


def draw_strides(random: Random, sizes: list[int], dims: list[int]) -> tuple[int, ...]:
    """Draw the strides of an operand that depends on some dims: in any order, with a gap or without."""
    order = random.sample(dims, len(dims)) if random.random() < 0.4 else dims
    gap, strides = random.choice([1, 1, 1, 2, 3]), [0] * len(sizes)
    for d, stride in zip(order, row_major([sizes[d] for d in order]), strict=True):
        strides[d] = gap * stride
    return tuple(strides)


def draw_nest(random: Random, points: int) -> Nest:
    """Draw a nest of one to three dims with at most so many iterations."""
    count = random.choice([1, 2, 2, 3, 3])
    is_reduced = [random.random() < 0.4 for _ in range(count)]
    sizes, left = [1] * count, points
    for d in random.sample(range(count), count):
        sizes[d] = min(left, random.choice([random.randint(1, 9), 2 ** random.randint(3, 12), random.randint(10, 3000)]))
        left //= sizes[d]
    kept = [d for d in range(count) if not is_reduced[d]]
    everywhere = list(range(count))
    used = [everywhere, *[random.sample(everywhere, random.randint(1, count)) for _ in range(random.choice([0, 1, 1]))]]
    loads = [draw_strides(random, sizes, dims) for dims in used]
    store = draw_strides(random, sizes, kept) if kept else (0,) * count
    return Nest(tuple(sizes), tuple(is_reduced), tuple(loads), store)


def draw_machine(random: Random) -> Machine:
    """Draw a machine."""
    return Machine(
        random.choice([4, 8, 20]),
        random.choice([32, 32, 16]),
        random.choice([8, 4, 16]),
        random.choice([256, 128, 512]),
        random.choice([8, 4, 16]),
        random.choice([1024, 512, 4096]),
        random.choice([24, 10, 60]),
        random.choice([400, 50, 2000]),
    )


def draw_schedule(random: Random, nest: Nest) -> Schedule:
    """Draw a schedule, which may be illegal: at a limit or beyond."""
    count = len(nest.sizes)
    threads = [random.choice([1, 1, 2, 4, 8, 16, 32, 64, 3, 20]) for _ in range(count)]
    tile = [1 if r and random.random() < 0.9 else random.choice([1, 1, 2, 3, 4, 8]) for r in nest.is_reduced]
    first = next((n for n, r in zip(nest.sizes, nest.is_reduced, strict=True) if r), 1)
    split = random.choice([1, 1, 2, 3, 8, first, first + 1])
    if random.random() < 0.1:
        which = random.choice([threads, tile])
        which[random.randrange(count)] = 0
    return Schedule(random.randrange(count), tuple(threads), tuple(tile), 0 if random.random() < 0.03 else split)
