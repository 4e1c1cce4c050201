"""A captured computation: interned nodes. Functions are captured by calling them with nodes.

Broadcasts and casts are nodes of their own, so all inputs of an elementwise node have its shape and dtype (numbers apart).
Nothing here knows memory or kernels.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import local
from types import UnionType
from typing import Any

from ..core.dtypes import BY_PYTHON, DType, as_dtype, as_number, bool_, float64, int64, weak_type_of
from ..core.errors import FuseError, users_line
from ..core.interning import Interned, toposort
from ..core.layout import broadcast, row_major
from ..core.operators import Operator
from .array_functions import Cast, CompositeOp, Copy, Full, Function, Identity, Iota, View
from .array_methods import Array
from .gather import Gather, GatherND
from .kernel_ir import constant


class Argument(metaclass=Interned):
    """Input number `index` of the graph."""

    def __init__(self, index: int) -> None:
        self.index = index


class Number(Argument):
    """Input number `index`, where that is a Python number: its dtype is weak until it meets an array."""


class Literal(metaclass=Interned):
    """A Python number written in the captured function. As text: 0.0 and -0.0, 1 and True are different literals."""

    def __init__(self, text: str) -> None:
        self.text = text


DTYPE_OF_WEAK: dict[Any, DType] = {float: float64, int: int64}  # what Python computes in
WEAK_OF_DTYPE = {dtype: kind for kind, dtype in DTYPE_OF_WEAK.items()}
NUMBER_FUNCTIONS = (Number, Literal)  # tuples, which isinstance takes four times as fast as unions
ELEMENTWISE = (Operator, Cast, Copy, Full, Identity)
POINTWISE = (*ELEMENTWISE, Gather, GatherND)


class Node(Array, metaclass=Interned):
    """An array that is not computed yet: `function` of `inputs`."""

    __slots__ = ("__weakref__", "dtype", "function", "inputs", "shape")

    def __init__(self, function: Any, inputs: "tuple[Node, ...]", shape: tuple[int, ...], dtype: Any) -> None:
        self.function, self.inputs, self.shape, self.dtype = function, inputs, shape, dtype

    @property
    def is_number(self) -> bool:
        """Whether it stands for a Python number."""
        return isinstance(self.function, NUMBER_FUNCTIONS)

    @property
    def is_elementwise(self) -> bool:
        """Whether each element comes from the same elements of the inputs."""
        return isinstance(self.function, ELEMENTWISE)

    @property
    def is_pointwise(self) -> bool:
        """Whether a kernel computes it point by point: it is elementwise, or what is elementwise in its index."""
        return isinstance(self.function, POINTWISE)

    def apply(self, function: Any, *inputs: Any) -> Any:
        """A node that stands for the function; composites and Python functions are inlined."""
        nodes = tuple(wrap(x) for x in inputs)
        if isinstance(function, Operator):
            return elementwise(function, nodes)
        if isinstance(function, Function):
            wanted = function.dtype if isinstance(function, Full) else None
            nodes = tuple(x if isinstance(x, Node) else literal(x, wanted) for x in nodes)
            return Node(function, nodes, *function.infer(*nodes))
        if isinstance(function, CompositeOp):
            return function.outputs(*nodes)
        return function(*nodes)

    def apply_view(self, view: View) -> "Node":
        """A node that stands for the view, or this one where nothing changes."""
        if isinstance(self.function, View) and (both := merge_views(self.function, view)) is not None:
            return self.inputs[0].apply_view(both)
        shape, is_same = view_shape(view, self.shape)
        return self if is_same else Node(view, (self,), shape, self.dtype)

    def positions(self, size: int) -> "Node":
        """The numbers 0, 1, ... below a size."""
        return Node(Iota(size), (), (size,), int64)

    def constant(self, array: Any) -> "Node":
        """A NumPy array as a hidden input of the graph that is being captured."""
        return wrapper_stack.wrappers[-1](array)

    def to(self, dtype: Any) -> "Node":
        """The same values as another element type."""
        dtype = as_dtype(dtype)
        if self.is_number:
            is_literal = isinstance(self.function, Literal) and dtype is bool_
            return Node(bool_literal(self.function.text) if is_literal else self.function, (), (), dtype)
        computed_in = DTYPE_OF_WEAK.get(self.dtype)
        if computed_in is not None:  # from numbers alone
            return Node(self.function, self.inputs, (), computed_in).to(dtype)
        return self if dtype is self.dtype else Node(Cast(dtype), (self,), self.shape, dtype)

    def view(self, *shape: Any) -> Any:
        """As reshape: where the elements lie is not decided yet."""
        return self.reshape(*shape)

    def contiguous(self) -> "Node":
        """Itself: where the elements lie is not decided yet."""
        return self

    def clone(self) -> "Node":
        """The same elements in memory of their own."""
        return Node(Copy(), (self,), self.shape, self.dtype)

    def __bool__(self) -> bool:
        raise self._no_value_error("a branch on the value")

    def __float__(self) -> float:
        raise self._no_value_error("the value")

    def __index__(self) -> int:
        raise self._no_value_error("the value")

    item = tolist = numpy = __array__ = __int__ = __float__

    def __setitem__(self, index: Any, value: Any) -> None:
        raise FuseError(f"{users_line()}: a change in place cannot be captured; use where(...), or write x = x + y")

    def _change(self, other: Any) -> Any:
        raise FuseError(f"{users_line()}: a change in place cannot be captured; write x = x + y instead of x += y")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _change
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _change
    copy_ = fill_ = _change

    def _no_value_error(self, what: str) -> FuseError:
        return FuseError(
            f"{users_line()}: {what} of an array of shape {self.shape}; while a function is captured there are no values: "
            "use where(condition, a, b)"
        )


@lru_cache(4096)
def view_shape(view: View, shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The shape of a view of an array of some shape, and whether it shows just that array."""
    whole = row_major(shape)
    layout = view.layout(whole)
    return layout.shape, layout.same_traversal(whole)


def merge_views(first: View, second: View) -> View | None:
    """A view of a view as one, where they are of one kind; so a long chain of views is one.

    Not reshapes: one that no strides allow puts elements in order, and convolutions ask for just that.
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
    """What gives a concrete array as a node, for each thread: the last one belongs to the capture under way."""

    def __init__(self) -> None:
        self.wrappers: list[Callable[[Any], Node]] = []


wrapper_stack = WrapperStack()


@contextmanager
def use_wrapper(lift: Callable[[Any], Node]) -> Iterator[None]:
    """Give concrete arrays as nodes by this function, in a block of code."""
    wrapper_stack.wrappers.append(lift)
    try:
        yield
    finally:
        wrapper_stack.wrappers.pop()


def wrap(x: Any) -> Any:
    """A concrete array as a hidden input of the capture under way; nodes and numbers as they are."""
    if isinstance(x, Node):
        return x
    x = as_number(x)
    if isinstance(x, Array) or hasattr(x, "__array_interface__"):
        return wrapper_stack.wrappers[-1](x)
    weak_type_of(x)  # anything but a number is an error that says so
    return x


def elementwise(operator: Operator, inputs: tuple[Any, ...]) -> Any:
    """Return the node of an operator, its inputs cast and broadcast; one that has no rule of its own is its body.

    The result of numbers alone is a number too: it is computed in 64 bits and is weak, as the result of Python would be.
    """
    dtypes = [x.dtype if isinstance(x, Node) else weak_type_of(x) for x in inputs]
    dtype, gives = operator.result_dtype(*dtypes)
    if operator.vjp is None and not operator.is_primitive:
        return operator.body(*inputs)
    is_number = all(isinstance(d, type) for d in dtypes)
    if is_number and dtype.is_float:
        dtype, gives = float64, float64 if gives.is_float else gives
    shape = broadcast(*[x.shape for x in inputs if isinstance(x, Node)])

    def fit(k: int, x: Any) -> Node:
        wanted = BY_PYTHON[bool] if operator.name == "where" and k == 0 else dtype
        if not isinstance(x, Node):
            return literal(x, wanted)
        y: Node = x.to(wanted)
        if x.is_number:
            return y
        return y if y.shape == shape else y.expand(*shape)

    fitted = tuple(fit(k, x) for k, x in enumerate(inputs))
    return Node(operator, fitted, shape, WEAK_OF_DTYPE.get(gives, gives) if is_number else gives)


def literal(x: Any, dtype: DType | None = None) -> Node:
    """A Python number as a node, weak unless a dtype is given."""
    return Node(Literal(constant(x, dtype or BY_PYTHON[weak_type_of(x)]).text), (), (), dtype or weak_type_of(x))


def bool_literal(text: str) -> Literal:
    """A literal as a bool."""
    return Literal(text if text in ("True", "False") else str(float(text) != 0))


def inputs_of(node: Node) -> tuple[Node, ...]:
    """What a node is computed from."""
    return node.inputs


def strip_views(node: Node) -> Node:
    """The node under any views."""
    while isinstance(node.function, View):
        (node,) = node.inputs
    return node


def substitute(outputs: list[Node], replacement: dict[Node, Node]) -> list[Node]:
    """The same graph with some nodes replaced by others; a number that is replaced keeps the dtype that it has taken."""
    new = dict(replacement)
    numbers = {old.function: fresh.function for old, fresh in replacement.items() if isinstance(old.function, Number)}
    for node in toposort(outputs, lambda node: () if node in replacement else node.inputs):
        if node not in new:
            function = numbers.get(node.function, node.function)
            new[node] = Node(function, tuple(new[x] for x in node.inputs), node.shape, node.dtype)
    return [new[node] for node in outputs]


def rewrite(outputs: list[Node], kinds: type | UnionType, change: Callable[[Node], Node]) -> list[Node]:
    """The same graph with each node changed, inputs first: `change` sees a node whose inputs are changed already.

    Changes begin at functions of these kinds: a graph that has none of them stays as it is.
    """
    order = toposort(outputs, inputs_of)
    if not any(isinstance(node.function, kinds) for node in order):
        return outputs
    new: dict[Node, Node] = {}
    for node in order:
        inputs = tuple(new[x] for x in node.inputs)
        is_same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        new[node] = change(node if is_same else Node(node.function, inputs, node.shape, node.dtype))
    return [new[node] for node in outputs]
