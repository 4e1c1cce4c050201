"""Drawn pairs of calls for task 5.4: a call, and one that differs from it in some properties.

Some differences need another kernel, others do not; `oracle.module5.key` defines which.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from .call_pairs import ALIASES, FUNCTIONS, ORDERS, Call, Pair, Tensor

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@cache
def tensors() -> "SearchStrategy[Tensor]":
    """Draw tensors of two dims."""
    from hypothesis import strategies as st

    shapes = st.tuples(st.sampled_from([4, 7, 1]), st.sampled_from([5, 9, 1]))
    return st.builds(Tensor, shapes, st.sampled_from(["float32", "float64", "int32"]), st.sampled_from(ORDERS))


@cache
def calls() -> "SearchStrategy[Call]":
    """Draw calls."""
    from hypothesis import strategies as st

    scalars = st.sampled_from([2.0, 3.0, 2, True, 1, 0.0, -0.0])
    alias = st.sampled_from(["apart", "apart", "same", "overlap"])
    return st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), scalars, tensors(), tensors(), scalars, alias)


def pairs() -> "SearchStrategy[Pair]":
    """Draw a call, and the same call with up to two of its properties changed."""
    from hypothesis import strategies as st

    def pair(first: Call, other: Call, parts: list[str]) -> Pair:
        second = first
        for part in parts:
            second = CHANGES[part](second, other)
        return Pair(first, second)

    return st.builds(pair, calls(), calls(), st.lists(st.sampled_from(sorted(CHANGES)), max_size=2, unique=True))


def resized(call: Call, other: Call) -> Call:
    """Change the sizes that are not 1."""

    def grown(x: Tensor) -> Tensor:
        return x._replace(shape=tuple(n if n == 1 else n + 2 + d for d, n in enumerate(x.shape)))

    return call._replace(x=grown(call.x), y=grown(call.y))


def swapped(call: Call, other: Call) -> Call:
    """Exchange the tensors. `alias` stays, so y follows x if they share memory."""
    return call._replace(x=call.y, y=call.x)


def realiased(call: Call, other: Call) -> Call:
    """Change how the tensors share memory."""
    ways = [way for way in ALIASES if way != call.alias]
    return call._replace(alias=other.alias if other.alias in ways else ways[0])


CHANGES: dict[str, Callable[[Call, Call], Call]] = {
    "size": resized,
    "rows": lambda c, o: c._replace(
        x=c.x._replace(shape=(c.x.shape[0] + 3 * (c.x.shape[0] > 1), c.x.shape[1])),
    ),
    "dtype": lambda c, o: c._replace(x=c.x._replace(dtype=o.x.dtype)),
    "order": lambda c, o: c._replace(x=c.x._replace(order=o.x.order)),
    "shape": lambda c, o: c._replace(x=c.x._replace(shape=o.x.shape)),
    "alias": realiased,
    "exchange": swapped,
    "k": lambda c, o: c._replace(k=o.k),
    "a": lambda c, o: c._replace(a=o.a),
    "function": lambda c, o: c._replace(function=o.function),
}


def characteristic_pairs(is_shared: bool) -> "SearchStrategy[Pair]":
    """Draw pairs that differ in one property each: one that is easily forgotten, or one that needs no other kernel."""
    from hypothesis import strategies as st

    x, y = Tensor((4, 5)), Tensor((4, 5), "float64", ORDERS[1])
    plain = Call("scaled", 2.0, x, y, 1.0)
    if is_shared:
        others = [plain, resized(plain, plain), plain._replace(a=3.0), plain._replace(x=x._replace(shape=(1, 5)))]
        wide = plain._replace(x=x._replace(shape=(1, 9)))
        return st.sampled_from([*[Pair(plain, other) for other in others[:3]], Pair(others[3], wide)])
    others = [
        plain._replace(x=x._replace(dtype="int32")),  # of 4 bytes too
        plain._replace(x=x._replace(order=ORDERS[1])),
        swapped(plain, plain),
        plain._replace(k=3.0),
        plain._replace(k=2),
        plain._replace(a=1),
        plain._replace(function="shifted"),
        *[plain._replace(alias=alias) for alias in ALIASES[:2]],
    ]
    turned = plain._replace(y=x._replace(order=ORDERS[1]))
    zeros = [plain._replace(k=k) for k in (0.0, -0.0)]
    aliased = [plain._replace(alias=alias) for alias in ALIASES[:2]]
    return st.sampled_from(
        [*[Pair(plain, other) for other in others], Pair(turned, swapped(turned, turned)), Pair(*zeros), Pair(*aliased)]
    )
