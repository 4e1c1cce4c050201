"""Arrays that are put together: zeros, or what was there, with parts in it, each of which is computed where it belongs.

A schedule asks for steps. Where nobody else looks at an array that receives a part, the next one lies in its memory: one
that receives part after part has one buffer, which is filled once, and not at all where its parts leave no gap.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ..core.errors import ShapeError
from ..core.indexing import Range, range_bounds
from ..core.interning import Task
from ..core.layout import Layout, row_major
from ..ir import kernel_ir
from ..ir.array_functions import CompositeOutput, Full, Matmul, PadSlice, SliceUpdate, View
from ..ir.gather import ScatterAdd
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, Load
from ..ir.steps import BufferView, KernelLaunch
from .kernel_builder import copy_kernel
from .materialize_reindexed import is_identity

Preassigned = tuple[Node, BufferView]  # where a node that is not computed yet is to lie

SEPARATE_STEPS = (Matmul, CompositeOutput, PadSlice, SliceUpdate, ScatterAdd)  # functions that are steps of their own


def schedule_slice_update(schedule: Any, node: Node) -> Task[None]:
    """Memory for an array that is put together, what lies around its parts, and each part."""
    chain = update_chain(schedule, node)
    parts = [x for x in chain if isinstance(x.function, PadSlice | SliceUpdate)]
    ranges = [slice_ranges(x) for x in parts]
    is_free = are_disjoint(ranges)  # to be computed in any order
    layout = schedule.layouts.get(node, row_major(node.shape))
    if is_free and sum(prod(size for *_, size in part) for part in ranges if part is not None) == node.size:
        place = schedule.allocate(chain[0], layout)
    else:
        place = yield base_buffer(schedule, chain[0], layout)
    schedule.buffers |= dict.fromkeys(chain, place)
    places: list[BufferView] = [(place[0], x.function.region_layout(place[1])) for x in parts]
    wishes = [preassign(schedule, x, where) if is_free else None for x, where in zip(parts, places, strict=True)]
    for x, where, wished in zip(parts, places, wishes, strict=True):
        yield schedule_part(schedule, x, where, wished if is_free else preassign(schedule, x, where))


def update_chain(schedule: Any, node: Node) -> list[Node]:
    """An array after each of its parts, the last of which is `node`: those that can lie in one buffer."""
    chain = [node]
    while not isinstance(chain[-1].function, PadSlice):
        old = chain[-1].inputs[0]
        is_one = isinstance(old.function, PadSlice | SliceUpdate) or is_identity(old)
        if not is_one or old in schedule.buffers or not has_only_user(schedule, old, chain[-1]):
            break
        if schedule.layouts.get(old) is not schedule.layouts.get(node) and old in schedule.layouts:
            break
        chain.append(old)
    while is_identity(chain[-1]):  # on something else
        chain.pop()
    return chain[::-1]


def base_buffer(schedule: Any, node: Node, layout: Layout) -> Task[BufferView]:
    """The place of an array that is about to receive its first part, with what lies beside that."""
    if isinstance(node.function, PadSlice):
        place: BufferView = schedule.allocate(node, layout)
        zeros = KernelLaunch(Kernel((kernel_ir.constant(0, node.dtype),), ()), node.shape, (), [place], [])
        schedule.add(zeros, node, "zeros, before its parts are put in")
        return place
    old = node.inputs[0]
    if is_computed_by_kernel(old) and old not in schedule.buffers and has_only_user(schedule, old, node):
        place = schedule.preassigned[old] = schedule.allocate(node, layout)
        yield schedule.emit_kernel(schedule.space(old), [old])
        read: BufferView = schedule.buffers[old]
        if read is place:
            return place
    else:
        propagate_layout(schedule, old, node)
        read = yield schedule.materialize(old)
        if is_reusable(schedule, old, node):
            return read
        place = schedule.allocate(node, layout)
    copy = KernelLaunch(Kernel((Load(0, node.dtype),), ()), node.shape, (), [place], [read])
    schedule.add(copy, node, "what was there, before its parts are put in")
    return place


def slice_value(node: Node) -> Node:
    """What an array receives; of a number, an array of it."""
    new, function = node.inputs[-1], node.function
    if not new.is_number:
        return new
    filled: Node = Full(function.region_layout(row_major(node.shape)).shape, node.dtype)(new.to(node.dtype))
    return filled


def preassign(schedule: Any, node: Node, place: BufferView) -> Preassigned | None:
    """Let the part that an array receives be computed in its place; None where others look at it, or it is there already."""
    x, user, (slot, layout) = slice_value(node), node, place
    found: Preassigned | None = None
    while x not in schedule.buffers and has_only_user(schedule, x, user):
        if is_computed_by_kernel(x) or isinstance(x.function, Matmul | CompositeOutput):
            found = x, (slot, layout)
        if not isinstance(x.function, View) and not is_identity(x):
            break
        below = invert_view(x.function, layout, x.inputs[0].shape) if isinstance(x.function, View) else layout
        if below is None:
            break
        (x,), user, layout = x.inputs, x, below
    if found is not None:
        schedule.preassigned[found[0]] = found[1]
    return found


def schedule_part(schedule: Any, node: Node, place: BufferView, wished: Preassigned | None) -> Task[None]:
    """A step that computes a part in its place, if it is not there yet; a copy, where it had to be computed elsewhere."""
    new = slice_value(node)
    if wished is not None:
        x, where = wished
        if x not in schedule.buffers:
            is_whole = isinstance(x.function, CompositeOutput)
            yield schedule.materialize(x) if is_whole else schedule.emit_kernel(schedule.space(x), [x])
        schedule.preassigned.pop(x, None)
        if schedule.buffers[x] is where:
            if x not in schedule.users:  # a number's array: a later part of the same number is computed again
                del schedule.buffers[x]
            return
        for mark in identities(new, x):
            schedule.buffers[mark] = schedule.locate_stored(mark.inputs[0])
    source = yield schedule.materialize(new)
    schedule.add(KernelLaunch(copy_kernel(new), place[1].shape, (), [place], [source]), new, "put where it belongs")


def identities(node: Node, x: Node) -> list[Node]:
    """The marks among what stands between a node and one that it is the same as, the last one first."""
    found = list[Node]()
    while node is not x:
        found += [node] * is_identity(node)
        (node,) = node.inputs
    return found[::-1]


def alias_identity(schedule: Any, node: Node) -> Task[bool]:
    """A mark on an array that nobody else looks at: it lies where that lies. Whether it does."""
    if not is_identity(node):
        return False
    (x,) = node.inputs
    if not isinstance(x.function, PadSlice | SliceUpdate):
        return False
    propagate_layout(schedule, x, node)
    yield schedule.materialize(x)
    if not is_reusable(schedule, x, node):
        return False
    schedule.buffers[node] = schedule.buffers[x]
    return True


def is_computed_by_kernel(node: Node) -> bool:
    """Whether a kernel computes a node: it is no input, no view, and no step of its own."""
    return node.function is not None and not isinstance(node.function, (View, *SEPARATE_STEPS))


def has_only_user(schedule: Any, node: Node, user: Node) -> bool:
    """Whether nobody looks at a node but one user."""
    return node not in schedule.roots and all(x is user for x in schedule.users.get(node, ()))


def is_reusable(schedule: Any, old: Node, node: Node) -> bool:
    """Whether an array has memory of its own that only `node` looks at, which may lie there."""
    is_own = isinstance(old.function, PadSlice | SliceUpdate) and schedule.buffers[old][0] >= schedule.first_buffer
    is_own = is_own and schedule.layouts.get(node, schedule.buffers[old][1]) is schedule.buffers[old][1]
    return is_own and has_only_user(schedule, old, node)


def propagate_layout(schedule: Any, old: Node, node: Node) -> None:
    """Let an array lie as one that may come to lie there is to."""
    if node in schedule.layouts and isinstance(old.function, PadSlice | SliceUpdate):
        schedule.layouts.setdefault(old, schedule.layouts[node])


def slice_ranges(node: Node) -> tuple[Range, ...] | None:
    """Where an array receives a part, a range for each dim; None where that is no slice, or empty."""
    function = node.function
    ranges: tuple[Range, ...] | None = None
    if isinstance(function, PadSlice):
        ranges = function.ranges
    elif [view.method for view in function.views] == ["slice"]:
        ranges = function.views[0].parameters
    return ranges if ranges and all(size for *_, size in ranges) else None


def are_disjoint(parts: Sequence[tuple[Range, ...] | None]) -> bool:
    """Whether parts do not meet, since along one dim they lie behind each other."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return False
    along = (sorted(range_bounds(*r) for r in ranges) for ranges in zip(*known, strict=True))
    return any(all(a[1] < b[0] for a, b in pairwise(spans)) for spans in along)


def invert_view(view: View, layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """How an array of a shape lies whose view lies in a layout; None where other views than these two would be needed."""
    if view.method == "permute":
        return layout.permute(*sorted(range(len(shape)), key=view.parameters.__getitem__))
    if view.method in ("reshape", "unflatten"):
        try:
            return layout.reshape(*shape)
        except ShapeError:
            return None
    return None
