"""Views with other shapes, diagonals, triangles, and windows of a dim."""

from collections.abc import Callable
from typing import Any

from ..core.dispatch import active_tracer
from ..core.errors import FuseError, GradientError, ShapeError, users_line
from ..core.indexing import infer_shape, normalize_dim, normalize_dims, sizes_of
from ..core.operators import where
from ..ir.array_functions import PadSlice, View
from ..ir.array_methods import Array
from ..ir.numpy_api.shaping import moveaxis
from ..ir.numpy_api.table import call_once
from .joining import cat, join
from .table import function


@function()
def t(x: Array) -> Array:
    """Transpose a matrix, as a view; a vector stays as it is."""
    if x.ndim > 2:
        raise ShapeError(f"t: got shape {x.shape}, expected at most 2 dims; use x.mT or x.transpose(d, e)")
    return x.T


@function()
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    """Return `length` elements of a dim from `start` on, as a view."""
    d = normalize_dim(dim, x.ndim)
    first = start + x.shape[d] if start < 0 else int(start)
    if not 0 <= first <= first + length <= x.shape[d]:
        raise ShapeError(f"narrow: {length} elements from {start} on exceed dim {d} of shape {x.shape}")
    return x[(*(slice(None),) * d, slice(first, first + length))]


@function()
def unflatten(x: Array, dim: int, sizes: Any) -> Array:
    """Replace a dim by several of the same number of elements, as a view. One size may be -1."""
    d = normalize_dim(dim, x.ndim)
    return x.reshape(*x.shape[:d], *infer_shape(x.shape[d], sizes), *x.shape[d + 1 :])


@function()
def sum_to_size(x: Array, *size: Any) -> Array:
    """Sum the dims that were added or expanded, so that the result has a shape: the gradient of `expand`."""
    shape = sizes_of(size)
    extra = x.ndim - len(shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[extra:], strict=True)):
        raise ShapeError(f"sum_to_size: shape {x.shape} is no expansion of {shape}")
    dims = (*range(extra), *[d + extra for d, n in enumerate(shape) if n == 1 and x.shape[d + extra] != 1])
    return x.sum(dims, keepdim=True).reshape(shape) if dims else x


# Diagonals.


@function()
def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Return the diagonals of the matrices of two dims, as a view. They are the last dim of the result.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.arange(6).reshape(2, 3).diagonal(1)
    tensor([1, 5])
    """
    a, b = normalize_dims((dim1, dim2), x.ndim)
    others = [d for d in range(x.ndim) if d not in (a, b)]
    x = x.permute(*others, a, b)
    rows, columns = x.shape[-2:]
    row, column = max(0, -offset), max(0, offset)
    count = max(0, min(rows - row, columns - column))
    if count == 0:
        return x[..., :0, 0] if columns else x.reshape(*x.shape[:-2], rows * columns)[..., :0]
    x = x[..., row : row + count, :]
    y = x.apply_view(View("skew", (x.ndim - 1, x.ndim - 2, 1, column, 1)))
    return y.reshape(y.shape[:-1])


@function()
def diag_embed(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Put the last dim on a diagonal of matrices of zeros, whose dims are `dim1` and `dim2` of the result."""
    return embedded(x, int(offset), *normalize_dims((dim1, dim2), x.ndim + 1))


@function("_diag_embed", operands=1, method=False)
def embedded(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Embed diagonals: the rows of a skewed matrix are padded with zeros."""
    n = x.shape[-1]
    size = n + abs(offset)
    row, column = x.positions(size).reshape(size, 1), x.positions(size)
    padding = (max(0, -offset), 1, n)
    ranges = (*[(0, 1, m) for m in x.shape[:-1]], padding)
    values = PadSlice((*x.shape[:-1], size), ranges)(x) if offset else x
    y = where((column - row).eq(offset), values.unsqueeze(-1), False)
    order = list(range(x.ndim - 1))
    for position, d in sorted([(dim1, x.ndim - 1), (dim2, x.ndim)]):
        order.insert(position, d)
    return y.permute(*order)


@function()
def diag(x: Array, diagonal: int = 0) -> Array:
    """Return a diagonal of a matrix, as a view; or a matrix of zeros with a vector on a diagonal."""
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag: got shape {x.shape}, expected a vector or a matrix; use diagonal or diag_embed")
    return diag_embed(x, diagonal) if x.ndim == 1 else x.diagonal(diagonal)


@function()
def trace(x: Array) -> Array:
    """Sum the main diagonal of a matrix."""
    if x.ndim != 2:
        raise ShapeError(f"trace: got shape {x.shape}, expected a matrix")
    return diagonal(x).sum()


@function()
def fill_diagonal_(x: Array, fill_value: float) -> Array:
    """Store a number in the elements whose indices are all equal, in place."""
    if x.ndim < 2:
        raise ShapeError(f"fill_diagonal_: got shape {x.shape}, expected at least 2 dims")
    y = x
    while y.ndim > 1:
        y = diagonal(y, 0, y.ndim - 2, y.ndim - 1)
    y[...] = fill_value
    return x


# Triangles.


def triangle(name: str, is_upper: bool) -> Callable[..., Array]:
    """Return tril or triu."""

    def body(x: Array, diagonal: int = 0) -> Array:
        if x.ndim < 2:
            raise ShapeError(f"{name}: got shape {x.shape}, expected at least 2 dims")
        rows, columns = x.shape[-2:]
        distance = x.positions(columns) - x.positions(rows).reshape(rows, 1)
        return where(distance >= diagonal if is_upper else distance <= diagonal, x, False)  # False: zero of any dtype

    side = "above" if is_upper else "below"
    body.__name__, body.__doc__ = name, f"Keep the elements of matrices on and {side} a diagonal; 0 elsewhere."
    return function(name, operands=1)(body)


tril, triu = triangle("tril", False), triangle("triu", True)


@function(operands=1)
def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803  # PyTorch's name
    """Return the powers of the elements of a vector, a row for each element: from N - 1 down to 0, unless increasing."""
    count = x.shape[-1] if N is None else N
    powers = x.positions(count).to(x.dtype)
    return x.unsqueeze(-1) ** (powers if increasing else count - 1 - powers)


@function()
def diff(x: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """Return the differences of neighboring elements along a dim, n times. For bools, whether neighbors differ.

    `prepend` and `append` are joined to the array first.
    """
    if n < 0:
        raise ShapeError(f"diff: n is {n}; expected 0 or more")
    d = normalize_dim(dim, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    return call_once(differ, cat(parts, d) if len(parts) > 1 else x, parameters=(n, d))


def differ(x: Array, n: int, dim: int) -> Array:
    """Return the differences of neighboring elements along a dim, n times."""
    size = x.shape[dim]
    for _ in range(min(n, size)):
        size -= 1
        right, left = (x.narrow(dim, start, size) for start in (1, 0))
        x = right.ne(left) if x.dtype.name == "bool" else right - left
    return x if n else x.clone()


@function(operands=1)
def gradient(x: Array, spacing: float = 1, dim: Any = None, edge_order: int = 1) -> tuple[Array, ...]:
    """Return second-order central differences along each dim, and one-sided ones at the ends."""
    dims = normalize_dims(dim, x.ndim)
    return tuple(differences(x, d, spacing, edge_order) for d in dims)


def differences(x: Array, dim: int, spacing: float, edge_order: int) -> Array:
    """Return central differences along a dim, and one-sided ones of an order at the ends."""

    def at(k: int) -> Array:
        return x.narrow(dim, k % n, 1)

    n = x.shape[dim]
    if n <= edge_order:
        raise ShapeError(f"gradient: dim {dim} has {n} elements, expected at least {edge_order + 1}")
    inner = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / (2 * spacing)
    first, last = (at(1) - at(0)) / spacing, (at(n - 1) - at(n - 2)) / spacing
    if edge_order == 2:
        first = (4 * at(1) - 3 * at(0) - at(2)) / (2 * spacing)
        last = (3 * at(n - 1) - 4 * at(n - 2) + at(n - 3)) / (2 * spacing)
    return join([first, inner, last] if n > 2 else [first, last], dim)


VIEWS: dict[tuple[str, ...], tuple[Callable[..., Array], str]] = {  # names -> body, docstring
    ("moveaxis", "movedim"): (
        lambda x, source, destination: moveaxis(x, source, destination),
        "Move dims to other positions.",
    ),
    ("swapaxes", "swapdims"): (lambda x, axis0, axis1: x.transpose(axis0, axis1), "Swap two dims, as a view."),
    ("ravel",): (lambda x: x.reshape(x.size), "Return the elements as a vector, as a view if strides allow it."),
    ("fliplr",): (lambda x: x.flip(1), "Reverse dim 1, as a view."),
    ("flipud",): (lambda x: x.flip(0), "Reverse dim 0, as a view."),
    ("adjoint",): (lambda x: x.mT, "Swap the last two dims, as a view."),
    ("broadcast_to",): (lambda x, *shape: x.expand(*shape), "Repeat dims of size 1 without a copy, as `x.expand(shape)`."),
    ("expand_as",): (lambda x, other: x.expand(*other.shape), "Repeat dims of size 1 up to the shape of another array."),
    ("reshape_as",): (lambda x, other: x.reshape(other.shape), "Reshape to the shape of another array."),
    ("view_as",): (lambda x, other: x.view(*other.shape), "View with the shape of another array."),
    ("diagflat",): (lambda x, offset=0: diag_embed(x.ravel(), offset), "Return a matrix with all elements on a diagonal."),
}

for _names, (_view, _text) in VIEWS.items():
    _view.__name__, _view.__doc__ = _names[0], _text
    function(*_names)(_view)

# Views in place: the tensor gets the shape and the strides of a view of itself.


def view_in_place(name: str) -> None:
    """Add the twin in place of a view."""

    def body(x: Any, *arguments: Any, **named: Any) -> Any:
        if active_tracer() is not None:
            raise FuseError(f"{users_line()}: {name}_ changes the shape of a tensor; in @mf.fuse write x = x.{name}(...)")
        if x.requires_grad and x.is_leaf:
            raise GradientError(f"{name}_: a leaf that requires a gradient keeps its shape; write y = x.{name}(...)")
        y = getattr(x, name)(*arguments, **named)
        x.buffer, x.address, x.meta, x.grad_fn = y.buffer, y.address, y.meta, y.grad_fn
        return x

    body.__name__, body.__doc__ = f"{name}_", f"Give the tensor the shape and the strides of `x.{name}(...)`, and return it."
    function(f"{name}_")(body)


for _name in ("transpose", "swapaxes", "swapdims", "t", "squeeze", "unsqueeze", "as_strided"):
    view_in_place(_name)
