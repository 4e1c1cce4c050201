"""NumPy's functions on arrays: code written for NumPy runs on tensors and fuses, unchanged.

`protocol` implements NEP 13 and NEP 18. `table` explains how an entry is written. `ufuncs`, `trigonometry`,
`number_parts`, `reductions`, `elementwise`, `shaping` and `order` contain the entries. They call methods of arrays, and
depend neither on tensors nor on graph nodes.
"""

from . import elementwise, number_parts, order, reductions, shaping, trigonometry, ufuncs
from .protocol import on_function, on_ufunc
from .table import FUNCTIONS, UFUNCS

__all__ = [
    "FUNCTIONS",
    "UFUNCS",
    "elementwise",
    "number_parts",
    "on_function",
    "on_ufunc",
    "order",
    "reductions",
    "shaping",
    "trigonometry",
    "ufuncs",
]
