"""Custom reductions: map each element, combine the results along dims, and finish each result.

All three are functions of single elements. A reduction is traced like any function of arrays, so it fuses. If `combine`
is an operator of the table, the reduction is differentiable. Any other function becomes a new operator, which kernels
contain as a small function.
"""

from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any, NoReturn, SupportsFloat

import numpy as np

from ..compiler import plan
from ..core.dtypes import DType, Number, as_number, bool_, int64
from ..core.errors import DTypeError, FuseError, GradientError
from ..core.indexing import Dims, Shape, normalize_dims
from ..core.interning import Interned
from ..core.layout import broadcast
from ..core.operators import TABLE, Operator
from ..core.precision import use_fast_math
from ..ir.array_functions import Reduce
from ..ir.array_methods import Array
from ..ir.graph import Node, literal
from ..ir.kernel_ir import Expression, Load, Op, constant
from ..ir.monoid import Monoid
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

    def __call__(self, *inputs: Node | Number) -> Node:
        """Map, reduce, and finish."""
        nodes = [x if isinstance(x, Node) else literal(x) for x in inputs]
        shape = broadcast(*[x.shape for x in nodes])
        reduction, dims = self.reduction, tuple(sorted(normalize_dims(self.dims, len(shape))))
        x = trace_over_nodes(reduction.map, nodes, shape, "map") if reduction.map else nodes[0]
        y = Reduce(reduction.operator(x.dtype), dims)(x) if dims else x.clone()
        y = trace_over_nodes(reduction.finish, [y], y.shape, "finish") if reduction.finish else y
        result: Node = y if self.keepdim else y.reshape(tuple(n for d, n in enumerate(y.shape) if d not in dims))
        return result

    def __repr__(self) -> str:
        return f"{self.__name__} over {'all dims' if self.dims is None else self.dims}"


class Reduction:
    """A reduction of mapped elements; `mf.reduction` makes one."""

    def __init__(
        self,
        map: ElementFunction | None,  # noqa: A002  # the user's word
        combine: ElementFunction,
        finish: ElementFunction | None,
        identity: float | bool,
        name: str,
    ) -> None:
        self.map, self.combine, self.finish, self.identity = map, combine, finish, identity
        self.__name__ = name
        self.__doc__ = f"{name}(*tensors, dim=None, keepdim=False): a reduction made with mf.reduction."
        self.guard, self.combine_guard = ClosureGuard((map, combine, finish)), ClosureGuard(combine)
        self.operators: dict[tuple[DType, Hashable], Operator] = {}

    def __call__(self, *inputs: object, dim: Dims = None, keepdim: bool = False) -> Any:
        """Reduce the broadcast tensors along some dims; by default along all."""
        return plan.call(self.bind_arguments(inputs, dim, keepdim), *inputs)

    def bind_arguments(self, inputs: Sequence[object], dim: Dims, keepdim: bool) -> ReductionCall:
        """Return the reduction as this call uses it."""
        if not any(isinstance(x, Array) for x in inputs):
            got = ", ".join(type(x).__name__ for x in inputs) or "no arguments"
            raise FuseError(f"{self.__name__}: got {got}, expected at least one tensor; use mf.tensor")
        if self.map is None and len(inputs) > 1:
            raise FuseError(
                f"{self.__name__}: got {len(inputs)} arguments, expected 1; pass map= to combine several tensors"
            )
        outside = self.guard.fingerprint()
        if self.guard.tensors:
            raise FuseError(f"{self.__name__} reads an array from a closure or a global; pass it as an argument of map")
        dims = tuple(map(as_number, dim)) if isinstance(dim, list | tuple) else as_number(dim)
        return ReductionCall(self, outside, dims, bool(keepdim))

    def operator(self, dtype: DType) -> Operator:
        """Return the operator that reduces values of an element type. It is cached while `combine` is unchanged."""
        key = dtype, self.combine_guard.fingerprint()
        if key not in self.operators:
            self.operators[key] = self.find_operator(dtype)
        return self.operators[key]

    def find_operator(self, dtype: DType) -> Operator:
        """Return the operator of the table that `combine` equals, or a new one."""
        kind = type(self.identity)
        if (dtype is bool_) is not (kind is bool):
            advice = "reduce bools with a bool; convert in map, as in x.to(mf.int64), or pass another identity"
            raise DTypeError(f"{self.__name__}: identity {self.identity} does not fit a reduction of {dtype}; {advice}")
        if dtype.is_integer and isfinite(self.identity) and self.identity != int(self.identity):
            raise DTypeError(
                f"{self.__name__}: identity {self.identity} is not an {dtype}; map to a float type, or pass another identity"
            )
        monoid = Monoid(("combine",), (self.identity,), self.combine, None, self.expressions, self.refuse_gradient)
        (new,), (e,) = monoid.states, monoid.expressions((dtype,))
        if isinstance(e, Op) and e.operator is not None and {*e.inputs} == {Load(0, dtype), Load(1, dtype)}:
            entry = TABLE.get(e.operator.name)
            if entry is e.operator and entry.identity is not None and entry.identity_for(dtype) == new.identity_for(dtype):
                return entry
        self.check_monoid(new.identity_for(dtype), dtype)
        return new

    def expressions(self, dtypes: Sequence[DType]) -> tuple[Expression, ...]:
        """Trace `combine` on two values, given the element type of each state."""
        return (self.expression(dtypes[0]),)

    def expression(self, dtype: DType) -> Expression:
        """Trace `combine` on two values of an element type."""
        index_along = lambda d: Load(d, int64)  # noqa: E731  # never called: the two values have no dims
        with trace_over((), index_along), use_fast_math(False):  # the operator is cached for all settings
            result = self.combine(ScalarTracer(Load(0, dtype)), ScalarTracer(Load(1, dtype)))
        if isinstance(result, ScalarTracer):
            if result.dtype is not dtype:
                advice = "convert the result, or map to that type first"
                got = f"combine returned {result.dtype} for two values of {dtype}"
                raise FuseError(f"{function_location(self.combine)}: {self.__name__}: {got}; {advice}")
            return resolve_weak_dtype(result.expression, dtype)
        if not isinstance(result, bool | int | float):
            got = "None" if result is None else type(result).__name__
            raise FuseError(
                f"{function_location(self.combine)}: {self.__name__}: combine returned {got}, expected one element"
            )
        return constant(result, dtype)

    def check_monoid(self, identity: Number, dtype: DType) -> None:
        """Test with a few numbers that `combine` has this identity, is commutative and is associative."""
        kind, combine = dtype.numpy.type, self.combine
        one, low = kind(identity), kind(-2) if dtype is not bool_ else kind(True)
        values = (True, False, True) if dtype is bool_ else (1, 2, 3) if dtype.is_integer else PROBE_VALUES
        a, b, c = map(kind, values)
        with np.errstate(all="ignore"):
            for x, y, expected in ((one, one, one), (one, b, b), (c, one, c), (low, one, low), (one, low, low)):
                got = combine(x, y)
                is_lost = expected is not low or got == one  # combine may be valid for positive numbers only
                if is_lost and not is_near(got, expected, dtype):
                    rule = f"so {identity} is not its identity; pass another identity="
                    raise self.monoid_error(f"combine({x}, {y}) returned {got}, {rule}")
            if not is_near(combine(a, b), combine(b, a), dtype):
                pair = f"combine({a}, {b}) returned {combine(a, b)}, and combine({b}, {a}) {combine(b, a)}"
                raise self.monoid_error(f"{pair}; it must be commutative, since threads combine in any order")
            if not is_near(combine(combine(a, b), c), combine(a, combine(b, c)), dtype):
                left = f"combine(combine({a}, {b}), {c}) returned {combine(combine(a, b), c)}"
                right = f"combine({a}, combine({b}, {c})) {combine(a, combine(b, c))}"
                raise self.monoid_error(f"{left}, and {right}; it must be associative, since threads combine in any order")

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


def trace_over_nodes(function: ElementFunction, nodes: Sequence[Node], shape: Shape, part: str) -> Node:
    """Trace a function of elements on nodes, over a shape."""
    result = trace_elements(function, nodes, shape)
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
    identity: float | bool,
    name: str | None = None,
) -> Reduction:
    """Make a reduction from three functions of single elements: finish(combine(map(x0), map(x1), ...)).

    Parameters
    ----------
    map : callable, optional
        Maps an element of each tensor to the value that is combined. Default: the element itself.
    combine : callable
        Combines two values of one type to one of this type. Up to rounding, it must be associative and commutative:
        (a b) c = a (b c) and a b = b a.
    finish : callable, optional
        Applied to each result.
    identity : bool, int or float
        The identity element: combine(identity, x) = x. It is the result if there are no elements. For integers, infinities
        become the ends of the range. Identity, associativity and commutativity are tested with a few numbers at the first
        use with an element type.
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
        A function branches on a value, or `combine` fails the test.
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
    """
    for part, function in (("map", map), ("combine", combine), ("finish", finish)):
        if function is not None and not callable(function):
            raise FuseError(f"reduction: {part}= is {type(function).__name__}, expected a function of elements")
    if name is None:
        name = function_name(combine).replace("<lambda>", "reduction")
    return Reduction(map, combine, finish, identity, name)
