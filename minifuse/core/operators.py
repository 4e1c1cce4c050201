"""The operator table. One entry says everything about an operator that the rest of the library needs.

An entry holds:

* body: the scalar operator in plain Python. Of a *primitive* it is the meaning, and every backend has an instruction for
  it; any other body is made of operators, and is expanded when a kernel is built.
* vjp(g, y, *inputs): what each input receives when the output `y` receives `g`; None where nothing flows. Written with
  overloaded operators, so the same line runs on floats, Scalars, Tensors and graph nodes, and can itself be differentiated.
  An operator that is no primitive may leave it out: then its body is differentiated.
* identity and fold_vjp(g, y, x, fold): for operators that fold dims. There y is the fold of x; g and y are already expanded
  to the shape of x, and fold(op, v) folds v along the same dims and expands likewise.
* selects: a fold that gives one of its inputs. Its gradient compares for equality, so it must see the very bits that were
  folded (a second computation under fast-math may differ in the last one); they are saved.
* accepts and gives: the element types it is made for, and the one that it results in.
* cost: of one evaluation, in additions; decides what is kept rather than computed twice, and when threads pay.
* symbol and methods: how Python writes it; `Value` gets its methods from here.

Adding an operator is adding an entry: it then runs on every backend, differentiates, fuses, is tested and is documented,
because each of those loops over `TABLE`.
"""

import math
from typing import Any

import numpy as np

from .operator_entry import TABLE, Operator, operator, primitive, reducible_names

__all__ = ["TABLE", "Operator", "reducible_names"]  # besides the entries


# Comparisons and logic. No gradient flows through them.


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
    """Whether x is not a number: only NaN differs from itself."""
    return ne(x, x)


@primitive(None, "&", "__and__ __rand__", accepts="integers", identity=True)
def and_(a, b):
    """a & b: of bools "and", of integers bit by bit."""
    return a & b


@primitive(None, "|", "__or__ __ror__", accepts="integers", identity=False)
def or_(a, b):
    """a | b: of bools "or", of integers bit by bit."""
    return a | b


@primitive(None, "^", "__xor__ __rxor__", accepts="integers")
def xor(a, b):
    """a ^ b: of bools "either, not both", of integers bit by bit."""
    return a ^ b


@primitive(None, None, "__invert__", accepts="integers")
def invert(x):
    """~x: of bools "not", of integers bit by bit."""
    return not x if isinstance(x, bool | np.bool_) else ~x


@primitive(None, None, "__lshift__ __rlshift__", accepts="integers alone")
def lshift(a, b):
    """a << b; 0 where b is negative or not below the width of the type, as in NumPy."""
    return np.left_shift(a, b)


@primitive(None, None, "__rshift__ __rrshift__", accepts="integers alone")
def rshift(a, b):
    """a >> b, which keeps the sign; 0 or -1 where b is negative or not below the width of the type, as in NumPy."""
    return np.right_shift(a, b)


@primitive(lambda g, y, c, a, b: (None, where(c, g, 0), where(c, 0, g)))
def where(c, a, b):
    """A choice, element by element: a where c holds, b elsewhere."""
    return a if c else b


# Arithmetic.


@primitive(
    lambda g, y, a, b: (g, g),
    "+",
    "__add__ __radd__",
    identity=0,
    reduce_vjp=lambda g, y, x, fold: g,
    on_bools=or_,
)
def add(a, b):
    """a + b."""
    return a + b


@primitive(lambda g, y, a, b: (g, -g), "-", "__sub__ __rsub__", accepts="numbers")
def sub(a, b):
    """a - b."""
    return a - b


def _prod_reduce_vjp(g, y, x, fold):
    """The gradient of a product: y / x where no factor is 0, and right, with its own gradient, where one or two are."""
    is_zero = eq(x, 0)
    rest = where(is_zero, 1, x)
    zeros, others = fold(add, where(is_zero, 1.0, 0.0)), fold(mul, rest)
    vanishing = fold(add, where(is_zero, x, 0))  # the sum of the zeros: 0, but it has a derivative
    of_zero = where(eq(zeros, 1), others, where(eq(zeros, 2), (vanishing - x) * others, 0))
    of_other = where(eq(zeros, 0), others / rest, where(eq(zeros, 1), vanishing * others / rest, 0))
    return g * where(is_zero, of_zero, of_other)


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


@primitive(lambda g, y, a, b: (g / b, -g * y / b), "/", "__truediv__ __rtruediv__", result="float", cost=4)
def div(a, b):
    """a / b; of integers a float64."""
    return a / b


@primitive(None, None, "__floordiv__ __rfloordiv__", accepts="numbers", cost=8)
def floordiv(a, b):
    """a // b, rounded down; an integer divided by 0 is 0, as in NumPy."""
    return np.floor_divide(a, b)


@primitive(lambda g, y, a, b: (g, -g * floordiv(a, b)), None, "__mod__ __rmod__", accepts="numbers", cost=8)
def mod(a, b):
    """a % b, with the sign of b; of integers modulo 0 it is 0, as in NumPy."""
    return np.remainder(a, b)


@primitive(
    lambda g, y, a, b: (
        where(eq(b, 0), 0, g * b * pow(a, b - 1)),
        g * where(eq(a, 0) & (b >= 0), 0, y * log(where(eq(a, 0) & (b >= 0), 1, a))),  # no log(0), whose slope is no number
    ),
    None,
    "__pow__ __rpow__",
    accepts="numbers",
    cost=40,
)
def pow(a, b):  # noqa: A001  # the name in the table, as in NumPy's and PyTorch's
    """a ** b; an integer to a negative power is 1, -1 or 0: the quotient without its fraction."""
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
    """The absolute value; its derivative at 0 and at NaN is taken as 0."""
    return np.abs(x)


def _select_vjp(wins):
    """Return the rule of maximum and minimum: the chosen input receives all, equal ones a half each, beside NaN both all."""
    return lambda g, y, a, b: (
        where(wins(b, a), 0, where(eq(a, b), g / 2, g)),
        where(wins(a, b), 0, where(eq(a, b), g / 2, g)),
    )


def _split_ties_vjp(g, y, x, fold):
    """Return equal shares of the gradient for equal extremes, or for all that are NaN where one is."""
    is_extreme = eq(x, y) | ne(x, x)
    return where(is_extreme, g, 0) / fold(add, where(is_extreme, 1.0, 0.0))


@primitive(_select_vjp(gt), identity=-math.inf, reduce_vjp=_split_ties_vjp, is_selection=True, on_bools=or_)
def maximum(a, b):
    """The larger one; NaN where either is."""
    return a if a > b or a != a else b


@primitive(_select_vjp(lt), identity=math.inf, reduce_vjp=_split_ties_vjp, is_selection=True, on_bools=and_)
def minimum(a, b):
    """The smaller one; NaN where either is."""
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
    """x, not below low and not above high; all of the gradient flows where x lies between them, ends included."""
    x = where(ne(low, low), low, where(x < low, low, x))  # NaN as a bound gives NaN
    return where(ne(high, high), high, where(x > high, high, x))


# Functions.


@primitive(lambda g, y, x: (g * y,), result="float", cost=12)
def exp(x):
    """e ** x."""
    return np.exp(x)


@primitive(lambda g, y, x: (g / x,), result="float", cost=12)
def log(x):
    """The natural logarithm."""
    return np.log(x)


@primitive(lambda g, y, x: (g / (1 + x),), result="float", cost=16)
def log1p(x):
    """log(1 + x), right for small x too."""
    return np.log1p(x)


@primitive(lambda g, y, x: (g / (2 * y),), result="float", cost=4)
def sqrt(x):
    """The square root."""
    return np.sqrt(x)


@operator(lambda g, y, x: (-0.5 * g * (y * y * y),), result="float")
def rsqrt(x):
    """1 / sqrt(x)."""
    return 1 / sqrt(x)


@primitive(lambda g, y, x: (g * cos(x),), result="float", cost=40)
def sin(x):
    """The sine of x radians."""
    return np.sin(x)


@primitive(lambda g, y, x: (-g * sin(x),), result="float", cost=40)
def cos(x):
    """The cosine of x radians."""
    return np.cos(x)


@primitive(lambda g, y, x: (g * (1 - y * y),), result="float", cost=16)
def tanh(x):
    """The hyperbolic tangent."""
    return np.tanh(x)


@primitive(lambda g, y, x: (g * (2 / math.sqrt(math.pi)) * exp(-x * x),), result="float", cost=24)
def erf(x):
    """The error function."""
    return math.erf(x)


@operator(lambda g, y, x: (g * y * (1 - y),), result="float")
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-x))


@operator(lambda g, y, x: (where(x <= 0, 0, g),))
def relu(x):
    """The larger one of x and 0; its derivative at 0 is taken as 0, at NaN as 1."""
    return maximum(x, 0)


@operator(result="float")
def gelu(x):
    """x times the probability that a standard normal variable lies below x (the exact form, with erf)."""
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


@operator(lambda g, y, x: (None,))
def detach(x):
    """x itself; no gradient flows to it."""
    return x


# Parts of `Array.clip`, where one bound may be missing.


def clamp_min(x: Any, low: Any) -> Any:
    """Return x, or `low` where x is below it; NaN, through which no gradient flows, where either is NaN."""
    return where(x < low, low, where(x >= low, x, detach(x + low)))


def clamp_max(x: Any, high: Any) -> Any:
    """Return x, or `high` where x is above it; NaN, through which no gradient flows, where either is NaN."""
    return where(x > high, high, where(x <= high, x, detach(x + high)))
