"""@fuse: a Python function of tensors as few kernels.

The first call captures the function: it runs once, with tensors that have no values, and becomes a graph, a plan, and a
host program. Later calls of the same kind run that program. What a call of the same kind is, the key says: the spec of each
tensor, the type of each number, the value of all else, the structure of the arguments, what the function reads from outside,
which tensors are one object, and whether calls are recorded. What a capture finds that the function depends on beyond that
(the value of a number, how arguments overlap, gradients that they bring along) is part of all later keys of that function.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import update_wrapper
from operator import attrgetter
from types import MethodType
from typing import Any, NamedTuple, overload

import numpy as np

from ..backends.registry import backend_named
from ..compiler.plan import Plan, name_of
from ..compiler.plan_size import size_of
from ..core.autograd import interceptor, mode
from ..core.errors import FuseError
from ..core.pytree import leaves_of, mapped
from ..inspect.argument_names import labels_of
from ..inspect.explain import Explanation, explained
from ..ir.graph import Node
from ..ir.pytorch_differences import Size
from ..runtime.compile_workers import build_all
from ..runtime.kernel_cache import cache
from ..runtime.plan_cache import PlanTable
from ..tensors.tensor import Tensor
from .aliasing import AliasAnalysis, Aliasing, RunsByAddress, read_from_copies
from .cache_entry import CacheEntry, replaced
from .guards import Outside, Same
from .traced_scalar import LiveNumber
from .tracer import Capture

SPEC = attrgetter("spec")
NUMBERS = {int, float, Size, *[np.dtype(code).type for code in "bBhHiIlLqQefdg"]}  # whose values a capture leaves open
ENTRY_NBYTES = 7_000  # of a capture, besides its plan: what it found, and its key
WATCHED = 64  # objects among the arguments whose attributes are remembered


@dataclass(frozen=True)
class Leaf:
    """The place of a tensor or a number in nested arguments."""

    index: int


class FuseStats(NamedTuple):
    """What a fused function has done."""

    calls: int
    """Calls that captured, each a new kind of call; all others ran what was there."""
    captures: int
    """How many captures are remembered."""
    kernels: int
    """Launches of one call, for the last capture."""


class Fused:
    """A function that runs as few kernels. Inside another fused function it is inlined.

    Parameters
    ----------
    function
        Any Python function of tensors: calls, loops, closures, nested arguments, NumPy's functions, changes in place.
    recompute : {"auto", "none"}
        Whether the backward pass computes cheap values again ("auto"), or finds all of them in memory.
    """

    def __init__(self, function: Callable[..., Any], recompute: str = "auto") -> None:
        if not callable(function):
            raise FuseError(f"fuse: expected a function, got {type(function).__name__}; write @mf.fuse above a function")
        if recompute not in ("auto", "none"):
            raise FuseError(f'fuse: recompute is {recompute!r}, expected "auto" or "none"')
        update_wrapper(self, function)
        self.function, self.recompute = function, recompute
        self.outside = Outside(function)
        self.look = self.outside.look
        self.entries: PlanTable[CacheEntry] = PlanTable()
        self.runs = self.entries.quick  # of plain calls: no names, nothing learned
        self.watched: dict[int, Outside] = {}
        self.baked: frozenset[Any] = frozenset()
        self.aliases = AliasAnalysis()
        self.reads_grads = False
        self.last: CacheEntry | None = None
        self.captures = 0

    @property
    def __outside__(self) -> Any:
        """What another function that calls this one depends on."""
        return self.function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the object is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """What the function gives."""
        if not named:
            tensors: Sequence[Any] = inputs
            try:
                run = self.runs.get((mode.is_recording, self.look(), *map(SPEC, inputs)))
            except AttributeError:  # there are numbers among them
                run = self.runs.get((mode.is_recording, self.look(), *[getattr(x, "spec", None) or type(x) for x in inputs]))
                tensors = [x for x in inputs if isinstance(x, Tensor)]
            if self.outside.tensors:
                tensors = (*tensors, *self.outside.tensors)
            if run is not None and len({*tensors}) == len(tensors):  # all of them differ
                return run(*inputs)
        return self.general(inputs, named)

    def general(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of any kind."""
        by = interceptor()
        if by is not None:
            return by.inlined(self, inputs, named)
        if any(isinstance(x, Node) for x in inputs):
            return self.function(*inputs, **named)
        entry, flat = self.entry(inputs, named)
        if entry.key is not None and entry.key not in self.runs and not (self.baked or self.reads_grads):
            self.runs[entry.key] = self.quick_run(entry.run)
        return entry.run(*flat)

    def entry(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[CacheEntry, list[Any]]:
        """The capture for a call, found or made, and the inputs of its run."""
        leaves, tree, key = self.taken_apart(inputs, named)
        outside = [self.outside, *[self.watching(x) for x in objects_in(tree)]]
        looks = tuple(x.look() for x in outside)
        flat = [*leaves, *[x for found in outside for x in found.tensors]]
        arrays = tuple(x.contents() for x in outside)
        aliasing = self.aliasing(flat)
        copies = aliasing.copies
        while True:
            known = self.entries.get((mode.is_recording, looks, arrays, key, aliasing, self.more(flat)))
            if known is not None:
                return known, flat
            found = self.capture(flat, tree, copies)
            self.refuse_changes_outside(outside, looks, arrays)
            expected, aliasing = aliasing.copies, self.aliasing(flat)
            needed = aliasing.copies
            if expected <= needed:  # else it must be captured anew, since it changed a copy
                needed |= read_from_copies(name_of(self.function), found.plan.names, flat, found.found.effects)
            if needed == copies:
                break
            copies = needed  # the capture has found that it must read other inputs from copies
        self.last = found
        whole_key = (mode.is_recording, looks, arrays, key, aliasing, self.more(flat))
        self.entries.put(whole_key, found, size_of(found.plan) + ENTRY_NBYTES)
        is_quick = not (named or any(arrays) or self.baked or self.reads_grads or len(outside) > 1)
        if is_quick and not aliasing.same and all(isinstance(x, Tensor) or type(x) in NUMBERS for x in inputs):
            kinds = [x.spec if isinstance(x, Tensor) else type(x) for x in inputs]
            found.key = (mode.is_recording, looks[0], *kinds)
        elif not is_quick:
            self.runs.clear()
        return found, flat

    def refuse_changes_outside(self, outside: Sequence[Outside], looks: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Raise where a capture changed what the function reads from outside."""
        before = zip(outside, looks, arrays, strict=True)
        if any(x.look() != look or x.contents() != content for x, look, content in before):
            raise FuseError(
                f"{name_of(self.function)}: the function changed something outside while it was captured, such as a "
                "global, an attribute, a list or an array; that would not happen again in later calls. Return it, or "
                "keep it in a tensor that is changed in place"
            )

    def aliasing(self, flat: Sequence[Any]) -> Aliasing:
        """Return how the inputs of a call alias each other, as far as captures have found that it matters."""
        is_recorded = bool(mode.is_recording) and any(isinstance(x, Tensor) and x.spec.requires_grad for x in flat)
        grads = [x.grad for x in flat if isinstance(x, Tensor) and x.grad is not None] if self.reads_grads else ()
        return self.aliases.aliasing(flat, is_recorded, grads)

    def quick_run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A run that takes the arguments alone, all different tensors; those from outside are those of the last look."""
        outside = self.outside
        if self.aliases.stored:
            return RunsByAddress(lambda inputs: self.entry(inputs, {})[0].run, outside)
        return (lambda *inputs: run(*inputs, *outside.tensors)) if outside.tensors else run

    def more(self, flat: Sequence[Any]) -> Any:
        """What a call depends on besides, as far as captures have found out."""
        known = [x.value if isinstance(x, LiveNumber) else flat[x] if x < len(flat) else None for x in self.baked]
        values = tuple((type(x), repr(x)) for x in known)
        grads = tuple(x.grad.spec if x.grad is not None else None for x in flat if isinstance(x, Tensor)) * self.reads_grads
        backend = None if any(isinstance(x, Tensor) for x in flat) else backend_named(None)
        return values, grads, backend

    def capture(self, original: list[Any], tree: Any, copies: Collection[int]) -> CacheEntry:
        """Capture the function for these inputs, of which it reads some from copies."""
        example = next((x for x in original if isinstance(x, Tensor)), None)
        backend = example.spec.backend if example is not None else backend_named(None)
        flat = replaced(original, copies, lambda x: Tensor.empty(x.shape, x.dtype, backend))
        capture = Capture(name_of(self.function), flat, backend, original)

        def rebuild(given: list[Any]) -> Any:
            return mapped(tree, lambda x: given[x.index] if isinstance(x, Leaf) else x)

        found = capture.run(lambda arguments: self.function(*arguments[0], **arguments[1]), rebuild)
        labels = labels_of(self.function, tree, Leaf, [*original, *capture.hidden])
        self.baked |= capture.baked
        if found.effects.stored and not self.aliases.stored:
            self.runs.clear()
        self.aliases.learn(found.effects)
        self.reads_grads |= capture.reads_grads
        self.captures += 1
        return CacheEntry(self.function, found, flat, labels, backend, self.recompute, copies)

    def taken_apart(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """Tensors and numbers among nested arguments; the rest with a `Leaf` in the place of each; a key of all of it."""
        leaves: list[Any] = []
        key: list[Any] = []
        arrays: dict[int, Tensor] = {}

        def take(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                x = self.as_input(x, arrays)
            if isinstance(x, Tensor):
                key.append(x.spec)
            elif type(x) in NUMBERS:
                key.append(type(x))
            elif isinstance(x, tuple | list | dict):
                key.append((type(x), tuple(x) if isinstance(x, dict) else len(x)))
                if isinstance(x, tuple):
                    parts = [take(y) for y in x]
                    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
                return [take(y) for y in x] if isinstance(x, list) else {name: take(y) for name, y in x.items()}
            else:
                key.append((type(x), repr(x)) if isinstance(x, PLAIN) else Same(x))
                return x
            leaves.append(x)
            return Leaf(len(leaves) - 1)

        return leaves, (take(inputs), take(named)), tuple(key)

    def as_input(self, array: Any, known: dict[int, Tensor]) -> Any:
        """Return an array as a tensor over its memory, always the same tensor; an array without dims as a number."""
        if not array.ndim:
            return array[()]
        if id(array) not in known:
            known[id(array)] = Tensor.from_numpy(array, backend_named(None))
        return known[id(array)]

    def watching(self, x: Any) -> Outside:
        """What can be reached from an object among the arguments."""
        found = self.watched.get(id(x))
        if found is None:
            while len(self.watched) >= WATCHED:
                self.watched.pop(next(iter(self.watched)))
            found = self.watched[id(x)] = Outside(x)
        return found

    # Seeing it.

    def plan(self, *inputs: Any, **named: Any) -> Plan:
        """The plan of a call like this one. The function is captured if it was not before; nothing runs."""
        return self.entry(inputs, named)[0].plan

    def compile(self, *inputs: Any, processes: int = 1, **named: Any) -> int:
        """Compile what a call like this one needs and no process has compiled yet; nothing runs.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call.
        processes : int
            How many to compile in, besides this one; 1 compiles here. It pays from some ten kernels on: each process takes
            half a second to start.

        Returns
        -------
        int
            How many kernels were compiled.

        Raises
        ------
        MinifuseError
            There are several processes, and no folder to hand kernels over in.

        Notes
        -----
        The gradient is a call of its own, whose kernels are compiled when `backward` is first called.

        Examples
        --------
        >>> import minifuse as mf
        >>> f = mf.fuse(lambda x: mf.exp(x) * 2)
        >>> f.compile(mf.ones(1000)) >= 0
        True
        """
        plan, before = self.plan(*inputs, **named), cache.stats().compiled
        built = build_all(plan.wanted, processes) if processes > 1 else 0
        plan.run  # noqa: B018  # binds what it launches
        return built + cache.stats().compiled - before

    def source(self, *inputs: Any, backend: str | None = None, **named: Any) -> str:
        """The text of what a call runs: its host program, and each of its kernels as they are compiled.

        Arguments have the names of the function's parameters, tensors from outside those they have there. Above each kernel
        stands what it computes, over which space, and what stands behind the names in it, with a letter for each axis that
        the kernel walks: 1 for neighbours in memory, 0 for an operand that is repeated, s for any other stride.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call.
        backend : str, optional
            Show the kernels of another backend.
        """
        if backend is not None:
            inputs, named = mapped((inputs, named), lambda x: x.to(backend=backend) if isinstance(x, Tensor) else x)
        return self.plan(*inputs, **named).source()

    def explain(self, *inputs: Any, **named: Any) -> Explanation:
        """What fusion makes of a call like this one: its kernels, the bytes that they move, and why there are not fewer.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call. The function is captured if it was not before; nothing runs.

        Returns
        -------
        Explanation
            Printed, it is a page of text; `as_dict()` is for JSON.

        Examples
        --------
        >>> import minifuse as mf
        >>> normalize = mf.fuse(lambda x: (x - x.mean()) / x.std())
        >>> found = normalize.explain(mf.ones(1000))
        >>> len(found.forward.kernels), found.forward.nbytes, found.unfused.launches > 3
        (1, 8000, True)
        """
        return explained(*self.entry(inputs, named))

    def stats(self) -> FuseStats:
        """How often the function was captured, and what the last capture launches."""
        return FuseStats(self.captures, len(self.entries), len(self.last.plan.steps) if self.last else 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Fused":
        """Copy like the function: a Python function is its own copy, a module or a bound method is copied."""
        function = deepcopy(self.function, memo)
        return self if function is self.function else Fused(function, self.recompute)

    def __reduce__(self) -> Any:
        """Pickle like the function: by its name where that refers to this object, as below a decorator."""
        name = getattr(self, "__qualname__", "<none>")
        module = sys.modules.get(getattr(self, "__module__", None) or "")
        is_named = "<" not in name and module is not None and hasattr(module, name.partition(".")[0])
        return name if is_named and attrgetter(name)(module) is self else (Fused, (self.function, self.recompute))

    def __repr__(self) -> str:
        return f"<fused {name_of(self.function)}>"


PLAIN = bool | str | bytes | np.generic | None


def objects_in(tree: Any) -> list[Any]:
    """Objects among nested arguments that have attributes: modules, functions, and whatever a user defines."""
    return [x for x in leaves_of(tree) if not isinstance(x, Leaf) and not isinstance(x, PLAIN)]


@overload
def fuse(function: Callable[..., Any]) -> Fused: ...
@overload
def fuse(*, recompute: str = "auto") -> Callable[[Callable[..., Any]], Fused]: ...


def fuse(function: Any = None, *, recompute: str = "auto") -> Any:
    """Run a function of tensors as few kernels.

    Parameters
    ----------
    function
        The function; left out where `@mf.fuse(recompute="none")` is written.
    recompute : {"auto", "none"}
        Whether the backward pass computes cheap values again, or finds all of them in memory.

    Returns
    -------
    Fused
        Called like the function.

    Examples
    --------
    >>> import minifuse as mf
    >>> @mf.fuse
    ... def swish(x, beta=1.0):
    ...     return x * mf.sigmoid(beta * x)
    >>> swish(mf.tensor([0.0, 1.0]))
    tensor([0.    , 0.7311])
    """
    return Fused(function, recompute) if function is not None else lambda f: Fused(f, recompute)
