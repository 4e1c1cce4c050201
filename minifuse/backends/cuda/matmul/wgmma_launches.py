"""Plan the launches of a product by `wgmma`: packed operands, the product, and the sum of its parts if K is split."""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ....core.rounding import ceil_div
from ....ir.step_kernels import MatmulKernel
from ...matmul.problem import MatmulOperand
from ..device.tensor_maps import ITEMSIZE, TensorMapBox
from ..intrinsics.wgmma import ROW_BYTES
from ..launch_plan import OUT, WORKSPACE, GpuLaunch, OperandAddress, TensorMapArgument
from .operands import dense_output, hooks_and_arguments, sum_parts_launch
from .pack_operands import BLOCK, SIDE, make_pack
from .tensor_core_heuristics import WgmmaConfig
from .wgmma import LEFT_ROWS, THREADS, make_wgmma

WORKSPACE_UNIT = 64  # elements of float32: offsets in the workspace are multiples of 256 bytes


class WgmmaOperand(NamedTuple):
    """One operand of a product, with the properties that its launches need."""

    name: str  # "a" or "b"
    mode: str  # "k", "x" or "packed"
    rows: int
    row_stride: int  # elements from row to row
    source: MatmulOperand
    sizes: tuple[int, int]  # of the batch, outer and inner; 1 if all matrices share the operand

    def depth(self, K: int) -> int:
        """Return the distance of adjacent rows of the packed operand, in elements: a multiple of 16 bytes."""
        return ceil_div(K, 8) * 8

    def workspace_floats(self, K: int, kind: str) -> int:
        """Return the size of the packed operand in the workspace, in elements of float32."""
        nbytes = prod(self.sizes) * self.rows * self.depth(K) * ITEMSIZE[kind] if self.mode == "packed" else 0
        return ceil_div(nbytes, 4 * WORKSPACE_UNIT) * WORKSPACE_UNIT


def wgmma_operands(config: WgmmaConfig) -> tuple[WgmmaOperand, WgmmaOperand]:
    """Return the operands a and b."""
    p, operands = config.problem, []
    for name, mode, rows, x, operand, cost in (
        ("a", config.a, p.M, p.a.m, p.a, p.cost_a),
        ("b", config.b, p.N, p.b.n, p.b, p.cost_b),
    ):  # a prologue may read arrays that vary along the batch although the operand does not
        sizes = [n if stride or (cost and mode == "packed") else 1 for n, stride in zip(p.batch, operand.batch, strict=True)]
        operands.append(WgmmaOperand(name, mode, rows, x, operand, (sizes[0], sizes[1])))
    return operands[0], operands[1]


def wgmma_workspace_bytes(config: WgmmaConfig) -> int:
    """Return the bytes of workspace for packed operands and parts."""
    p = config.problem
    parts = config.parts * p.matrix_count * p.M * p.N if config.parts > 1 else 0
    return 4 * (sum(operand.workspace_floats(p.K, config.kind) for operand in wgmma_operands(config)) + parts)


def plan_wgmma(matmul: MatmulKernel, config: WgmmaConfig) -> Iterator[GpuLaunch]:
    """Return all launches of one configuration."""
    p, offset = config.problem, 0
    maps = {}
    for operand in wgmma_operands(config):
        address = OperandAddress(operand.source.address_index, operand.source.start)
        if operand.mode == "packed":
            packed = OperandAddress(WORKSPACE, offset)
            yield pack_launch(matmul, config, operand, packed, address)
            offset += operand.workspace_floats(p.K, config.kind)
            address = packed
        is_left = (operand.name == "b") == config.is_output_transposed
        maps[is_left] = (
            TensorMapArgument(address, tensor_map_box(config, operand, LEFT_ROWS if is_left else config.right_rows)),
            operand,
        )
    is_split, size = config.parts > 1, p.matrix_count * p.M * p.N
    parts = OperandAddress(WORKSPACE, offset)
    hooks, extra = hooks_and_arguments(matmul, p, False, not is_split)
    kernel = make_wgmma(config.kind, config.is_crosswise, config.is_output_transposed, config.right_rows, hooks)
    stored = dense_output(p) if is_split else p.out
    (left, left_operand), (right, right_operand) = maps[True], maps[False]
    down, across = [ceil_div(n, tile) for n, tile in zip((p.M, p.N), config.tile, strict=True)]
    flags = [int(n > 1) for operand in (left_operand, right_operand) for n in reversed(operand.sizes)]
    is_wide = p.N % 4 == 0 if is_split else config.is_wide
    numbers = p.M, p.N, p.K, stored.m, stored.n, config.parts, config.part_K, size, p.matrix_count
    batch = p.batch[1], *reversed(stored.batch), *flags, down, across, int(is_wide)
    blocks = min(config.multiprocessors, down * across * config.parts * p.matrix_count)
    arguments = (parts if is_split else OperandAddress(OUT, stored.start)), left, right, *numbers, *batch, *extra
    yield GpuLaunch(kernel, (blocks, 1, 1), (THREADS, 1, 1), arguments)
    if is_split:
        yield sum_parts_launch(matmul, p, parts, config.parts, config.is_wide)


def pack_launch(
    matmul: MatmulKernel, config: WgmmaConfig, operand: WgmmaOperand, packed: OperandAddress, source: OperandAddress
) -> GpuLaunch:
    """Return the launch that packs an operand and applies its prologue."""
    p = config.problem
    hooks, extra = hooks_and_arguments(matmul, p, True, False)
    kernel = make_pack(config.kind, operand.row_stride == 1, hooks, operand.name == "a")
    depth, (outer, inner), (out_step, in_step) = operand.depth(p.K), operand.sizes, operand.source.batch
    grid = ceil_div(operand.rows, SIDE), ceil_div(depth, SIDE), outer * inner
    numbers = operand.rows, p.K, depth, operand.row_stride, operand.source.k, inner, in_step, out_step
    return GpuLaunch(kernel, grid, BLOCK, (packed, source, *numbers, *extra))


def tensor_map_box(config: WgmmaConfig, operand: WgmmaOperand, tile: int) -> TensorMapBox:
    """Return the layout of an operand for the copy engine, and the box of elements that one copy transfers."""
    p, size, k_step = config.problem, ITEMSIZE[config.kind], ROW_BYTES // ITEMSIZE[config.kind]
    outer, inner = operand.sizes
    if operand.mode == "packed":
        row, (out_step, in_step) = (
            operand.depth(p.K),
            (inner * operand.rows * operand.depth(p.K), operand.rows * operand.depth(p.K)),
        )
    else:
        row, (out_step, in_step) = max(operand.row_stride, operand.source.k), operand.source.batch
    inner_bytes, outer_bytes = (step * size if step else 16 for step in (in_step, out_step))
    if operand.mode == "x":
        return TensorMapBox(
            config.kind, (operand.rows, p.K, inner, outer), (row * size, inner_bytes, outer_bytes), (k_step, 32)
        )
    return TensorMapBox(
        config.kind, (p.K, operand.rows, inner, outer), (row * size, inner_bytes, outer_bytes), (k_step, tile)
    )
