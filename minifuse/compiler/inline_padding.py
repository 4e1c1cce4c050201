"""Inline padding: compute padded arrays, joins and large slice updates in the kernels that read them, without a buffer.

A padded array costs a launch that fills it, and the stores of its slice, before a kernel reads it. Inlined, each of its
elements is `where(inside, x[index - before], 0)`. A slice update is the same with the old array in the place of 0. Joined
arrays are a chain of updates without a gap: `where(inside y, y[index - n], x[index])`.

A kernel that stores the array all the same, since the call returns it, needs no fill and no copy of the old array. But it
loads what it stores: if a slice is computed from results of other kernels, the last of them stores it in its place for less.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from math import prod

from ..backends.base import Backend
from ..core.indexing import Range
from ..core.operators import Operator
from ..ir.array_functions import Matmul, PadSlice, SliceUpdate, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND, ScatterReduce
from ..ir.graph import Argument, Node, is_identity, is_view, strip_views
from .graph import Graph, needs
from .shifted_reads import MAX_SHIFTED_NODES, NotInlinedError, Shift, ShiftedReads, is_shiftable
from .slice_updates import SliceUpdates, UpdateChain, is_update, slice_ranges

SEPARATE_READERS = (Matmul, CompositeOutput, ScatterReduce, GatherND)
MIN_DENSITY = 0.75  # of the elements of a thin padding that are not padding
MAX_PART_COST = 4  # additions to compute an element of a part of a join that one kernel stores
MAX_JOINED_ARRAYS = 8  # arrays of a join of which a kernel selects the one that it reads
MAX_STORED_ARRAYS = 4  # the same, of a join that is stored in any case
MAX_INTERLEAVED_ARRAYS = 16  # the same, if a kernel of its own would store less than a sector of memory in a row
SECTOR_BYTES = 32
MAX_INLINED_COST = 8  # additions to compute an element of a slice that several threads may compute


@needs(PadSlice, SliceUpdate)
def inline_padding(graph: Graph, target: Backend) -> Graph:
    """Compute padded arrays and large slice updates as selections in the kernels that read them, if the target wants it.

        pad_slice(x)[i]             = where(before <= i < before + n, x[clamp(i - before)], 0)
        slice_update(old, f(x))[i]  = where(before <= i < before + n, f(x[clamp(i - before)]), old[i])
        cat(f(x), y)[i]             = where(n <= i, y[clamp(i - n)], f(where(i < n, x[clamp(i)], 0)))

    An index along a dim is a range of integers, which a kernel computes, plus or minus a number, inside a maximum with 0 and
    a minimum with the last index. There is no clamp along dims where the index is always valid, and no sum if the number is
    0. The condition is separate: comparisons of ranges with numbers, combined by `&`.

    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.array_functions import Reduce
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x: Reduce(add, (0,))(PadSlice((3, 5), ((0, 1, 3), (1, 1, 4)))(x)), (3, 4))
    >>> print(run_pass(inline_padding, graph, inlines_padding=True)[1])
    expand0 = expand(iota0, 3, 5)
    ge0 = expand0 >= 1
    reshape0 = reshape(iota1, 3, 1)
    expand1 = expand(reshape0, 3, 5)
    sub0 = expand0 - 1
    maximum0 = maximum(sub0, 0)
    minimum0 = minimum(maximum0, 3)
    gather_nd0 = gather_nd(x0, expand1, minimum0)
    where0 = where(ge0, gather_nd0, 0)
    sum0 = sum(where0, dim=0)
    """
    if not (target.inlines_padding or target.inlines_thin_padding):
        return graph
    return graph.rebuild(Inliner(graph, only_thin=not target.inlines_padding).inline)


class Inliner:
    """Replaces padded arrays and slice updates, inputs first.

    Attributes
    ----------
    candidates : dict of Node to bool
        The nodes that may be replaced -> whether a kernel stores them in any case.
    memory : set of Node
        The nodes that are in memory when another kernel runs, among the nodes that the graph has by now.
    joined : set of Node
        The updates of arrays that have no gap between their slices, which kernels compute where they read them.
    stored_joins : set of Node
        Those that a kernel stores in any case.
    loads : set of Node
        Updates that only select what is loaded: another update computes them at shifted indices.
    selections : dict of Node to Node
        Selection -> the update that it replaces, for the updates in `loads`.
    merged : dict of Node to Node or None
        What all parts of a join so far are computed by, for `ShiftedReads`.
    """

    def __init__(self, graph: Graph, only_thin: bool = False) -> None:
        self.graph, self.updates, self.only_thin = graph, SliceUpdates(graph), only_thin
        found = [x for x in graph.nodes if is_update(x)]
        excluded = {x for x in found if not self.is_candidate(x)}
        self.joined, self.stored_joins, self.selections = set[Node](), set[Node](), dict[Node, Node]()
        self.memory, self.loads, self.merged = {*graph.memory}, set[Node](), dict[Node, Node | None]()
        chains = [self.updates.chain(x) for x in found if x not in self.updates.inner]
        self.find_loads(chains, lambda x: x not in graph.stored_roots and (x not in excluded or is_selectable(x)))
        for chain in reversed(chains):  # readers first
            if chain.base is None and chain.fill is None:
                if self.is_read_in_place(chain, excluded):
                    excluded.difference_update(chain.updates)
                    self.joined.update(chain.updates)
                else:
                    excluded.update(chain.updates)
        self.candidates = {x: x in self.stored_joins or self.is_stored(x, excluded) for x in found if x not in excluded}
        self.find_loads(chains, lambda x: self.candidates.get(x) is False)
        inlined = [x for x, is_stored in self.candidates.items() if not is_stored]
        self.stored = choose_stored(graph, inlined, self.loads)

    def is_candidate(self, update: Node) -> bool:
        """Return whether an update may be inlined, as far as that does not depend on other updates."""
        function, ranges, readers = update.function, slice_ranges(update), [*self.readers(update)]
        if ranges is None or any(isinstance(x.function, SEPARATE_READERS) for x in readers):  # these load it from memory
            return False
        is_stored = update in self.graph.stored_roots
        if self.only_thin:
            is_viewed = any(map(is_view, self.graph.users[update]))
            return isinstance(function, PadSlice) and not (is_stored or is_viewed) and is_dense(ranges, update, MIN_DENSITY)
        if isinstance(function, SliceUpdate):
            old = update.inputs[0]
            while is_identity(old) and old.inputs:
                (old,) = old.inputs
            is_argument = old in self.graph.memory or isinstance(old.function, Argument)  # its new value is stored in place
            if is_argument or [view.method for view in function.views] != ["slice"]:
                return False
        if isinstance(function, SliceUpdate) or is_stored or any(map(is_update, readers)):
            return is_dense(ranges, update, 1 / 2)  # else an update in place moves less memory
        return all(step >= 1 for _, step, _ in ranges)

    @cached_property
    def rank(self) -> dict[Node, tuple[int, int]]:
        """The order in which values are followed to their inputs: users first."""
        return {x: (-k, 0) for k, x in enumerate(self.graph.nodes)}

    def is_read_in_place(self, join: UpdateChain, excluded: Container[Node]) -> bool:
        """Return whether kernels compute the elements of joined arrays where they read them.

        If the join is stored in any case, one kernel stores it, if all parts cost little. Otherwise each kernel that
        computes a part stores it in its slice.
        """
        parts = [x for x in join.updates if not x.inputs[-1].is_number]
        if self.only_thin or not all(map(is_selectable, join.updates)):
            return False
        is_loaded = any(isinstance(x.function, SEPARATE_READERS) for x in self.readers(join.last))
        count = len(parts) if row_nbytes(join) >= SECTOR_BYTES or len(parts) > MAX_INTERLEAVED_ARRAYS else 0
        if not (is_loaded or self.is_returned(join.last) or self.is_stored(join.last, excluded)):
            return count <= MAX_JOINED_ARRAYS
        self.stored_joins.update(join.updates)
        return count <= MAX_STORED_ARRAYS and all(self.is_cheap(x.inputs[-1]) for x in parts)

    def is_returned(self, update: Node) -> bool:
        """Return whether the call returns an update, through identities or not."""
        found = [update]
        for x in found:
            found += filter(is_identity, self.graph.users[x])
        return not self.graph.stored_roots.isdisjoint(found)

    def is_cheap(self, value: Node) -> bool:
        """Return whether a kernel computes a value at shifted indices for little, of what is in memory before the call."""
        found, computed = find_shiftable(value, self.graph.memory, self.rank, self.loads)
        cost = sum(x.function.cost for x in computed if isinstance(x.function, Operator))
        return cost <= MAX_PART_COST and all(x in computed or not x.inputs or x in self.graph.memory for x in found)

    def find_loads(self, chains: Sequence[UpdateChain], is_inlined: Callable[[Node], bool]) -> None:
        """Find the updates that only select what is loaded, among those that are inlined."""
        self.loads.clear()
        for chain in chains:
            if chain.base is None and all(is_inlined(x) and self.is_load(x.inputs[-1]) for x in chain.updates):
                self.loads.update(chain.nodes)

    def is_load(self, value: Node) -> bool:
        """Return whether a value is a view of an array in memory, or of another load, or has one number in all elements."""
        while not (value.is_number or value in self.graph.memory or value in self.loads or not value.inputs):
            if isinstance(value.function, Operator) or not is_shiftable(value):
                return False
            (value,) = value.inputs
        return True

    def readers(self, update: Node) -> Iterator[Node]:
        """Yield the nodes that read an update, through views and identities or not."""
        return self.graph.readers(update, lambda x: is_view(x) or is_identity(x))

    def is_stored(self, update: Node, excluded: Container[Node]) -> bool:
        """Return whether a kernel stores an update: the call returns it, or an update that is not inlined reads it."""
        return update in self.graph.stored_roots or any(is_update(x) and x in excluded for x in self.readers(update))

    def inline(self, node: Node, rebuilt: Node) -> Node:
        """Return the selection that replaces an update, and any other node as it was rebuilt."""
        result = rebuilt
        if node in self.candidates:
            try:
                result = self.select(rebuilt, self.candidates[node], node in self.joined)
            except NotInlinedError:
                result = rebuilt
            if result is not rebuilt and node in self.loads and node not in self.stored:
                self.selections[result] = rebuilt
            else:
                self.memory.add(result)  # as an array that is read at other indices
        elif is_update(node) or node in self.graph.stored_roots or node in self.stored:
            self.memory.add(rebuilt)
        return result

    def select(self, update: Node, is_stored: bool, is_joined: bool) -> Node:
        """Return an update as a selection of its slice and the old array.

        Raises
        ------
        NotInlinedError
            The slice costs less if it is stored.
        """
        shape, (*_, value) = update.shape, update.inputs
        whole = tuple(Shift(d, 0) for d in range(len(shape)))
        reads = ShiftedReads(self.memory, self.selections, self.merged, shape, is_joined)
        try:
            return reads.select(update, whole)
        except NotInlinedError:
            if is_stored:
                raise
            loaded = ShiftedReads({*self.memory, value}, self.selections, self.merged, shape, is_joined)
            return loaded.select(update, whole)


def is_selectable(update: Node) -> bool:
    """Return whether the new value of an update is a slice of the result, with elements in the same order."""
    ranges = slice_ranges(update)
    is_slice = isinstance(update.function, PadSlice) or len(update.function.views) == 1
    return is_slice and ranges is not None and all(step >= 1 for _, step, _ in ranges)


def row_nbytes(join: UpdateChain) -> int:
    """Return the number of contiguous bytes of the shortest row of a part of joined arrays."""
    rows = []
    for x in join.updates:
        size = 1
        for (_, step, part), n in zip(reversed(slice_ranges(x) or ()), reversed(x.shape), strict=True):
            size *= part if step == 1 else 1
            if part < n:
                break
        rows.append(size)
    nbytes: int = min(rows) * join.last.dtype.itemsize
    return nbytes


def is_dense(ranges: Sequence[Range], update: Node, density: float) -> bool:
    """Return whether a slice has no gaps, and at least a part of the elements of an update."""
    return all(step == 1 for _, step, _ in ranges) and prod(size for *_, size in ranges) >= density * update.size


def choose_stored(graph: Graph, updates: Sequence[Node], loads: Container[Node]) -> set[Node]:
    """Choose the values that kernels store because other kernels read them at the shifted indices of some updates.

    The new value of an update is stored, or computed at shifted indices from others, if that costs little. If updates share
    values, one choice is made for all of them: the last values are replaced by their inputs, one by one, and of all sets on
    this path, the one with the fewest elements that are not in memory anyway is stored. `loads` are updates that are
    computed at shifted indices, too.
    """
    depth: dict[Node, int] = {}
    for x in graph.nodes:
        depth[x] = 1 + max((depth[i] for i in x.inputs), default=0)
    rank = {x: (-depth[x], k) for k, x in enumerate(graph.nodes)}  # users first
    behind = {x: find_shiftable(x.inputs[-1], graph.memory, rank, loads) for x in updates}
    readers: dict[Node, list[Node]] = {}
    for update, (found, _) in behind.items():
        for x in found:
            readers.setdefault(x, []).append(update)

    def count_stored(x: Node) -> int:
        """Return the number of elements that a kernel stores only so that others read a value at shifted indices."""
        source = strip_views(x)
        is_in_memory = source in graph.memory or source in graph.stored_roots
        return source.size if not is_in_memory and (source.is_pointwise or source in behind) else 0

    chosen: set[Node] = set()
    for update in updates:
        group, computed, kept = readers.pop(update.inputs[-1], []), set[Node](), set[Node]()
        for x in group:
            found, shiftable = behind[x]
            group += [y for v in found for y in readers.pop(v, ())]
            computed |= shiftable
            kept |= found - shiftable  # for another update, these cost too much
        cut, replaced, best = {x.inputs[-1] for x in group}, list[Node](), 0
        count = least = sum(map(count_stored, cut))
        for x in sorted(computed - kept, key=rank.__getitem__):
            if x in cut:
                count += sum(count_stored(i) for i in {*x.inputs} - cut) - count_stored(x)
                cut.remove(x)
                cut.update(x.inputs)
                replaced.append(x)
                is_same_array = isinstance(x.function, View) and best == len(replaced) - 1
                if count < least or (count == least and is_same_array):
                    least, best = count, len(replaced)
        chosen.update(x.inputs[-1] for x in group)
        for x in replaced[:best]:
            chosen.discard(x)
            chosen.update(x.inputs)
    return {x for x in chosen if x.inputs}


def find_shiftable(
    value: Node, memory: Container[Node], rank: Mapping[Node, tuple[int, int]], loads: Container[Node] = ()
) -> tuple[set[Node], set[Node]]:
    """Return a value and those that it is computed from, and the ones that a kernel may compute at shifted indices.

    They are followed as long as the cost of all functions is low. Nodes with a low rank are visited first.
    """
    found, computed, cost, pending = {value}, set[Node](), 0, [(rank[value], value)]
    while pending and len(found) <= MAX_SHIFTED_NODES:
        _, x = heappop(pending)
        ops = x.function.cost if isinstance(x.function, Operator) else 0
        if x not in memory and (x in loads or is_shiftable(x)) and cost + ops <= MAX_INLINED_COST:
            cost += ops
            computed.add(x)
            for i in x.inputs:
                if i not in found and not i.is_number:
                    found.add(i)
                    heappush(pending, (rank[i], i))
    return found, computed
