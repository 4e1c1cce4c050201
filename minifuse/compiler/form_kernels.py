"""Group nodes into kernels: one sweep over the nodes that may be stored, inputs first, without backtracking.

These nodes are the roots of kernels: outputs, operands of matmuls, reductions, matmuls, values that `choose_materialized`
chose. All other nodes are pointwise, and every kernel that needs one inlines it. The sweep adds each root to a kernel that
computes one of its inputs; if it can join several, they are united. If it can join none, it joins a kernel with equal loops
that loads one of its arrays, or starts a kernel.

Kernels never wait for each other in a circle: a root joins a kernel only if none of its other inputs is computed from a
result of that kernel. `fusibility` is the table of edges: it says why two nodes cannot share a kernel.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from ..backends.base import Backend
from ..core.interning import toposort
from ..ir.array_functions import Iota, Matmul, PadSlice, Reduce, SliceUpdate, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND, ScatterReduce
from ..ir.graph import Node, inputs_of, strip_views
from ..ir.scan import Scan, is_scan
from .fusibility import (
    ALREADY_STORED,
    COMPOSITE_IS_ONE_CALL,
    GATHER_NEEDS_MEMORY,
    GATHER_NOT_IN_MATMUL,
    MATMUL_REORDERED,
    MIN_POINTS_TO_SPLIT,
    REDUCTION_NEEDS_ROWS,
    SAVED_FOR_BACKWARD,
    SCAN_NEEDS_ROWS,
    SCAN_NOT_VECTORIZED,
    SCAN_REORDERED,
    SCANNED_IS_GATHERED,
    SCANNED_IS_POINTWISE,
    SEPARATE,
    UPDATE_NEEDS_MEMORY,
    WOULD_WAIT,
    has_dear_op,
    is_reduction,
    is_serial,
    own_space,
    reduces_scanned_rows,
    why_not_fusible,
    why_not_in_space,
    why_not_merged,
    why_not_prologue,
)
from .fusible_region import FusibleRegion, LoadedByKernel, is_recomputable
from .fusion_log import GROUPED, PLACED, active_log
from .graph import EARLY, LATE, Graph, KernelGroup, Refusal
from .iteration_space import IterationSpace
from .kernel_groups import (
    MAX_OPS,
    MAX_PASSES,
    TOO_MANY_OPS,
    TOO_MANY_PASSES,
    GrowingKernel,
    RootReads,
    separate_kernel,
    sort_kernels,
    split_into_parts,
)
from .reindexing import RESHAPE_NEEDS_COPY, ViewChains
from .slice_updates import SliceUpdates

MAX_KERNEL_ARRAYS = 12  # arrays that a kernel for unrelated values reads; with more, threads run out of registers
MAX_RELATED_ARRAYS = 32  # arrays of a kernel that are searched for related kernels
MAX_SHARING_KERNELS = 8  # readers of an array that are tried


def form_kernels(graph: Graph, target: Backend) -> Graph:
    """Group what is stored into kernels; every other node is inlined into the kernels that need it.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> e = lambda x: (x - x.max(1, keepdim=True)).exp()
    >>> print(run_pass(form_kernels, trace(lambda x: e(x) / e(x).sum(1, keepdim=True), (64, 128)))[1])
    max0 = max(x0, dim=1)  # kernel 0
    expand0 = expand(max0, 64, 128)
    sub0 = x0 - expand0
    exp0 = exp(sub0)
    sum0 = sum(exp0, dim=1)  # kernel 0
    expand1 = expand(sum0, 64, 128)
    div0 = exp0 / expand1  # kernel 0
    """
    if (root := find_only_root(graph)) is not None:
        return graph.decide(kernels=(KernelGroup(IterationSpace(root.shape, ()), (root,), (root,), EARLY),))
    sweep = KernelSweep(graph, target)
    for phase in graph.phases:
        sweep.add_phase(phase)
    return graph.decide(kernels=tuple(sweep.groups()), refusals=tuple(sweep.refusals()))


def find_only_root(graph: Graph) -> Node | None:
    """Return the node that the call computes, if its kernel inlines all other nodes; else None.

    So it is if all ops are pointwise, each of them is read without a view, and none is stored for another.
    """
    roots = {*map(strip_views, graph.roots)}
    if len(roots) != 1 or graph.phases != (EARLY,) or graph.materialized or len(graph.nodes) > MAX_OPS:
        return None
    if len(graph.ops) > 1 and graph.has(View, GatherND):
        return None
    (root,) = roots
    others = [x for x in graph.ops if not x.is_pointwise]
    return root if root.is_pointwise and root not in graph.memory and not others else None


class KernelSweep:
    """The kernels so far. A kernel of a phase loads the results of earlier phases, and does not join their kernels."""

    def __init__(self, graph: Graph, target: Backend) -> None:
        self.target = target
        self.graph, self.chains, self.log = graph, ViewChains(), active_log.log
        self.updates, self.has_gathers = SliceUpdates(graph), graph.has(GatherND)
        self.outputs, self.saved = graph.stored_roots, set(map(strip_views, graph.saved))
        self.materialized = dict(graph.materialized)
        self.memory = set(graph.memory)
        self.loaded = {*self.memory}  # nodes that kernels load, but for the kernel that computes them
        self.region = FusibleRegion(self.loaded, self.chains)
        self.kernels: dict[int, list[GrowingKernel]] = {}  # of each phase
        self.kernel_of: dict[Node, GrowingKernel] = {}  # the kernels of this phase
        self.all_kernels: dict[Node, GrowingKernel] = {}
        self.composites: dict[object, GrowingKernel] = {}
        self.readers: dict[Node, list[Node]] = {}  # array -> roots of this phase whose kernels load it
        self.rank: dict[Node, int] = {}
        self.refused: dict[tuple[Node, Node], str] = {}

    def add_phase(self, phase: int) -> None:
        """Form the kernels of a phase."""
        self.kernel_of, self.readers, self.composites = {}, {}, {}
        if phase == LATE:
            self.memory |= {node for _, node in self.graph.contents}
        for root in self.find_roots([x for x in self.graph.requested(phase) if x not in self.memory]):
            self.place(root)
        stored_in_arguments = {strip_views(store.value) for store in self.graph.stores}
        self.kernels[phase] = sort_kernels(dict.fromkeys(self.kernel_of.values()), self.rank, stored_in_arguments)
        self.memory |= self.kernel_of.keys()

    def find_roots(self, requested: Sequence[Node]) -> list[Node]:
        """Return the nodes that may be stored, inputs first: the requested nodes, and all that no kernel can inline."""
        needed = self.updates.needed_inputs if self.graph.has(PadSlice, SliceUpdate) else inputs_of
        order = toposort(requested, lambda x: () if x in self.memory else needed(x))
        self.rank |= {node: len(self.rank) + k for k, node in enumerate(order) if node not in self.rank}
        chosen = {*requested, *[x for x in order if x not in self.memory and self.is_stored(x)]}
        self.loaded |= self.memory | chosen
        self.region = FusibleRegion(self.loaded, self.chains)
        return [x for x in order if x in chosen]

    def is_stored(self, node: Node) -> bool:
        """Return whether a kernel may have to store a node that the call does not return."""
        is_inlined = is_recomputable(node) or isinstance(node.function, View) or not node.inputs
        return not is_inlined or node in self.materialized

    # What the kernel of a root reads.

    def place(self, root: Node) -> None:
        """Add a root to a kernel, or several roots if the kernel would be too long."""
        reads = self.find_reads(root)
        if len(reads.computed) > MAX_OPS and (is_scan(root) or not isinstance(root.function, SEPARATE)):
            reads = self.split_long_region(root, reads)
        kernel, reasons = self.choose_kernel(root, reads)
        if kernel is None:
            self.refuse(root, reasons)
            reads = self.store_first(root, map(strip_views, root.inputs), TOO_MANY_PASSES)
            kernel, reasons = self.choose_kernel(root, reads)
        kernel = kernel or GrowingKernel(reads.space)
        kernel.add(root, reads, count_passes(root, reads.leaves, kernel))
        self.kernel_of[root] = self.all_kernels[root] = kernel
        if self.log:
            self.log.note(PLACED, -1, kernel.members)
        loaded = [x for x in reads.sources if self.all_kernels.get(x) is not kernel]
        for source in loaded:
            kernel.load(source, self.all_kernels.get(source))
            self.readers.setdefault(source, []).append(root)
            saved = SAVED_FOR_BACKWARD if source in self.saved else ALREADY_STORED
            reasons.setdefault(source, self.materialized.get(source, saved))
        self.refuse(root, reasons)

    def refuse(self, root: Node, reasons: Mapping[Node, str]) -> None:
        """Record why the kernel of a root loads some nodes that other kernels compute."""
        for source, reason in reasons.items():
            if source in self.all_kernels:
                self.refused.setdefault((source, root), reason)

    def find_reads(self, root: Node) -> RootReads:
        """Return what a kernel reads to compute a root."""
        required: dict[Node, str] = {}
        match root.function:
            case Matmul():
                inputs = [x for x in root.inputs if self.region.inlined_inputs(x)]
                loaded = [strip_views(x) for x in root.inputs if not self.region.inlined_inputs(x)]
                required = {x: self.materialized.get(x) or why_not_prologue(x) for x in loaded}
            case PadSlice() | SliceUpdate():
                inputs, required = [], dict.fromkeys(map(strip_views, self.updates.needed_inputs(root)), UPDATE_NEEDS_MEMORY)
            case CompositeOutput(op=Scan()):
                inputs = list(root.inputs)
            case CompositeOutput():
                inputs, required = [], dict.fromkeys(map(strip_views, root.inputs), COMPOSITE_IS_ONE_CALL)
            case Reduce() | ScatterReduce():
                inputs = list(root.inputs)
            case _ if self.updates.is_alias(root):
                inputs, required = [], {strip_views(root.inputs[0]): UPDATE_NEEDS_MEMORY}
            case _:
                inputs = list(self.region.root_inputs(root))
        computed = self.region.walk(inputs)
        if self.has_gathers:
            opened = FusibleRegion(LoadedByKernel(self.loaded, {root} if root.is_pointwise else ()), self.chains)
            sources = [*opened.gather_sources([root]), *self.region.gather_sources(computed)]
            required |= dict.fromkeys(sources, GATHER_NEEDS_MEMORY)
        leaves: dict[Node, list[Node]] = {}
        for x in computed:
            is_inlined = x.is_number or self.region.resolved[x][1]
            if not (is_inlined or isinstance((source := strip_views(x)).function, Iota)):
                leaves.setdefault(source, []).append(x)
        required = {x: reason for x, reason in required.items() if not x.is_number}
        return RootReads(own_space(root), leaves, required, computed, [*(leaves | required)])

    def store_first(self, root: Node, nodes: Iterable[Node], reason: str) -> RootReads:
        """Let kernels store some nodes before the kernel of a root, which loads them. Return what it reads then."""
        new = [x for x in dict.fromkeys(nodes) if x not in self.loaded]
        self.materialized |= dict.fromkeys(new, reason)
        self.loaded |= {*new}
        self.region = FusibleRegion(self.loaded, self.chains)
        for node in new:
            self.rank.setdefault(node, self.rank[root])
            self.place(node)
        return self.find_reads(root)

    def split_long_region(self, root: Node, reads: RootReads) -> RootReads:
        """Let other kernels store some of the nodes that a root is computed from, so that no kernel is too long."""
        order = [x for x in (*reads.computed, root) if not x.is_number]

        def inputs(x: Node) -> Sequence[Node]:
            return self.region.root_inputs(x) if x is root else self.region.inlined_inputs(x)

        for stored, reason in split_into_parts(order, inputs):
            reads = self.store_first(root, [strip_views(x) for x in stored if x is not root], reason)
        return reads

    # The kernel of a root.

    def choose_kernel(self, root: Node, reads: RootReads) -> tuple[GrowingKernel | None, dict[Node, str]]:
        """Return the kernel that computes a root, and why other kernels do not: the node that they compute -> the reason.

        Kernels that the root joins are united. The kernel is None if a reduction can join no kernel because of the number of
        passes, and its input is not stored yet.
        """
        match root.function:
            case CompositeOutput(op):
                others = {x: SCANNED_IS_POINTWISE for x in reads.leaves if not x.is_pointwise}
                return self.composites.setdefault((op, root.inputs), separate_kernel(root)), others | reads.required
            case Matmul():
                inner = [x for x in reads.leaves if not x.is_pointwise]  # of operands that are inlined
                return separate_kernel(root), {x: why_not_prologue(x) for x in inner} | reads.required
            case PadSlice() | SliceUpdate() | ScatterReduce():
                return separate_kernel(root), {}
            case _ if self.updates.is_alias(root):
                return separate_kernel(root), {}
        computed: dict[GrowingKernel, list[Node]] = {}  # kernel -> the sources that it computes
        sources = [x for x in reads.sources if x in self.kernel_of]
        for x in sources:
            computed.setdefault(self.kernel_of[x], []).append(x)
        producers = sorted(computed, key=lambda kernel: kernel.priority)
        reasons = {kernel: self.why_not_joined(root, reads, kernel, computed[kernel]) for kernel in producers}
        for kernel in producers:
            if reasons[kernel] is None and kernel.reaches([x for x in producers if x is not kernel]):
                reasons[kernel] = WOULD_WAIT
        joined: GrowingKernel | None = None
        for kernel in producers:
            if reasons[kernel] is None and joined is not None:
                reasons[kernel] = joined.why_not_united(kernel)
            if reasons[kernel] is None:
                joined = self.unite(joined, kernel)
        if joined is not None:  # a kernel that would wait could not be united with this one in any case
            reasons |= {x: joined.why_not_united(x) for x in producers if reasons[x] is WOULD_WAIT}
        refused = {x: reason for x in sources if (reason := reasons[self.kernel_of[x]]) is not None}
        if joined is not None:
            return joined, refused
        if TOO_MANY_PASSES in reasons.values() and any(self.region.inlined_inputs(x) for x in root.inputs):
            return None, refused
        related, others = self.find_related_kernel(root, reads, producers)
        return related or GrowingKernel(reads.space), refused | others

    def unite(self, kernel: GrowingKernel | None, other: GrowingKernel) -> GrowingKernel:
        """Make one kernel of two."""
        if kernel is None:
            return other
        kernel.unite(other)
        kernel.members.sort(key=self.rank.__getitem__)
        self.kernel_of |= dict.fromkeys(other.members, kernel)
        self.all_kernels |= dict.fromkeys(other.members, kernel)
        return kernel

    def why_not_joined(self, root: Node, reads: RootReads, kernel: GrowingKernel, sources: Sequence[Node]) -> str | None:
        """Return why a root cannot join a kernel that computes some of its sources; None if it can."""
        if required := [reads.required[x] for x in sources if x in reads.required]:
            return required[0]
        for leaf in (leaf for x in sources for leaf in reads.leaves[x]):
            if (reason := why_not_fusible(leaf, root, self.graph.not_nested) or self.why_stored_first(leaf)) is not None:
                return reason
        if kernel.is_closed:  # of an identity that shares the buffer of a slice update
            return UPDATE_NEEDS_MEMORY
        if kernel.core is None:
            if (reason := why_not_in_space(root, kernel.space, sources)) is not None:
                return reason
        elif (reason := self.why_no_epilogue(root, reads, kernel)) is not None:
            return reason
        if any(x.is_pointwise for x in sources) and (reason := self.why_not_inlined(root, kernel)) is not None:
            return reason
        if kernel.is_too_long(reads):
            return TOO_MANY_OPS
        return TOO_MANY_PASSES if count_passes(root, sources, kernel) > MAX_PASSES else None

    def why_stored_first(self, leaf: Node) -> str | None:
        """Return why a kernel must store the source of a leaf before it reads the leaf; None if it need not."""
        source = strip_views(leaf)
        return self.materialized.get(source) if leaf is not source else None

    def why_no_epilogue(self, root: Node, reads: RootReads, kernel: GrowingKernel) -> str | None:
        """Return why a root cannot be in the epilogue of a matmul or a scan; None if it can."""
        assert kernel.core is not None
        has_nested = any(map(self.region.is_nested, reads.computed))
        if is_scan(kernel.core):
            is_point = reads.space.shape == kernel.space.shape
            if reads.space.dims and not reduces_scanned_rows(root, kernel.core, self.target):
                return SCAN_NEEDS_ROWS
            if has_nested or (is_point and any(is_reduction(x) for x in reads.leaves if self.kernel_of.get(x) is kernel)):
                return SCAN_NEEDS_ROWS
            if not is_point and not kernel.space.contains_shape(root.shape):
                return SCAN_REORDERED
            if GATHER_NEEDS_MEMORY in reads.required.values():
                return SCANNED_IS_GATHERED
            computed = [self.region.resolve(x)[0] for x in (*reads.computed, root)]
            is_slow = is_serial(kernel.core, self.target) and has_dear_op(computed)
            return SCAN_NOT_VECTORIZED if is_slow else None
        if reads.space.dims or has_nested:
            return REDUCTION_NEEDS_ROWS
        has_epilogue = len(kernel.members) > 1
        if root.shape != kernel.space.shape if has_epilogue else root.size != prod(kernel.space.shape):
            return MATMUL_REORDERED
        return GATHER_NOT_IN_MATMUL if GATHER_NEEDS_MEMORY in reads.required.values() else None

    def why_not_inlined(self, root: Node, kernel: GrowingKernel) -> str | None:
        """Return why a kernel cannot inline its own members into a root, through the root's views; None if it can."""
        opened = FusibleRegion(LoadedByKernel(self.loaded, kernel.inlined_members), self.chains)
        inputs = opened.root_inputs(root) if root.is_pointwise else root.inputs
        # A member that is read at the same point needs no check: its own inputs were checked when it joined.
        for x in opened.walk(inputs, stop=kernel.inlined_members if root.shape == kernel.space.shape else ()):
            source = strip_views(x)
            if self.kernel_of.get(source) is not kernel or (x is source and x.is_pointwise):
                continue
            if not opened.inlined_inputs(x):
                reason = RESHAPE_NEEDS_COPY if source.is_pointwise else why_not_fusible(x, root)
            else:
                reason = self.why_stored_first(x)
            if reason is not None:
                return reason
        return None

    # Kernels with equal loops.

    def find_related_kernel(
        self, root: Node, reads: RootReads, producers: Collection[GrowingKernel]
    ) -> tuple[GrowingKernel | None, dict[Node, str]]:
        """Return a kernel with equal loops that loads an array that a root reads, or one beside it; None if none does.

        Return also why a kernel of other loops does not compute the root, if there is one.
        """
        space, others = reads.space, dict[Node, str]()
        for reader in self.related_readers(reads):
            kernel = self.kernel_of[reader]
            if kernel.is_closed or kernel.core is not None or kernel in producers:
                continue
            if (reason := why_not_merged(kernel.space, space)) is not None:
                others = others or {reader: reason}
            elif not (self.is_too_wide(space, kernel, reads) or kernel.is_too_long(reads) or kernel.reaches(producers)):
                if self.log:
                    self.log.note(GROUPED, -1, (root, reader), str(kernel.space if kernel.space.dims else space))
                return kernel, {}
        return None, {} if producers else others

    def related_readers(self, reads: RootReads) -> list[Node]:
        """Return roots whose kernels load one of the arrays that a kernel loads, or one that a kernel has beside it."""
        arrays = dict.fromkeys(reads.sources)
        for source in list(arrays):
            neighbors = [source, *self.readers.get(source, ())[-MAX_SHARING_KERNELS:]]
            for kernel in dict.fromkeys(self.kernel_of[x] for x in neighbors if x in self.kernel_of):
                if kernel.core is None and not kernel.is_closed:
                    arrays |= dict.fromkeys(islice((*kernel.members, *kernel.arrays), MAX_RELATED_ARRAYS))
        return list(
            dict.fromkeys(x for array in arrays for x in self.readers.get(array, ())[: -1 - MAX_SHARING_KERNELS : -1])
        )

    def is_too_wide(self, space: IterationSpace, kernel: GrowingKernel, reads: RootReads) -> bool:
        """Return whether a kernel would load too many arrays with another root."""
        return prod(space.shape) > MIN_POINTS_TO_SPLIT and len({*kernel.arrays, *reads.sources}) > MAX_KERNEL_ARRAYS

    # The result.

    def refusals(self) -> Iterator[Refusal]:
        """Yield the pairs of nodes that are not fused."""
        for (producer, consumer), reason in self.refused.items():
            if self.all_kernels.get(producer) is not self.all_kernels.get(consumer):
                yield Refusal(producer, consumer, reason)

    def groups(self) -> Iterator[KernelGroup]:
        """Yield the kernels of all phases, in order."""
        loaded = {x for kernels in self.kernels.values() for kernel in kernels for x in kernel.arrays} | self.outputs
        request = {x: k for k, x in enumerate(dict.fromkeys(map(strip_views, self.graph.roots)))}
        for phase, kernels in self.kernels.items():
            for kernel in kernels:
                members = sorted(kernel.members, key=self.rank.__getitem__)
                stored = [x for x in members if x in loaded or kernel.is_closed]
                stored.sort(key=lambda x: request.get(x, len(request)))
                yield KernelGroup(kernel.space, tuple(members), tuple(stored), phase)


def count_passes(root: Node, sources: Iterable[Node], kernel: GrowingKernel) -> int:
    """Return the length of the longest chain of reductions in a kernel that ends in a root, which reads some sources."""
    return max((kernel.passes.get(x, 0) for x in sources), default=0) + is_reduction(root)
