"""Plan the launches of attention and its gradients for given layouts, and bind them to everything except addresses.

Planning uses integers only: sizes, strides and alignment decide which kernel runs.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from ....core.dtypes import DType, float32
from ....core.layout import Layout
from ....core.rounding import ceil_div
from ....ir.array_functions import CompositeOp
from ....ir.kernel_ir import LoopNest, Shape
from ....simt import Pointer
from ...base import Launcher
from ...codegen.gpu_facts import MAX_GRID_YZ
from ...fast_call import CallValue, encode_argument
from ..launch_plan import DeviceLaunch, KernelArgument, ReadyLaunch
from ..launcher import ALIGNMENT_MASK, CudaLauncher, prepare_kernels
from ..tile_shapes import GpuKernel
from . import backward, forward
from .forward import NO_LIMIT, WIDTHS, AttentionTile

if TYPE_CHECKING:
    from ..device import CudaDevice

MIN_WIDTH, MAX_WIDTH = 16, 128  # elements of a row of q, k and v
ITEMSIZE = 4  # bytes of a float32
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


class AttentionLaunch(NamedTuple):
    """One launch over operands without their addresses."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    starts: tuple[int, ...]  # position in each operand, in elements, where this launch starts
    numbers: tuple[int | np.float32, ...]

    @property
    def block(self) -> tuple[int, int, int]:
        """Return the number of threads along x, y, z."""
        return self.kernel.threads, 1, 1


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
) -> tuple[AttentionLaunch, ...]:
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
        constants = M, N, D, max_ahead, np.float32(scale), sizes[-1], int(can_store4)
        numbers: tuple[int | np.float32, ...] = *constants, *row_strides, *column_strides, *inner, *outer
        launches.append(AttentionLaunch(kernel, (ceil_div(rows, tile.height), prod(sizes), 1), starts, numbers))
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


class CudaAttentionLauncher(CudaLauncher):
    """A launcher of a composite function. Which kernel it launches also depends on the alignment of the addresses."""

    def __init__(
        self, device: "CudaDevice", function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> None:
        self.device, self.function, self.outputs, self.inputs = device, function, outputs, inputs
        self.spans = [layout.span() for layout in (*outputs, *inputs)]
        self.prepared: dict[bool, list[tuple[DeviceLaunch, AttentionLaunch]]] = {}
        self.prepare(True)

    def prepare(self, is_aligned: bool) -> None:
        """Compile and prepare the launches."""
        launches = plan_attention(self.function, self.outputs, self.inputs, is_aligned)
        prepared = prepare_kernels(self.device, [(x.kernel, x.grid, x.block) for x in launches])
        self.prepared[is_aligned] = list(zip(prepared, launches, strict=True))

    def fast_entry(self) -> Launcher:
        """Return the fast launch path, which requires that all addresses are multiples of 16."""
        count, launches = len(self.spans), []
        for run, launch in self.prepared[True]:
            addresses = [CallValue(k, ITEMSIZE * start) for k, start in enumerate(launch.starts)]
            numbers = map(encode_argument, launch.kernel.signature[count:], launch.numbers)
            arguments: list[CallValue | int] = [*addresses, *numbers]
            launches.append((run, arguments))
        return self.device.fast_entry(launches, ["i64"] * count, self, range(count)) or self

    def ready_launches(self, *addresses: int) -> list[ReadyLaunch]:
        """Return the launches for use in a graph."""
        runs = self.prepared_launches(addresses)
        return [ReadyLaunch(run, launch.kernel.signature, self.arguments(launch, addresses)) for run, launch in runs]

    def prepared_launches(self, addresses: Sequence[int]) -> list[tuple[DeviceLaunch, AttentionLaunch]]:
        """Return the prepared launches for the alignment of these addresses."""
        is_aligned = not any(address & ALIGNMENT_MASK for address in addresses)
        if is_aligned not in self.prepared:
            self.prepare(is_aligned)
        return self.prepared[is_aligned]

    def arguments(self, launch: AttentionLaunch, addresses: Sequence[int]) -> list[KernelArgument]:
        """Return all arguments of a kernel: addresses in the order of operands, and numbers."""
        operands = list(zip(addresses, launch.starts, self.spans, strict=True))
        if self.device.is_simulated:
            pointers = [Pointer(x + ITEMSIZE * s, low - s, high - s, np.float32) for x, s, (low, high) in operands]
            return [*pointers, *launch.numbers]
        return [*[x + ITEMSIZE * start for x, start, _ in operands], *launch.numbers]
