"""Numbers and tensors that remember how they were made, over the slots of an engine.

`Differentiable` and `RecordedCall` are the protocol that tasks 1.3 and 1.4 know. It is the same for both kinds.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, Protocol, Self, TypeVar

from ..core.errors import GradientError
from ..core.indexing import Shape
from .oracle import Slot
from .values import Numbers, ValueEngine, Values

ValueT = TypeVar("ValueT", float, Values)
VariableT = TypeVar("VariableT", bound="Variable[Any]")


class Function(Protocol):
    """A class with two static methods, as tasks 1.2, 2.4 and 4.4 ask for."""

    @property
    def forward(self) -> Slot:
        """Compute the value, of a context, values and options."""

    @property
    def backward(self) -> Slot:
        """Compute the derivative of each input, of a context and the derivative of the value."""


class Differentiable(Hashable, Protocol):
    """A variable as backpropagation sees it: of numbers, of tensors, or of a graph that a check has drawn."""

    @property
    def history(self) -> "RecordedCall | None":
        """Return the call that computed it; None for a leaf or a constant."""

    @property
    def is_constant(self) -> bool:
        """Return whether no derivative is gathered for it."""

    def accumulate(self, d: Any) -> None:
        """Add to the derivative that has been gathered so far."""


class RecordedCall(Protocol):
    """A history: a function, its context and its inputs."""

    @property
    def function(self) -> Any:
        """Return a class with a static method `backward`."""

    @property
    def context(self) -> "Context":
        """Return what `forward` saved."""

    @property
    def inputs(self) -> Sequence[Differentiable]:
        """Return the variables that it was computed from."""


class VariableEngine(ValueEngine, Protocol):
    """An engine for variables: it applies functions, and goes backward."""

    def apply(self, function: str | Function, *inputs: VariableT, **options: object) -> VariableT:
        """Apply a function, or the one in a slot, and record it."""

    def backward(self, root: "Variable[Any]", d: Numbers | Values | None = None) -> None:
        """Gather derivatives in the leaves."""


class Context:
    """Values that `forward` saves for `backward`."""

    __slots__ = ("saved",)

    def __init__(self) -> None:
        self.saved: tuple[Any, ...] = ()

    def save(self, *values: object) -> None:
        """Keep values; `saved` has them."""
        self.saved = values


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One computation: the history of its result."""

    function: Function
    context: Context
    inputs: "tuple[Variable[Any], ...]"


class Variable(Generic[ValueT]):
    """A value, how it was made, and the derivative that has been gathered for it.

    `==` compares identity, so that variables can be keys and be looked up in lists; `eq` compares values.
    """

    prefix = ""
    """Before the names of the functions for it: Add, TensorAdd."""

    def __init__(
        self, engine: VariableEngine, value: ValueT, history: Call | None = None, is_constant: bool = False
    ) -> None:
        self.engine, self.history, self.is_constant = engine, history, is_constant
        self.value: ValueT = value
        self.grad: ValueT | None = None

    def accumulate(self, d: ValueT) -> None:
        """Add to the derivative that has been gathered so far."""
        self.grad = d if self.grad is None else self.grad + d

    def apply(self, name: str, *others: "Self | Numbers", **options: object) -> Self:
        """A function of this and of others, remembered."""
        return self.engine.apply(self.prefix + name, self, *[self.lifted(x) for x in others], **options)

    def plain(self, x: "Numbers | Values") -> ValueT:
        """Return something that is no variable as a value."""
        raise NotImplementedError

    def lifted(self, x: "Self | Numbers") -> Self:
        """A variable as it is; anything else as a constant."""
        return x if isinstance(x, Variable) else type(self)(self.engine, self.plain(x), None, True)

    def backward(self, d: "Numbers | Values | None" = None) -> None:
        """Gather, in all leaves that this was computed from, the derivative of this by them, times d (1 if left out)."""
        self.engine.backward(self, d)

    def __add__(self, other: "Self | Numbers") -> Self:
        return self.apply("Add", other)

    def __mul__(self, other: "Self | Numbers") -> Self:
        return self.apply("Mul", other)

    def __neg__(self) -> Self:
        return self.apply("Neg")

    def __sub__(self, other: "Self | Numbers") -> Self:
        return self + -self.lifted(other)

    def __rsub__(self, other: "Self | Numbers") -> Self:
        return self.lifted(other) - self

    def __truediv__(self, other: "Self | Numbers") -> Self:
        return self * self.lifted(other).inv()

    def __rtruediv__(self, other: "Self | Numbers") -> Self:
        return self.lifted(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def inv(self) -> Self:
        """1 divided by this."""
        return self.apply("Inv")

    def log(self) -> Self:
        """The natural logarithm."""
        return self.apply("Log")

    def exp(self) -> Self:
        """e to the power of this."""
        return self.apply("Exp")

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x))."""
        return self.apply("Sigmoid")

    def relu(self) -> Self:
        """This where it is positive, else 0."""
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

    def plain(self, x: Numbers | Values) -> float:
        """Return a number as a float."""
        return float(x)  # type: ignore[arg-type]  # which is its own error for what is no number

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: "Self | Numbers") -> "Scalar":
        return self.apply("LT", other)

    def __gt__(self, other: "Self | Numbers") -> "Scalar":
        return self.lifted(other) < self

    def eq(self, other: "Self | Numbers") -> "Scalar":
        """1 where the values are equal, else 0."""
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

    def plain(self, x: Numbers | Values) -> Values:
        """Return numbers as a tensor without history."""
        return self.engine.values(x)

    @property
    def shape(self) -> Shape:
        """The sizes of its dims."""
        return self.value.shape

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.value.tolist()

    def item(self) -> float:
        """The element of a tensor that has one."""
        return self.value.item()

    def __matmul__(self, other: "Self | Numbers") -> "Tensor":
        return self.apply("MatMul", other)

    def sum(self, dim: int | None = None) -> "Tensor":
        """Along one dim, which has size 1 then; of all elements, without a dim, if none is given."""
        if dim is None:
            return self.reshape(prod(self.shape)).apply("Sum", dim=0).reshape()
        return self.apply("Sum", dim=self.value.dim(dim))

    def mean(self, dim: int | None = None) -> "Tensor":
        """The sum divided by how many elements went into it."""
        return self.sum(dim) * (1.0 / (prod(self.shape) if dim is None else self.shape[dim]))

    def permute(self, *dims: int) -> "Tensor":
        """Dims in another order."""
        return self.apply("Permute", dims=tuple(self.value.dim(d) for d in dims))

    def reshape(self, *shape: int) -> "Tensor":
        """Return the elements, in the same order, in another shape."""
        return self.apply("Reshape", shape=tuple(shape))

    def __lt__(self, other: "Self | Numbers") -> "Tensor":
        return self.compared("lt", other)

    def __gt__(self, other: "Self | Numbers") -> "Tensor":
        return self.lifted(other) < self

    def eq(self, other: "Self | Numbers") -> "Tensor":
        """1 where elements are equal, else 0; a constant."""
        return self.compared("eq", other)

    def compared(self, name: str, other: "Self | Numbers") -> "Tensor":
        """A comparison, which has no derivative."""
        return Tensor(self.engine, self.value.zip(name, self.lifted(other).value), None, True)


def one(root: Variable[Any]) -> float | Values:
    """The derivative of a single number by itself."""
    if not isinstance(root.value, Values):
        return 1.0
    if root.value.size != 1:
        raise GradientError(
            f"backward: shape {root.value.shape} has {root.value.size} elements, and only a single number has a derivative "
            "by itself; call sum() or mean() first"
        )
    return root.engine.values(1.0).reshape((1,) * len(root.value.shape))
