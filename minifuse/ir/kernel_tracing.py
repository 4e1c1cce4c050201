"""Trace Python functions of scalars as expressions of a kernel."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..core.dtypes import BY_PYTHON, DType, weak_type_of
from ..core.errors import FuseError
from ..core.operators import Operator, eq, ne
from ..core.traceable import Traceable
from .kernel_ir import Expression, Load, constant

V = TypeVar("V", bound=Traceable)


class TracedValue(Traceable, Generic[V]):
    """A scalar in a Python function that is being traced. `value` is the expression or the node that computes it.

    An operator is applied to the values of its operands, and the result is a TracedValue again. `==` is an operator, too,
    unlike `==` of expressions, which compares identity.
    """

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: V) -> None:
        self.value = value

    def apply(self, operator: Operator, *inputs: object) -> Any:
        """Apply an operator to the expressions or nodes that the inputs represent."""
        operands = [x.value if isinstance(x, TracedValue) else x for x in inputs]
        return type(self)(self.value.apply(operator, *operands))

    def __eq__(self, other: object) -> Any:
        return self.apply(eq, self, other)

    def __ne__(self, other: object) -> Any:
        return self.apply(ne, self, other)

    def __bool__(self) -> bool:
        raise FuseError(
            "cannot branch on the value of an element while tracing, since it is not computed yet; use where(c, a, b)"
        )


def trace(function: Callable[..., object], dtypes: Sequence[DType]) -> Expression:
    """Trace a Python function of scalars: return it as an expression of loads 0, 1, ...

    Raises
    ------
    FuseError
        The function branches on a value.
    TypeError
        The function calls something that expressions do not support, such as `math.exp`.
    """
    result = function(*[TracedValue(Load(k, dtype)) for k, dtype in enumerate(dtypes)])
    return result.value if isinstance(result, TracedValue) else constant(result, BY_PYTHON[weak_type_of(result)])
