"""Launches with all but their addresses and numbers: what a plan's host program calls.

All that follows from layouts is done when one is made. Each can also say what it would launch, for pictures and checks.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...dtypes import DType, bool_
from ...kernels import Kernel, Load, Nest, Parameter
from ...layout import Layout
from ...simt import Pointer
from ...storage import binned
from ..base import check_fits
from .compiler import function_of
from .emitter import MOST, Printed, printed, storage_of
from .geometry import THREADS, Geometry, geometry_of, of_line
from .launch import LaunchPlan
from .product import Launch, Place, plan_product

ALIGNED = 15  # bits of an address that are 0 where four elements can be taken at once


class BoundKernel:
    """A kernel with all that its launch passes: what does not change is computed once."""

    def __init__(
        self,
        device: Any,
        kernel: Kernel,
        nest: Nest,
        layouts: Sequence[Layout],
        rows: tuple[int, ...],
        functions: dict[str, Any] | None = None,
    ) -> None:
        self.text = text = printed(kernel, nest.rows, nest.classes)
        self.geometry = geometry_of(text.form, nest.sizes, nest.rows, text.counted, bool(text.wide))
        self.dtypes = [e.dtype for e in (*kernel.outputs, *kernel.each(Load))]
        stored = range(len(kernel.elements), len(kernel.outputs))  # once a row: there may be rows, but no elements
        self.spans = [Layout(rows if k in stored else x.shape, x.strides, 0).span() for k, x in enumerate(layouts)]
        self.numbers = [p.dtype for p in kernel.each(Parameter)]
        self.device, self.is_simulated = device, device.is_simulated
        names = [name for name, _ in text.parameters]
        known = facts_of(text, nest, names[: len(layouts)])
        self.constants = [known[name] for name in names[len(layouts) + len(self.numbers) :] if name != "fours"]
        self.wide = [names.index(name) for name in text.wide]
        self.whole = known["fours"]
        self.kernel = function_for(text, **functions or {})
        threads = MOST if text.form != "points" else THREADS
        signature = tuple(kind for _, kind in text.parameters)
        loaded = device.load(text.text, lambda: self.kernel, signature, threads, is_kept=not functions)
        self.run = device.prepare(loaded, self.geometry)

    def __call__(self, *values: Any) -> None:
        """Launch with the addresses of outputs and inputs, and with numbers."""
        arguments = self.arguments(values)
        try:
            self.run(*arguments)
        except Exception as error:
            self.device.recover(self.run, arguments, error)

    def plan(self, *values: Any) -> LaunchPlan:
        """The launch, not launched."""
        return LaunchPlan(self.kernel, self.geometry.grid, self.geometry.block, tuple(self.arguments(values)))

    def arguments(self, values: Sequence[Any]) -> list[Any]:
        """All that the kernel takes."""
        count = len(self.spans)
        found = self.pointers(values) if self.is_simulated else list(values[:count])
        found += [number_as(value, dtype) for value, dtype in zip(values[count:], self.numbers, strict=True)]
        found += self.constants
        if self.wide:
            bits = 0
            for k in self.wide:
                bits |= values[k]
            found.append(0 if bits & ALIGNED else self.whole)
        return found

    def pointers(self, values: Sequence[Any]) -> list[Any]:
        """Addresses with the range of elements that may be touched."""
        places = zip(values, self.spans, self.dtypes, strict=False)
        return [Pointer(address, low, high, dtype.numpy) for address, (low, high), dtype in places]


def facts_of(text: Printed, nest: Nest, operands: Sequence[str]) -> dict[str, int]:
    """The sizes and strides that a kernel may ask for, by name."""
    found = {f"n{axis}": size for axis, size in enumerate(nest.sizes)}
    found |= {f"{name}_{a}": s for name, strides in zip(operands, nest.strides, strict=True) for a, s in enumerate(strides)}
    is_whole = all(s % 4 == 0 for name in text.wide for s in nest.strides[operands.index(name)][:-1])
    return found | {"rows": prod(nest.sizes[: text.counted]), "fours": nest.sizes[-1] // 4 * 4 if is_whole else 0}


@lru_cache(1024)
def function_for(text: Printed, **functions: Any) -> Callable[..., Any]:
    """The kernel as a Python function."""
    return function_of(text.text, **functions)


def number_as(value: Any, dtype: DType) -> Any:
    """A number as an element type; Python's own where a kernel takes an int64."""
    if dtype.is_float:
        return dtype.numpy.type(value)
    check_fits(value, dtype)
    return int(value) if dtype.itemsize == 8 else np.uint8(value) if dtype is bool_ else dtype.numpy.type(value)


class BoundProduct:
    """A matrix product. Which kernels it takes also depends on whether addresses lie at multiples of 16 bytes."""

    def __init__(self, device: Any, dtype: DType, layouts: tuple[Layout, Layout, Layout]) -> None:
        self.device, self.dtype, self.layouts = device, dtype, layouts
        self.spans = [layout.span() for layout in layouts]
        self.ready: dict[tuple[bool, ...], tuple[list[tuple[Callable[..., None], Launch]], int]] = {}
        self.prepare((True, True, True))

    def prepare(self, aligned: tuple[bool, bool, bool]) -> None:
        """Compile and fix what is launched for such addresses."""
        device = self.device
        plan = plan_product(self.dtype, *self.layouts, device.multiprocessors, aligned, device.most_shared)
        runs = []
        for launch in plan.launches:
            kernel = launch.kernel
            text = f"# {kernel.name} {kernel.constants}\n"
            loaded = self.device.load(text, lambda k=kernel: k.function, kernel.signature, kernel.threads, kernel.blocks)
            geometry = Geometry(launch.grid, launch.block)
            runs.append((self.device.prepare(loaded, geometry, kernel.shared), launch))
        self.ready[aligned] = runs, plan.workspace

    def __call__(self, *addresses: int) -> None:
        """Launch with the addresses of out, a and b."""
        for run, launch, pointer, _ in self.launches(addresses):
            signature = launch.kernel.signature
            arguments = [argument(x, kind, pointer) for x, kind in zip(launch.arguments, signature, strict=True)]
            try:
                run(*arguments)
            except Exception as error:
                self.device.recover(run, arguments, error)

    def plans(self, *addresses: int) -> list[LaunchPlan]:
        """The launches, not launched."""
        return [launch.at(pointer) for _, launch, pointer, _ in self.launches(addresses)]

    def launches(self, addresses: Sequence[int]) -> list[tuple[Callable[..., None], Launch, Callable[[Place], Any], Any]]:
        """Each launch, how its places become pointers, and the workspace that they lie in."""
        out, a, b = (not address & ALIGNED for address in addresses)
        if (out, a, b) not in self.ready:
            self.prepare((out, a, b))
        runs, workspace = self.ready[out, a, b]
        buffer = self.device.pool.allocate(binned(workspace)) if workspace else None
        bases, spans = [*addresses, buffer.address if buffer else 0], [*self.spans, (0, workspace // self.dtype.itemsize)]

        def address_of(place: Place) -> Any:
            return bases[place.operand] + place.offset * self.dtype.itemsize

        def pointer_of(place: Place) -> Any:
            low, high = spans[place.operand]
            return Pointer(address_of(place), low - place.offset, high - place.offset, self.dtype.numpy, owner=buffer)

        pointer = pointer_of if self.device.is_simulated else address_of
        return [(run, launch, pointer, buffer) for run, launch in runs]


def argument(x: Any, kind: str, pointer: Callable[[Place], Any]) -> Any:
    """An argument as the launch takes it."""
    return pointer(x) if isinstance(x, Place) else np.float32(x) if kind == "f32" else x


FROM_FIRST = """
def kernel(out, rows, count, length):
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < count:
        total = rows[row * length]
        for i in range(1, length):
            total = own_function(total, rows[row * length + i])
        out[row] = total
"""


def fold_from_first(
    device: Any, op: Callable[..., Any], count: int, length: int, dtypes: Sequence[DType], addresses: Sequence[int]
) -> None:
    """Fold rows with a function of numbers that has no identity: a thread a row, from its first element."""
    kernel = function_of(FROM_FIRST, own_function=op)
    signature = *[f"*{storage_of(dtype)}" for dtype in dtypes], "i64", "i64"
    run = device.prepare(device.load(FROM_FIRST, lambda: kernel, signature, THREADS, is_kept=False), of_line(count, 1))
    pointers: Sequence[Any] = addresses
    if device.is_simulated:
        sizes = count, count * length
        pointers = [Pointer(x, 0, n, d.numpy) for x, n, d in zip(addresses, sizes, dtypes, strict=True)]
    run(*pointers, count, length)
