"""Draw cases as lines of text: a storage as a strip, a tensor as rows."""

from collections.abc import Sequence
from itertools import product
from typing import SupportsFloat

import numpy as np

from .strided import Strided

WIDTH = 76
MAX_CELLS = 24  # of a strip; also the rows of a tensor


def strip(x: Strided, name: str = "storage") -> list[str]:
    """Draw the storage as a row of cells, with the index of the tensor's element under each cell.

    Examples
    --------
    >>> print("\\n".join(strip(Strided(np.arange(6.0), (2, 2), (1, 3), 1))))
    storage   0.0   1.0   2.0   3.0   4.0   5.0
    position    0     1     2     3     4     5
    index          0,0   1,0         0,1   1,1
    """
    values = [number(v) for v in x.storage[:MAX_CELLS]]
    indices_at: dict[int, list[str]] = {}
    for index in product(*map(range, x.shape)):
        at = x.offset + sum(i * s for i, s in zip(index, x.strides, strict=True))
        indices_at.setdefault(at, []).append(",".join(map(str, index)) or "()")
    indices = ["" if k not in indices_at else indices_at[k][0] + "+" * (len(indices_at[k]) > 1) for k in range(len(values))]
    positions = [str(k) for k in range(len(values))]
    width = max([len(cell) for cell in (*values, *positions, *indices)], default=1)
    first = max(len(name), 8)
    fits = max((WIDTH - first) // (width + 2), 1)
    lines = []
    for start in range(0, len(values), fits):
        for head, cells in ((name, values), ("position", positions), ("index", indices)):
            lines.append((f"{head:<{first}}" + "".join(f"  {c:>{width}}" for c in cells[start : start + fits])).rstrip())
    if len(x.storage) > MAX_CELLS:
        lines.append(f"... {len(x.storage) - MAX_CELLS} more in the storage")
    return lines


def rows(array: object, name: str) -> list[str]:
    """Return an array as NumPy prints it, with a name before the first line; no lines for None.

    Examples
    --------
    >>> print("\\n".join(rows(np.eye(2), "got")))
    got       [[1. 0.]
               [0. 1.]]
    """
    if array is None:
        return []
    try:
        text = np.array2string(np.asarray(array), precision=4, max_line_width=WIDTH - 10, threshold=MAX_CELLS * 2)
    except (TypeError, ValueError):
        text = repr(array)
    return beside(name, text.splitlines() or ["[]"])


def beside(name: str, lines: Sequence[str]) -> list[str]:
    """Put a name before the first line and indent the others."""
    return [f"{name if k == 0 else '':<9} {line}".rstrip() for k, line in enumerate(lines[:MAX_CELLS])]


def number(value: SupportsFloat) -> str:
    """Format a number with at most four digits, or as a short whole number."""
    x = float(value)
    return f"{x:.1f}" if x.is_integer() and abs(x) < 1e9 else f"{x:.4g}"
