"""Cases of task 2.3 with every layout and every kind of number, and what may be said of a loop that ran over them."""

import math
from collections.abc import Callable, Sequence
from math import prod
from random import Random

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .check import close
from .loops import Case, Mapped, Reduced, copy_storage, operands_of
from .questions.task2_3 import ALL_FUNCTIONS, Facts
from .strided import Array, Strided
from .verdicts import Wrong

NUMBERS = (0.0, -0.0, 1.0, 2.5, math.inf, -math.inf, math.nan, 1e16, -1e16, 1e300, 1e-200)


def any_layout(random: Random, shape: Sequence[int], may_repeat: bool = True) -> Strided:
    """Return a tensor with dims in any order in memory, with gaps, flips, an offset, and strides of 0 if it may repeat."""
    repeats, flips = may_repeat and random.random() < 0.4, random.random() < 0.5
    strides, step, offset = [0] * len(shape), random.choice((1, 1, 2)), random.choice((0, 0, 3))
    for d in random.sample(range(len(shape)), len(shape)):
        if repeats and random.random() < 0.4:
            continue
        strides[d] = step
        step = step * max(shape[d], 1) + random.choice((0, 0, 1))
        if flips and random.random() < 0.5:
            offset += strides[d] * max(shape[d] - 1, 0)
            strides[d] = -strides[d]
    return Strided(numbers(random, step + abs(offset) + 2), tuple(shape), tuple(strides), offset)


def numbers(random: Random, count: int) -> Array:
    """Return distinct numbers that float32 cannot hold, or any of NUMBERS, many of them more than once."""
    if random.random() < 0.5:
        return np.asarray((np.arange(1, count + 1) - 0.3 * count) * math.sqrt(2), np.float64)
    return np.array([random.choice(NUMBERS) for _ in range(count)])


def small_shape(random: Random, least: int = 0) -> Shape:
    """Return a shape of up to seven dims."""
    rank = random.randint(least, 7)
    return tuple(random.choice((1, 2, 2, 3) if rank > 3 else (1, 2, 3, 5)) for _ in range(rank))


def output_like(random: Random, shape: Shape, like: Strided | None = None) -> Strided:
    """Return an output full of NaN, sometimes with the layout of an operand."""
    if like is not None and like.shape == shape and random.random() < 0.7:
        with_gaps = all(like.strides[d] or shape[d] == 1 for d in range(len(shape)))
        made = like if with_gaps else any_layout(random, shape, may_repeat=False)
    else:
        made = any_layout(random, shape, may_repeat=False)
    return made._replace(storage=np.full(len(made.storage), np.nan))


def any_map(count: int, random: Random, shape: Shape | None = None) -> Mapped:
    """Return a case of map or zip with any layouts. Both operands of zip may be the same tensor, or of one layout."""
    shape = small_shape(random) if shape is None else shape
    operands = []
    for k in range(count):
        cut = tuple(1 if k and random.random() < 0.3 else n for n in shape)
        operands.append(any_layout(random, cut[random.choice((0, 0, random.randint(0, len(cut)))) if k else 0 :]))
    if count == 2 and random.random() < 0.5:
        same = operands[0]._replace(storage=operands[0].storage * 2)
        operands[1] = random.choice((operands[0], same))
    name = random.choice([name for name, f in ALL_FUNCTIONS.items() if f.__code__.co_argcount == count])
    return name, output_like(random, shape, operands[0]), tuple(operands)


def any_reduction(random: Random, shape: Shape | None = None, dim: int | None = None) -> Reduced:
    """Return a case of reduce with any layouts."""
    shape = small_shape(random, 1) if shape is None else shape
    dim = random.randrange(len(shape)) if dim is None else dim
    name = random.choice([name for name, f in ALL_FUNCTIONS.items() if f.__code__.co_argcount == 2])
    out = output_like(random, tuple(1 if d == dim else n for d, n in enumerate(shape)))
    return name, out, any_layout(random, shape), dim, random.choice((0.0, 2.5, -math.inf))


def right_storage(slot: str, case: Case) -> Array:
    """Return the storage of the output after the right loop."""
    out = case[1]._replace(storage=case[1].storage.copy())
    with np.errstate(all="ignore"):
        oracle.function(slot)(ALL_FUNCTIONS[case[0]], out, *operands_of(case))
    return copy_storage(out)


def storage_of(slot: str) -> Callable[[Case, Facts], Array]:
    """Return a function that reads the storage from the facts; for a right one, it raises `Wrong` for needless work."""

    def read(case: Case, facts: Facts) -> Array:
        storage, writes, calls, reads = facts
        out = case[1]
        places = out._replace(storage=np.arange(len(out.storage))).array().ravel().tolist()  # type: ignore[arg-type]  # ints
        size = prod(case[2].shape) if len(case) == 5 else len(places)
        if writes == dict.fromkeys(places, 1) and calls == size and all(n <= 2 * calls + len(storage) for n in reads):
            return storage
        if not close(storage, right_storage(slot, case)):
            return storage
        if writes != dict.fromkeys(places, 1):
            often = max(writes.values(), default=0)
            beside = len(set(writes) - set(places))
            what = f"{beside} positions beside them are written" if beside else f"one is written {often} times"
            raise Wrong(f"the values are right, but {what}: write each element of out once, and nothing else", kind="writes")
        if calls != size:
            raise Wrong(f"the values are right, but fn is called {calls} times; expected {size}", kind="calls")
        raise Wrong(f"the values are right, but operands are read {reads} times for {size} calls of fn", kind="reads")

    return read
