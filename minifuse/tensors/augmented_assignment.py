"""Assignments that modify a tensor's memory: `x += y` and the other augmented operators, and `x[...] = y`.

Tensor gets its methods from `AUGMENTED_METHODS`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.dispatch import no_grad
from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.operators import TABLE
from ..ir import indexing
from ..ir.array_functions import BoundFunction
from .mutation import store, store_in

if TYPE_CHECKING:
    from .tensor import Tensor

V = TypeVar("V")

INPLACE_OPERATORS = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div", "__ifloordiv__": "floordiv",
    "__imod__": "mod", "__ipow__": "pow", "__iand__": "and_", "__ior__": "or_", "__ixor__": "xor",
    "__ilshift__": "lshift", "__irshift__": "rshift",
}  # fmt: skip


def assign(target: object, value: V) -> V:
    """Return the value unchanged. The plain store `x[...] = y` applies this function where `x += y` applies an operator."""
    return value


def as_operand(x: Any) -> Any:
    """Convert an array without dims to a number, which has a weak dtype; return other values unchanged."""
    return as_number(x) if type(x) is np.ndarray else x


def drop_leading_ones(value: Any, ndim: int) -> Any:
    """Remove leading dims of size 1 until `ndim` dims are left, as NumPy does in `x[...] = y`."""
    extra_dims = len(getattr(value, "shape", ())) - ndim
    return (
        value.reshape(value.shape[extra_dims:])
        if extra_dims > 0 and value.shape[:extra_dims] == (1,) * extra_dims
        else value
    )


def store_at(x: "Tensor", index: Any, value: Any, operator: Callable[..., Any] | None = None) -> None:
    """Store a value in x[index], or combine it with the elements by an operator, as np.add.at does.

    If an index has arrays that name an element several times, the last value is stored, and all are combined.
    """
    body: Any = operator or assign
    arrays: list[Any] = []
    if indexing.is_scalar_mask(index):
        x, index = x.unsqueeze(0), index.reshape(1)
    if indexing.has_arrays(index):
        found = None if operator else indexing.mask_of(x.ndim, index, value)
        if found is not None:
            (mask, dim), index = found, ...
            body, arrays = BoundFunction(indexing.fill_mask, (dim,)), [mask]
        else:
            split, arrays = indexing.parse(x.shape, index)
            body, index = BoundFunction(indexing.put, (*split[1:], operator)), split.basic
    with no_grad():
        target = x[index]
    if x.requires_grad:
        target.requires_grad = True
    if not arrays:
        store_in(body, target, drop_leading_ones(value, len(target.shape)))
        return
    inputs = [x.asarray_like(i) if isinstance(i, np.ndarray) else i for i in (value, *arrays)]
    store(body, [target], *inputs)


def inplace_method(name: str) -> "Callable[[Tensor, object], Tensor]":
    """Return the method that stores the result of an operator in its first operand."""
    entry = TABLE[name]
    return lambda self, other: store_in(entry, self, as_operand(other))


def matmul_in_place(self: "Tensor", other: object) -> "Tensor":
    """Store `self @ other` in self; the product is complete before it is stored."""
    product = self @ other
    if product.shape != self.shape:
        raise ShapeError(
            f"@=: the product has shape {product.shape}, expected {self.shape}, the shape of x; write x = x @ y"
        )
    return store_in(assign, self, product)


AUGMENTED_METHODS = {method: inplace_method(name) for method, name in INPLACE_OPERATORS.items()} | {
    "__imatmul__": matmul_in_place
}
