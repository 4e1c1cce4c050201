"""What a schedule decided, in the order in which it did, for whoever asks.

Nobody asks while a function runs: then nothing is noted. `record_fusion` is for the one who explains; the schedules that
are made
inside its block write down each decision, and from these alone follows which kernel computes and stores what. Nothing here
decides anything.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import NamedTuple

from ..ir.graph import Node

GROUPED = "joined"  # two groups of values will share a kernel: those that come, those that are there
STARTED = "begun"  # a kernel, for some values
INLINED = "taken"  # a function of single elements is computed by a kernel
REDUCTION_FUSED = "held"  # a fold or a product is
REFUSED = "refused"  # one value is not computed where another is: (producer, consumer)
RESTARTED = "again"  # a kernel is given up, and begun anew: once these lie in memory, or, for a reason, so that they will
EMITTED = "made"  # a kernel is finished, and stores these
COPIED = "copied"  # a kernel that only puts a value somewhere
IN_PLACE = "in place"  # a kernel stores a value where an argument lies: (value, argument)


class Refusal(NamedTuple):
    """A merge that did not happen."""

    producer: Node
    """What was computed by a kernel of its own, or lies in memory for another reason."""
    consumer: Node
    """What is computed from it."""
    reason: str


class Decision(NamedTuple):
    """One decision. Kernels are numbered as they are begun, copies among them."""

    kind: str
    kernel: int
    """-1 where it is about none."""
    nodes: tuple[Node, ...]
    reason: str = ""


class FusionLog:
    """Decisions in order."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.count = 0  # kernels that were begun
        self.emitted: list[int] = []  # of these, the ones that are finished, in order
        self.order: list[int] = []  # which step of the plan each of those became; empty where each is one

    def begin(self, nodes: Iterable[Node], over: str) -> int:
        """A kernel is begun; gives its number."""
        self.count += 1
        self.note(STARTED, self.count - 1, nodes, over)
        return self.count - 1

    def note(self, kind: str, kernel: int, nodes: Iterable[Node], reason: str = "") -> None:
        """One decision."""
        if kind in (EMITTED, COPIED):
            self.emitted.append(kernel)
        self.decisions.append(Decision(kind, kernel, tuple(nodes), reason))

    def copy(self, node: Node, reason: str) -> None:
        """A kernel that only puts a value somewhere."""
        self.count += 1
        self.note(COPIED, self.count - 1, (node,), reason)


class ActiveLog(local):
    """Where decisions of this thread are written down, if anybody asks."""

    def __init__(self) -> None:
        self.log: FusionLog | None = None


active_log = ActiveLog()


@contextmanager
def record_fusion() -> Iterator[FusionLog]:
    """The decisions of the schedules that are made in a block of code."""
    before, active_log.log = active_log.log, FusionLog()
    try:
        yield active_log.log
    finally:
        active_log.log = before
