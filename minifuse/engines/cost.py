"""A cost model of programs of messages: run all ranks in one process, and say when each thing happens.

A message of b bytes takes `latency + b * seconds_per_byte` seconds. A rank sends one message at a time and receives one at a
time, and can compute meanwhile; its other messages wait in a queue. These are the usual assumptions: the alpha-beta model
with one port. Nothing here reads a clock, so the same programs have the same timeline on every machine.

The model leaves out the time of additions, and messages that slow each other down inside the network.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import ceil, log2
from typing import Any, NamedTuple

from ..core.errors import DistributedError, IndexingError
from .messages import Array, RankProgram, Recv, Send, Work

ARRIVE, RESUME = 0, 1  # what can happen: a message arrives, a rank continues. Of one time, messages are first


class MessageError(DistributedError):
    """A message is never received."""


class Deadlock(MessageError):  # noqa: N818 - the term of the field
    """Ranks wait for messages that no rank sends."""


class Link(NamedTuple):
    """The cost of a message between two ranks.

    >>> Link(latency=5e-6, seconds_per_byte=1 / 10e9).seconds(10**6)
    0.000105
    """

    latency: float = 5e-6  # seconds
    seconds_per_byte: float = 1 / 10e9

    def seconds(self, nbytes: float) -> float:
        """Return how long a message of `nbytes` bytes takes."""
        return self.latency + nbytes * self.seconds_per_byte


DEFAULT_LINK = Link()


class Rounds(NamedTuple):
    """The cost of an algorithm by a formula: so many rounds, in each of which a rank sends one message.

    If it `splits` the array, a message is the n-th part of it. The array is that of one rank or, for all-gather, the result.
    """

    count: Callable[[int], int]
    splits: bool

    def seconds(self, size: int, nbytes: float, link: Link) -> float:
        """Return the time for `size` ranks and an array of `nbytes` bytes: that of `play`, if the parts are equal."""
        return self.count(size) * link.seconds(nbytes / size if self.splits else nbytes)


COSTS: dict[str, dict[str, Rounds]] = {
    "all_reduce": {
        "ring": Rounds(lambda n: 2 * (n - 1), True),
        "tree": Rounds(lambda n: 2 * ceil(log2(n)), False),
        "direct": Rounds(lambda n: 2 * (n - 1), True),
        "gather_first": Rounds(lambda n: n - 1, False),
    },
    "reduce_scatter": {"ring": Rounds(lambda n: n - 1, True), "direct": Rounds(lambda n: n - 1, True)},
    "all_gather": {"ring": Rounds(lambda n: n - 1, True), "direct": Rounds(lambda n: n - 1, True)},
    "broadcast": {"tree": Rounds(lambda n: ceil(log2(n)), False), "direct": Rounds(lambda n: n - 1, False)},
    "reduce": {"tree": Rounds(lambda n: ceil(log2(n)), False), "direct": Rounds(lambda n: n - 1, False)},
    "all_to_all": {"direct": Rounds(lambda n: n - 1, True)},
    "shift": {"direct": Rounds(lambda n: int(n > 1), False)},
}


class Event(NamedTuple):
    """A message that rank `rank` sends to rank `to`, or, if `to` is None, work of that rank. Times are in seconds."""

    rank: int
    start: float
    end: float
    name: str = ""
    to: int | None = None
    chunk: int = 0
    nbytes: int = 0


class Timeline(NamedTuple):
    """The run of all programs: what each returned, the events in the order of their starts, and the end of the last."""

    results: list[Any]
    events: list[Event]
    seconds: float

    @property
    def work(self) -> list[Event]:
        """The events in which a rank computes."""
        return [event for event in self.events if event.to is None]

    @property
    def messages(self) -> list[Event]:
        """The events in which a rank sends."""
        return [event for event in self.events if event.to is not None]

    def bytes_sent(self, rank: int) -> int:
        """Return the number of bytes that a rank sends."""
        return sum(event.nbytes for event in self.messages if event.rank == rank)

    def idle_share(self) -> float:
        """Return the share of the time in which ranks do not compute, 0 to 1: the mean over ranks."""
        busy = sum(event.end - event.start for event in self.work)
        return 1 - busy / (self.seconds * len(self.results)) if self.seconds else 0.0


def play(programs: Sequence[RankProgram[Any]], link: Link | Callable[[int, int], Link] = DEFAULT_LINK) -> Timeline:
    """Run one program for each rank until all have ended, with the times of a cost model.

    Parameters
    ----------
    programs : sequence of generators
        The program of rank 0, of rank 1, ...
    link : Link, or function of two ranks
        The cost of a message; a function returns that of a message from one rank to another.

    Raises
    ------
    Deadlock
        If ranks wait for messages that are never sent; the error names all of them, and what they wait for.
    MessageError
        If all programs have ended, and a message was never received.

    Examples
    --------
    >>> import numpy as np
    >>> from minifuse.engines.algorithms import ring_all_reduce
    >>> xs = [np.full(4, rank) for rank in range(4)]
    >>> timeline = play([ring_all_reduce(rank, 4, x, np.add) for rank, x in enumerate(xs)], Link(1, 0))
    >>> timeline.results[2], timeline.seconds  # six rounds, and each takes a second
    (array([6, 6, 6, 6]), 6.0)
    """
    return _Player(programs, link if callable(link) else lambda source, target: link).run()


class _Player:
    """The state of a run: what happens next, what each rank waits for, and which messages are where."""

    def __init__(self, programs: Sequence[RankProgram[Any]], link: Callable[[int, int], Link]) -> None:
        self.programs, self.link, size = programs, link, len(programs)
        self.results: list[Any] = [None] * size
        self.running = set(range(size))
        self.waits: dict[int, Recv] = {}  # of each rank that waits
        self.events: list[Event] = []
        self.agenda = [(0.0, RESUME, rank) for rank in range(size)]  # a heap: the earliest is next
        self.queues: list[deque[Send]] = [deque() for _ in range(size)]  # messages that wait for their rank's port
        self.sending: list[Send | None] = [None] * size  # the message under way
        self.receiving = [False] * size
        self.arrived: dict[tuple[int, int], deque[Array]] = defaultdict(deque)  # source, target -> not yet received

    def run(self) -> Timeline:
        """Handle all that happens at one time, then start the messages that are free to start, and so on."""
        now = 0.0
        while self.agenda:
            now = self.agenda[0][0]
            while self.agenda and self.agenda[0][0] == now:
                _, kind, rank = heappop(self.agenda)
                if kind == ARRIVE:
                    self.deliver(now, rank)
                else:
                    self.resume(now, rank)
            self.start_messages(now)
        self.check_end()
        return Timeline(self.results, sorted(self.events, key=lambda event: (event.start, event.rank)), now)

    def resume(self, now: float, rank: int, received: Array | None = None) -> None:
        """Run the program of a rank up to where it computes, waits or ends."""
        program = self.programs[rank]
        try:
            request = program.send(received)  # type: ignore[arg-type]  # None starts a generator
            while not isinstance(request, Work):
                if isinstance(request, Send):
                    self.post(rank, request)
                    request = next(program)
                elif queue := self.arrived[request.source, rank]:
                    request = program.send(queue.popleft())
                else:
                    self.waits[rank] = request
                    return
        except StopIteration as stop:
            self.results[rank] = stop.value
            self.running.remove(rank)
            return
        self.events.append(Event(rank, now, now + request.seconds, request.name))
        heappush(self.agenda, (now + request.seconds, RESUME, rank))

    def post(self, rank: int, message: Send) -> None:
        """Put a message into the queue of its rank."""
        if not 0 <= message.to < len(self.programs):
            raise IndexingError(f"rank {rank} sends to rank {message.to}; there are ranks 0 to {len(self.programs) - 1}")
        self.queues[rank].append(message)

    def start_messages(self, now: float) -> None:
        """Start the first message of each queue, if both its ranks' ports are free."""
        for rank, queue in enumerate(self.queues):
            if queue and self.sending[rank] is None and not self.receiving[queue[0].to]:
                self.sending[rank] = message = queue.popleft()
                self.receiving[message.to] = True
                nbytes = message.data.nbytes
                end = now + self.link(rank, message.to).seconds(nbytes)
                self.events.append(Event(rank, now, end, to=message.to, chunk=message.chunk, nbytes=nbytes))
                heappush(self.agenda, (end, ARRIVE, rank))

    def deliver(self, now: float, rank: int) -> None:
        """End the message that a rank is sending; its target continues if it waits for it."""
        message, self.sending[rank] = self.sending[rank], None
        assert message is not None
        self.receiving[message.to] = False
        if (wait := self.waits.get(message.to)) and wait.source == rank:
            del self.waits[message.to]
            self.resume(now, message.to, message.data)
        else:
            self.arrived[rank, message.to].append(message.data)

    def check_end(self) -> None:
        """Raise an error if programs have not ended, or have left messages."""
        if self.running:
            waits = [f"rank {rank} waits for rank {self.waits[rank].source}" for rank in sorted(self.running)]
            ended = [f"rank {rank} has ended" for rank in range(len(self.programs)) if rank not in self.running]
            raise Deadlock(
                f"no rank can continue: {', '.join(waits + ended)}; each `Recv` needs a `Send` by the rank it names"
            )
        if left := [ranks for ranks, queue in self.arrived.items() if queue]:
            messages = ", ".join(f"from rank {source} to rank {target}" for source, target in sorted(left))
            raise MessageError(f"messages {messages} are never received; each `Send` needs a `Recv` by the rank it names")
