"""The graph of a computation: interned nodes. A function is traced by calling it with nodes.

Broadcasts and casts are separate nodes, so all inputs of an elementwise node have its shape and dtype, except numbers. The
graph describes what is computed; memory and kernels are decided later, by the compiler.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from operator import attrgetter
from threading import local
from typing import Any, Self

from ..core.dtypes import BY_PYTHON, DType, as_dtype, as_number, bool_, float64, int64, weak_type_of
from ..core.dtypes import Number as PythonNumber
from ..core.errors import USE_OPERATORS, FuseError, users_line
from ..core.indexing import Shape
from ..core.interning import Interned, toposort
from ..core.layout import broadcast, row_major
from ..core.operators import Operator, detach
from ..core.precision import choose_operator
from .array_functions import Alias, Cast, Copy, Full, Function, Iota, View
from .array_methods import Array
from .composite_op import CompositeOp
from .gather import GatherND
from .index_checks import CheckedIndex
from .kernel_ir import constant


class Argument(metaclass=Interned):
    """Function of an input node: argument number `index` of the graph."""

    def __init__(self, index: int) -> None:
        self.index = index


class Number(Argument):
    """Function of an input node that is a Python number. Its dtype is weak: operators cast it to the dtype of an array."""


class Literal(metaclass=Interned):
    """Function of a node that is a number in the traced code. It is stored as text: 0.0 == -0.0 and 1 == True."""

    def __init__(self, text: str) -> None:
        self.text = text


DTYPE_OF_WEAK: dict[object, DType] = {float: float64, int: int64}  # the precision of Python's arithmetic
WEAK_OF_DTYPE = {dtype: kind for kind, dtype in DTYPE_OF_WEAK.items()}
NodeFunction = Operator | Function | Argument | Literal
NUMBER_FUNCTIONS = (Number, Literal)  # tuples: isinstance checks them four times as fast as unions
ELEMENTWISE = (Operator, Cast, Copy, Full, Alias)
POINTWISE = (*ELEMENTWISE, GatherND)


class Node(Array, metaclass=Interned):
    """An array in a graph: the result of a function applied to input nodes. The dtype of a number is a Python type.

    Attributes
    ----------
    is_number : bool
        True for a Python number.
    is_pointwise : bool
        True if a kernel computes each element on its own: the node is elementwise or a selection of elements.
    """

    __slots__ = ("__weakref__", "dtype", "function", "inputs", "is_number", "is_pointwise", "shape")
    __match_args__ = ("function", "inputs", "shape", "dtype")
    shape: Shape
    dtype: Any
    function: Any  # a NodeFunction; its class determines its attributes

    def __init__(self, function: NodeFunction, inputs: "tuple[Node, ...]", shape: Shape, dtype: Any) -> None:
        self.function, self.inputs, self.shape, self.dtype = function, inputs, shape, dtype
        self.is_number, self.is_pointwise = isinstance(function, NUMBER_FUNCTIONS), isinstance(function, POINTWISE)

    @property
    def is_elementwise(self) -> bool:
        """True if each element is computed from the elements of the inputs with the same index."""
        return isinstance(self.function, ELEMENTWISE)

    def apply(self, function: Callable[..., Any], *inputs: object) -> Any:
        """Return the node of a function applied to inputs. Bound functions and Python functions are inlined."""
        nodes = tuple(map(wrap, inputs))
        if isinstance(function, Operator):
            return elementwise(function, nodes)
        if isinstance(function, Function):
            dtype = function.dtype if isinstance(function, Full) else None
            operands = tuple(x if isinstance(x, Node) else literal(x, dtype) for x in nodes)
            return Node(function, operands, *function.infer(*operands))
        if isinstance(function, CompositeOp):
            return function.outputs(*nodes)
        return function(*nodes)

    def apply_view(self, view: View) -> "Node":
        """Return the node of a view, or this node if the view changes nothing."""
        if isinstance(self.function, View) and (merged := merge_views(self.function, view)) is not None:
            return self.inputs[0].apply_view(merged)
        shape, is_unchanged = view_shape(view, self.shape)
        return self if is_unchanged else Node(view, (self,), shape, self.dtype)

    def positions(self, size: int) -> "Node":
        """Return a node of the integers 0, 1, ..., size - 1."""
        return Node(Iota(size), (), (size,), int64)

    def constant(self, array: object) -> "Node":
        """Add a NumPy array to the graph that is being traced, as a hidden input."""
        return wrapper_stack.wrappers[-1](array)

    def to(self, dtype: DType | str) -> "Node":
        """Convert to another dtype."""
        dtype = as_dtype(dtype)
        if self.is_number:
            is_literal = isinstance(self.function, Literal) and dtype is bool_
            return Node(bool_literal(self.function.text) if is_literal else self.function, (), (), dtype)
        number_dtype = DTYPE_OF_WEAK.get(self.dtype)
        if number_dtype is not None:  # computed from numbers only
            return Node(self.function, self.inputs, (), number_dtype).to(dtype)
        return self if dtype is self.dtype else Node(Cast(dtype), (self,), self.shape, dtype)

    def view(self, *shape: int | Iterable[int]) -> "Node":
        """Reshape. A node has no strides yet, so every reshape is possible."""
        return self.reshape(*shape)

    def is_contiguous(self) -> bool:
        """Return True. A node has no strides yet."""
        return True

    def contiguous(self) -> "Node":
        """Return the node itself. A node has no strides yet."""
        return self

    def clone(self) -> "Node":
        """Copy the elements to new memory."""
        return Node(Copy(), (self,), self.shape, self.dtype)

    def __bool__(self) -> bool:
        raise self._no_value_error("branch on", "use where(condition, a, b)")

    def __float__(self) -> float:
        raise self._no_value_error("read", USE_OPERATORS)

    def __index__(self) -> int:
        raise self._no_value_error("read", USE_OPERATORS)

    item = tolist = numpy = __array__ = __int__ = __float__

    def __setitem__(self, index: object, value: object) -> None:
        raise FuseError(f"{users_line()}: a graph node cannot be modified in place; use where(...), or write x = x + y")

    def _raise_inplace(self, other: object) -> Self:
        raise FuseError(f"{users_line()}: a graph node cannot be modified in place; write x = x + y instead of x += y")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _raise_inplace
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _raise_inplace
    copy_ = fill_ = _raise_inplace

    def _no_value_error(self, verb: str, advice: str) -> FuseError:
        return FuseError(
            f"{users_line()}: cannot {verb} the value of an array of shape {self.shape} while tracing, since it is not "
            f"computed yet; {advice}"
        )


@lru_cache(4096)
def view_shape(view: View, shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Return the shape of a view of an array of `shape`, and whether the view changes nothing."""
    base = row_major(shape)
    layout = view.layout(base)
    return layout.shape, layout.same_traversal(base)


def merge_views(first: View, second: View) -> View | None:
    """Merge a view of a view into one view, if both are of one kind, else return None. A long chain becomes one view.

    Reshapes are not merged: a reshape that needs a copy puts the elements in order, and convolutions rely on that copy.
    """
    if first.method != second.method:
        return None
    if first.method == "permute":
        return View("permute", tuple(first.parameters[d] for d in second.parameters))
    if first.method == "slice":
        pairs = zip(first.parameters, second.parameters, strict=True)
        return View("slice", tuple((a + s * b, s * t, n) for (a, s, _), (b, t, n) in pairs))
    return second if first.method == "expand" else None


class WrapperStack(local):
    """For each thread, the functions that turn a concrete array into a node. The last one belongs to the active trace."""

    def __init__(self) -> None:
        self.wrappers: list[Callable[[object], Node]] = []


wrapper_stack = WrapperStack()


@contextmanager
def use_wrapper(wrapper: Callable[[object], Node]) -> Iterator[None]:
    """Use this function to turn concrete arrays into nodes, in a block of code."""
    wrapper_stack.wrappers.append(wrapper)
    try:
        yield
    finally:
        wrapper_stack.wrappers.pop()


def wrap(x: Any, name: str = "") -> Any:
    """Return a concrete array as a hidden input of the active trace, and a node or a number unchanged.

    An error begins with the name of the call, if it is given.
    """
    if isinstance(x, Node):
        return x
    x = as_number(x)
    if isinstance(x, Array) or hasattr(x, "__array_interface__"):
        return wrapper_stack.wrappers[-1](x)
    if isinstance(x, CheckedIndex):  # of the closure of a function that is traced: the check is made now
        return wrap(x.checked())
    weak_type_of(x, name)  # raises DTypeError for anything but a number
    return x


def elementwise(operator: Operator, inputs: tuple[Node | PythonNumber, ...]) -> Node:
    """Return the node of an operator, with its inputs cast and broadcast. An operator without a VJP is inlined.

    If all inputs are numbers, so is the result: it is computed in 64 bits, as in Python, and its dtype is weak.
    """
    dtypes = [x.dtype if isinstance(x, Node) else weak_type_of(x) for x in inputs]
    dtype, result_dtype = operator.result_dtype(*dtypes)
    if operator.fast is not None:
        operator = choose_operator(operator, dtype)
    if operator.vjp is None and not operator.is_primitive:
        composed: Node = operator.inline(*inputs)
        return composed
    is_number = DType not in map(type, dtypes)
    if is_number and dtype.is_float:
        dtype, result_dtype = float64, float64 if result_dtype.is_float else result_dtype
    shapes = [x.shape for x in inputs if isinstance(x, Node)]
    shape = shapes[0] if len({*shapes}) == 1 else broadcast(*shapes)

    def cast_and_broadcast(k: int, x: Node | PythonNumber) -> Node:
        input_dtype = BY_PYTHON[bool] if operator.name == "where" and k == 0 else dtype
        if not isinstance(x, Node):
            return literal(x, input_dtype)
        y: Node = x if x.dtype is input_dtype else x.to(input_dtype)
        if x.is_number:
            return y
        return y if y.shape == shape else y.expand(*shape)

    is_uniform = dtypes.count(dtype) == shapes.count(shape) == len(inputs)  # no operand is cast or expanded
    operands: Any = inputs if is_uniform else tuple([cast_and_broadcast(k, x) for k, x in enumerate(inputs)])
    return Node(operator, operands, shape, WEAK_OF_DTYPE.get(result_dtype, result_dtype) if is_number else result_dtype)


def literal(x: Any, dtype: DType | None = None) -> Node:
    """Return the node of a Python number. Its dtype is weak unless one is given."""
    return Node(Literal(constant(x, dtype or BY_PYTHON[weak_type_of(x)]).text), (), (), dtype or weak_type_of(x))


def bool_literal(text: str) -> Literal:
    """Return a literal converted to bool."""
    return Literal(text if text in ("True", "False") else str(float(text) != 0))


inputs_of: Callable[[Node], tuple[Node, ...]] = attrgetter("inputs")  # for toposort


def strip_views(node: Node) -> Node:
    """Return the node that a chain of views starts from."""
    while isinstance(node.function, View):
        (node,) = node.inputs
    return node


def is_view(node: Node) -> bool:
    """Return whether a node is a view of its input."""
    return isinstance(node.function, View)


def is_identity(node: Node) -> bool:
    """Return whether a node has the elements of its input: an alias or a detach."""
    return isinstance(node.function, Alias) or node.function is detach


def substitute(outputs: list[Node], replacement: dict[Node, Node]) -> list[Node]:
    """Rebuild a graph with some nodes replaced by others. A replaced number keeps the dtype that it has in the graph."""
    rebuilt = dict(replacement)
    numbers = {old.function: node.function for old, node in replacement.items() if isinstance(old.function, Number)}
    for node in toposort(outputs, lambda node: () if node in replacement else node.inputs):
        if node not in rebuilt:
            function = numbers.get(node.function, node.function)
            rebuilt[node] = Node(function, tuple(rebuilt[x] for x in node.inputs), node.shape, node.dtype)
    return [rebuilt[node] for node in outputs]
