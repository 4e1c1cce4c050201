"""Kernel IR: the scalar expressions that a kernel computes, and the loops that it runs in.

A kernel is a few scalar expressions over one iteration space. A reduction is an expression too: `ReduceExpr` reduces its
input along the row. So a map, a reduction with anything before and after it, a softmax and a layer norm are all kernels of
one kind, and fusing means substituting expressions. A reduction may also be nested in another one, and then reduces axes of
its own. Expressions have no loops, sizes or strides; those are in `LoopNest`. Nothing here depends on a backend, a tensor or
generated source. `reference.py` runs a kernel in plain Python: it is the definition of these expressions.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from ..core.dtypes import DType, bool_, int32, weak_type_of
from ..core.indexing import format_dims
from ..core.interning import Interned, toposort
from ..core.layout import Layout
from ..core.operator_entry import TracedValue
from ..core.operators import Operator
from ..core.traceable import Traceable, refuse_to_read
from .loop_nest import LoopNest as LoopNest
from .loop_nest import Shape as Shape
from .loop_nest import stride_kind as stride_kind
from .loop_nest import stride_kinds_of as stride_kinds_of


class Expression(Traceable, metaclass=Interned):
    """A scalar at each point of the iteration space. Interned, so a common subexpression is one object.

    Only loads, parameters and casts are int8, int16 or uint8: operators compute them as int32, and a cast wraps the result
    around. So a backend needs no operators of these dtypes.
    """

    __slots__ = ("__weakref__", "dtype", "inputs")
    dtype: DType
    inputs: "tuple[Expression, ...]"

    def apply(self, operator: Operator, *inputs: object) -> "Expression":
        """Apply an operator to expressions and numbers. Operators that are not primitive are inlined."""
        dtypes = [x.dtype if isinstance(x, Expression) else weak_type_of(x) for x in inputs]
        dtype, result_dtype = operator.result_dtype(*dtypes)
        if dtype.is_small:
            dtype = int32  # the result is converted, so it wraps around

        def convert(k: int, x: object) -> Expression:
            is_condition = operator.name == "where" and k == 0
            if not isinstance(x, Expression):
                return constant(x, bool_ if is_condition else dtype)
            return x if is_condition or x.dtype is dtype else cast(x, dtype)

        is_uniform = dtypes.count(dtype) == len(dtypes)  # no operand is cast
        operands: Any = inputs if is_uniform else tuple([convert(k, x) for k, x in enumerate(inputs)])
        if dtype is bool_ and operator.on_bools is not None:
            operator = operator.on_bools
        if operator.is_primitive:
            return cast(Op(operator, operands, bool_ if result_dtype is bool_ else dtype), result_dtype)
        result = operator.inline(*map(TracedValue, operands))
        return cast(result.value, result_dtype) if isinstance(result, TracedValue) else constant(result, result_dtype)

    __float__ = __int__ = __index__ = refuse_to_read


class Load(Expression):
    """The element of input number `index` at this point."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class IndexValue(Load):
    """The position of this point in input number `index`, which has a layout but no memory: its element at position p is p.

    Its dtype is int64. The launch passes the position of the first element where other inputs have an address. With stride 1
    along one dim and stride 0 along all others, the value is the index of the point along that dim.
    """

    __slots__ = ()


class ReadOutput(Expression):
    """The element of output number `index` before the kernel overwrites it: an input of an in-place operation."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class KernelParameter(Expression):
    """Scalar argument number `index` of the launch."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class Constant(Expression):
    """A number in the source. It is stored as text, because interning would merge 0.0 with -0.0, and 1 with True."""

    __slots__ = ("text",)

    def __init__(self, text: str, dtype: DType) -> None:
        self.text, self.dtype, self.inputs = text, dtype, ()

    @property
    def value(self) -> bool | int | float:
        """The number, as a Python object."""
        return self.text == "True" if self.dtype is bool_ else float(self.text) if self.dtype.is_float else int(self.text)


class Op(Expression):
    """A primitive operator applied to its inputs, or a cast to `dtype` if the operator is None."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator | None, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.operator, self.inputs, self.dtype = operator, inputs, dtype


class ReduceExpr(Expression):
    """The reduction of its inputs along some axes, starting at the identity of the operator.

    An operator of the table reduces one input. The operator of a `Monoid` is one of its states, and there is an input for
    each state: they are combined together, so all states of a reduction have the same inputs.

    `dims` are the axes of the step's iteration space that it reduces. None means all `dims` of the step, so the value is one
    per row. The value is constant along the reduced axes, whatever other reductions do there.
    """

    __slots__ = ("dims", "operator")

    def __init__(
        self, operator: Operator, inputs: tuple[Expression, ...], dtype: DType, dims: tuple[int, ...] | None = None
    ) -> None:
        self.operator, self.inputs, self.dtype, self.dims = operator, inputs, dtype, dims

    @property
    def states(self) -> "tuple[ReduceExpr, ...]":
        """All states of this reduction, one for each input: itself, unless the operator is that of a monoid with several."""
        if len(self.inputs) == 1:
            return (self,)
        pairs = zip(self.operator.states, self.inputs, strict=True)
        return tuple(reduce_expr(state, self.inputs, self.dims, x.dtype) for state, x in pairs)

    @property
    def identity(self) -> bool | int | float:
        """The value of this reduction of no elements."""
        return self.operator.identity_for(self.dtype)

    def reduced(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes that this reduction reduces in a step that reduces `dims`."""
        return dims if self.dims is None else self.dims


class OpaqueOutput(Expression):
    """One output of a composite op, which the backend computes in a way of its own. Its inputs are all inputs of the op."""

    __slots__ = ("name",)

    def __init__(self, name: str, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.name, self.inputs, self.dtype = name, inputs, dtype


class IndexedAccess(Expression):
    """An access to indexed operand number `index`, at an index that the kernel computes.

    An indexed operand is an array that does not follow the iteration space. `inputs` are the int64 index along each of its
    dims, which is not checked, and the value, for a store. `stores_before` is the number of effects that the kernel runs
    before this access, so equal loads before and after a store stay distinct.
    """

    __slots__ = ("index", "stores_before")

    def __init__(self, index: int, stores_before: int, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.index, self.stores_before, self.inputs, self.dtype = index, stores_before, inputs, dtype


class IndexedLoad(IndexedAccess):
    """Load an element of an indexed operand."""

    __slots__ = ()


class IndexedStore(IndexedAccess):
    """An effect: store the value in an element of an indexed operand. Of several stores to one element, any may be last."""

    __slots__ = ()


class AtomicAdd(IndexedAccess):
    """An effect: add the value to an element of an indexed operand atomically."""

    __slots__ = ()


class Accumulator(Expression):
    """The complete sum of a matmul at this point: the input of its epilogue."""

    __slots__ = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype, self.inputs = dtype, ()


E = TypeVar("E", bound=Expression)

inputs_of: Callable[[Expression], tuple[Expression, ...]] = attrgetter("inputs")  # for toposort
index_of: Callable[[Load | KernelParameter | IndexedAccess], int] = attrgetter("index")


def constant(value: Any, dtype: DType) -> Constant:
    """Return a literal of a dtype."""
    kind = bool if dtype is bool_ else float if dtype.is_float else int
    return Constant(repr(kind(value)), dtype)


def cast(x: Expression, dtype: DType) -> Expression:
    """Convert an expression to another dtype. A float becomes a small integer by way of int32, so it wraps around."""
    if x.dtype is dtype:
        return x
    if isinstance(x, Constant) and x.dtype.is_small and dtype is int32:
        return Constant(x.text, int32)
    if dtype.is_small and x.dtype is int32 and isinstance(x, Op) and x.operator is None and x.inputs[0].dtype is dtype:
        return x.inputs[0]
    return Op(None, (cast(x, int32) if dtype.is_small and x.dtype.is_float else x,), dtype)


def widen(x: Expression) -> Expression:
    """Convert int8, int16 and uint8 to int32, as which kernels compute them; return any other expression unchanged."""
    return cast(x, int32) if x.dtype.is_small else x


def reduce_expr(
    operator: Operator,
    inputs: Expression | tuple[Expression, ...],
    dims: tuple[int, ...] | None = None,
    dtype: DType | None = None,
) -> ReduceExpr:
    """Return the reduction of an expression, or of one for each state. For bools, use the `on_bools` of the operator."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    dtype = dtype or inputs[operator.states.index(operator)].dtype
    arguments = (dtype is bool_ and operator.on_bools) or operator, inputs, dtype
    return ReduceExpr(*arguments) if dims is None else ReduceExpr(*arguments, dims)


def distinct_reductions(reductions: "Iterable[ReduceExpr]") -> list[ReduceExpr]:
    """Return one expression for each reduction: the first one of those that are states of the same reduction."""
    first: dict[ReduceExpr, ReduceExpr] = {}
    for e in reductions:
        first.setdefault(e.states[0], e)
    return [*first.values()]


def is_op(e: Expression, operator: Operator) -> bool:
    """Return whether an expression applies an operator, or its approximation."""
    return isinstance(e, Op) and e.operator is not None and e.operator.exact is operator


def with_inputs(e: Expression, inputs: tuple[Expression, ...]) -> Expression:
    """Return the same function of other inputs."""
    if isinstance(e, Op):
        return Op(e.operator, inputs, e.dtype)
    if isinstance(e, ReduceExpr):
        return reduce_expr(e.operator, inputs, e.dims, e.dtype)
    if isinstance(e, OpaqueOutput):
        return OpaqueOutput(e.name, inputs, e.dtype)
    return type(e)(e.index, e.stores_before, inputs, e.dtype) if isinstance(e, IndexedAccess) else e


def replace(e: Expression, kind: "type[E]", change: "Callable[[E], Expression]") -> Expression:
    """Rebuild an expression with each subexpression of class `kind` replaced by `change(subexpression)`."""
    return replace_in((e,), kind, change)[0]


def replace_in(
    roots: "Sequence[Expression]", kind: "type[E]", change: "Callable[[E], Expression]"
) -> tuple[Expression, ...]:
    """Rebuild some expressions with each subexpression of class `kind` replaced. What they share is rebuilt once."""
    rebuilt: dict[Expression, Expression] = {}
    for x in toposort(roots, lambda x: () if isinstance(x, kind) else x.inputs):
        rebuilt[x] = change(x) if isinstance(x, kind) else with_inputs(x, tuple([rebuilt[i] for i in x.inputs]))
    return tuple(rebuilt[e] for e in roots)


class StepKernel(metaclass=Interned):
    """The computation of a step of a plan: expressions of its inputs, without sizes, strides and memory. One of five kinds.

    Attributes
    ----------
    pointwise_outputs : tuple of Expression
        Stored at each point of the iteration space.
    row_outputs : tuple of Expression
        Stored once per row.
    effects : tuple of IndexedAccess
        Changes of indexed operands.
    factors : tuple of Expression
        The two operands that a matmul multiplies; empty for other kernels.
    outputs : tuple of Expression
        All stored expressions: pointwise outputs, then row outputs.
    order : tuple of Expression
        All expressions, inputs first. They are stored, since they are read often.
    is_nested : bool
        True if a reduction reduces only some of the axes that the kernel reduces.
    """

    __slots__ = ("__weakref__", "found", "is_nested", "order", "outputs", "pointwise_outputs")
    pointwise_outputs: tuple[Expression, ...]
    row_outputs: tuple[Expression, ...] = ()
    effects: tuple[IndexedAccess, ...] = ()
    factors: tuple[Expression, ...] = ()

    def __init__(self, *roots: Expression) -> None:
        """Find all expressions that the roots are computed from. The outputs are known already."""
        self.outputs = self.pointwise_outputs + self.row_outputs
        self.order = expressions_of(*roots)
        self.is_nested = any(e.dims is not None for e in self.order if isinstance(e, ReduceExpr))
        self.found: dict[type, list[Any]] = {}

    def find_all(self, kind: type[E]) -> list[E]:
        """Return all expressions of a class. Loads and parameters are sorted by index."""
        if kind not in self.found:
            matches = [e for e in self.order if isinstance(e, kind)]
            self.found[kind] = sorted(matches, key=index_of) if kind in (Load, KernelParameter) else matches
        return self.found[kind]

    def indexed_dtypes(self) -> list[DType]:
        """Return the dtype of each indexed operand."""
        return [*{e.index: e.dtype for e in sorted(self.find_all(IndexedAccess), key=index_of)}.values()]

    def operand_dtypes(self) -> list[DType]:
        """Return the dtype of each output, input and indexed operand: of each address that a launch takes."""
        return [*[e.dtype for e in (*self.outputs, *self.find_all(Load))], *self.indexed_dtypes()]

    def can_overwrite(self, k: int, layout: Layout, shape: Shape, dims: tuple[int, ...]) -> bool:
        """Return whether an output may be stored over input k, which has this layout: is each element read before that?"""
        return False

    def reductions(self, dims: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the axes that each reduction reduces in a step that reduces `dims`, inner reductions first.

        The list is empty if no reduction is nested: then each of them reduces all of `dims`.
        """
        if not self.is_nested:
            return []
        return list(dict.fromkeys(e.reduced(dims) for e in self.order if isinstance(e, ReduceExpr)))

    @property
    def has_states(self) -> bool:
        """True if a reduction has several states."""
        return any(isinstance(e, ReduceExpr) and len(e.inputs) > 1 for e in self.order)

    def replace_loads(self, change: "Callable[[Load], Expression]") -> "StepKernel":
        """Rebuild this kernel with each load replaced by `change(load)`."""
        return self

    def parts(self, shape: Shape) -> "list[tuple[StepKernel, Shape]]":
        """Return the kernel and the shape of each array of a batch; for another kernel, itself and its `shape`."""
        return [(self, shape)]

    def stride_kinds(self, shape: Shape, dims: tuple[int, ...], layouts: Sequence[Layout]) -> list[str]:
        """Return the stride kinds of outputs and inputs as in the text of the kernel: a letter for each axis."""
        return list(stride_kinds_of(layouts))

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return the kind of the kernel, and its iteration space."""
        raise NotImplementedError


class Kernel(StepKernel):
    """Expressions over one iteration space: some are stored at every point of the space, others once per row.

    A pointwise kernel has only `pointwise_outputs`. `row_outputs` contain reductions. `effects` change indexed operands:
    they run at each point, in this order, before the pointwise outputs of that point are stored. A kernel with effects has
    no reductions.

    With nested reductions, a pointwise output is constant along some of the reduced axes. Its layout has stride 0 there, and
    the value is stored once.
    """

    __slots__ = ("effects", "row_outputs")

    def __init__(
        self,
        pointwise_outputs: tuple[Expression, ...],
        row_outputs: tuple[Expression, ...],
        effects: tuple[IndexedAccess, ...] = (),
    ) -> None:
        self.pointwise_outputs, self.row_outputs, self.effects = pointwise_outputs, row_outputs, effects
        super().__init__(*pointwise_outputs, *row_outputs, *effects)

    def outer_dims(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes of the reductions that are in no reduction of other axes, in a step that reduces `dims`."""
        inner = set[Expression]()
        for e in self.find_all(ReduceExpr):
            parts = toposort(e.inputs, inputs_of)
            inner |= {x for x in parts if isinstance(x, ReduceExpr) and x.reduced(dims) != e.reduced(dims)}
        outer = {d for e in self.find_all(ReduceExpr) if e not in inner for d in e.reduced(dims)}
        return tuple(d for d in dims if d in outer)

    def cost(self) -> int:
        """Return the cost of one point, in additions. A load counts as one."""
        return sum([e.operator.cost if isinstance(e, Op | ReduceExpr) and e.operator else 1 for e in self.order])

    def can_overwrite(self, k: int, layout: Layout, shape: Shape, dims: tuple[int, ...]) -> bool:
        """Return whether each element of an input is read before it may be overwritten.

        A pointwise kernel reads an element at the point where it stores it. A kernel with reductions may overwrite an input
        that has one element per row, if it stores only row outputs.
        """
        is_row_value = all(not layout.strides[d] or shape[d] == 1 for d in dims)
        return is_row_value and not (dims and self.pointwise_outputs)

    def replace_loads(self, change: "Callable[[Load], Expression]") -> "Kernel":
        """Rebuild this kernel with each load of its pointwise outputs replaced."""
        return Kernel(replace_in(self.pointwise_outputs, Load, change), self.row_outputs)

    def stride_kinds(self, shape: Shape, dims: tuple[int, ...], layouts: Sequence[Layout]) -> list[str]:
        """Return the stride kinds of outputs and inputs, with as few axes as the loops have."""
        return list(LoopNest(shape, dims, layouts, self.reductions(dims)).stride_kinds)

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return whether the kernel is pointwise or reduces rows, and its iteration space."""
        if not dims:
            return f"pointwise over {shape}"
        if all(n == 1 or d in dims for d, n in enumerate(shape)):
            return f"all of {shape} as one row"
        outer = self.outer_dims(dims) if self.is_nested else dims
        inner = tuple(d for d in dims if d not in outer)
        inside = f", with reductions along {format_dims(inner)} inside" * bool(inner)
        return f"rows of {shape} along {format_dims(outer)}{inside}"


def expressions_of(*roots: Expression) -> tuple[Expression, ...]:
    """Return some expressions and all that they are computed from, inputs first."""
    return tuple(toposort(roots, inputs_of))


def copy_kernel(dtype: DType) -> Kernel:
    """Return the kernel that copies an array."""
    return Kernel((Load(0, dtype),), ())


def renumber_operands(expressions: Sequence[Expression]) -> tuple[tuple[Expression, ...], list[int]]:
    """Renumber the loads of some expressions as 0, 1, ... Return the expressions, and the old index of each new index."""
    old_indices = [x.index for x in Kernel(tuple(expressions), ()).find_all(Load)]
    return tuple(replace(e, Load, lambda x: type(x)(old_indices.index(x.index), x.dtype)) for e in expressions), old_indices
