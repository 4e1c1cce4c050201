"""Map, zip and reduce over strided tensors, as tasks ask for them: functions, cases, and what they look like."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.indexing import Shape
from .cases import among, fresh, layout_link, strided_like
from .draw import rows, strip
from .strided import Array, Strided

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Mapped = tuple[str, Strided, tuple[Strided, ...]]
"""A case of map or zip: (name of a function, out, operands)."""
Reduced = tuple[str, Strided, Strided, int, float]
"""A case of reduce: (name of a function, out, tensor, dim, start)."""
Case = Mapped | Reduced
FUNCTIONS: dict[str, Callable[..., float]] = {
    "x + 1": lambda x: x + 1,
    "10 * x + y": lambda x, y: 10 * x + y,
    "x - y": lambda x, y: x - y,
    "x + y": lambda x, y: x + y,
    "max(x, y)": lambda x, y: x if x > y else y,
}


def mapped(count: int, begins_at_0: bool = False) -> "SearchStrategy[Mapped]":
    """(name of a function, out, operands), with shapes that broadcast to out's."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Mapped:
        shape = drawn_shape(draw)
        operands = []
        for k in range(count):
            cut = tuple(1 if k and draw(among(False, False, True)) else n for n in shape)
            cut = cut[draw(among(*range(len(cut) + 1))) if k else 0 :]
            operands.append(strided_like(draw, cut, 1 + 100 * k, begins_at_0))
        name = draw(among(*[name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]))
        return name, unwritten(draw, shape), tuple(operands)

    return case()


def reduced() -> "SearchStrategy[Reduced]":
    """(name of a function, out, tensor, dim, start)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Reduced:
        shape = drawn_shape(draw, 1)
        dim = draw(among(*range(len(shape))))
        out = unwritten(draw, [1 if d == dim else n for d, n in enumerate(shape)])
        name, start = draw(among(("x + y", 0.0), ("max(x, y)", -np.inf), ("x - y", 0.0), ("10 * x + y", 2.5)))
        return name, out, strided_like(draw, shape, start=-40), dim, start

    return case()


def drawn_shape(draw: "DrawFn", least: int = 0) -> Shape:
    """A shape of `least` to three dims; a size of 0 is the last that is thought of, since there is little to see then."""
    return tuple(draw(among(1, 2, 3, 4, 5, 0)) for _ in range(draw(among(*range(least, 4)))))


def unwritten(draw: "DrawFn", shape: Sequence[int]) -> Strided:
    """An output of a shape, in row-major order or not."""
    made = strided_like(draw, shape) if draw(among(False, True)) else fresh(shape)
    return made._replace(storage=np.full(len(made.storage), np.nan))


def written(out: Strided) -> Array:
    """The whole storage of an output, so that what is written beside it is seen too."""
    return out.storage.copy()


def answer(function: Callable[..., object], case: Case) -> Array:
    """Run a map, zip or reduce over a copy of the case, and return the storage of its output."""
    name, out = case[:2]
    out = out._replace(storage=out.storage.copy())
    function(FUNCTIONS[name], out, *operands_of(case))
    return written(out)


def operands_of(case: Case) -> tuple[Strided | float, ...]:
    """Return the arguments behind the output: tensors, and for reduce the dim and the start."""
    return case[2] if len(case) == 3 else case[2:]


def first_of(case: Case) -> Strided:
    """The first operand."""
    return case[2][0] if len(case) == 3 else case[2]


def told(case: Case) -> str:
    """A case of map, zip or reduce in words."""
    parts = [f"fn = {case[0]}", f"out {in_words(case[1])}"]
    parts += [f"{'abc'[k]} {in_words(x)}" for k, x in enumerate(operands_of(case)) if isinstance(x, Strided)]
    if len(case) == 5:
        parts.append(f"dim {case[3]}, start {case[4]}")
    return "; ".join(parts)


def in_words(x: Strided) -> str:
    """A tensor without its elements."""
    return f"of shape {x.shape}, strides {x.strides}" + f", offset {x.offset}" * bool(x.offset)


def drawing(case: Case, got: object, expected: object) -> list[str]:
    """The first operand in its storage, what the output's storage should hold, and what it holds."""
    return [*strip(first_of(case), "a"), "", *rows(expected, "expected"), *rows(got, "got")]


def link(case: Case) -> str:
    """The page of strides, at the first operand's shape."""
    return layout_link(first_of(case))
