"""Implement NumPy's protocols: NEP 13 for ufuncs, NEP 18 for other functions.

This module also stores results in `out=`, and raises errors for unsupported parameters. A ufunc that is not in the table
`UFUNCS` raises an error. Any other function that is not in `FUNCTIONS` is computed by NumPy: it gets read-only arrays, and
its result is a plain array. A traced tensor has no values, so tracing such a function raises an error that names the NumPy
function and the calling line.
"""

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import as_number
from ...core.errors import DTypeError, FuseError, users_line
from ...core.indexing import Dims
from ...core.traceable import Traceable
from ..array_functions import BoundFunction
from .order import AT_OPERATORS
from .reductions import REDUCTIONS
from .table import (
    ACCUMULATIONS,
    UFUNCS,
    NumpyFunction,
    Operand,
    as_operand,
    dtype_from_numpy,
    find_entry,
    is_array,
)

if TYPE_CHECKING:
    from ..array_methods import Array

IN_PLACE: dict[np.ufunc, Callable[[Any, Any], object]] = {
    np.add: operator.iadd, np.subtract: operator.isub, np.multiply: operator.imul, np.divide: operator.itruediv,
    np.floor_divide: operator.ifloordiv, np.remainder: operator.imod, np.power: operator.ipow,
    np.bitwise_and: operator.iand, np.bitwise_or: operator.ior, np.bitwise_xor: operator.ixor,
    np.left_shift: operator.ilshift, np.right_shift: operator.irshift,
}  # fmt: skip

NEUTRAL_VALUES: dict[str, tuple[bool | str, ...]] = {  # parameter -> values that have no effect
    "where": (True,), "order": ("C", "K", "A"), "casting": ("same_kind",), "subok": (True, False), "copy": (True,),
    "device": ("cpu",), "returned": (False,),
}  # fmt: skip
JOIN_FIRST = "join them before, with np.concatenate"
PARAMETER_ADVICE = {  # unsupported parameter -> what to write instead
    "out": "pass a tensor, or write y[...] = {name}(...)",
    "where": "pass np.where(mask, x, 0) instead of x; replace 0 by the neutral element of the function",
    "initial": "combine the result with it afterwards",
    "order": "elements are in row-major order; permute the dims",
    "dtype": "convert with x.to(dtype)",
    "weights": "write np.sum(x * w) / np.sum(w)",
    "mean": "leave it out: the mean is computed in the same kernel, at no extra cost",
    "copy": "the result is always a copy; write x[...] = {name}(x)",
    "prepend": JOIN_FIRST,
    "append": JOIN_FIRST,
    "axes": "permute the dims",
}
NO_DYNAMIC_SHAPE = "the shape of the result would depend on values; use np.where(condition, a, b)"
ALTERNATIVES = {  # NumPy function -> what to write in a traced function
    "block": "join the rows with np.concatenate, then the result",
    **dict.fromkeys(("nonzero", "where", "argwhere", "flatnonzero", "extract", "compress", "unique"), NO_DYNAMIC_SHAPE),
}
ARRAYS = (Traceable, np.ndarray)
DEFAULT_ALTERNATIVE = "use the functions in docs/guide/numpy.md, or call it outside and pass the result as an argument"


# Ufuncs.


def on_ufunc(x: "Array", ufunc: np.ufunc, method: str, inputs: Sequence[object], named: dict[str, Any]) -> object:
    """Call a ufunc, or one of its methods, where the array x is an input or the output."""
    entry = UFUNCS.get(ufunc)
    if entry is not None and method == "__call__" and not named:
        return x.apply(entry, *[as_operand(i) for i in inputs])
    name = ufunc.__name__ + (f".{method}" if method != "__call__" else "")
    out_tensors = named.pop("out", (None,))
    if any(out is not None for out in out_tensors):
        return store_ufunc_result(name, ufunc, method, inputs, out_tensors, named)
    options = {key: value for key, value in named.items() if key == "axis" or not is_neutral(key, value)}
    if method == "at" and ufunc in AT_OPERATORS and isinstance(inputs[0], Traceable):
        return inputs[0].store_at(inputs[1], as_operand(inputs[2]), AT_OPERATORS[ufunc])
    if method == "reduce" and ufunc in REDUCTIONS:
        return reduce_ufunc(name, ufunc, x, **options)
    if method == "accumulate" and (accumulate := find_entry(ufunc, ACCUMULATIONS)) is not None:
        reject_parameters(name, options.keys() - {"axis", "dtype"})
        return accumulate(x, **options)
    if entry is None or method not in ("__call__", "outer"):
        to_numpy_arguments(name, inputs)  # raises FuseError while tracing
        raise DTypeError(f"np.{name} is not in minifuse; use a method of the tensor, or np.asarray(x) to compute with NumPy")
    dtype = options.pop("dtype", None)
    reject_parameters(name, options)
    call = entry if dtype is None else BoundFunction(convert_then_call, (entry, dtype_from_numpy(dtype), name))
    return x.apply(BoundFunction(outer, (call,)) if method == "outer" else call, *[as_operand(i) for i in inputs])


def store_ufunc_result(
    name: str, ufunc: np.ufunc, method: str, inputs: Sequence[object], outs: Sequence[Any], named: dict[str, Any]
) -> object:
    """Compute a ufunc, and store the results in the tensors that are passed as `out`."""
    for out in outs:
        reject_out(name, out)
    if method == "__call__" and ufunc in IN_PLACE and not named and outs[0] is inputs[0]:
        return IN_PLACE[ufunc](inputs[0], as_operand(inputs[1]))
    results = getattr(ufunc, method)(*inputs, **named)
    for out, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
        out.copy_(result)
    return outs[0] if len(outs) == 1 else tuple(outs)


def reduce_ufunc(
    name: str, ufunc: np.ufunc, x: "Array", axis: Dims = 0, dtype: Any = None, keepdims: bool = False, **others: object
) -> "Array":
    """Reduce by a ufunc, along dim 0 by default."""
    reject_parameters(name, others)
    return REDUCTIONS[ufunc](a=x, axis=axis, dtype=dtype, keepdims=keepdims)


def convert_then_call(*inputs: Any) -> Any:
    """Convert the inputs to a dtype, then call the implementation of a ufunc."""
    *operands, entry, dtype, name = inputs
    if any(x.dtype.is_float and not dtype.is_float for x in operands if is_array(x)):
        raise DTypeError(f"np.{name}(..., dtype={dtype}): the operands are floats; convert them with x.to(mf.{dtype})")
    y = entry(*[x.to(dtype) if is_array(x) else x for x in operands])
    for part in y if isinstance(y, tuple) else (y,):
        if part.dtype is not dtype:
            raise DTypeError(f"np.{name}(..., dtype={dtype}): the result is {part.dtype}; convert it with y.to(mf.{dtype})")
    return y


def outer(a: Operand, b: Operand, entry: Callable[..., object]) -> object:
    """Apply a ufunc to each element of a with each element of b."""
    return entry(a.reshape(*a.shape, *[1] * b.ndim) if is_array(a) and is_array(b) else a, b)


# Other functions.


def on_function(function: NumpyFunction, types: Iterable[type], args: Sequence[object], named: dict[str, Any]) -> object:
    """Call a NumPy function. At least one of its arguments is an array of minifuse."""
    for t in types:
        if not issubclass(t, ARRAYS):
            return NotImplemented  # the type of another library, which may implement the function
    entry = find_entry(function)
    if entry is not None:
        names, supported, is_sequence = parameters_of(function, entry)
        arguments = {names[0]: args, **named} if is_sequence else dict(zip(names, args, strict=False)) | named
        if not arguments.keys() <= supported:
            if arguments.get("out") is not None:
                return store_function_result(function, arguments)
            arguments = {key: x for key, x in arguments.items() if key in supported or not is_neutral(key, x)}
            reject_parameters(name_of(function), arguments.keys() - supported)
        result = entry(**{key: as_number(value) for key, value in arguments.items() if value is not np._NoValue})
        if result is not NotImplemented:
            return result
    elif named.get("out") is not None:
        name = f"np.{name_of(function)}"
        advice = f"write y[...] = {name}(...)"
        raise DTypeError(f"{name}(..., out=): NumPy computes it, and cannot store the result in a tensor; {advice}")
    args, named = to_numpy_arguments(name_of(function), (args, named))
    return function(*args, **named)


def store_function_result(function: NumpyFunction, arguments: dict[str, Any]) -> object:
    """Compute a function that has an entry, and store the result in the tensor that is passed as `out`."""
    out = arguments.pop("out")
    reject_out(name_of(function), out)
    out.copy_(function(**arguments))
    return out


@lru_cache(None)
def parameters_of(function: NumpyFunction, entry: NumpyFunction) -> tuple[tuple[str, ...], frozenset[str], bool]:
    """Return the parameters of a NumPy function, those that its entry supports, and whether the first one is *args."""
    supported = inspect.signature(entry).parameters
    try:
        names = inspect.signature(function).parameters
    except ValueError:  # before NumPy 2.4, functions written in C have no signature
        return tuple(supported), frozenset(supported), function is np.result_type
    is_sequence = next(iter(names.values())).kind is inspect.Parameter.VAR_POSITIONAL
    return tuple(names), frozenset(supported), is_sequence


def to_numpy_arguments(name: str, arguments: Any) -> Any:
    """Convert tensors in the arguments to NumPy arrays. Raise FuseError while tracing, when tensors have no values."""
    try:
        return to_numpy(arguments)
    except FuseError:
        advice = ALTERNATIVES.get(name, DEFAULT_ALTERNATIVE)
        raise FuseError(f"{users_line()}: np.{name} cannot be traced; {advice}") from None


def to_numpy(x: Any) -> Any:
    """Convert tensors in the arguments to read-only NumPy arrays."""
    if isinstance(x, Traceable):
        array = x.numpy().view()
        array.flags.writeable = False
        return array
    if isinstance(x, dict):
        return {key: to_numpy(value) for key, value in x.items()}
    return type(x)(map(to_numpy, x)) if type(x) in (list, tuple) else x


# Errors.


def name_of(function: NumpyFunction) -> str:
    """Return the name of a NumPy function without `np.`."""
    module: str = getattr(function, "__module__", "numpy")  # ufuncs have it since NumPy 2.2
    module = module.removeprefix("numpy").removeprefix(".")
    return f"{module}.{function.__name__}" if module and not module.startswith("_") else function.__name__


def is_neutral(key: str, value: object) -> bool:
    """Return whether a parameter has a value that has no effect."""
    return value is None or value is np._NoValue or (isinstance(value, bool | str) and value in NEUTRAL_VALUES.get(key, ()))


def reject_parameters(name: str, parameters: Iterable[str]) -> None:
    """Raise DTypeError for parameters of NumPy that minifuse does not support."""
    for key in parameters:
        advice = PARAMETER_ADVICE.get(key, "leave it out").format(name=f"np.{name}")
        raise DTypeError(f"np.{name}(..., {key}=) is not in minifuse; {advice}")


def reject_out(name: str, out: object) -> None:
    """Raise DTypeError unless `out` is a tensor."""
    if not isinstance(out, Traceable):
        raise DTypeError(
            f"np.{name}(..., out=): got {type(out).__name__}, expected a tensor; "
            + PARAMETER_ADVICE["out"].format(name=f"np.{name}")
        )
