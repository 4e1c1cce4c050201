"""The state of a scheduler: the steps so far, where each value is stored, and which fusions were refused.

`form_kernels` implements the methods that add steps. The modules that it calls (kernels under construction, slice updates,
matmuls) depend only on this base class, so imports have one direction.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.interning import Task, toposort
from ..core.layout import Layout, row_major
from ..ir.array_functions import View
from ..ir.graph import Node, inputs_of, strip_views
from ..ir.kernel_ir import Kernel, Load
from ..ir.steps import BufferView, KernelLaunch, Step
from .fusible_region import FusibleRegion
from .fusion_log import REFUSED, Refusal, active_log
from .iteration_space import IterationSpace
from .materialize import choose_materialized

SAVED_FOR_BACKWARD = "it is saved for the backward pass"
ALREADY_STORED = "another kernel has computed and stored it"


class Scheduler(ABC):
    """The steps of a plan so far, and where each value is stored.

    Parameters
    ----------
    arguments : sequence of Node
        Inputs of the graph.
    layouts : sequence of Layout or None
        The layout of each argument; None for a number.
    backend : Backend
    roots : iterable of Node
        All nodes whose values the call needs.
    saved : iterable of Node
        Those of the roots that only a backward pass needs.

    Attributes
    ----------
    buffers : dict of Node to BufferView
        The buffer and the layout of each node that is in memory.
    buffer_nbytes : list of int
        The size of each buffer that the scheduler has allocated, in bytes. The first of them is slot `first_buffer`.
    steps : list of Step
        The steps so far, in the order in which they run.
    refusals : dict of Refusal to None
        The fusions that were refused, as an ordered set.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        layouts: Sequence[Layout | None],
        backend: Backend,
        roots: Iterable[Node],
        saved: Iterable[Node] = (),
    ) -> None:
        slots = enumerate(zip(arguments, layouts, strict=True))
        self.buffers: dict[Node, BufferView] = {node: (k, layout) for k, (node, layout) in slots if layout is not None}
        self.first_buffer, self.backend = len(arguments), backend
        self.copies: dict[Node, BufferView] = {}  # row-major copies
        self.required_layouts: dict[Node, Layout] = {}  # of outputs
        self.preassigned: dict[Node, BufferView] = {}  # where nodes that are not computed yet are to be stored
        self.buffer_nbytes: list[int] = []
        self.steps: list[Step] = []
        self.unfusable_matmuls: dict[Node, str] = {}  # matmuls that get no epilogue -> why the backend refused the epilogue
        self.refusals: dict[Refusal, None] = {}
        self.origin_of: dict[Node, Node | None] = {}  # nodes made by lowering -> the node of the graph; None for its parts
        self.log = active_log.log
        self.roots, self.saved = dict.fromkeys(map(strip_views, roots)), set(map(strip_views, saved))
        order = toposort(self.roots, inputs_of)
        self.rank: dict[Node, float] = {node: k for k, node in enumerate(order)}
        self.users: dict[Node, set[Node]] = {}
        self.reads_memory: dict[Node, bool] = {}  # whether a node is computed from any array
        for node in order:
            self.reads_memory[node] = any(self.reads_memory[x] for x in node.inputs) if node.inputs else node in self.buffers
            for x in node.inputs:
                self.users.setdefault(x, set()).add(node)
        self.materialized = choose_materialized(order, self.roots)  # stored before another kernel reads them -> why
        self.region = FusibleRegion(self.buffers, self.materialized)
        self.push_views_up, self.inlined_inputs = self.region.push_views_up, self.region.inlined_inputs
        self.space = self.region.space

    def allocate(self, node: Node, layout: Layout) -> BufferView:
        """Add a buffer for a node."""
        self.buffer_nbytes.append(layout.size * node.dtype.itemsize)
        self.buffers[node] = self.first_buffer + len(self.buffer_nbytes) - 1, layout
        return self.buffers[node]

    def record_refusal(self, producer: Node, consumer: Node, reason: str) -> None:
        """Record that a kernel loads a value that it could have computed. An empty reason means: it is already in memory."""
        if producer in self.buffers and self.buffers[producer][0] < self.first_buffer:
            return  # an input of the call
        refusal = Refusal(producer, consumer, reason or (SAVED_FOR_BACKWARD if producer in self.saved else ALREADY_STORED))
        if self.log and refusal not in self.refusals:
            self.log.note(REFUSED, -1, refusal[:2], refusal.reason)
        self.refusals.setdefault(refusal)

    def origins(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes of the graph from which some nodes were lowered. A node of the graph is its own origin."""
        origins = (self.origin_of.get(node, node) for node in nodes)
        return list(dict.fromkeys(node for node in origins if node is not None))

    def add_unfused_step(self, step: Step, node: Node, reason: str) -> None:
        """Add a step that fuses nothing, such as a copy, and log its reason."""
        self.steps.append(step)
        if self.log:
            self.log.copy(node, reason)

    def is_read_outside(self, node: Node, computed: set[Node], stored: Iterable[Node]) -> bool:
        """Return whether a kernel reads a node, other than the kernel that computes `computed` and stores `stored`."""
        pending, done = [node], {*stored} - {node}
        while pending:
            x = pending.pop()
            if x in done:
                continue
            done.add(x)
            if x in self.roots:
                return True
            for user in self.users.get(x, ()):
                if not isinstance(user.function, View) and user not in computed:
                    return True
                pending.append(user)
        return False

    def rank_of(self, node: Node) -> float:
        """Return the topological rank of a node: it is higher than those of all nodes that the node is computed from."""
        for x in toposort([node], lambda x: () if x in self.rank else x.inputs):
            if x not in self.rank:  # made by lowering
                self.rank[x] = max((self.rank[i] for i in x.inputs), default=0) + 0.001
                self.reads_memory[x] = any(self.reads_memory[i] for i in x.inputs)
        return self.rank[node]

    def locate_stored(self, node: Node) -> BufferView:
        """Return the buffer of a view of a stored node. If no strides describe the view, add a copy."""
        views, x = list[Node](), node
        while x not in self.buffers:
            views.append(x)
            (x,) = x.inputs
        slot, layout = self.buffers[x]
        for view in reversed(views):
            try:
                layout = view.function.layout(layout)
            except ShapeError:
                slot, layout = self.copy_to_row_major(view.inputs[0], (slot, layout))
                layout = view.function.layout(layout)
        return slot, layout

    def copy_to_row_major(self, node: Node, source: BufferView) -> BufferView:
        """Add a row-major copy of a stored node, and return its buffer."""
        if node not in self.copies:
            self.copies[node] = self.allocate(node, row_major(node.shape))
            self.buffers[node] = source
            copy = KernelLaunch(copy_kernel(node), node.shape, (), [self.copies[node]], [source])
            self.add_unfused_step(copy, node, "a row-major copy, because a view needs one")
        return self.copies[node]

    @abstractmethod
    def schedule_nodes(self, nodes: Iterable[Node]) -> Task[None]:
        """Add the steps that compute some nodes. Nodes with equal loops that read a common array share a kernel."""

    @abstractmethod
    def materialize(self, node: Node) -> Task[BufferView]:
        """Add the steps that store a node, and return its buffer."""

    @abstractmethod
    def emit_kernel(self, space: IterationSpace, nodes: Iterable[Node]) -> Task[None]:
        """Add a kernel that stores the nodes that are not in memory yet, or several kernels if one cannot store them all."""


def copy_kernel(node: Node) -> Kernel:
    """Return the kernel that copies an array."""
    return Kernel((Load(0, node.dtype),), ())
