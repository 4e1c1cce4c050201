"""The library of functions: joining, indexing, sorting, linear algebra and the many names that PyTorch users expect.

All are entries of one table (`table.py`), most of them compositions of operators, views and reductions. The modules are
imported when one of their names is first used, as `mf.cat` or as `x.tril()`; so they cost nothing until then.

    elementwise    functions of each element: add, clamp, logit, xlogy, ...
    joining        cat, stack, split, chunk, repeat, tile, roll, meshgrid, ...
    shaping        views, diagonals, triangles: movedim, narrow, diagonal, tril, ...
    special        erfinv, lgamma, digamma, i0, ... of each element
    methods        the methods of arrays as functions: mf.sum(x, dim=1) is x.sum(dim=1)
    dtypes         finfo, iinfo, promote_types, result_type, can_cast, isdtype
    products       matmuls with other names, einsum, tensordot, kron, outer, ...
    statistics     amax, norm, nansum, std_mean, cov, trapezoid, ...
    scans          running sums, products and extremes: cumsum, cumprod, cummax, logcumsumexp, ...
    creation       eye, linspace, full_like, as_tensor, windows, ...
    random         randint, normal, bernoulli, multinomial, x.uniform_(), ...
    attributes     x.dim(), x.numel(), x.float(), x.cpu(), x.device, ...
    numpy_names    NumPy's names of these functions: np.concatenate, np.einsum, np.roll, ...
    nan_reductions  NumPy's reductions that leave out NaN: np.nanmean, np.nanmax, ...
    array_api      the namespace of the array API standard, which libraries ask tensors for
    matrices       det, svd, cholesky_solve, ... as in torch
    linalg, fft    `mf.linalg` and `mf.fft`
    indexing       select and store by index: gather, scatter, masked_fill, take, index_add, ...
    positions      find elements: nonzero, argwhere, where, isin, unravel_index
    ordering       sort, topk, median, quantile, unique, ...
    bins           searchsorted, bucketize, bincount, histograms
    neural         functions of neural networks that are in mf and in mf.nn.functional: distances, prelu, bilinear
    missing        what to write in place of a name that minifuse lacks
"""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

from ..core.dtypes import OTHER_NAMES
from ..core.errors import ShapeError
from ..core.lazy_text import LazyText
from ..ir.array_methods import Array
from ..ir.numpy_api.table import MORE_ENTRIES

MODULES = (
    "methods", "elementwise", "joining", "shaping", "products", "statistics", "dtypes", "creation", "random",
    "attributes", "scans", "special", "matrices", "indexing", "positions", "bins", "ordering", "neural", "numpy_names",
    "nan_reductions",
)  # fmt: skip


@cache
def load() -> dict[str, Callable[..., Any]]:
    """Import all modules of the library, once, and return the table."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
    functions: dict[str, Callable[..., Any]] = import_module(f"{__name__}.table").FUNCTIONS
    return functions


def find_function(name: str, public: Iterable[str] = ()) -> Any:
    """Return the function or the dtype `mf.name`. Raise AttributeError with what to write instead, if there is none.

    `public` are the other names of `mf`, which a misspelled name may mean.
    """
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    if not name.startswith("_") and (entry := load().get(name)) is not None:
        return entry
    raise missing_error("module 'minifuse'", name, "mf.", public)


def find_method(array: Array, name: str) -> Any:
    """Return the method `x.name`, or the twin in place of a method, `x.name_`: Python calls this for unknown attributes.

    Raises
    ------
    AttributeError
        There is none. The message names what to write instead, where it is known.
    """
    present = getattr(type(array), name, None)
    if isinstance(present, property):  # it raised an AttributeError: raise its own message again
        return present.__get__(array)
    if name.startswith("_") or present is not None:  # a protocol, or a slot that is not set
        raise AttributeError(f"{type(array).__name__!r} object has no attribute {name!r}")
    load()
    recipes = import_module(f"{__name__}.missing").RECIPES
    if not hasattr(Array, name) and name.endswith("_") and name not in recipes and hasattr(Array, name[:-1]):
        setattr(Array, name, in_place(name[:-1]))
    method = getattr(Array, name, None)
    if method is None:
        raise missing_error(f"{type(array).__name__!r} object", name, "x.")
    return method.__get__(array) if hasattr(method, "__get__") else method


def in_place(name: str) -> Callable[..., Array]:
    """Return the twin of a method that stores the result in the array itself, and returns the array."""
    return in_place_function(lambda x, *inputs, **named: getattr(x, name)(*inputs, **named), f"{name}_")


def in_place_function(function: Callable[..., Array], name: str) -> Callable[..., Array]:
    """Return the twin of a function that stores the result in its first argument, and returns that."""

    def twin(x: Any, *inputs: Any, **named: Any) -> Any:
        y = function(x, *inputs, **named)
        if y.shape != x.shape:
            raise ShapeError(
                f"{name}: the result has shape {y.shape}, which does not fit into {x.shape}; write x = {name[:-1]}(x)"
            )
        return x.copy_(y)

    twin.__name__, twin.__doc__ = name, f"Store the result of `{name[:-1]}` in the memory of x, and return x."
    return twin


def missing_error(owner: str, name: str, prefix: str, public: Iterable[str] = ()) -> AttributeError:
    """Return the error for a name that does not exist, with what to write instead."""

    def text() -> str:
        return f"{owner} has no attribute {name!r}{import_module(f'{__name__}.missing').advice(name, prefix, public)}"

    return AttributeError(LazyText(text), name=name)


def array_namespace(array: Array, /, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array API standard, for libraries that compute with any kind of array."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: got the version {api_version!r}, expected 2024.12 or earlier")
    load()
    return import_module(f"{__name__}.array_api")


MORE_ENTRIES.append(load)
Array.__array_namespace__ = array_namespace  # type: ignore[attr-defined]
Array.__getattr__ = find_method  # type: ignore[method-assign,assignment]
