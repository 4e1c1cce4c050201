"""Patches: the windows of batches of images, as a view of (C, ..., N), and their gradient.

Convolutions and poolings are products and folds of patches. Examples lie closest in memory: there neighbours of a window are
next to each other for all examples, so what walks patches goes by long runs.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.dtypes import DType, as_number
from ..core.errors import ShapeError
from ..core.indexing import Range
from ..core.layout import Layout
from ..core.operators import add
from ..ir.array_functions import CompositeOp, Matmul, PadSlice, Reduce, ShapeDtype, View, overlap_add
from ..ir.vjp import strip_reshapes

Sizes = int | Sequence[int]
NEAR = 4  # times as many elements may be copied, where a convolution takes the place of sums over windows
MANY = 10_000  # geometries that are remembered


class Geometry(NamedTuple):
    """Where the windows of a convolution lie: one number for each dim of an image, and the zeros on its two sides."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


def listed(given: Any) -> Any:
    """Return one size, or several, as Python numbers, which can be a part of a key."""
    return tuple(map(as_number, given)) if isinstance(given, list | tuple) else as_number(given)


def per_dim(name: str, what: str, given: Any, dims: int, least: int) -> tuple[int, ...]:
    """One number for each of some dims, where one stands for all; a ShapeError where it is something else."""
    known = listed(given)
    numbers = known if isinstance(known, tuple) else (known,) * dims
    if len(numbers) != dims or any(type(n) is not int or n < least for n in numbers):
        several = f", or {dims} of them" if dims > 1 else ""
        raise ShapeError(f"{name}: got {what}={given!r}, expected an integer of at least {least}{several}")
    return numbers


def check_windows(name: str, image: Sequence[int], kernel: Sequence[int], of: Geometry) -> None:
    """Raise where not even one window fits into an image and the zeros around it."""
    wide = tuple(n + before + after for n, (before, after) in zip(image, of.padding, strict=True))
    reach = tuple(gap * (n - 1) + 1 for gap, n in zip(of.dilation, kernel, strict=True))
    if any(n < r for n, r in zip(wide, reach, strict=True)):
        raise ShapeError(
            f"{name}: a window reaches over {reach} (kernel {tuple(kernel)}, dilation {of.dilation}), and x has only {wide} "
            f"(shape {tuple(image)}, with its padding); take a smaller kernel or more padding"
        )


# What is captured.


def room(z: Any, padding: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[Range, ...]]:
    """The shape of (C, ..., N) with padding around each dim between, and where in it the elements are."""
    sides = ((0, 0), *padding, (0, 0))
    shape = tuple(before + n + after for n, (before, after) in zip(z.shape, sides, strict=True))
    return shape, tuple((before, 1, n) for n, (before, _) in zip(z.shape, sides, strict=True))


def patches_of(z: Any, size: Sequence[int], step: tuple[int, ...], dilation: tuple[int, ...]) -> Any:
    """(C, ..., N) -> (C, *size, *places, N): all windows."""
    return Patches("patches", (tuple(size), step, dilation))(z)


class OverWindows(CompositeOp):
    """What products of windows have in common: their parameters, and the matrix of all windows.

    Parameters
    ----------
    size, step, dilation : tuple of int
        Of windows, one number a dim.
    dtype : DType
        Of all operands.
    product : Matmul
        In which precision.
    """

    __slots__ = ("dilation", "dtype", "product", "size", "step")
    output_layout_like = (None,)

    def __init__(
        self, size: tuple[int, ...], step: tuple[int, ...], dilation: tuple[int, ...], dtype: DType, product: Matmul
    ) -> None:
        self.size, self.step, self.dilation, self.dtype, self.product = size, step, dilation, dtype, product

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Without the precision, which is the definition's."""
        return self.size, self.step, self.dilation, self.dtype

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """As the definition."""
        (y,) = self.body(*inputs)
        return ((y.shape, y.dtype),)

    def patches(self, z: Any) -> Any:
        """(C, ..., N) -> (C, *size, *places, N)."""
        return patches_of(z, self.size, self.step, self.dilation)

    def matrix(self, z: Any, groups: int) -> Any:
        """(C, ..., N) -> (groups, C / groups * size, places * N), which is a copy where windows overlap."""
        k = z.shape[0] // groups * math.prod(self.size)
        patches = self.patches(z)
        return patches.reshape(groups, k, patches.size // max(groups * k, 1))


class WindowProduct(OverWindows):
    """(groups, M, K) times the windows of (C, ..., N), and a bias (groups * M,) or none -> (groups, M, places * N).

    A backend that knows it need not copy windows.
    """

    __slots__ = ()
    names = ("window_product",)

    def body(self, weight: Any, z: Any, *bias: Any) -> tuple[Any, ...]:
        """The weight times the matrix of all windows."""
        groups, m, _ = weight.shape
        y = self.product(weight, self.matrix(z, groups))
        return (y + bias[0].reshape(groups, m, 1) if bias else y,)

    def vjp(self, index: int, g: Any, weight: Any, z: Any, *bias: Any) -> tuple[Any, ...]:
        """Of z what windows receive, which is a product, and may be one of windows; of the weight another product."""
        patches = self.patches(z)
        (given,) = patches.function.vjp(self.product(weight.mT, g).reshape(*patches.shape), patches, z)
        (learned,) = WindowGradient(self.size, self.step, self.dilation, self.dtype, self.product)(g, z)
        return learned, given, *[Reduce(add, (2,))(g).reshape(b.size) for b in bias]


class WindowGradient(OverWindows):
    """(groups, M, places * N) times the windows of (C, ..., N), transposed -> (groups, M, K): what a weight receives."""

    __slots__ = ()
    names = ("window_gradient",)

    def body(self, g: Any, z: Any) -> tuple[Any, ...]:
        """The product with the matrix of all windows."""
        return (self.product(g, self.matrix(z, g.shape[0]).mT),)


class Patches(View):
    """(C, ..., N) -> (C, *size, *places, N): the windows of all dims between, seen without a copy.

    Parameters are the size, the step and the dilation of windows, each with one number a dim.
    """

    __slots__ = ()

    def layout(self, layout: Layout) -> Layout:
        """The strides of windows, those inside of a window first."""
        for d, numbers in enumerate(zip(*self.parameters, strict=True)):
            layout = layout.sliding_windows(1 + d, *numbers)
        n = len(self.parameters[0])
        return layout.permute(0, *range(n + 2, 2 * n + 2), *range(1, n + 2))

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """What overlaps adds up, the last dim first; of a product that may be one convolution."""
        if (found := self.convolved(g, x)) is not None:
            return (found,)
        size, step, dilation = self.parameters
        if size == step and set(dilation) == {1}:
            return (self.laid_out(g, x.shape),)
        for d, numbers in reversed([*enumerate(zip(*self.parameters, strict=True))]):
            inside, place = 1 + d, 1 + 2 * d  # where the index in a window is now, and that of windows without it
            g = g.permute(*(k for k in range(g.ndim) if k != inside), inside)
            g = overlap_add(g, (*g.shape[:place], x.shape[1 + d], *g.shape[place + 1 : -1]), place, *numbers)
        return (g,)

    def laid_out(self, g: Any, shape: Sequence[int]) -> Any:
        """The same, where windows lie beside each other: one reshape, which is a view of what lies in the order of x."""
        dims = len(self.parameters[0])
        order = [d for k in range(dims) for d in (1 + dims + k, 1 + k)]  # a window, what is in it
        sizes = [g.shape[1 + dims + k] * g.shape[1 + k] for k in range(dims)]
        y = g.permute(0, *order, 2 * dims + 1).reshape(g.shape[0], *sizes, g.shape[-1])
        rest = [(0, n - size) for n, size in zip(shape[1:-1], sizes, strict=True)]
        return PadSlice(*room(y, rest))(y) if any(map(any, rest)) else y

    def convolved(self, g: Any, x: Any) -> Any:
        """The same, where g is the product of a transposed kernel and b: the convolution of b with the flipped kernel.

        None where it is not, or where that would copy far more. Zeros around x, which nobody asks about, are left out.
        """
        size, step, dilation = self.parameters
        product, places, n = strip_reshapes(g), g.shape[1 + len(size) : -1], g.shape[-1]
        is_product = isinstance(product.function, Matmul) and product.ndim == 3 and g.shape[0] % product.shape[0] == 0
        if not is_product or product.shape[2] != math.prod(places) * n:
            return None
        a, b = product.inputs  # (groups, C / groups * size, M), (groups, M, places * N)
        groups, m, around = a.shape[0], a.shape[2], padding_of(x)
        image = tuple(length for _, _, length in around.ranges[1:-1]) if around else x.shape[1:-1]
        if not self.overlap(places) or groups * m * math.prod(image) > NEAR * g.shape[0] * math.prod(places):
            return None
        before = [gap * (k - 1) for gap, k in zip(dilation, size, strict=True)]
        if around:
            before = [n - start for n, (start, _, _) in zip(before, around.ranges[1:-1], strict=True)]
        behind = [
            i + gap * (k - 1) - p - left for i, gap, k, p, left in zip(image, dilation, size, places, before, strict=True)
        ]
        if min(*before, *behind) < 0:
            return None
        z = b.reshape(groups * m, *places, n)
        if any(before) or any(behind):
            z = PadSlice(*room(z, [*zip(before, behind, strict=True)]))(z)
        inside = range(2, 2 + len(size))
        kernel = a.reshape(groups, -1, *size, m).flip(*inside).permute(0, 1, 2 + len(size), *inside)
        multiply = WindowProduct(size, step, dilation, z.dtype, product.function)
        (y,) = multiply(kernel.reshape(groups, -1, m * math.prod(size)), z)
        y = y.reshape(g.shape[0], *image, n)
        return around(y) if around else y

    def overlap(self, places: Sequence[int]) -> bool:
        """Whether windows lie one element apart, and there are several elements in a window, and several windows."""
        size, step, _ = self.parameters
        return set(step) == {1} and set(size) != {1} and set(places) != {1}


def padding_of(x: Any) -> Any:
    """The function that has put zeros around each dim of (C, ..., N) between; None where nothing was put there."""
    function = x.function
    if not isinstance(function, PadSlice):
        return None
    (inner,) = x.inputs
    is_padding = inner.shape[0] == x.shape[0] and inner.shape[-1] == x.shape[-1]
    return function if is_padding and all(step == 1 for _, step, _ in function.ranges) else None
