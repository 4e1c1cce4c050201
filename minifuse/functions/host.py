"""Functions that NumPy computes on the host, such as those of LAPACK, with gradients that are functions of tensors.

A call copies its inputs to the host, if they are on a GPU, and its results back. It needs values, so a fused function
cannot contain it. Its gradient is a composition of functions of tensors, which may be such functions again; so there are
gradients of any order. If CuPy is installed, tensors on a GPU are passed to it instead, without a copy.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from ..core import dispatch
from ..core.autograd import FREED_GRAPH, grad_edge
from ..core.errors import FuseError, GradientError, LinAlgError, users_line
from ..runtime.memory_pool import write_clock
from ..tensors.creation import DLPACK_CUDA, from_dlpack
from ..tensors.tensor import Tensor
from .table import require_array

Vjp = Callable[..., Sequence[Any]]  # vjp(output gradients, outputs, inputs, **options) -> a gradient or None for each input


class HostFunction:
    """A function of tensors that `compute(xp, *arrays, **options)` computes, where xp is numpy, or cupy.

    `explain(*arrays)` says what is wrong with inputs for which LAPACK fails. Integers and bools become float64, unless
    `is_integer`.
    """

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        vjp: Vjp | None = None,
        explain: Callable[..., str] | None = None,
        is_integer: bool = False,
    ) -> None:
        self.name, self.compute, self.vjp, self.explain, self.is_integer = name, compute, vjp, explain, is_integer

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Compute the function, and record it."""
        for x in inputs:
            require_array(self.name, x)
        xp = library_for(inputs)
        arrays = [self.as_array(xp, x) for x in inputs]
        try:
            with np.errstate(all="ignore"):
                results = self.compute(xp, *arrays, **options)
        except np.linalg.LinAlgError as error:
            reason = self.explain(*arrays) if self.explain else str(error)
            raise LinAlgError(f"{self.name}: {reason}") from None
        backend = inputs[0].meta.backend
        is_several = isinstance(results, tuple)
        outputs = []
        for result in results if is_several else (results,):
            is_numpy = isinstance(result, np.ndarray | np.generic)
            y = Tensor.from_numpy(np.ascontiguousarray(result), backend) if is_numpy else from_dlpack(result)
            outputs.append(y.reshape(result.shape))  # NumPy makes 0-d arrays 1-d
        if dispatch.mode.is_recording and any(x.requires_grad for x in inputs):
            node = HostBackward(self, inputs, outputs, options)
            for k, y in enumerate(outputs):
                if y.dtype.is_float:
                    y.requires_grad, y.grad_fn = True, (node, k)
        return tuple(outputs) if is_several else outputs[0]

    def as_array(self, xp: ModuleType, x: Any) -> Any:
        """Return an input as an array of floats. Raise FuseError while tracing."""
        try:
            values = x.numpy() if xp is np else xp.asarray(x)
        except FuseError:
            advice = "a fused function cannot contain it; call it before, and pass the result"
            raise FuseError(f"{users_line()}: {self.name} is computed on the host, so {advice}") from None
        return values if self.is_integer or x.dtype.is_float else values.astype(np.float64)

    def __repr__(self) -> str:
        return self.name


class HostBackward:
    """The tape node of one call of a host function."""

    __slots__ = ("count", "edges", "function", "options", "run_time", "saved")

    def __init__(self, function: HostFunction, inputs: Sequence[Any], outputs: Sequence[Any], options: Any) -> None:
        self.function, self.options, self.count = function, options, len(outputs)
        self.edges: Any = tuple(grad_edge(x) if x.requires_grad else None for x in inputs)
        self.saved: Any = inputs, [y.detach() for y in outputs]
        self.run_time = write_clock.clock

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the inputs."""
        if self.saved is None:
            raise GradientError(FREED_GRAPH)
        if self.function.vjp is None:
            raise GradientError(f"backward: {self.function} has no gradient; pass x.detach()")
        inputs, detached = self.saved
        if any(x.buffer.version.last_write > self.run_time for x in (*inputs, *detached)):
            raise GradientError(
                f"backward: a tensor that the gradient of {self.function} needs was modified in place after it was used; "
                "modify x.clone() instead, or compute the value again"
            )
        outputs = [y.detach() for y in detached]
        if dispatch.mode.is_recording:
            for k, y in enumerate(outputs):
                if y.dtype.is_float:
                    y.requires_grad, y.grad_fn = True, (self, k)
        return self.function.vjp(gradients, outputs, inputs, **self.options)

    def free_saved(self) -> None:
        """Free the saved tensors."""
        self.edges, self.saved = (), None


def host_function(
    vjp: Vjp | None = None, explain: Callable[..., str] | None = None, is_integer: bool = False
) -> Callable[[Callable[..., Any]], HostFunction]:
    """Make `compute(xp, *arrays, **options)` a function of tensors."""
    return lambda compute: HostFunction(compute.__name__, compute, vjp, explain, is_integer)


@lru_cache(None)
def has_cupy() -> bool:
    """Return whether CuPy is installed."""
    return find_spec("cupy") is not None


def library_for(inputs: Sequence[Any]) -> Any:
    """Return CuPy for tensors on a GPU if it is installed, else NumPy."""
    is_on_gpu = has_cupy() and all(isinstance(x, Tensor) and x.__dlpack_device__()[0] == DLPACK_CUDA for x in inputs)
    return import_module("cupy") if is_on_gpu else np


# Helpers of gradients.


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the dims along which an input of this shape was broadcast."""
    extra = g.ndim - len(shape)
    dims = [d for d in range(g.ndim) if d < extra or (shape[d - extra] == 1 and g.shape[d] != 1)]
    return g.sum(dims, keepdim=True).reshape(shape) if dims else g


def constant_like(x: Any, array: Any) -> Any:
    """Return an array as a tensor with the dtype and the backend of x."""
    return Tensor.from_numpy(np.ascontiguousarray(array, x.dtype.numpy), x.meta.backend).reshape(np.shape(array))


def zeros_for_none(gradients: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Replace missing gradients by zeros."""
    return [constant_like(y, np.zeros(y.shape)) if g is None else g for g, y in zip(gradients, outputs, strict=True)]
