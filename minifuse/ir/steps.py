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
from .array_functions import CompositeOp
from .kernel_ir import Expression, Kernel, Load, MatmulKernel, ReadOutput, replace

if TYPE_CHECKING:
    from ..backends.base import Backend

BufferView = tuple[int, Layout]
NO_BUFFER = -1  # the slot of what has a layout and no memory: positions


@dataclass
class KernelLaunch:
    """One kernel: its space, its folded dims, the places of its operands, its numbers, and what it reads by index."""

    kernel: Kernel
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[Any] = field(default_factory=list)  # slots of arguments, or literals as text
    indexed_operands: list[BufferView] = field(default_factory=list)  # whole, in layouts of their own

    def buffer_views(self) -> list[BufferView]:
        """All that it stores and reads, in the order of its addresses."""
        return [*self.outputs, *self.inputs, *self.indexed_operands]

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.without_offset() for _, layout in self.outputs], [
            layout.without_offset() for _, layout in self.inputs
        ]

    def operand_layouts(self) -> list[list[Layout]]:
        """Those of outputs and of inputs, and, where there are some, of what is read by index."""
        return [
            *self.layouts(),
            *[[layout.without_offset() for _, layout in self.indexed_operands]] * bool(self.indexed_operands),
        ]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses and numbers."""
        return backend.bind(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def address_offsets(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address that the bound function takes; of positions (NOWHERE, the first one)."""
        dtypes = [e.dtype for e in (*self.kernel.outputs, *self.kernel.find_all(Load))]
        return byte_offsets(self.buffer_views(), [*dtypes, *self.kernel.indexed_dtypes()])

    def source(self, backend: "Backend") -> str:
        """The text that runs."""
        return backend.source(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def as_output_view(self, place: BufferView) -> BufferView:
        """A place as an output of this launch: of one value a row, repeated along the row."""
        slot, layout = place
        rows = tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))
        if layout.shape != self.shape and layout.size == prod(rows):
            with suppress(ShapeError):  # then it is none
                layout = layout.reshape(*rows).expand(*self.shape)
        return slot, layout

    def can_alias(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored, and before that: at each point, or once a row."""
        if not self.dims:
            return True
        _, layout = self.inputs[k]
        return not self.kernel.pointwise_outputs and all(not layout.strides[d] or self.shape[d] == 1 for d in self.dims)

    def alias_output(self, output: int, target: BufferView) -> "KernelLaunch":
        """The same launch, with one output stored where it is read: loads of that place become what was there before."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        if self.dims:  # a value of the row is stored last of all
            return KernelLaunch(
                self.kernel, self.shape, self.dims, outputs, self.inputs, self.numbers, self.indexed_operands
            )
        moved, inputs = alias_inputs(self.inputs, target, output)
        elements = tuple(replace(e, Load, moved) for e in self.kernel.pointwise_outputs)
        kernel = Kernel(elements, self.kernel.row_outputs)
        return KernelLaunch(kernel, self.shape, self.dims, outputs, inputs, self.numbers, self.indexed_operands)


def relocate(place: BufferView, source: BufferView, target: BufferView) -> BufferView | None:
    """Where a place of a buffer comes to lie, if what lay there as `source` lies as `target`; None if it is no layout."""
    slot, layout = place
    if slot != source[0]:
        return place
    if source[1] is target[1].without_offset():
        return target[0], Layout(layout.shape, layout.strides, layout.offset + target[1].offset)
    try:
        is_whole = layout is source[1].reshape(*layout.shape)
        return (target[0], target[1].reshape(*layout.shape)) if is_whole else None
    except ShapeError:
        return None


def may_overlap(a: BufferView, b: BufferView) -> bool:
    """Whether two places may share elements."""
    if a[0] != b[0]:
        return False
    (low, high), (start, stop) = a[1].span(), b[1].span()
    return low < stop and start < high


def byte_offsets(places: Sequence[BufferView], dtypes: Sequence[DType]) -> list[tuple[int, int]]:
    """(slot, how far from its begin) of each place: in bytes, and of positions in elements."""
    sizes = [1 if slot == NO_BUFFER else dtype.itemsize for (slot, _), dtype in zip(places, dtypes, strict=True)]
    return [(slot, layout.offset * size) for (slot, layout), size in zip(places, sizes, strict=True)]


def alias_inputs(
    inputs: list[BufferView], target: BufferView, output: int
) -> tuple[Callable[[Load], Expression], list[BufferView]]:
    """What loads become where an output is stored in the place of some inputs; the inputs that are left."""
    stays = [k for k, place in enumerate(inputs) if place != target]
    index = {old: new for new, old in enumerate(stays)}

    def moved(load: Load) -> Expression:
        return type(load)(index[load.index], load.dtype) if load.index in index else ReadOutput(output, load.dtype)

    return moved, [inputs[k] for k in stays]


@dataclass
class MatmulLaunch:
    """One matrix product with its prologue and epilogue: places of its outputs, and of its inputs."""

    kernel: MatmulKernel
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[Any] = field(default_factory=list)
    indexed_operands: list[BufferView] = field(default_factory=list)  # none: a product reads nothing by index

    def buffer_views(self) -> list[BufferView]:
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
        return [layout.without_offset() for _, layout in self.outputs], [
            layout.without_offset() for _, layout in self.inputs
        ]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses and numbers."""
        outputs, inputs = self.layouts()
        if self.kernel.is_plain:
            return backend.bind_matmul(self.dtype, *outputs, *inputs)
        return backend.bind_fused_matmul(self.kernel, outputs, inputs)

    def address_offsets(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address."""
        a, b, epilogue = self.kernel.loads()
        return byte_offsets(self.buffer_views(), [e.dtype for e in (*self.kernel.pointwise_outputs, *a, *b, *epilogue)])

    def source(self, backend: "Backend") -> str:
        """The text that runs, or what runs, in words."""
        return backend.fused_matmul_source(self.kernel, *self.layouts())

    def as_output_view(self, place: BufferView) -> BufferView:
        """A place as an output of this product."""
        slot, layout = place
        try:
            return slot, layout.reshape(*self.shape)
        except ShapeError:
            return place

    def can_alias(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored: by the epilogue."""
        a, b, _ = self.kernel.loads()
        return k >= len(a) + len(b)

    def alias_output(self, output: int, target: BufferView) -> "MatmulLaunch":
        """The same product, with one output stored where its epilogue reads."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        moved, inputs = alias_inputs(self.inputs, target, output)
        a, b = (replace(e, Load, moved) for e in (self.kernel.a, self.kernel.b))
        elements = tuple(replace(e, Load, moved) for e in self.kernel.pointwise_outputs)
        kernel = MatmulKernel(a, b, elements, self.kernel.precision)
        return MatmulLaunch(kernel, outputs, inputs, self.numbers)


@dataclass
class LibraryCall:
    """One function that the backend computes as a whole: places of its outputs, and of its inputs."""

    function: CompositeOp
    kernel: Kernel  # as those see it who read what is computed
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[Any] = field(default_factory=list)  # none: parameters belong to the function
    indexed_operands: list[BufferView] = field(default_factory=list)  # none

    def buffer_views(self) -> list[BufferView]:
        """All that it stores and reads, in the order of its addresses."""
        return [*self.outputs, *self.inputs]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first output."""
        return self.outputs[0][1].shape

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Layouts of outputs and of inputs, each from its own first element."""
        return [layout.without_offset() for _, layout in self.outputs], [
            layout.without_offset() for _, layout in self.inputs
        ]

    def bind(self, backend: "Backend") -> Any:
        """A function of addresses."""
        return backend.bind_composite(self.function, *self.layouts())

    def address_offsets(self) -> list[tuple[int, int]]:
        """(slot, offset in bytes) of each address."""
        return byte_offsets(self.buffer_views(), [e.dtype for e in (*self.kernel.outputs, *self.kernel.find_all(Load))])

    def source(self, backend: "Backend") -> str:
        """The text that runs, or what runs, in words."""
        return backend.composite_source(self.function, *self.layouts())

    def as_output_view(self, place: BufferView) -> BufferView:
        """A place as an output of this function: as it is."""
        return place

    def can_alias(self, k: int) -> bool:
        """Whether input k is read just where an output may be stored: never."""
        return False

    def alias_output(self, output: int, target: BufferView) -> "LibraryCall":
        """The same function, with one output stored where nothing is read."""
        outputs = [target if k == output else place for k, place in enumerate(self.outputs)]
        return LibraryCall(self.function, self.kernel, outputs, self.inputs)


Step = KernelLaunch | MatmulLaunch | LibraryCall
