"""What a kernel computes, without loops, sizes or strides; and the few axes that it runs along.

A kernel is a few scalar expressions over one iteration space. `Fold` is an expression like any other: the fold of its input
along the row. So a map, a zip, a reduction with anything before and after it, a softmax and a layer norm are the same kind
of thing, and fusion is substitution of expressions. Nothing here knows a backend, a tensor or a source text.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeVar

from ..core.dtypes import BY_PYTHON, HIGHEST, DType, bool_, weak
from ..core.errors import FuseError
from ..core.interning import Interned, topological
from ..core.layout import Layout, collapse
from ..core.operators import Operator, eq, ne
from ..core.traceable import Value

Shape = tuple[int, ...]


class Expression(Value, metaclass=Interned):
    """A scalar at each point of the iteration space. Interned: a part that is shared is one object."""

    __slots__ = ("__weakref__", "dtype", "inputs")
    dtype: DType
    inputs: "tuple[Expression, ...]"

    def apply(self, operator: Operator, *inputs: Any) -> "Expression":
        """The operator, or what its body is made of, on expressions of one element type."""
        dtype, gives = operator.result_dtype(*[x.dtype if isinstance(x, Expression) else weak(x) for x in inputs])

        def fit(k: int, x: Any) -> Expression:
            is_condition = operator.name == "where" and k == 0
            if not isinstance(x, Expression):
                return constant(x, bool_ if is_condition else dtype)
            return x if is_condition else cast(x, dtype)

        fitted = tuple(fit(k, x) for k, x in enumerate(inputs))
        if dtype is bool_ and operator.on_bools is not None:
            operator = operator.on_bools
        if operator.is_primitive:
            return Apply(operator, fitted, gives)
        result = operator.body(*fitted)
        return cast(result, gives) if isinstance(result, Expression) else constant(result, gives)


class Load(Expression):
    """The element of input `index` that belongs to this point."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: DType) -> None:
        self.index, self.dtype, self.inputs = index, dtype, ()


class Position(Load):
    """Where input `index` has the element of this point: a layout without memory, whose element at position p is p itself.

    An int64. The launch takes the position of the first element in the place of an address. So the index of a point along a
    dim is a Position with stride 1 along that dim, and 0 along all others.
    """

    __slots__ = ()


class Old(Expression):
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


class Apply(Expression):
    """A primitive operator, or a cast to `dtype` where the operator is None."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator | None, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.operator, self.inputs, self.dtype = operator, inputs, dtype


class Fold(Expression):
    """The fold of its one input along the row, from the operator's identity: one value a row."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.operator, self.inputs, self.dtype = operator, inputs, dtype


class Part(Expression):
    """One output of a function that a backend computes as a whole, by name; its inputs are all that the function takes."""

    __slots__ = ("name",)

    def __init__(self, name: str, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.name, self.inputs, self.dtype = name, inputs, dtype


class Access(Expression):
    """An access to raw operand `index`, memory that has no part in the iteration space, at an index computed by the kernel.

    `inputs` are the int64 index along each of its dims, which nothing checks, and, of a change, the value. `time` is how
    many effects of the kernel come before: a load at a later time is another load.
    """

    __slots__ = ("index", "time")

    def __init__(self, index: int, time: int, inputs: tuple[Expression, ...], dtype: DType) -> None:
        self.index, self.time, self.inputs, self.dtype = index, time, inputs, dtype


class RawLoad(Access):
    """An element of a raw operand."""

    __slots__ = ()


class Store(Access):
    """An effect: an element of a raw operand becomes the value. Of several points that store to one, any may be the last."""

    __slots__ = ()


class AtomicAdd(Access):
    """An effect: the value is added to an element of a raw operand, so that nothing comes between read and write."""

    __slots__ = ()


class Dot(Expression):
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
    return x if x.dtype is dtype else Apply(None, (x,), dtype)


def fold(operator: Operator, x: Expression) -> Expression:
    """The fold of an expression; of bools with the operator that stands for it."""
    return Fold((x.dtype is bool_ and operator.on_bools) or operator, (x,), x.dtype)


def replace(e: Expression, kind: "type[E]", moved: "Callable[[E], Expression]") -> Expression:
    """The same expression with others in the place of its parts of one kind."""
    new: dict[Expression, Expression] = {}
    for x in topological([e], lambda x: () if isinstance(x, kind) else x.inputs):
        if isinstance(x, kind):
            new[x] = moved(x)
        elif isinstance(x, Apply):
            new[x] = Apply(x.operator, tuple(new[i] for i in x.inputs), x.dtype)
        elif isinstance(x, Fold):
            new[x] = Fold(x.operator, tuple(new[i] for i in x.inputs), x.dtype)
        elif isinstance(x, Access):
            new[x] = type(x)(x.index, x.time, tuple(new[i] for i in x.inputs), x.dtype)
        else:
            new[x] = x
    return new[e]


class Kernel(metaclass=Interned):
    """`elements` are stored at every point of the space, `rows` once a row. A pointwise kernel has elements only.

    `effects` are changes of raw operands, done at each point in this order before its elements are stored. A kernel with
    effects has no folds.
    """

    __slots__ = ("__weakref__", "effects", "elements", "order", "rows")

    def __init__(
        self, elements: tuple[Expression, ...], rows: tuple[Expression, ...], effects: tuple[Access, ...] = ()
    ) -> None:
        self.elements, self.rows, self.effects = elements, rows, effects
        self.order = tuple(topological((*elements, *rows, *effects), lambda e: e.inputs))  # asked for again and again

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """All that is stored: elements, then rows."""
        return self.elements + self.rows

    def expressions(self) -> tuple[Expression, ...]:
        """All expressions, inputs first."""
        return self.order

    def raws(self) -> list[DType]:
        """The element types of the raw operands."""
        dtypes = {e.index: e.dtype for e in self.each(Access)}
        return [dtypes[index] for index in sorted(dtypes)]

    def each(self, kind: type[E]) -> list[E]:
        """Those of one kind; loads and parameters by their index."""
        found = [e for e in self.expressions() if isinstance(e, kind)]
        return sorted(found, key=lambda e: e.index) if kind in (Load, Parameter) else found

    def cost(self) -> int:
        """Of one point, in additions; a load counts as one."""
        return sum(e.operator.cost if isinstance(e, Apply | Fold) and e.operator else 1 for e in self.expressions())


class ProductKernel(metaclass=Interned):
    """A matrix product with what is done to its operands on their way in, and to each sum on its way out.

    a, b
        The operands, as expressions over (..., M, K) and over (..., K, N): the prologue. A plain operand is a `Load`.
    precision
        One of `dtypes.PRECISIONS`: how far operands of float32 may be rounded. A backend may always round less.
    elements
        What is stored at each point of (..., M, N), as expressions of `Dot`: the epilogue. Of a plain product, `Dot` itself.

    Loads are counted through: those of a, then those of b, then those of the epilogue. Each belongs to one of the three
    spaces; so do parameters, which all three may share.
    """

    __slots__ = ("__weakref__", "a", "b", "elements", "precision")

    def __init__(self, a: Expression, b: Expression, elements: tuple[Expression, ...], precision: str = HIGHEST) -> None:
        self.a, self.b, self.elements, self.precision = a, b, elements, precision

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """All that is stored."""
        return self.elements

    @property
    def is_plain(self) -> bool:
        """Whether it is a product and nothing else, of all bits."""
        is_exact = self.precision == HIGHEST
        return is_exact and isinstance(self.a, Load) and isinstance(self.b, Load) and self.elements == (Dot(self.a.dtype),)

    def loads(self) -> tuple[list[Load], list[Load], list[Load]]:
        """Those of a, of b and of the epilogue, each by their index."""
        a, b, epilogue = (Kernel(roots, ()).each(Load) for roots in ((self.a,), (self.b,), self.elements))
        return a, b, epilogue

    def parameters(self) -> list[Parameter]:
        """The numbers that travel with the launch, by their index."""
        return Kernel((self.a, self.b, *self.elements), ()).each(Parameter)


def numbered(expressions: Sequence[Expression]) -> tuple[tuple[Expression, ...], list[int]]:
    """Expressions whose loads are counted from 0 without gaps, and which loads those were."""
    used = [x.index for x in Kernel(tuple(expressions), ()).each(Load)]
    return tuple(replace(e, Load, lambda x: type(x)(used.index(x.index), x.dtype)) for e in expressions), used


def raws_numbered(kernel: Kernel) -> tuple[Kernel, list[int]]:
    """A kernel without effects whose raw operands are counted from 0 without gaps, and which those were."""
    used = sorted({e.index for e in kernel.each(Access)})
    new: dict[Expression, Expression] = {}
    for e in kernel.expressions():
        if isinstance(e, Access):
            new[e] = type(e)(used.index(e.index), e.time, tuple(new[x] for x in e.inputs), e.dtype)
        else:
            new[e] = replace(e, Access, lambda x: new[x])
    elements, rows = (tuple(new[e] for e in roots) for roots in (kernel.elements, kernel.rows))
    return Kernel(elements, rows), used


class Traced(Value):
    """An expression in the hands of a Python function: it has `==`, which expressions keep for identity, and no value."""

    __slots__ = ("expression",)
    __hash__ = object.__hash__

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def apply(self, operator: Operator, *inputs: Any) -> "Traced":
        """The operator on the expressions."""
        known = [x.expression if isinstance(x, Traced) else x for x in inputs]
        return Traced(next(x for x in known if isinstance(x, Expression)).apply(operator, *known))

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
    result = function(*[Traced(Load(k, dtype)) for k, dtype in enumerate(dtypes)])
    return result.expression if isinstance(result, Traced) else constant(result, BY_PYTHON[weak(result)])


class Combiner(Operator):
    """An operator for folds that is in no table: a function of two numbers, which kernels hold as a function of their own.

    The function must be associative and commutative: threads fold in an order of their own. `fold_vjp` is as any operator's,
    `expression(dtype)` is what the function computes of loads 0 and 1.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        identity: float | bool,
        fold_vjp: Callable[..., Any],
        expression: Callable[[DType], Expression],
    ) -> None:
        def combine(a: Any, b: Any) -> Any:
            return function(a, b)

        super().__init__(combine, None, None, identity, fold_vjp, False, "any", "same", None, 1, True)
        self.known: dict[DType, Expression] = {}
        self.find = expression

    def expression(self, dtype: DType) -> Expression:
        """What it computes of two loads of an element type, as it was when it was first asked for."""
        if dtype not in self.known:
            self.known[dtype] = self.find(dtype)
            self.cost = Kernel((self.known[dtype],), ()).cost()
        return self.known[dtype]


class Nest:
    """The loops that a kernel runs in: few axes, those of the row last, and the stride of every operand along each.

    Only the number of row axes and `classes` reach generated source: "0" a repeated operand, "1" neighbours in memory, "s"
    any other stride, one letter an axis. Sizes and strides travel with the launch, so a new size needs no new source.
    """

    __slots__ = ("classes", "is_empty", "points", "rows", "sizes", "strides")

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
        self.rows = len(outer) if dims else len(outer) - 1  # pointwise, the last axis is the row
        self.sizes = [size for size, _ in outer + inner]
        self.strides = list(zip(*[strides for _, strides in outer + inner], strict=True))
        self.classes = tuple("".join(map(stride_class, strides)) for strides in self.strides)
        self.is_empty = 0 in [size for size, _ in outer]
        self.points = prod(self.sizes)

    def runtime_strides(self) -> list[int]:
        """Those that the source cannot know, operand by operand."""
        return [s for strides in self.strides for s in strides if stride_class(s) == "s"]


def stride_class(stride: int) -> str:
    """All that a source knows of a stride."""
    return "0" if stride == 0 else "1" if stride == 1 else "s"


def stride_classes(layouts: Iterable[Layout]) -> tuple[str, ...]:
    """All that a source knows of raw operands: a letter for each of their dims."""
    return tuple("".join(map(stride_class, layout.strides)) for layout in layouts)
