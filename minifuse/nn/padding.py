"""Padding: `pad`, and a layer for each mode and number of dims.

Padding with a number is a slice update. The other modes select elements along each dim, by an index that kernels compute
from the position. Both fuse with the ops that follow.
"""

from collections.abc import Sequence
from typing import Any

from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.operators import abs, maximum, minimum  # noqa: A004
from ..ir.array_functions import A, BoundFunction, Full, PadSlice, SliceUpdate, View
from ..ir.array_methods import Array
from ..ir.gather import Gather
from .im2col import as_numbers
from .layers import FunctionLayer, apply, layers_by_dims, require_tensor

Sides = int | Sequence[int]
MODES = "constant", "reflect", "replicate", "circular"


def pad(x: A, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> A:
    """Add elements before and after the elements of dims.

    Parameters
    ----------
    x : Tensor
    pad : sequence of int
        How many elements before and after, for the last dim first: (left, right, top, bottom, ...). A negative number
        removes elements.
    mode : {"constant", "reflect", "replicate", "circular"}
        "constant" adds `value`, "reflect" mirrors at the first and last element, which are not repeated, "replicate"
        repeats these, and "circular" continues with the elements of the other end.
    value : float
        The number to add in mode "constant". Default: 0.

    Returns
    -------
    Tensor
        The dtype of x.

    Raises
    ------
    ShapeError
        There are more pairs than dims, or an element would be mirrored or wrapped that does not exist.
    ValueError
        The mode does not exist.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[1.0, 2.0, 3.0]])
    >>> mf.nn.functional.pad(x, (1, 2), mode="reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    >>> mf.nn.functional.pad(x, (0, 1, 1, 0), value=9)
    tensor([[9., 9., 9., 9.],
            [1., 2., 3., 9.]])
    """
    require_tensor("pad", x)
    if mode not in MODES:
        raise ValueError(f"pad: got mode={mode!r}, expected one of {', '.join(MODES)}")
    numbers = as_numbers(tuple(pad))
    if len(numbers) % 2 or len(numbers) > 2 * x.ndim or any(type(n) is not int for n in numbers):
        raise ShapeError(f"pad: got pad={pad!r} for x of shape {x.shape}, expected two integers for each of the last dims")
    pairs = [*zip(numbers[::2], numbers[1::2], strict=True)][::-1]
    sides = (*[(0, 0)] * (x.ndim - len(pairs)), *pairs)
    for d, (n, (before, after)) in enumerate(zip(x.shape, sides, strict=True)):
        largest = n + max(before, after, 0) if mode in ("constant", "replicate") else n - (mode == "reflect")
        if max(before, after) > largest or before + after + n < 0 or (mode != "constant" and not n and before + after):
            raise ShapeError(f"pad: got {(before, after)} for dim {d} of shape {x.shape}, too much for mode {mode!r}")
    if mode == "constant":
        return apply(BoundFunction(_pad_constant, (sides,)), x, *[as_number(value)] * bool(value))
    return apply(BoundFunction(_pad_by_index, (sides, mode)), x)


def _pad_constant(x: Array, *value_and_sides: Any) -> Array:
    *value, sides = value_and_sides
    kept = [slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in zip(x.shape, sides, strict=True)]
    z = x[tuple(kept)] if x.ndim else x
    ranges = tuple((max(before, 0), 1, n) for n, (before, _) in zip(z.shape, sides, strict=True))
    shape = tuple(n + max(before, 0) + max(after, 0) for n, (before, after) in zip(z.shape, sides, strict=True))
    if not value:
        return PadSlice(shape, ranges)(z)
    return SliceUpdate((View("slice", ranges),))(x.apply(Full(shape, x.dtype), *value), z)


def _pad_by_index(x: Array, sides: tuple[tuple[int, int], ...], mode: str) -> Array:
    for d, (n, (before, after)) in enumerate(zip(x.shape, sides, strict=True)):
        if before or after:
            index = x.positions(n + before + after) - before
            if mode == "circular":
                index = index % n
            elif mode == "replicate":
                index = minimum(maximum(index, 0), n - 1)
            else:
                index = n - 1 - abs(n - 1 - abs(index))
            x = Gather(d)(x, index)
    return x


class Padding(FunctionLayer):
    """Base class of the layers that pad the last `dims` dims in one mode."""

    options: tuple[str, ...] = ("padding",)
    dims: int
    mode: str
    value = 0.0

    def __init__(self, padding: Sides) -> None:
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, x: A) -> A:
        """Pad x: (N, C, ...) -> (N, C, ...) with larger dims."""
        return pad(x, self.padding, self.mode, self.value)


class ConstantPadding(Padding):
    """Base class of the layers that pad with a number."""

    options = "padding", "value"

    def __init__(self, padding: Sides, value: float) -> None:
        super().__init__(padding)
        self.value = value


BASES = {
    "Constant": (ConstantPadding, "constant", "a number"),
    "Zero": (Padding, "constant", "zeros"),
    "Reflection": (Padding, "reflect", "the mirrored elements"),
    "Replication": (Padding, "replicate", "the first and last elements"),
    "Circular": (Padding, "circular", "the elements of the other end"),
}
LAYERS: dict[str, Any] = {}
for _name, (_base, _mode, _what) in BASES.items():
    LAYERS |= layers_by_dims(_base, f"{_name}Pad", f"Pad the last {{n}} dims with {_what}: see `pad`.", mode=_mode)
globals().update(LAYERS)

__all__ = ["pad", *LAYERS]
