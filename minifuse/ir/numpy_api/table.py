"""The table of NumPy's functions, and how entries of it are written.

An entry is a function with NumPy's names for its parameters, those of them that there are here. It is written with methods
of arrays and operators only, so it serves tensors, captured tensors and nodes of a graph alike, and has its gradient; what
takes several operations is one call on tensors (`call_once`). An entry gives NotImplemented where it does not know a case.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype, as_number, weak_type_of
from ...core.operators import Operator, add, div
from ...core.traceable import Traceable
from ..array_functions import BoundFunction, Full

FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy's function -> what it is here; ufuncs have a table of their own
UFUNCS: dict[Any, Any] = {}  # NumPy's ufunc -> the operator, or a function of arrays
Axes = int | tuple[int, ...] | None


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as what these functions of NumPy are; None stands for one that this NumPy does not have."""

    def enter(entry: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            if function is not None:
                (UFUNCS if isinstance(function, np.ufunc) else FUNCTIONS)[function] = entry
        return entry

    return enter


def call_once(body: Callable[..., Any], *inputs: Any, parameters: tuple[Any, ...] = ()) -> Any:
    """Apply a function of arrays and parameters as one call."""
    operands = [as_operand(x) for x in inputs]
    first = next(x for x in operands if isinstance(x, Traceable))
    return first.apply(BoundFunction(body, parameters) if parameters else body, *operands)


# What may be given.


def as_operand(x: Any) -> Any:
    """An operand as arrays know them: lists are arrays; NumPy's scalars and arrays of no dims are Python's numbers."""
    return as_number(np.asarray(x) if isinstance(x, list | tuple) else x)


def dtype_from_numpy(dtype: Any) -> DType:
    """The element type that NumPy means: float is float64 there."""
    return as_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)


def ndim_of(x: Any) -> int:
    """The number of dims of an array; a number has none."""
    return len(getattr(x, "shape", ()))


def axes_key(axis: Any) -> Any:
    """Axes as part of a key."""
    return tuple(map(as_number, axis)) if isinstance(axis, list | tuple) else as_number(axis)


# What an entry finds: numbers stand for themselves, or are nodes whose dtype is weak.


def is_array(x: Any) -> bool:
    """Whether x is an array, not a number or a node that stands for one."""
    return isinstance(x, Traceable) and isinstance(getattr(x, "dtype", None), DType)


def promote_operands(*xs: Any, by: Operator = add) -> list[Any]:
    """Operands of an entry, numbers too, as arrays of the type that an operator computes in."""
    dtype = by.result_dtype(*[x.dtype if isinstance(x, Traceable) else weak_type_of(x) for x in xs])[0]
    array = next(x for x in xs if is_array(x))
    return [x.to(dtype) if isinstance(x, Traceable) else array.apply(Full((), dtype), x) for x in xs]


def promote_to_float(*xs: Any) -> list[Any]:
    """Operands as floats of one type; integers and bools as float64."""
    return promote_operands(*xs, by=div)
