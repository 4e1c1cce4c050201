"""Cases for tasks about map, zip and reduce over strided tensors, and how to run and print them."""

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
    "-x": lambda x: -x,
    "10 * x + y": lambda x, y: 10 * x + y,
    "x - y": lambda x, y: x - y,
    "x + y": lambda x, y: x + y,
    "x * y": lambda x, y: x * y,
    "max(x, y)": lambda x, y: x if x > y else y,
    "min(x, y)": lambda x, y: x if x < y else y,
}


def map_cases(count: int, begins_at_0: bool = False, least_dims: int = 0) -> "SearchStrategy[Mapped]":
    """Draw (name of a function, out, operands), with operand shapes that broadcast to the shape of out."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Mapped:
        shape = draw_shape(draw, least_dims)
        operands = []
        for k in range(count):
            cut = tuple(1 if k and draw(among(False, False, True)) else n for n in shape)
            cut = cut[draw(among(*range(len(cut) + 1))) if k else 0 :]
            operands.append(strided_like(draw, cut, 1 + 100 * k, begins_at_0))
        name = draw(among(*[name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]))
        return name, draw_output(draw, shape, begins_at_0), tuple(operands)

    return case()


def reduce_cases() -> "SearchStrategy[Reduced]":
    """Draw (name of a function, out, tensor, dim, start)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Reduced:
        shape = draw_shape(draw, 1)
        dim = draw(among(*range(len(shape))))
        out = draw_output(draw, [1 if d == dim else n for d, n in enumerate(shape)])
        name, start = draw(among(("x + y", 0.0), ("max(x, y)", -np.inf), ("x - y", 0.0), ("10 * x + y", 2.5)))
        return name, out, strided_like(draw, shape, start=-40), dim, start

    return case()


def draw_shape(draw: "DrawFn", least: int = 0) -> Shape:
    """Draw a shape of `least` to three dims. Sizes of 0 and 1 and no dims are the least simple: their cases show little."""
    ranks = [rank for rank in (1, 2, 3, 0) if rank >= least]
    return tuple(draw(among(2, 3, 1, 4, 5, 0)) for _ in range(draw(among(*ranks))))


def draw_output(draw: "DrawFn", shape: Sequence[int], begins_at_0: bool = False) -> Strided:
    """Draw an output full of NaN, in row-major order or not."""
    made = strided_like(draw, shape, begins_at_0=begins_at_0) if draw(among(False, True)) else fresh(shape)
    return made._replace(storage=np.full(len(made.storage), np.nan))


def copy_storage(out: Strided) -> Array:
    """Copy the whole storage of an output, so that writes outside of its elements are found too."""
    return out.storage.copy()


def run_loop(function: Callable[..., object], case: Case) -> Array:
    """Run a map, zip or reduce over a copy of the case, and return the storage of its output."""
    name, out = case[:2]
    out = out._replace(storage=out.storage.copy())
    function(FUNCTIONS[name], out, *operands_of(case))
    return copy_storage(out)


def operands_of(case: Case) -> tuple[Strided | float, ...]:
    """Return the arguments behind the output: tensors, and for reduce the dim and the start."""
    return case[2] if len(case) == 3 else case[2:]


def first_operand(case: Case) -> Strided:
    """Return the first operand."""
    return case[2][0] if len(case) == 3 else case[2]


def describe_case(case: Case) -> str:
    """Return a case of map, zip or reduce as text."""
    parts = [f"fn = {case[0]}", f"out {describe_layout(case[1])}"]
    parts += [f"{'abc'[k]} {describe_layout(x)}" for k, x in enumerate(operands_of(case)) if isinstance(x, Strided)]
    if len(case) == 5:
        parts.append(f"dim {case[3]}, start {case[4]}")
    return "; ".join(parts)


def describe_layout(x: Strided) -> str:
    """Return the shape, strides and offset of a tensor as text."""
    return f"of shape {x.shape}, strides {x.strides}" + f", offset {x.offset}" * bool(x.offset)


def drawing(case: Case, got: object, expected: object) -> list[str]:
    """Draw the storages of the operands, and the expected and actual storage of the output; out itself if it is right."""
    tensors = [x for x in operands_of(case) if isinstance(x, Strided)]
    parts = [strip(x, name) for x, name in zip(tensors, "ab", strict=False)]
    parts.append([*rows(expected, "expected"), *rows(got, "got")] if expected is not None else strip(case[1], "out"))
    return [line for part in parts if part for line in (*part, "")][:-1]


def link(case: Case) -> str:
    """Return the page of strides for the layout of the first operand."""
    return layout_link(first_operand(case))
