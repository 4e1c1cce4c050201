"""A queue for the heavy work of a server: visitors are served in the order in which they came, so many at a time.

The queue runs nothing and calls nobody. A visitor asks for a place again and again, and silence means that the visitor left.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from .public import AT_HOME, NotOfferedError, Policy

PATIENCE_S = 15.0  # seconds of silence after which a visitor has left; pages ask every second


def is_never_busy() -> bool:
    """Return False: no work is under way."""
    return False


@dataclass
class Ticket:
    """The place of a visitor in the line."""

    asked: float
    """The time of the last question, by the clock of the queue."""
    is_busy: Callable[[], bool] = is_never_busy
    """Whether work of the visitor is under way: the turn lasts until it ends."""
    began: float | None = None
    """The time at which the turn began."""
    leaves: bool = False


class JobQueue:
    """A line of visitors, of whom the first few may work.

    Parameters
    ----------
    policy : Policy
        Its `jobs_at_once`, `max_waiting` and `turn_s`.
    clock
        Function that returns seconds.
    """

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._tickets: dict[Hashable, Ticket] = {}  # in the order of the line

    def ask(self, who: Hashable, is_busy: Callable[[], bool] = is_never_busy) -> int:
        """Return the place of a visitor in the line; 0 is a turn. A visitor without a place gets the last one.

        Parameters
        ----------
        who
            The visitor.
        is_busy
            Function that returns True while work of this visitor is under way. The turn does not end before.

        Raises
        ------
        NotOfferedError
            The line is full.
        """
        with self._lock:
            now = self._clock()
            self._drop_gone(now)
            at_once, most = self.policy.jobs_at_once, self.policy.max_waiting
            if who not in self._tickets and len(self._tickets) >= at_once + most:
                raise NotOfferedError(
                    f"{len(self._tickets) - at_once:g} visitors wait already, and at most {most:g} may; try again in a "
                    f"minute, or use minifuse {AT_HOME}"
                )
            ticket = self._tickets.setdefault(who, Ticket(now))
            ticket.asked, ticket.is_busy, ticket.leaves = now, is_busy, False
            self._pass_turns(now)
            before = list(self._tickets).index(who)
            if before >= at_once:
                return int(before - at_once) + 1
            ticket.began = now if ticket.began is None else ticket.began
            return 0

    def leave(self, who: Hashable) -> None:
        """Free the place of a visitor, as soon as work that has begun ends."""
        with self._lock:
            if ticket := self._tickets.get(who):
                ticket.leaves = True
            self._drop_gone(self._clock())

    def __len__(self) -> int:
        """Return the number of visitors that work or wait."""
        with self._lock:
            self._drop_gone(self._clock())
            return len(self._tickets)

    def _drop_gone(self, now: float) -> None:
        for who, ticket in list(self._tickets.items()):
            if (ticket.leaves or now - ticket.asked > PATIENCE_S) and not ticket.is_busy():
                del self._tickets[who]

    def _pass_turns(self, now: float) -> None:
        """Send those to the end whose turn was long enough, if others wait."""
        at_once = self.policy.jobs_at_once
        if len(self._tickets) <= at_once:
            return
        for who in list(self._tickets)[: int(at_once)]:
            ticket = self._tickets[who]
            if ticket.began is not None and now - ticket.began > self.policy.turn_s and not ticket.is_busy():
                ticket.began = None
                self._tickets[who] = self._tickets.pop(who)


class RateLimit:
    """A limit of how often something may happen in a minute."""

    PERIOD_S = 60.0

    def __init__(self, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self._clock = clock
        self._times: deque[float] = deque()

    def count(self, what: str) -> None:
        """Count once more.

        Raises
        ------
        NotOfferedError
            It was often enough in the last minute. This time does not count.
        """
        now = self._clock()
        while self._times and now - self._times[0] >= self.PERIOD_S:
            self._times.popleft()
        if len(self._times) >= self.most:
            rest = math.ceil(self.PERIOD_S - (now - self._times[0]))
            raise NotOfferedError(
                f"{what}: got {len(self._times) + 1} in a minute, and a visitor of this server has {self.most:g}; wait "
                f"{rest} s, or use minifuse {AT_HOME}"
            )
        if self.most < math.inf:
            self._times.append(now)
