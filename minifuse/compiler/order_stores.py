"""Decide which values are computed before the call's in-place changes, and which after them.

A value that reads the old contents of an argument is computed before the argument is changed; a value that reads the new
contents is computed afterwards.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from ..backends.base import Backend
from ..core.interning import toposort
from ..ir.array_functions import Alias, SliceUpdate
from ..ir.graph import Node, strip_views
from ..ir.steps import BufferView, may_overlap
from .graph import Graph, Store, needs


@needs(Store)
def order_stores(graph: Graph, _target: Backend) -> Graph:
    """Mark the results that are computed after the in-place changes, and copy values that a change would overwrite.

    x[...] = x.T  ->  x[...] = copy(x.T), since the elements of x.T change while they are stored

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> print(run_pass(order_stores, trace(lambda x: x.T, (4, 4), stored_in=0))[1])
    permute0 = permute(x0, 1, 0)
    copy0 = copy(permute0)
    x0 <- copy0
    """
    memory = graph.memory
    overwritten = find_aliasing_nodes(memory, [memory[store.argument] for store in graph.stores])
    values = [x.clone() if strip_views(x) in overwritten else x for x in (store.value for store in graph.stores)]
    # Values that the next value of the same argument may overwrite:
    replaced = [k for k, store in enumerate(graph.stores[1:]) if store.argument is graph.stores[k].argument]
    occurrences = Counter(map(strip_views, values))
    for k in replaced:
        if occurrences[strip_views(values[k])] > 1:  # others read this node later, so a distinct node is stored
            values[k] = Alias(("stored", k))(values[k])
    updates = {node for _, node in graph.contents if isinstance(node.function, SliceUpdate)}  # read without a copy
    earlier = overwritten | {strip_views(values[k]) for k in replaced}
    late = find_store_dependents(graph.results, updates, earlier)
    stores = tuple(store._replace(value=value) for store, value in zip(graph.stores, values, strict=True))
    return replace(graph, stores=stores, late=frozenset(late))


def split_stores(argument: Node, value: Node) -> list[Store]:
    """Return the stores of a value in an argument, in order. A chain of slice updates stores only these slices."""
    stores: list[Store] = []
    while isinstance(value.function, SliceUpdate):
        old, new = value.inputs
        stores.append(Store(argument, value.function, new))
        value = old
    if value is not argument:
        stores.append(Store(argument, SliceUpdate(()), value))
    return stores[::-1]


def find_aliasing_nodes(memory: dict[Node, BufferView], targets: Iterable[BufferView]) -> set[Node]:
    """Return the nodes whose memory overlaps one of the targets of stores."""
    targets_by_slot: dict[int, list[BufferView]] = {}
    for target in targets:
        targets_by_slot.setdefault(target[0], []).append(target)
    return {node for node, x in memory.items() if any(may_overlap(x, target) for target in targets_by_slot.get(x[0], ()))}


def find_store_dependents(nodes: Iterable[Node], final: Collection[Node], earlier: Collection[Node]) -> list[Node]:
    """Return the nodes that are computed from final contents of arguments, and from no earlier contents.

    Parameters
    ----------
    nodes : iterable of Node
        The nodes to choose from.
    final : collection of Node
        The final contents of arguments.
    earlier : collection of Node
        Earlier contents: those before the call, and slices that a later slice of the same argument may overwrite.
    """
    late: dict[Node, bool] = {}  # node -> whether it reads final contents; nodes that read old contents are not in it
    for node in toposort(nodes if final else (), lambda x: () if x in final else x.inputs):
        if node not in earlier and all(x in late for x in node.inputs if node not in final):
            late[node] = node in final or any(late[x] for x in node.inputs)
    return [node for node in nodes if late.get(node) and strip_views(node) not in final]
