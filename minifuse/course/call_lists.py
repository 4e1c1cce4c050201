"""Lists of calls as data for task 5.4: any number of arguments, any views of shared storages, and many kinds of functions.

`call_pairs` has the calls whose differences a report explains one by one; these find the rest.
"""

from collections.abc import Callable
from math import inf, nan
from random import Random
from typing import NamedTuple

import numpy as np

from ..core.indexing import Shape
from .call_pairs import Function
from .lookalikes import lookalikes
from .strided import Array, Strided

Value = float | str | tuple[object, ...] | None
NUMBERS: tuple[Value, ...] = (2, 2.0, True, 1, 1.0, 0, 0.0, -0.0, False, nan, inf, -1, -2, -1.0, -2.0, 2**61, 10**20, 1e20)
TUPLES: tuple[Value, ...] = ((2,), (2.0,), (True, (0.0,)), (1, (-0.0,)), (), ((((0.0, 3),),),), ((((-0.0, 3),),),))
VALUES = (*NUMBERS, *TUPLES, "2", None, "None", "nan")
"""Values of a closure or of defaults, among them such that are equal, have one hash, or have one text."""


def closure(k: Value, other: Value) -> Function:
    """Return a function that reads two values from around it."""
    return lambda x: (x, k, other)


def half_default(k: Value, other: Value) -> Function:
    """Return a function that reads a value from around it, and has another one as its default."""
    return lambda x, y=other: (x, y, k)


def defaults(k: Value, other: Value) -> Function:
    """Return a function with two defaults."""
    return lambda x, y=k, z=other: (x, y, z)


def inner(k: Value, other: Value) -> Function:
    """Return a function that calls a function that reads the values."""
    g = closure(k, other)
    return lambda x: g(x)


def innermost(k: Value, other: Value) -> Function:
    """Return a function that calls a function that calls another one, and has a function as its default."""
    g, h = inner(k, 1), half_default(other, 2)
    return lambda x, y=h: (g(x), y)


def many_deep(k: Value, other: Value) -> Function:
    """Return a function that calls one that calls another one, and so on, of which the last reads the values."""
    f = closure(k, other)
    for _ in range(7):
        f = calling(f)
    return f


def calling(g: Function) -> Function:
    """Return a function that calls a function."""
    return lambda x: g(x)


MAKERS: dict[str, Callable[[Value, Value], Function]] = {
    "closure": closure,
    "half_default": half_default,
    "defaults": defaults,
    "inner": inner,
    "innermost": innermost,
    "many_deep": many_deep,
}
LINES: tuple[Function, ...] = (lambda x: x * 2, lambda x: x * 2.0, lambda x: x * 3, lambda x: x.exp(), lambda x: x.log())
SIGNED: tuple[Function, ...] = (
    lambda x: x * 0.0,
    lambda x: x * -0.0,
    lambda x: -x * 0.0,
    lambda x: x.pad((0.0, 1)),
    lambda x: x.pad((-0.0, 1)),
)
"""Functions of one line: the code differs in a constant or in a name."""
FIXED = {f"line {k}": f for k, f in enumerate((*LINES, *SIGNED))}
TEXTS = {
    "closure": "lambda x: (x, k, other), which reads k and other from around it",
    "half_default": "lambda x, y=other: (x, y, k), which reads k from around it",
    "defaults": "lambda x, y=k, z=other: (x, y, z)",
    "inner": "lambda x: g(x), where g is lambda x: (x, k, other)",
    "innermost": "lambda x, y=h: (g(x), y), where g and h call or read k and other",
    "many_deep": "lambda x: g(x), where g calls the next function, and so on; the eighth reads k and other",
}


class View(NamedTuple):
    """A tensor: which storage, and how it is placed there."""

    storage: int
    shape: Shape
    strides: Shape
    offset: int = 0


class FreeCall(NamedTuple):
    """A call with any arguments."""

    function: str
    k: Value
    other: Value
    storages: tuple[tuple[str, int], ...]
    """The dtype of each storage, and the storage whose memory it shares as another array, or its own number."""
    arguments: tuple[View | float, ...]

    def build(self) -> tuple[Function, tuple[Strided | float, ...]]:
        """Return a new function object, and newly allocated arguments."""
        storages = list[Array]()
        for k, (dtype, of) in enumerate(self.storages):
            storages.append(np.zeros(0 if k == 3 else 64, dtype) if of >= k else storages[of][:])
        made = [Strided(storages[x.storage], *x[1:]) if isinstance(x, View) else x for x in self.arguments]
        function = FIXED[self.function] if self.function in FIXED else MAKERS[self.function](self.k, self.other)
        return function, tuple(made)

    def __str__(self) -> str:
        arguments = [
            f"{self.storages[x.storage][0]} {x.shape} strides {x.strides} at {x.offset} of storage {x.storage}"
            if isinstance(x, View)
            else repr(x)
            for x in self.arguments
        ]
        text = TEXTS.get(self.function, f"{self.function} of call_lists.py")
        values = "" if self.function in FIXED else f", k = {self.k!r}, other = {self.other!r}"
        return f"f({', '.join(arguments)}) where f is {text}{values}"


def draw_view(random: Random, count: int) -> View:
    """Draw a view of one of some storages."""
    shape = tuple(
        random.choice((4, 5, 1, 7, 0) if random.random() < 0.3 else (4, 5, 1))
        for _ in range(random.choice((0, 1, 2, 3, 6, 6)))
    )
    strides = tuple(random.choice((0, 1, 1, 5, 8, -1, 2)) for _ in shape)
    return View(random.randrange(count), shape, strides, random.choice((0, 0, 1, 30)))


def draw_argument(random: Random, count: int) -> View | float:
    """Draw a tensor or a number."""
    return draw_view(random, count) if random.random() < 0.75 else random.choice((2, 2.0, True, 1, 0.0, -0.0, 3, False, 1.5))


def draw_dtype(random: Random) -> str:
    """Draw a dtype; some have one size, and some differ in their byte order only."""
    return random.choice(("<f4", "<f4", ">f4", "<i4", "<f8", "|b1", "|i1", "<i8"))


def draw_storages(random: Random) -> tuple[tuple[str, int], ...]:
    """Draw four storages, of which one may be another array over the memory of another one."""
    found = [(draw_dtype(random), k) for k in range(4)]
    if random.random() < 0.5:
        found[2] = (found[1][0], 1)
    return tuple(found)


def draw_call(random: Random) -> FreeCall:
    """Draw a call."""
    function = random.choice((*MAKERS, *FIXED) if random.random() < 0.4 else tuple(MAKERS))
    arguments = tuple(draw_argument(random, 4) for _ in range(random.choice((1, 2, 3, 4, 5, 11))))
    return FreeCall(function, draw_value(random), draw_value(random), draw_storages(random), arguments)


def draw_value(random: Random) -> Value:
    """Draw a value of a closure."""
    return random.choice(VALUES) if random.random() < 0.7 else random.choice(lookalikes(random))


def change_value(random: Random, value: Value) -> Value:
    """Return another value, or one that is equal and of another type or sign, also inside of tuples."""
    if random.random() < 0.5:
        return draw_value(random)
    if isinstance(value, tuple) and value:
        return change_value_inside(value)
    if isinstance(value, float) and value.is_integer():
        return -value if value == 0.0 else int(value)
    return (value,) if isinstance(value, str) or value is None else float(value) if isinstance(value, int) else value


def change_value_inside(value: tuple[object, ...]) -> Value:
    """Return a tuple in which the first number is equal, and of another type or sign."""
    first, *others = value
    if isinstance(first, tuple) and first:
        return (change_value_inside(first), *others)
    if isinstance(first, float) and first.is_integer():
        return (-first if first == 0.0 else int(first), *others)
    return (float(first) if isinstance(first, int) else first, *others)


def change_call(random: Random, call: FreeCall) -> FreeCall:
    """Return a call that differs in one thing, or in nothing that matters, or in nothing."""
    arguments, at = list(call.arguments), random.randrange(len(call.arguments))
    x = arguments[at]
    match random.randrange(10):
        case 0:
            return call._replace(k=change_value(random, call.k))
        case 1:
            return call._replace(other=change_value(random, call.other))
        case 2:
            return call._replace(function=random.choice((*MAKERS, *FIXED)))
        case 3:
            return call._replace(storages=draw_storages(random))
        case 4:
            arguments[at] = draw_argument(random, 4)
        case 5:
            random.shuffle(arguments)
        case 6:  # the same object twice
            arguments.insert(random.randint(0, len(arguments)), x)
        case 7 if isinstance(x, View):
            arguments[at] = x._replace(offset=random.choice((0, 1, 7)))
        case 8 if isinstance(x, View):  # other sizes
            arguments[at] = x._replace(shape=tuple(n if n < 2 else n + random.randint(0, 4) for n in x.shape))
        case 9 if isinstance(x, View) and x.shape:
            strides = list(x.strides)
            strides[random.choice((-1, random.randrange(len(strides))))] = random.choice((0, 1, -1, 2, 5))
            arguments[at] = x._replace(strides=tuple(strides))
    return call._replace(arguments=tuple(arguments[:12]))


def draw_calls(seed: int, count: int) -> list[FreeCall]:
    """Draw calls, most of which differ in one thing from an earlier one."""
    random = Random(seed)
    found = [draw_call(random)]
    while len(found) < count:
        before = random.choice(found[-4:])
        found.append(change_call(random, before) if random.random() < 0.85 else draw_call(random))
    return found


def draw_distinct_calls(seed: int, count: int) -> list[FreeCall]:
    """Draw calls of which most need a kernel of their own, since a number in the closure differs."""
    random = Random(seed)
    base = draw_call(random)._replace(function="closure")
    return [base._replace(k=random.choice((random.randint(-count, count), random.uniform(-9, 9)))) for _ in range(count)]
