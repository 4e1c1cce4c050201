"""What a plan does, step by step: launches of kernels and matrix products, over places in the memory of one call.

A place is (slot, layout): slots are the arguments of the call, then its buffers. Binding a step to a backend does all that
follows from layouts, once.
"""

from dataclasses import dataclass, field
from typing import Any

from ..backends.base import Backend
from ..dtypes import DType
from ..kernels import Expression, Kernel, Load, Old, replace
from ..layout import Layout

Place = tuple[int, Layout]


@dataclass
class Launch:
    """One kernel: its space, its folded dims, the places of its operands, and its numbers."""

    kernel: Kernel
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    outputs: list[Place]
    inputs: list[Place]
    numbers: list[Any] = field(default_factory=list)  # slots of arguments, or literals as text

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.from_zero() for _, layout in self.outputs], [layout.from_zero() for _, layout in self.inputs]

    def bind(self, backend: Backend) -> Any:
        """A function of addresses and numbers."""
        return backend.bind(self.kernel, self.shape, self.dims, *self.layouts())

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address that the bound function takes."""
        dtypes = [e.dtype for e in (*self.kernel.outputs, *self.kernel.each(Load))]
        places = zip(self.outputs + self.inputs, dtypes, strict=True)
        return [(slot, layout.offset * dtype.itemsize) for (slot, layout), dtype in places]

    def source(self, backend: Backend) -> str:
        """The text that runs."""
        return backend.source(self.kernel, self.shape, self.dims, *self.layouts())

    def in_place(self, output: int, target: Place) -> "Launch":
        """The same launch, with one output stored where it is read: loads of that place become what was there before."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        stays = [k for k, place in enumerate(self.inputs) if place != target]
        index = {old: new for new, old in enumerate(stays)}

        def moved(load: Load) -> Expression:
            return Load(index[load.index], load.dtype) if load.index in index else Old(output, load.dtype)

        elements = tuple(replace(e, Load, moved) for e in self.kernel.elements)
        return Launch(
            Kernel(elements, self.kernel.rows), self.shape, self.dims, outputs, [self.inputs[k] for k in stays], self.numbers
        )


@dataclass
class Product:
    """One matrix product: places of the output, and of both factors."""

    dtype: DType
    outputs: list[Place]
    inputs: list[Place]
    numbers: tuple[()] = ()

    def bind(self, backend: Backend) -> Any:
        """A function of the three addresses."""
        return backend.bind_matmul(self.dtype, *[layout.from_zero() for _, layout in self.outputs + self.inputs])

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address."""
        return [(slot, layout.offset * self.dtype.itemsize) for slot, layout in self.outputs + self.inputs]

    def source(self, backend: Backend) -> str:
        """What runs, in words."""
        a, b = (layout.shape for _, layout in self.inputs)
        return f"# {backend.name}: matmul of {a} and {b}, {self.dtype}\n"


Step = Launch | Product
