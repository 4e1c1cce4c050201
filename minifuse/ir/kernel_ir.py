"""What a kernel computes, without loops, sizes or strides; and the few axes that it runs along.

A kernel is a few scalar expressions over one iteration space. `ReduceExpr` is an expression like any other: the fold of
its input
along the row. So a map, a zip, a reduction with anything before and after it, a softmax and a layer norm are the same kind
of thing, and fusion is substitution of expressions. Nothing here knows a backend, a tensor or a source text.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeVar

from ..core.dtypes import BY_PYTHON, HIGHEST, DType, bool_, weak_type_of
from ..core.errors import FuseError
from ..core.interning import Interned, toposort
from ..core.layout import Layout, collapse
from ..core.operators import Operator, eq, ne
from ..core.traceable import Traceable

Shape = tuple[int, ...]


class Expression(Traceable, metaclass=Interned):
    """A scalar at each point of the iteration space. Interned: a part that is shared is one object."""

    __slots__ = ("__weakref__", "dtype", "inputs")
    dtype: DType
    inputs: "tuple[Expression, ...]"

    def apply(self, operator: Operator, *inputs: Any) -> "Expression":
        """The operator, or what its body is made of, on expressions of one element type."""
        dtype, gives = operator.result_dtype(*[x.dtype if isinstance(x, Expression) else weak_type_of(x) for x in inputs])

        def fit(k: int, x: Any) -> Expression:
            is_condition = operator.name == "where" and k == 0
            if not isinstance(x, Expression):
                return constant(x, bool_ if is_condition else dtype)
            return x if is_condition else cast(x, dtype)

        fitted = tuple(fit(k, x) for k, x in enumerate(inputs))
        if dtype is bool_ and operator.on_bools is not None:
            operator = operator.on_bools
        if operator.is_primitive:
            return Op(operator, fitted, gives)
        result = operator.body(*fitted)
        return cast(result, gives) if isinstance(result, Expression) else constant(result, gives)


class Load(Expression):
    """The element of input `index` that belongs to this point."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class IndexValue(Load):
    """Where input `index` has the element of this point: a layout without memory, whose element at position p is p itself.

    An int64. The launch takes the position of the first element in the place of an address. So the index of a point along a
    dim is a Position with stride 1 along that dim, and 0 along all others.
    """

    __slots__ = ()


class ReadOutput(Expression):
    """What output `index` holds at this point before it is stored: the input of an operation in place."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class Parameter(Expression):
    """Number `index` among those that travel with the launch."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class Constant(Expression):
    """A literal that stays in the source. Kept as text: 0.0 and -0.0, 1 and True are different literals."""

    __slots__ = ("text",)

    def __init__(self, text: str, dtype: DType) -> None:
        self.text, self.dtype, self.inputs = text, dtype, ()

    @property
    def value(self) -> bool | int | float:
        """The number that the text stands for."""
        return self.text == "True" if self.dtype is bool_ else float(self.text) if self.dtype.is_float else int(self.text)


class Op(Expression):
    """A primitive operator, or a cast to `dtype` where the operator is None."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator | None, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.operator, self.inputs, self.dtype = operator, inputs, dtype


class ReduceExpr(Expression):
    """The fold of its one input along the row, from the operator's identity: one value a row."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.operator, self.inputs, self.dtype = operator, inputs, dtype


class OpaqueOutput(Expression):
    """One output of a function that a backend computes as a whole, by name; its inputs are all that the function takes."""

    __slots__ = ("name",)

    def __init__(self, name: str, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.name, self.inputs, self.dtype = name, inputs, dtype


class IndexedAccess(Expression):
    """An access to raw operand `index`, memory that has no part in the iteration space, at an index computed by the kernel.

    `inputs` are the int64 index along each of its dims, which nothing checks, and, of a change, the value. `time` is how
    many effects of the kernel come before: a load at a later time is another load.
    """

    __slots__ = ("index", "stores_before")

    def __init__(self, index: int, time: int, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.index, self.stores_before, self.inputs, self.dtype = index, time, inputs, dtype


class IndexedLoad(IndexedAccess):
    """An element of a raw operand."""

    __slots__ = ()


class IndexedStore(IndexedAccess):
    """An effect: an element of a raw operand becomes the value. Of several points that store to one, any may be the last."""

    __slots__ = ()


class AtomicAdd(IndexedAccess):
    """An effect: the value is added to an element of a raw operand, so that nothing comes between read and write."""

    __slots__ = ()


class Accumulator(Expression):
    """The finished sum of a matrix product at this point: what its epilogue begins with."""

    __slots__ = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype, self.inputs = dtype, ()


E = TypeVar("E", bound=Expression)


def constant(value: Any, dtype: DType) -> Constant:
    """A literal of an element type."""
    kind = bool if dtype is bool_ else float if dtype.is_float else int
    return Constant(repr(kind(value)), dtype)


def cast(x: Expression, dtype: DType) -> Expression:
    """An expression as another element type."""
    return x if x.dtype is dtype else Op(None, (x,), dtype)


def reduce_expr(operator: Operator, x: Expression) -> Expression:
    """The fold of an expression; of bools with the operator that stands for it."""
    return ReduceExpr((x.dtype is bool_ and operator.on_bools) or operator, (x,), x.dtype)


def replace(e: Expression, kind: "type[E]", moved: "Callable[[E], Expression]") -> Expression:
    """The same expression with others in the place of its parts of one kind."""
    new: dict[Expression, Expression] = {}
    for x in toposort([e], lambda x: () if isinstance(x, kind) else x.inputs):
        if isinstance(x, kind):
            new[x] = moved(x)
        elif isinstance(x, Op):
            new[x] = Op(x.operator, tuple(new[i] for i in x.inputs), x.dtype)
        elif isinstance(x, ReduceExpr):
            new[x] = ReduceExpr(x.operator, tuple(new[i] for i in x.inputs), x.dtype)
        elif isinstance(x, IndexedAccess):
            new[x] = type(x)(x.index, x.stores_before, tuple(new[i] for i in x.inputs), x.dtype)
        else:
            new[x] = x
    return new[e]


class Kernel(metaclass=Interned):
    """`elements` are stored at every point of the space, `rows` once a row. A pointwise kernel has elements only.

    `effects` are changes of raw operands, done at each point in this order before its elements are stored. A kernel with
    effects has no folds.
    """

    __slots__ = ("__weakref__", "effects", "order", "pointwise_outputs", "row_outputs")

    def __init__(
        self, elements: tuple[Expression, ...], rows: tuple[Expression, ...], effects: tuple[IndexedAccess, ...] = ()
    ) -> None:
        self.pointwise_outputs, self.row_outputs, self.effects = elements, rows, effects
        self.order = tuple(toposort((*elements, *rows, *effects), lambda e: e.inputs))  # asked for again and again

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """All that is stored: elements, then rows."""
        return self.pointwise_outputs + self.row_outputs

    def expressions(self) -> tuple[Expression, ...]:
        """All expressions, inputs first."""
        return self.order

    def indexed_dtypes(self) -> list[DType]:
        """The element types of the raw operands."""
        dtypes = {e.index: e.dtype for e in self.find_all(IndexedAccess)}
        return [dtypes[index] for index in sorted(dtypes)]

    def find_all(self, kind: type[E]) -> list[E]:
        """Those of one kind; loads and parameters by their index."""
        found = [e for e in self.expressions() if isinstance(e, kind)]
        return sorted(found, key=lambda e: e.index) if kind in (Load, Parameter) else found

    def cost(self) -> int:
        """Of one point, in additions; a load counts as one."""
        return sum(e.operator.cost if isinstance(e, Op | ReduceExpr) and e.operator else 1 for e in self.expressions())


class MatmulKernel(metaclass=Interned):
    """A matrix product with what is done to its operands on their way in, and to each sum on its way out.

    a, b
        The operands, as expressions over (..., M, K) and over (..., K, N): the prologue. A plain operand is a `Load`.
    precision
        One of `dtypes.PRECISIONS`: how far operands of float32 may be rounded. A backend may always round less.
    elements
        What is stored at each point of (..., M, N), as expressions of `Accumulator`: the epilogue. Of a plain product,
        `Accumulator` itself.

    Loads are counted through: those of a, then those of b, then those of the epilogue. Each belongs to one of the three
    spaces; so do parameters, which all three may share.
    """

    __slots__ = ("__weakref__", "a", "b", "pointwise_outputs", "precision")

    def __init__(self, a: Expression, b: Expression, elements: tuple[Expression, ...], precision: str = HIGHEST) -> None:
        self.a, self.b, self.pointwise_outputs, self.precision = a, b, elements, precision

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """All that is stored."""
        return self.pointwise_outputs

    @property
    def is_plain(self) -> bool:
        """Whether it is a product and nothing else, of all bits."""
        is_exact = self.precision == HIGHEST
        return (
            is_exact
            and isinstance(self.a, Load)
            and isinstance(self.b, Load)
            and self.pointwise_outputs == (Accumulator(self.a.dtype),)
        )

    def loads(self) -> tuple[list[Load], list[Load], list[Load]]:
        """Those of a, of b and of the epilogue, each by their index."""
        a, b, epilogue = (Kernel(roots, ()).find_all(Load) for roots in ((self.a,), (self.b,), self.pointwise_outputs))
        return a, b, epilogue

    def parameters(self) -> list[Parameter]:
        """The numbers that travel with the launch, by their index."""
        return Kernel((self.a, self.b, *self.pointwise_outputs), ()).find_all(Parameter)


def renumber_operands(expressions: Sequence[Expression]) -> tuple[tuple[Expression, ...], list[int]]:
    """Expressions whose loads are counted from 0 without gaps, and which loads those were."""
    used = [x.index for x in Kernel(tuple(expressions), ()).find_all(Load)]
    return tuple(replace(e, Load, lambda x: type(x)(used.index(x.index), x.dtype)) for e in expressions), used


def renumber_indexed_operands(kernel: Kernel) -> tuple[Kernel, list[int]]:
    """A kernel without effects whose raw operands are counted from 0 without gaps, and which those were."""
    used = sorted({e.index for e in kernel.find_all(IndexedAccess)})
    new: dict[Expression, Expression] = {}
    for e in kernel.expressions():
        if isinstance(e, IndexedAccess):
            new[e] = type(e)(used.index(e.index), e.stores_before, tuple(new[x] for x in e.inputs), e.dtype)
        else:
            new[e] = replace(e, IndexedAccess, lambda x: new[x])
    elements, rows = (tuple(new[e] for e in roots) for roots in (kernel.pointwise_outputs, kernel.row_outputs))
    return Kernel(elements, rows), used


class TracedExpression(Traceable):
    """An expression in the hands of a Python function: it has `==`, which expressions keep for identity, and no value."""

    __slots__ = ("expression",)
    __hash__ = object.__hash__

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def apply(self, operator: Operator, *inputs: Any) -> "TracedExpression":
        """The operator on the expressions."""
        known = [x.expression if isinstance(x, TracedExpression) else x for x in inputs]
        return TracedExpression(next(x for x in known if isinstance(x, Expression)).apply(operator, *known))

    def __eq__(self, other: object) -> Any:
        return self.apply(eq, self, other)

    def __ne__(self, other: object) -> Any:
        return self.apply(ne, self, other)

    def __bool__(self) -> bool:
        raise FuseError(
            "a branch on the value of an element: while a function is traced there are no values; use where(c, a, b)"
        )


def trace(function: Callable[..., Any], dtypes: Sequence[DType]) -> Expression:
    """A Python function of scalars as an expression of loads 0, 1, ...

    Raises
    ------
    FuseError
        The function branches on a value.
    TypeError
        The function uses what expressions do not have, such as `math.exp`.
    """
    result = function(*[TracedExpression(Load(k, dtype)) for k, dtype in enumerate(dtypes)])
    return result.expression if isinstance(result, TracedExpression) else constant(result, BY_PYTHON[weak_type_of(result)])


class CustomReduceOp(Operator):
    """An operator for folds that is in no table: a function of two numbers, which kernels hold as a function of their own.

    The function must be associative and commutative: threads fold in an order of their own. `fold_vjp` is as any operator's,
    `expression(dtype)` is what the function computes of loads 0 and 1.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        identity: float | bool,
        reduce_vjp: Callable[..., Any],
        expression: Callable[[DType], Expression],
    ) -> None:
        def combine(a: Any, b: Any) -> Any:
            return function(a, b)

        super().__init__(combine, None, None, identity, reduce_vjp, False, "any", "same", None, 1, True)
        self.expressions: dict[DType, Expression] = {}
        self.trace_for = expression

    def expression(self, dtype: DType) -> Expression:
        """What it computes of two loads of an element type, as it was when it was first asked for."""
        if dtype not in self.expressions:
            self.expressions[dtype] = self.trace_for(dtype)
            self.cost = Kernel((self.expressions[dtype],), ()).cost()
        return self.expressions[dtype]


class LoopNest:
    """The loops that a kernel runs in: few axes, those of the row last, and the stride of every operand along each.

    Only the number of row axes and `classes` reach generated source: "0" a repeated operand, "1" neighbours in memory, "s"
    any other stride, one letter an axis. Sizes and strides travel with the launch, so a new size needs no new source.
    """

    __slots__ = ("is_empty", "points", "row_axes", "sizes", "stride_kinds", "strides")

    def __init__(self, shape: Shape, dims: Iterable[int], layouts: Sequence[Layout]) -> None:
        """`layouts` of outputs, then inputs, all expanded to `shape`; `dims` are folded."""
        dims = tuple(dims)

        def axes(chosen: Iterable[int]) -> list[tuple[int, tuple[int, ...]]]:
            # In the order of memory, as the first operands see it, so that neighbours merge.
            order = sorted(chosen, key=lambda d: [-abs(layout.strides[d]) for layout in layouts])
            return collapse([shape[d] for d in order], [[layout.strides[d] for d in order] for layout in layouts])

        single = [(1, (0,) * len(layouts))]
        outer = axes(d for d in range(len(shape)) if d not in dims) or single
        inner = (axes(dims) or single) if dims else []
        if 0 in [shape[d] for d in dims]:  # whoever moves along them has no element, not even a first one to look at
            long = [d for d in dims if shape[d] != 1]
            inner = [(0, tuple(next((x.strides[d] for d in long if x.strides[d]), 0) for x in layouts))]
        self.row_axes = len(outer) if dims else len(outer) - 1  # pointwise, the last axis is the row
        self.sizes = [size for size, _ in outer + inner]
        self.strides = list(zip(*[strides for _, strides in outer + inner], strict=True))
        self.stride_kinds = tuple("".join(map(stride_kind, strides)) for strides in self.strides)
        self.is_empty = 0 in [size for size, _ in outer]
        self.points = prod(self.sizes)

    def runtime_strides(self) -> list[int]:
        """Those that the source cannot know, operand by operand."""
        return [s for strides in self.strides for s in strides if stride_kind(s) == "s"]


def stride_kind(stride: int) -> str:
    """All that a source knows of a stride."""
    return "0" if stride == 0 else "1" if stride == 1 else "s"


def stride_kinds_of(layouts: Iterable[Layout]) -> tuple[str, ...]:
    """All that a source knows of raw operands: a letter for each of their dims."""
    return tuple("".join(map(stride_kind, layout.strides)) for layout in layouts)
