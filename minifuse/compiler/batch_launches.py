"""Batch launches that differ only in their arrays: the update of all parameters of a network is one launch.

A step of an optimizer changes many arrays of different sizes by one formula. Separate launches would be too small to use
several threads. If the backend supports it, launches of one kernel become one step, which runs that kernel over a table of
arrays (multi_tensor_apply in PyTorch). The kernel and its text do not change, so a batch with more or fewer arrays needs no
new compilation.

Launches of one kernel are batched if each has one loop axis, if their stride kinds and numbers are equal, and if their order
does not matter: no launch of the batch, and no step between two of them, reads or writes memory that another one writes.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from math import prod

from ..backends.base import Backend, Launcher
from ..core.layout import Layout
from ..ir.kernel_ir import Expression, IndexValue, Kernel, Load, LoopNest, ReadOutput, replace
from ..ir.steps import BufferView, KernelLaunch, Step, may_overlap
from .fusion_log import active_log
from .graph import Graph


def batch_launches(graph: Graph, target: Backend) -> Graph:
    """Make one launch of launches that differ only in their arrays, if the target can run such a launch.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.layout import row_major
    >>> from minifuse.ir.graph import Argument, Node
    >>> from .emit_steps import emit_steps
    >>> from .form_kernels import form_kernels
    >>> class Batching(PythonBackend):
    ...     has_multi_tensor = True
    >>> x, y = Node(Argument(0), (), (4,), float32), Node(Argument(1), (), (8,), float32)
    >>> graph = Graph((x * 2, y * 2), arguments=(x, y), layouts=(row_major((4,)), row_major((8,))))
    >>> emitted = emit_steps(form_kernels(graph, Batching()), Batching())
    >>> len(emitted.steps), len(batch_launches(emitted, Batching()).steps)
    (2, 1)
    """
    if len(graph.steps) < 2 or not target.has_multi_tensor:
        return graph
    steps, positions = batch_steps(graph.steps)
    if active_log.log:
        active_log.log.move_steps(dict(enumerate(positions)))
    return replace_fields(graph, steps=tuple(steps))


MAX_BATCHED_POINTS = 1 << 22  # points of a launch; a larger one may bypass the caches when it stores, but a batch cannot


@dataclass
class BatchedLaunch(KernelLaunch):
    """One launch of one kernel over several arrays, each with its own size.

    Attributes
    ----------
    kernel : Kernel
        The outputs of all parts, for `explain`. It does not run: the launch runs `parts[0].kernel` for each part.
    shape : tuple of int
        The number of points of all parts together.
    parts : list of KernelLaunch
    """

    parts: list[KernelLaunch] = field(default_factory=list)

    def bind(self, backend: Backend) -> Launcher:
        """Return the function that launches the batch. It takes the addresses of each part in turn, then the numbers."""
        return backend.bind_multi_tensor(*self.arrays())

    def arrays(self) -> tuple[Kernel, list[tuple[int, ...]], list[tuple[list[Layout], list[Layout]]]]:
        """Return the kernel, and the shape and the layouts of each part."""
        return self.parts[0].kernel, [part.shape for part in self.parts], [part.layouts() for part in self.parts]

    def address_offsets(self) -> list[tuple[int, int]]:
        """Return (slot, offset in bytes) for each address, part by part."""
        return [operand for part in self.parts for operand in part.address_offsets()]

    def source(self, backend: Backend) -> str:
        """Return the text that runs over all parts."""
        return backend.multi_tensor_source(*self.arrays())


def merge_launches(launches: Sequence[KernelLaunch]) -> BatchedLaunch:
    """Merge several launches into one step."""
    parts = sorted(launches, key=lambda part: -prod(part.shape))  # the kernel of parts[0] runs
    expressions, outputs, inputs = list[Expression](), list[BufferView](), list[BufferView]()
    for part in parts:
        expressions += [offset_operands(e, len(outputs), len(inputs)) for e in part.kernel.pointwise_outputs]
        outputs += part.outputs
        inputs += part.inputs
    points = sum(prod(part.shape) for part in parts)
    return BatchedLaunch(Kernel(tuple(expressions), ()), (points,), (), outputs, inputs, parts[0].numbers, [], parts)


def offset_operands(e: Expression, output_offset: int, input_offset: int) -> Expression:
    """Add an offset to the index of each output, and another to that of each input, that an expression reads."""
    e = replace(e, Load, lambda x: Load(x.index + input_offset, x.dtype))
    return replace(e, ReadOutput, lambda x: ReadOutput(x.index + output_offset, x.dtype))


def batch_steps(steps: Sequence[Step]) -> tuple[list[Step], list[int]]:
    """Batch launches where possible.

    Returns
    -------
    steps : list of Step
    positions : list of int
        For each of the old steps, the index of its new step in `steps`.
    """
    if len(steps) == 1:
        return [*steps], [0]
    groups: list[list[Step]] = []
    latest: dict[Hashable, int] = {}  # batch key -> the last group with it
    writers, readers = dict[int, list[tuple[int, Step]]](), dict[int, list[tuple[int, Step]]]()  # slot -> (group, step)
    positions = []
    for step in steps:
        key = batch_key(step)
        group = latest.get(key, -1)
        related = [x for slot, _ in step.buffer_views() for x in writers.get(slot, ())]
        related += [x for slot, _ in step.outputs for x in readers.get(slot, ())]
        if key is None or group < 0 or any(depends_on(step, x) for k, x in related if k >= group):
            group = len(groups)
            groups.append([])
            latest[key] = group
        groups[group].append(step)
        positions.append(group)
        for slot in {slot for slot, _ in step.outputs}:
            writers.setdefault(slot, []).append((group, step))
        for slot in {slot for slot, _ in step.buffer_views()}:
            readers.setdefault(slot, []).append((group, step))
    return [x[0] if len(x) == 1 else merge_launches(x) for x in groups], positions  # type: ignore[arg-type]  # only kernel launches have a key


def batch_key(step: Step) -> Hashable:
    """Return the key that all launches of a batch have in common, or None if a step cannot be batched."""
    if not isinstance(step, KernelLaunch) or step.dims or step.indexed_operands:
        return None
    if not prod(step.shape) or step.kernel.effects:
        return None
    outputs, inputs = step.layouts()
    nest = LoopNest(step.shape, (), [*outputs, *inputs])
    if nest.points > MAX_BATCHED_POINTS and not step.kernel.find_all(ReadOutput):
        return None
    if len(nest.sizes) > 1 or any("s" in letters for letters in nest.stride_kinds) or step.kernel.find_all(IndexValue):
        return None
    stride_kinds = nest.stride_kinds
    if nest.points == 1:  # the text for longer arrays also runs over one element
        stride_kinds = tuple("0" if 0 in layout.strides else "1" for layout in (*outputs, *inputs))
    return step.kernel, stride_kinds, tuple(step.numbers)


def depends_on(step: Step, before: Step) -> bool:
    """Return whether one of two steps writes memory that the other reads or writes."""
    written, used = {slot for slot, _ in before.outputs}, {slot for slot, _ in before.buffer_views()}
    outputs = [x for x in step.outputs if x[0] in used]
    operands = [x for x in step.buffer_views() if x[0] in written]
    writes_operand = any(may_overlap(a, b) for a in outputs for b in before.buffer_views())
    return writes_operand or any(may_overlap(a, b) for a in operands for b in before.outputs)
