"""The table of NumPy functions, and the decorator that adds an entry.

An entry is a function with the names of NumPy's parameters, as far as minifuse supports them. It is written with operators
and methods of arrays, so it works on tensors, traced tensors and graph nodes, and has its gradient. An entry of several
operations is one call on tensors (`call_once`). An entry returns NotImplemented for a case that it does not support.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype, as_number, weak_type_of
from ...core.operators import Operator, add, div
from ...core.traceable import Traceable
from ..array_functions import BoundFunction, Full

FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy function -> its implementation; ufuncs have their own table
UFUNCS: dict[Any, Any] = {}  # NumPy ufunc -> operator, or function of arrays
Axes = int | tuple[int, ...] | None


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the implementation of NumPy functions. None stands for one that this version lacks."""

    def register(entry: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            if function is not None:
                (UFUNCS if isinstance(function, np.ufunc) else FUNCTIONS)[function] = entry
        return entry

    return register


def call_once(body: Callable[..., Any], *inputs: Any, parameters: tuple[Any, ...] = ()) -> Any:
    """Apply a function of arrays and parameters as one call."""
    operands = [as_operand(x) for x in inputs]
    first = next(x for x in operands if isinstance(x, Traceable))
    return first.apply(BoundFunction(body, parameters) if parameters else body, *operands)


# Arguments of an entry.


def as_operand(x: Any) -> Any:
    """Convert an operand: a list becomes an array, a NumPy scalar or 0-d array becomes a Python number."""
    return as_number(np.asarray(x) if isinstance(x, list | tuple) else x)


def dtype_from_numpy(dtype: Any) -> DType:
    """Convert a dtype by NumPy's rules: float means float64."""
    return as_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)


def ndim_of(x: Any) -> int:
    """Return the number of dims of an array, or 0 for a number."""
    return len(getattr(x, "shape", ()))


def axes_key(axis: Any) -> Any:
    """Return axes as part of a cache key."""
    return tuple(map(as_number, axis)) if isinstance(axis, list | tuple) else as_number(axis)


# Operands in the body of an entry. A number is a Python number, or a node with a weak dtype.


def is_array(x: Any) -> bool:
    """Return whether x is an array, not a number or a node of a number."""
    return isinstance(x, Traceable) and isinstance(getattr(x, "dtype", None), DType)


def promote_operands(*xs: Any, operator: Operator = add) -> list[Any]:
    """Convert the operands of an entry, numbers included, to arrays of the dtype that an operator computes in."""
    dtype = operator.result_dtype(*[x.dtype if isinstance(x, Traceable) else weak_type_of(x) for x in xs])[0]
    array = next(x for x in xs if is_array(x))
    return [x.to(dtype) if isinstance(x, Traceable) else array.apply(Full((), dtype), x) for x in xs]


def promote_to_float(*xs: Any) -> list[Any]:
    """Convert operands to arrays of one float dtype; integers and bools become float64."""
    return promote_operands(*xs, operator=div)
