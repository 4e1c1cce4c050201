"""Convolution and pooling as tasks ask for them: cases, what they look like, and what NumPy makes of them on all sides."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.indexing import Shape
from .cases import fresh, layout_link, strided_like
from .check import agreement
from .draw import rows
from .loops import in_words
from .networks import Setting
from .oracle import function, module4
from .strided import Array, Strided
from .student import Student
from .task import Check

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PARTS = {
    "conv": ("inputs", "weight"),
    "input_gradient": ("gradient", "weight"),
    "weight_gradient": ("inputs", "gradient"),
    "pool": ("inputs",),
    "average_pool_gradient": ("gradient",),
    "max_pool_gradient": ("inputs", "gradient"),
}


class Case(NamedTuple):
    """A call of a slot: `out`, one or two operands, and two settings, of a number or a pair each."""

    out: Strided
    operands: tuple[Strided, ...]
    first: Setting
    """The stride of a convolution; the window of pooling."""
    second: Setting
    """The padding of a convolution; the stride of pooling."""

    def copy(self) -> "Case":
        """With an output of its own."""
        return self._replace(out=self.out._replace(storage=self.out.storage.copy()))

    def arrays(self) -> list[Array]:
        """The operands."""
        return [x.array() for x in self.operands]


def convolutions(slot: str) -> "SearchStrategy[Case]":
    """Cases of a convolution: conv1d, conv2d_input_gradient and so on. Sizes, strides and paddings of two dims differ.

    A kernel may be larger than the input, if zeros beside it make room, and the zeros may be more than the kernel is long.
    """
    from hypothesis import strategies as st

    dims = int(slot[4])

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        kernel = tuple(draw(st.integers(1, 5 if dims == 1 else 4)) for _ in range(dims))
        stride, padding = [tuple(draw(st.integers(n, 3)) for _ in range(dims)) for n in (1, 0)]
        sizes = tuple(
            draw(st.integers(max(1, k - 2 * p), 8 if dims == 1 else 5)) for k, p in zip(kernel, padding, strict=True)
        )
        places = tuple((n + 2 * p - k) // s + 1 for n, p, k, s in zip(sizes, padding, kernel, stride, strict=True))
        batch, channels, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
        shapes = {
            "inputs": (batch, channels, *sizes),
            "weight": (outputs, channels, *kernel),
            "gradient": (batch, outputs, *places),
        }
        names = PARTS[slot.partition("_")[2] or "conv"]
        (wanted,) = set(shapes) - set(names)
        operands = tuple(strided_like(draw, shapes[name], start=-9 * k - 5) for k, name in enumerate(names))
        made = strided_like(draw, shapes[wanted]) if draw(st.booleans()) else fresh(shapes[wanted])
        settings = (stride, padding) if dims > 1 else (stride[0], padding[0])
        return Case(unwritten(made), operands, *settings)

    return case()


def pools(slot: str) -> "SearchStrategy[Case]":
    """Cases of pooling: windows that overlap, and that leave rows out; equal elements, and negative ones only."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        window, stride = [tuple(draw(st.integers(1, 3)) for _ in range(2)) for _ in range(2)]
        sizes = tuple(draw(st.integers(k, 6)) for k in window)
        places = tuple((n - k) // s + 1 for n, k, s in zip(sizes, window, stride, strict=True))
        lead = draw(st.integers(1, 2)), draw(st.integers(1, 3))
        few, less = draw(st.sampled_from([3, 1000])), draw(st.sampled_from([0, 1100]))
        operands = []
        for name in PARTS.get(slot, PARTS["pool"]):
            x = strided_like(draw, (*lead, *(sizes if name == "inputs" else places)))
            mixed = x.storage * 37 % few - few // 2 - less if name == "inputs" else x.storage
            operands.append(x._replace(storage=mixed))
        shape = (*lead, *(sizes if slot.endswith("gradient") else places))
        made = strided_like(draw, shape) if draw(st.booleans()) else fresh(shape)
        return Case(unwritten(made), tuple(operands), window, stride)

    return case()


def unwritten(x: Strided) -> Strided:
    """An output, with NaN all over its storage."""
    return x._replace(storage=np.full(len(x.storage), np.nan))


def answer(call: Callable[..., None], case: Case) -> Array:
    """The whole storage that a slot writes, so that what is written beside the elements is seen too."""
    case = case.copy()
    call(case.out, *case.operands, case.first, case.second)
    return case.out.storage


def stored(case: Case, values: npt.ArrayLike) -> Array:
    """The whole storage, with these elements in it."""
    case = case.copy()
    case.out.array()[...] = values
    return case.out.storage


def gives(values: Callable[..., Array]) -> Callable[[Case], Array]:
    """Store values that are computed from the case and the arrays of its operands."""
    return lambda case: stored(case, values(case, *case.arrays()))


def told(slot: str, case: Case) -> str:
    """A case in words."""
    names = PARTS.get(slot) or PARTS["pool" if "pool" in slot else slot.partition("_")[2] or "conv"]
    parts = [f"out {in_words(case.out)}"]
    parts += [f"{name} {in_words(x)}" for name, x in zip(names, case.operands, strict=True)]
    return (
        "; ".join(parts)
        + f"; {'window' if 'pool' in slot else 'stride'} {case.first}, "
        + (f"{'stride' if 'pool' in slot else 'padding'} {case.second}")
    )


def drawing(slot: str, case: Case, got: object, expected: object) -> list[str]:
    """The operands, what the output's storage should hold, and what it holds."""
    names = PARTS.get(slot) or PARTS["pool" if "pool" in slot else slot.partition("_")[2] or "conv"]
    lines = [line for name, x in zip(names, case.arrays(), strict=True) for line in rows(x, name)]
    return [*lines, *rows(expected, "expected"), *rows(got, "got")]


def agrees(name: str, slot: str) -> Check:
    """The demand that a slot writes what the judge does, and nothing beside it."""

    def ask(student: Student, case: Case) -> Array:
        return answer(getattr(student, slot), case)

    return agreement(
        name,
        partial(pools if "pool" in slot else convolutions, slot),
        ask,
        lambda case: answer(function(slot), case),
        told=partial(told, slot),
        draw=partial(drawing, slot),
        link=lambda case: layout_link(case.operands[0]),
    )


# What often goes wrong


def laid(case: Case, x: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """A convolution of so many places as the output has, inside the input or not: beside it all is 0."""
    places, kernel = case.out.shape[2:], weight.shape[2:]
    far = [max(0, (n - 1) * s + k) for n, s, k in zip(places, stride, kernel, strict=True)]
    wide = np.pad(x, [(0, 0), (0, 0), *[(p, m) for p, m in zip(padding, far, strict=True)]])
    found = module4.convolution(wide, weight, stride, (0,) * len(stride))
    return found[:, :, *[slice(n) for n in places]]


def pairs(case: Case) -> tuple[Shape, Shape]:
    """Both settings as tuples."""
    return module4.pair(case.first), module4.pair(case.second)


def flipped(weight: Array) -> Array:
    """Kernels, turned round."""
    return np.flip(weight, tuple(range(2, weight.ndim)))


def kernel_flipped(case: Case, x: Array, weight: Array) -> Array:
    """A convolution as textbooks have it."""
    return laid(case, x, flipped(weight), *pairs(case))


def padding_behind(case: Case, x: Array, weight: Array) -> Array:
    """All zeros stand behind the input."""
    stride, padding = pairs(case)
    return laid(case, x, weight, stride, (0,) * len(padding))


def stride_ignored(case: Case, x: Array, weight: Array) -> Array:
    """Each place beside the one before."""
    stride, padding = pairs(case)
    return laid(case, x, weight, (1,) * len(stride), padding)


def last_channel(case: Case, x: Array, weight: Array) -> Array:
    """The sum is begun anew for each channel."""
    return laid(case, x[:, -1:], weight[:, -1:], *pairs(case))


def exchanged(case: Case, x: Array, weight: Array) -> Array:
    """The stride and the padding of rows are taken for columns."""
    stride, padding = pairs(case)
    return laid(case, x, weight, stride[::-1], padding[::-1])


def unguarded(case: Case, guarded: Sequence[int] = ()) -> Array:
    """Convolve without a check of the index: beside the input, read as Python does, from the end if it is negative."""
    x, weight = case.operands
    stride, padding = pairs(case)
    found = np.zeros(case.out.shape)
    kernel = weight.array()
    for index in np.ndindex(case.out.shape):
        corner = [y * s - p for y, s, p in zip(index[2:], stride, padding, strict=True)]
        for c, *k in np.ndindex(kernel.shape[1:]):
            at = [a + b for a, b in zip(corner, k, strict=True)]
            if all(0 <= at[d] < x.shape[2 + d] for d in guarded):
                place = x.offset + int(np.dot((index[0], c, *at), x.strides))
                found[index] += x.storage[place] * kernel[(index[1], c, *k)]
    return stored(case, found)


def last_image(case: Case, x: Array, d: Array) -> Array:
    """The gradient of the weight, with the sum begun anew for each image of the batch."""
    return module4.convolution_weight_gradient(case.out.shape, x[-1:], d[-1:], *pairs(case))


def padding_in_gradient(case: Case, d: Array, weight: Array) -> Array:
    """The gradient of the input, as if it had no zeros around it."""
    stride, padding = pairs(case)
    n = case.out.shape
    wide = (*n[:2], *[size + 2 * p for size, p in zip(n[2:], padding, strict=True)])
    found = module4.convolution_input_gradient(wide, d, weight, stride, (0,) * len(stride))
    return found[:, :, *[slice(size) for size in n[2:]]]


def pooled_by_window(case: Case, x: Array) -> Array:
    """The means of windows that lie side by side; beside the input, what its storage holds there."""
    (tensor,), (window, _) = case.operands, pairs(case)
    found = np.full(case.out.shape, np.nan)
    for index in np.ndindex(case.out.shape):
        corner = [y * k for y, k in zip(index[2:], window, strict=True)]
        places = [(*index[:2], corner[0] + i, corner[1] + j) for i, j in np.ndindex(*window)]
        found[index] = np.mean([tensor.storage[tensor.offset + int(np.dot(at, tensor.strides))] for at in places])
    return found


def pooled_back(
    case: Case, d: Array, part: Callable[[Array, float], Array], x: Array | None = None, adds: bool = True
) -> Array:
    """A gradient of pooling: `part` says what each element of a window gets, of the window and the gradient of its place."""
    found, (window, stride) = np.zeros(case.out.shape), pairs(case)
    for b, c, y, z in np.ndindex(d.shape):
        top, left = y * stride[0], z * stride[1]
        at = b, c, slice(top, top + window[0]), slice(left, left + window[1])
        got = part(found[at] if x is None else x[at], float(d[b, c, y, z]))
        found[at] = found[at] + got if adds else np.where(got == 0, found[at], got)
    return found
