"""Cache entries of fused functions: the plan of one trace, and the work before and after each run of it."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..backends.base import Backend
from ..compiler.plan import Plan
from ..compiler.tensor_meta import TensorMeta
from ..compiler.trace_result import InputRef, OutputRef, PerCallInput, TraceResult
from ..core.autograd import FREED_GRAPH
from ..core.dispatch import mode
from ..core.errors import GradientError
from ..core.pytree import tree_map
from ..core.traceable import TraceableFunction
from ..runtime.memory_pool import write_clock
from ..tensors.mutation import check_writable
from ..tensors.tensor import CallInput, Tensor
from .aliasing import Run


def replace_inputs(flat: Sequence[Any], indices: Collection[int], make: Callable[[Any], Tensor]) -> list[Any]:
    """Return the inputs, with the objects at some indices replaced by new ones, wherever they occur."""
    replacements = {id(flat[k]): make(flat[k]) for k in indices}
    return [replacements.get(id(x), x) for x in flat]


class CacheEntry:
    """The plan of one trace of a function, and the function that runs a call.

    `copies` are indices of inputs that the plan copies first. `key` is the key of the fast path, if the call may take it.
    """

    def __init__(
        self,
        function: TraceableFunction,
        trace: TraceResult,
        flat: Sequence[CallInput],
        names: Sequence[str],
        backend: Backend,
        recompute: str = "auto",
        copies: Collection[int] = (),
        tune: bool = False,
    ) -> None:
        self.trace, self.count, self.copies = trace, len(flat), copies
        tree, results = trace.tree, [OutputRef(k) for k in range(len(trace.graph.outputs))]
        is_single = isinstance(tree, OutputRef) and len(results) == 1
        is_direct = (is_single and tree == results[0]) or (type(tree) is tuple and list(tree) == results and bool(results))
        graph = trace.graph._replace(is_tuple=not is_single, copies=copies)
        self.plan = Plan(function, flat, graph=graph, recompute=recompute, names=names, backend=backend, tune=tune)
        self.is_direct = is_direct and not (trace.grads or trace.modified_inputs)
        self.key: tuple[object, ...] | None = None

    @cached_property
    def run(self) -> Run:
        """Return the function that runs a call."""
        if self.is_direct:
            return self.plan.run
        returns_nothing = self.trace.tree is None and not self.trace.grads
        is_short = returns_nothing and not self.copies and max(self.trace.modified_inputs, default=0) < self.count
        return self.store_only_run() if is_short else self.run_with_effects

    def store_only_run(self) -> Callable[..., None]:
        """Return a short run for a function that modifies inputs in place and returns nothing."""
        run, record_write, modified = self.plan.run, write_clock.record_write, tuple(self.trace.modified_inputs)
        stored = tuple(sorted(self.trace.effects.stored))

        def store(*flat: Any) -> None:
            for k in stored:
                if not flat[k].buffer.is_writable:
                    check_writable(flat[k])
            for k in modified:
                record_write(flat[k].buffer)
            run(*flat)

        return store

    def run_with_effects(self, *flat: CallInput) -> Any:
        """Run a call, with all effects on versions, gradients and results."""
        self.record_writes(flat)
        return self.apply_effects(self.plan.run(*self.plan_inputs(flat)), flat)

    def plan_inputs(self, flat: Sequence[CallInput]) -> Sequence[CallInput]:
        """Return the inputs of the plan, with copies of inputs whose memory the plan changes before it reads them."""
        return replace_inputs(flat, self.copies, Tensor.clone) if self.copies else flat

    def record_writes(self, flat: Sequence[CallInput]) -> None:
        """Record which buffers a run modifies. Call this before the run, so that values saved for gradients are newer.

        Inputs that only overlap a modified one may be read-only, such as the arrays that `np.broadcast_to` returns.
        """
        for k in self.trace.effects.stored:
            check_writable(self.input(k, flat))
        for k in self.trace.modified_inputs:
            write_clock.record_write(self.input(k, flat).buffer)

    def apply_effects(self, results: Any, flat: Sequence[CallInput]) -> Any:
        """Set gradients after a run, and build the function's return value."""
        if self.is_direct:
            return results
        results = results if isinstance(results, tuple) else (results,)
        replaced_grads = [(self.input(k, flat), reference) for k, reference in self.trace.grads]

        def resolve(x: object) -> Any:
            if isinstance(x, InputRef):
                return self.input(x.index, flat)
            if not isinstance(x, OutputRef):
                return x.copy() if isinstance(x, np.ndarray) else x  # the user may modify it
            y = results[x.index]
            if x.is_freed:
                set_opaque_history(y, OpaqueBackward(is_freed=True))
            elif x.depends_on_leaves and not y.requires_grad:
                set_opaque_history(y, OpaqueBackward())
            elif x.is_leaf:
                y.requires_grad = True
            if x.grad is not None:
                y.grad = resolve(x.grad)
            return y

        grads = [resolve(x) for _, x in replaced_grads]  # all are resolved before one is replaced
        for (x, _), grad in zip(replaced_grads, grads, strict=True):
            x.grad = grad
        return tree_map(self.trace.tree, resolve)

    def input(self, k: int, flat: Sequence[CallInput]) -> Any:
        """Return input k of a run; hidden inputs are numbered after the others."""
        if k < self.count:
            return flat[k]
        hidden = self.plan.hidden[k - self.count]
        return hidden.get(flat) if isinstance(hidden, PerCallInput) and hidden.get else hidden


def set_opaque_history(y: Tensor, call: "OpaqueBackward") -> None:
    """Make a tensor require a gradient that is not propagated further than this backward node."""
    y.meta, y.grad_fn = TensorMeta(y.meta.layout, y.dtype, y.meta.backend, bool(mode.is_recording)), (call, 0)


class OpaqueBackward:
    """The backward node of a call inside a fused function whose inputs are not visible: it drops the gradient.

    `is_freed` is True if the function already ran backward through the graph.
    """

    __slots__ = ("_hooks", "is_freed")
    count, edges = 1, ()

    def __init__(self, is_freed: bool = False) -> None:
        self.is_freed = is_freed

    def backward(self, gradients: Sequence[Tensor | None]) -> tuple[()]:
        """Return no gradients, since there are no inputs. Raise a GradientError if the graph is freed."""
        if self.is_freed:
            raise GradientError(FREED_GRAPH)
        return ()

    def free_saved(self) -> None:
        """Mark the graph as freed."""
        self.is_freed = True
