"""Map, zip and reduce over strided tensors, as tasks ask for them: functions, cases, and what they look like."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .cases import among, fresh, layout_link, strided_like
from .draw import rows, strip
from .strided import Strided

FUNCTIONS: dict[str, Callable[..., float]] = {
    "x + 1": lambda x: x + 1,
    "10 * x + y": lambda x, y: 10 * x + y,
    "x - y": lambda x, y: x - y,
    "x + y": lambda x, y: x + y,
    "max(x, y)": lambda x, y: x if x > y else y,
}


def mapped(count: int, begins_at_0: bool = False) -> Any:
    """(name of a function, out, operands), with shapes that broadcast to out's."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: Any) -> tuple[str, Strided, tuple[Strided, ...]]:
        shape = drawn_shape(draw)
        operands = []
        for k in range(count):
            cut = tuple(1 if k and draw(among(False, False, True)) else n for n in shape)
            cut = cut[draw(among(*range(len(cut) + 1))) if k else 0 :]
            operands.append(strided_like(draw, cut, 1 + 100 * k, begins_at_0))
        name = draw(among(*[name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]))
        return name, unwritten(draw, shape), tuple(operands)

    return case()


def folded() -> Any:
    """(name of a function, out, tensor, dim, start)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: Any) -> tuple[str, Strided, Strided, int, float]:
        shape = drawn_shape(draw, 1)
        dim = draw(among(*range(len(shape))))
        out = unwritten(draw, [1 if d == dim else n for d, n in enumerate(shape)])
        name, start = draw(among(("x + y", 0.0), ("max(x, y)", -np.inf), ("x - y", 0.0), ("10 * x + y", 2.5)))
        return name, out, strided_like(draw, shape, start=-40), dim, start

    return case()


def drawn_shape(draw: Any, least: int = 0) -> tuple[int, ...]:
    """A shape of `least` to three dims; a size of 0 is the last that is thought of, since there is little to see then."""
    return tuple(draw(among(1, 2, 3, 4, 5, 0)) for _ in range(draw(among(*range(least, 4)))))


def unwritten(draw: Any, shape: Sequence[int]) -> Strided:
    """An output of a shape, in row-major order or not."""
    made = strided_like(draw, shape) if draw(among(False, True)) else fresh(shape)
    return made._replace(storage=np.full(len(made.storage), np.nan))


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
