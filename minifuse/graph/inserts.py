"""What lies in an array beside its part: zeros, or what was there. The part is computed where it belongs.

A schedule asks for steps. Memory that was filled for an array is that of the next one, if nobody else looks at the first: of
many parts each is put into one array.
"""

from typing import Any

from .. import kernels
from ..dag import Task
from ..functions import Embed, Full, Insert, Matmul, Output, Same, View
from ..kernels import Kernel, Load
from ..layout import row_major
from ..operators import detach
from ..take import Put
from .body import copy_of
from .node import Node, base
from .steps import Launch, Place

APART = (Matmul, Output, Embed, Insert, Put)  # functions that are steps of their own


def inserting(schedule: Any, node: Node, function: Embed | Insert) -> Task[None]:
    """What lies around a place, zeros or what was there, then what is put in it, which is computed there."""
    *old, new = node.inputs
    read = list[Place]()
    for x in old:
        as_wanted(schedule, x, node)
        read.append((yield schedule.locating(x)))
    if old and is_spent(schedule, old[0], node):
        schedule.place[node] = read[0]
    else:
        place = schedule.allocate(node, schedule.layouts.get(node, row_major(node.shape)))
        around = Kernel((Load(0, node.dtype) if old else kernels.constant(0, node.dtype),), ())
        reason = f"{'what was there' if old else 'zeros'}, before its part is put in"
        schedule.add(Launch(around, node.shape, (), [place], read), node, reason)
    slot, layout = schedule.place[node]
    part = slot, function.part(layout)
    if new.is_number:
        new = Full(part[1].shape, node.dtype)(new.to(node.dtype))
    is_apart = isinstance(new.function, (View, *APART)) and not isinstance(new.function, Matmul)
    if new in schedule.place or base(new) in schedule.roots or is_apart:
        source = yield schedule.locating(new)
        schedule.add(Launch(copy_of(node), part[1].shape, (), [part], [source]), new, "put where it belongs")
    else:
        schedule.wanted[new] = part
        yield schedule.launching(schedule.space(new), [new])


def passing(schedule: Any, node: Node) -> Task[bool]:
    """A mark on an array that nobody else looks at: it lies where that lies. Whether it does."""
    if not isinstance(node.function, Same) and node.function is not detach:
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


def is_spent(schedule: Any, old: Node, node: Node) -> bool:
    """Whether an array has memory of its own that only `node` looks at, which may lie there."""
    is_own = isinstance(old.function, Embed | Insert) and schedule.place[old][0] >= schedule.first
    is_own = is_own and schedule.layouts.get(node, schedule.place[old][1]) is schedule.place[old][1]
    return is_own and old not in schedule.roots and all(user is node for user in schedule.users[old])


def as_wanted(schedule: Any, old: Node, node: Node) -> None:
    """Let an array lie as one that may come to lie there is to."""
    if node in schedule.layouts and isinstance(old.function, Embed | Insert):
        schedule.layouts.setdefault(old, schedule.layouts[node])
