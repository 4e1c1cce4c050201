"""Split long reductions with few results over the blocks of the grid: kernels in a row, with partial results in between.

Blocks cannot wait for each other, so each level of reductions needs a kernel of its own. Every block of a kernel of *chunks*
reduces one chunk of each row, and stores its partial results in a workspace. A second kernel combines them. The last one of
these computes the row outputs; a kernel of the points follows, if the step stores any.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.layout import Layout, row_major
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    Load,
    ReduceExpr,
    Shape,
    distinct_reductions,
    reduce_expr,
    renumber_operands,
    replace,
    stride_kinds_of,
)
from ...ir.segment_sum import match_segment_sum
from ...ir.step_kernels import renumber_indexed_operands
from ...ir.steps import Step
from ...runtime.kernel_cache import load_all
from ...runtime.memory_pool import round_to_size_class
from ..base import Launcher
from ..codegen.gpu_schedule import ChunkedAxis, Split, choose_schedule, choose_split
from ..codegen.nest import KernelNest
from ..fast_call import CallValue
from .codegen.select import FindSchedule, GeneratedKernel, generate_kernel
from .launch_plan import ReadyLaunch
from .launcher import CudaKernelLauncher, CudaLauncher

if TYPE_CHECKING:
    from .device import CudaDevice

ALIGNMENT = 256  # bytes between the starts of arrays in the workspace


class WorkspaceArray(NamedTuple):
    """An array of partial results, or of results, at an offset in bytes."""

    offset: int


class Part(NamedTuple):
    """One launch of the sequence: its step, and for each value that it takes, where this comes from.

    A source is an array of the workspace, or the index of a value of the call.
    """

    step: Step
    sources: list[WorkspaceArray | int]
    split: Split | None

    @property
    def has_constants(self) -> bool:
        """Whether the text may contain the size of a reduction: not if that is the number of chunks."""
        return self.split is not None or not self.step.dims

    def generate(self, find_schedule: FindSchedule | None = None) -> GeneratedKernel:
        """Generate the kernel of this launch."""
        assert isinstance(self.step.kernel, Kernel)
        axes, nest = () if self.split is None else self.split.axes, self.step.loop_nest()
        indexed = self.step.indexed_layouts()
        return generate_kernel(self.step.kernel, nest, indexed, True, axes, self.has_constants, find_schedule)


def plan_split(step: Step, kernel: Kernel, processors: int) -> "SplitPlan | None":
    """Return the launches of a kernel that has few rows for all multiprocessors; None for any other kernel."""
    loops = step.loop_nest()
    if not step.dims or kernel.effects or match_segment_sum(kernel, loops.row_axes, loops.stride_kinds) is not None:
        return None
    found = find_split(KernelNest(kernel, loops, stride_kinds_of(step.indexed_layouts())), processors)
    return None if found is None else SplitPlan(step, kernel, processors)


def find_split(nest: KernelNest, processors: int) -> Split | None:
    """Return how the reductions of a kernel are split over the grid; None if there are blocks enough without it."""
    return choose_split(nest, choose_schedule(nest), processors)


class SplitPlan:
    """The launches of a step whose reductions are split, and the bytes of their workspace."""

    def __init__(self, step: Step, kernel: Kernel, processors: int) -> None:
        self.step, self.kernel, self.processors = step, kernel, processors
        self.workspace = 0
        self.parts: list[Part] = []
        self.results: dict[Expression, Expression] = {}  # reduction -> the load of its results
        self.arrays: list[WorkspaceArray] = []
        self.row_shape: Shape = step.row_shape
        self.rows = prod(self.row_shape)
        self.inputs = len(step.inputs)
        reductions = kernel.find_all(ReduceExpr)
        depth = KernelNest(kernel, step.loop_nest()).depth
        last = max(depth[e] for e in reductions)
        for level in range(1, last + 1):
            group = [e for e in reductions if depth[e] == level]
            self.add_level(group, is_last=level == last)
        if kernel.pointwise_outputs:
            self.add_points()

    def array(self, nbytes: int) -> WorkspaceArray:
        """Reserve an array in the workspace."""
        found = WorkspaceArray(self.workspace)
        self.workspace += -(-nbytes // ALIGNMENT) * ALIGNMENT
        self.arrays.append(found)
        return found

    def load_of(self, array: WorkspaceArray, e: Expression) -> Load:
        """Return the load of an array of the workspace: an input after those of the step."""
        return Load(self.inputs + self.arrays.index(array), e.dtype)

    def without_reductions(self, e: Expression) -> Expression:
        """Replace the reductions whose results are in the workspace by loads."""
        return replace(e, ReduceExpr, lambda x: self.results.get(x, x))

    def add_level(self, group: Sequence[ReduceExpr], is_last: bool) -> None:
        """Add the kernel of the chunks, and the kernel that combines their results."""
        step, rows = self.step, self.rows
        group = [x for e in distinct_reductions(group) for x in e.states]
        chunks = [reduce_expr(e.operator, tuple(map(self.without_reductions, e.inputs)), None, e.dtype) for e in group]
        layout = row_major(self.row_shape).expand(*step.shape)
        reduced, sources = self.make_step(chunks, step.shape, step.dims, [layout] * len(group))
        split = self.split_level(reduced)
        partial = [self.array(split.chunks * rows * e.dtype.itemsize) for e in group]
        self.parts.append(Part(reduced, [*partial, *sources], split))
        loads: dict[Expression, Load] = {e: self.load_of(array, e) for e, array in zip(group, partial, strict=True)}
        combined: dict[Expression, Expression] = {
            e: reduce_expr(e.operator, tuple(loads[x] for x in e.states), None, e.dtype) for e in group
        }
        shape = (split.chunks, *self.row_shape)
        result = Layout(shape, (0, *row_major(self.row_shape).strides), 0)
        stored: list[Expression] = []
        targets: list[WorkspaceArray | int] = []
        layouts: list[Layout] = []
        needs_results = not is_last or self.kernel.pointwise_outputs
        if needs_results:
            arrays = {e: self.array(rows * e.dtype.itemsize) for e in group}
            stored, targets, layouts = list(combined.values()), list(arrays.values()), [result] * len(group)
        if is_last:
            first = len(self.kernel.pointwise_outputs)
            for k, e in enumerate(self.kernel.row_outputs):
                stored.append(replace(e, ReduceExpr, lambda x: combined.get(x) or self.results[x]))
                targets.append(first + k)
                layouts.append(self.row_layout(step.outputs[first + k][1], split.chunks))
        self.add(stored, shape, (0,), layouts, targets)
        if needs_results:
            self.results |= {e: self.load_of(array, e) for e, array in arrays.items()}

    def add_points(self) -> None:
        """Add the kernel of the pointwise outputs."""
        outputs = [self.without_reductions(e) for e in self.kernel.pointwise_outputs]
        layouts = [layout for _, layout in self.step.outputs[: len(outputs)]]
        self.add(outputs, self.step.shape, (), layouts, list(range(len(outputs))))

    def split_level(self, step: Step) -> Split:
        """Return how to split the reductions of one level: its loops may have fewer axes than those of the whole kernel."""
        assert isinstance(step.kernel, Kernel)
        nest = KernelNest(step.kernel, step.loop_nest(), stride_kinds_of(step.indexed_layouts()))
        axis = min(nest.reduced)
        return find_split(nest, self.processors) or Split((ChunkedAxis(axis, 1, nest.sizes[axis]),))

    def row_layout(self, layout: Layout, chunks: int) -> Layout:
        """Return the layout of a value of each row in the loops over the chunks' results."""
        strides = tuple(0 if d in self.step.dims else s for d, s in enumerate(layout.strides))
        return Layout((chunks, *self.row_shape), (0, *strides), 0)

    def add(
        self,
        stored: Sequence[Expression],
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        targets: list[WorkspaceArray | int],
    ) -> None:
        """Add a kernel that stores expressions in one sweep."""
        step, sources = self.make_step(stored, shape, dims, outputs)
        self.parts.append(Part(step, [*targets, *sources], None))

    def make_step(
        self, stored: Sequence[Expression], shape: Shape, dims: tuple[int, ...], outputs: Sequence[Layout]
    ) -> tuple[Step, list[WorkspaceArray | int]]:
        """Return a step that stores expressions, and the sources of its inputs and numbers.

        Loads are numbered as inputs of the whole step, or arrays after them.
        """
        expressions, old = renumber_operands(stored)
        kernel, indexed = renumber_indexed_operands(Kernel((), expressions) if dims else Kernel(expressions, ()))
        is_combined = len(shape) > len(self.step.shape)
        layouts: list[Layout] = []
        sources: list[WorkspaceArray | int] = []
        count, rows = len(self.step.outputs), row_major(self.row_shape)
        for k in old:
            if k >= self.inputs:
                array = self.arrays[k - self.inputs]
                sources.append(array)
                if not is_combined:
                    layouts.append(rows.expand(*shape))
                elif array in self.results_arrays():
                    layouts.append(Layout(shape, (0, *rows.strides), 0))
                else:
                    layouts.append(row_major(shape))
            else:
                layout = self.step.inputs[k][1]
                layouts.append(self.row_layout(layout, shape[0]) if is_combined else layout)
                sources.append(count + k)
        numbers, indexed_layouts = self.kernel.find_all(KernelParameter), self.step.indexed_layouts()
        first = count + self.inputs
        sources += [first + k for k in indexed]
        sources += [first + len(indexed_layouts) + numbers.index(p) for p in kernel.find_all(KernelParameter)]
        raws = [indexed_layouts[k] for k in indexed]
        return Step.of_layouts(kernel, shape, dims, list(outputs), layouts, raws), sources

    def results_arrays(self) -> list[WorkspaceArray]:
        """Return the arrays with one result per row."""
        return [self.arrays[e.index - self.inputs] for e in self.results.values() if isinstance(e, Load)]


class SplitLauncher(CudaLauncher):
    """The launches of a step whose reductions are split over the grid."""

    def __init__(self, device: "CudaDevice", plan: SplitPlan) -> None:
        self.device = device
        self.nbytes = round_to_size_class(plan.workspace)
        operands = [*plan.step.outputs, *plan.step.inputs, *plan.step.indexed_layouts()]
        self.value_count = len(operands) + len(plan.kernel.find_all(KernelParameter))
        loaded = load_all([partial(CudaKernelLauncher, device, x.step, None, x.split, x.has_constants) for x in plan.parts])
        self.launchers = [(launcher, part.sources) for launcher, part in zip(loaded, plan.parts, strict=True)]

    def resolve(self, values: Sequence[Any], workspace: int) -> list[tuple[CudaKernelLauncher, list[Any]]]:
        """Return each launcher with its values."""
        return [
            (launcher, [workspace + x.offset if isinstance(x, WorkspaceArray) else values[x] for x in sources])
            for launcher, sources in self.launchers
        ]

    def fast_entry(self) -> Launcher:
        """Return the fast launch path, which appends the address of the workspace to the values."""
        kinds: dict[int, str] = {}
        launches, aligned = [], set[int]()
        for launcher, sources in self.launchers:
            pairs = zip(sources, launcher.argument_types, strict=False)
            kinds |= {x: kind for x, kind in pairs if not isinstance(x, WorkspaceArray)}
            arguments: list[CallValue | int] = [
                CallValue(self.value_count, x.offset) if isinstance(x, WorkspaceArray) else CallValue(x) for x in sources
            ]
            launches.append((launcher.run, [*arguments, *launcher.constants]))
            operands = [sources[k] for k in launcher.vector_operands]
            aligned |= {x for x in operands if not isinstance(x, WorkspaceArray)}

        def fallback(*values: Any) -> None:
            self(*values[: self.value_count])

        every = [kinds.get(k, "i64") for k in range(self.value_count)]
        launch = self.device.fast_entry(launches, [*every, "i64"], fallback, aligned)
        if launch is None:
            return self
        allocate, nbytes = self.device.pool.allocate, self.nbytes

        def launch_with_workspace(*values: Any) -> None:
            buffer = allocate(nbytes)  # reused in stream order, so only after the last launch
            launch(*values, buffer.address)

        return launch_with_workspace

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launches for use in a graph."""
        buffer = self.device.pool.allocate(self.nbytes)
        resolved = self.resolve(values, buffer.address)
        return [x._replace(owner=buffer) for launcher, arguments in resolved for x in launcher.ready_launches(*arguments)]
