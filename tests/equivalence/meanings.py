"""What NumPy says of every operator, and where it is asked: the judge of this folder, which shares no line with minifuse."""

import math

import numpy as np
import pytest

from minifuse.core.operators import TABLE
from minifuse.testing import Recipe

BACKENDS = ["python", "parallel", "stranger", "cuda"]
LANES = 2000  # elements: without a GPU each takes some 10 us, so larger cases on one are in tests/cuda
SHAPE = (5, 4, 6)
ALL = slice(None)


def view(base, **steps):
    return Recipe(base, steps.items())


# Ways to lie in memory. Those of shape SHAPE can be mixed; the others show what has no place in three dims.
LAYOUTS = {
    "plain": view(SHAPE),
    "permuted": view((6, 5, 4), permute=(1, 2, 0)),
    "sliced": view((11, 4, 15), index=(slice(1, None, 2), ALL, slice(2, 14, 2))),
    "flipped": view(SHAPE, index=(slice(None, None, -1), ALL, slice(None, None, -1))),
    "expanded": view((5, 1, 6), expand=SHAPE),
    "offset": view((7, 4, 6), index=(slice(2, None),)),
    "row": view((5, 6), index=(2,)),
    "column": view((4, 5), index=(ALL, 3)),
    "element": view((3, 4), index=(1, 2)),
    "empty": view(SHAPE, index=(ALL, slice(2, 2))),
    "new dims": view((4, 6), index=(None, ALL, None)),
}
# One for each operand.
PLACES = {name: (layout,) * 3 for name, layout in LAYOUTS.items()} | {
    "mixed": (LAYOUTS["flipped"], LAYOUTS["permuted"], LAYOUTS["offset"]),
    "broadcast": (view((5, 1, 6)), view((4, 1)), view(())),
}


def affordable(backend, *shapes):
    """Whether a backend runs operands of these shapes in a moment."""
    return backend != "cuda" or all(math.prod(shape) <= LANES for shape in shapes)


def one_each(f, kind=np.float64):
    """A function of numbers as one of arrays."""
    return np.vectorize(f, otypes=[kind])


def erf(x):
    """Return C's erf; for more digits than float64 has, exp(-x ** 2) times a series of positive terms."""
    if x.dtype.itemsize <= 8:
        return one_each(math.erf)(x)
    a = np.minimum(np.abs(x), 7)
    term = total = a
    for k in range(1, 220):
        term = term * (a * a / (k + x.dtype.type(0.5)))
        total = total + term
    return np.copysign(np.exp(-a * a) * total / np.sqrt(np.arctan(x.dtype.type(1))), x)  # arctan(1) is pi / 4


def power(a, b):
    """NumPy's, and the quotient without its fraction where it refuses an integer to a negative power."""
    if np.result_type(a, b).kind not in "iu":
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    y = np.power(a, np.maximum(b, np.zeros_like(b)))
    y[(b < 0) & (np.abs(a) != 1)] = 0
    y[(b < 0) & (a == -1)] = np.where(b % 2, -1, 1)[(b < 0) & (a == -1)]
    return y


MEANINGS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "isnan": np.isnan,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "invert": np.invert,
    "where": np.where,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": power,
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(0.0 - x)),
    "relu": lambda x: np.maximum(x, np.zeros_like(x)),
    "gelu": lambda x: x * 0.5 * (1 + erf(x * math.sqrt(0.5))),
    "detach": lambda x: x,
}

EITHER_ZERO = {"maximum", "minimum", "clip", "relu"}  # of 0.0 and -0.0, which are equal, they give either

POSITIVE = (0.1, 4.0)
DOMAINS = {"log": POSITIVE, "log1p": (-0.9, 4.0), "sqrt": POSITIVE, "rsqrt": POSITIVE, "exp": (-20.0, 20.0)}
AWAY_FROM_0 = {"div": 1, "floordiv": 1, "mod": 1, "pow": 0}  # the operand that has a pole there
MOVES = {"eq", "ne", "lt", "gt", "le", "ge", "isnan", "where", "clip", "neg", "pos", "abs", "maximum", "minimum", "relu"} | {
    "detach"
}
ARITHMETIC = {"add", "sub", "mul", "div", "floordiv", "mod", "sqrt"}
NARROW = (np.float16, np.float32)  # what NumPy makes of bools and of integers of 8 and 16 bits; minifuse makes float64
KINDS = dict.fromkeys(MOVES, "exact") | dict.fromkeys(ARITHMETIC, "rounded") | {"gelu": "composed"}


def meaning(name):
    """What NumPy says of an operator."""
    if name not in MEANINGS:
        pytest.fail(f"operator {name} has no entry in MEANINGS of {__file__}; add what NumPy says of it")
    return MEANINGS[name]


def kind_of(name):
    """The kind of tolerance of an operator."""
    return KINDS.get(name, "transcendental")


def judge(name, *operands):
    """An operator of NumPy arrays: floats in float64, integers and bools as they are unless they give another float."""
    with np.errstate(all="ignore"):
        found = np.asarray(meaning(name)(*[a.astype(np.float64) if a.dtype.kind == "f" else a for a in operands]))
        return meaning(name)(*[a.astype(np.float64) for a in operands]) if found.dtype in NARROW else found


def numpy_dtype(name, *arrays):
    """The dtype that NumPy gives: of floats their own, of integers and bools what the judge says."""
    dtypes = [a.dtype for k, a in enumerate(arrays) if not is_condition(name, k)]
    found = judge(name, *[a.reshape(-1)[:1] for a in arrays]).dtype
    return np.result_type(*dtypes) if found.kind == "f" and any(dtype.kind == "f" for dtype in dtypes) else found


def refuses(entry, *dtypes):
    """Whether an operator is not made for operands of these NumPy dtypes, as its entry says."""
    kinds = {np.dtype(dtype).kind for dtype in dtypes}
    return (not entry.accepts_bools and kinds == {"b"}) or (not entry.accepts_floats and "f" in kinds)


def is_condition(name, k):
    """Whether operand k of an operator says yes or no."""
    return name == "where" and k == 0


def operands(name, dtype, recipes, seed=0):
    """Arrays for an operator from its domain, one for each recipe, which is still to be applied."""
    random = np.random.default_rng([seed, *name.encode()])
    low, high = DOMAINS.get(name, (-2.0, 2.0))
    arrays = []
    for k, recipe in enumerate(recipes):
        kind = np.dtype(bool if is_condition(name, k) else dtype)
        if kind.kind == "f":
            array = random.uniform(low, high, recipe.base)
            array = np.abs(array) + 0.2 if k == AWAY_FROM_0.get(name) else array
        else:
            array = random.integers(-9, 10, recipe.base) if kind.kind in "iu" else random.random(recipe.base) < 0.6
        arrays.append(np.asarray(array).astype(kind))
    return arrays


def collected(places, received, shape):
    """What arrives at each element: it may be seen at several places, or by nobody."""
    total = np.zeros(shape)
    np.add.at(total.reshape(-1), places.reshape(-1), received.reshape(-1))
    return total


def accepted(entry):
    """The floating dtype that most tests of an operator use, or int64 where it takes no floats."""
    return "float32" if entry.accepts_floats else "int64"


OPERATORS = list(TABLE.values())
