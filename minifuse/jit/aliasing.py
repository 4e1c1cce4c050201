"""Find aliases among the inputs of a fused call: inputs that are one tensor, or share memory. The cache key contains them.

A trace is valid for all calls whose inputs alias each other in the same way. Two inputs that share elements matter only
if the function modifies one of them in place. If it reads the other only before that change, the call reads a copy of the
other, and it does not matter where the two overlap. Otherwise the distance between the two is part of the key.

Inputs that share bytes as elements of two dtypes cannot be views of one array. They need a copy; if no copy helps, the call
raises an error. That depends on the effects that the trace of this call found, not on those of other traces: see
`inputs_to_copy`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..compiler.trace_result import InputEffects
from ..core.errors import OverlapError
from ..tensors.mutation import are_views_of_one_array, overlapping_groups, shares_memory
from ..tensors.tensor import CallInput, Tensor
from .guards import ClosureGuard

Run = Callable[..., Any]  # a function that runs a call of a fused function: run(*inputs) returns its results

get_address = attrgetter("address")
MAX_ADDRESSES = 4096  # cached runs of an AddressDispatch, one per combination of input addresses


class Aliasing(NamedTuple):
    """The aliases among the inputs of a call, as far as they matter for the function."""

    alias_of: tuple[int, ...] = ()
    """For each tensor, the index of the first one that is the same object; empty if all are different."""
    hidden: tuple[tuple[int, int], ...] = ()
    """(index, id) of inputs that another trace of the function found in a closure or a global."""
    copies: frozenset[int] = frozenset()
    """Inputs that the call reads from a copy."""
    distances: tuple[tuple[int, int, int], ...] = ()
    """(index, index, bytes from the first to the second) of inputs that share elements and are not copied."""


class AliasAnalysis:
    """Facts that the traces of a function found. They determine which aliases among inputs need a new trace."""

    def __init__(self) -> None:
        self.stored = set[int]()  # inputs that are modified in place
        self.read_after = set[tuple[int, int]]()  # (stored, read): the second is read after a change of the first
        self.exposed = set[int]()  # inputs that results share memory with, or that receive gradients
        self.hidden: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # by id: tensors of closures and globals

    def add_effects(self, effects: InputEffects) -> None:
        """Add the effects that a trace found."""
        self.stored |= effects.stored
        self.read_after |= effects.read_after
        self.exposed |= effects.exposed
        self.hidden.update({id(x): x for x in effects.hidden})

    def find_aliasing(self, flat: Sequence[CallInput], is_recorded: bool, grads: Sequence[Tensor] = ()) -> Aliasing:
        """Return how the inputs of a call alias each other.

        Parameters
        ----------
        flat
            Tensors and numbers.
        is_recorded
            True if a gradient may be required: then the call must detect that an input is modified after it was read.
        grads
            Gradients of the inputs, if the function reads them.

        Raises
        ------
        OverlapError
            A tensor that is not an input, and an input that is modified in place, share elements.
        """
        tensors = [x for x in flat if isinstance(x, Tensor)]
        alias_of = first_occurrences([*tensors, *grads])
        hidden = tuple((k, id(x)) for k, x in enumerate(flat) if id(x) in self.hidden) if self.hidden else ()
        if not self.stored:
            return Aliasing(alias_of, hidden)
        self.check_hidden(flat)
        if not (groups := overlapping_groups(flat)):
            return Aliasing(alias_of, hidden)
        facts = self.merge_same_inputs(flat) if alias_of else self
        groups = [group for group in groups if not facts.stored.isdisjoint(group)]
        copies = frozenset[int]() if is_recorded else frozenset(k for group in groups for k in facts.find_copyable(group))
        not_copied = [None if k in copies else x for k, x in enumerate(flat)]
        groups = [group for group in overlapping_groups(not_copied) if not facts.stored.isdisjoint(group)]
        by_first = ((min(group), group) for group in groups)
        distances = tuple((j, k, x.address - group[j].address) for j, group in by_first for k, x in group.items() if k != j)
        return Aliasing(alias_of, hidden, copies, distances)

    def merge_same_inputs(self, flat: Sequence[object]) -> "AliasAnalysis":
        """Return these facts for a call in which inputs may be one tensor: facts about each become facts about the first."""
        ids = [*map(id, flat)]
        first = {k: ids.index(x) for k, x in enumerate(ids)}
        merged = AliasAnalysis()
        merged.stored = {first[k] for k in self.stored if k in first}
        merged.exposed = {first[k] for k in self.exposed if k in first}
        merged.read_after = {(first[j], first[k]) for j, k in self.read_after if j in first and k in first}
        return merged

    def find_copyable(self, group: Mapping[int, Tensor]) -> Iterator[int]:
        """Yield the inputs of a group that overlap a modified one, and that the call can read from a copy instead."""
        for k, x in group.items():
            if k in self.stored or k in self.exposed or x.meta.requires_grad:
                continue
            targets = [j for j, y in group.items() if j in self.stored and shares_memory(y, x)]
            is_read_before = not any((j, k) in self.read_after for j in targets)
            if is_read_before and not all(are_equal_views(group[j], x) for j in targets):
                yield k

    def check_hidden(self, flat: Sequence[CallInput]) -> None:
        """Raise an OverlapError if an in-place operation would change a tensor that is not an input of the call."""
        input_ids = {id(x) for x in flat}
        for x in [x for key, x in self.hidden.items() if key not in input_ids]:
            stored = (y for k, y in enumerate(flat) if k in self.stored and isinstance(y, Tensor))
            if any(shares_memory(y, x) for y in stored):
                raise OverlapError(
                    f"a tensor of shape {x.shape} from a closure or a global of a fused function shares memory with an "
                    "argument that the function modifies in place; pass both as arguments"
                )


class AddressDispatch:
    """The fast path of a function that modifies inputs in place: a table of runs by the addresses of the inputs.

    Layouts and dtypes are equal for all calls in one table, so which elements are shared depends on the addresses alone.

    Parameters
    ----------
    find
        Returns the run for these arguments. The run takes the arguments, followed by the tensors of the guard.
    guard
        The guard of the function. Its `tensors` are those in closures and globals.
    """

    def __init__(self, find: Callable[[tuple[object, ...]], Run], guard: ClosureGuard) -> None:
        self.find, self.guard = find, guard
        self.runs: dict[tuple[int | None, ...], Run] = {}

    def __call__(self, *inputs: object) -> Any:
        """Run a call."""
        flat = (*inputs, *self.guard.tensors) if self.guard.tensors else inputs
        try:
            addresses = tuple(map(get_address, flat))
        except AttributeError:  # some inputs are numbers
            addresses = tuple([getattr(x, "address", None) for x in flat])
        run = self.runs.get(addresses)
        if run is None:
            run = self.find(inputs)
            if len(self.runs) >= MAX_ADDRESSES:
                self.runs.clear()
            self.runs[addresses] = run
        return run(*flat)


def inputs_to_copy(name: str, labels: Sequence[str], flat: Sequence[CallInput], effects: InputEffects) -> frozenset[int]:
    """Return the inputs that must be read from copies, since their bytes are modified as elements of another dtype.

    Parameters
    ----------
    name, labels
        The names of the function and its inputs in messages.
    flat
        Tensors and numbers of a call.
    effects
        The effects that the trace of this call found.

    Raises
    ------
    OverlapError
        No copy helps: the bytes are read after the change, or are modified too, or a result or a gradient refers to them.
    """
    analysis = AliasAnalysis()
    analysis.add_effects(effects)
    facts, inputs = analysis.merge_same_inputs(flat), set[int]()
    for group in overlapping_groups(flat) if facts.stored else ():
        copies = {*facts.find_copyable(group)}
        for (j, x), (k, y) in product(group.items(), group.items()):
            if j not in facts.stored or are_views_of_one_array(x, y) or not shares_memory(x, y):
                continue
            if k not in copies:
                first, second = (labels[i] or f"input {i}" for i in (j, k))
                if k in facts.stored:
                    use = f"{second} is changed too"
                elif k in facts.exposed or y.meta.requires_grad:
                    use = f"a result or a gradient refers to {second}"
                else:
                    use = f"{second} is read after a change of its bytes"
                raise OverlapError(
                    f"{name}: {first} ({x.dtype}) and {second} ({y.dtype}) share bytes, but not as the same elements: "
                    f"{first} is changed in place, and {use}; pass {second}.clone(), which shares nothing with {first}, or "
                    "call the function without @mf.fuse"
                )
            inputs.add(k)
    return frozenset(inputs)


def first_occurrences(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return for each tensor the index of the first one that is the same object; an empty tuple if all are different."""
    ids = [*map(id, tensors)]
    return () if len({*ids}) == len(ids) else tuple(map(ids.index, ids))


def are_equal_views(x: Tensor, y: Tensor) -> bool:
    """Return True if two tensors are the same view of the same memory."""
    return x.address == y.address and x.meta.layout is y.meta.layout and x.dtype is y.dtype
