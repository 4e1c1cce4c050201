"""Trace Python functions of scalars: as expressions of a kernel, and as operators of a reduction."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..core.dtypes import BY_PYTHON, DType, weak_type_of
from ..core.errors import FuseError
from ..core.operators import Operator, eq, ne
from ..core.traceable import Traceable
from .kernel_ir import Expression, Kernel, Load, constant

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


class CustomReduceOp(Operator):
    """A user-defined operator for reductions: a function of two numbers, which is not in the operator table.

    The function must be associative and commutative, since threads combine elements in any order. In the source of a kernel
    it is a separate function. `trace_for(dtype)` traces the function for a dtype as an expression of loads 0 and 1.
    """

    def __init__(
        self,
        function: Callable[..., object],
        identity: float | bool,
        reduce_vjp: Callable[..., Any],
        trace_for: Callable[[DType], Expression],
    ) -> None:
        def combine(a: object, b: object) -> object:
            return function(a, b)

        super().__init__(combine, None, None, identity, reduce_vjp, False, "any", "same", None, 1, True)
        self.expressions: dict[DType, Expression] = {}
        self.trace_for = trace_for

    def expression(self, dtype: DType) -> Expression:
        """Return the function as an expression of two loads of a dtype. It is traced once per dtype."""
        if dtype not in self.expressions:
            self.expressions[dtype] = self.trace_for(dtype)
            self.cost = Kernel((self.expressions[dtype],), ()).cost()
        return self.expressions[dtype]
