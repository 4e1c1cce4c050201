"""Map, zip and reduce over strided tensors, as tasks ask for them: functions, cases, and what they look like."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import fresh, layout_link, shapes, strided_like
from .draw import rows, strip
from .strided import Strided

FUNCTIONS: dict[str, Callable[..., float]] = {
    "x + 1": lambda x: x + 1,
    "10 * x + y": lambda x, y: 10 * x + y,
    "x - y": lambda x, y: x - y,
    "x + y": lambda x, y: x + y,
    "max(x, y)": lambda x, y: x if x > y else y,
}


def mapped(count: int) -> Any:
    """(name of a function, out, operands), with shapes that broadcast to out's."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: Any) -> tuple[str, Strided, tuple[Strided, ...]]:
        shape = draw(shapes(3))
        operands = []
        for k in range(count):
            cut = tuple(draw(st.sampled_from([n, n, 1])) if k else n for n in shape)
            operands.append(strided_like(draw, cut[draw(st.integers(0, len(cut))) if k else 0 :], start=1 + 100 * k))
        out = draw(st.sampled_from(["fresh", "strided"]))
        name = draw(st.sampled_from([name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]))
        made = fresh(shape) if out == "fresh" else strided_like(draw, shape)
        return name, made._replace(storage=np.full(len(made.storage), np.nan)), tuple(operands)

    return case()


def folded() -> Any:
    """(name of a function, out, tensor, dim, start)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: Any) -> tuple[str, Strided, Strided, int, float]:
        shape = draw(shapes(3, 1).filter(len))
        dim = draw(st.integers(0, len(shape) - 1))
        out = fresh([1 if d == dim else n for d, n in enumerate(shape)])
        name, start = draw(st.sampled_from([("x + y", 0.0), ("max(x, y)", -np.inf), ("x - y", 0.0)]))
        return name, out, strided_like(draw, shape, start=-40), dim, start

    return case()


def written(out: Strided) -> np.ndarray[Any, Any]:
    """The whole storage of an output, so that what is written beside it is seen too."""
    return out.storage.copy()


def answer(function: Callable[..., Any], case: Any) -> np.ndarray[Any, Any]:
    """What a map, zip or reduce writes, over a copy of the case."""
    name, out, *rest = case
    out = out._replace(storage=out.storage.copy())
    operands = rest[0] if isinstance(rest[0], tuple) and not isinstance(rest[0], Strided) else rest
    function(FUNCTIONS[name], out, *operands)
    return written(out)


def told(case: Any) -> str:
    """A case of map, zip or reduce in words."""
    name, out, *rest = case
    operands = rest[0] if isinstance(rest[0], tuple) and not isinstance(rest[0], Strided) else rest
    parts = [f"fn = {name}", f"out {in_words(out)}"]
    parts += [f"{'abc'[k]} {in_words(x)}" for k, x in enumerate(operands) if isinstance(x, Strided)]
    if len(rest) == 3:
        parts.append(f"dim {rest[1]}, start {rest[2]}")
    return "; ".join(parts)


def in_words(x: Strided) -> str:
    """A tensor without its elements."""
    return f"of shape {x.shape}, strides {x.strides}" + f", offset {x.offset}" * bool(x.offset)


def drawing(case: Any, got: Any, expected: Any) -> list[str]:
    """The first operand in its storage, what the output's storage should hold, and what it holds."""
    a = case[2][0] if isinstance(case[2], tuple) and not isinstance(case[2], Strided) else case[2]
    return [*strip(a, "a"), "", *rows(expected, "expected"), *rows(got, "got")]


def link(case: Any) -> str:
    """The page of strides, at the first operand's shape."""
    a = case[2][0] if isinstance(case[2], tuple) and not isinstance(case[2], Strided) else case[2]
    return layout_link(a)
