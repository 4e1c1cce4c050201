"""The fusion log: all decisions of the compiler, in order, for `explain` and the Fusion page.

While functions run, no log is active, and nothing is logged. `record_fusion` activates one: compilations inside its
block log each decision. No other data structure records which kernel computes and stores which nodes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import NamedTuple

from ..ir.graph import Node

PLACED = "placed"  # a node has joined a kernel, or has begun it: all nodes of that kernel
GROUPED = "joined"  # two groups of nodes will share a kernel: (a node of one group, a node of the other)
STARTED = "begun"  # a kernel is started for some nodes
INLINED = "taken"  # a kernel computes a pointwise op
REDUCTION_FUSED = "held"  # a kernel computes a reduction or a matmul
REFUSED = "refused"  # two nodes are not fused: (producer, consumer)
RESTARTED = "again"  # the backend refuses a prologue or an epilogue: the matmul is built again, and loads or stores these
EMITTED = "made"  # a kernel is finished, and stores these nodes
COPIED = "copied"  # a step fuses nothing, such as a copy
IN_PLACE = "in place"  # a kernel stores a node in an argument: (node, argument)


class Decision(NamedTuple):
    """One decision. Kernels are numbered in the order in which they are started, copies included: some are elided later."""

    kind: str
    kernel: int
    """-1 if the decision concerns no kernel or several."""
    nodes: tuple[Node, ...]
    reason: str = ""


class FusionLog:
    """All decisions, in order. A step has the numbers of its kernels; `count` kernels were started."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.count = 0

    def begin(self, nodes: Iterable[Node], loops: str) -> int:
        """Log that a kernel is started, and return its number. `loops` describes its iteration space."""
        return self.add(STARTED, nodes, loops)

    def copy(self, node: Node, reason: str) -> int:
        """Log a step that fuses nothing, such as a copy, and return the number of its kernel."""
        return self.add(COPIED, (node,), reason)

    def add(self, kind: str, nodes: Iterable[Node], reason: str) -> int:
        """Log the first decision about a kernel, and return its number."""
        self.count += 1
        self.note(kind, self.count - 1, nodes, reason)
        return self.count - 1

    def note(self, kind: str, kernel: int, nodes: Iterable[Node], reason: str = "") -> None:
        """Log one decision."""
        self.decisions.append(Decision(kind, kernel, tuple(nodes), reason))


class ActiveLog(local):
    """The log of this thread, or None."""

    def __init__(self) -> None:
        self.log: FusionLog | None = None


active_log = ActiveLog()


@contextmanager
def record_fusion() -> Iterator[FusionLog]:
    """Log the decisions of the compilations that run inside a `with` block."""
    outer_log, active_log.log = active_log.log, FusionLog()
    try:
        yield active_log.log
    finally:
        active_log.log = outer_log
