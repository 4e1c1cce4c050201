"""The simulated engine: n ranks in one process, of which one runs at a time.

Each rank is a thread, and passes its turn on when it waits: in a collective, for a message, or at its end. The last rank
that reaches a collective runs the generators of all, by the event-driven loop of `cost.py`. So a program gives the same
results, the same bits and the same timeline in every run, with no MPI and no second processor. If no rank can go on, that is
an error that says where each of them is.
"""

import random
import runpy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Condition, Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.errors import MismatchError, users_line
from ..runtime.script_environment import script_environment
from .algorithms import ALGORITHMS
from .base import Engine, RankGroup, Request
from .cost import Event, Link, Timeline, play
from .messages import RankProgram
from .world import World, use_world

T = TypeVar("T")

DEFAULT_LINK = Link()
RUNNING, MEETING, RECEIVING, ENDED = "running", "meeting", "receiving", "ended"


class StateOfRank(NamedTuple):
    """State that each rank has for itself, as processes do: how to read and to set it, and the first state of a rank."""

    read: Callable[[], Any]
    set: Callable[[Any], None]
    first: Callable[[int], Any]


def first_numpy_state(rank: int) -> Any:
    """Return a state of NumPy's global generator that differs between ranks."""
    return np.random.RandomState(rank).get_state()


states_of_ranks = [
    StateOfRank(random.getstate, random.setstate, lambda rank: random.Random(rank).getstate()),
    StateOfRank(np.random.get_state, np.random.set_state, first_numpy_state),
]


class Collection(NamedTuple):
    """A collective that has ended, a message or work, for traces: who took part, what they asked for, and when."""

    op: str
    ranks: tuple[int, ...]
    request: Request
    events: list[Event]
    """Messages, with ranks of the world, in seconds since the start of the program."""


class Arrival(NamedTuple):
    """The arrival of a rank at a collective: what it asks for, and where."""

    group: RankGroup
    request: Request
    line: str
    op: str
    program: RankProgram[Any]


class Simulation:
    """Run a program on n simulated ranks.

    Parameters
    ----------
    size : int
    axes : mapping of str to int, optional
        The axes of the mesh. Default: one axis, `data`.
    algorithm : str
        The algorithm of collectives, such as "ring"; "direct" has the bits of all engines of hosts.
    link : Link, or function of two ranks
        The cost of a message, for the times of the trace.

    Attributes
    ----------
    trace : list of Collection
        The collectives, messages and work, in the order in which they ended.
    """

    def __init__(
        self,
        size: int,
        axes: Mapping[str, int] | None = None,
        algorithm: str = "direct",
        link: Link | Callable[[int, int], Link] = DEFAULT_LINK,
    ) -> None:
        known = sorted({name for generators in ALGORITHMS.values() for name in generators})
        if algorithm not in known:
            raise MismatchError(f"algorithm: got {algorithm!r}, expected one of {', '.join(known)}")
        self.size, self.algorithm, self.link = size, algorithm, link
        self.worlds = [World(SimulatedEngine(self, rank), axes) for rank in range(size)]
        self.trace: list[Collection] = []
        self.changed, self.turn = Condition(), 0
        self.states = [RUNNING] * size
        self.arrivals: dict[int, Arrival] = {}
        self.results: dict[int, Any] = {}  # rank -> the result of its collective
        # (source, target) -> the messages that nobody has received, with the times when they arrive
        self.mail: dict[tuple[int, int], deque[tuple[float, np.ndarray]]] = {}
        self.receiving: dict[int, tuple[int, str]] = {}  # rank -> the rank that it waits for, and its line
        self.seconds = [0.0] * size  # the time of each rank
        self.sent_until = [0.0] * size  # when the last message of each rank arrives
        self.error: BaseException | None = None
        self.own_states: list[list[Any]] = [[state.first(rank) for state in states_of_ranks] for rank in range(size)]

    def run(self, program: Callable[[], T]) -> list[T]:
        """Run the program once on each rank, and return what each returns.

        Raises
        ------
        MismatchError
            Ranks ask for different collectives, or wait for one that never comes. The message says where each is.
        BaseException
            The first error of a rank: all others stop.
        """
        returned: list[Any] = [None] * self.size
        outer_states = [state.read() for state in states_of_ranks]

        def run_rank(rank: int) -> None:
            try:
                self.wait_for_turn(rank)
                with use_world(self.worlds[rank]):
                    returned[rank] = program()
            except BaseException as error:  # raised again in the thread of the caller
                self.stop(error)
            self.pass_turn(rank, ENDED)

        threads = [Thread(target=run_rank, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for state, value in zip(states_of_ranks, outer_states, strict=True):
            state.set(value)
        if self.error is not None:
            raise self.error
        return returned

    @property
    def timeline(self) -> Timeline:
        """All messages and work so far, for pictures."""
        events = [event for collection in self.trace for event in collection.events]
        return Timeline([None] * self.size, events, max(self.seconds))

    # Turns.

    def wait_for_turn(self, rank: int) -> None:
        """Wait until it is the turn of a rank. Raise the error of another rank, if there is one."""
        with self.changed:
            self.changed.wait_for(lambda: self.error is not None or (self.turn == rank and self.states[rank] == RUNNING))
            if self.error is not None:
                raise StoppedError
        for state, value in zip(states_of_ranks, self.own_states[rank], strict=True):
            state.set(value)

    def pass_turn(self, rank: int, state: str) -> None:
        """Give the turn to the next rank that can run; if there is none, to nobody."""
        self.own_states[rank] = [kept.read() for kept in states_of_ranks]
        with self.changed:
            self.states[rank] = state
            following = [(rank + k) % self.size for k in range(1, self.size + 1)]
            runnable = [other for other in following if self.states[other] == RUNNING]
            if runnable:
                self.turn = runnable[0]
            elif self.error is None and any(other != ENDED for other in self.states):
                self.error = MismatchError(f"no rank can go on:\n{self.describe_ranks()}")
            self.changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Stop all ranks because of an error of one."""
        with self.changed:
            if self.error is None and not isinstance(error, StoppedError):
                self.error = error
            self.changed.notify_all()

    def describe_ranks(self) -> str:
        """Return a line for each rank: what it waits for, and where."""
        lines = []
        for rank, state in enumerate(self.states):
            if state == MEETING:
                arrival = self.arrivals[rank]
                text = f"waits in {arrival.request} at {arrival.line}"
            elif state == RECEIVING:
                source, line = self.receiving[rank]
                text = f"waits for a message of rank {source} at {line}"
            else:
                text = "has ended" if state == ENDED else "can run"
            lines.append(f"  rank {rank} {text}")
        return "\n".join(lines)

    # Collectives and messages.

    def meet(self, rank: int, arrival: Arrival) -> Any:
        """Wait until all ranks of a group ask for the same collective, and return this rank's result."""
        self.arrivals[rank] = arrival
        members = arrival.group.ranks
        waiting = [self.arrivals.get(member) for member in members]
        if not all(other is not None and other.group.ranks == members for other in waiting):
            self.pass_turn(rank, MEETING)
            self.wait_for_turn(rank)
            return self.results.pop(rank)
        requests = {self.arrivals[member].request for member in members}
        if len(requests) > 1:
            self.states = [MEETING if k in self.arrivals else state for k, state in enumerate(self.states)]
            raise MismatchError(f"ranks ask for different collectives:\n{self.describe_ranks()}")
        arrivals = [self.arrivals.pop(member) for member in members]
        self.complete(members, arrivals)
        for member in members:
            self.states[member] = RUNNING
        return self.results.pop(rank)

    def complete(self, members: Sequence[int], arrivals: Sequence[Arrival]) -> None:
        """Run the generators of all members of a group, and keep their results and the messages."""
        link, start = self.link, max(self.seconds[member] for member in members)
        timeline = play(
            [arrival.program for arrival in arrivals],
            (lambda source, target: link(members[source], members[target])) if callable(link) else link,
        )
        events = [
            event._replace(
                rank=members[event.rank],
                to=None if event.to is None else members[event.to],
                start=start + event.start,
                end=start + event.end,
            )
            for event in timeline.events
        ]
        self.trace.append(Collection(arrivals[0].op, tuple(members), arrivals[0].request, events))
        self.results.update(zip(members, map(copy_arrays, timeline.results), strict=True))
        for member in members:
            self.seconds[member] = start + timeline.seconds

    def send(self, source: int, target: int, data: np.ndarray) -> None:
        """Put a message into the mailbox of a rank. It arrives after those that the rank has sent before."""
        link = self.link(source, target) if callable(self.link) else self.link
        start = max(self.seconds[source], self.sent_until[source])
        self.sent_until[source] = end = start + link.seconds(data.nbytes)
        self.mail.setdefault((source, target), deque()).append((end, data.copy()))
        request = Request("send", (data.shape,), (str(data.dtype),))
        event = Event(source, start, end, "send", target, nbytes=data.nbytes)
        self.trace.append(Collection("send", (source, target), request, [event]))
        if self.receiving.get(target, (None,))[0] == source:
            self.states[target] = RUNNING

    def recv(self, source: int, target: int) -> np.ndarray:
        """Wait for the next message of a rank."""
        while not (box := self.mail.get((source, target))):
            self.receiving[target] = source, users_line()
            self.pass_turn(target, RECEIVING)
            self.wait_for_turn(target)
            self.receiving.pop(target)
        arrival, data = box.popleft()
        self.seconds[target] = max(self.seconds[target], arrival)
        return data

    def work(self, rank: int, seconds: float, name: str) -> None:
        """Let a rank compute for a while, in the times of the trace."""
        start = self.seconds[rank]
        self.seconds[rank] = start + seconds
        event = Event(rank, start, self.seconds[rank], name)
        self.trace.append(Collection("work", (rank,), Request("work", (), ()), [event]))


class StoppedError(BaseException):
    """Another rank has failed, so this one stops."""


class SimulatedEngine(Engine):
    """One rank of a simulation."""

    name = "simulated"

    def __init__(self, simulation: Simulation, rank: int) -> None:
        self.simulation, self.rank, self.size = simulation, rank, simulation.size
        self.algorithm = simulation.algorithm
        self.request = Request("barrier", (), ())

    def send(self, to: int, data: np.ndarray) -> None:
        """Put an array into the mailbox of a rank."""
        self.simulation.send(self.rank, to, data)

    def recv(self, source: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Take the next array of a rank; let the others run meanwhile."""
        return self.simulation.recv(source, self.rank)

    def work(self, seconds: float, name: str) -> None:
        """Note in the trace that this rank has computed."""
        self.simulation.work(self.rank, seconds, name)

    def announce(self, group: RankGroup, request: Request) -> None:
        """Keep the request for the next meeting."""
        self.request = request

    def run(self, op: str, group: RankGroup, *inputs: Any, dtype: np.dtype[Any]) -> Any:
        """Meet the other ranks of the group, of which the last one runs the generators of all."""
        generators = ALGORITHMS[op]
        program = generators.get(self.algorithm, generators["direct"])(group.rank, group.size, *inputs)
        return self.simulation.meet(self.rank, Arrival(group, self.request, users_line(), op, program))


def copy_arrays(result: Any) -> Any:
    """Copy the arrays of a result: they may be the memory of another rank, which continues before this one reads them."""
    return [x.copy() for x in result] if isinstance(result, list) else None if result is None else result.copy()


def run_script(simulation: Simulation, path: Path, arguments: Sequence[str]) -> None:
    """Run a script once on each rank, as `python path arguments` does."""
    with script_environment(path, arguments):
        simulation.run(lambda: runpy.run_path(str(path), run_name="__main__"))
