"""Release-acquire order: fences and atomics order accesses of different threads, as in CUDA's threadFenceReduction sample.

    thread a:  access x;  fence;  atomic at s
    thread b:                                  atomic at s (later);  access x

The atomic of thread a releases its accesses before the fence, and the later atomic of thread b acquires them. Barriers of
the block extend both. A fence also releases the accesses that other threads of its block made before an earlier barrier.
After a barrier, all threads of the block have acquired the accesses that one of them acquired. Atomics are ordered as in the
recorded run, so an access by a block that did not wait for its turn is found.

Only single release-acquire pairs are followed. Accesses that are ordered by a chain of pairs over several addresses are
reported as a race. Unlike in the PTX memory model, the acquiring thread needs no fence, because NVIDIA's sample has none.

References
----------
.. [1] NVIDIA, "CUDA C++ Programming Guide", memory fence functions: the sum of an array in one launch.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columnar import WARP_SIZE, Ints, combine_keys, run_numbers, run_starts
from .record import ATOMIC, Collective, Events

DEVICE_FENCES: Final = ("threadfence", "threadfence_system")
NEVER: Final = 2**36  # later than any event
ALWAYS: Final = -NEVER


class _EventPoints(NamedTuple):
    """Points in time of a launch, as columns of equal length. Events have odd times, fences even times between them."""

    block: Ints
    lane: Ints
    epoch: Ints
    time: Ints


class ReleaseAcquireOrder:
    """The release-acquire order of some events of a launch. It is falsy if no pair of a fence and an atomic orders events.

    Parameters
    ----------
    events : Events
    collectives : iterable of Collective
        The fences are those of the kinds `threadfence`, `threadfence_system` and `threadfence_block`.
    rows : ndarray of int64
        The events that `class_of` and `orders` will be called with.
    between_blocks : bool
        True to compare events of different blocks, which a `threadfence_block` does not order.
    """

    def __init__(self, events: Events, collectives: Iterable[Collective], rows: Ints, *, between_blocks: bool) -> None:
        self._class = np.zeros(len(events.block), np.int64)
        self._released: list[Ints] = []  # for each address: class -> time of the first atomic that releases its events
        self._acquired: list[Ints] = []  # for each address: class -> time of the last atomic that acquires for its events
        kinds = DEVICE_FENCES if between_blocks else (*DEVICE_FENCES, "threadfence_block")
        lanes_per_block = int(events.thread.max(initial=0)) + WARP_SIZE
        fences = _fences(collectives, kinds, lanes_per_block)
        if not len(fences.time):
            return
        all_rows = np.arange(len(events.block))
        atomics = all_rows[events.kind == ATOMIC]
        is_release = (
            _min_value_later(_points(events, atomics, lanes_per_block), _reversed(fences), -fences.time, backwards=True)
            > ALWAYS
        )
        rows = np.unique(rows)
        queried = _points(events, rows, lanes_per_block)
        columns: list[Ints] = []
        for address in np.unique(events.address[atomics[is_release]]):
            at_address = atomics[events.address[atomics] == address]
            points = _points(events, at_address, lanes_per_block)
            release = _min_value_later(fences, points, points.time)
            columns.append(_min_value_later(queried, fences, release))
            columns.append(_min_value_later(queried, _reversed(points), -points.time, backwards=True))
        if columns:
            classes, class_numbers = np.unique(np.stack(columns), axis=1, return_inverse=True)
            self._class[rows] = class_numbers.reshape(-1)
            self._released, self._acquired = list(classes[::2]), list(classes[1::2])

    def __bool__(self) -> bool:
        return bool(self._released)

    def class_of(self, rows: Ints) -> Ints:
        """Return a number for each event.

        Events of one block with equal numbers have the same order with respect to all other events.
        """
        return self._class[rows]

    def orders(self, left: Ints, right: Ints) -> NDArray[np.bool_]:
        """Return for each pair of rows whether a release and an acquire order the two events."""
        is_ordered = np.zeros(len(left), bool)
        left, right = self._class[left], self._class[right]
        for released, acquired in zip(self._released, self._acquired, strict=True):
            is_ordered |= (released[left] < acquired[right]) | (released[right] < acquired[left])
        return is_ordered


def _points(events: Events, rows: Ints, lanes_per_block: int) -> _EventPoints:
    block = events.block[rows].astype(np.int64)
    return _EventPoints(
        block, block * lanes_per_block + events.thread[rows], events.epoch[rows].astype(np.int64), 2 * rows + 1
    )


def _fences(collectives: Iterable[Collective], kinds: tuple[str, ...], lanes_per_block: int) -> _EventPoints:
    fences = [
        (row.block, row.block * lanes_per_block + row.warp * WARP_SIZE + lane, row.epoch, 2 * row.position)
        for row in collectives
        if row.kind in kinds and row.position >= 0
        for lane in range(WARP_SIZE)
        if row.mask >> lane & 1
    ]
    return _EventPoints(*np.array(fences, np.int64).reshape(-1, 4).T)


def _reversed(points: _EventPoints) -> _EventPoints:
    """Return the points of the launch run backwards."""
    return points._replace(epoch=-points.epoch, time=-points.time)


def _min_value_later(starts: _EventPoints, points: _EventPoints, values: Ints, *, backwards: bool = False) -> Ints:
    """Return the smallest value of the points after each start: later in the same lane, or in a later epoch of its block.

    The result is NEVER if there is none. With `backwards`, pass `_reversed` points and negated values; the result is the
    greatest value of the points before each start, or ALWAYS if there is none.
    """
    if backwards:
        return -_min_value_later(_reversed(starts), points, values)
    in_lane = _min_value_after(starts.lane, starts.time, points.lane, points.time, values)
    in_block = _min_value_after(starts.block, starts.epoch, points.block, points.epoch, values)
    return np.minimum(in_lane, in_block)


def _min_value_after(segment: Ints, position: Ints, segments: Ints, positions: Ints, values: Ints) -> Ints:
    """Return for each (segment, position) the smallest value in the same segment at a greater position."""
    if not len(segments):
        return np.full(len(segment), NEVER)
    key = combine_keys(np.concatenate([segment, segments]), np.concatenate([position, positions]))
    queried, key = key[: len(segment)], key[len(segment) :]
    order = np.argsort(key, kind="stable")
    segments, values = segments[order], values[order]
    # Shift the values of later segments above those of earlier ones, so that a minimum from the right stays in its segment.
    shift = run_numbers(run_starts(segments), len(segments)) * (4 * NEVER)
    minimum = np.minimum.accumulate((values + shift)[::-1])[::-1] - shift
    next_row = np.searchsorted(key[order], queried, side="right")
    clipped_row = np.minimum(next_row, len(segments) - 1)
    return np.where((next_row < len(segments)) & (segments[clipped_row] == segment), minimum[clipped_row], NEVER)
