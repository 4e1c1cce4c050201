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
from ..ir.kernel_ir import Expression, Kernel, Load, Nest, Old, Position, replace
from ..ir.steps import Launch, Place, Step, meet

LARGE = 1 << 22  # points of which new values may be stored past the caches, by ways that a launch has for itself


@dataclass
class Together(Launch):
    """One launch of one kernel over several arrays, each with a space of its own.

    Its `kernel` is that of all parts, one after the other, for those who ask what is computed; what runs is that of the
    first part, which has the most points. Its `shape` is how many points all parts have.
    """

    parts: list[Launch] = field(default_factory=list)

    def bind(self, backend: Backend) -> Any:
        """A function of the addresses of each part in turn, then of numbers."""
        return backend.bind_together(*self.arrays())

    def arrays(self) -> tuple[Kernel, list[tuple[int, ...]], list[tuple[list[Layout], list[Layout]]]]:
        """The kernel, and the shape and the layouts of each part."""
        return self.parts[0].kernel, [part.shape for part in self.parts], [part.layouts() for part in self.parts]

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address, part by part."""
        return [operand for part in self.parts for operand in part.operands()]

    def source(self, backend: Backend) -> str:
        """The text that runs over all parts."""
        return backend.together_source(*self.arrays())


def together(launches: Sequence[Launch]) -> Together:
    """Several launches as one step."""
    parts = sorted(launches, key=lambda part: -prod(part.shape))  # the first one's text runs
    elements, stored, read = [], list[Place](), list[Place]()
    for part in parts:
        elements += [counted_from(e, len(stored), len(read)) for e in part.kernel.elements]
        stored += part.outputs
        read += part.inputs
    points = sum(prod(part.shape) for part in parts)
    return Together(Kernel(tuple(elements), ()), (points,), (), stored, read, parts[0].numbers, [], parts)


def counted_from(e: Expression, outputs: int, inputs: int) -> Expression:
    """An expression among others, whose outputs and inputs come before its own."""
    e = replace(e, Load, lambda x: Load(x.index + inputs, x.dtype))
    return replace(e, Old, lambda x: Old(x.index + outputs, x.dtype))


def joined(steps: Sequence[Step]) -> tuple[list[Step], list[int]]:
    """Steps with those that can be one joined, and where each of them has come to be."""
    if len(steps) == 1:
        return [*steps], [0]
    found: list[list[Step]] = []
    latest: dict[Any, int] = {}  # by kind
    writers, readers = dict[int, list[tuple[int, Step]]](), dict[int, list[tuple[int, Step]]]()  # by slot
    order = []
    for step in steps:
        kind = kind_of(step)
        place = latest.get(kind, -1)
        near = [x for slot, _ in step.places() for x in writers.get(slot, ())]
        near += [x for slot, _ in step.outputs for x in readers.get(slot, ())]
        if kind is None or place < 0 or any(are_linked(step, x) for where, x in near if where >= place):
            place = len(found)
            found.append([])
            latest[kind] = place
        found[place].append(step)
        order.append(place)
        for slot in {slot for slot, _ in step.outputs}:
            writers.setdefault(slot, []).append((place, step))
        for slot in {slot for slot, _ in step.places()}:
            readers.setdefault(slot, []).append((place, step))
    return [group[0] if len(group) == 1 else together(group) for group in found], order  # type: ignore[arg-type]


def kind_of(step: Step) -> Any:
    """What launches have in common that can be one; None of others."""
    if not isinstance(step, Launch) or step.dims or step.raws or not prod(step.shape) or step.kernel.effects:
        return None
    outputs, inputs = step.layouts()
    nest = Nest(step.shape, (), [*outputs, *inputs])
    if nest.points > LARGE and not step.kernel.each(Old):
        return None
    if len(nest.sizes) > 1 or any("s" in letters for letters in nest.classes) or step.kernel.each(Position):
        return None
    classes = nest.classes
    if nest.points == 1:  # the text for others will do: it walks one point as well
        classes = tuple("0" if 0 in layout.strides else "1" for layout in (*outputs, *inputs))
    return step.kernel, classes, tuple(step.numbers)


def are_linked(step: Step, before: Step) -> bool:
    """Whether one of two steps changes what the other reads or changes."""
    written, known = {slot for slot, _ in before.outputs}, {slot for slot, _ in before.places()}
    changed = [place for place in step.outputs if place[0] in known]
    read = [place for place in step.places() if place[0] in written]
    return any(meet(a, b) for a in changed for b in before.places()) or any(meet(a, b) for a in read for b in before.outputs)
