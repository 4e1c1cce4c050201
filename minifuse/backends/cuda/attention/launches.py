"""Plan the launches of attention and its gradients for given layouts.

Planning uses integers only: sizes, strides and alignment decide which kernel runs.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple, cast

from ....core.dtypes import DType, float32
from ....core.layout import Layout
from ....core.rounding import ceil_div
from ....ir.composite_op import CompositeOp
from ....ir.kernel_ir import LoopNest, Shape
from ...codegen.gpu_facts import MAX_GRID_YZ
from ..launch_plan import Argument, GpuLaunch, GpuPlan, OperandAddress
from ..planned_launcher import AlignmentFlags, PlannedLauncher
from ..tile_shapes import GpuKernel
from . import backward, forward
from .forward import NO_LIMIT, WIDTHS, AttentionTile

if TYPE_CHECKING:
    from ..device import CudaDevice

MIN_WIDTH, MAX_WIDTH = 16, 128  # elements of a row of q, k and v
MAX_BATCH_AXES = 2  # axes of a batch that one launch iterates over


class AttentionKernel(NamedTuple):
    """The kernel of a composite function: the function that makes it, its tiles, and the roles of its operands."""

    make: Callable[..., GpuKernel]
    tiles: dict[int, AttentionTile]  # by width of a row
    short_tile: AttentionTile  # the tile for few rows
    output_count: int
    rows_operand: int  # the operand whose rows are distributed over blocks
    untransposed_operands: tuple[int, ...]  # operands copied without transposing, 16 bytes at once if their layout allows it
    products: int  # dot products for each pair of rows of q and k


ATTENTION_KERNELS = {
    "attention": AttentionKernel(forward.make_attention, forward.TILES, forward.SHORT_TILE, 2, 2, (4,), 2),
    "query_gradient": AttentionKernel(
        backward.make_query_gradient, backward.QUERY_TILES, backward.SHORT_TILE, 1, 1, (2,), 3
    ),
    "key_gradient": AttentionKernel(backward.make_key_gradient, backward.KEY_TILES, backward.SHORT_TILE, 2, 3, (2, 5), 4),
}


def why_no_kernel(shapes: Sequence[Shape], dtypes: Sequence[DType]) -> str | None:
    """Return why there is no kernel for inputs: it takes float32, rows of equal, supported width, and no empty operand."""
    if other := next((dtype for dtype in dtypes if dtype is not float32), None):
        return f"its kernels compute in float32, not {other}"
    q, _, v = shapes[:3]
    if not MIN_WIDTH <= q[-1] <= MAX_WIDTH or q[-1] != v[-1]:
        return f"its kernels take rows of {MIN_WIDTH} to {MAX_WIDTH} elements, not of {q[-1]} and {v[-1]}"
    return None if all(map(prod, shapes)) else "an operand is empty"


def plan_attention(
    function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout], is_aligned: bool = True
) -> tuple[GpuLaunch, ...]:
    """Return the launches of a function of ATTENTION_KERNELS, over layouts with offset 0.

    A batch of more than two axes takes several launches. If `is_aligned`, all addresses are multiples of 16 bytes.
    """
    definition, operands = ATTENTION_KERNELS[function.names[0]], (*outputs, *inputs)
    is_causal, scale = cast("tuple[bool, float]", function.parameters)
    q, k = inputs[:2]
    (M, D), N = q.shape[-2:], k.shape[-2]
    matrices = [x for x in operands if len(x.shape) == len(q.shape)]  # the others have one number per row
    batch = q.shape[:-2]
    nest = LoopNest(batch, (), [Layout(batch, x.strides[: len(batch)], 0) for x in operands])
    width = min(width for width in WIDTHS if width >= D)
    rows = operands[definition.rows_operand].shape[-2]
    is_short = rows <= definition.short_tile.height and width < MAX_WIDTH
    tile = definition.short_tile if is_short else definition.tiles[width]
    has_vec4 = [is_aligned and D % 4 == 0 and has_vec4_rows(x, nest, e) for e, x in enumerate(operands)]
    kernel = definition.make(tile, width, "x4" if all(has_vec4[e] for e in definition.untransposed_operands) else "x")
    can_store4 = all(has_vec4[e] for e, x in enumerate(outputs) if len(x.shape) == len(q.shape))
    row_strides = [x.strides[len(batch)] for x in operands]
    column_strides = [x.strides[-1] for x in matrices]
    max_ahead = 0 if is_causal else NO_LIMIT
    launches = []
    for sizes, strides, starts in split_batch(nest.sizes, list(zip(*nest.strides, strict=True)), (0,) * len(operands)):
        outer, inner = [(0,) * len(operands)] * (MAX_BATCH_AXES - len(sizes)) + strides
        constants = M, N, D, max_ahead, scale, sizes[-1], int(can_store4)
        addresses, grid = map(OperandAddress, range(len(operands)), starts), (ceil_div(rows, tile.height), prod(sizes), 1)
        arguments: tuple[Argument, ...] = *addresses, *constants, *row_strides, *column_strides, *inner, *outer
        launches.append(GpuLaunch(kernel, grid, (kernel.threads, 1, 1), arguments))
    return tuple(launches)


def has_vec4_rows(layout: Layout, nest: LoopNest, operand: int) -> bool:
    """Return whether rows are contiguous and each starts at a multiple of four elements."""
    *others, last = layout.strides
    return last == 1 and all(stride % 4 == 0 for stride in (*others, *nest.strides[operand]))


Strides = tuple[int, ...]  # of all operands, along one axis


def split_batch(
    sizes: Sequence[int], strides: Sequence[Strides], starts: Strides
) -> Iterator[tuple[list[int], list[Strides], Strides]]:
    """Split the axes of a batch into pieces that fit one grid. Yield (sizes, strides, start of each operand) for each."""
    if len(sizes) <= MAX_BATCH_AXES and prod(sizes) <= MAX_GRID_YZ:
        yield list(sizes), list(strides), starts
        return
    inner_count = prod(sizes[1:])
    step = max(1, MAX_GRID_YZ // inner_count) if len(sizes) <= MAX_BATCH_AXES else 1
    for i in range(0, sizes[0], step):
        size = min(step, sizes[0] - i)
        piece_starts = tuple(start + i * stride for start, stride in zip(starts, strides[0], strict=True))
        first = 1 if size == 1 and len(sizes) > 1 else 0
        yield from split_batch([size, *sizes[1:]][first:], strides[first:], piece_starts)


def attention_cost(function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
    """Return (number of kernels launched, arithmetic operations of the products).

    A causal function counts only the pairs of rows and columns that are not masked.
    """
    definition, (is_causal, _) = ATTENTION_KERNELS[function.names[0]], function.parameters
    q, k = inputs[:2]
    M, N = q.shape[-2], k.shape[-2]
    pairs = sum(min(i + 1, N) for i in range(M)) if is_causal else M * N
    flops = 2 * definition.products * pairs * q.shape[-1] * prod(q.shape[:-2])
    return len(plan_attention(function, outputs, inputs)), flops


class CudaAttentionLauncher(PlannedLauncher):
    """A launcher of a composite function. Its plan depends on whether all addresses are aligned."""

    def __init__(
        self, device: "CudaDevice", function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> None:
        self.function, self.outputs, self.inputs = function, outputs, inputs
        layouts = [*outputs, *inputs]
        super().__init__(device, layouts, [float32] * (len(layouts) + 1), [range(len(layouts))])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches for addresses of this alignment."""
        return GpuPlan(plan_attention(self.function, self.outputs, self.inputs, all(aligned)))
