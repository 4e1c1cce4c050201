"""Cases for tasks about convolution and pooling, how to run and print them, and the answers of known mistakes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.indexing import Shape
from .cases import among, layout_link, strided_like
from .check import agreement, in_turn
from .conv_rare_cases import (
    agree_closely,
    between,
    large_convolutions,
    large_pools,
    make_output,
    product_sums,
    refilled,
    scaled,
    signed,
    ties,
    with_infinity,
    with_large,
    zeros_and_ones,
)
from .draw import rows
from .keeping import keeps_nothing
from .loops import describe_layout
from .oracle import function, module4
from .questions.convolution import Case, ask, ask_twice, run_slot
from .strided import Array
from .task import Check

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

PARTS = {
    "conv": ("inputs", "weight"),
    "input_gradient": ("gradient", "weight"),
    "weight_gradient": ("inputs", "gradient"),
    "pool": ("inputs",),
    "average_pool_gradient": ("gradient",),
    "max_pool_gradient": ("inputs", "gradient"),
}
LARGE_SHARE, ODD_SHARE = 0.4, 0.4  # of the usual number of cases


def small_convolutions(draw: "DrawFn", dims: int) -> tuple[dict[str, Shape], Shape, Shape]:
    """Draw (shapes of inputs, weight and gradient, stride, padding) of small sizes.

    A kernel may be larger than the input if the padding makes up for it, and the padding may be larger than the kernel.
    """
    kernel = tuple(between(draw, 1, 5 if dims == 1 else 4) for _ in range(dims))
    stride, padding = [tuple(between(draw, n, 3) for _ in range(dims)) for n in (1, 0)]
    inputs = tuple(between(draw, max(1, k - 2 * p), 8 if dims == 1 else 5) for k, p in zip(kernel, padding, strict=True))
    places = tuple((n + 2 * p - k) // s + 1 for n, p, k, s in zip(inputs, padding, kernel, stride, strict=True))
    batch, channels, outputs = between(draw, 1, 3), between(draw, 1, 3), between(draw, 1, 4)
    shapes = {
        "inputs": (batch, channels, *inputs),
        "weight": (outputs, channels, *kernel),
        "gradient": (batch, outputs, *places),
    }
    return shapes, stride, padding


def convolutions(slot: str, *, is_large: bool = False, is_odd: bool = False) -> "SearchStrategy[Case]":
    """Draw cases of a convolution slot, such as conv1d or conv2d_input_gradient, with different settings for two dims.

    Sizes are far above the usual ones if `is_large`; elements are tiny, large, 0, infinity or NaN if `is_odd`.
    """
    from hypothesis import strategies as st

    dims = int(slot[4])

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        shapes, stride, padding = (large_convolutions if is_large else small_convolutions)(draw, dims)
        names = PARTS[slot.partition("_")[2] or "conv"]
        (result,) = set(shapes) - set(names)
        operands = [strided_like(draw, shapes[name], start=-9 * k - 5) for k, name in enumerate(names)]
        if is_odd:
            fills = draw(among((signed, signed), (with_infinity, zeros_and_ones), (zeros_and_ones, with_infinity)))
            operands = [refilled(draw, x, fill) for x, fill in zip(operands, fills, strict=True)]
        settings = (stride, padding) if dims > 1 else (stride[0], padding[0])
        return Case(make_output(draw, shapes[result]), tuple(operands), *settings)

    return case()


def pools(slot: str, *, is_large: bool = False, is_odd: bool = False) -> "SearchStrategy[Case]":
    """Draw cases of a pooling slot: windows that overlap or leave gaps, equal elements, and only negative elements.

    Sizes are far above the usual ones if `is_large`; elements are tiny, large, equal or infinite if `is_odd`.
    """
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        inputs, places, window, stride = (large_pools if is_large else small_pools)(draw)
        few, less = draw(among(3, 1000, 1)), draw(among(0, 1100))
        operands = []
        for name in PARTS.get(slot, PARTS["pool"]):
            x = strided_like(draw, inputs if name == "inputs" else places)
            if is_odd:
                with_ties = slot.startswith("max")
                fill = draw(among(scaled) if with_ties and name == "gradient" else among(scaled, with_large))
                x = refilled(draw, x, ties if with_ties and name == "inputs" else fill)
            elif name == "inputs":
                x = x._replace(storage=x.storage * 37 % few - few // 2 - less)
            operands.append(x)
        return Case(make_output(draw, inputs if slot.endswith("gradient") else places), tuple(operands), window, stride)

    return case()


def small_pools(draw: "DrawFn") -> tuple[Shape, Shape, Shape, Shape]:
    """Draw (shape of inputs, shape of the result, window, stride) of small sizes."""
    window, stride = [(between(draw, 1, 3), between(draw, 1, 3)) for _ in range(2)]
    inputs = tuple(between(draw, k, 6) for k in window)
    places = tuple((n - k) // s + 1 for n, k, s in zip(inputs, window, stride, strict=True))
    lead = between(draw, 1, 2), between(draw, 1, 3)
    return (*lead, *inputs), (*lead, *places), window, stride


def storage_with(case: Case, values: npt.ArrayLike) -> Array:
    """Return the storage of the output after assigning its elements."""
    case = case.copy()
    case.out.array()[...] = values
    return case.out.storage


def store_result(values: Callable[..., Array]) -> Callable[[Case], Array]:
    """Return a function of a case: the storage of the output with the elements that `values` computes."""

    def store(case: Case) -> Array:
        with np.errstate(all="ignore"):
            return storage_with(case, values(case, *case.arrays()))

    return store


def describe_case(slot: str, case: Case) -> str:
    """Return a case as text."""
    names = PARTS.get(slot) or PARTS["pool" if "pool" in slot else slot.partition("_")[2] or "conv"]
    parts = [f"out {describe_layout(case.out)}"]
    parts += [f"{name} {describe_layout(x)}" for name, x in zip(names, case.operands, strict=True)]
    return (
        "; ".join(parts)
        + f"; {'window' if 'pool' in slot else 'stride'} {case.first}, "
        + (f"{'stride' if 'pool' in slot else 'padding'} {case.second}")
    )


def drawing(slot: str, case: Case, got: object, expected: object) -> list[str]:
    """Draw the operands, and the expected and actual storage of the output."""
    names = PARTS.get(slot) or PARTS["pool" if "pool" in slot else slot.partition("_")[2] or "conv"]
    lines = [line for name, x in zip(names, case.arrays(), strict=True) for line in rows(x, name)]
    return [*lines, *rows(expected, "expected"), *rows(got, "got")]


def agrees(name: str, slot: str) -> Check:
    """Return a check that a slot writes the same storage as the oracle's.

    Cases with large sizes, and with tiny, large, equal and infinite elements, follow the usual ones. The latter are asked
    twice, with other elements in the second call.
    """
    draw_cases = pools if "pool" in slot else convolutions

    def twice(case: Case) -> list[Array]:
        return [right_storage(slot, one) for one in (case, case.changed())]

    def link(case: Case) -> str:
        return layout_link(case.operands[0])

    common = partial(agreement, name, describe=partial(describe_case, slot), link=link)
    right = partial(right_storage, slot)
    usual = common(partial(draw_cases, slot), partial(ask, slot), right, draw=partial(drawing, slot))
    large = common(partial(draw_cases, slot, is_large=True), partial(ask, slot), right, share=LARGE_SHARE)
    odd = common(
        partial(draw_cases, slot, is_odd=True), partial(ask_twice, slot), twice, agree=agree_closely, share=ODD_SHARE
    )
    keeps = keeps_nothing(name, partial(draw_cases, slot), slot, partial(ask, slot), Case.halved)
    return in_turn(name, [usual, large, odd, keeps])


def right_storage(slot: str, case: Case) -> Array:
    """Return the storage of the output that a slot must write."""
    return run_slot(function(slot), case) if "pool" in slot else product_sums(slot, case)


# Answers of known mistakes


def convolve(case: Case, x: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """Convolve at as many places as the output has, with zeros outside of the input."""
    places, kernel = case.out.shape[2:], weight.shape[2:]
    trailing = [max(0, (n - 1) * s + k) for n, s, k in zip(places, stride, kernel, strict=True)]
    padded = np.pad(x, [(0, 0), (0, 0), *[(p, m) for p, m in zip(padding, trailing, strict=True)]])
    result = module4.convolution(padded, weight, stride, (0,) * len(stride))
    return result[:, :, *[slice(n) for n in places]]


def setting_pairs(case: Case) -> tuple[Shape, Shape]:
    """Return both settings as tuples."""
    return module4.pair(case.first), module4.pair(case.second)


def flipped(weight: Array) -> Array:
    """Flip kernels along their spatial dims."""
    return np.flip(weight, tuple(range(2, weight.ndim)))


def kernel_flipped(case: Case, x: Array, weight: Array) -> Array:
    """Convolve with flipped kernels, the mathematical definition."""
    return convolve(case, x, flipped(weight), *setting_pairs(case))


def padding_behind(case: Case, x: Array, weight: Array) -> Array:
    """Convolve with all padding behind the input."""
    stride, padding = setting_pairs(case)
    return convolve(case, x, weight, stride, (0,) * len(padding))


def stride_ignored(case: Case, x: Array, weight: Array) -> Array:
    """Convolve with stride 1."""
    stride, padding = setting_pairs(case)
    return convolve(case, x, weight, (1,) * len(stride), padding)


def last_channel(case: Case, x: Array, weight: Array) -> Array:
    """Convolve the last channel only: the sum restarts for each channel."""
    return convolve(case, x[:, -1:], weight[:, -1:], *setting_pairs(case))


def exchanged(case: Case, x: Array, weight: Array) -> Array:
    """Convolve with the settings of rows and columns exchanged."""
    stride, padding = setting_pairs(case)
    return convolve(case, x, weight, stride[::-1], padding[::-1])


def unguarded(case: Case, guarded: Sequence[int] = (), guards: str = "") -> Array:
    """Convolve without bounds checks, except along `guarded` dims: outside of the input, read other parts of the storage.

    `guards` is "end" if an index is compared with the size, and not with 0.
    """
    x, weight = case.operands
    stride, padding = setting_pairs(case)
    result = np.zeros(case.out.shape)
    kernel = weight.array()
    for index in np.ndindex(case.out.shape):
        corner = [y * s - p for y, s, p in zip(index[2:], stride, padding, strict=True)]
        for c, *k in np.ndindex(kernel.shape[1:]):
            at = [a + b for a, b in zip(corner, k, strict=True)]
            if guards == "end" and any(n >= size for n, size in zip(at, x.shape[2:], strict=True)):
                continue
            if all(0 <= at[d] < x.shape[2 + d] for d in guarded):
                place = x.offset + int(np.dot((index[0], c, *at), x.strides))
                result[index] += float(x.storage[place]) * float(kernel[(index[1], c, *k)])
    return storage_with(case, result)


def last_image(case: Case, x: Array, d: Array) -> Array:
    """Compute the gradient of the weight from the last image only: the sum restarts for each image."""
    return module4.convolution_weight_gradient(case.out.shape, x[-1:], d[-1:], *setting_pairs(case))


def padding_in_gradient(case: Case, d: Array, weight: Array) -> Array:
    """Compute the gradient of the input, and forget that its indices are shifted by the padding."""
    stride, padding = setting_pairs(case)
    n = case.out.shape
    padded = (*n[:2], *[size + 2 * p for size, p in zip(n[2:], padding, strict=True)])
    result = module4.convolution_input_gradient(padded, d, weight, stride, (0,) * len(stride))
    return result[:, :, *[slice(size) for size in n[2:]]]


def pooled_by_window(case: Case, x: Array) -> Array:
    """Average windows with a stride of the window's size; outside of the input, read other parts of the storage."""
    (tensor,), (window, _) = case.operands, setting_pairs(case)
    result = np.full(case.out.shape, np.nan)
    for index in np.ndindex(case.out.shape):
        corner = [y * k for y, k in zip(index[2:], window, strict=True)]
        places = [(*index[:2], corner[0] + i, corner[1] + j) for i, j in np.ndindex(*window)]
        result[index] = np.mean([tensor.storage[tensor.offset + int(np.dot(at, tensor.strides))] for at in places])
    return result


def pooled_back(
    case: Case, d: Array, part: Callable[[Array, float], Array], x: Array | None = None, adds: bool = True
) -> Array:
    """Compute a gradient of pooling. `part(window, gradient)` returns what each element of the window receives."""
    result, (window, stride) = np.zeros(case.out.shape), setting_pairs(case)
    for b, c, y, z in np.ndindex(d.shape):
        top, left = y * stride[0], z * stride[1]
        at = b, c, slice(top, top + window[0]), slice(left, left + window[1])
        got = part(result[at] if x is None else x[at], float(d[b, c, y, z]))
        result[at] = result[at] + got if adds else np.where(got == 0, result[at], got)
    return result
