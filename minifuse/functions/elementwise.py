"""Functions of each element, with the names and the parameters of PyTorch.

NumPy's ufuncs are here under their NumPy name, too. A function of several operations is one call, so it is one kernel.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import DTypeError
from ..core.operators import TABLE, abs, eq, floordiv, isnan, log, mul, ne, sin, where  # noqa: A004
from ..ir.array_methods import Array
from ..ir.numpy_api import FUNCTIONS as NUMPY_FUNCTIONS
from ..ir.numpy_api import UFUNCS
from ..ir.numpy_api.table import call_once, promote_operands, promote_to_float
from .host import host_function
from .table import FUNCTIONS, OPERANDS, function, name_after, renamed, require_array

Body = Callable[..., Any]

SECOND_OPERAND = {"exponent": "y", "values": "y"}  # other names of the parameter
OPERATORS = "pow neg eq ne lt gt le ge"  # with the names of PyTorch; NumPy's are power, negative, ...
ALIASES = {  # name of PyTorch -> name of NumPy
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "bitwise_not": "invert",
    "fix": "trunc",
    "sgn": "sign",
}


def elementwise(name: str, body: Body) -> Body:
    """Return a function that applies an operator, or a composition of operators, as one call."""

    def call(*inputs: Any, **named: Any) -> Any:
        if named:
            operands = renamed({SECOND_OPERAND.get(key, key): x for key, x in named.items()})
            inputs = (*inputs, *[operands.pop(key) for key in OPERANDS[len(inputs) :] if key in operands])
            if operands:
                raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(operands))!r}")
        return call_once(body, *inputs)

    name_after(body, call, name)
    return call


_UFUNCS = [(ufunc.__name__, body) for ufunc, body in UFUNCS.items() if ufunc is not np.matmul]
for _name, _body in _UFUNCS + [(name, TABLE[name]) for name in OPERATORS.split()]:
    function(_name, method=not hasattr(Array, _name))(elementwise(_name, _body))
for _name, _numpy_name in ALIASES.items():
    function(_name)(FUNCTIONS[_numpy_name])


# Arithmetic.


@function("add")
def add(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Compute x + alpha * y."""
    return call_once(TABLE["add"], x, y) if alpha == 1 else call_once(_add_scaled, x, y, alpha)


@function("sub", "subtract")
def sub(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Compute x - alpha * y."""
    return call_once(TABLE["sub"], x, y) if alpha == 1 else call_once(_subtract_scaled, x, y, alpha)


def _add_scaled(x: Any, y: Any, alpha: Any) -> Any:
    return x + y * alpha


def _subtract_scaled(x: Any, y: Any, alpha: Any) -> Any:
    return x - y * alpha


@function("mul", "multiply")
def mul_(x: Any, y: Any) -> Any:
    """Compute x * y."""
    return call_once(mul, x, y)


@function("div", "divide", "true_divide")
def div(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """Compute x / y; with rounding_mode="floor" or "trunc", round the quotient down or toward zero."""
    bodies: dict[str | None, Body] = {None: TABLE["div"], "floor": floordiv, "trunc": _truncated_quotient}
    if rounding_mode not in bodies:
        raise DTypeError(f'div: got rounding_mode={rounding_mode!r}, expected None, "floor" or "trunc"')
    return call_once(bodies[rounding_mode], x, y)


def _truncated_quotient(x: Any, y: Any) -> Any:
    x, y = promote_operands(x, y)
    if x.dtype.is_float:
        return FUNCTIONS["trunc"](x / y)
    quotient = floordiv(x, y)
    return where((quotient < 0) & ne(quotient * y, x), quotient + 1, quotient)


@function("reciprocal", operands=1)
def reciprocal(x: Any) -> Any:
    """Compute 1 / x."""
    return 1 / x


@function("round", operands=1)
def round_(x: Any, decimals: int = 0) -> Any:
    """Round to a number of decimals, half to even."""
    return NUMPY_FUNCTIONS[np.round](x if x.dtype.is_float or decimals >= 0 else promote_to_float(x)[0], decimals)


@function(operands=1)
def frac(x: Any) -> Any:
    """Return x without its integer part: x - trunc(x)."""
    return x - FUNCTIONS["trunc"](x)


@function(operands=3)
def lerp(x: Any, end: Any, weight: Any) -> Any:
    """Interpolate linearly: x where the weight is 0, end where it is 1, and both are exact."""
    return where(abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


@function(operands=4)
def addcmul(x: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    """Compute x + value * tensor1 * tensor2."""
    return x + value * tensor1 * tensor2


@function(operands=4)
def addcdiv(x: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    """Compute x + value * tensor1 / tensor2."""
    return x + value * (tensor1 / tensor2)


@function("clamp")
def clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """Limit the elements to the range from `min` to `max`. Either may be None or a tensor."""
    require_array("clamp", x)
    return x.clip(min, max)


@function("clamp_min")
def clamp_min(x: Any, min: Any) -> Any:  # noqa: A002
    """Return x, or `min` where x is below it."""
    return clamp(x, min)


@function("clamp_max")
def clamp_max(x: Any, max: Any) -> Any:  # noqa: A002
    """Return x, or `max` where x is above it."""
    return clamp(x, None, max)


def _where_method(x: Any, condition: Any, y: Any) -> Any:
    """Return x where the condition is True, else y."""
    return call_once(where, condition, x, y)


Array.where = _where_method  # type: ignore[attr-defined]  # mf.where has the condition first


# Logarithms and angles.


@function(operands=1)
def logit(x: Any, eps: float | None = None) -> Any:
    """Compute log(x / (1 - x)), the inverse of sigmoid. With eps, x is first limited to [eps, 1 - eps]."""
    (x,) = promote_to_float(x)
    x = x if eps is None else x.clip(eps, 1 - eps)
    return log(x / (1 - x))


@function(operands=1)
def sinc(x: Any) -> Any:
    """Compute sin(pi x) / (pi x); 1 at 0."""
    (x,) = promote_to_float(x)
    z = math.pi * where(eq(x, 0), 1, x)
    return where(eq(x, 0), 1, sin(z) / z)


@function(operands=2)
def xlogy(x: Any, y: Any) -> Any:
    """Compute x * log(y); 0 where x is 0, unless y is NaN."""
    x, y = promote_to_float(x, y)
    is_zero = eq(x, 0) & ~((y > 0) & (y < math.inf)) & ~isnan(y)
    return x * log(where(is_zero, 1, y))


# Questions.


@function(operands=1)
def isposinf(x: Any) -> Any:
    """Return True for each element that is inf."""
    return eq(x, math.inf)


@function(operands=1)
def isneginf(x: Any) -> Any:
    """Return True for each element that is -inf."""
    return eq(x, -math.inf)


@function(operands=1)
def isreal(x: Any) -> Any:
    """Return True for each element, since there are no complex dtypes."""
    return eq(x, x) | True


@function(operands=4)
def isclose(x: Any, y: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Return True for each element with |x - y| <= atol + rtol * |y|, or x == y."""
    x, y = promote_operands(x, y)
    return NUMPY_FUNCTIONS[np.isclose](a=x, b=y, rtol=rtol, atol=atol, equal_nan=equal_nan)


@function("allclose")
def allclose(x: Any, y: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close, as a bool."""
    return bool(isclose(x, y, rtol, atol, equal_nan).all())


@function("equal")
def equal(x: Any, y: Any) -> bool:
    """Return whether two tensors have the same shape and elements, as a bool; x == y compares each element."""
    return x.shape == y.shape and bool((x == y).all())


@function("is_nonzero")
def is_nonzero(x: Any) -> bool:
    """Return whether the one element of a tensor is not 0, as a bool."""
    return bool(x)


@function("nan_to_num")
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities; by default, by 0 and by the largest and the smallest number of the dtype."""
    return NUMPY_FUNCTIONS[np.nan_to_num](x, 0.0 if nan is None else nan, posinf, neginf)


# Divisors, which NumPy computes on the host: Euclid's algorithm is a loop, and kernels have loops over dims alone.


@host_function(is_integer=True)
def _gcd(xp: Any, x: Any, y: Any) -> Any:
    return xp.gcd(x, y)


@host_function(is_integer=True)
def _lcm(xp: Any, x: Any, y: Any) -> Any:
    return xp.lcm(x, y)


@function("gcd")
def gcd(x: Any, y: Any) -> Any:
    """Return the greatest common divisor of integers."""
    return _gcd(x, y)


@function("lcm")
def lcm(x: Any, y: Any) -> Any:
    """Return the least common multiple of integers; 0 if one of them is 0."""
    return _lcm(x, y)
