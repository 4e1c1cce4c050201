"""Create arrays: ranges, identity matrices, windows, indices of triangles, and arrays like others."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.registry import get_backend
from ..core.dispatch import active_tracer
from ..core.dtypes import BY_PYTHON, DType, as_dtype, float32, int64
from ..core.errors import ShapeError
from ..core.indexing import ShapeLike, shape_of
from ..core.operators import eq
from ..tensors.creation import arange, backend_of, from_numpy, full, tensor, tracer_for, zeros
from ..tensors.tensor import Tensor
from .table import function

DTypeLike = DType | str | type | None


def from_values(values: Any, dtype: DTypeLike, backend: str | None, device: object, requires_grad: bool) -> Tensor:
    """Return a tensor of computed values; floats become float32 unless a dtype is given."""
    target = as_dtype(dtype) if dtype is not None else float32 if np.asarray(values).dtype.kind == "f" else int64
    return tensor(values, target, backend_of(backend, device), requires_grad)


@function(method=False)
def empty(
    *shape: ShapeLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an uninitialized tensor; zeros in a fused function."""
    if active_tracer() is not None:
        return zeros(*shape, dtype=dtype, requires_grad=requires_grad)
    y = Tensor.empty(shape_of(shape), as_dtype(dtype or float32), get_backend(backend_of(backend, device)))
    return y.requires_grad_() if requires_grad else y


@function(method=False)
def full_like(x: Tensor, fill_value: float, dtype: DTypeLike = None, backend: str | None = None, **options: Any) -> Tensor:
    """Return a tensor filled with one number, with the shape of x, and its dtype and backend by default."""
    return full(x.shape, fill_value, dtype or x.dtype, backend or x.backend, **options)


@function(method=False)
def eye(
    n: int,
    m: int | None = None,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere. In a fused function, kernels compute its elements.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    name = backend_of(backend, device)
    if tracer_for(name) is not None:
        rows, columns = arange(n, backend=name), arange(n if m is None else m, backend=name)
        y: Tensor = eq(rows.unsqueeze(1), columns).to(as_dtype(dtype or float32))
        return y.requires_grad_() if requires_grad else y
    return from_values(np.eye(n, m), dtype, backend, device, requires_grad)


@function(method=False)
def linspace(
    start: float,
    end: float,
    steps: int,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` numbers from start to end, both included, with equal distances.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    require_count("linspace", steps)
    return from_values(np.linspace(float(start), float(end), steps), dtype, backend, device, requires_grad)


@function(method=False)
def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` powers of a base, whose exponents have equal distances from start to end."""
    require_count("logspace", steps)
    values = np.logspace(float(start), float(end), steps, base=base)
    return from_values(values, dtype, backend, device, requires_grad)


@function("range", method=False)
def closed_range(start: float, end: float | None = None, step: float = 1, dtype: DTypeLike = None, **options: Any) -> Tensor:
    """Return the numbers start, start + step, ... up to the end, which is included. `arange` excludes it."""
    start, end = (0, start) if end is None else (start, end)
    values = start + step * np.arange(math.floor((end - start) / step) + 1, dtype=float)
    return tensor(values, dtype or float32, **options)


def require_count(name: str, steps: object) -> None:
    """Raise ShapeError unless a number of steps is an integer of 0 or more."""
    if not isinstance(steps, int | np.integer) or steps < 0:
        raise ShapeError(f"{name}: got {steps!r} steps, expected an integer of 0 or more")


@function("as_tensor", "asarray", method=False)
def as_tensor(
    data: Any, dtype: DTypeLike = None, backend: str | None = None, device: object = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor itself if it has the dtype and is on the backend; over the memory of an array; else a copy of data."""
    target = backend_of(backend, device)
    if isinstance(data, Tensor):
        y: Tensor = data if dtype is None else data.to(as_dtype(dtype))
        return y if target is None else y.to(backend=target)
    if isinstance(data, np.ndarray) and dtype is None and data.flags.writeable:
        return from_numpy(data, target, requires_grad)
    return tensor(data, dtype, target, requires_grad)


@function(method=False)
def frombuffer(buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a tensor of the numbers in a buffer of bytes."""
    array = np.frombuffer(buffer, as_dtype(dtype or float32).numpy, count, offset)
    return tensor(array.copy(), requires_grad=requires_grad)


@function(method=False)
def is_tensor(obj: object) -> bool:
    """Return whether an object is a tensor."""
    return isinstance(obj, Tensor)


@function(method=False)
def get_default_dtype() -> DType:
    """Return the dtype that Python's floats become: float32."""
    return BY_PYTHON[float]


# Arrays like others.


def like(name: str, create: Callable[..., Tensor]) -> None:
    """Add `x.new_name(...)`: a function of creation, with the dtype and the backend of x by default."""

    def body(x: Tensor, *arguments: Any, dtype: DTypeLike = None, device: object = None, **options: Any) -> Tensor:
        backend = x.backend if device is None else backend_of(None, device)
        return create(*arguments, dtype=dtype or x.dtype, backend=backend, **options)

    body.__name__ = f"new_{name}"
    body.__doc__ = f"Call `mf.{name}` with the dtype and the backend of x, unless others are given."
    function(f"new_{name}")(body)


CREATE: dict[str, Callable[..., Tensor]] = {"zeros": zeros, "empty": empty, "full": full, "tensor": tensor}
for _name, _create in CREATE.items():
    like(_name, _create)
like("ones", lambda *shape, **options: full(shape_of(shape), 1, **options))


# Indices of triangles, and windows.


def triangle_indices(name: str, indices: Callable[..., Any], side: str) -> None:
    """Add tril_indices or triu_indices."""

    def body(row: int, col: int, offset: int = 0, dtype: DTypeLike = None, backend: str | None = None) -> Tensor:
        return from_values(np.stack(indices(row, offset, col)).astype(np.int64), dtype, backend, None, False)

    body.__name__ = name
    body.__doc__ = f"Return the indices of the elements of a (row, col) matrix on and {side} a diagonal, as two rows."
    function(name, method=False)(body)


triangle_indices("tril_indices", np.tril_indices, "below")
triangle_indices("triu_indices", np.triu_indices, "above")


def window(name: str, values: Callable[..., Any]) -> None:
    """Add a window. A periodic one is the first part of a symmetric one with one more point."""

    def body(window_length: int, periodic: bool = True, *parameters: float, dtype: DTypeLike = None, **named: Any) -> Tensor:
        require_count(name, window_length)
        points = window_length + bool(periodic)
        array = values(points, *parameters, **named)[:window_length] if window_length > 1 else np.ones(window_length)
        return from_values(array, dtype or float32, None, None, False)

    body.__name__, body.__doc__ = name, "Return a window: weights of the points of a section of a signal."
    function(name, method=False)(body)


def cosine_window(points: int, alpha: float, beta: float) -> Any:
    """Return alpha - beta * cos(2 pi k / (points - 1))."""
    return alpha - beta * np.cos(2 * np.pi * np.arange(points) / max(points - 1, 1))


window("bartlett_window", np.bartlett)
window("blackman_window", np.blackman)
window("hamming_window", lambda n, alpha=0.54, beta=0.46: cosine_window(n, alpha, beta))
window("hann_window", lambda n: cosine_window(n, 0.5, 0.5))
window("kaiser_window", lambda n, beta=12.0: np.kaiser(n, beta))
