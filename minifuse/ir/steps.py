"""Steps of a plan: kernel launches, matmul launches, and library calls for composite ops.

The operands of a step are buffer views: (slot, layout). Slots number the arguments of the call, then its buffers. All work
that depends only on layouts is done once, when a step is bound to a backend.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from ..core.dtypes import DType
from ..core.errors import ShapeError
from ..core.layout import Layout
from ..core.overlap import intersects
from .array_functions import CompositeOp
from .kernel_ir import Expression, Kernel, Load, MatmulKernel, ReadOutput, replace

if TYPE_CHECKING:
    from ..backends.base import Backend, Launcher

BufferView = tuple[int, Layout]
NO_BUFFER = -1  # the slot of an operand that has a layout but no memory: an index value


class StepOperands:
    """The operands that all steps have."""

    outputs: list[BufferView]
    inputs: list[BufferView]
    indexed_operands: list[BufferView]

    def buffer_views(self) -> list[BufferView]:
        """Return the view of every operand, in the order of the addresses that the bound function takes."""
        return [*self.outputs, *self.inputs, *self.indexed_operands]

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Return the layouts of outputs and of inputs, without offsets."""
        return without_offsets(self.outputs), without_offsets(self.inputs)

    def outputs_with(self, output: int, target: BufferView) -> list[BufferView]:
        """Return the outputs, with one of them stored in `target`."""
        return [target if k == output else view for k, view in enumerate(self.outputs)]


@dataclass
class KernelLaunch(StepOperands):
    """Launch a kernel over a shape, of which it reduces `dims`."""

    kernel: Kernel
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[int | str] = field(default_factory=list)  # scalar arguments: slots, or literals as text
    indexed_operands: list[BufferView] = field(default_factory=list)  # layouts are not expanded to the shape

    def operand_layouts(self) -> list[list[Layout]]:
        """Return the layouts of outputs, of inputs, and of indexed operands if there are any, without offsets."""
        return [*self.layouts(), *[without_offsets(self.indexed_operands)] * bool(self.indexed_operands)]

    def bind(self, backend: "Backend") -> "Launcher":
        """Return a function of addresses and numbers that runs this step."""
        return backend.bind(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def address_offsets(self) -> list[tuple[int, int]]:
        """Return (slot, offset in bytes) of each address argument. An index value has (NO_BUFFER, its first position)."""
        dtypes = [e.dtype for e in (*self.kernel.outputs, *self.kernel.find_all(Load))]
        return byte_offsets(self.buffer_views(), [*dtypes, *self.kernel.indexed_dtypes()])

    def source(self, backend: "Backend") -> str:
        """Return the generated source."""
        return backend.source(self.kernel, self.shape, self.dims, *self.operand_layouts())

    def as_output_view(self, view: BufferView) -> BufferView:
        """Return a buffer view in the shape of an output of this launch. Values stored once per row are expanded."""
        slot, layout = view
        rows = tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))
        if layout.shape != self.shape and layout.size == prod(rows):
            with suppress(ShapeError):  # then it is not a view of an output
                layout = layout.reshape(*rows).expand(*self.shape)
        return slot, layout

    def can_alias(self, k: int) -> bool:
        """Return whether an output may overwrite input k: the kernel must read each element before it overwrites it.

        A pointwise kernel does so, since it reads an element at the point where it stores it. A kernel with reductions may
        overwrite an input that has one element per row, if it stores only row outputs.
        """
        if not self.dims:
            return True
        _, layout = self.inputs[k]
        return not self.kernel.pointwise_outputs and all(not layout.strides[d] or self.shape[d] == 1 for d in self.dims)

    def alias_output(self, output: int, target: BufferView) -> "KernelLaunch":
        """Return this launch with one output stored in `target`.

        In a pointwise kernel, loads of the inputs equal to `target` become `ReadOutput`.
        """
        outputs = self.outputs_with(output, target)
        kernel, inputs = self.kernel, self.inputs
        if not self.dims:  # with reductions, no load changes: a row output is stored after all loads of its row
            change, inputs = alias_inputs(self.inputs, target, output)
            pointwise = tuple(replace(e, Load, change) for e in kernel.pointwise_outputs)
            kernel = Kernel(pointwise, kernel.row_outputs)
        return KernelLaunch(kernel, self.shape, self.dims, outputs, inputs, self.numbers, self.indexed_operands)


@dataclass
class MatmulLaunch(StepOperands):
    """Launch a matmul with its fused prologue and epilogue."""

    kernel: MatmulKernel
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[int | str] = field(default_factory=list)
    indexed_operands: list[BufferView] = field(default_factory=list)  # always empty

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result: (..., M, N)."""
        return self.outputs[0][1].shape

    @property
    def dtype(self) -> DType:
        """The dtype of the operands and of the accumulators."""
        return self.kernel.a.dtype

    def bind(self, backend: "Backend") -> "Launcher":
        """Return a function of addresses and numbers that runs this step."""
        outputs, inputs = self.layouts()
        if self.kernel.is_plain:
            return backend.bind_matmul(self.dtype, *outputs, *inputs)
        return backend.bind_fused_matmul(self.kernel, outputs, inputs)

    def address_offsets(self) -> list[tuple[int, int]]:
        """Return (slot, offset in bytes) of each address argument."""
        a, b, epilogue = self.kernel.loads()
        return byte_offsets(self.buffer_views(), [e.dtype for e in (*self.kernel.pointwise_outputs, *a, *b, *epilogue)])

    def source(self, backend: "Backend") -> str:
        """Return the generated source, or a description of the library routine."""
        return backend.fused_matmul_source(self.kernel, *self.layouts())

    def as_output_view(self, view: BufferView) -> BufferView:
        """Return a buffer view in the shape of the result, if strides allow that."""
        slot, layout = view
        try:
            return slot, layout.reshape(*self.shape)
        except ShapeError:
            return view

    def can_alias(self, k: int) -> bool:
        """Return whether an output may overwrite input k: only the epilogue reads elements at the point where it stores."""
        a, b, _ = self.kernel.loads()
        return k >= len(a) + len(b)

    def alias_output(self, output: int, target: BufferView) -> "MatmulLaunch":
        """Return this launch with one output stored in `target`, which the epilogue may read."""
        change, inputs = alias_inputs(self.inputs, target, output)
        a, b = (replace(e, Load, change) for e in (self.kernel.a, self.kernel.b))
        pointwise = tuple(replace(e, Load, change) for e in self.kernel.pointwise_outputs)
        kernel = MatmulKernel(a, b, pointwise, self.kernel.precision)
        return MatmulLaunch(kernel, self.outputs_with(output, target), inputs, self.numbers)


@dataclass
class LibraryCall(StepOperands):
    """Run a composite op with a kernel of the backend."""

    function: CompositeOp
    kernel: Kernel  # describes the outputs and the loads
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[int | str] = field(default_factory=list)  # always empty: parameters belong to the function
    indexed_operands: list[BufferView] = field(default_factory=list)  # always empty

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output."""
        return self.outputs[0][1].shape

    def bind(self, backend: "Backend") -> "Launcher":
        """Return a function of addresses that runs this step."""
        return backend.bind_composite(self.function, *self.layouts())

    def address_offsets(self) -> list[tuple[int, int]]:
        """Return (slot, offset in bytes) of each address argument."""
        return byte_offsets(self.buffer_views(), [e.dtype for e in (*self.kernel.outputs, *self.kernel.find_all(Load))])

    def source(self, backend: "Backend") -> str:
        """Return the generated source, or a description of the library routine."""
        return backend.composite_source(self.function, *self.layouts())

    def as_output_view(self, view: BufferView) -> BufferView:
        """Return the buffer view unchanged."""
        return view

    def can_alias(self, k: int) -> bool:
        """Return False: an op may read any element of an input after it stores an output."""
        return False

    def alias_output(self, output: int, target: BufferView) -> "LibraryCall":
        """Return this call with one output stored in `target`, which no input reads."""
        return LibraryCall(self.function, self.kernel, self.outputs_with(output, target), self.inputs)


Step = KernelLaunch | MatmulLaunch | LibraryCall


def relocate(view: BufferView, source: BufferView, target: BufferView) -> BufferView | None:
    """Return where the elements of `view` are after the elements of `source` have moved to `target`.

    If `view` and `source` are views of different buffers, return `view`. Return None if no layout describes the result.
    """
    slot, layout = view
    if slot != source[0]:
        return view
    if source[1] is target[1].without_offset():
        return target[0], Layout(layout.shape, layout.strides, layout.offset + target[1].offset)
    try:
        is_entire_source = layout is source[1].reshape(*layout.shape)
        return (target[0], target[1].reshape(*layout.shape)) if is_entire_source else None
    except ShapeError:
        return None


def may_overlap(a: BufferView, b: BufferView) -> bool:
    """Return whether two buffer views may share elements: they have the same slot, and their spans overlap."""
    return a[0] == b[0] and intersects(a[1].span(), b[1].span())


def without_offsets(views: Sequence[BufferView]) -> list[Layout]:
    """Return the layouts of buffer views, with offset 0."""
    return [layout.without_offset() for _, layout in views]


def byte_offsets(views: Sequence[BufferView], dtypes: Sequence[DType]) -> list[tuple[int, int]]:
    """Return (slot, offset) of each view: in bytes, or in elements for a view without a buffer."""
    sizes = [1 if slot == NO_BUFFER else dtype.itemsize for (slot, _), dtype in zip(views, dtypes, strict=True)]
    return [(slot, layout.offset * size) for (slot, layout), size in zip(views, sizes, strict=True)]


def alias_inputs(
    inputs: list[BufferView], target: BufferView, output: int
) -> tuple[Callable[[Load], Expression], list[BufferView]]:
    """Let an output overwrite the inputs equal to `target`.

    Returns
    -------
    change : function of a Load
        The expression that replaces the load: `ReadOutput` for an overwritten input, else the load renumbered.
    inputs : list of BufferView
        The remaining inputs.
    """
    remaining = [k for k, view in enumerate(inputs) if view != target]
    new_index = {old: new for new, old in enumerate(remaining)}

    def change(load: Load) -> Expression:
        return type(load)(new_index[load.index], load.dtype) if load.index in new_index else ReadOutput(output, load.dtype)

    return change, [inputs[k] for k in remaining]
