"""Calls of minifuse, computed by a student's functions of tensors where these are written.

    x * y                  TensorMul.forward(context, x, y)                             2.4
    loss.backward()        TensorMul.backward(context, d)
    conv2d(x, weight)      conv2d, conv2d_input_gradient, conv2d_weight_gradient        4.2

A dispatch hook receives every call of a thread. `substitutes` says which slots can compute it.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...compiler import plan
from ...compiler.plan import get_inplace_plan
from ...core.dispatch import DispatchHook, use_dispatch_hook
from ...ir.graph import Node
from ...tensors.tensor import Tensor
from .backend import StudentBackend
from .substitutes import COMPOSED, SUBSTITUTES
from .tensor_functions import TensorFunctions


class RunningCalls(threading.local):
    """The names of the calls that a thread computes with substitutes now. Inside one, the same call is minifuse's own."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    @contextmanager
    def adding(self, name: str) -> Iterator[None]:
        """Add a name in a block."""
        before, self.names = self.names, (*self.names, name)
        try:
            yield
        finally:
            self.names = before


class StudentCalls(DispatchHook):
    """Compute the calls of a thread with a student's functions where these are written, and otherwise as minifuse does.

    Fused functions run call by call, since a kernel of several calls would leave none to these functions.

    Parameters
    ----------
    backend : StudentBackend
        Tensors on this backend are computed by the student's functions.
    """

    def __init__(self, backend: StudentBackend) -> None:
        self.backend, self.engine = backend, backend.engine
        self.functions = TensorFunctions(backend)
        self.running = RunningCalls()

    def call(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        """Return the result of a call."""
        for x in inputs:
            if isinstance(x, Node):  # a function is being traced, and combines a node with a tensor of its closure
                return x.apply(function, *inputs)
        name = name_of_call(function)
        if name not in self.running.names and self.takes(inputs):
            if name in COMPOSED:
                return function(*inputs)
            found = SUBSTITUTES[name](self.functions, function, *inputs) if name in SUBSTITUTES else None
            if found is not None:
                if self.engine.has(*found.slots):
                    with self.running.adding(name):
                        return found.run()
                for slot in found.slots:
                    if not self.engine.has(slot):
                        self.engine.lend(slot)
        with use_dispatch_hook(None):
            return plan.call(function, *inputs)

    def takes(self, inputs: Sequence[Any]) -> bool:
        """Return whether all tensors of floats have one dtype, and all tensors are on the student's backend."""
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        dtypes = {x.dtype for x in tensors if x.dtype.is_float}
        return len(dtypes) == 1 and all(x.meta.backend is self.backend for x in tensors)

    def call_inplace(
        self, function: Callable[..., Any], targets: tuple[int, ...], alias_of: tuple[int, ...], inputs: Sequence[Any]
    ) -> Callable[..., object]:
        """Return the function that runs an in-place operation."""
        with use_dispatch_hook(None):
            return get_inplace_plan(function, targets, alias_of, inputs).run

    def call_fused(self, fused: Any, inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Call a fused function without fusion."""
        return fused.function(*inputs, **named)

    def launch_custom_kernel(self, plan: Any, launch: Callable[..., None]) -> Callable[..., None]:
        """Return the launch of a custom kernel unchanged."""
        return launch


def name_of_call(function: Callable[..., Any]) -> str:
    """Return the name of a function of tensors, without the underscore of a private one."""
    body = getattr(function, "body", function)
    return (getattr(body, "__name__", "") or type(body).__name__).strip("_")
