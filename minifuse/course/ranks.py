"""Simulated ranks: programs in one process that send each other arrays, in turns that are the same in every run.

A rank runs until it waits for an array that has not been sent. Sending never waits. What is sent is a copy, so that ranks
share no memory, as processes do not. Every message is recorded: the judge counts them.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .verdicts import Wrong

Array = npt.NDArray[Any]
SEND, RECEIVE = "send", "receive"
COLLECTIVES = ("all_reduce", "broadcast")


class RankEvent(NamedTuple):
    """An action of a rank: it sent an array to rank `other` or received one from it, or called a collective.

    Other events, such as a gradient that is ready, have the name that `Group.note` gave them, and a number as `other`.
    """

    name: str
    other: int
    array: Array


class RankRun(NamedTuple):
    """The result of each rank, and its actions."""

    results: list[Any]
    events: list[list[RankEvent]]


@dataclass(frozen=True)
class Group:
    """The functions of one rank, and its place among the others."""

    rank: int
    size: int
    send: Callable[[int, Array], None]
    """Send an array to a rank. Does not wait."""
    receive: Callable[[int], Array]
    """Wait for the next array from a rank, and return it."""
    start_all_reduce: Callable[[Array], Callable[[], Array]]
    """Begin a sum over all ranks; the returned function waits for it, and returns it."""
    broadcast: Callable[[Array, int], Array]
    """Return the array of a rank; the others pass an array of the same shape and dtype."""
    note: Callable[[str, int], None]
    """Record that something happened."""

    def all_reduce(self, array: Array) -> Array:
        """Return the sum of the arrays of all ranks."""
        return self.start_all_reduce(array)()

    def without_notes(self) -> "Group":
        """Return a group for a student's code, whose notes are not recorded."""
        return replace(self, note=lambda name, number: None)


Program = Callable[[Group], object]
Key = tuple[int, int, int]
"""(source, target, number of the collective); the number of a message is -1."""


class World:
    """The messages of all ranks, and who waits for whom."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.events: list[list[RankEvent]] = [[] for _ in range(size)]
        self.arrived: dict[Key, deque[Array]] = defaultdict(deque)
        self.waits: dict[int, Key] = {}

    def run(self, programs: dict[int, Program]) -> dict[int, Any]:
        """Run the programs of some ranks until all have ended, and return their results.

        Raises
        ------
        Wrong
            No rank can continue, or a message is never received.
        """
        from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]  # ships no types

        hub = getcurrent()
        threads = {rank: greenlet(partial(program, self.group(rank, hub))) for rank, program in programs.items()}
        results: dict[int, Any] = {}
        while len(results) < len(programs):
            ready = [r for r in threads if r not in results and (r not in self.waits or self.arrived[self.waits[r]])]
            if not ready:
                raise Wrong(f"no rank can continue: {self.describe_waits(results)}", kind="deadlock")
            for rank in ready:
                value = threads[rank].switch()
                if threads[rank].dead:
                    results[rank] = value
        return results

    def group(self, rank: int, hub: Any) -> Group:
        """Return the functions of a rank."""

        def wait(key: Key) -> Array:
            while not self.arrived[key]:
                self.waits[rank] = key
                hub.switch()
            self.waits.pop(rank, None)
            return self.arrived[key].popleft()

        def send(to: int, array: Array) -> None:
            self.check_rank(rank, to, "sends to")
            self.record(rank, SEND, to, array)
            self.arrived[rank, int(to), -1].append(array.copy())

        def receive(source: int) -> Array:
            self.check_rank(rank, source, "receives from")
            array = wait((int(source), rank, -1))
            self.record(rank, RECEIVE, source, array)
            return array

        def begin(name: str, array: Array) -> tuple[int, Array]:
            number = len([event for event in self.events[rank] if event.name in COLLECTIVES])
            self.record(rank, name, number, array)
            self.check_equal(rank, number)
            return number, array.copy()

        def start_all_reduce(array: Array) -> Callable[[], Array]:
            number, own = begin("all_reduce", array)
            for other in range(self.size):
                if other != rank:
                    self.arrived[rank, other, number].append(own)

            @cache
            def total() -> Array:
                parts = [own if k == rank else wait((k, rank, number)) for k in range(self.size)]
                return np.asarray(sum(parts[1:], parts[0].copy()), own.dtype)

            return lambda: total().copy()

        def broadcast(array: Array, source: int) -> Array:
            number, own = begin("broadcast", array)
            if rank != source:
                return wait((source, rank, number)).copy()
            for other in range(self.size):
                if other != rank:
                    self.arrived[rank, other, number].append(own)
            return own

        return Group(rank, self.size, send, receive, start_all_reduce, broadcast, partial(self.note, rank))

    def check_equal(self, rank: int, number: int) -> None:
        """Raise `Wrong` if another rank asks for another collective in this place."""
        all_called = [[event for event in events if event.name in COLLECTIVES] for events in self.events]
        own = all_called[rank][number]
        for other, called in enumerate(all_called):
            if len(called) > number and (one := called[number]) is not own:
                a, b = (f"{e.name} of {e.array.dtype} {e.array.shape}" for e in (own, one))
                if a != b:
                    raise Wrong(
                        f"ranks ask for different collectives: number {number} of rank {rank} is {a}, of rank {other} {b}",
                        kind="mismatch",
                    )

    def note(self, rank: int, name: str, number: int) -> None:
        """Record an event that is no message."""
        self.events[rank].append(RankEvent(name, number, np.zeros(0)))

    def record(self, rank: int, name: str, other: int, array: Array) -> None:
        """Record a message or a collective, with a copy of its array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name} takes a NumPy array; got {type(array).__name__}")
        self.events[rank].append(RankEvent(name, int(other), array.copy()))

    def check_rank(self, rank: int, other: int, verb: str) -> None:
        """Raise IndexError if this is not another rank."""
        if not 0 <= other < self.size or other == rank:
            raise IndexError(f"rank {rank} {verb} rank {other}; the other ranks are among 0 to {self.size - 1}")

    def describe_waits(self, results: dict[int, Any]) -> str:
        """Say who waits for whom."""
        texts = []
        for rank, (source, _, number) in sorted(self.waits.items()):
            what = f", in collective number {number}" if number >= 0 else ""
            texts.append(f"rank {rank} waits for rank {source}{what}")
        return ", ".join([*texts, *(f"rank {rank} has ended" for rank in sorted(results))])

    def check_received(self) -> None:
        """Raise `Wrong` if a message was never received, or a sum never waited for."""
        for (source, target, number), queue in sorted(self.arrived.items()):
            if queue:
                what = "a collective is never waited for" if number >= 0 else "a message is never received"
                raise Wrong(f"{what}: from rank {source} to rank {target}", kind="left over")


def run_ranks(programs: Sequence[Program]) -> RankRun:
    """Run the program of each rank.

    Examples
    --------
    >>> def pass_on(group):
    ...     group.send((group.rank + 1) % group.size, np.array([group.rank]))
    ...     return group.receive((group.rank - 1) % group.size)
    >>> run_ranks([pass_on] * 3).results
    [array([2]), array([0]), array([1])]
    """
    world = World(len(programs))
    results = world.run(dict(enumerate(programs)))
    world.check_received()
    return RankRun([results[rank] for rank in range(world.size)], world.events)


def run_alone(program: Program, rank: int, run: RankRun) -> RankRun:
    """Run the program of one rank again, with the arrays that it received in another run and no other rank."""
    world = World(len(run.events))
    numbers = [k for k, event in enumerate(run.events[rank]) if event.name == RECEIVE]
    for k in numbers:
        event = run.events[rank][k]
        world.arrived[event.other, rank, -1].append(event.array.copy())
    for other, events in enumerate(run.events):
        for event in events:
            if event.name in COLLECTIVES and other != rank:
                world.arrived[other, rank, event.other].append(event.array.copy())
    results = world.run({rank: program})
    return RankRun([results[rank]], [world.events[rank]])


def count_steps(events: Sequence[Sequence[RankEvent]]) -> int:
    """Return how many messages must follow each other, if a rank sends one at a time and ranks send at the same time."""
    done, clocks = [0] * len(events), [0] * len(events)
    sent: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    is_moving = True
    while is_moving:
        is_moving = False
        for rank, mine in enumerate(events):
            while done[rank] < len(mine):
                event = mine[done[rank]]
                if event.name == SEND:
                    clocks[rank] += 1
                    sent[rank, event.other].append(clocks[rank])
                elif event.name == RECEIVE:
                    if not sent[event.other, rank]:
                        break
                    clocks[rank] = max(clocks[rank], sent[event.other, rank].popleft())
                done[rank] += 1
                is_moving = True
    return max(clocks, default=0)
