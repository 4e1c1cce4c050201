"""Pictures of cases, in lines of a terminal: a storage as a strip, a tensor as rows."""

from collections.abc import Sequence
from itertools import product
from typing import SupportsFloat

import numpy as np

from .strided import Strided

WIDTH = 76
MAX_CELLS = 24  # cells of a strip, rows of a tensor


def strip(x: Strided, name: str = "storage") -> list[str]:
    """The storage as a row of cells, and under each which index of the tensor it is.

    Examples
    --------
    >>> print("\\n".join(strip(Strided(np.arange(6.0), (2, 2), (1, 3), 1))))
    storage   0.0   1.0   2.0   3.0   4.0   5.0
    position    0     1     2     3     4     5
    index          0,0   1,0         0,1   1,1
    """
    values = [number(v) for v in x.storage[:MAX_CELLS]]
    found: dict[int, list[str]] = {}
    for index in product(*map(range, x.shape)):
        at = x.offset + sum(i * s for i, s in zip(index, x.strides, strict=True))
        found.setdefault(at, []).append(",".join(map(str, index)) or "()")
    indices = ["" if k not in found else found[k][0] + "+" * (len(found[k]) > 1) for k in range(len(values))]
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
    """A tensor as NumPy would print it, with its name before it; nothing for None.

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
    """Lines with a name before the first."""
    return [f"{name if k == 0 else '':<9} {line}".rstrip() for k, line in enumerate(lines[:MAX_CELLS])]


def number(value: SupportsFloat) -> str:
    """A number in few characters."""
    return f"{value:.4g}" if float(value) != round(float(value)) else f"{float(value):.1f}"
