"""Results of warp collectives: shuffles, votes, matches and matrix products of the operands of all lanes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from . import fragments
from .arithmetic import LaneNumber
from .lanes import WARP_SIZE

Registers = Sequence[LaneNumber]  # the part of a matrix that one lane stores
Operands = Mapping[int, tuple[Any, ...]]  # lane -> its operands; the next four types are for one kind of operation each
ShuffleOperands = Mapping[int, tuple[LaneNumber, int]]  # a value, and the number that selects the source lane
VoteOperands = Mapping[int, tuple[object]]  # a predicate
MatchOperands = Mapping[int, tuple[LaneNumber]]
MatrixOperands = Mapping[int, tuple[str, Registers, Registers, Registers]]  # the kind, and fragments of a, b and c
SHUFFLE_TYPES: Final = (int, float, np.float32, np.uint64)


class InactiveSourceError(Exception):
    """Lane `reader` reads from lane `source`, which does not take part."""

    def __init__(self, reader: int, source: int) -> None:
        super().__init__(reader, source)
        self.reader, self.source = reader, source


class UnsupportedShuffleError(Exception):
    """A shuffle of a value whose type shuffles do not support."""


def lane_below(lane: int, delta: int) -> int:
    """Return the lane `delta` below, or the lane itself if there is none."""
    return lane - delta if delta <= lane else lane


def lane_above(lane: int, delta: int) -> int:
    """Return the lane `delta` above, or the lane itself if there is none."""
    return lane + delta if lane + delta < WARP_SIZE else lane


# (lane, second operand modulo 32) -> source lane; the hardware uses the low five bits of the operand
SHUFFLE_SOURCES: Final[Mapping[str, Callable[[int, int], int]]] = {
    "shfl_sync": lambda lane, source: source,
    "shfl_up_sync": lane_below,
    "shfl_down_sync": lane_above,
    "shfl_xor_sync": lambda lane, other: lane ^ other,
    "shfl_registers": lambda lane, other: lane ^ other,  # of several values at once
}


def shuffle(operation: str, operands: ShuffleOperands) -> dict[int, LaneNumber]:
    """Return for each lane the value of its source lane."""
    source_of, results = SHUFFLE_SOURCES[operation], dict[int, LaneNumber]()
    for lane, (value, selector) in operands.items():
        if operation != "shfl_registers" and (isinstance(value, bool) or not isinstance(value, SHUFFLE_TYPES)):
            raise UnsupportedShuffleError(type(value).__name__)
        source = source_of(lane, int(selector) % WARP_SIZE)
        if source not in operands:
            raise InactiveSourceError(lane, source)
        results[lane] = operands[source][0]
    return results


def lane_mask(lanes: Iterable[int]) -> int:
    """Return a bit mask of these lanes."""
    return sum(1 << lane for lane in lanes)


def vote(operation: str, operands: VoteOperands) -> dict[int, int]:
    """Return the same result for all lanes, computed from their predicates."""
    true_lanes = [lane for lane, (predicate,) in operands.items() if predicate]
    results = {
        "ballot_sync": lane_mask(true_lanes),
        "any_sync": bool(true_lanes),
        "all_sync": len(true_lanes) == len(operands),
        "eq_sync": len(true_lanes) in (0, len(operands)),
    }
    return dict.fromkeys(operands, results[operation])


def match_values(operation: str, operands: MatchOperands) -> Mapping[int, int | tuple[int, bool]]:
    """Return for each lane the mask of the lanes with the same value; for match_all_sync, also whether all are equal."""
    lanes_by_value: dict[LaneNumber, list[int]] = {}
    for lane, (value,) in operands.items():
        lanes_by_value.setdefault(value, []).append(lane)
    if operation == "match_all_sync":
        return dict.fromkeys(operands, (lane_mask(operands), True) if len(lanes_by_value) == 1 else (0, False))
    return {lane: lane_mask(lanes) for lanes in lanes_by_value.values() for lane in lanes}


def multiply_fragments(operands: MatrixOperands) -> dict[int, tuple[np.float32, ...]]:
    """Return for each lane its fragment of a * b + c."""
    first_lane = next(iter(operands))
    for lane in range(WARP_SIZE):
        if lane not in operands:
            raise InactiveSourceError(first_lane, lane)
    kind = operands[first_lane][0]
    a, b, c = [np.array([operands[lane][k] for lane in range(WARP_SIZE)]) for k in (1, 2, 3)]
    result = fragments.multiply(kind, a, b, c)
    return {lane: tuple(result[lane]) for lane in operands}


def collective_results(operation: str, operands: Operands) -> Mapping[int, object]:
    """Return the result of a collective for each lane."""
    if operation in SHUFFLE_SOURCES:
        return shuffle(operation, operands)
    if operation.startswith("match"):
        return match_values(operation, operands)
    if operation == "mma_sync":
        return multiply_fragments(operands)
    if operation == "activemask":
        return dict.fromkeys(operands, lane_mask(operands))
    return dict.fromkeys(operands) if operation == "syncwarp" else vote(operation, operands)


def barrier_result(operation: str, predicates: list[tuple[object, ...]]) -> int:
    """Return the result of a barrier, the same for all lanes; 0 for barriers without a result."""
    if operation in ("syncthreads", "grid.sync"):
        return 0
    true_count = sum(bool(predicate) for (predicate,) in predicates)
    return {
        "syncthreads_count": true_count,
        "syncthreads_and": int(true_count == len(predicates)),
        "syncthreads_or": int(true_count > 0),
    }[operation]
