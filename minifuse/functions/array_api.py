"""The array API standard, version 2024.12: the namespace that libraries get from `x.__array_namespace__()`.

    xp = x.__array_namespace__()
    xp.mean(xp.exp(x), axis=0)

The standard's names are those of NumPy 2. So a function here is NumPy's function, which NumPy's protocols give to minifuse,
and most have their entry in `numpy_api` or `numpy_names`. Where there is none, NumPy computes on the host, and the result
becomes a tensor. Only what NumPy calls otherwise, and what creates arrays, is written here.
"""

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..backends.registry import backends, get_backend
from ..core.dtypes import BY_NAME, DType, as_dtype, bool_, float32, int64
from ..core.errors import IndexingError, ShapeError
from ..ir.array_methods import Array
from ..ir.numpy_api.table import find_entry
from ..tensors import creation
from ..tensors.tensor import Tensor
from .creation import as_tensor
from .creation import empty as uninitialized
from .dtypes import can_cast as can_cast
from .dtypes import finfo as finfo
from .dtypes import iinfo as iinfo
from .dtypes import isdtype, result_type
from .joining import cat
from .joining import meshgrid as meshgrid
from .joining import roll as rolled
from .joining import stack as stacked
from .joining import tile as tile
from .ordering import unique

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

UNARY = (  # functions of each element of one array, `f(x, /)`
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p "
    "log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc"
)
BINARY = (  # functions of each pair of elements, `f(x1, x2, /)`
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide "
    "greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply "
    "nextafter not_equal pow remainder subtract"
)
SIGNATURES = """
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
clip(x, /, min=None, max=None)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
flip(x, /, *, axis=None)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
moveaxis(x, source, destination, /)
nonzero(x, /)
permute_dims(x, /, axes)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
searchsorted(x1, x2, /, *, side="left", sorter=None)
squeeze(x, /, axis)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
where(condition, x1=None, x2=None, /)
"""
LINALG = """
cholesky(x, /, *, upper=False)
cross(x1, x2, /, *, axis=-1)
det(x, /)
diagonal(x, /, *, offset=0)
eigh(x, /)
eigvalsh(x, /)
inv(x, /)
matmul(x1, x2, /)
matrix_norm(x, /, *, keepdims=False, ord="fro")
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None)
matrix_transpose(x, /)
outer(x1, x2, /)
pinv(x, /, *, rtol=None)
qr(x, /, *, mode="reduced")
slogdet(x, /)
solve(x1, x2, /)
svd(x, /, *, full_matrices=True)
svdvals(x, /)
tensordot(x1, x2, /, *, axes=2)
trace(x, /, *, offset=0, dtype=None)
vecdot(x1, x2, /, *, axis=-1)
vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
TYPES = {**BY_NAME, "bool": bool_}


def to_tensors(value: Any, backend: str) -> Any:
    """Convert NumPy's arrays and scalars in a result to tensors."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.astype(np.int64) if value.dtype.kind == "u" and value.dtype.itemsize > 1 else value
        return Tensor.from_numpy(np.array(value, copy=True), get_backend(backend))
    if isinstance(value, tuple | list):
        parts = [to_tensors(part, backend) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def by_numpy(signature: str, module: Any = np) -> Callable[..., Any]:
    """Return a function with a signature that calls NumPy's function of the name, and returns tensors."""
    name, _, text = signature.partition("(")
    parameters = parse_signature(f"lambda {text.removesuffix(')')}: 0")
    function = getattr(module, name)

    def call(*inputs: Any, **named: Any) -> Any:
        bound = parameters.bind(*inputs, **named)
        options = {key: x for key, x in bound.kwargs.items() if x is not None or key == "axis"}
        example = next((x for x in (*bound.args, *options.values()) if isinstance(x, Array)), None)
        return to_tensors(function(*bound.args, **options), "cpu" if example is None else example.backend)

    call.__name__, call.__doc__ = name, f"Compute `np.{name}`, by the standard's signature."
    call.__signature__ = parameters  # type: ignore[attr-defined]
    return call


def parse_signature(text: str) -> inspect.Signature:
    """Return the signature of a lambda, given as text. Defaults are literals."""
    (statement,) = ast.parse(text).body
    (arguments,) = [node for node in ast.walk(statement) if isinstance(node, ast.arguments)]
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    named = [*positional, *arguments.kwonlyargs]
    kinds: list[Any] = [inspect.Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(arguments.args)
    kinds += [inspect.Parameter.KEYWORD_ONLY] * len(arguments.kwonlyargs)
    parameters = [
        inspect.Parameter(x.arg, kind, default=inspect.Parameter.empty if node is None else ast.literal_eval(node))
        for x, kind, node in zip(named, kinds, defaults, strict=True)
    ]
    if arguments.vararg is not None:
        parameters.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    return inspect.Signature(parameters)


def table(signatures: str, module: Any = np) -> dict[str, Callable[..., Any]]:
    """Return the functions of a table of signatures that this version of NumPy has, by name."""
    lines = {line.partition("(")[0]: line for line in signatures.split("\n") if line}
    return {name: by_numpy(line, module) for name, line in lines.items() if hasattr(module, name)}


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Join arrays along a dim; with axis=None, their elements."""
    return cat([x.reshape(-1) for x in arrays], 0) if axis is None else cat(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Join arrays along a new dim."""
    return stacked(arrays, axis)


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Any:
    """Move the elements along dims, around the end."""
    return rolled(x, shift, axis)


def expand_dims(x: Array, /, axis: int) -> Any:
    """Insert a dim of size 1. Raise IndexingError, an IndexError as the standard asks, for a dim that does not exist."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexingError(
            f"expand_dims: axis {axis} is out of range for {x.ndim} dims; valid are {-x.ndim - 1} to {x.ndim}"
        )
    return x.unsqueeze(axis)


def diff(x: Array, /, n: int = 1, *, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the differences of neighboring elements, n times. NumPy and scikit-learn pass n by position."""
    return x.diff(n, axis, prepend, append)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Any:
    """Sum the products along a dim, which has the same size in both."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: got sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis}, expected equal ones")
    return (x1 * x2).sum(axis).to(result_type(x1, x2))


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


def filled(create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return zeros, ones or empty of a shape, with keyword-only options."""
    return lambda shape, *, dtype=None, device=None: create(shape, dtype=dtype, device=device)


zeros, ones, empty = filled(creation.zeros), filled(creation.ones), filled(uninitialized)


def number_of(x: Any) -> Any:
    """Return an array without dims as a Python number, and a number unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def full(shape: Any, fill_value: float, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor filled with one number."""
    return creation.full(shape, number_of(fill_value), dtype, device=device)


def full_like(x: Array, /, fill_value: float, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor filled with one number, with the shape of x."""
    return creation.full(x.shape, number_of(fill_value), dtype or x.dtype, x.backend if device is None else str(device))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a matrix with ones on a diagonal."""
    return creation.tensor(np.eye(n_rows, n_cols, k), dtype or float32, device=device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of the memory of another library; a copy if asked for."""
    y = creation.from_dlpack(x, None if device is None else str(device))
    return y.clone() if copy else y


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort along a dim."""
    return x.take_along_dim(argsort(x, axis=axis, descending=descending, stable=stable), axis)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort along a dim. The order is stable, and NaN is last."""
    return x.argsort(axis, descending)


def unique_values(x: Array, /) -> Any:
    """Return the different elements in ascending order, as libraries expect; NumPy's function has no order."""
    return unique(x)


class Info:
    """Describe what this namespace can do, as the standard's inspection functions ask."""

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


FUNCTIONS = table(
    "\n".join([*[f"{name}(x, /)" for name in UNARY.split()], *[f"{name}(x1, x2, /)" for name in BINARY.split()], SIGNATURES])
)
linalg = SimpleNamespace(**table(LINALG, np.linalg) | {"vecdot": vecdot})
globals().update(FUNCTIONS, **TYPES)


def __getattr__(name: str) -> Any:
    """Return NumPy's function of a name that the standard lacks, if minifuse computes it: einsum, pad, nansum, ..."""
    function = None if name.startswith("_") else getattr(np, name, None)
    if callable(function) and find_entry(function) is not None:
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({name for name in globals() if not name.startswith("_")} | {"__array_namespace_info__"})
