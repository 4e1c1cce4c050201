"""NumPy's functions on arrays: code written for NumPy runs on tensors, and fuses, as it stands.

`protocol` implements NEP 13 and NEP 18; `table` says how an entry is written; `ufuncs`, `reductions`, `elementwise` and
`shaping` contain the entries. They call methods of arrays, and know neither tensors nor nodes.
"""

from . import elementwise, reductions, shaping, ufuncs
from .protocol import on_function, on_ufunc
from .table import FUNCTIONS, UFUNCS

__all__ = ["FUNCTIONS", "UFUNCS", "elementwise", "on_function", "on_ufunc", "reductions", "shaping", "ufuncs"]
