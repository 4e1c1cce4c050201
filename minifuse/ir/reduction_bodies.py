"""Bodies of the reductions of an array: sums, means, variances, positions of extremes; and roots with finite gradients.

The methods of `Array` bind the dims. A body is one call on tensors, and is inlined on nodes.
"""

from math import prod
from typing import TYPE_CHECKING

from ..core.dtypes import bool_, int32, int64
from ..core.operators import Operator, add, and_, eq, mul, ne, or_, where
from .array_functions import Reduce
from .monoids import FIRST_EXTREME, index_dtype

if TYPE_CHECKING:
    from .array_methods import Array


def reduce_dims(x: "Array", dims: tuple[int, ...], keepdim: bool, operator: Operator) -> "Array":
    """Reduce dims. Sums and products of integers are int64; `any` and `all` convert to bool first."""
    if operator in (add, mul) and not x.dtype.is_float:
        x = x.to(int64)
    elif operator in (and_, or_):
        x = ne(x, 0).to(bool_)
    y = Reduce(operator, dims)(x) if dims else x.clone()
    return y if keepdim else drop_dims(y, dims)


def drop_dims(y: "Array", dims: tuple[int, ...]) -> "Array":
    """Remove reduced dims, which have size 1."""
    return y.reshape(tuple(n for d, n in enumerate(y.shape) if d not in dims))


def _reduced_size(x: "Array", dims: tuple[int, ...]) -> int:
    return prod(x.shape[d] for d in dims)


def mean(x: "Array", dims: tuple[int, ...], keepdim: bool) -> "Array":
    """Average along dims."""
    return reduce_dims(x, dims, keepdim, add) / _reduced_size(x, dims)


def var(x: "Array", dims: tuple[int, ...], keepdim: bool, correction: int) -> "Array":
    """Average the squared distances from the mean; the divisor is smaller by `correction`."""
    deviation = x - mean(x, dims, True)
    return reduce_dims(deviation * deviation, dims, keepdim, add) / max(0, _reduced_size(x, dims) - correction)


def std(x: "Array", dims: tuple[int, ...], keepdim: bool, correction: int) -> "Array":
    """Return the square root of the variance, with gradient 0 where it is 0."""
    return root(var(x, dims, keepdim, correction), 2, 0)


def argreduce(x: "Array", operator: Operator, dim: int | None, keepdim: bool) -> "Array":
    """Return the smallest index of the extreme element, or of a NaN if there is one."""
    values = x.reshape(x.size) if dim is None else x
    values = values.to(int32) if x.dtype is bool_ else values
    d = dim or 0
    n = values.shape[d]
    index = x.positions(n).to(index_dtype(n)).reshape((n,) + (1,) * (values.ndim - d - 1)).expand(*values.shape)
    y = Reduce(FIRST_EXTREME[operator].states[1], (d,))(values, index).to(int64)
    if dim is None:
        return y.reshape((1,) * x.ndim if keepdim else ())
    return y if keepdim else drop_dims(y, (d,))


def root(x: "Array", order: float, at_zero: "Array | int") -> "Array":
    """Return x ** (1 / order), or `at_zero` where x is 0.

    At 0 the derivative of the root is infinite and that of the powers below it is 0, so their product would be NaN. As in
    PyTorch, the gradient is 0 there: `at_zero` is the constant 0, or x itself, which passes on NaN gradients.
    """
    is_zero = eq(x, 0)
    y = where(is_zero, 1, x)
    return where(is_zero, at_zero, y.sqrt() if order == 2 else y ** (1 / order))
