"""Launches that differ in their arrays alone, as one: the update of all parameters of a network is one launch.

A step of an optimizer changes many arrays of different sizes by one formula. Each would be a launch of its own, too small to
be shared out among threads. Where a backend can, launches of one kernel become one step, which runs that kernel over a table
of arrays. The kernel and its text stay as they are, so nothing compiles anew for another number of arrays.

Joined are launches that walk points of one axis, with the same stride classes and the same numbers, if none of them reads
or changes what another changes, and no step between them does either.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..backends.base import Backend
from ..core.layout import Layout
from ..ir.kernel_ir import Expression, IndexValue, Kernel, Load, LoopNest, ReadOutput, replace
from ..ir.steps import BufferView, KernelLaunch, Step, may_overlap

MAX_BATCHED_POINTS = (
    1 << 22
)  # points of which new values may be stored past the caches, by ways that a launch has for itself


@dataclass
class BatchedLaunch(KernelLaunch):
    """One launch of one kernel over several arrays, each with a space of its own.

    Its `kernel` is that of all parts, one after the other, for those who ask what is computed; what runs is that of the
    first part, which has the most points. Its `shape` is how many points all parts have.
    """

    parts: list[KernelLaunch] = field(default_factory=list)

    def bind(self, backend: Backend) -> Any:
        """A function of the addresses of each part in turn, then of numbers."""
        return backend.bind_multi_tensor(*self.arrays())

    def arrays(self) -> tuple[Kernel, list[tuple[int, ...]], list[tuple[list[Layout], list[Layout]]]]:
        """The kernel, and the shape and the layouts of each part."""
        return self.parts[0].kernel, [part.shape for part in self.parts], [part.layouts() for part in self.parts]

    def address_offsets(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address, part by part."""
        return [operand for part in self.parts for operand in part.address_offsets()]

    def source(self, backend: Backend) -> str:
        """The text that runs over all parts."""
        return backend.multi_tensor_source(*self.arrays())


def merge_launches(launches: Sequence[KernelLaunch]) -> BatchedLaunch:
    """Several launches as one step."""
    parts = sorted(launches, key=lambda part: -prod(part.shape))  # the first one's text runs
    elements, stored, read = [], list[BufferView](), list[BufferView]()
    for part in parts:
        elements += [offset_operands(e, len(stored), len(read)) for e in part.kernel.pointwise_outputs]
        stored += part.outputs
        read += part.inputs
    points = sum(prod(part.shape) for part in parts)
    return BatchedLaunch(Kernel(tuple(elements), ()), (points,), (), stored, read, parts[0].numbers, [], parts)


def offset_operands(e: Expression, outputs: int, inputs: int) -> Expression:
    """An expression among others, whose outputs and inputs come before its own."""
    e = replace(e, Load, lambda x: Load(x.index + inputs, x.dtype))
    return replace(e, ReadOutput, lambda x: ReadOutput(x.index + outputs, x.dtype))


def batch_steps(steps: Sequence[Step]) -> tuple[list[Step], list[int]]:
    """Steps with those that can be one joined, and where each of them has come to be."""
    if len(steps) == 1:
        return [*steps], [0]
    found: list[list[Step]] = []
    latest: dict[Any, int] = {}  # by kind
    writers, readers = dict[int, list[tuple[int, Step]]](), dict[int, list[tuple[int, Step]]]()  # by slot
    order = []
    for step in steps:
        kind = batch_key(step)
        place = latest.get(kind, -1)
        near = [x for slot, _ in step.buffer_views() for x in writers.get(slot, ())]
        near += [x for slot, _ in step.outputs for x in readers.get(slot, ())]
        if kind is None or place < 0 or any(depends_on(step, x) for where, x in near if where >= place):
            place = len(found)
            found.append([])
            latest[kind] = place
        found[place].append(step)
        order.append(place)
        for slot in {slot for slot, _ in step.outputs}:
            writers.setdefault(slot, []).append((place, step))
        for slot in {slot for slot, _ in step.buffer_views()}:
            readers.setdefault(slot, []).append((place, step))
    return [group[0] if len(group) == 1 else merge_launches(group) for group in found], order  # type: ignore[arg-type]


def batch_key(step: Step) -> Any:
    """What launches have in common that can be one; None of others."""
    if (
        not isinstance(step, KernelLaunch)
        or step.dims
        or step.indexed_operands
        or not prod(step.shape)
        or step.kernel.effects
    ):
        return None
    outputs, inputs = step.layouts()
    nest = LoopNest(step.shape, (), [*outputs, *inputs])
    if nest.points > MAX_BATCHED_POINTS and not step.kernel.find_all(ReadOutput):
        return None
    if len(nest.sizes) > 1 or any("s" in letters for letters in nest.stride_kinds) or step.kernel.find_all(IndexValue):
        return None
    classes = nest.stride_kinds
    if nest.points == 1:  # the text for others will do: it walks one point as well
        classes = tuple("0" if 0 in layout.strides else "1" for layout in (*outputs, *inputs))
    return step.kernel, classes, tuple(step.numbers)


def depends_on(step: Step, before: Step) -> bool:
    """Whether one of two steps changes what the other reads or changes."""
    written, known = {slot for slot, _ in before.outputs}, {slot for slot, _ in before.buffer_views()}
    changed = [place for place in step.outputs if place[0] in known]
    read = [place for place in step.buffer_views() if place[0] in written]
    return any(may_overlap(a, b) for a in changed for b in before.buffer_views()) or any(
        may_overlap(a, b) for a in read for b in before.outputs
    )
