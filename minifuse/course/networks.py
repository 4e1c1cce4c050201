"""Convolution, pooling, softmax and dropout for the tensors of an engine: the slots of module 4 behind a history.

What a network is written with: `from minifuse.course.networks import conv2d, max_pool`. Nothing is computed here; memory for
results is made, slots are called, and what their gradients need is kept.
"""

from typing import Any

from ..core.indexing import Shape
from .oracle import Slot
from .strided import Strided
from .values import Operand, Values
from .variables import Context, Function, Tensor

__all__ = ["average_pool", "conv1d", "conv2d", "dropout", "log_softmax", "max_pool", "maximum", "softmax"]
Pair = tuple[int, int]
Setting = int | Shape
"""Of a convolution along one dim, or along two."""


def conv1d(x: Tensor, weight: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
    """(batch, channels, width) under kernels (out channels, channels, kernel width): (batch, out channels, places)."""
    return convolved("conv1d", x, weight, stride, padding)


def conv2d(x: Tensor, weight: Tensor, stride: Pair = (1, 1), padding: Pair = (0, 0)) -> Tensor:
    """(batch, channels, rows, columns) under kernels (out channels, channels, kernel rows, kernel columns).

    Examples
    --------
    >>> from minifuse.course.engine import Engine
    >>> engine = Engine()
    >>> x = engine.tensor([[[[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]]])
    >>> w = engine.tensor([[[[1.0, -1.0]]]])
    >>> conv2d(x, w).tolist()
    [[[[-1.0, -2.0], [-8.0, -16.0]]]]
    """
    return convolved("conv2d", x, weight, stride, padding)


def average_pool(x: Tensor, window: Pair, stride: Pair | None = None) -> Tensor:
    """The mean of each window of rows and columns; windows lie side by side if no stride is given."""
    return x.engine.apply(AveragePool, x, window=window, stride=stride or window)


def max_pool(x: Tensor, window: Pair, stride: Pair | None = None) -> Tensor:
    """The largest of each window of rows and columns; windows lie side by side if no stride is given."""
    return x.engine.apply(MaxPool, x, window=window, stride=stride or window)


def maximum(x: Tensor, dim: int) -> Tensor:
    """The largest along a dim, which has size 1 then."""
    return x.engine.apply("TensorMax", x, dim=x.value.dim(dim))


def softmax(x: Tensor, dim: int) -> Tensor:
    """Probabilities along a dim."""
    return x.engine.apply("TensorSoftmax", x, dim=x.value.dim(dim))


def log_softmax(x: Tensor, dim: int) -> Tensor:
    """Logarithms of probabilities along a dim."""
    return x.engine.apply("TensorLogSoftmax", x, dim=x.value.dim(dim))


def dropout(x: Tensor, rate: float, seed: int, is_training: bool) -> Tensor:
    """Elements left out with a probability, and the others scaled up; in training only."""
    return x.engine.apply("TensorDropout", x, rate=rate, seed=seed, is_training=is_training)


def convolved(slot: str, x: Tensor, weight: Tensor, stride: Setting, padding: Setting) -> Tensor:
    """A convolution, remembered."""
    function = Conv1d if slot == "conv1d" else Conv2d
    return x.engine.apply(function, x, weight, stride=stride, padding=padding, is_data=x.is_constant)


def filled(like: Values, shape: tuple[int, ...], slot: str, *operands: Operand) -> Values:
    """A new tensor that a slot has written."""
    out = like.engine.fresh(shape)
    like.engine.write(slot, out, *operands)
    return Values(like.engine, out)


def places(like: Values, sizes: tuple[int, ...], window: Shape, stride: Shape, padding: Shape) -> tuple[int, ...]:
    """How many windows fit, along each dim, by task 4.1."""
    return tuple(like.engine.slot("conv_size")(*four) for four in zip(sizes, window, stride, padding, strict=True))


def convolution(slot: str) -> Function:
    """The function of a convolution: forward and both gradients are slots."""

    def forward(context: Context, x: Values, weight: Values, stride: Setting, padding: Setting, is_data: bool) -> Values:
        context.save(x, weight, stride, padding, is_data)
        pairs = [(n,) if isinstance(n, int) else n for n in (stride, padding)]
        found = places(x, x.shape[2:], weight.shape[2:], *pairs)
        return filled(x, (x.shape[0], weight.shape[0], *found), slot, x.data, weight.data, stride, padding)

    def backward(context: Context, d: Values) -> tuple[Values | None, Values]:
        x, weight, stride, padding, is_data = context.saved
        of_weight = filled(d, weight.shape, f"{slot}_weight_gradient", x.data, d.data, stride, padding)
        if is_data:  # nobody asks for it, and it costs as much as the other
            return None, of_weight
        return filled(d, x.shape, f"{slot}_input_gradient", d.data, weight.data, stride, padding), of_weight

    return function(slot, forward, backward)


def pool(slot: str, *, needs_input: bool) -> Function:
    """The function of pooling: forward and its gradient are slots."""

    def forward(context: Context, x: Values, window: Pair, stride: Pair) -> Values:
        context.save(x, window, stride)
        shape = (*x.shape[:2], *places(x, x.shape[2:], window, stride, (0, 0)))
        return filled(x, shape, slot, x.data, window, stride)

    def backward(context: Context, d: Values) -> tuple[Values]:
        x, window, stride = context.saved
        operands: list[Strided] = [x.data, d.data] if needs_input else [d.data]
        return (filled(d, x.shape, f"{slot}_gradient", *operands, window, stride),)

    return function(slot, forward, backward)


def function(name: str, forward: Slot, backward: Slot) -> Function:
    """A class as `Engine.apply` takes it."""
    made: Any = type(name, (), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    found: Function = made
    return found


Conv1d, Conv2d = convolution("conv1d"), convolution("conv2d")
AveragePool, MaxPool = pool("average_pool", needs_input=False), pool("max_pool", needs_input=True)
