"""Which of several values over one space share a kernel."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from ..functions import Fold
from .body import Body, Space
from .node import Node

MOST_ARRAYS = 12  # that a kernel for several values reads: with more, threads have few registers for what is on its way
FEW_POINTS = 1 << 16  # of which less is moved in the time of a launch
ANY = 1 << 30

Groups = dict[tuple[Space, Node | None], list[Node]]  # by the space, and by the product whose sums are finished


def most_arrays(space: Space) -> int:
    """How many arrays a kernel for several values may read: where there are few points, a launch costs most."""
    return MOST_ARRAYS if prod(space.shape) > FEW_POINTS else ANY


def related(nodes: Iterable[Node], arrays_of: Callable[[list[Node]], set[Node]], most: int) -> list[list[Node]]:
    """Nodes by what they read: a kernel for values that have no array in common would only be larger.

    A value joins those with which it shares an array as long as they read no more than `most`.
    """
    groups: list[tuple[set[Node], list[Node]]] = []
    for node in nodes:
        arrays, members, others = arrays_of([node]), list[Node](), []
        for group in groups:
            if group[0] & arrays and len(group[0] | arrays) <= most:
                arrays = arrays | group[0]
                members += group[1]
            else:
                others.append(group)
        groups = [*others, (arrays, [*members, node])]
    return [members for _, members in groups]


def foresee(schedule: Any, groups: Groups) -> None:
    """Add the folds that one group's kernel would miss to those over the same rows: then they are folded in one go."""
    for space, product in list(groups):
        if product is not None or all(other is space or not other.dims for other, _ in groups):
            continue
        body, schedule.is_looking = Body(schedule, space), True
        for node in groups[space, product]:
            body.expression(node, space.sees(node.shape))
        schedule.is_looking = False
        for node in body.missing:
            others = groups.get((schedule.space(node), None), []) if isinstance(node.function, Fold) else []
            if others and node not in set(others):
                others.append(node)
