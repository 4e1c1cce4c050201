"""The steps of a call while they are emitted: what is in memory, and which nodes the current kernel inlines."""

from collections.abc import Callable, Iterable

from ..backends.base import Backend
from ..core.dtypes import DType, WeakType, bool_
from ..core.layout import Layout, row_major
from ..ir.graph import Literal, Node
from ..ir.kernel_ir import Constant, Expression, KernelParameter, copy_kernel
from ..ir.steps import BufferView, Step
from .fusible_region import FusibleRegion, LoadedByKernel, is_recomputable
from .fusion_log import REFUSED, active_log
from .graph import Graph, Refusal, locate_view
from .reindexing import ViewChains

ParameterSource = tuple[int | str, DType | WeakType]  # the slot of a number, or a literal; and its dtype

INLINE_LITERALS = frozenset({"0", "1", "2", "0.0", "1.0", "2.0"})  # other literals, sizes too, are parameters of the launch
MAX_INLINE_DIVISOR = 16  # a division of integers by a constant is a multiplication: larger divisors are sizes


class Emission:
    """The steps so far, and where each value is stored.

    Attributes
    ----------
    buffers : dict of Node to BufferView
        The buffer and the layout of each node that is in memory.
    buffer_nbytes : list of int
        The size of each buffer of the call, in bytes. The first of them is slot `first_buffer`.
    loaded : set of Node
        The nodes that kernels of this phase load, but for the kernel that computes them.
    region : FusibleRegion
        The nodes that the current kernel inlines.
    """

    def __init__(self, graph: Graph, backend: Backend) -> None:
        self.graph, self.backend = graph, backend
        self.buffers = dict(graph.memory)
        self.first_buffer = len(graph.arguments)
        self.copies: dict[Node, BufferView] = {}
        self.buffer_nbytes: list[int] = []
        self.steps: list[Step] = []
        self.refusals: dict[Refusal, None] = {}
        self.chains = ViewChains()
        self.loaded: set[Node] = set()
        self.region: FusibleRegion
        self.log = active_log.log
        if self.log:
            for refusal in graph.refusals:
                self.log.note(REFUSED, -1, refusal[:2], refusal.reason)

    def open_members(self, members: Iterable[Node]) -> None:
        """Let the current kernel inline its members."""
        inlined = {x for x in members if is_recomputable(x)}
        self.region = FusibleRegion(LoadedByKernel(self.loaded, inlined), self.chains)

    def layout_of(self, node: Node, default: Layout | None = None) -> Layout:
        """Return the layout in which a node is stored: the one that is required, or a default, or row-major."""
        return self.graph.required_layouts.get(node, row_major(node.shape) if default is None else default)

    def allocate(self, node: Node, layout: Layout) -> BufferView:
        """Store a node in a new buffer."""
        self.buffers[node] = self.new_buffer(node, layout)
        return self.buffers[node]

    def new_buffer(self, node: Node, layout: Layout | None = None) -> BufferView:
        """Add a buffer that is as large as a node, which is stored there later."""
        layout = layout or self.layout_of(node)
        self.buffer_nbytes.append(layout.size * node.dtype.itemsize)
        return self.first_buffer + len(self.buffer_nbytes) - 1, layout

    def locate(self, node: Node) -> BufferView:
        """Return where a view of a stored node is in memory. If no strides describe the view, add a copy."""
        return self.buffers.get(node) or locate_view(node, self.buffers, self.copies, self.copy_for_view)

    # A kernel stores a node in a buffer of its own, except in the slices of `SliceEmission`.

    def reserve(self, node: Node) -> BufferView | None:
        """Return the slice in which the current kernel is to store a node, or None."""
        return None

    def reserve_copies(self, node: Node, reindex: Callable[[BufferView], BufferView | None]) -> list[BufferView]:
        """Return the slices in which the current kernel is to store copies of a node, as its loops see them."""
        return []

    def cancel(self, node: Node) -> None:
        """Undo `reserve`: the kernel cannot store the node there."""

    def commit(self) -> None:
        """Note that the kernel which stores the reserved slices is emitted."""

    def copy_for_view(self, base: Node, source: BufferView) -> None:
        """Add a row-major copy of a node, which is in memory at `source`."""
        self.copies[base] = self.new_buffer(base, row_major(base.shape))
        copy = Step(copy_kernel(base.dtype), base.shape, (), [self.copies[base]], [source])
        self.add_unfused_step(copy, base, "a row-major copy, because a view needs one")

    def add_copy(self, node: Node, target: BufferView, consumer: Node, reason: str) -> None:
        """Add a step that copies a stored node to a target."""
        copy = Step(copy_kernel(node.dtype), target[1].shape, (), [target], [self.locate(node)])
        self.add_unfused_step(copy, consumer, reason)

    def add_unfused_step(self, step: Step, node: Node, reason: str) -> None:
        """Add a step that fuses nothing, such as a copy, and log its reason."""
        self.steps.append(step)
        if self.log:
            self.log.copy(node, reason)

    def record_refusal(self, producer: Node, consumer: Node, reason: str) -> None:
        """Record that the backend does not fuse two nodes."""
        refusal = Refusal(producer, consumer, reason)
        if self.log and refusal not in self.refusals:
            self.log.note(REFUSED, -1, refusal[:2], reason)
        self.refusals.setdefault(refusal)


def lower_number(node: Node, parameters: dict[ParameterSource, int], is_divisor: bool = False) -> Expression:
    """Return a number as a literal, or as a parameter, which is added to `parameters` with its index."""
    function = node.function
    if isinstance(function, Literal):
        is_small_divisor = is_divisor and function.text.isdigit() and int(function.text) <= MAX_INLINE_DIVISOR
        if function.text in INLINE_LITERALS or node.dtype is bool_ or is_small_divisor:
            return Constant(function.text, node.dtype)
    source = function.text if isinstance(function, Literal) else function.index
    return KernelParameter(parameters.setdefault((source, node.dtype), len(parameters)), node.dtype)
