"""@fuse: compile a Python function of tensors to as few kernels as possible.

The first call traces the function: it runs once, on tensors without values, and becomes a graph, a plan, and a host
program. Later calls of the same kind run that program. The cache key defines the kind of a call. It contains:

- the metadata of each tensor, the type of each number, and the value of all other arguments;
- the structure of the arguments, and which tensors are one object;
- the state that the function reads from closures and globals, and the dispatch mode.

If a trace depends on more than that (the value of a number, how arguments overlap, gradients of the arguments), all later
keys of the function include it.
"""

import sys
from collections.abc import Callable, Collection, Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import update_wrapper
from operator import attrgetter
from types import MethodType
from typing import Any, NamedTuple, overload

import numpy as np

from ..backends.registry import get_backend
from ..compiler.plan import Plan, function_name
from ..core.dispatch import active_hook, mode
from ..core.dtypes import NumpyArray
from ..core.errors import FuseError
from ..core.keywords import refusing
from ..core.pytree import tree_leaves, tree_map
from ..core.traceable import TraceableFunction
from ..inspect.argument_names import name_inputs
from ..inspect.explain import explain_call
from ..inspect.explanation import Explanation
from ..ir.graph import Node
from ..ir.pytorch_differences import Size
from ..runtime.compile_workers import use_workers
from ..runtime.kernel_cache import cache
from ..runtime.plan_cache import PlanTable
from ..tensors.tensor import CallInput, Tensor
from .aliasing import AddressDispatch, AliasAnalysis, Aliasing, Run, inputs_to_copy
from .cache_entry import CacheEntry, replace_inputs
from .guards import ClosureGuard, IdentityKey
from .traced_scalar import DynamicAttr
from .tracer import Tracer

ArgumentTree = tuple[Any, Any]  # arguments and named arguments, with a Placeholder for each tensor and number

get_meta = attrgetter("meta")
DYNAMIC_NUMBER_TYPES = {
    int,
    float,
    Size,
    *[np.dtype(code).type for code in "bBhHiIlLqQefdg"],
}  # numbers that a trace treats as variables
ENTRY_NBYTES = 7_000  # estimated size of a cache entry and its key, without the plan
MAX_GUARDED_OBJECTS = 64  # cached guards of objects among the arguments, per function


@dataclass(frozen=True)
class Placeholder:
    """Marks the position of a tensor or a number in nested arguments."""

    index: int


class FuseStats(NamedTuple):
    """Statistics of a fused function."""

    calls: int
    """Calls that traced the function, each a new kind of call; all others used the cache."""
    captures: int
    """Traces in the cache."""
    kernels: int
    """Kernel launches of one call, for the last trace."""


class Fused:
    """A function that is compiled to few kernels. Inside another fused function it is inlined.

    Parameters
    ----------
    function
        Any Python function of tensors: it may contain calls, loops, closures, nested arguments, NumPy's functions, and
        in-place operations.
    recompute : {"auto", "none"}
        "auto": the backward pass recomputes cheap values. "none": it reads all values from memory.
    tune : bool
        Whether the first call of a kind, and its backward pass, search the fastest schedule of each kernel on a GPU.
    """

    def __init__(self, function: TraceableFunction, recompute: str = "auto", tune: bool = False) -> None:
        if not callable(function):
            raise FuseError(f"fuse: expected a function, got {type(function).__name__}; write @mf.fuse above a function")
        if recompute not in ("auto", "none"):
            raise FuseError(f'fuse: got recompute={recompute!r}, expected "auto" or "none"')
        if not isinstance(tune, bool):
            raise FuseError(f"fuse: got tune={tune!r}, expected a bool; write tune=True to search schedules by timing them")
        update_wrapper(self, function)
        self.function, self.recompute, self.tune = function, recompute, tune
        self.guard = ClosureGuard(function)
        self.fingerprint = self.guard.fingerprint
        self.entries: PlanTable[CacheEntry] = PlanTable()
        self.runs = self.entries.fast_path  # key -> run, for calls without keywords and without dynamic guards
        self.object_guards: dict[int, ClosureGuard] = {}
        self.specialized_on: frozenset[int | DynamicAttr] = frozenset()
        self.aliases = AliasAnalysis()
        self.reads_grads = False
        self.last_entry: CacheEntry | None = None
        self.captures = 0

    @property
    def __guarded__(self) -> TraceableFunction:
        """Return the function, which guards of other functions check instead of this object."""
        return self.function

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind the function to an object, as a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *inputs: object, **named: object) -> Any:
        """Call the function."""
        if not named:
            tensors: Sequence[object] = inputs
            try:
                run = self.runs.get((mode.is_recording, self.fingerprint(), *map(get_meta, inputs)))
            except AttributeError:  # some inputs are numbers
                run = self.runs.get(
                    (mode.is_recording, self.fingerprint(), *[getattr(x, "meta", None) or type(x) for x in inputs])
                )
                tensors = [x for x in inputs if isinstance(x, Tensor)]
            if self.guard.tensors:
                tensors = (*tensors, *self.guard.tensors)
            if run is not None and len({*tensors}) == len(tensors):  # no tensor occurs twice
                return run(*inputs)
        return self.slow_path(inputs, named)

    def slow_path(self, inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Run a call of any kind."""
        hook = active_hook()
        if hook is not None:
            return hook.call_fused(self, inputs, named)
        if any(isinstance(x, Node) for x in inputs):
            return self.function(*inputs, **named)
        entry, flat = self.get_entry(inputs, named)
        if entry.key is not None and entry.key not in self.runs and not (self.specialized_on or self.reads_grads):
            self.runs[entry.key] = self.bind_closure_tensors(entry.run)
        return entry.run(*flat)

    def get_entry(self, inputs: tuple[object, ...], named: dict[str, object]) -> tuple[CacheEntry, list[CallInput]]:
        """Return the cache entry of a call, and the inputs of its run. If there is no entry, trace the function."""
        leaves, tree, key = self.flatten_args(inputs, named)
        guards = [self.guard, *[self.guard_for(x) for x in find_objects(tree)]]
        fingerprints = tuple(x.fingerprint() for x in guards)
        flat = [*leaves, *[x for guard in guards for x in guard.tensors]]
        digests = tuple(x.array_digests() for x in guards)
        aliasing = self.find_aliasing(flat)
        copies = aliasing.copies
        while True:
            cached = self.entries.get((mode.is_recording, fingerprints, digests, key, aliasing, self.dynamic_guards(flat)))
            if cached is not None:
                return cached, flat
            entry = self.trace(flat, tree, copies)
            self.check_no_side_effects(guards, fingerprints, digests)
            expected, aliasing = aliasing.copies, self.find_aliasing(flat)
            needed = aliasing.copies
            if expected <= needed:  # else it must be traced again, since it modified a copy
                needed |= inputs_to_copy(function_name(self.function), entry.plan.names, flat, entry.trace.effects)
            if needed == copies:
                break
            copies = needed  # trace again with the copies that this trace needs
        self.last_entry = entry
        entry_key = (mode.is_recording, fingerprints, digests, key, aliasing, self.dynamic_guards(flat))
        self.entries.put(entry_key, entry, entry.plan.host.plan_nbytes() + ENTRY_NBYTES)
        is_fast = not (named or any(digests) or self.specialized_on or self.reads_grads or len(guards) > 1)
        if (
            is_fast
            and not aliasing.alias_of
            and all(isinstance(x, Tensor) or type(x) in DYNAMIC_NUMBER_TYPES for x in inputs)
        ):
            kinds = [x.meta if isinstance(x, Tensor) else type(x) for x in inputs]
            entry.key = (mode.is_recording, fingerprints[0], *kinds)
        elif not is_fast:
            self.runs.clear()
        return entry, flat

    def check_no_side_effects(
        self, guards: Sequence[ClosureGuard], fingerprints: Sequence[Hashable], digests: Sequence[Hashable]
    ) -> None:
        """Raise a FuseError if tracing modified state that the function reads from outside."""
        before = zip(guards, fingerprints, digests, strict=True)
        if any(x.fingerprint() != fingerprint or x.array_digests() != digest for x, fingerprint, digest in before):
            raise FuseError(
                f"{function_name(self.function)}: tracing modified a global, an attribute, a list or an array outside "
                "the function, which later calls would not repeat; return the new value, or store it in a tensor in place"
            )

    def find_aliasing(self, flat: Sequence[CallInput]) -> Aliasing:
        """Return how the inputs of a call alias each other, as far as it matters for the traces so far."""
        is_recorded = bool(mode.is_recording) and any(isinstance(x, Tensor) and x.meta.requires_grad for x in flat)
        grads = [x.grad for x in flat if isinstance(x, Tensor) and x.grad is not None] if self.reads_grads else ()
        return self.aliases.find_aliasing(flat, is_recorded, grads)

    def bind_closure_tensors(self, run: Run) -> Run:
        """Return a run for the fast path: it takes the arguments, and adds the tensors from closures and globals."""
        guard = self.guard
        if self.aliases.stored:
            return AddressDispatch(lambda inputs: self.get_entry(inputs, {})[0].run, guard)
        return (lambda *inputs: run(*inputs, *guard.tensors)) if guard.tensors else run

    def dynamic_guards(self, flat: Sequence[CallInput]) -> Hashable:
        """Return the values on which the traces so far are specialized, and the metadata of gradients that they read."""
        values = [x.value if isinstance(x, DynamicAttr) else flat[x] if x < len(flat) else None for x in self.specialized_on]
        value_keys = tuple((type(x), repr(x)) for x in values)
        grads = tuple(x.grad.meta if x.grad is not None else None for x in flat if isinstance(x, Tensor)) * self.reads_grads
        backend = None if any(isinstance(x, Tensor) for x in flat) else get_backend(None)
        return value_keys, grads, backend

    def trace(self, original: list[CallInput], tree: ArgumentTree, copies: Collection[int]) -> CacheEntry:
        """Trace the function for these inputs, some of which it reads from copies."""
        example = next((x for x in original if isinstance(x, Tensor)), None)
        backend = example.meta.backend if example is not None else get_backend(None)
        flat = replace_inputs(original, copies, lambda x: Tensor.empty(x.shape, x.dtype, backend))
        tracer = Tracer(function_name(self.function), flat, backend, original)

        def rebuild(leaves: list[Any]) -> Any:
            return tree_map(tree, lambda x: leaves[x.index] if isinstance(x, Placeholder) else x)

        result = tracer.run(lambda arguments: self.function(*arguments[0], **arguments[1]), rebuild)
        labels = name_inputs(self.function, tree, Placeholder, [*original, *tracer.hidden])
        self.specialized_on |= tracer.specialized_on
        if result.effects.stored and not self.aliases.stored:
            self.runs.clear()
        self.aliases.add_effects(result.effects)
        self.reads_grads |= tracer.reads_grads
        self.captures += 1
        return CacheEntry(self.function, result, flat, labels, backend, self.recompute, copies, self.tune)

    def flatten_args(
        self, inputs: tuple[object, ...], named: dict[str, object]
    ) -> tuple[list[CallInput], ArgumentTree, tuple[object, ...]]:
        """Return the tensors and numbers in nested arguments, the structure with a `Placeholder` for each, and a key."""
        leaves: list[CallInput] = []
        key: list[object] = []
        arrays: dict[int, Tensor] = {}

        def flatten(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                x = self.as_input(x, arrays)
            if isinstance(x, Tensor):
                key.append(x.meta)
            elif type(x) in DYNAMIC_NUMBER_TYPES:
                key.append(type(x))
            elif isinstance(x, tuple | list | dict):
                key.append((type(x), tuple(x) if isinstance(x, dict) else len(x)))
                if isinstance(x, tuple):
                    parts = [flatten(y) for y in x]
                    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
                return [flatten(y) for y in x] if isinstance(x, list) else {name: flatten(y) for name, y in x.items()}
            else:
                key.append((type(x), repr(x)) if isinstance(x, STATIC_TYPES) else IdentityKey(x))
                return x
            leaves.append(x)
            return Placeholder(len(leaves) - 1)

        return leaves, (flatten(inputs), flatten(named)), tuple(key)

    def as_input(self, array: NumpyArray, tensors: dict[int, Tensor]) -> Any:
        """Return a 0-d array as a number, and another array as a tensor over its memory, the same tensor each time."""
        if not array.ndim:
            return array[()]
        if id(array) not in tensors:
            tensors[id(array)] = Tensor.from_numpy(array, get_backend(None))
        return tensors[id(array)]

    def guard_for(self, x: object) -> ClosureGuard:
        """Return the guard of an object among the arguments."""
        guard = self.object_guards.get(id(x))
        if guard is None:
            while len(self.object_guards) >= MAX_GUARDED_OBJECTS:
                self.object_guards.pop(next(iter(self.object_guards)))
            guard = self.object_guards[id(x)] = ClosureGuard(x)
        return guard

    # Inspection.

    def plan(self, *inputs: object, **named: object) -> Plan:
        """Return the plan of a call like this one. The function is traced if necessary; nothing runs."""
        return self.get_entry(inputs, named)[0].plan

    def compile(self, *inputs: object, processes: int | None = None, **named: object) -> int:
        """Compile the kernels of a call like this one that are not in the cache; nothing runs.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call.
        processes : int, optional
            Number of processes that compile, this one and its workers. Default: as many as in a call, one for each
            processor that this process may use, but MINIFUSE_COMPILE_WORKERS limits the workers.

        Returns
        -------
        int
            The number of kernels that were compiled.

        Raises
        ------
        MinifuseError
            `processes` is more than 1, and there is no cache folder through which processes can return kernels.

        Notes
        -----
        The gradient is a separate call, whose kernels are compiled when `backward` is first called.

        Examples
        --------
        >>> import minifuse as mf
        >>> f = mf.fuse(lambda x: mf.exp(x) * 2)
        >>> f.compile(mf.ones(1000)) >= 0
        True
        """
        plan, before = self.plan(*inputs, **named), cache.stats().compiled
        if processes is not None and processes > 1:
            cache.check()
        with use_workers(None if processes is None else processes - 1):
            plan.run  # noqa: B018  # compiles and binds the kernels
        return cache.stats().compiled - before

    def source(self, *inputs: object, backend: str | None = None, **named: object) -> str:
        """Return the source that a call runs: its host program, and each of its kernels as they are compiled.

        Arguments have the names of the function's parameters, tensors from closures and globals the names of their
        variables. A comment above each kernel contains its formula, its iteration space, and the meaning of its names.
        Each operand has a letter for each axis of the kernel: 1 for neighbors in memory, 0 if it is repeated, s for any
        other stride.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call.
        backend : str, optional
            Show the kernels of another backend.
        """
        if backend is not None:
            inputs, named = tree_map((inputs, named), lambda x: x.to(backend=backend) if isinstance(x, Tensor) else x)
        return self.plan(*inputs, **named).source()

    def explain(self, *inputs: object, passes: bool = False, **named: object) -> Explanation:
        """Explain a call like this one: its kernels, the bytes that they move, and why there are not fewer kernels.

        Parameters
        ----------
        inputs, named
            Arguments like those of the call. The function is traced if necessary; nothing runs.
        passes : bool
            Let `print` also show the passes of the compiler: for each one the lines of the graph that went ("-") and came
            ("+"), and the nodes that are not fused ("!"), with the reason. An argument of the function that is named
            `passes`, too, must be passed by position.

        Returns
        -------
        Explanation
            `print` shows it as a page of text; `as_dict()` is for JSON.

        Examples
        --------
        >>> import minifuse as mf
        >>> normalize = mf.fuse(lambda x: (x - x.mean()) / x.std())
        >>> explanation = normalize.explain(mf.ones(1000))
        >>> len(explanation.forward.kernels), explanation.forward.nbytes, explanation.unfused.launches > 3
        (1, 8000, True)
        """
        return explain_call(*self.get_entry(inputs, named), passes)

    def stats(self) -> FuseStats:
        """Return how often the function was traced, and how many kernels the last trace launches."""
        return FuseStats(self.captures, len(self.entries), len(self.last_entry.plan.steps) if self.last_entry else 0)

    def __deepcopy__(self, memo: dict[int, object]) -> "Fused":
        """Return a copy if `deepcopy` copies the function, such as a module or a bound method; else return this object."""
        function = deepcopy(self.function, memo)
        return self if function is self.function else Fused(function, self.recompute, self.tune)

    def __reduce__(self) -> "str | tuple[type[Fused], tuple[TraceableFunction, str, bool]]":
        """Pickle by name if the function's name refers to this object, as with a decorator; else pickle the function."""
        name = getattr(self, "__qualname__", "<none>")
        module = sys.modules.get(getattr(self, "__module__", None) or "")
        is_named = "<" not in name and module is not None and hasattr(module, name.partition(".")[0])
        return name if is_named and attrgetter(name)(module) is self else (Fused, (self.function, self.recompute, self.tune))

    def __repr__(self) -> str:
        return f"<fused {function_name(self.function)}>"


STATIC_TYPES = bool | str | bytes | np.generic | None


def find_objects(tree: object) -> list[object]:
    """Return the objects with attributes among nested arguments: modules, functions, and instances of the user's classes."""
    return [x for x in tree_leaves(tree) if not isinstance(x, Placeholder) and not isinstance(x, STATIC_TYPES)]


NO_CHOICE = "leave it out: it chooses nothing here; tune=True searches for the fastest schedules on a GPU"
KEYWORDS = dict.fromkeys(("mode", "fullgraph", "dynamic", "backend", "options", "disable"), NO_CHOICE)  # of torch.compile


@overload
def fuse(function: TraceableFunction, *, recompute: str = "auto", tune: bool = False) -> Fused: ...
@overload
def fuse(*, recompute: str = "auto", tune: bool = False) -> Callable[[TraceableFunction], Fused]: ...


@refusing(KEYWORDS)
def fuse(function: TraceableFunction | None = None, *, recompute: str = "auto", tune: bool = False) -> object:
    """Compile a function of tensors to as few kernels as possible.

    Parameters
    ----------
    function
        The function; omitted in `@mf.fuse(recompute="none")`.
    recompute : {"auto", "none"}
        "auto": the backward pass recomputes cheap values. "none": it reads all values from memory.
    tune : bool
        Search the fastest schedule of each kernel by timing on a GPU: the first call of a kind takes seconds for each new
        kernel, as does its backward pass. The schedules are kept in the kernel cache, for the GPU's name, and every kernel
        for which one is known uses it. No effect on other backends.

    Returns
    -------
    Fused
        Call it like the function.

    Raises
    ------
    FuseError
        The function is not callable, or an option has another value.

    Examples
    --------
    >>> import minifuse as mf
    >>> @mf.fuse
    ... def swish(x, beta=1.0):
    ...     return x * mf.sigmoid(beta * x)
    >>> swish(mf.tensor([0.0, 1.0]))
    tensor([0.    , 0.7311])
    """
    return Fused(function, recompute, tune) if function is not None else lambda f: Fused(f, recompute, tune)
