"""Example functions: FUSED show what is fused and what is not; the backward pass of DIFFERENTIATED is shown step by step.

All are ordinary functions of tensors, as a user writes them, and do not depend on the pages.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf

from .cited_facts import Line

FILE = "own.py"  # of a function that is typed
Shapes = tuple[tuple[int, ...], ...]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Example:
    """A function with arguments."""

    name: str
    function: Callable[..., Any]
    kinds: tuple[tuple[int | str, ...], ...]
    """The shapes of the arguments; "n" is the size of the example, "2n" is twice the size."""
    shows: str
    """A sentence about what the example shows."""
    text: tuple[str, ...] = ()
    """The lines of FILE, if the function is in no file yet."""

    def shapes(self, size: int) -> Shapes:
        """Return the shapes of the arguments for a size."""
        sizes: dict[int | str, int] = {"n": size, "2n": 2 * size}
        return tuple(tuple(sizes.get(n, 0) if isinstance(n, str) else n for n in shape) for shape in self.kinds)

    def arrays(self, size: int, dtype: str = "float32", low: float = 0.5, high: float = 2.0) -> list[Array]:
        """Return the arguments for a size: the same numbers between `low` and `high`, in irregular order, in each call."""
        arrays = []
        for k, shape in enumerate(self.shapes(size)):
            index = np.arange(prod(shape), dtype=np.float64)
            arrays.append((low + (high - low) * ((index + k) * 0.618034 % 1)).astype(dtype).reshape(shape))
        return arrays

    @property
    def file(self) -> str:
        """The file of the function, as a command names it."""
        return FILE if self.text else "project/views/functions.py"

    def files(self) -> dict[str, str]:
        """Return the text of FILE, if the command needs it."""
        return {FILE: "\n".join([*self.text, ""])} if self.text else {}

    def lines(self) -> list[Line]:
        """Return the source of the function."""
        if self.text:
            return [line for k, text in enumerate(self.text, 1) if (line := Line(k, text)).text]
        lines, first = inspect.getsourcelines(self.function)
        return [Line(first + k, text.rstrip("\n")) for k, text in enumerate(lines)]


def blend(a: Any, b: Any, c: Any) -> Any:
    """Compute a chain of elementwise functions."""
    gate = (a * b + c).sigmoid()
    return gate * a.relu() - (-b * b).exp()


def transposed(x: Any, row: Any) -> Any:
    """Add a row to a view of a computed value."""
    return (x.exp() * 2).T[1:] + row


def softmax(x: Any) -> Any:
    """Compute the softmax of rows."""
    e = mf.exp(x - x.max(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    """Normalize rows to mean 0 and variance 1, then scale and shift them."""
    centred = x - x.mean(1, keepdim=True)
    variance = (centred * centred).mean(1, keepdim=True)
    return centred / mf.sqrt(variance + 1e-5) * gain + bias


def huber(x: Any, y: Any) -> Any:
    """Compute the mean Huber loss: squares near 0, absolute values far from it."""
    d = (x - y).abs()
    return mf.where(d < 1.0, 0.5 * d * d, d - 0.5).mean()


def layer(x: Any, w: Any, b: Any) -> Any:
    """Compute a linear layer with ReLU."""
    return mf.relu(x @ w + b)


def momentum(p: Any, g: Any, m: Any) -> None:
    """Do one step of gradient descent with momentum, in place."""
    m *= 0.9
    m += g
    p -= m * 0.01


def attention(q: Any, k: Any) -> Any:
    """Compute the attention weights of queries and keys."""
    return (q @ k.T * 0.125).softmax(1)


def divide_by_sums(x: Any) -> Any:
    """Divide by column sums and by row sums."""
    return x / x.sum(0) / x.sum(1, keepdim=True)


def weighted(x: Any, w: Any) -> Any:
    """Multiply rows that are normalized to sum 1 by a matrix."""
    return (x / x.sum(1, keepdim=True)) @ w


def reordered(x: Any) -> Any:
    """Sum every second element, in the order of columns."""
    return x.exp().T.reshape(-1)[::2].sum()


def mean_square(x: Any, w: Any) -> Any:
    """Compute the mean square of tanh(x @ w), a loss."""
    return (mf.tanh(x @ w) ** 2).mean()


def gradient(x: Any, w: Any) -> Any:
    """Compute the gradient of a loss: forward and backward pass in one function."""
    return mf.grad(mean_square, argnums=1)(x, w)


TABLE, ROW, ROWS, WEIGHTS = ("n", "2n"), ("2n",), ("n",), ("2n", "n")

FUSED = (
    Example("a chain of operators", blend, (TABLE,) * 3, "Any number of elementwise functions is one kernel."),
    Example("views on the way", transposed, (TABLE, ROWS), "A view of a computed value costs nothing."),
    Example("softmax", softmax, (TABLE,), "Folds of the same rows share a kernel with all between them."),
    Example("layer norm", layer_norm, (TABLE, ROW, ROW), "A row is swept three times in one kernel."),
    Example("Huber loss", huber, (TABLE, TABLE), "All elements are one row."),
    Example("a layer", layer, (TABLE, WEIGHTS, ROWS), "Bias and activation wait where the sums are made."),
    Example("momentum", momentum, (TABLE,) * 3, "A new value is stored where the old one was read."),
    Example("attention", attention, (TABLE, TABLE), "A softmax needs whole rows of the product."),
    Example("rows and columns", divide_by_sums, (TABLE,), "Folds along two dims are two kernels."),
    Example("a product of softened rows", weighted, (TABLE, WEIGHTS), "No product begins with a fold."),
    Example("down the columns", reordered, (TABLE,), "What strides cannot say must lie in memory."),
    Example("a gradient", gradient, (TABLE, WEIGHTS), "Forward and backward are scheduled together."),
)


# Functions whose gradient is shown. A result that is not a scalar is summed first.


def polynomial(x: Any) -> Any:
    """Compute x * x + x, which uses x in two terms."""
    return x * x + x


def biased(x: Any, b: Any) -> Any:
    """Add the row b to each row of x, and multiply by x."""
    return (x + b) * x


def product(x: Any, w: Any) -> Any:
    """Compute two layers with one weight."""
    return mf.tanh(x @ w) @ w


def cubed_deviations(x: Any) -> Any:
    """Compute the cube of the deviation from the row mean."""
    d = x - x.mean(1, keepdim=True)
    return d * d * d


def neighbor_products(x: Any) -> Any:
    """Multiply neighboring columns, which are two views of one array."""
    return x.T[1:] * x.T[:-1]


def outer(x: Any, y: Any) -> Any:
    """Multiply a column by a row."""
    return mf.log(x.unsqueeze(1) * y)


def largest(x: Any) -> Any:
    """Multiply the maximum of each row by a sum over it."""
    return x.max(1) * x.exp().sum(1)


DIFFERENTIATED = (
    Example("x * x + x", polynomial, (ROWS,), "What is used twice receives twice, and adds up."),
    Example("a row for all rows", biased, (("n", 3), (3,)), "What was repeated receives the sum of all repeats."),
    Example("two products", product, (("n", 2), (2, 2)), "A weight that is used twice receives from both."),
    Example("centred rows", cubed_deviations, (("n", 3),), "A value, and a mean of it: two ways back."),
    Example("neighbours", neighbor_products, ((2, "n"),), "A view passes on what it saw, and zeros elsewhere."),
    Example("column times row", outer, (ROWS, (3,)), "Each is repeated along the dim of the other."),
    Example("largest of rows", largest, (("n", 3),), "Only the largest element receives anything from max."),
)


def find_example(name: str | None, among: tuple[Example, ...]) -> Example:
    """Return the example with this name, or the first one."""
    return next((example for example in among if example.name == name), among[0])
