"""Products of vectors and matrices, and sums of products by Einstein's notation. Contractions are computed by matmul."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..core.indexing import sizes_of
from ..core.layout import broadcast
from ..ir.array_functions import BoundFunction, matmul
from ..ir.array_methods import Array
from ..ir.numpy_api.elementwise import tensordot as tensordot_by_axes
from .joining import arrays_of
from .table import function

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_CACHED_PATHS = 1_000

function("matmul", operands=2)(matmul)


def product(name: str, left: int, right: int, text: str) -> None:
    """Add a matmul of arrays with given numbers of dims."""

    def body(x: Array, other: Array) -> Array:
        if (x.ndim, other.ndim) != (left, right):
            raise ShapeError(f"{name}: got shapes {x.shape} and {other.shape}, expected {left} and {right} dims; use @")
        if (left, right) == (3, 3) and x.shape[0] != other.shape[0]:
            raise ShapeError(f"{name}: got batches of {x.shape[0]} and {other.shape[0]} matrices, expected equal sizes")
        return matmul(x, other)

    body.__name__, body.__doc__ = name, text
    function(name, operands=2)(body)


product("mm", 2, 2, "Multiply two matrices.")
product("mv", 2, 1, "Multiply a matrix by a vector.")
product("bmm", 3, 3, "Multiply the matrices of two batches.")
product("dot", 1, 1, "Sum the products of the elements of two vectors.")
product("vdot", 1, 1, "Sum the products of the elements of two vectors.")


def added_product(name: str, text: str, multiply: Any) -> None:
    """Add a function that computes beta * x + alpha * (a product)."""

    def body(x: Array, first: Array, second: Array, beta: float = 1, alpha: float = 1) -> Array:
        y = multiply(first, second)
        y = y if alpha == 1 else y * alpha
        return y.expand(*broadcast(x.shape, y.shape)) if beta == 0 else (x if beta == 1 else x * beta) + y

    body.__name__, body.__doc__ = name, text
    function(name, operands=3)(body)


added_product("addmm", "Compute beta * x + alpha * (first @ second) for matrices.", matmul)
added_product("addmv", "Compute beta * x + alpha * (first @ second) for a matrix and a vector.", matmul)
added_product("baddbmm", "Compute beta * x + alpha * (first @ second) for batches of matrices.", matmul)
added_product(
    "addbmm", "Compute beta * x + alpha * the sum of the products of two batches.", lambda a, b: matmul(a, b).sum(0)
)
added_product("addr", "Compute beta * x + alpha * the outer product of two vectors.", lambda a, b: a.unsqueeze(1) * b)


@function("outer", "ger", operands=2)
def outer(x: Array, vec2: Array) -> Array:
    """Multiply each element of a vector by each element of another."""
    if x.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(f"outer: got shapes {x.shape} and {vec2.shape}, expected vectors")
    return x.unsqueeze(1) * vec2


@function(operands=2)
def inner(x: Array, other: Array) -> Array:
    """Sum the products along the last dims; multiply, if one has no dims."""
    return tensordot_by_axes(x, other, (-1, -1)) if x.ndim and other.ndim else x * other


@function(operands=2)
def kron(x: Array, other: Array) -> Array:
    """Return the Kronecker product: the second array, multiplied by each element of the first."""
    ndim = max(x.ndim, other.ndim)
    a, b = ((1,) * (ndim - len(shape)) + shape for shape in (x.shape, other.shape))
    left = x.reshape(tuple(n for size in a for n in (size, 1)))
    right = other.reshape(tuple(n for size in b for n in (1, size)))
    return (left * right).reshape(tuple(n * m for n, m in zip(a, b, strict=True)))


@function(method=False)
def tensordot(a: Array, b: Array, dims: Any = 2) -> Array:
    """Sum the products along some dims of a and the same number of dims of b, by a matmul."""
    return tensordot_by_axes(a, b, dims if isinstance(dims, int) else tuple(tuple(sizes_of(d)) for d in dims))


# Einstein's notation.


@function(method=False)
def einsum(equation: str, *operands: Any) -> Array:
    """Sum products of elements by Einstein's notation: "ik,kj->ij" is a matmul, "bii->b" the traces of a batch.

    A label that is repeated in a term selects a diagonal, one that is missing on the right is summed, and `...` stands for
    dims that broadcast. Pairs of arrays are contracted by matmul, in the order that needs the fewest operations.

    Raises
    ------
    ShapeError
        The notation does not fit the arrays.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.einsum("ij,j->i", mf.tensor([[1, 2], [3, 4]]), mf.tensor([1, 10]))
    tensor([21, 43])
    """
    arrays = arrays_of("einsum", operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands)
    terms, result = parse_equation(equation, tuple(x.ndim for x in arrays))
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(label, n) != n and 1 not in (n, sizes[label]):
                raise ShapeError(f"einsum: label {label!r} of {equation!r} has sizes {sizes[label]} and {n}")
            sizes[label] = max(n, sizes[label]) if n != 0 else 0
    path = contraction_order(terms, result, tuple(sorted(sizes.items())))
    y: Array = arrays[0].apply(BoundFunction(contract, (terms, result, path)), *arrays)
    return y


def parse_equation(equation: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each array and of the result. Labels that stand for `...` are capital letters from the end."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ShapeError(f"einsum: {equation!r} has {len(terms)} terms for {len(ndims)} tensors")
    free = [label for label in reversed(LETTERS) if label not in equation]
    named = [len(term.replace("...", "")) for term in terms]
    most = max((n - k for n, k, term in zip(ndims, named, terms, strict=True) if "..." in term), default=0)
    ellipsis = "".join(free[: max(most, 0)])
    expanded = []
    for term, ndim, count in zip(terms, ndims, named, strict=True):
        missing = ndim - count
        if missing < 0 or (missing and "..." not in term):
            raise ShapeError(f"einsum: term {term!r} of {equation!r} does not name the {ndim} dims of its tensor")
        expanded.append(term.replace("...", ellipsis[len(ellipsis) - missing :]))
    if not arrow:
        counts = "".join(expanded)
        right = ellipsis + "".join(sorted({x for x in counts if counts.count(x) == 1 and x not in ellipsis}))
    else:
        right = right.replace("...", ellipsis)
    if unknown := sorted({*right} - {*"".join(expanded)}):
        raise ShapeError(f"einsum: labels {unknown} of the result of {equation!r} are in no term")
    if len({*right}) < len(right):
        raise ShapeError(f"einsum: the result of {equation!r} names a label twice")
    return tuple(expanded), right


@lru_cache(MAX_CACHED_PATHS)
def contraction_order(
    terms: tuple[str, ...], result: str, sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the pairs of arrays to contract, one after the other: NumPy's greedy search."""
    if len(terms) < 3:
        return ((0, 1),) * (len(terms) - 1)
    size = dict(sizes)
    dummies = [np.broadcast_to(np.float32(0), [size[label] for label in term]) for term in terms]
    path, _ = np.einsum_path(f"{','.join(terms)}->{result}", *dummies, optimize="greedy")
    pairs: list[tuple[int, ...]] = []
    for step in path[1:]:
        pairs += [tuple(step)] if len(step) == 2 else [(0, 1)] * (len(step) - 1)
    return tuple(pairs)


def contract(*inputs: Any) -> Array:
    """Contract arrays in pairs. The last three inputs are their labels, those of the result, and the pairs."""
    *arrays, terms, result, pairs = inputs
    operands = [without_repeats(x, term) for x, term in zip(arrays, terms, strict=True)]
    for pair in pairs:
        j, k = sorted(pair)
        second, first = operands.pop(k), operands.pop(j)
        kept = {*result, *"".join(term for _, term in operands)}
        operands.append(contract_pair(*first, *second, kept))
    x, term = operands[0]
    x, term = summed(x, term, {*result})
    return x.permute(*[term.index(label) for label in result]) if term != result else x


def without_repeats(x: Array, term: str) -> tuple[Array, str]:
    """Replace two dims with one label by their diagonal, which becomes the last dim."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            a = term.index(label)
            b = term.index(label, a + 1)
            x = x.diagonal(0, a, b)
            term = "".join(x for d, x in enumerate(term) if d not in (a, b)) + label
    return x, term


def summed(x: Array, term: str, kept: set[str]) -> tuple[Array, str]:
    """Sum the dims whose labels nobody needs."""
    dims = tuple(d for d, label in enumerate(term) if label not in kept)
    return (x.sum(dims).to(x.dtype) if dims else x), "".join(label for label in term if label in kept)


def contract_pair(x: Array, left: str, y: Array, right: str, kept: set[str]) -> tuple[Array, str]:
    """Multiply two arrays and sum the labels that are not kept: a matmul, or a product if none is summed."""
    x, left = summed(x, left, kept | {*right})
    y, right = summed(y, right, kept | {*left})
    shared = [label for label in left if label in right]
    size = {**dict(zip(right, y.shape, strict=True)), **{a: n for a, n in zip(left, x.shape, strict=True) if n != 1}}
    batch = [label for label in shared if label in kept]
    inner_labels = [label for label in shared if label not in kept]
    rows = [label for label in left if label not in shared]
    columns = [label for label in right if label not in shared]
    if not inner_labels:
        a = aligned(x, left, batch + rows).reshape(*aligned_shape(x, left, batch + rows), *[1] * len(columns))
        b = aligned(y, right, batch + columns)
        b = b.reshape(*b.shape[: len(batch)], *[1] * len(rows), *b.shape[len(batch) :])
        return a * b, "".join(batch + rows + columns)
    m, n, k = (math.prod(size[label] for label in labels) for labels in (rows, columns, inner_labels))
    lead = tuple(size[label] for label in batch)
    full = [size[label] for label in batch + rows + inner_labels], [size[label] for label in batch + inner_labels + columns]
    a = aligned(x, left, batch + rows + inner_labels).expand(*full[0]).reshape(*lead, m, k)
    b = aligned(y, right, batch + inner_labels + columns).expand(*full[1]).reshape(*lead, k, n)
    labels = batch + rows + columns
    return (a @ b).reshape(tuple(size[label] for label in labels)), "".join(labels)


def aligned(x: Array, term: str, order: Sequence[str]) -> Array:
    """Permute the dims into an order of labels."""
    return x.permute(*[term.index(label) for label in order]) if [*term] != [*order] else x


def aligned_shape(x: Array, term: str, order: Sequence[str]) -> list[int]:
    """Return the sizes of labels in an order."""
    return [x.shape[term.index(label)] for label in order]
