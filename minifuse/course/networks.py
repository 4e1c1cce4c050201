"""Differentiable convolution, pooling, softmax and dropout for the tensors of an engine.

Networks of a student import them: `from minifuse.course.networks import conv2d, max_pool`. The functions allocate results,
call the slots of module 4, and save what the gradients need.
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
"""A stride or a padding: an int for conv1d, a tuple for conv2d."""


def conv1d(x: Tensor, weight: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
    """Convolve (batch, channels, width) with (out channels, channels, kernel width) to (batch, out channels, places)."""
    return apply_convolution("conv1d", x, weight, stride, padding)


def conv2d(x: Tensor, weight: Tensor, stride: Pair = (1, 1), padding: Pair = (0, 0)) -> Tensor:
    """Convolve (batch, channels, rows, columns) with kernels (out channels, channels, kernel rows, kernel columns).

    Examples
    --------
    >>> from minifuse.course.engine import Engine
    >>> engine = Engine()
    >>> x = engine.tensor([[[[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]]])
    >>> w = engine.tensor([[[[1.0, -1.0]]]])
    >>> conv2d(x, w).tolist()
    [[[[-1.0, -2.0], [-8.0, -16.0]]]]
    """
    return apply_convolution("conv2d", x, weight, stride, padding)


def average_pool(x: Tensor, window: Pair, stride: Pair | None = None) -> Tensor:
    """Average each window of rows and columns. By default, windows do not overlap."""
    return x.engine.apply(AveragePool, x, window=window, stride=stride or window)


def max_pool(x: Tensor, window: Pair, stride: Pair | None = None) -> Tensor:
    """Return the maximum of each window of rows and columns. By default, windows do not overlap."""
    return x.engine.apply(MaxPool, x, window=window, stride=stride or window)


def maximum(x: Tensor, dim: int) -> Tensor:
    """Return the maximum along a dim, which then has size 1."""
    return x.engine.apply("TensorMax", x, dim=x.value.dim(dim))


def softmax(x: Tensor, dim: int) -> Tensor:
    """Return the softmax along a dim."""
    return x.engine.apply("TensorSoftmax", x, dim=x.value.dim(dim))


def log_softmax(x: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the softmax along a dim."""
    return x.engine.apply("TensorLogSoftmax", x, dim=x.value.dim(dim))


def dropout(x: Tensor, rate: float, seed: int, is_training: bool) -> Tensor:
    """Set elements to 0 with probability `rate` and scale the others up, in training only."""
    return x.engine.apply("TensorDropout", x, rate=rate, seed=seed, is_training=is_training)


def apply_convolution(slot: str, x: Tensor, weight: Tensor, stride: Setting, padding: Setting) -> Tensor:
    """Apply a convolution and record it."""
    function = Conv1d if slot == "conv1d" else Conv2d
    return x.engine.apply(function, x, weight, stride=stride, padding=padding, is_data=x.is_constant)


def write_new(like: Values, shape: tuple[int, ...], slot: str, *operands: Operand) -> Values:
    """Allocate a tensor and let a slot write it."""
    out = like.engine.fresh(shape)
    like.engine.write(slot, out, *operands)
    return Values(like.engine, out)


def places(like: Values, sizes: tuple[int, ...], window: Shape, stride: Shape, padding: Shape) -> tuple[int, ...]:
    """Return the number of places of a window along each dim, by task 4.1."""
    return tuple(like.engine.slot("conv_size")(*four) for four in zip(sizes, window, stride, padding, strict=True))


def convolution_function(slot: str) -> Function:
    """Return the differentiable function of a convolution, whose forward and gradients are slots."""

    def forward(context: Context, x: Values, weight: Values, stride: Setting, padding: Setting, is_data: bool) -> Values:
        context.save(x, weight, stride, padding, is_data)
        pairs = [(n,) if isinstance(n, int) else n for n in (stride, padding)]
        sizes = places(x, x.shape[2:], weight.shape[2:], *pairs)
        return write_new(x, (x.shape[0], weight.shape[0], *sizes), slot, x.data, weight.data, stride, padding)

    def backward(context: Context, d: Values) -> tuple[Values | None, Values]:
        x, weight, stride, padding, is_data = context.saved
        of_weight = write_new(d, weight.shape, f"{slot}_weight_gradient", x.data, d.data, stride, padding)
        if is_data:  # the gradient of data is not needed
            return None, of_weight
        return write_new(d, x.shape, f"{slot}_input_gradient", d.data, weight.data, stride, padding), of_weight

    return make_function(slot, forward, backward)


def pool_function(slot: str, *, needs_input: bool) -> Function:
    """Return the differentiable function of pooling, whose forward and gradient are slots."""

    def forward(context: Context, x: Values, window: Pair, stride: Pair) -> Values:
        context.save(x, window, stride)
        shape = (*x.shape[:2], *places(x, x.shape[2:], window, stride, (0, 0)))
        return write_new(x, shape, slot, x.data, window, stride)

    def backward(context: Context, d: Values) -> tuple[Values]:
        x, window, stride = context.saved
        operands: list[Strided] = [x.data, d.data] if needs_input else [d.data]
        return (write_new(d, x.shape, f"{slot}_gradient", *operands, window, stride),)

    return make_function(slot, forward, backward)


def make_function(name: str, forward: Slot, backward: Slot) -> Function:
    """Return a class with static methods `forward` and `backward`, as `Engine.apply` requires."""
    new: Any = type(name, (), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    typed: Function = new
    return typed


Conv1d, Conv2d = convolution_function("conv1d"), convolution_function("conv2d")
AveragePool, MaxPool = pool_function("average_pool", needs_input=False), pool_function("max_pool", needs_input=True)
