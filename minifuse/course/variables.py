"""Scalars and tensors with a history for backpropagation.

Tasks 1.3 and 1.4 use only the protocols `Differentiable` and `RecordedCall`, which scalars and tensors share.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, Protocol, Self, TypeVar

from ..core.errors import GradientError
from ..core.indexing import Index, Shape
from .oracle import Slot
from .values import Numbers, ValueEngine, Values

ValueT = TypeVar("ValueT", float, Values)
VariableT = TypeVar("VariableT", bound="Variable[Any]")


class Function(Protocol):
    """A class with two static methods, as in tasks 1.2, 2.4 and 4.4."""

    @property
    def forward(self) -> Slot:
        """Return the function of (context, values, options) that computes the value."""

    @property
    def backward(self) -> Slot:
        """Return the function of (context, gradient of the value) that computes the gradient of each input."""


class Differentiable(Hashable, Protocol):
    """A variable as backpropagation sees it: a scalar, a tensor, or a node of a drawn graph."""

    @property
    def history(self) -> "RecordedCall | None":
        """Return the call that computed the variable; None for a leaf or a constant."""

    @property
    def is_constant(self) -> bool:
        """Return whether the variable has no gradient."""

    def accumulate(self, d: Any) -> None:
        """Add to the accumulated gradient."""


class RecordedCall(Protocol):
    """The history of a variable: a function, its context and its inputs."""

    @property
    def function(self) -> Any:
        """Return the class with the static method `backward`."""

    @property
    def context(self) -> "Context":
        """Return the context in which `forward` saved values."""

    @property
    def inputs(self) -> Sequence[Differentiable]:
        """Return the inputs of the call."""


class VariableEngine(ValueEngine, Protocol):
    """The methods of an engine that variables use."""

    def apply(self, function: str | Function, *inputs: VariableT, **options: object) -> VariableT:
        """Apply a function, or the function of a slot, and record it."""

    def backward(self, root: "Variable[Any]", d: Numbers | Values | None = None) -> None:
        """Accumulate gradients in the leaves."""


class Context:
    """Values that `forward` saves for `backward`."""

    __slots__ = ("saved",)

    def __init__(self) -> None:
        self.saved: tuple[Any, ...] = ()

    def save(self, *values: object) -> None:
        """Save values in `saved`."""
        self.saved = values


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """A recorded call of a function, the history of its result."""

    function: Function
    context: Context
    inputs: "tuple[Variable[Any], ...]"


class Variable(Generic[ValueT]):
    """A value, its history, and its accumulated gradient.

    `==` compares identity, so that variables can be keys of dicts and elements of lists; `eq` compares values.
    """

    prefix = ""
    """The prefix of function names: Add for scalars, TensorAdd for tensors."""

    def __init__(
        self, engine: VariableEngine, value: ValueT, history: Call | None = None, is_constant: bool = False
    ) -> None:
        self.engine, self.history, self.is_constant = engine, history, is_constant
        self.value: ValueT = value
        self.grad: ValueT | None = None

    def accumulate(self, d: ValueT) -> None:
        """Add to the accumulated gradient."""
        self.grad = d if self.grad is None else self.grad + d

    def apply(self, name: str, *others: "Self | Numbers", **options: object) -> Self:
        """Apply a function to this and other variables, and record it."""
        return self.engine.apply(self.prefix + name, self, *[self.as_variable(x) for x in others], **options)

    def as_value(self, x: "Numbers | Values") -> ValueT:
        """Convert numbers to a value without history."""
        raise NotImplementedError

    def as_variable(self, x: "Self | Numbers") -> Self:
        """Return a variable unchanged; convert anything else to a constant."""
        return x if isinstance(x, Variable) else type(self)(self.engine, self.as_value(x), None, True)

    def backward(self, d: "Numbers | Values | None" = None) -> None:
        """Accumulate in each leaf the gradient of this variable with respect to the leaf, times d (default 1)."""
        self.engine.backward(self, d)

    def __add__(self, other: "Self | Numbers") -> Self:
        return self.apply("Add", other)

    def __mul__(self, other: "Self | Numbers") -> Self:
        return self.apply("Mul", other)

    def __neg__(self) -> Self:
        return self.apply("Neg")

    def __sub__(self, other: "Self | Numbers") -> Self:
        return self + -self.as_variable(other)

    def __rsub__(self, other: "Self | Numbers") -> Self:
        return self.as_variable(other) - self

    def __truediv__(self, other: "Self | Numbers") -> Self:
        return self * self.as_variable(other).inv()

    def __rtruediv__(self, other: "Self | Numbers") -> Self:
        return self.as_variable(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def inv(self) -> Self:
        """Return 1 divided by this."""
        return self.apply("Inv")

    def log(self) -> Self:
        """Return the natural logarithm."""
        return self.apply("Log")

    def exp(self) -> Self:
        """Return e to the power of this."""
        return self.apply("Exp")

    def sigmoid(self) -> Self:
        """Return 1 / (1 + exp(-x))."""
        return self.apply("Sigmoid")

    def relu(self) -> Self:
        """Return this where it is positive, else 0."""
        return self.apply("ReLU")


class Scalar(Variable[float]):
    """A number; `value` is a float.

    Examples
    --------
    >>> from minifuse.course.engine import Engine
    >>> x = Engine().scalar(3.0)
    >>> y = x * x + x
    >>> y.backward()
    >>> y, x.grad
    (Scalar(12.0), 7.0)
    """

    def __repr__(self) -> str:
        return f"Scalar({self.value})"

    def as_value(self, x: Numbers | Values) -> float:
        """Convert a number to a float."""
        return float(x)  # type: ignore[arg-type]  # float() raises for other types

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: "Self | Numbers") -> "Scalar":
        return self.apply("LT", other)

    def __gt__(self, other: "Self | Numbers") -> "Scalar":
        return self.as_variable(other) < self

    def eq(self, other: "Self | Numbers") -> "Scalar":
        """Return 1 if the values are equal, else 0."""
        return self.apply("EQ", other)


class Tensor(Variable[Values]):
    """A tensor; `value` is a `Values`.

    Examples
    --------
    >>> from minifuse.course.engine import Engine
    >>> engine = Engine()
    >>> x, w = engine.tensor([[1.0, 2.0]]), engine.tensor([[3.0], [4.0]])
    >>> y = x @ w
    >>> y.sum().backward()
    >>> y.tolist(), w.grad.tolist()
    ([[11.0]], [[1.0], [2.0]])
    """

    prefix = "Tensor"
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"Tensor({self.tolist()})"

    def as_value(self, x: Numbers | Values) -> Values:
        """Convert numbers to a tensor without history."""
        return self.engine.values(x)

    @property
    def shape(self) -> Shape:
        """Return the sizes of the dims."""
        return self.value.shape

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self.value.tolist()

    def item(self) -> float:
        """Return the element of a tensor with one element."""
        return self.value.item()

    def __matmul__(self, other: "Self | Numbers") -> "Tensor":
        return self.apply("MatMul", other)

    def sum(self, dim: int | None = None) -> "Tensor":
        """Sum one dim, which then has size 1; by default sum all elements to a tensor without dims."""
        if dim is None:
            return self.reshape(prod(self.shape)).apply("Sum", dim=0).reshape()
        return self.apply("Sum", dim=self.value.dim(dim))

    def mean(self, dim: int | None = None) -> "Tensor":
        """Average one dim, which then has size 1; by default all elements."""
        return self.sum(dim) * (1.0 / (prod(self.shape) if dim is None else self.shape[dim]))

    def permute(self, *dims: int) -> "Tensor":
        """Return the tensor with permuted dims."""
        return self.apply("Permute", dims=tuple(self.value.dim(d) for d in dims))

    def reshape(self, *shape: int) -> "Tensor":
        """Return the elements in row-major order in another shape."""
        return self.apply("Reshape", shape=tuple(shape))

    def __getitem__(self, index: Index) -> "Tensor":
        """Return a view: ints, slices, ... and None, by task 2.6."""
        return self.apply("Slice", index=index)

    def __lt__(self, other: "Self | Numbers") -> "Tensor":
        return self.compare("lt", other)

    def __gt__(self, other: "Self | Numbers") -> "Tensor":
        return self.as_variable(other) < self

    def eq(self, other: "Self | Numbers") -> "Tensor":
        """Return 1 where elements are equal, else 0, without gradients."""
        return self.compare("eq", other)

    def compare(self, name: str, other: "Self | Numbers") -> "Tensor":
        """Compare elements. The result has no gradient."""
        return Tensor(self.engine, self.value.zip(name, self.as_variable(other).value), None, True)


def unit_gradient(root: Variable[Any]) -> float | Values:
    """Return the gradient of a single number with respect to itself: 1."""
    if not isinstance(root.value, Values):
        return 1.0
    if root.value.size != 1:
        raise GradientError(
            f"backward: shape {root.value.shape} has {root.value.size} elements, and backward starts from a single number; "
            "call sum() or mean() first"
        )
    return root.engine.values(1.0).reshape((1,) * len(root.value.shape))
