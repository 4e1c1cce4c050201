"""Custom reductions: map each element, combine the results along dims, and finish each result.

All three are functions of single elements. A reduction is traced like any function of arrays, so it fuses. If `combine`
is an operator of the table, the reduction is differentiable. Any other function becomes a monoid, which kernels contain as
a small function. Its values may have several states.
"""

from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any, NoReturn, SupportsFloat

import numpy as np

from ..compiler import plan
from ..core.dtypes import DType, Number, as_dtype, as_number, bool_, int64, uint8
from ..core.errors import DTypeError, FuseError, GradientError
from ..core.indexing import Dims, Shape, normalize_dims
from ..core.interning import Interned
from ..core.layout import broadcast
from ..core.operators import TABLE, Operator, add
from ..core.precision import use_fast_math
from ..ir.array_functions import Full
from ..ir.array_methods import Array
from ..ir.graph import Node, literal
from ..ir.kernel_ir import Expression, Load, Op, constant
from ..ir.monoid import Monoid, reduce_states
from ..jit.guards import ClosureGuard
from ..tensors.tensor import Tensor
from .elementwise import ElementFunction, function_location, function_name
from .scalar_tracer import ScalarTracer, resolve_weak_dtype, trace_elements, trace_over

PROBE_VALUES = (0.5, 1.0, 3.0)  # arguments in the test of `combine`
DIFFERENTIABLE_COMBINES = "a + b, a * b, mf.maximum and mf.minimum"


class ReductionCall(metaclass=Interned):
    """A reduction as one call uses it: its dims, and the closure and global state that it reads.

    Called on nodes, the object returns a node.
    """

    __slots__ = ("__name__", "__weakref__", "dims", "keepdim", "reduction")

    def __init__(self, reduction: "Reduction", outside: Hashable, dims: Dims, keepdim: bool) -> None:
        self.reduction, self.dims, self.keepdim = reduction, dims, keepdim
        self.__name__ = reduction.__name__

    def __call__(self, *inputs: Node | Number) -> Node | tuple[Node, ...]:
        """Map, reduce, and finish."""
        nodes = [x if isinstance(x, Node) else literal(x) for x in inputs]
        shape = broadcast(*[x.shape for x in nodes])
        reduction, dims = self.reduction, tuple(sorted(normalize_dims(self.dims, len(shape))))
        states = reduction.mapped(nodes, shape)
        operator = reduction.operator(tuple(x.dtype for x in states))
        states = reduce_states(operator, dims, states) if dims else tuple(x.clone() for x in states)
        results = reduction.finished(states)
        dropped = tuple(n for d, n in enumerate(states[0].shape) if d not in dims)
        results = results if self.keepdim else tuple(y.reshape(dropped) for y in results)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"{self.__name__} over {'all dims' if self.dims is None else self.dims}"


class Reduction:
    """A reduction of mapped elements; `mf.reduction` makes one."""

    def __init__(
        self,
        map: ElementFunction | None,  # noqa: A002  # the user's word
        combine: ElementFunction,
        finish: ElementFunction | None,
        identity: float | bool | tuple[float | bool, ...],
        name: str,
    ) -> None:
        self.map, self.combine, self.finish, self.identity = map, combine, finish, identity
        self.identities = identity if isinstance(identity, tuple) else (identity,)
        self.__name__ = name
        self.__doc__ = f"{name}(*tensors, dim=None, keepdim=False): a reduction made with mf.reduction."
        self.guard, self.combine_guard = ClosureGuard((map, combine, finish)), ClosureGuard(combine)
        self.operators: dict[tuple[tuple[DType, ...], Hashable], Operator] = {}

    def __call__(self, *inputs: object, dim: Dims = None, keepdim: bool = False) -> Any:
        """Reduce the broadcast tensors along some dims; by default along all."""
        return plan.call(self.bind_arguments(inputs, dim, keepdim), *inputs)

    def bind_arguments(self, inputs: Sequence[object], dim: Dims, keepdim: bool) -> ReductionCall:
        """Return the reduction as this call uses it."""
        if not any(isinstance(x, Array) for x in inputs):
            got = ", ".join(type(x).__name__ for x in inputs) or "no arguments"
            raise FuseError(f"{self.__name__}: got {got}, expected at least one tensor; use mf.tensor")
        count = len(self.identities)
        if self.map is None and len(inputs) != count:
            states = f", one for each state of identity {self.identity}" * (count > 1)
            raise FuseError(
                f"{self.__name__}: got {len(inputs)} arguments, expected {count}{states}; pass map= to combine other tensors"
            )
        outside = self.guard.fingerprint()
        if self.guard.tensors:
            raise FuseError(f"{self.__name__} reads an array from a closure or a global; pass it as an argument of map")
        dims = tuple(map(as_number, dim)) if isinstance(dim, list | tuple) else as_number(dim)
        return ReductionCall(self, outside, dims, bool(keepdim))

    def mapped(self, nodes: Sequence[Node], shape: Shape) -> tuple[Node, ...]:
        """Return the states of each element."""
        count = len(self.identities)
        if self.map is None:
            return tuple(x.expand(*shape) for x in nodes)
        if count == 1:
            return (trace_over_nodes(self.map, nodes, shape, "map"),)
        results = trace_elements(self.map, nodes, shape)
        dtype = next(x.dtype for x in nodes if not x.is_number)
        return tuple(self.as_state(x, dtype, shape) for x in self.checked_states(results, self.map, "map"))

    def as_state(self, x: object, dtype: DType, shape: Shape) -> Node:
        """Return one state of each element. A number takes the type that it has in an operation with the first tensor."""
        if isinstance(x, ScalarTracer) and not x.value.is_number:
            return x.node.expand(*shape)
        number = x.node if isinstance(x, ScalarTracer) else literal(x)
        own = number.dtype
        resolved = add.result_dtype(dtype, own)[1] if isinstance(own, type) and own is not bool else as_dtype(own)
        return Node(Full(shape, resolved), (number.to(resolved),), shape, resolved)

    def checked_states(self, results: object, function: ElementFunction, part: str) -> tuple[object, ...]:
        """Return the states that a function returned. Raise FuseError for another number of values."""
        count = len(self.identities)
        if isinstance(results, tuple | list) and len(results) == count:
            return tuple(results)
        got = f"{len(results)} values" if isinstance(results, tuple | list) else "None" if results is None else "one value"
        raise FuseError(
            f"{function_location(function)}: {self.__name__}: {part} returned {got}, expected a tuple of {count}, one for "
            f"each state of identity {self.identity}"
        )

    def finished(self, states: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return the results, given the states of each result."""
        if self.finish is None:
            return states
        if len(states) == 1:
            return (trace_over_nodes(self.finish, states, states[0].shape, "finish"),)
        results = trace_elements(self.finish, states, states[0].shape)
        parts = results if isinstance(results, tuple | list) else (results,)
        return tuple(as_result(x, self.finish, states[0].shape, "finish") for x in parts)

    def operator(self, dtypes: tuple[DType, ...]) -> Operator:
        """Return the operator that reduces states of these element types. It is cached while `combine` is unchanged."""
        key = dtypes, self.combine_guard.fingerprint()
        if key not in self.operators:
            self.operators[key] = self.find_operator(dtypes)
        return self.operators[key]

    def find_operator(self, dtypes: tuple[DType, ...]) -> Operator:
        """Return the operator of the table that `combine` equals, or a new one."""
        for k, (identity, dtype) in enumerate(zip(self.identities, dtypes, strict=True)):
            self.check_identity(identity, dtype, f" of state {k}" * (len(dtypes) > 1))
        names = [f"{self.__name__}_{k}" for k in range(len(dtypes))] if len(dtypes) > 1 else ["combine"]
        monoid = Monoid(names, self.identities, self.combine_values, None, self.expressions, self.refuse_gradient)
        new, e = monoid.states[0], monoid.expressions(dtypes)[0]
        if len(dtypes) == 1 and isinstance(e, Op) and e.operator is not None:
            entry, operands = TABLE.get(e.operator.name), {*e.inputs}
            is_entry = entry is e.operator and operands == {Load(0, e.dtype), Load(1, e.dtype)}
            has_identity = entry is not None and entry.identity is not None
            if entry and is_entry and has_identity and entry.identity_for(e.dtype) == new.identity_for(e.dtype):
                return entry
        self.check_monoid(monoid, dtypes)
        return new

    def check_identity(self, identity: float | bool, dtype: DType, state: str) -> None:
        """Raise DTypeError if an identity is no number of an element type."""
        if (dtype is bool_) is not isinstance(identity, bool):
            advice = "reduce bools with a bool; convert in map, as in x.to(mf.int64), or pass another identity"
            raise DTypeError(f"{self.__name__}: identity {identity}{state} does not fit a reduction of {dtype}; {advice}")
        if dtype.is_integer and isfinite(identity) and identity != int(identity):
            advice = "map to a float type, or pass another identity"
            raise DTypeError(f"{self.__name__}: identity {identity}{state} is not an {dtype}; {advice}")

    def combine_values(self, a: Any, b: Any) -> Any:
        """Combine two values, which may be nodes of a graph: those are traced."""
        if not (isinstance(a, tuple) and isinstance(a[0], Node)):
            return self.combine(a, b)
        shape, (first, second) = a[0].shape, ([ScalarTracer(x) for x in value] for value in (a, b))
        with trace_over(shape, no_index), use_fast_math(False):
            results = self.checked_states(self.combine(tuple(first), tuple(second)), self.combine, "combine")
        return tuple(self.as_state(x, state.dtype, shape) for x, state in zip(results, a, strict=True))

    def expressions(self, dtypes: Sequence[DType]) -> tuple[Expression, ...]:
        """Trace `combine` on two values, given the element type of each state."""
        count = len(dtypes)
        tracers = [ScalarTracer(Load(k, dtype)) for k, dtype in enumerate((*dtypes, *dtypes))]
        a, b = (tuple(tracers[:count]), tuple(tracers[count:])) if count > 1 else tracers
        with trace_over((), no_index), use_fast_math(False):  # the operator is cached for all settings
            results = self.combine(a, b)
        values = self.checked_states(results, self.combine, "combine") if count > 1 else (results,)
        return tuple(
            self.as_expression(x, dtype, f" in state {k}" * (count > 1))
            for k, (x, dtype) in enumerate(zip(values, dtypes, strict=True))
        )

    def as_expression(self, result: object, dtype: DType, state: str) -> Expression:
        """Return a value that `combine` returned as an expression. Raise FuseError if it has another element type."""
        if isinstance(result, ScalarTracer):
            if result.dtype is not dtype:
                advice = "convert the result, or map to that type first"
                got = f"combine returned {result.dtype}{state} for two values of {dtype}"
                raise FuseError(f"{function_location(self.combine)}: {self.__name__}: {got}; {advice}")
            return resolve_weak_dtype(result.expression, dtype)
        if not isinstance(result, bool | int | float):
            got = "None" if result is None else type(result).__name__
            raise FuseError(
                f"{function_location(self.combine)}: {self.__name__}: combine returned {got}{state}, expected one element"
            )
        return constant(result, dtype)

    def check_monoid(self, monoid: Monoid, dtypes: tuple[DType, ...]) -> None:
        """Test with a few numbers that `combine` has this identity, is commutative and is associative."""
        kinds = [dtype.numpy.type for dtype in dtypes]
        probes = [
            (True, False, True) if dtype is bool_ else (1, 2, 3) if dtype.is_integer else PROBE_VALUES for dtype in dtypes
        ]

        def value(numbers: Sequence[float]) -> Any:
            values = tuple(kind(x) for kind, x in zip(kinds, numbers, strict=True))
            return values if len(values) > 1 else values[0]

        def equal(x: Any, y: Any) -> bool:
            xs, ys = (v if isinstance(v, tuple | list) else (v,) for v in (x, y))
            return all(map(is_near, xs, ys, dtypes))

        combine, a, b, c = self.combine, *map(value, zip(*probes, strict=True))
        one = value([state.identity_for(dtype) for state, dtype in zip(monoid.states, dtypes, strict=True)])
        low = value([True if dtype is bool_ else 0 if dtype is uint8 else -2 for dtype in dtypes])
        checked = [(one, one, one), (one, b, b), (c, one, c)]
        if len(dtypes) == 1:  # states depend on each other, so not any numbers are states
            checked += [(low, one, low), (one, low, low)]
        with np.errstate(all="ignore"):
            for x, y, expected in checked:
                got = combine(x, y)
                is_lost = expected is not low or got == one  # combine may be valid for positive numbers only
                if is_lost and not equal(got, expected):
                    rule = f"so {self.identity} is not its identity; pass another identity="
                    raise self.monoid_error(f"combine({plain(x)}, {plain(y)}) returned {plain(got)}, {rule}")
            if not equal(combine(a, b), combine(b, a)):
                pair = f"combine({plain(a)}, {plain(b)}) returned {plain(combine(a, b))}"
                pair += f", and combine({plain(b)}, {plain(a)}) {plain(combine(b, a))}"
                raise self.monoid_error(f"{pair}; it must be commutative, since threads combine in any order")
            left, right = combine(combine(a, b), c), combine(a, combine(b, c))
            if not equal(left, right):
                first = f"combine(combine({plain(a)}, {plain(b)}), {plain(c)}) returned {plain(left)}"
                other = f"combine({plain(a)}, combine({plain(b)}, {plain(c)})) {plain(right)}"
                raise self.monoid_error(f"{first}, and {other}; it must be associative, since threads combine in any order")

    def monoid_error(self, violation: str) -> FuseError:
        """Return the error for a `combine` that violates a requirement."""
        return FuseError(f"{function_location(self.combine)}: {self.__name__}: {violation}")

    def refuse_gradient(self, *values: object) -> NoReturn:
        """Raise the error for the gradient of a `combine` that has none."""
        advice = f"use one of {DIFFERENTIABLE_COMBINES} with its usual identity"
        raise GradientError(
            f"{self.__name__}: its combine has no gradient; {advice}, or pass x.detach(), or call it in mf.no_grad()"
        )

    def source(self, *inputs: object, dim: Dims = None, keepdim: bool = False, backend: str | None = None) -> str:
        """Return the source that a call runs, as `mf.source` does; with `backend`, the source for that backend."""
        call = self.bind_arguments(inputs, dim, keepdim)
        moved: list[Any] = [x.detach().to(backend) if isinstance(x, Tensor) and backend else x for x in inputs]
        return plan.Plan(call, moved).source()

    @property
    def __guarded__(self) -> tuple[object, ...]:
        """Return the functions, which a guard of another function checks in the place of this object."""
        return self.map, self.combine, self.finish, self.identity

    def __repr__(self) -> str:
        return f"<reduction {self.__name__}>"


def is_near(a: SupportsFloat, b: SupportsFloat, dtype: DType) -> bool:
    """Return True if two numbers are equal up to rounding."""
    tolerance = 100 * np.finfo(dtype.numpy).eps if dtype.is_float else 0
    return bool(np.isclose(float(a), float(b), rtol=tolerance, atol=0))


def plain(x: Any) -> Any:
    """Return states with Python numbers, for a message; one number unchanged."""
    return tuple([getattr(state, "item", lambda state=state: state)() for state in x]) if isinstance(x, tuple | list) else x


def no_index(dim: int) -> Expression:
    """Return an index for a function that never asks for one: two values that are combined have no dims."""
    return Load(dim, int64)


def trace_over_nodes(function: ElementFunction, nodes: Sequence[Node], shape: Shape, part: str) -> Node:
    """Trace a function of elements on nodes, over a shape."""
    return as_result(trace_elements(function, nodes, shape), function, shape, part)


def as_result(result: object, function: ElementFunction, shape: Shape, part: str) -> Node:
    """Return one element that a function returned as a node of a shape."""
    if not isinstance(result, ScalarTracer) or result.value.is_number:
        got = "None" if result is None else type(result).__name__
        raise FuseError(
            f"{function_location(function)}: {part} returned {got}, expected one element that is computed from its arguments"
        )
    return result.node.expand(*shape)


def reduction(
    *,
    map: ElementFunction | None = None,  # noqa: A002  # the user's word
    combine: ElementFunction,
    finish: ElementFunction | None = None,
    identity: float | bool | Sequence[float | bool],
    name: str | None = None,
) -> Reduction:
    """Make a reduction from three functions of single elements: finish(combine(map(x0), map(x1), ...)).

    Parameters
    ----------
    map : callable, optional
        Maps an element of each tensor to the value that is combined. Default: the element itself. With several states, it
        returns a tuple; by default, there is a tensor for each state.
    combine : callable
        Combines two values of one type to one of this type. Up to rounding, it must be associative and commutative:
        (a b) c = a (b c) and a b = b a. With several states, it combines two tuples to a tuple.
    finish : callable, optional
        Applied to each result. With several states, it takes each of them, and returns one element or a tuple. By default,
        the result is a tuple of all states.
    identity : bool, int or float, or a tuple of them
        The identity element: combine(identity, x) = x. It is the result if there are no elements. A tuple has a number for
        each of several states. For integers, infinities become the ends of the range. Identity, associativity and
        commutativity are tested with a few numbers at the first use with an element type.
    name : str, optional
        The name in messages. Default: the name of `combine`.

    Returns
    -------
    Reduction
        Call it with tensors that broadcast, `dim` (an int, several, or None for all) and `keepdim`, as in `x.sum`.
        `source(*tensors, dim=..., backend=...)` returns the source that a call runs.

    Raises
    ------
    FuseError
        A function branches on a value or returns another number of states, or `combine` fails the test.
    GradientError
        A gradient is required through a `combine` that is none of a + b, a * b, mf.maximum and mf.minimum.
    DTypeError
        The identity is not a number of the mapped type.

    Notes
    -----
    Values are reduced in the type that `map` returns: 32-bit integers wrap around, where `x.sum()` would use 64 bits. A
    reduction with an operator of the table costs the same as `x.sum`; another one is not vectorized along rows on the
    CPU. Large reductions are split into chunks by a rule that depends only on the shape, so the order of combination
    depends only on the shape, too.

    Examples
    --------
    >>> import minifuse as mf
    >>> l2 = mf.reduction(map=lambda x: x * x, combine=lambda a, b: a + b, finish=mf.sqrt, identity=0.0)
    >>> x = mf.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> l2(x, dim=1, keepdim=True)
    tensor([[ 5.],
            [10.]])
    >>> largest = mf.reduction(combine=lambda a, b: mf.where(abs(a) > abs(b), a, b), identity=0.0)
    >>> largest(mf.tensor([3.0, -7.0, 5.0]))
    tensor(-7.)

    Two states, the smallest and the largest element, in one sweep:

    >>> spread = mf.reduction(
    ...     map=lambda x: (x, x),
    ...     combine=lambda a, b: (mf.minimum(a[0], b[0]), mf.maximum(a[1], b[1])),
    ...     finish=lambda low, high: high - low,
    ...     identity=(float("inf"), float("-inf")),
    ... )
    >>> spread(x, dim=1)
    tensor([1., 2.])
    """
    for part, function in (("map", map), ("combine", combine), ("finish", finish)):
        if function is not None and not callable(function):
            raise FuseError(f"reduction: {part}= is {type(function).__name__}, expected a function of elements")
    identities = tuple([as_number(x) for x in identity]) if isinstance(identity, tuple | list) else (identity,)
    if isinstance(identity, tuple | list) and len(identities) < 2:
        advice = f"write identity={identities[0]}" if identities else "pass a number for each state"
        raise FuseError(f"reduction: identity= has {len(identities)} states, expected at least two in a tuple; {advice}")
    for x in identities:
        if not isinstance(x, bool | int | float):
            raise FuseError(f"reduction: identity= contains {type(x).__name__}, expected a number for each state")
    if name is None:
        name = function_name(combine).replace("<lambda>", "reduction")
    return Reduction(map, combine, finish, identities if len(identities) > 1 else identities[0], name)
