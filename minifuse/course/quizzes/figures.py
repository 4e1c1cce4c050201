"""Lines of text for questions and explanations: tables, storages with their indices, and formulas with numbers put in."""

from collections.abc import Sequence

import numpy as np

from ...core.layout import Layout
from .. import draw
from ..strided import Strided
from .question import format_value


def strip(layout: Layout, size: int, first: float = 0.0) -> str:
    """Draw a storage of `size` numbers with the index of each element of a layout under its cell, as the checks do."""
    storage = np.arange(first, first + size)
    return "\n".join(draw.strip(Strided(storage, layout.shape, layout.strides, layout.offset)))


def matrix(name: str, array: object) -> str:
    """Draw an array as NumPy prints it, behind its name."""
    return "\n".join(draw.rows(array, name))


def table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Draw rows as columns: numbers at the right, words at the left.

    Examples
    --------
    >>> print(table([("a", 5), ("long", 12)], ("name", "n")))
    name   n
    a      5
    long  12
    """
    cells = [[format_value(value) for value in row] for row in rows]
    lines = [list(head), *cells] if head else cells
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    is_number = [all(isinstance(row[k], int | float) for row in rows) for k in range(len(widths))]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if right else f"{cell:<{width}}"
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in lines
    )


def terms(factors: Sequence[tuple[float, float]]) -> str:
    """Return a sum of products as text.

    Examples
    --------
    >>> terms([(1, 12), (0, 4), (2.5, -1)])
    '1 * 12 + 0 * 4 + 2.5 * (-1)'
    """
    return " + ".join(f"{signed(a)} * {signed(b)}" for a, b in factors)


def signed(value: float) -> str:
    """Format a number, in brackets if it is negative."""
    return f"({format_value(value)})" if value < 0 else format_value(value)


def fork(upper: str, lower: str, call: str) -> str:
    """Draw what a call sends to its two inputs.

    Examples
    --------
    >>> print(fork("x = 2 <-- 30", "y = 3 <-- 20", "Mul <-- 10"))
    x = 2 <-- 30 --+
                   +-- Mul <-- 10
    y = 3 <-- 20 --+
    """
    width = max(len(upper), len(lower))
    return f"{upper:<{width}} --+\n{'':<{width}}   +-- {call}\n{lower:<{width}} --+"


def position_formula(index: Sequence[int], layout: Layout) -> str:
    """Return the rule of positions with numbers put in.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> position_formula((1, 2), row_major((2, 3)))
    'position = offset + index[0] * strides[0] + index[1] * strides[1] = 0 + 1 * 3 + 2 * 1 = 5'
    """
    names = " + ".join(f"index[{d}] * strides[{d}]" for d in range(len(index)))
    numbers = terms(list(zip(index, layout.strides, strict=True)))
    return f"position = offset + {names} = {layout.offset} + {numbers} = {layout.position(index)}"


def align(*shapes: Sequence[int], result: Sequence[int] | None = None) -> str:
    """Draw shapes one under the other, aligned at their last dim, with their common shape below a line.

    Examples
    --------
    >>> print(align((8, 1, 6), (7, 1), result=(8, 7, 6)))
    (8, 1, 6)
       (7, 1)
    ---------
    (8, 7, 6)
    """
    texts = [format_value(tuple(shape)).replace(",)", ")") for shape in (*shapes, *([] if result is None else [result]))]
    width = max(map(len, texts))
    lines = [f"{text:>{width}}" for text in texts]
    return "\n".join(lines if result is None else [*lines[:-1], "-" * width, lines[-1]])
