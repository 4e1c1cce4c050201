"""Functions of each element. NumPy's ufuncs are here under their NumPy name; a few have another name in PyTorch."""

from collections.abc import Callable
from typing import Any

from ..core.operators import TABLE, Operator
from ..core.traceable import Traceable
from ..ir.array_methods import Array
from ..ir.numpy_api import UFUNCS
from ..ir.numpy_api.table import as_operand
from .table import function


def elementwise(name: str, body: Operator | Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that applies an operator, or a composition of operators, as one call."""

    def call(*inputs: Any) -> Any:
        operands = [as_operand(x) for x in inputs]
        return next(x for x in operands if isinstance(x, Traceable)).apply(body, *operands)

    call.__name__, call.__doc__ = name, body.__doc__
    return call


OPERATORS = "sub mul div pow neg eq ne lt gt le ge"  # with the names of PyTorch; NumPy's are subtract, multiply, ...

for _name, _body in [(ufunc.__name__, body) for ufunc, body in UFUNCS.items()] + [(n, TABLE[n]) for n in OPERATORS.split()]:
    function(_name, method=not hasattr(Array, _name))(elementwise(_name, _body))
