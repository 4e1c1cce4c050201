"""The fusion log: all decisions of the compiler, in order, for `explain` and the Fusion page.

While functions run, no log is active, and nothing is logged. `record_fusion` activates one: compilations inside its
block log each decision. No other data structure records which kernel computes and stores which nodes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import local
from typing import NamedTuple

from ..ir.graph import Node

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
    """One decision. Kernels are numbered in the order in which they are started, copies included."""

    kind: str
    kernel: int
    """-1 if the decision concerns no kernel or several."""
    nodes: tuple[Node, ...]
    reason: str = ""


class FusionLog:
    """All decisions, in order.

    Attributes
    ----------
    decisions : list of Decision
    count : int
        How many kernels were started.
    emitted : list of int
        The numbers of the kernels that were finished, in order.
    order : list of int
        For each kernel in `emitted`, the index of its step in the plan.
    """

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.count = 0
        self.emitted: list[int] = []
        self.order: list[int] = []

    def begin(self, nodes: Iterable[Node], loops: str) -> int:
        """Log that a kernel is started, and return its number. `loops` describes its iteration space."""
        self.count += 1
        self.note(STARTED, self.count - 1, nodes, loops)
        return self.count - 1

    def note(self, kind: str, kernel: int, nodes: Iterable[Node], reason: str = "") -> None:
        """Log one decision."""
        if kind in (EMITTED, COPIED):
            self.order.append(len(self.emitted))
            self.emitted.append(kernel)
        self.decisions.append(Decision(kind, kernel, tuple(nodes), reason))

    def copy(self, node: Node, reason: str, step: int | None = None) -> None:
        """Log a step that fuses nothing, such as a copy, and which may be inserted before other steps."""
        self.count += 1
        if step is not None:
            self.order = [k + (k >= step) for k in self.order]
        self.note(COPIED, self.count - 1, (node,), reason)
        if step is not None:
            self.order[-1] = step

    def kernel_of_step(self, step: int) -> int:
        """Return the number of the kernel that a step launches."""
        return self.emitted[self.order.index(step)]

    def remove_copies(self, steps: Sequence[int]) -> None:
        """Remove the decisions about copies that are not needed after all: the indices of their steps, in order."""
        removed = {kernel for kernel, k in zip(self.emitted, self.order, strict=True) if k in steps}
        self.decisions = [x for x in self.decisions if x.kind != COPIED or x.kernel not in removed]
        self.order = [k - bisect_left(steps, k) for k in self.order if k not in steps]
        self.emitted = [kernel for kernel in self.emitted if kernel not in removed]

    def move_steps(self, new_index: Mapping[int, int]) -> None:
        """Log a new order of the steps: old index -> new index."""
        self.order = [new_index[k] for k in self.order]


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
