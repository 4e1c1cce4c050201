"""Kernels that grow while `form_kernels` runs: groups of nodes that can be united, in a graph without circles.

A kernel that would be too long, or would make too many passes over its rows, is cut where the fewest elements must be
stored: each part stores the values that later parts load. The time to compile a kernel grows with its length. With parts of
limited length the total time stays linear, and equal parts are compiled once.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..core.interning import toposort
from ..ir.array_functions import Matmul, Reduce
from ..ir.graph import Node
from ..ir.scan import is_scan
from .fusibility import (
    ALREADY_STORED,
    ONE_MATMUL_PER_KERNEL,
    ONE_SCAN_PER_KERNEL,
    REDUCTION_NEEDS_ROWS,
    SCAN_NEEDS_ROWS,
    WOULD_WAIT,
    why_not_merged,
)
from .fusible_region import is_recomputable
from .iteration_space import IterationSpace

MAX_VISITED_KERNELS = 500  # kernels that a search for a circle visits; if it finds none by then, the nodes are not fused


class RootReads(NamedTuple):
    """All that a kernel reads to compute one root."""

    space: IterationSpace
    """The loops of a kernel that computes only the root."""
    leaves: dict[Node, list[Node]]
    """Other roots and arrays, where inlining ends, each with the views of it that the kernel reads."""
    required: dict[Node, str]
    """Nodes that must be in memory, each with the reason: sources of gathers, operands of separate steps."""
    computed: list[Node]
    """The nodes that the kernel inlines or loads."""
    sources: list[Node]
    """The roots and arrays of `leaves` and `required`."""


class GrowingKernel:
    """A kernel that nodes may still join.

    Attributes
    ----------
    space : IterationSpace
    is_closed : bool
        True if nothing may join it.
    core : Node or None
        The matmul or the scan whose epilogue it computes.
    members : list of Node
        The roots that it computes, inputs first.
    inlined_members : set of Node
        Those of them that it may inline into others: pointwise nodes.
    arrays : dict of Node to None
        The arrays that it loads, as an ordered set.
    computed : set of Node
        The nodes that it inlines or loads.
    passes : dict of Node to int
        For each root, the longest chain of reductions in this kernel that it depends on.
    producers, consumers : set of GrowingKernel
        Kernels whose results it loads, and kernels that load its results.
    """

    def __init__(self, space: IterationSpace, is_closed: bool = False, core: Node | None = None) -> None:
        self.space, self.is_closed, self.core = space, is_closed, core
        self.members: list[Node] = []
        self.inlined_members: set[Node] = set()
        self.arrays: dict[Node, None] = {}
        self.computed: set[Node] = set()
        self.passes: dict[Node, int] = {}
        self.producers: set[GrowingKernel] = set()
        self.consumers: set[GrowingKernel] = set()

    @property
    def priority(self) -> int:
        """Return which kernels a root joins first: those that reduce rows, then those of matmuls and scans, then others."""
        return 0 if self.space.dims else 1 if self.core is not None else 2

    def add(self, root: Node, reads: RootReads, passes: int) -> None:
        """Add a root."""
        if reads.space.dims or (len(self.members) == 1 and self.core is not None):
            self.space = reads.space
        self.members.append(root)
        self.inlined_members |= {root} if is_recomputable(root) else set()
        self.computed.update(reads.computed)
        self.passes[root] = passes

    def load(self, array: Node, producer: "GrowingKernel | None") -> None:
        """Add an array that this kernel loads, and the kernel that stores it."""
        self.arrays[array] = None
        if producer is not None:
            self.producers.add(producer)
            producer.consumers.add(self)

    def unite(self, other: "GrowingKernel") -> None:
        """Take over the members of another kernel. Neither loads results of the other."""
        self.space = self.space if self.space.dims else other.space
        self.members += other.members
        self.inlined_members |= other.inlined_members
        self.arrays |= other.arrays
        self.computed |= other.computed
        self.passes |= other.passes
        for producer in other.producers:
            producer.consumers.discard(other)
            producer.consumers.add(self)
        for consumer in other.consumers:
            consumer.producers.discard(other)
            consumer.producers.add(self)
        self.producers |= other.producers
        self.consumers |= other.consumers

    def why_not_united(self, other: "GrowingKernel") -> str | None:
        """Return why this kernel and another cannot be one; None if they can."""
        cores = [x for x in (self.core, other.core) if x is not None]
        if len(cores) == 2:
            return ONE_SCAN_PER_KERNEL if any(map(is_scan, cores)) else ONE_MATMUL_PER_KERNEL
        if cores:
            has_rows = self.space.dims or other.space.dims
            return ALREADY_STORED if not has_rows else SCAN_NEEDS_ROWS if is_scan(cores[0]) else REDUCTION_NEEDS_ROWS
        if (reason := why_not_merged(self.space, other.space)) is not None:
            return reason
        if len(self.computed | other.computed) > MAX_OPS:
            return TOO_MANY_OPS
        return WOULD_WAIT if self.reaches([other]) or other.reaches([self]) else None

    def is_too_long(self, reads: RootReads) -> bool:
        """Return whether this kernel would compute too many ops with another root."""
        count = len(self.computed) + len(reads.computed)
        return count > MAX_OPS and len(self.computed.union(reads.computed)) > MAX_OPS

    def reaches(self, targets: Collection["GrowingKernel"]) -> bool:
        """Return whether one of the targets waits for this kernel: it loads its results, or those of one that waits.

        The search gives up after MAX_VISITED_KERNELS and returns True.
        """
        if not targets:
            return False
        wanted, pending, visited = {*targets}, [self], {self}
        while pending:
            for consumer in pending.pop().consumers:
                if consumer in wanted or len(visited) > MAX_VISITED_KERNELS:
                    return True
                if consumer not in visited:
                    visited.add(consumer)
                    pending.append(consumer)
        return False


def separate_kernel(root: Node) -> GrowingKernel:
    """Return a kernel that computes one root, and that others may join only if the root is a matmul or a scan."""
    is_core = isinstance(root.function, Matmul) or is_scan(root)
    return GrowingKernel(IterationSpace(root.shape, ()), not is_core, root if is_core else None)


def sort_kernels(kernels: Iterable[GrowingKernel], rank: dict[Node, int], last: set[Node]) -> list[GrowingKernel]:
    """Sort kernels, producers before consumers.

    Parameters
    ----------
    kernels : iterable of GrowingKernel
    rank : dict
        The topological rank of each root.
    last : set of Node
        Values that are stored in arguments: their kernels run after all that may read the old contents.
    """

    def key(kernel: GrowingKernel) -> tuple[bool, int]:
        return not last.isdisjoint(kernel.members), max(rank[root] for root in kernel.members)

    ordered = sorted(kernels, key=key)
    if len(ordered) == 1:
        return ordered
    included = set(ordered)

    def producers(kernel: GrowingKernel) -> list[GrowingKernel]:
        return sorted(kernel.producers & included, key=key)

    return toposort(ordered, producers)


MAX_OPS = 1000  # ops in one kernel; beyond that, compiling takes longer than fusion saves
MAX_PASSES = 6  # passes of a kernel over each row; each pass recomputes the pointwise values that it needs
TOO_MANY_OPS = f"a kernel computes at most {MAX_OPS} ops"
TOO_MANY_PASSES = f"a kernel makes at most {MAX_PASSES} passes over each row"


class KernelPart(NamedTuple):
    """A part of a split kernel: the nodes that it stores, and why it is a separate kernel."""

    stored: list[Node]
    reason: str


def split_into_parts(order: Sequence[Node], inputs_of: Callable[[Node], Sequence[Node]]) -> list[KernelPart]:
    """Split a kernel into parts that run one after the other, each with at most MAX_OPS ops and MAX_PASSES passes.

    Parameters
    ----------
    order : sequence of Node
        The nodes that the kernel would compute and load, inputs first.
    inputs_of : function
        Returns the nodes that a node is computed from; none for a node that is loaded.

    Returns
    -------
    list of KernelPart
        All parts but the last. Each stores the nodes that later parts need. The list is empty if the kernel need not be
        split.
    """
    inputs = [inputs_of(node) for node in order]
    reduction_count = sum(isinstance(node.function, Reduce) for node in order)
    if len(order) <= MAX_OPS and reduction_count <= MAX_PASSES:
        return []
    index = {node: k for k, node in enumerate(order)}
    last_use = list(range(len(order)))
    for k, xs in enumerate(inputs):
        for x in xs:
            if x in index and inputs[index[x]]:
                last_use[index[x]] = k
    size_changes = [0] * (len(order) + 1)
    for k, end in enumerate(last_use):
        size_changes[k + 1] += order[k].size
        size_changes[min(end, len(order) - 1) + 1] -= order[k].size
    cut_sizes = list(accumulate(size_changes))  # elements that a cut before each node would store
    parts, start = list[KernelPart](), 0
    while (stop := find_limit(order, inputs, index, start)) < len(order):
        cut = min(range((start + stop) // 2 + 1, stop + 1), key=lambda k: (cut_sizes[k], -k))
        stored = [order[k] for k in range(start, cut) if last_use[k] >= cut and inputs[k]]
        reason = TOO_MANY_OPS if stop - start == MAX_OPS else TOO_MANY_PASSES
        parts.append(KernelPart(stored, reason))
        start = cut
    return [part for part in parts if part.stored]


def find_limit(order: Sequence[Node], inputs: Sequence[Sequence[Node]], index: dict[Node, int], start: int) -> int:
    """Return the index at which a kernel that begins at `start` must end. All nodes before `start` are in memory."""
    stop = min(start + MAX_OPS, len(order))
    passes: dict[int, int] = {}  # node -> length of the longest chain of reductions that it depends on
    for k in range(start, stop):
        before = max((passes.get(index[x], 0) for x in inputs[k] if x in index), default=0)
        passes[k] = before + (isinstance(order[k].function, Reduce) and bool(inputs[k]))
        if passes[k] > MAX_PASSES:
            return k
    return stop
