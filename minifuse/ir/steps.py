"""What a plan does, step by step: launches of kernels, matrix products, and what backends know as a whole.

Steps work on places in the memory of one call. A place is (slot, layout): slots are the arguments of the call, then its
buffers. Binding a step to a backend does all that follows from layouts, once.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DType
from ..core.errors import ShapeError
from ..core.layout import Layout
from .array_functions import Defined
from .kernel_ir import Expression, Kernel, Load, Old, ProductKernel, replace

if TYPE_CHECKING:
    from ..backends.base import Backend

Place = tuple[int, Layout]
NOWHERE = -1  # the slot of what has a layout and no memory: positions


@dataclass
class Launch:
    """One kernel: its space, its folded dims, the places of its operands, its numbers, and what it reads by index."""

    kernel: Kernel
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    outputs: list[Place]
    inputs: list[Place]
    numbers: list[Any] = field(default_factory=list)  # slots of arguments, or literals as text
    raws: list[Place] = field(default_factory=list)  # whole, in layouts of their own

    def places(self) -> list[Place]:
        """All that it stores and reads, in the order of its addresses."""
        return [*self.outputs, *self.inputs, *self.raws]

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.from_zero() for _, layout in self.outputs], [layout.from_zero() for _, layout in self.inputs]

    def operand_layouts(self) -> list[list[Layout]]:
        """Those of outputs and of inputs, and, where there are some, of what is read by index."""
        return [*self.layouts(), *[[layout.from_zero() for _, layout in self.raws]] * bool(self.raws)]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses and numbers."""
        return backend.bind(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address that the bound function takes; of positions (NOWHERE, the first one)."""
        dtypes = [e.dtype for e in (*self.kernel.outputs, *self.kernel.each(Load))]
        return offsets(self.places(), [*dtypes, *self.kernel.raws()])

    def source(self, backend: "Backend") -> str:
        """The text that runs."""
        return backend.source(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def sees(self, place: Place) -> Place:
        """A place as an output of this launch: of one value a row, repeated along the row."""
        slot, layout = place
        rows = tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))
        if layout.shape != self.shape and layout.size == prod(rows):
            with suppress(ShapeError):  # then it is none
                layout = layout.reshape(*rows).expand(*self.shape)
        return slot, layout

    def may_replace(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored, and before that: at each point, or once a row."""
        if not self.dims:
            return True
        _, layout = self.inputs[k]
        return not self.kernel.elements and all(not layout.strides[d] or self.shape[d] == 1 for d in self.dims)

    def in_place(self, output: int, target: Place) -> "Launch":
        """The same launch, with one output stored where it is read: loads of that place become what was there before."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        if self.dims:  # a value of the row is stored last of all
            return Launch(self.kernel, self.shape, self.dims, outputs, self.inputs, self.numbers, self.raws)
        moved, inputs = in_place(self.inputs, target, output)
        elements = tuple(replace(e, Load, moved) for e in self.kernel.elements)
        kernel = Kernel(elements, self.kernel.rows)
        return Launch(kernel, self.shape, self.dims, outputs, inputs, self.numbers, self.raws)


def moved(place: Place, source: Place, target: Place) -> Place | None:
    """Where a place of a buffer comes to lie, if what lay there as `source` lies as `target`; None if it is no layout."""
    slot, layout = place
    if slot != source[0]:
        return place
    if source[1] is target[1].from_zero():
        return target[0], Layout(layout.shape, layout.strides, layout.offset + target[1].offset)
    try:
        is_whole = layout is source[1].reshape(*layout.shape)
        return (target[0], target[1].reshape(*layout.shape)) if is_whole else None
    except ShapeError:
        return None


def meet(a: Place, b: Place) -> bool:
    """Whether two places may share elements."""
    if a[0] != b[0]:
        return False
    (low, high), (start, stop) = a[1].span(), b[1].span()
    return low < stop and start < high


def offsets(places: Sequence[Place], dtypes: Sequence[DType]) -> list[tuple[int, int]]:
    """(slot, how far from its begin) of each place: in bytes, and of positions in elements."""
    sizes = [1 if slot == NOWHERE else dtype.itemsize for (slot, _), dtype in zip(places, dtypes, strict=True)]
    return [(slot, layout.offset * size) for (slot, layout), size in zip(places, sizes, strict=True)]


def in_place(inputs: list[Place], target: Place, output: int) -> tuple[Callable[[Load], Expression], list[Place]]:
    """What loads become where an output is stored in the place of some inputs; the inputs that are left."""
    stays = [k for k, place in enumerate(inputs) if place != target]
    index = {old: new for new, old in enumerate(stays)}

    def moved(load: Load) -> Expression:
        return type(load)(index[load.index], load.dtype) if load.index in index else Old(output, load.dtype)

    return moved, [inputs[k] for k in stays]


@dataclass
class Product:
    """One matrix product with its prologue and epilogue: places of its outputs, and of its inputs."""

    kernel: ProductKernel
    outputs: list[Place]
    inputs: list[Place]
    numbers: list[Any] = field(default_factory=list)
    raws: list[Place] = field(default_factory=list)  # none: a product reads nothing by index

    def places(self) -> list[Place]:
        """All that it stores and reads, in the order of its addresses."""
        return [*self.outputs, *self.inputs]

    @property
    def shape(self) -> tuple[int, ...]:
        """(..., M, N)."""
        return self.outputs[0][1].shape

    @property
    def dtype(self) -> DType:
        """Of the operands and the sums."""
        return self.kernel.a.dtype

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.from_zero() for _, layout in self.outputs], [layout.from_zero() for _, layout in self.inputs]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses and numbers."""
        outputs, inputs = self.layouts()
        if self.kernel.is_plain:
            return backend.bind_matmul(self.dtype, *outputs, *inputs)
        return backend.bind_product(self.kernel, outputs, inputs)

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address."""
        a, b, epilogue = self.kernel.loads()
        return offsets(self.places(), [e.dtype for e in (*self.kernel.elements, *a, *b, *epilogue)])

    def source(self, backend: "Backend") -> str:
        """The text that runs, or what runs, in words."""
        return backend.product_source(self.kernel, *self.layouts())

    def sees(self, place: Place) -> Place:
        """A place as an output of this product."""
        slot, layout = place
        try:
            return slot, layout.reshape(*self.shape)
        except ShapeError:
            return place

    def may_replace(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored: by the epilogue."""
        a, b, _ = self.kernel.loads()
        return k >= len(a) + len(b)

    def in_place(self, output: int, target: Place) -> "Product":
        """The same product, with one output stored where its epilogue reads."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        moved, inputs = in_place(self.inputs, target, output)
        a, b = (replace(e, Load, moved) for e in (self.kernel.a, self.kernel.b))
        elements = tuple(replace(e, Load, moved) for e in self.kernel.elements)
        kernel = ProductKernel(a, b, elements, self.kernel.precision)
        return Product(kernel, outputs, inputs, self.numbers)


@dataclass
class Whole:
    """One function that the backend computes as a whole: places of its outputs, and of its inputs."""

    function: Defined
    kernel: Kernel  # as those see it who read what is computed
    outputs: list[Place]
    inputs: list[Place]
    numbers: list[Any] = field(default_factory=list)  # none: parameters belong to the function
    raws: list[Place] = field(default_factory=list)  # none

    def places(self) -> list[Place]:
        """All that it stores and reads, in the order of its addresses."""
        return [*self.outputs, *self.inputs]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first output."""
        return self.outputs[0][1].shape

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.from_zero() for _, layout in self.outputs], [layout.from_zero() for _, layout in self.inputs]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses."""
        return backend.bind_defined(self.function, *self.layouts())

    def operands(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address."""
        return offsets(self.places(), [e.dtype for e in (*self.kernel.outputs, *self.kernel.each(Load))])

    def source(self, backend: "Backend") -> str:
        """The text that runs, or what runs, in words."""
        return backend.defined_source(self.function, *self.layouts())

    def sees(self, place: Place) -> Place:
        """A place as an output of this function: as it is."""
        return place

    def may_replace(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored: never."""
        return False

    def in_place(self, output: int, target: Place) -> "Whole":
        """The same function, with one output stored where nothing is read."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        return Whole(self.function, self.kernel, outputs, self.inputs)


Step = Launch | Product | Whole
