"""Strategies for task 4.7: data sets, arguments of loaders, and columns."""

from typing import TYPE_CHECKING, Any

from .cases import among, strided_like
from .questions.task4_7 import Columns, Loading, Rows
from .strided import Strided

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def rows() -> "SearchStrategy[Rows]":
    """Draw (tensor, labels)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Rows:
        shape = (draw(among(2, 3, 4, 5, 1)), *draw(st.sampled_from([(2,), (3,), (), (2, 3), (1, 2, 2)])))
        return strided_like(draw, shape), [10 + 3 * k for k in range(shape[0])]

    return case()


def loadings(most: int = 12, epochs: int = 2, has_seed: bool | None = None, batches: bool = False) -> Any:
    """Draw the arguments of a loader."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Loading:
        count, size = draw(st.integers(0 if not batches else 2, most)), draw(st.integers(1, most + 2))
        seed = draw(among(None, 0, 1, 77)) if has_seed is None else 5 if has_seed else None
        drops = draw(st.booleans())
        done = draw(st.integers(0, batches_of(Loading(count, size, seed, drops)))) if batches else 0
        return Loading(count, size, seed, drops, draw(st.integers(1, epochs)), done)

    return case()


def large_loadings() -> Any:
    """Draw the arguments of a loader of thousands of examples."""
    from hypothesis import strategies as st

    return st.builds(
        Loading,
        st.integers(2000, 4000),
        st.integers(7, 300),
        st.sampled_from([3, None]),
        st.booleans(),
        st.just(2),
        st.just(3),
    )


def batches_of(case: Loading) -> int:
    """Return the number of batches of an epoch."""
    return len(range(0, case.examples - case.size + 1 if case.drops_last else case.examples, case.size))


def columns() -> "SearchStrategy[Strided]":
    """Draw rows of some columns; some are constant, or far from 0."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Strided:
        return draw_columns(draw, draw(among(2, 3, 4, 7, 1)), draw(among(1, 2, 3)))

    return case()


def draw_columns(draw: Any, count: int, width: int) -> Strided:
    """Draw a tensor of shape (count, width)."""
    x = strided_like(draw, (count, width))
    x = x._replace(storage=x.storage * 37 % 23 / 4)
    for column in range(width):
        way = draw(among("plain", "plain", "constant", "tenth", "far", "small", "tiny"))
        cells = x.array()[:, column]
        if way in ("constant", "tenth"):
            cells[...] = 3.0 if way == "constant" else 0.1
        elif way != "plain":
            cells[...] = cells + 1e6 if way == "far" else cells * {"small": 1e-7, "tiny": 1e-30}[way]
    return x


def splits() -> "SearchStrategy[Columns]":
    """Draw (training rows, test rows)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Columns:
        width = draw(among(1, 2, 3))
        return draw_columns(draw, draw(among(2, 3, 4, 7)), width), draw_columns(draw, draw(among(1, 2, 3)), width)

    return case()
