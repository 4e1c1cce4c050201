"""The table of NumPy functions, and how an entry is added.

An entry of one expression is one line: `define(np.square, lambda x: x * x, "x * x.")`. A longer one is a function with the
decorator `@implements(np.name)`. The parameters of an entry are those of NumPy that minifuse supports, with their names. It
is written with operators and methods of arrays, so it works on tensors, traced tensors and graph nodes, and has its
gradient. An entry returns NotImplemented for a case that it does not support.

A ufunc is one call on tensors, even if it is composed of several operations. So is an entry with `operands=n`: its first n
parameters are the inputs of the call, and the others are bound to it.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

from ...core.dtypes import DType, as_dtype, as_number, weak_type_of
from ...core.operators import Operator, add, div
from ...core.traceable import Traceable
from ..array_functions import BoundFunction, Full

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.dtypes import Number
    from ..array_methods import Array

R = TypeVar("R")
NumpyFunction = Callable[..., object]
Operand: TypeAlias = "Array | Number"  # in the body of an entry; a number is a Python number, or a node with a weak dtype

FUNCTIONS: dict[NumpyFunction, Callable[..., Any]] = {}  # NumPy function -> its entry; ufuncs have their own table
UFUNCS: dict[NumpyFunction, Callable[..., Any]] = {}  # NumPy ufunc -> operator, or function of arrays
ACCUMULATIONS: dict[NumpyFunction, Callable[..., Any]] = {}  # NumPy ufunc -> the entry of its method `accumulate`
MORE_ENTRIES: list[Callable[[], object]] = []  # import modules that add entries; called when NumPy asks for a missing one


def find_entry(
    function: NumpyFunction, entries: dict[NumpyFunction, Callable[..., Any]] = FUNCTIONS
) -> Callable[..., Any] | None:
    """Return the entry of a NumPy function, or None."""
    while function not in entries and MORE_ENTRIES:
        MORE_ENTRIES.pop()()
    return entries.get(function)


def define(
    functions: NumpyFunction | tuple[NumpyFunction, ...], entry: Callable[..., object], text: str, operands: int = 0
) -> None:
    """Add a lambda or a closure as the entry of one or several NumPy functions. `text` is its docstring."""
    names = functions if isinstance(functions, tuple) else (functions,)
    entry.__name__, entry.__doc__ = names[0].__name__, text
    implements(*names, operands=operands)(entry)


def implements(*functions: NumpyFunction | None, operands: int = 0) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add a function as the entry of NumPy functions. Pass None for a function that this version of NumPy lacks."""

    def register(entry: Callable[..., R]) -> Callable[..., R]:
        implementation = one_call(entry, operands) if operands else entry
        for function in functions:
            if function is not None:
                (UFUNCS if isinstance(function, np.ufunc) else FUNCTIONS)[function] = implementation
        return entry

    return register


def one_call(body: Callable[..., R], operands: int) -> Callable[..., R]:
    """Return a function of named arguments. It makes one call of `body` on the first `operands`; the others are bound."""
    defaults = [(name, parameter.default) for name, parameter in signature(body).parameters.items()]

    @wraps(body)
    def entry(**named: object) -> R:
        inputs = [named.get(name, default) for name, default in defaults[:operands]]
        parameters = [as_parameter(named.get(name, default), default) for name, default in defaults[operands:]]
        return call_once(body, *inputs, parameters=tuple(parameters))

    return entry


def as_parameter(value: Any, default: object) -> Hashable:
    """Convert a bound parameter to the type of its default, if that is a bool or an int. Convert others by `as_key`."""
    return type(default)(value) if isinstance(default, int) else as_key(value)


def call_once(body: Callable[..., R], *inputs: object, parameters: tuple[Hashable, ...] = ()) -> R:
    """Apply a function of arrays and parameters as one call."""
    operands = [as_operand(x) for x in inputs]
    first = next(x for x in operands if isinstance(x, Traceable))
    result: R = first.apply(BoundFunction(body, parameters) if parameters else body, *operands)
    return result


# Arguments of an entry.


def as_operand(x: object) -> Any:
    """Convert an operand: a list becomes an array, a NumPy scalar or 0-d array becomes a Python number."""
    return as_number(np.asarray(x) if isinstance(x, list | tuple) else x)


def dtype_from_numpy(dtype: "DTypeLike | DType") -> DType:
    """Convert a dtype by NumPy's rules: float means float64."""
    return as_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)


def ndim_of(x: object) -> int:
    """Return the number of dims of an array, or 0 for a number."""
    return len(getattr(x, "shape", ()))


def as_key(value: Any) -> Any:
    """Convert axes, or another parameter, to a value that may be part of a cache key."""
    return tuple(map(as_number, value)) if isinstance(value, list | tuple) else as_number(value)


# Operands in the body of an entry.


def is_array(x: object) -> TypeGuard["Array"]:
    """Return whether x is an array, not a number or a node of a number."""
    return isinstance(x, Traceable) and isinstance(getattr(x, "dtype", None), DType)


def promote_operands(*xs: Operand, operator: Operator = add) -> "list[Array]":
    """Convert the operands of an entry, numbers included, to arrays of the dtype that an operator computes in."""
    dtype = operator.result_dtype(*[x.dtype if isinstance(x, Traceable) else weak_type_of(x) for x in xs])[0]
    array = next(x for x in xs if is_array(x))
    return [x.to(dtype) if isinstance(x, Traceable) else array.apply(Full((), dtype), x) for x in xs]


def promote_to_float(*xs: Operand) -> "list[Array]":
    """Convert operands to arrays of one float dtype; integers and bools become float64."""
    return promote_operands(*xs, operator=div)
