"""Reductions with one or several states, whose combination is a Python function.

A monoid is an associative combination with an identity, which for a reduction is also commutative. Its values may have
several *states*: the largest element and its index, or a count, a mean and a sum of squares. In the graph and in kernels,
each state is a reduction of its own, whose operator is a `MonoidState`; all states of one reduction have the same inputs,
one for each state. So the value of every expression is one number, and a backend finds all states of a reduction by
`ReduceExpr.states`.

`monoids.py` contains the monoids of the library.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..core.dtypes import BY_PYTHON, DType, weak_type_of
from ..core.operator_entry import TracedValue
from ..core.operators import Operator
from .array_functions import A, Reduce
from .kernel_ir import Expression, Kernel, Load, cast, constant

Combine = Callable[[Any, Any], Any]  # of two numbers for one state, else of two tuples of states
Definition = Callable[..., tuple[Any, ...]]  # definition(reduce, *inputs), where reduce(operator, x) reduces the same dims


class Monoid:
    """An associative combination, with an identity. That of a reduction is commutative; a scan keeps the order.

    Parameters
    ----------
    names : sequence of str
        A name for each state, which is shown in formulas.
    identities : sequence of numbers
        The identity of each state. For integers, infinities become the ends of the range.
    combine : callable
        Combines two tuples of states to a tuple of states, or two values to one if there is one state. It is written with
        operators. The threads of a reduction combine in any order.
    definition : callable, optional
        Computes the states by reductions with one state. The compiler uses it where that is faster.
    trace : callable, optional
        Traces `combine` for the dtypes of the states, as expressions of loads 0, 1, ... By default, it is called with them.
    reduce_vjp : callable, optional
        The gradient of a reduction with one state, as in the operator table; with several, it may raise an error. Without
        it, a gradient through the reduction raises GradientError.
    """

    def __init__(
        self,
        names: Sequence[str],
        identities: Sequence[float | bool],
        combine: Combine,
        definition: Definition | None = None,
        trace: Callable[[Sequence[DType]], tuple[Expression, ...]] | None = None,
        reduce_vjp: Callable[..., Any] | None = None,
    ) -> None:
        self.combine, self.definition, self.trace = combine, definition, trace or self.trace_combine
        self.states = tuple(
            MonoidState(self, name, identity, reduce_vjp) for name, identity in zip(names, identities, strict=True)
        )
        self.traced: dict[tuple[DType, ...], tuple[Expression, ...]] = {}

    def expressions(self, dtypes: Sequence[DType]) -> tuple[Expression, ...]:
        """Return the combined states as expressions of loads: those of the first value, then those of the second.

        The function is traced once for each list of dtypes.
        """
        key = tuple(dtypes)
        if key not in self.traced:
            self.traced[key] = self.trace(key)
            for state in self.states:
                state.cost = Kernel(self.traced[key], ()).cost()
        return self.traced[key]

    def cost(self, dtypes: Sequence[DType]) -> int:
        """Return the cost of combining two values, in additions."""
        return Kernel(self.expressions(dtypes), ()).cost()

    def trace_combine(self, dtypes: Sequence[DType]) -> tuple[Expression, ...]:
        """Call the function with tracers of states."""
        loads = [TracedValue(Load(k, dtype)) for k, dtype in enumerate((*dtypes, *dtypes))]
        count = len(dtypes)
        a, b = tuple(loads[:count]), tuple(loads[count:])
        results = self.combine(a, b) if count > 1 else (self.combine(a[0], b[0]),)
        return tuple(as_expression(x, dtype) for x, dtype in zip(results, dtypes, strict=True))


class MonoidState(Operator):
    """One state of a monoid, as the operator of a reduction. In the source of a kernel, it is a function."""

    def __init__(
        self, monoid: Monoid, name: str, identity: float | bool, reduce_vjp: Callable[..., Any] | None = None
    ) -> None:
        def combine(a: object, b: object) -> object:
            return monoid.combine(a, b)

        super().__init__(combine, None, None, identity, reduce_vjp, False, "any", "same", None, 1, True)
        self.monoid, self.name = monoid, name

    @property
    def states(self) -> "tuple[Operator, ...]":
        """All states of the monoid."""
        return self.monoid.states


@cache
def monoid_of(operator: Operator) -> Monoid:
    """Return the monoid whose state an operator is; for an operator of the table, one with this operator alone."""
    if isinstance(operator, MonoidState):
        return operator.monoid
    assert operator.identity is not None
    return Monoid((operator.name,), (operator.identity,), operator)


def as_expression(x: object, dtype: DType) -> Expression:
    """Return the result of a traced function as an expression of a dtype."""
    if isinstance(x, TracedValue):
        value: Expression = x.value
        return cast(value, dtype)
    return cast(constant(x, BY_PYTHON[weak_type_of(x)]), dtype)


def reduce_states(operator: Operator, dims: tuple[int, ...], inputs: Sequence[A]) -> tuple[A, ...]:
    """Reduce dims of arrays, of which there is one for each state of an operator, and return all states."""
    return tuple(Reduce(state, dims)(*inputs) for state in operator.states)


def combine_states(operator: Operator, a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """Combine the states of two values, which may be numbers, expressions or nodes."""
    return tuple(operator.body(tuple(a), tuple(b))) if len(a) > 1 else (operator(a[0], b[0]),)
