"""NumPy's functions on arrays: code written for NumPy runs on tensors, and fuses, as it stands.

`protocol` is what NumPy calls; `table` says how an entry is written; `ufuncs`, `folds`, `elements` and `shapes` are the
entries. All stands below `array`, and knows neither tensors nor nodes.
"""

from . import elements, folds, shapes, ufuncs
from .protocol import on_function, on_ufunc
from .table import FUNCTIONS, UFUNCS

__all__ = ["FUNCTIONS", "UFUNCS", "elements", "folds", "on_function", "on_ufunc", "shapes", "ufuncs"]
