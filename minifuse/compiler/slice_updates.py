"""Arrays that are put together: zeros, or what was there, with parts in it, each of which is computed where it belongs.

A schedule asks for steps. Where nobody else looks at an array that receives a part, the next one lies in its memory: one
that receives part after part has one buffer, which is filled once, and not at all where its parts leave no gap.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ..core.errors import ShapeError
from ..core.indexing import Range, ends
from ..core.interning import Task
from ..core.layout import Layout, row_major
from ..ir import kernel_ir
from ..ir.array_functions import Embed, Full, Insert, Matmul, Output, View
from ..ir.gather import Put
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, Load
from ..ir.steps import Launch, Place
from .kernel_builder import copy_of
from .materialize_reindexed import is_mark

Wish = tuple[Node, Place]  # where a node that is not computed yet is to lie

APART = (Matmul, Output, Embed, Insert, Put)  # functions that are steps of their own


def inserting(schedule: Any, node: Node) -> Task[None]:
    """Memory for an array that is put together, what lies around its parts, and each part."""
    chain = put_together(schedule, node)
    parts = [x for x in chain if isinstance(x.function, Embed | Insert)]
    ranges = [ranges_of(x) for x in parts]
    is_free = are_apart(ranges)  # to be computed in any order
    layout = schedule.layouts.get(node, row_major(node.shape))
    if is_free and sum(prod(size for *_, size in part) for part in ranges if part is not None) == node.size:
        place = schedule.allocate(chain[0], layout)
    else:
        place = yield surroundings(schedule, chain[0], layout)
    schedule.place |= dict.fromkeys(chain, place)
    places: list[Place] = [(place[0], x.function.part(place[1])) for x in parts]
    wishes = [wish(schedule, x, where) if is_free else None for x, where in zip(parts, places, strict=True)]
    for x, where, wished in zip(parts, places, wishes, strict=True):
        yield putting(schedule, x, where, wished if is_free else wish(schedule, x, where))


def put_together(schedule: Any, node: Node) -> list[Node]:
    """An array after each of its parts, the last of which is `node`: those that can lie in one buffer."""
    chain = [node]
    while not isinstance(chain[-1].function, Embed):
        old = chain[-1].inputs[0]
        is_one = isinstance(old.function, Embed | Insert) or is_mark(old)
        if not is_one or old in schedule.place or not is_only_for(schedule, old, chain[-1]):
            break
        if schedule.layouts.get(old) is not schedule.layouts.get(node) and old in schedule.layouts:
            break
        chain.append(old)
    while is_mark(chain[-1]):  # on something else
        chain.pop()
    return chain[::-1]


def surroundings(schedule: Any, node: Node, layout: Layout) -> Task[Place]:
    """The place of an array that is about to receive its first part, with what lies beside that."""
    if isinstance(node.function, Embed):
        place: Place = schedule.allocate(node, layout)
        zeros = Launch(Kernel((kernel_ir.constant(0, node.dtype),), ()), node.shape, (), [place], [])
        schedule.add(zeros, node, "zeros, before its parts are put in")
        return place
    old = node.inputs[0]
    if is_plain(old) and old not in schedule.place and is_only_for(schedule, old, node):
        place = schedule.wanted[old] = schedule.allocate(node, layout)
        yield schedule.launching(schedule.space(old), [old])
        read: Place = schedule.place[old]
        if read is place:
            return place
    else:
        as_wanted(schedule, old, node)
        read = yield schedule.locating(old)
        if is_spent(schedule, old, node):
            return read
        place = schedule.allocate(node, layout)
    copy = Launch(Kernel((Load(0, node.dtype),), ()), node.shape, (), [place], [read])
    schedule.add(copy, node, "what was there, before its parts are put in")
    return place


def part_of(node: Node) -> Node:
    """What an array receives; of a number, an array of it."""
    new, function = node.inputs[-1], node.function
    if not new.is_number:
        return new
    filled: Node = Full(function.part(row_major(node.shape)).shape, node.dtype)(new.to(node.dtype))
    return filled


def wish(schedule: Any, node: Node, place: Place) -> Wish | None:
    """Let the part that an array receives be computed in its place; None where others look at it, or it is there already."""
    x, user, (slot, layout) = part_of(node), node, place
    found: Wish | None = None
    while x not in schedule.place and is_only_for(schedule, x, user):
        if is_plain(x) or isinstance(x.function, Matmul | Output):
            found = x, (slot, layout)
        if not isinstance(x.function, View) and not is_mark(x):
            break
        below = backwards(x.function, layout, x.inputs[0].shape) if isinstance(x.function, View) else layout
        if below is None:
            break
        (x,), user, layout = x.inputs, x, below
    if found is not None:
        schedule.wanted[found[0]] = found[1]
    return found


def putting(schedule: Any, node: Node, place: Place, wished: Wish | None) -> Task[None]:
    """A step that computes a part in its place, if it is not there yet; a copy, where it had to be computed elsewhere."""
    new = part_of(node)
    if wished is not None:
        x, where = wished
        if x not in schedule.place:
            is_whole = isinstance(x.function, Output)
            yield schedule.locating(x) if is_whole else schedule.launching(schedule.space(x), [x])
        schedule.wanted.pop(x, None)
        if schedule.place[x] is where:
            if x not in schedule.users:  # a number's array: a later part of the same number is computed again
                del schedule.place[x]
            return
        for mark in marks(new, x):
            schedule.place[mark] = schedule.located(mark.inputs[0])
    source = yield schedule.locating(new)
    schedule.add(Launch(copy_of(new), place[1].shape, (), [place], [source]), new, "put where it belongs")


def marks(node: Node, x: Node) -> list[Node]:
    """The marks among what stands between a node and one that it is the same as, the last one first."""
    found = list[Node]()
    while node is not x:
        found += [node] * is_mark(node)
        (node,) = node.inputs
    return found[::-1]


def passing(schedule: Any, node: Node) -> Task[bool]:
    """A mark on an array that nobody else looks at: it lies where that lies. Whether it does."""
    if not is_mark(node):
        return False
    (x,) = node.inputs
    if not isinstance(x.function, Embed | Insert):
        return False
    as_wanted(schedule, x, node)
    yield schedule.locating(x)
    if not is_spent(schedule, x, node):
        return False
    schedule.place[node] = schedule.place[x]
    return True


def is_plain(node: Node) -> bool:
    """Whether a kernel computes a node: it is no input, no view, and no step of its own."""
    return node.function is not None and not isinstance(node.function, (View, *APART))


def is_only_for(schedule: Any, node: Node, user: Node) -> bool:
    """Whether nobody looks at a node but one user."""
    return node not in schedule.roots and all(x is user for x in schedule.users.get(node, ()))


def is_spent(schedule: Any, old: Node, node: Node) -> bool:
    """Whether an array has memory of its own that only `node` looks at, which may lie there."""
    is_own = isinstance(old.function, Embed | Insert) and schedule.place[old][0] >= schedule.first
    is_own = is_own and schedule.layouts.get(node, schedule.place[old][1]) is schedule.place[old][1]
    return is_own and is_only_for(schedule, old, node)


def as_wanted(schedule: Any, old: Node, node: Node) -> None:
    """Let an array lie as one that may come to lie there is to."""
    if node in schedule.layouts and isinstance(old.function, Embed | Insert):
        schedule.layouts.setdefault(old, schedule.layouts[node])


def ranges_of(node: Node) -> tuple[Range, ...] | None:
    """Where an array receives a part, a range for each dim; None where that is no slice, or empty."""
    function = node.function
    ranges: tuple[Range, ...] | None = None
    if isinstance(function, Embed):
        ranges = function.ranges
    elif [view.method for view in function.views] == ["slice"]:
        ranges = function.views[0].parameters
    return ranges if ranges and all(size for *_, size in ranges) else None


def are_apart(parts: Sequence[tuple[Range, ...] | None]) -> bool:
    """Whether parts do not meet, since along one dim they lie behind each other."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return False
    along = (sorted(ends(*r) for r in ranges) for ranges in zip(*known, strict=True))
    return any(all(a[1] < b[0] for a, b in pairwise(spans)) for spans in along)


def backwards(view: View, layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """How an array of a shape lies whose view lies in a layout; None where other views than these two would be needed."""
    if view.method == "permute":
        return layout.permute(*sorted(range(len(shape)), key=view.parameters.__getitem__))
    if view.method in ("reshape", "split"):
        try:
            return layout.reshape(*shape)
        except ShapeError:
            return None
    return None
