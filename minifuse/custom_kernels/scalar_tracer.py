"""Tracers of single elements: a user's function is called with them, once, to record what it computes.

A tracer represents a node of a graph or an expression of a kernel. An operator on tracers is applied to the nodes or
expressions that they represent. All other operations of arrays raise an error with the line of the user's code.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any, NoReturn

from ..core.dtypes import BY_PYTHON, DType, Number, as_dtype, as_number, bool_, weak_type_of
from ..core.errors import FuseError, MinifuseError, users_line
from ..core.indexing import Shape, normalize_dim
from ..core.operator_entry import TracedValue
from ..core.operators import Operator
from ..core.precision import choose_operator
from ..core.traceable import TraceableFunction
from ..ir.array_functions import Function
from ..ir.array_methods import Array
from ..ir.graph import Node
from ..ir.kernel_ir import Expression, KernelParameter, cast

REDUCTION_NAMES = {
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "argmax",
    "argmin",
    "softmax",
    "log_softmax",
    "logsumexp",
}
IndexAlong = Callable[[int], Node | Expression]  # returns the index of the current element along a dim

SHAPE_ATTRIBUTES = {"shape", "ndim", "size", "strides", "T", "mT"}


class ScalarTracer(TracedValue[Node | Expression]):
    """One element of an argument, or a value computed from elements, while a function is traced.

    It has the operators of arrays, `dtype` and `to(dtype)`, but no value. A number among the arguments is a tracer too,
    with a weak dtype.
    """

    __slots__ = ()
    __pow__ = Array.__pow__
    __array_ufunc__ = Array.__array_ufunc__
    clip = Array.clip

    @property
    def dtype(self) -> DType:
        """Return the element type; for a number, its default dtype."""
        dtype: Any = self.value.dtype
        resolved: DType = BY_PYTHON.get(dtype, dtype)
        return resolved

    @property
    def expression(self) -> Expression:
        """Return the expression that the tracer represents. Only while a kernel is traced."""
        assert isinstance(self.value, Expression)
        return self.value

    @property
    def node(self) -> Node:
        """Return the node that the tracer represents. Only while a graph is traced."""
        assert isinstance(self.value, Node)
        return self.value

    def apply(self, function: TraceableFunction, *inputs: object) -> Any:
        """Apply an operator to the nodes or expressions of the tracers; call a function of operators with the tracers."""
        if not isinstance(function, Operator):
            if isinstance(function, Function):
                raise unsupported(f"{function}", "it works on whole arrays; compute it before the call, and pass the result")
            return function(*inputs)
        return ScalarTracer(apply_operator(function, [unwrap(x) for x in inputs]))

    def to(self, dtype: DType | str) -> "ScalarTracer":
        """Convert to another element type."""
        target = as_dtype(dtype)
        return ScalarTracer(
            self.value.to(target) if isinstance(self.value, Node) else resolve_weak_dtype(self.value, target)
        )

    def __bool__(self) -> bool:
        raise unsupported("a branch on the value of an element", "values do not exist while tracing; use mf.where(c, a, b)")

    def __float__(self) -> NoReturn:
        raise unsupported(
            "the value of an element", "values do not exist while tracing; use operators, and mf.exp for math.exp"
        )

    def __index__(self) -> NoReturn:
        advice = "values do not exist while tracing; pass sizes and loop counts as Python numbers from outside the function"
        raise unsupported("the value of an element", advice)

    __int__ = __index__

    def __getitem__(self, index: object) -> NoReturn:
        raise unsupported("an index", 'the argument is a single element; name the argument in raw=("...",) to index it')

    __setitem__ = __getitem__

    def __iter__(self) -> NoReturn:
        raise unsupported("a loop over an element", "it is a single number; name the argument in raw=(...) to index it")

    def __matmul__(self, other: object) -> NoReturn:
        raise unsupported("matmul", "it works on whole arrays; compute it before the call, and pass the result")

    __rmatmul__ = __matmul__

    def __getattr__(self, name: str) -> NoReturn:
        if name == "meta":  # a tensor reads the `meta` of its other operand
            raise unsupported(
                "an operator on a tensor and an element", "pass the tensor as an argument, or name it in raw= to index it"
            )
        if name.startswith("__") or not (name in REDUCTION_NAMES | SHAPE_ATTRIBUTES or hasattr(Array, name)):
            raise AttributeError(f"an element has no {name!r}; it has operators, dtype and to()")
        advice = "compute it before the call, and pass the result"
        if name in ("max", "min"):
            advice = "use mf.maximum or mf.minimum of two elements"
        elif name in REDUCTION_NAMES:
            advice += ", or see mf.reduction"
        raise unsupported(f".{name}", f"a function of elements sees one element of each argument; {advice}")

    def __repr__(self) -> str:
        return f"element of {self.dtype}"


def unsupported(operation: str, advice: str, kind: type[MinifuseError] = FuseError) -> MinifuseError:
    """Return the error for an operation that elements do not support, with the user's line."""
    return kind(f"{users_line()}: {operation}: {advice}")


def unwrap(x: object) -> Any:
    """Return the node or expression of a tracer; return a number unchanged."""
    if isinstance(x, ScalarTracer):
        return x.value
    x = as_number(x)
    if isinstance(x, Array) or hasattr(x, "__array_interface__"):
        raise unsupported(
            "an operator on an array and an element", "pass the array as an argument, or name it in raw= to index it"
        )
    weak_type_of(x)  # raises an error for anything but a number
    return x


def apply_operator(operator: Operator, inputs: Sequence[Node | Expression | Number]) -> Node | Expression:
    """Apply an operator to nodes or expressions; numbers take the dtype of the other operands."""
    first = next(x for x in inputs if isinstance(x, Node | Expression))
    if isinstance(first, Expression):
        dtype, _ = operator.result_dtype(*[x.dtype if isinstance(x, Expression) else weak_type_of(x) for x in inputs])
        kinds = [bool_ if operator.name == "where" and k == 0 else dtype for k in range(len(inputs))]
        inputs = [
            resolve_weak_dtype(x, kind) if isinstance(x, KernelParameter) else x
            for x, kind in zip(inputs, kinds, strict=True)
        ]
        first = next(x for x in inputs if isinstance(x, Expression))
        operator = choose_operator(operator, dtype)
    return first.apply(operator, *inputs)


def resolve_weak_dtype(x: Expression, dtype: DType) -> Expression:
    """Convert an expression to an element type; a number with a weak dtype takes the type without a conversion."""
    is_weak = isinstance(x, KernelParameter) and isinstance(x.dtype, type)
    return KernelParameter(x.index, dtype) if is_weak else cast(x, dtype)


class TraceStack(local):
    """The functions being traced in this thread: the shape of each, and the function that returns the index along a dim."""

    def __init__(self) -> None:
        self.stack: list[tuple[Shape, IndexAlong]] = []


tracing = TraceStack()


@contextmanager
def trace_over(shape: Shape, index_along: IndexAlong) -> Iterator[None]:
    """Trace a function over the elements of a shape, inside a `with` block."""
    tracing.stack.append((shape, index_along))
    try:
        yield
    finally:
        tracing.stack.pop()


def trace_elements(function: TraceableFunction, nodes: Sequence[Node], shape: Shape) -> Any:
    """Call a function of elements with tracers of nodes, over the elements of a shape, and return its result."""

    def index_along(dim: int) -> Node:
        return nodes[0].positions(shape[dim]).reshape(-1, *[1] * (len(shape) - dim - 1)).expand(*shape)

    with trace_over(shape, index_along):
        return function(*[ScalarTracer(x) for x in nodes])


def index(dim: int = -1) -> ScalarTracer:
    """Return the index of the current element along a dim of the shape that all arguments broadcast to.

    Call it only inside a function of `mf.elementwise`.

    Parameters
    ----------
    dim : int
        A dim of that shape; negative dims count from the last.

    Returns
    -------
    element of int64
        From 0 to the size of the dim - 1.

    Raises
    ------
    FuseError
        The call is not inside a function of elements.
    IndexingError
        The shape has no such dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> @mf.elementwise
    ... def lower_triangle(x):
    ...     return mf.where(mf.index(0) >= mf.index(1), x, 0)
    >>> lower_triangle(mf.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    if not tracing.stack:
        raise FuseError("index: there is no current element; call it inside a function of mf.elementwise, or use mf.arange")
    shape, index_along = tracing.stack[-1]
    return ScalarTracer(index_along(normalize_dim(dim, len(shape))))
