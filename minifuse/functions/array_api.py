"""The array API standard, version 2024.12: the namespace that libraries get from `x.__array_namespace__()`.

    xp = x.__array_namespace__()
    xp.mean(xp.exp(x), axis=0)

The standard's names are those of NumPy 2. So a function here is NumPy's function, which NumPy's protocols give to minifuse,
and most have their entry in `numpy_api` or `numpy_names`. Where there is none, NumPy computes on the host, and the result
becomes a tensor. Only what NumPy calls otherwise, and what creates arrays, is written here.
"""

import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

from ..backends.registry import backends, get_backend
from ..core.dtypes import BY_NAME, DType, as_dtype, bool_, float32, int64
from ..core.errors import ShapeError
from ..ir.array_methods import Array
from ..tensors import creation
from ..tensors.tensor import Tensor
from .creation import as_tensor, empty, eye, full_like
from .dtypes import can_cast, finfo, iinfo, isdtype, result_type
from .joining import cat, meshgrid, roll, stack, tile
from .table import OTHER_NAMES

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

NUMPY_NAMES = (  # functions that NumPy dispatches to minifuse, with the standard's name
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "copysign", "cos", "cosh",
    "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "isfinite",
    "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter",
    "not_equal", "positive", "pow", "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt",
    "square", "subtract", "tan", "tanh", "trunc", "clip", "where", "nonzero", "count_nonzero", "searchsorted",
    "matmul", "matrix_transpose", "tensordot", "vecdot", "broadcast_arrays", "broadcast_to", "expand_dims", "flip",
    "moveaxis", "permute_dims", "repeat", "reshape", "squeeze", "unstack", "take", "take_along_axis",
    "cumulative_sum", "cumulative_prod", "max", "min", "mean", "prod", "std", "sum", "var", "all", "any", "argmax",
    "argmin", "diff", "tril", "triu", "unique_all", "unique_counts", "unique_inverse", "unique_values",
)  # fmt: skip
TYPES = {**BY_NAME, "bool": bool_}


def to_tensors(value: Any, backend: str) -> Any:
    """Convert NumPy's arrays and scalars in a result to tensors."""
    if isinstance(value, np.ndarray | np.generic):
        return Tensor.from_numpy(np.array(value, copy=True), get_backend(backend))
    if isinstance(value, tuple | list):
        parts = [to_tensors(part, backend) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def by_numpy(name: str) -> Callable[..., Any]:
    """Return a function of NumPy that computes with tensors and returns tensors."""
    function = getattr(np, name)

    def call(*inputs: Any, **named: Any) -> Any:
        named = {key: x for key, x in named.items() if x is not None or key == "axis"}
        example = next((x for x in (*inputs, *named.values()) if isinstance(x, Array)), None)
        return to_tensors(function(*inputs, **named), "python" if example is None else example.backend)

    call.__name__, call.__doc__ = name, f"Compute `np.{name}`, by the standard's signature."
    return call


def renamed_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that accepts `axis` for its parameter `dim`."""

    @wraps(function)
    def call(*inputs: Any, **named: Any) -> Any:
        return function(*inputs, **{OTHER_NAMES.get(key, key): x for key, x in named.items()})

    return call


concat = renamed_axis(cat)


def arange(start: float, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the numbers start, start + step, ... below stop."""
    return creation.arange(start, stop, step, dtype, device=device)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert to a tensor; with copy=True always new memory, with copy=False never."""
    if copy is False and not isinstance(obj, Tensor | np.ndarray):
        raise ValueError(f"asarray: {type(obj).__name__} cannot become a tensor without a copy; leave out copy=False")
    if copy:
        y: Tensor = creation.tensor(obj, dtype, device=device)
        return y
    y = as_tensor(obj, dtype, device=device)
    if copy is False and (y.dtype is not getattr(obj, "dtype", y.dtype)):
        raise ValueError("asarray: the conversion of the dtype needs a copy; leave out copy=False")
    return y


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert to a dtype; a copy unless copy=False and nothing changes."""
    y = x.to(as_dtype(dtype))
    return y.clone() if y is x and copy else y


def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Return `num` numbers with equal distances from start to stop, which is left out with endpoint=False."""
    values = np.linspace(start, stop, num, endpoint=endpoint)
    return creation.tensor(values, dtype or float32, device=device)


def like(create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return zeros_like or ones_like, with keyword-only options."""
    return lambda x, /, *, dtype=None, device=None: create(x, dtype, device=device)


zeros_like, ones_like, empty_like = map(like, (creation.zeros_like, creation.ones_like, creation.empty_like))
from_dlpack = creation.from_dlpack
zeros, ones, full = creation.zeros, creation.ones, creation.full


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort along a dim."""
    return take_along_axis_of(x, argsort(x, axis=axis, descending=descending, stable=stable), axis)


def take_along_axis_of(x: Array, index: Array, axis: int) -> Any:
    """Select the elements at indices along a dim."""
    return __getattr__("take_along_axis")(x, index, axis=axis)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort along a dim. The order is stable, and NaN is last."""
    values = np.asarray(x.detach() if hasattr(x, "detach") else x)
    if descending:  # stable: reverse, sort, reverse
        order = np.flip(np.argsort(np.flip(values, axis), axis, kind="stable"), axis)
        order = values.shape[axis] - 1 - order
    else:
        order = np.argsort(values, axis, kind="stable")
    return to_tensors(order.astype(np.int64), x.backend)


class Info:
    """What this namespace can do, as the standard's inspection functions ask."""

    def capabilities(self) -> dict[str, Any]:
        """Return that boolean masks and shapes that depend on values are supported, eagerly."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new arrays."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return the devices of this machine."""
        return ["cpu", *[name for name in backends() if name.startswith("cuda")]]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes of Python's numbers."""
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the dtypes by name, of one or several kinds."""
        return {name: dtype for name, dtype in TYPES.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> Info:  # noqa: N807  # the standard's name
    """Return what this namespace can do."""
    return Info()


def broadcast_shapes(*shapes: Iterable[int]) -> tuple[int, ...]:
    """Return the common shape."""
    try:
        return np.broadcast_shapes(*[tuple(shape) for shape in shapes])
    except ValueError as error:
        raise ShapeError(f"broadcast_shapes: {error}") from None


def __getattr__(name: str) -> Any:
    if name in TYPES:
        return TYPES[name]
    if name in NUMPY_NAMES:
        if not hasattr(np, name):
            raise AttributeError(f"{name} needs NumPy 2.1 or later", name=name)
        globals()[name] = function = by_numpy(name)
        return function
    raise AttributeError(f"the array API namespace of minifuse has no {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *NUMPY_NAMES, *TYPES})


__all__ = [
    "can_cast", "concat", "empty", "eye", "finfo", "full_like", "iinfo", "meshgrid", "result_type", "roll", "stack", "tile",
]  # fmt: skip
