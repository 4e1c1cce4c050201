"""The operators of tasks 0.1 and 4.6 on whole arrays, which make the oracle's loops fast.

Numba compiles the same lambdas for a student's compiled loop if the student has not written the operator.
"""

from collections.abc import Callable
from inspect import unwrap

import numpy as np

from ..strided import Array

ON_ARRAYS: dict[str, Callable[..., Array]] = {
    "identity": lambda x: np.positive(x),
    "add": lambda x, y: np.add(x, y),
    "mul": lambda x, y: np.multiply(x, y),
    "neg": lambda x: np.negative(x),
    "lt": lambda x, y: np.less(x, y) * 1.0,
    "eq": lambda x, y: np.equal(x, y) * 1.0,
    "maximum": lambda x, y: np.maximum(x, y),
    "is_close": lambda x, y: (
        np.isclose(np.minimum(np.abs(x), np.abs(y)), np.maximum(np.abs(x), np.abs(y))) * (np.multiply(x, y) >= 0.0)
    ),
    "sigmoid": lambda x: np.exp(-np.logaddexp(0.0, np.negative(x))),
    "relu": lambda x: np.maximum(x, 0.0),
    "sqrt": lambda x: np.sqrt(x),
    "log": lambda x: np.log(x),
    "exp": lambda x: np.exp(x),
    "inv": lambda x: np.reciprocal(x),
    "log_grad": lambda x, d: np.divide(d, x),
    "inv_grad": lambda x, d: np.divide(np.negative(d), np.square(x)),
    "relu_grad": lambda x, d: np.where(np.greater(x, 0.0), d, 0.0)[()],  # of numbers, a number
}
REDUCE_UFUNCS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "maximum": np.maximum}


def on_arrays(fn: Callable[..., float]) -> Callable[..., Array]:
    """Return a function of numbers as one of arrays: vectorized for the oracle's operators, else element by element."""
    name = name_of(fn)
    return ON_ARRAYS[name] if name in ON_ARRAYS else np.vectorize(fn, otypes=[float])


def reduction(fn: Callable[..., float]) -> tuple[np.ufunc, type]:
    """Return a ufunc that reduces with a function, and the dtype of its elements."""
    name = name_of(fn)
    return (REDUCE_UFUNCS[name], np.float64) if name in REDUCE_UFUNCS else (np.frompyfunc(fn, 2, 1), object)


def name_of(fn: Callable[..., object]) -> str:
    """Return the name of a function if it is one of the oracle's operators; else ""."""
    original = unwrap(fn)
    name = getattr(original, "__name__", "")
    modules = (f"{__package__}.module0", f"{__package__}.module4")
    return name if getattr(original, "__module__", "") in modules else ""
