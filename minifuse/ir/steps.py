"""Steps of a plan. A step is one launch: a kernel, the shape that it runs over, and where its operands are in memory.

The operands of a step are buffer views: (slot, layout). Slots number the arguments of the call, then its buffers. All work
that depends only on layouts is done once, when a backend compiles a step.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod

from ..core.errors import ShapeError
from ..core.layout import Layout
from ..core.overlap import intersects, share_bytes
from .kernel_ir import Expression, Load, LoopNest, ReadOutput, Shape, StepKernel
from .step_kernels import CompositeKernel, ScanKernel

BufferView = tuple[int, Layout]
NO_BUFFER = -1  # the slot of an operand that has a layout but no memory: an index value


@dataclass
class Step:
    """One launch of a plan: what it computes, over which points, and where its operands are.

    The kernel is a description without sizes or memory: a `Kernel`, a `MatmulKernel`, a `ScanKernel`, a `CompositeKernel`
    or a `BatchedKernel`. `Backend.compile` turns the step into an executable, which a host program launches with the
    addresses of `outputs`, `inputs` and `indexed_operands`, then `numbers`.

    Attributes
    ----------
    kernel : StepKernel
    shape : tuple of int
        The iteration space: the points that a kernel runs over, the shape of a matmul's result, or the shape of the first
        output of a composite op.
    dims : tuple of int
        The dims of `shape` that the kernel reduces. A nested reduction reduces some of them, inside another reduction.
    outputs, inputs : list of BufferView
        With a `Kernel`, the layouts are expanded to `shape`.
    numbers : list of int or str
        Scalar arguments: slots, or literals as text.
    indexed_operands : list of BufferView
        Arrays that the kernel reads or changes at computed indices. Their layouts are not expanded.
    kernel_numbers : tuple of int
        The numbers that its kernels have in the fusion log; empty if there is no log.

    Examples
    --------
    The sum of each row of a (2, 3) matrix in slot 0, stored in slot 1:

    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.layout import row_major
    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.kernel_ir import Kernel, reduce_expr
    >>> sums = Kernel((), (reduce_expr(add, Load(0, float32)),))
    >>> step = Step(sums, (2, 3), (1,), [(1, row_major((2, 1)).expand(2, 3))], [(0, row_major((2, 3)))])
    >>> sums.describe(step.shape, step.dims, [(2, 3)])
    'rows of (2, 3) along dim 1'
    """

    kernel: StepKernel
    shape: Shape
    dims: tuple[int, ...]
    outputs: list[BufferView]
    inputs: list[BufferView]
    numbers: list[int | str] = field(default_factory=list)
    indexed_operands: list[BufferView] = field(default_factory=list)
    kernel_numbers: tuple[int, ...] = field(default=(), compare=False)

    @classmethod
    def of_layouts(
        cls,
        kernel: StepKernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        indexed_operands: Sequence[Layout] = (),
    ) -> "Step":
        """Return a step without memory: to ask a backend about it, or to launch it with addresses of one's own."""
        groups = ([(NO_BUFFER, layout) for layout in group] for group in (outputs, inputs, indexed_operands))
        output_views, input_views, indexed_views = groups
        return cls(kernel, shape, dims, output_views, input_views, [], indexed_views)

    def buffer_views(self) -> list[BufferView]:
        """Return the view of every operand: outputs, inputs, indexed operands."""
        return [*self.outputs, *self.inputs, *self.indexed_operands]

    def layouts(self) -> tuple[list[Layout], list[Layout]]:
        """Return the layouts of outputs and of inputs, without offsets."""
        return without_offsets(self.outputs), without_offsets(self.inputs)

    def indexed_layouts(self) -> list[Layout]:
        """Return the layouts of indexed operands, without offsets."""
        return without_offsets(self.indexed_operands)

    @property
    def row_shape(self) -> Shape:
        """The shape of a value that the kernel computes once per row: the reduced dims have size 1."""
        return tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))

    def stored_shape(self, k: int) -> Shape:
        """Return the shape in which output k is stored: reduced dims along which it is constant have size 1."""
        if k >= len(self.kernel.pointwise_outputs):
            return self.row_shape
        layout = self.outputs[k][1]
        if not self.kernel.is_nested:
            return layout.shape
        return tuple(1 if d in self.dims and not layout.strides[d] else n for d, n in enumerate(layout.shape))

    def loop_nest(self, whole_first: bool = False) -> LoopNest:
        """Return the loops of a step with a `Kernel`, in the memory order of the first operand.

        With `whole_first`, it is that of the first operand that has an element for each point, if there is one.
        """
        layouts = [layout for _, layout in (*self.outputs, *self.inputs)]
        whole = [k for k, x in enumerate(layouts) if whole_first and repeats_nothing(x)]
        order = [*whole[:1], *range(len(layouts))] if whole else []
        return LoopNest(self.shape, self.dims, layouts, self.kernel.reductions(self.dims), order)

    def parts(self) -> list["Step"]:
        """Return the steps that a batch consists of, one for each array; for any other step, a list of this step."""
        parts = self.kernel.parts(self.shape)
        if len(parts) == 1:
            return [self]
        groups = zip(parts, split_evenly(self.outputs, len(parts)), split_evenly(self.inputs, len(parts)), strict=True)
        return [Step(kernel, shape, (), outputs, inputs, self.numbers) for (kernel, shape), outputs, inputs in groups]

    def address_offsets(self) -> list[tuple[int, int]]:
        """Return (slot, offset in bytes) of each address that a launch takes, part by part.

        An index value has (NO_BUFFER, its first position).
        """
        offsets = list[tuple[int, int]]()
        for part in self.parts():
            for (slot, layout), dtype in zip(part.buffer_views(), part.kernel.operand_dtypes(), strict=True):
                offsets.append((slot, layout.offset * (1 if slot == NO_BUFFER else dtype.itemsize)))
        return offsets

    def as_output_view(self, view: BufferView) -> BufferView:
        """Return a buffer view in the shape of an output of this step. Values stored once per row are expanded."""
        slot, layout = view
        if layout.shape != self.shape:
            shape = self.shape if layout.size == prod(self.shape) else self.row_shape
            with suppress(ShapeError):  # then it is not a view of an output
                layout = layout.reshape(*shape).expand(*self.shape)
        return slot, layout

    def can_overwrite(self, k: int) -> bool:
        """Return whether an output may be stored over input k: each element is read before it is overwritten."""
        return self.kernel.can_overwrite(k, self.inputs[k][1], self.shape, self.dims)

    def alias_outputs(self, targets: Mapping[int, BufferView]) -> "Step":
        """Return this step with some outputs stored in other places: the index of an output -> its target.

        Loads of the inputs equal to a target become `ReadOutput`. With reductions, no load changes: a row output is stored
        after all loads of its row. Nor does one of a scan or of a composite op, which gets the address of each input.
        """
        outputs = [targets.get(k, view) for k, view in enumerate(self.outputs)]
        aliased = {view: k for k, view in targets.items()}
        if self.dims or isinstance(self.kernel, CompositeKernel | ScanKernel) or aliased.keys().isdisjoint(self.inputs):
            return replace(self, outputs=outputs)
        change, inputs = alias_inputs(self.inputs, aliased)
        return replace(self, kernel=self.kernel.replace_loads(change), outputs=outputs, inputs=inputs)


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


def move_operands(step: Step, new_view: Mapping[BufferView, BufferView]) -> Step:
    """Return a step whose operands are at other places."""
    outputs, inputs, indexed = (
        [new_view.get(x, x) for x in views] for views in (step.outputs, step.inputs, step.indexed_operands)
    )
    return replace(step, outputs=outputs, inputs=inputs, indexed_operands=indexed)


def may_overlap(a: BufferView, b: BufferView) -> bool:
    """Return whether two buffer views share elements, as far as `share_bytes` can decide it.

    Every second row does not overlap the rows between, though the spans of both intersect.
    """
    if a[0] != b[0] or not intersects(a[1].span(), b[1].span()):
        return False
    return a[1] is b[1] or share_bytes(a[1], 1, b[1], 1, 0)


def can_store_in(step: Step, view: BufferView, target: BufferView) -> bool:
    """Return whether a step may store an output in a target that its inputs or other outputs may overlap.

    An overlapping input must have the same elements, each read only by the thread that overwrites it. A gather may read an
    element after it is overwritten, and two outputs cannot share memory.
    """
    overlapping = [k for k, x in enumerate(step.inputs) if may_overlap(x, target)]
    is_elementwise = all(step.inputs[k] == view and step.can_overwrite(k) for k in overlapping)
    return is_elementwise and not any(may_overlap(x, target) for x in (*step.indexed_operands, *step.outputs))


def without_offsets(views: Sequence[BufferView]) -> list[Layout]:
    """Return the layouts of buffer views, with offset 0."""
    return [layout.without_offset() for _, layout in views]


def alias_inputs(
    inputs: list[BufferView], aliased: Mapping[BufferView, int]
) -> tuple[Callable[[Load], Expression], list[BufferView]]:
    """Let outputs overwrite inputs: the view of such an input -> the index of the output.

    Returns
    -------
    change : function of a Load
        The expression that replaces the load: `ReadOutput` for an overwritten input, else the load renumbered.
    inputs : list of BufferView
        The remaining inputs.
    """
    remaining = [k for k, view in enumerate(inputs) if view not in aliased]
    new_index = {old: new for new, old in enumerate(remaining)}

    def change(load: Load) -> Expression:
        if load.index in new_index:
            return type(load)(new_index[load.index], load.dtype)
        return ReadOutput(aliased[inputs[load.index]], load.dtype)

    return change, [inputs[k] for k in remaining]


def split_evenly(views: list[BufferView], count: int) -> list[list[BufferView]]:
    """Split buffer views into `count` lists of equal length."""
    size = len(views) // count
    return [views[k * size : (k + 1) * size] for k in range(count)]


def repeats_nothing(layout: Layout) -> bool:
    """Return whether a layout has another element for each index: no dim has stride 0."""
    return all(n == 1 or stride for n, stride in zip(layout.shape, layout.strides, strict=True))
