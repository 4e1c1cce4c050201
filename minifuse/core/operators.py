"""The operator table: one entry per scalar operator defines everything that the rest of the library needs.

Fields of an entry:

* body: the scalar operator in plain Python. For a *primitive* it is the reference, and every backend has an instruction for
  it. Any other body is written with operators and is inlined when a kernel is built.
* vjp(g, y, *inputs): the gradient of each input, given the gradient `g` of the output `y`; None for an input without
  gradient. It is written with overloaded operators, so one line runs on floats, Scalars, Tensors and graph nodes, and can
  be differentiated again. A composed operator may omit it: then its body is differentiated.
* identity and reduce_vjp(g, y, x, reduce): for operators that can reduce dims. y is the reduction of x. g and y are already
  expanded to the shape of x, and reduce(op, v) reduces v along the same dims and expands the result again.
* is_selection: the reduction returns one of its inputs, as max does. Its gradient compares x with y for equality, so it
  needs the exact bits that were reduced. They are saved, since recomputing under fast-math may change the last bit.
* accepts and result: the accepted dtypes, and the dtype of the result.
* cost: the cost of one evaluation, in additions. The compiler uses it to decide between storing and recomputing a value, and
  a launch to choose the number of threads.
* fast: whether it has an approximation for float32, which `use_fast_math` selects on a GPU.
* symbol and methods: how the operator is written in Python. `Traceable` gets its methods from here.

To add an operator, add an entry. It then runs on every backend, has its gradient, fuses, is tested and is documented, since
each of these loops over `TABLE`.
"""

import math

import numpy as np

from .dtypes import Number
from .operator_entry import TABLE as TABLE  # with `as`, other modules may import it from here
from .operator_entry import Operator as Operator
from .operator_entry import T, operator, primitive
from .operator_entry import reducible_names as reducible_names

__all__ = [  # the entries that `minifuse` exports, as in `mf.exp`
    "abs",
    "cos",
    "erf",
    "exp",
    "gelu",
    "isnan",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "neg",
    "relu",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "where",
]


# Comparisons and logic. They have no gradient.


@primitive(None, "==", "", result="bool")
def eq(a, b):
    """a == b."""
    return a == b


@primitive(None, "!=", "", result="bool")
def ne(a, b):
    """a != b."""
    return a != b


@primitive(None, "<", "__lt__", result="bool")
def lt(a, b):
    """a < b."""
    return a < b


@primitive(None, ">", "__gt__", result="bool")
def gt(a, b):
    """a > b."""
    return a > b


@primitive(None, "<=", "__le__", result="bool")
def le(a, b):
    """a <= b."""
    return a <= b


@primitive(None, ">=", "__ge__", result="bool")
def ge(a, b):
    """a >= b."""
    return a >= b


@operator(None, result="bool")
def isnan(x):
    """True where x is NaN, the only number that differs from itself."""
    return ne(x, x)


@primitive(None, "&", "__and__ __rand__", accepts="integers", identity=True)
def and_(a, b):
    """a & b: logical and of bools, bitwise and of integers."""
    return a & b


@primitive(None, "|", "__or__ __ror__", accepts="integers", identity=False)
def or_(a, b):
    """a | b: logical or of bools, bitwise or of integers."""
    return a | b


@primitive(None, "^", "__xor__ __rxor__", accepts="integers")
def xor(a, b):
    """a ^ b: exclusive or of bools, bitwise exclusive or of integers."""
    return a ^ b


@primitive(None, None, "__invert__", accepts="integers")
def invert(x):
    """~x: logical not of bools, bitwise not of integers."""
    return not x if isinstance(x, bool | np.bool_) else ~x


@primitive(None, None, "__lshift__ __rlshift__", accepts="integers alone")
def lshift(a, b):
    """a << b. If b is negative or at least the bit width of the dtype, the result is 0, as in NumPy."""
    return np.left_shift(a, b)


@primitive(None, None, "__rshift__ __rrshift__", accepts="integers alone")
def rshift(a, b):
    """a >> b with the sign kept. If b is negative or at least the bit width of the dtype, 0 or -1, as in NumPy."""
    return np.right_shift(a, b)


def _where_vjp(g, y, c, a, b):  # a lambda that refers to its own operator has no type for mypy
    return None, where(c, g, 0), where(c, 0, g)


@primitive(_where_vjp)
def where(c, a, b):
    """Choose element by element: a where the condition c is True, else b."""
    return a if c else b


where.unary = lambda condition: condition.nonzero(as_tuple=True)  # as in NumPy and PyTorch


# Arithmetic.


@primitive(
    lambda g, y, a, b: (g, g),
    "+",
    "__add__ __radd__",
    identity=0,
    reduce_vjp=lambda g, y, x, reduce: g,
    on_bools=or_,
)
def add(a, b):
    """a + b."""
    return a + b


@primitive(lambda g, y, a, b: (g, -g), "-", "__sub__ __rsub__", accepts="numbers")
def sub(a, b):
    """a - b."""
    return a - b


def _prod_reduce_vjp(g, y, x, reduce):
    """Return the gradient of a product: g * y / x, and the limit where factors are 0.

    If one factor is 0, its gradient is the product of the others; if two are 0, all gradients are 0. With at most two zeros,
    the formula can be differentiated again.
    """
    is_zero = eq(x, 0)
    nonzero = where(is_zero, 1, x)
    zero_count, product = (
        reduce(add, where(is_zero, 1.0, 0.0)),
        reduce(mul, nonzero),
    )  # number of zeros, product of the others
    sum_of_zeros = reduce(add, where(is_zero, x, 0))  # its value is 0, its derivative is 1
    zero_grad = where(eq(zero_count, 1), product, where(eq(zero_count, 2), (sum_of_zeros - x) * product, 0))
    nonzero_grad = where(eq(zero_count, 0), product / nonzero, where(eq(zero_count, 1), sum_of_zeros * product / nonzero, 0))
    return g * where(is_zero, zero_grad, nonzero_grad)


@primitive(
    lambda g, y, a, b: (g * b, g * a),
    "*",
    "__mul__ __rmul__",
    identity=1,
    reduce_vjp=_prod_reduce_vjp,
    on_bools=and_,
)
def mul(a, b):
    """a * b."""
    return a * b


@primitive(lambda g, y, a, b: (g / b, -g * y / b), "/", "__truediv__ __rtruediv__", result="float", cost=4, fast="primitive")
def div(a, b):
    """a / b. The quotient of integers is a float64."""
    return a / b


@primitive(None, None, "__floordiv__ __rfloordiv__", accepts="numbers", cost=8)
def floordiv(a, b):
    """a // b, rounded down. An integer divided by 0 is 0, as in NumPy."""
    return np.floor_divide(a, b)


@primitive(lambda g, y, a, b: (g, -g * floordiv(a, b)), None, "__mod__ __rmod__", accepts="numbers", cost=8)
def mod(a, b):
    """a % b, with the sign of b. An integer modulo 0 is 0, as in NumPy."""
    return np.remainder(a, b)


def _pow_vjp(g, y, a, b):
    is_constant = eq(a, 0) & (b >= 0)  # y does not vary with b here, and log(0) would make the gradient NaN
    return where(eq(b, 0), 0, g * b * pow(a, b - 1)), g * where(is_constant, 0, y * log(where(is_constant, 1, a)))


@primitive(_pow_vjp, None, "__pow__ __rpow__", accepts="numbers", cost=40)
def pow(a, b):  # noqa: A001  # the name in the table, as in NumPy's and PyTorch's
    """a ** b. An integer to a negative power is truncated to an integer: 1, -1 or 0."""
    if isinstance(b, int | np.integer) and isinstance(a, int | np.integer) and b < 0:
        return a if a in (1, -1) and b % 2 else int(a in (1, -1))
    return a**b if isinstance(a, np.generic) else np.power(a, b)


@primitive(lambda g, y, x: (-g,), "-", "__neg__ neg", accepts="numbers")
def neg(x):
    """-x."""
    return -x


@operator(lambda g, y, x: (g,), methods="__pos__", accepts="numbers")
def pos(x):
    """+x: a copy of x."""
    return x


@operator(lambda g, y, x: (g * where(x > 0, 1.0, where(x < 0, -1.0, 0.0)),), methods="__abs__ abs", primitive=True)
def abs(x):  # noqa: A001
    """Absolute value. Its gradient at 0 and at NaN is 0."""
    return np.abs(x)


def _select_vjp(wins):
    """Return the VJP of maximum (`wins` is gt) or minimum (lt).

    The chosen input gets the whole gradient, equal inputs get half each. If one input is NaN, both get the whole gradient.
    """
    return lambda g, y, a, b: (
        where(wins(b, a), 0, where(eq(a, b), g / 2, g)),
        where(wins(a, b), 0, where(eq(a, b), g / 2, g)),
    )


def _split_ties_vjp(g, y, x, reduce):
    """Return the gradient of max or min, split equally among all elements equal to y, or among the NaNs if there are any."""
    is_extreme = eq(x, y) | ne(x, x)
    return where(is_extreme, g, 0) / reduce(add, where(is_extreme, 1.0, 0.0))


@primitive(_select_vjp(gt), identity=-math.inf, reduce_vjp=_split_ties_vjp, is_selection=True, on_bools=or_)
def maximum(a, b):
    """The larger of a and b; NaN if one of them is NaN."""
    return a if a > b or a != a else b


@primitive(_select_vjp(lt), identity=math.inf, reduce_vjp=_split_ties_vjp, is_selection=True, on_bools=and_)
def minimum(a, b):
    """The smaller of a and b; NaN if one of them is NaN."""
    return a if a < b or a != a else b


@operator(
    lambda g, y, x, low, high: (
        where((x >= low) & (x <= high), g, 0),
        where((x < low) & (low < high), g, 0),
        where((x > high) | (high < low), g, 0),
    ),
    methods="",
)
def clip(x, low, high):
    """Limit x to the range from low to high. x gets the gradient where it is in the range, ends included."""
    x = where(ne(low, low), low, where(x < low, low, x))  # a NaN bound returns NaN
    return where(ne(high, high), high, where(x > high, high, x))


# Mathematical functions.


@primitive(lambda g, y, x: (g * y,), result="float", cost=12, fast="primitive")
def exp(x):
    """e ** x."""
    return np.exp(x)


@primitive(lambda g, y, x: (g / x,), result="float", cost=12)
def log(x):
    """Natural logarithm."""
    return np.log(x)


@primitive(lambda g, y, x: (g / (1 + x),), result="float", cost=16)
def log1p(x):
    """log(1 + x), accurate for small x."""
    return np.log1p(x)


@primitive(lambda g, y, x: (g / (2 * y),), result="float", cost=4)
def sqrt(x):
    """Square root."""
    return np.sqrt(x)


@operator(lambda g, y, x: (-0.5 * g * (y * y * y),), result="float", fast="primitive")
def rsqrt(x):
    """1 / sqrt(x)."""
    return 1 / sqrt(x)


def _sin_vjp(g, y, x):
    return (g * cos(x),)


@primitive(_sin_vjp, result="float", cost=40)
def sin(x):
    """Sine of x radians."""
    return np.sin(x)


@primitive(lambda g, y, x: (-g * sin(x),), result="float", cost=40)
def cos(x):
    """Cosine of x radians."""
    return np.cos(x)


@primitive(lambda g, y, x: (g * (1 - y * y),), result="float", cost=16)
def tanh(x):
    """Hyperbolic tangent."""
    return np.tanh(x)


@primitive(lambda g, y, x: (g * (2 / math.sqrt(math.pi)) * exp(-x * x),), result="float", cost=24)
def erf(x):
    """Error function."""
    return math.erf(x)


@operator(lambda g, y, x: (g * y * (1 - y),), result="float", fast="composed")
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-x))


@operator(lambda g, y, x: (where(x <= 0, 0, g),))
def relu(x):
    """The larger of x and 0. Its gradient is 0 at 0, and 1 at NaN."""
    return maximum(x, 0)


@operator(result="float")
def gelu(x):
    """x times the cumulative distribution function of the standard normal distribution (exact form, with erf)."""
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


@operator(lambda g, y, x: (None,))
def detach(x):
    """x without a gradient."""
    return x


# `Array.clip` with one bound.


def clamp_min(x: T, low: T | Number) -> T:
    """Return x, or `low` where x is below it. If x or low is NaN, the result is NaN without a gradient."""
    return where(x < low, low, where(x >= low, x, detach(x + low)))


def clamp_max(x: T, high: T | Number) -> T:
    """Return x, or `high` where x is above it. If x or high is NaN, the result is NaN without a gradient."""
    return where(x > high, high, where(x <= high, x, detach(x + high)))
