"""Numbers and tensors that remember how they were made, over the slots of an engine.

The protocol that tasks 1.3 and 1.4 know: a variable has `history` (None for a leaf or a constant), `is_constant`, `grad` and
`accumulate(d)`; a call, which is a history, has `function`, `context` and `inputs`. It is the same for both kinds.
"""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self

from ..core.errors import GradientError
from .values import Shape, Values

if TYPE_CHECKING:
    from .engine import Engine


class Context:
    """What `forward` keeps for `backward`."""

    __slots__ = ("saved",)

    def __init__(self) -> None:
        self.saved: tuple[Any, ...] = ()

    def save(self, *values: Any) -> None:
        """Keep values; `saved` has them."""
        self.saved = values


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One computation: the history of its result."""

    function: Any
    """A class with `forward` and `backward`."""
    context: Context
    inputs: tuple["Variable", ...]


class Variable:
    """A value, how it was made, and the derivative that has been gathered for it.

    `==` compares identity, so that variables can be keys and be looked up in lists; `eq` compares values.
    """

    prefix = ""
    """Before the names of the functions for it: Add, TensorAdd."""

    def __init__(self, engine: "Engine", value: Any, history: Call | None = None, is_constant: bool = False) -> None:
        self.engine, self.value, self.history, self.is_constant = engine, value, history, is_constant
        self.grad: Any = None

    def accumulate(self, d: Any) -> None:
        """Add to the derivative that has been gathered so far."""
        self.grad = d if self.grad is None else self.grad + d

    def apply(self, name: str, *others: Any, **options: Any) -> Self:
        """A function of this and of others, remembered."""
        return self.engine.apply(self.prefix + name, self, *[self.lifted(x) for x in others], **options)  # type: ignore[no-any-return]

    def lifted(self, x: Any) -> Self:
        """A variable as it is; anything else as a constant."""
        return x if isinstance(x, Variable) else type(self)(self.engine, self.engine.plain(type(self), x), None, True)  # type: ignore[return-value]

    def backward(self, d: Any = None) -> None:
        """Gather, in all leaves that this was computed from, the derivative of this by them, times d (1 if left out)."""
        self.engine.backward(self, d)

    def __add__(self, other: Any) -> Self:
        return self.apply("Add", other)

    def __mul__(self, other: Any) -> Self:
        return self.apply("Mul", other)

    def __neg__(self) -> Self:
        return self.apply("Neg")

    def __sub__(self, other: Any) -> Self:
        return self + -self.lifted(other)

    def __rsub__(self, other: Any) -> Self:
        return self.lifted(other) - self

    def __truediv__(self, other: Any) -> Self:
        return self * self.lifted(other).inv()

    def __rtruediv__(self, other: Any) -> Self:
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


class Scalar(Variable):
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

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: Any) -> "Scalar":
        return self.apply("LT", other)

    def __gt__(self, other: Any) -> "Scalar":
        return self.lifted(other) < self

    def eq(self, other: Any) -> "Scalar":
        """1 where the values are equal, else 0."""
        return self.apply("EQ", other)


class Tensor(Variable):
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

    @property
    def shape(self) -> Shape:
        """The sizes of its dims."""
        return self.value.shape  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.value.tolist()

    def item(self) -> float:
        """The element of a tensor that has one."""
        return self.value.item()  # type: ignore[no-any-return]

    def __matmul__(self, other: Any) -> "Tensor":
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
        """The same elements in the same order under another shape."""
        return self.apply("Reshape", shape=tuple(shape))

    def __lt__(self, other: Any) -> "Tensor":
        return self.compared("lt", other)

    def __gt__(self, other: Any) -> "Tensor":
        return self.lifted(other) < self

    def eq(self, other: Any) -> "Tensor":
        """1 where elements are equal, else 0; a constant."""
        return self.compared("eq", other)

    def compared(self, name: str, other: Any) -> "Tensor":
        """A comparison, which has no derivative."""
        return Tensor(self.engine, self.value.zip(name, self.lifted(other).value), None, True)


def one(root: Variable) -> Any:
    """The derivative of a single number by itself."""
    if not isinstance(root.value, Values):
        return 1.0
    if root.value.size != 1:
        raise GradientError(
            f"backward: shape {root.value.shape} has {root.value.size} elements, and only a single number has a derivative "
            "by itself; call sum() or mean() first"
        )
    return root.engine.values(1.0).reshape((1,) * len(root.value.shape))
