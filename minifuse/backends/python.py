"""The reference backend: plain loops over indices. It is slow and complete; tests compare every other backend with it.

Operators run on NumPy scalars, so integers wrap around and divide as in NumPy. Sums and matmuls of floats accumulate in
float64.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..core.dtypes import BY_NUMPY
from ..core.operators import Operator
from .base import Backend, Operand, ScalarFunction, empty_reduction_error, identity_for


def iter_indices(shape: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Iterate over all indices of a shape. The last dim changes fastest."""
    return product(*map(range, shape))


def scalar_function(op: ScalarFunction) -> ScalarFunction:
    """Return the function of numbers that an operator wraps; any other function unchanged."""
    return op.body if isinstance(op, Operator) else op


class PythonBackend(Backend):
    """Compute in plain Python, one element at a time."""

    name = "python"

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        op = scalar_function(op)
        with np.errstate(all="ignore"):
            for i in iter_indices(out.layout.shape):
                out.data[out.layout.position(i)] = op(a.data[a.layout.position(i)])

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        op = scalar_function(op)
        with np.errstate(all="ignore"):
            for i in iter_indices(out.layout.shape):
                out.data[out.layout.position(i)] = op(a.data[a.layout.position(i)], b.data[b.layout.position(i)])

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Compute out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims, the last dim fastest."""
        identity, function = identity_for(op, BY_NUMPY[a.data.dtype]), scalar_function(op)
        with np.errstate(all="ignore"):
            for i in iter_indices(out.layout.shape):
                total = identity if identity is None else to_accumulator(a.data.dtype.type(identity))
                for j in iter_indices([a.layout.shape[d] for d in dims]):
                    index = list(i)
                    for d, k in zip(dims, j, strict=True):
                        index[d] = k
                    x = a.data[a.layout.position(index)]
                    total = to_accumulator(x) if total is None else function(total, x)
                if total is None:
                    raise empty_reduction_error(op, a.layout.shape)
                out.data[out.layout.position(i)] = total

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        with np.errstate(all="ignore"):
            for *batch, m, n in iter_indices(out.layout.shape):
                total = to_accumulator(out.data.dtype.type(0))
                for k in range(a.layout.shape[-1]):
                    x, y = a.data[a.layout.position((*batch, m, k))], b.data[b.layout.position((*batch, k, n))]
                    total = total + to_accumulator(x) * y if total.dtype != bool else total | (x & y)
                out.data[out.layout.position((*batch, m, n))] = total


def to_accumulator(x: Any) -> Any:
    """Convert a number to the dtype of its accumulator: float32 to float64, others unchanged."""
    return np.float64(x) if isinstance(x, np.float32) else x
