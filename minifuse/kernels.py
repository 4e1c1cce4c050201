"""What a kernel computes, without loops, sizes or strides; and the few axes that it runs along.

A kernel is a few scalar expressions over one iteration space. `Fold` is an expression like any other: the fold of its input
along the row. So a map, a zip, a reduction with anything before and after it, a softmax and a layer norm are the same kind
of thing, and fusion is substitution of expressions. Nothing here knows a backend, a tensor or a source text.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeVar

from .dag import Interned, topological
from .dtypes import BY_PYTHON, DType, bool_, weak
from .errors import FuseError
from .layout import Layout, collapse
from .operators import Operator, eq, ne
from .value import Value

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
        else:
            new[x] = x
    return new[e]


class Kernel(metaclass=Interned):
    """`elements` are stored at every point of the space, `rows` once a row. A pointwise kernel has elements only."""

    __slots__ = ("__weakref__", "elements", "rows")

    def __init__(self, elements: tuple[Expression, ...], rows: tuple[Expression, ...]) -> None:
        self.elements, self.rows = elements, rows

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """All that is stored: elements, then rows."""
        return self.elements + self.rows

    def expressions(self) -> list[Expression]:
        """All expressions, inputs first."""
        return topological(self.outputs, lambda e: e.inputs)

    def each(self, kind: type[E]) -> list[E]:
        """Those of one kind; loads and parameters by their index."""
        found = [e for e in self.expressions() if isinstance(e, kind)]
        return sorted(found, key=lambda e: e.index) if kind in (Load, Parameter) else found

    def cost(self) -> int:
        """Of one point, in additions; a load counts as one."""
        return sum(e.operator.cost if isinstance(e, Apply | Fold) and e.operator else 1 for e in self.expressions())


def numbered(expressions: Sequence[Expression]) -> tuple[tuple[Expression, ...], list[int]]:
    """Expressions whose loads are counted from 0 without gaps, and which loads those were."""
    used = [x.index for x in Kernel(tuple(expressions), ()).each(Load)]
    return tuple(replace(e, Load, lambda x: Load(used.index(x.index), x.dtype)) for e in expressions), used


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
