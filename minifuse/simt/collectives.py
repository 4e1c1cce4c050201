"""What the lanes of a warp get when they meet: shuffles, votes, matches, products. Pure functions over all operands."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from . import fragments
from .lanes import WARP_SIZE

Operands = Mapping[int, tuple[Any, ...]]  # lane -> what it brought
SHUFFLE_TYPES: Final = (int, float, np.float32, np.uint64)


class InactiveSourceError(Exception):
    """Lane `reader` wants a value of lane `source`, which is not there."""

    def __init__(self, reader: int, source: int) -> None:
        super().__init__(reader, source)
        self.reader, self.source = reader, source


class UnsupportedShuffleError(Exception):
    """A value of a type that no shuffle moves."""


def lane_below(lane: int, delta: int) -> int:
    """The lane `delta` below; itself where there is none."""
    return lane - delta if delta <= lane else lane


def lane_above(lane: int, delta: int) -> int:
    """The lane `delta` above; itself where there is none."""
    return lane + delta if lane + delta < WARP_SIZE else lane


SHUFFLE_SOURCES: Final[
    Mapping[str, Callable[[int, int], int]]
] = {  # the hardware looks at the low five bits of the second operand
    "shfl_sync": lambda lane, source: source,
    "shfl_up_sync": lane_below,
    "shfl_down_sync": lane_above,
    "shfl_xor_sync": lambda lane, other: lane ^ other,
}


def shuffle(word: str, operands: Operands) -> dict[int, Any]:
    """Each lane gets the value of another one."""
    source_of, found = SHUFFLE_SOURCES[word], {}
    for lane, (value, number) in operands.items():
        if isinstance(value, bool) or not isinstance(value, SHUFFLE_TYPES):
            raise UnsupportedShuffleError(type(value).__name__)
        source = source_of(lane, int(number) % WARP_SIZE)
        if source not in operands:
            raise InactiveSourceError(lane, source)
        found[lane] = operands[source][0]
    return found


def lane_mask(lanes: Any) -> int:
    """A bit for each of these lanes."""
    return sum(1 << lane for lane in lanes)


def vote(word: str, operands: Operands) -> dict[int, Any]:
    """Each lane gets the same answer about the predicates of all."""
    true = [lane for lane, (predicate,) in operands.items() if predicate]
    answers = {
        "ballot_sync": lane_mask(true),
        "any_sync": bool(true),
        "all_sync": len(true) == len(operands),
        "eq_sync": len(true) in (0, len(operands)),
    }
    return dict.fromkeys(operands, answers[word])


def match_values(word: str, operands: Operands) -> dict[int, Any]:
    """Each lane learns which lanes have its value."""
    equal: dict[Any, list[int]] = {}
    for lane, (value,) in operands.items():
        equal.setdefault(value, []).append(lane)
    if word == "match_all_sync":
        return dict.fromkeys(operands, (lane_mask(operands), True) if len(equal) == 1 else (0, False))
    return {lane: lane_mask(lanes) for lanes in equal.values() for lane in lanes}


def multiply_fragments(operands: Operands) -> dict[int, Any]:
    """Each lane gets its fragment of a * b + c."""
    here, kind = next((lane, given[0]) for lane, given in operands.items())
    for lane in range(WARP_SIZE):
        if lane not in operands:
            raise InactiveSourceError(here, lane)
    given = [operands[lane][1:] for lane in range(WARP_SIZE)]
    a, b, c = [np.array([lane[k] for lane in given]) for k in range(3)]
    found = fragments.multiply(kind, a, b, c)
    return {lane: tuple(found[lane]) for lane in operands}


def collective_results(word: str, operands: Operands) -> dict[int, Any]:
    """What each lane gets, by lane."""
    if word in SHUFFLE_SOURCES:
        return shuffle(word, operands)
    if word.startswith("match"):
        return match_values(word, operands)
    if word == "mma_sync":
        return multiply_fragments(operands)
    if word == "activemask":
        return dict.fromkeys(operands, lane_mask(operands))
    return dict.fromkeys(operands) if word == "syncwarp" else vote(word, operands)


def barrier_result(word: str, predicates: list[tuple[Any, ...]]) -> int:
    """What a barrier of a block gives to all its lanes; 0 where it gives nothing."""
    if word in ("syncthreads", "grid.sync"):
        return 0
    true = sum(bool(predicate) for (predicate,) in predicates)
    return {"syncthreads_count": true, "syncthreads_and": int(true == len(predicates)), "syncthreads_or": int(true > 0)}[
        word
    ]
