"""Batch launches that differ only in their arrays: the update of all parameters of a network is one launch.

A step of an optimizer changes many arrays of different sizes by one formula. Separate launches would be too small to use
several threads. If the backend supports it, launches of one kernel become one step, which runs that kernel over a table of
arrays (multi_tensor_apply in PyTorch). The kernel and its text do not change, so a batch with more or fewer arrays needs no
new compilation.

Launches of one kernel are batched if each has one loop axis, if their stride kinds and numbers are equal, and if their order
does not matter: no launch of the batch, and no step between two of them, reads or writes memory that another one writes.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..backends.base import Backend
from ..ir.kernel_ir import IndexValue, Kernel, LoopNest, ReadOutput
from ..ir.step_kernels import BatchedKernel
from ..ir.steps import Step, may_overlap
from .graph import Graph, needs

MAX_BATCHED_POINTS = 1 << 22  # points of a launch; a larger one may bypass the caches when it stores, but a batch cannot


@needs(steps=2)
def batch_launches(graph: Graph, target: Backend) -> Graph:
    """Make one launch of launches that differ only in their arrays, if the target can run such a launch.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, y: (x * 2, y * 2), (4,), (8,))
    >>> before, after = run_pass(batch_launches, graph, supports=lambda self, step: None)
    >>> len(before.steps), len(after.steps)
    (2, 1)
    """
    return graph.decide(steps=tuple(batch_steps(graph.steps, target)))


class BatchKey(NamedTuple):
    """The kernel, stride kinds and numbers that all launches of a batch share."""

    kernel: Kernel
    stride_kinds: tuple[str, ...]
    numbers: tuple[int | str, ...]


def merge_steps(steps: Sequence[Step], kernel: Kernel) -> Step:
    """Merge several launches of one kernel into one step. The largest array is first."""
    parts = sorted(steps, key=lambda part: -prod(part.shape))
    outputs, inputs = [x for part in parts for x in part.outputs], [x for part in parts for x in part.inputs]
    points = sum(prod(part.shape) for part in parts)
    batch = BatchedKernel(kernel, tuple(part.shape for part in parts))
    kernel_numbers = tuple(k for part in parts for k in part.kernel_numbers)
    return Step(batch, (points,), (), outputs, inputs, parts[0].numbers, kernel_numbers=kernel_numbers)


def batch_steps(steps: Sequence[Step], backend: Backend) -> list[Step]:
    """Batch launches where possible, and where the backend supports it."""
    groups: list[list[Step]] = []
    keys: list[BatchKey | None] = []  # of each group
    latest: dict[BatchKey, int] = {}  # batch key -> the last group with it
    writers, readers = dict[int, list[tuple[int, Step]]](), dict[int, list[tuple[int, Step]]]()  # slot -> (group, step)

    def can_join(step: Step, key: BatchKey, group: int) -> bool:
        """Return whether a step may run in the launch of a group."""
        related = [x for slot, _ in step.buffer_views() for x in writers.get(slot, ())]
        related += [x for slot, _ in step.outputs for x in readers.get(slot, ())]
        if any(depends_on(step, x) for k, x in related if k >= group):
            return False
        return len(groups[group]) > 1 or backend.supports(merge_steps([*groups[group], step], key.kernel)) is None

    for step in steps:
        key = batch_key(step)
        group = -1 if key is None else latest.get(key, -1)
        if key is None or group < 0 or not can_join(step, key, group):
            group = len(groups)
            groups.append([])
            keys.append(key)
            if key is not None:
                latest[key] = group
        groups[group].append(step)
        for slot in {slot for slot, _ in step.outputs}:
            writers.setdefault(slot, []).append((group, step))
        for slot in {slot for slot, _ in step.buffer_views()}:
            readers.setdefault(slot, []).append((group, step))
    named = zip(groups, keys, strict=True)
    return [merge_steps(x, key.kernel) if key is not None and len(x) > 1 else x[0] for x, key in named]


def batch_key(step: Step) -> BatchKey | None:
    """Return the key that all launches of a batch have in common, or None if a step cannot be batched."""
    kernel = step.kernel
    if not isinstance(kernel, Kernel) or kernel.effects or step.dims or step.indexed_operands or not prod(step.shape):
        return None
    outputs, inputs = step.layouts()
    nest = LoopNest(step.shape, (), [*outputs, *inputs])
    if nest.points > MAX_BATCHED_POINTS and not kernel.find_all(ReadOutput):
        return None
    if len(nest.sizes) > 1 or any("s" in letters for letters in nest.stride_kinds) or kernel.find_all(IndexValue):
        return None
    stride_kinds = nest.stride_kinds
    if nest.points == 1:  # the text for longer arrays also runs over one element
        stride_kinds = tuple("0" if 0 in layout.strides else "1" for layout in (*outputs, *inputs))
    return BatchKey(kernel, stride_kinds, tuple(step.numbers))


def depends_on(step: Step, before: Step) -> bool:
    """Return whether one of two steps writes memory that the other reads or writes."""
    written, used = {slot for slot, _ in before.outputs}, {slot for slot, _ in before.buffer_views()}
    outputs = [x for x in step.outputs if x[0] in used]
    operands = [x for x in step.buffer_views() if x[0] in written]
    writes_operand = any(may_overlap(a, b) for a in outputs for b in before.buffer_views())
    return writes_operand or any(may_overlap(a, b) for a in operands for b in before.outputs)
