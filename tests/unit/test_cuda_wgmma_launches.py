"""Launches of a `wgmma` matmul: packing kernels run in the interpreter, and NumPy replaces the matmul kernel.

NumPy reads operands through the tensor maps, as the copy engine does, and stores through the kernel's arguments. So
everything but the kernel itself is tested without a GPU.
"""

import numpy as np
import pytest

from minifuse import simt
from minifuse.backends.cuda.geometry import MAX_SHARED_BYTES
from minifuse.backends.cuda.launch_plan import WORKSPACE, TensorMapArgument
from minifuse.backends.cuda.matmul.heuristics import GpuLimits
from minifuse.backends.cuda.matmul.launches import plan_matmul
from minifuse.backends.cuda.matmul.tensor_core_heuristics import wgmma_configs, wgmma_operand_mode
from minifuse.backends.cuda.matmul.wgmma import LEFT_ROWS, RIGHT_ROWS, STRIP_TILES, pipeline_sizes, tile_work
from minifuse.backends.matmul.problem import MatmulOperand, plain_problem
from minifuse.core.dtypes import HIGH, MEDIUM, float32, float64, int32
from minifuse.core.layout import row_major
from minifuse.ir.kernel_ir import Accumulator, Load
from minifuse.ir.step_kernels import MatmulKernel

from ..cuda.cores import take
from .test_cuda_matmul_fusion import whole
from .test_cuda_matmul_launches import BATCHES, VIEWS, address_of, launch_plan, layout_of, pointers_to

A, B, DOT = Load(0, float32), Load(1, float32), Accumulator(float32)
WAYS = {  # views of a and of b, and the names of the launches
    "along k": ("plain", "turned", ()),
    "crosswise": ("turned", "turned", ()),
    "crosswise, turned": ("plain", "plain", ()),
    "one made ready": ("turned", "plain", ("pack_operand",)),
    "both made ready": ("unaligned", "sliced", ("pack_operand", "pack_operand")),
}


def read_by(box, array, offset):
    """What the copy engine sees, (outer, inner, y, x); its rules for addresses, strides and sizes hold."""
    at = address_of(array) + 4 * offset
    assert at % 16 == 0
    assert all(step % 16 == 0 and 0 < step < 1 << 40 for step in box.strides)
    assert all(0 < n <= 1 << 32 for n in box.sizes)
    assert max(box.box) <= 256
    itemsize = {"tf32": 4, "bf16": 2}[box.kind]
    assert box.box[0] * itemsize == 128
    flat = array.reshape(-1).view(np.uint8)[4 * offset :]
    kind = np.uint16 if box.kind == "bf16" else np.float32
    flat = flat[: flat.size // itemsize * itemsize].view(kind)
    strides = *reversed(box.strides), itemsize
    reach = sum((n - 1) * s for n, s in zip(reversed(box.sizes), strides, strict=True)) // itemsize
    assert reach < flat.size, "past the end of the operand"
    found = np.lib.stride_tricks.as_strided(flat, tuple(reversed(box.sizes)), strides)
    return (found.astype(np.uint32) << 16).view(np.float32) if box.kind == "bf16" else found


def play(launch, memory):
    """The kernel's work, by NumPy."""
    out, left, right, *numbers = launch.arguments
    assert isinstance(left, TensorMapArgument)
    assert isinstance(right, TensorMapArgument)
    M, N, K, out_row, out_col, parts, part_K, out_part, matrices, inner, out_inner, out_outer, *flags = numbers[:16]
    down, across, wide = numbers[16:19]
    _, is_crosswise, is_turned, tile, _ = launch.kernel.constants
    x, y = [read_by(m.box, memory[m.address.operand], m.address.offset) for m in (left, right)]
    assert left.box.box[1] == (32 if is_crosswise else LEFT_ROWS)
    assert right.box.box[1] == tile
    BM, BN = (tile, LEFT_ROWS) if is_turned else (LEFT_ROWS, tile)
    assert (down, across) == (-(-M // BM), -(-N // BN))
    target = memory[out.operand].reshape(-1)
    rows, columns = np.arange(M)[:, None] * out_row, np.arange(N) * out_col
    for z in range(matrices * parts):
        part, batch = z % parts, z // parts
        i, o = batch % inner, batch // inner
        one, other = x[o * flags[1], i * flags[0]], y[o * flags[3], i * flags[2]]
        one = one.T if is_crosswise else one
        k = slice(part * part_K, min((part + 1) * part_K, K))
        found = one[:, k].astype(float) @ other[:, k].astype(float).T
        start = out.offset + part * out_part + i * out_inner + o * out_outer
        places = start + rows + columns
        assert not wide or (out_col == 1 and (places[:, ::4] % 4 == 0).all() and address_of(target) % 16 == 0)
        target[places] = found.T if is_turned else found


def multiplied(kernel, a, b, out=None, multiprocessors=4):
    """out = a @ b by the plan for them, and the names of what is launched."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*batch, a.shape[-2], b.shape[-1]), 77, np.float32) if out is None else out
    a, b = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]
    aligned = tuple(address_of(x) % 16 == 0 for x in (out, a, b))
    plan = plan_matmul(kernel, [layout_of(out)], [layout_of(a), layout_of(b)], multiprocessors, aligned, cores="wgmma")
    room = np.full(plan.workspace // 4 + 4, np.nan, np.float32)
    room = room[-address_of(room) % 16 // 4 :][: plan.workspace // 4]
    memory, bases = {WORKSPACE: room}, [out, a, b]
    for k, x in enumerate(bases):
        low, high = layout_of(x).span()
        assert low >= 0
        memory[k] = np.lib.stride_tricks.as_strided(x, (high,), (4,))
    for launch in plan.launches:
        if launch.kernel.name == "matmul_wgmma":
            assert launch.kernel.shared == pipeline_sizes(launch.kernel.constants[3])[2] <= MAX_SHARED_BYTES
            play(launch, memory)
        else:
            is_half = launch.kernel.signature[0] == "*i32"  # two bf16 in 32 bits
            simt.run(launch_plan(launch, pointers_to([*bases, room.view(np.int32) if is_half else room])))
    return out, [launch.kernel.name for launch in plan.launches]


def plain_in(precision):
    return MatmulKernel(A, B, (DOT,), precision)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("tile", RIGHT_ROWS)
def test_every_operand_mode(name, parts, tile, monkeypatch):
    left, right, before = WAYS[name]
    for k, (M, N, K) in enumerate(((12, 20, 168), (132, 260, 200))):
        take(monkeypatch, name, parts, tile)
        a, b = whole(k, (M, K), (K, N))
        a, b = VIEWS[left](a), VIEWS[right](b)
        out, names = multiplied(plain_in(HIGH), a, b)
        np.testing.assert_array_equal(out, a @ b)
        assert names == [*before, "matmul_wgmma", *["add_parts"] * (parts > 1)]


@pytest.mark.sampled(2, each="batch")
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", WAYS)
def test_batches(batch, name, monkeypatch):
    take(monkeypatch, name)
    left, right = BATCHES[batch]
    a, b = whole(3, (*left, 12, 20), (*right, 20, 36))
    a, b = VIEWS[WAYS[name][0]](a), VIEWS[WAYS[name][1]](b)
    out, _ = multiplied(plain_in(HIGH), a, b)
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.sampled(3, each="left")
@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("right", VIEWS)
def test_bf16_takes_every_layout(left, right, monkeypatch):
    take(monkeypatch, "both made ready")
    a, b = whole(4, (2, 13, 37), (2, 37, 70))
    x, y = VIEWS[left](a), VIEWS[right](b)
    if min(layout_of(v).span()[0] for v in (x, y)) < 0:
        x, y = [v if layout_of(v).span()[0] >= 0 else v.copy() for v in (x, y)]
    out, names = multiplied(plain_in(MEDIUM), x, y)
    np.testing.assert_array_equal(out, x @ y)
    assert names == ["pack_operand", "pack_operand", "matmul_wgmma"]


def test_an_output_in_any_order(monkeypatch):
    take(monkeypatch, "along k")
    a, b = whole(5, (40, 36), (36, 20))
    for out in (
        np.empty((20, 40), np.float32).T,
        np.empty((40, 43), np.float32)[:, 1:21],
        np.empty((80, 60), "f4")[::2, ::3],
    ):
        got, _ = multiplied(plain_in(HIGH), a, VIEWS["turned"](b), out)
        np.testing.assert_array_equal(got, a @ b)


def test_copies_are_rounded_to_bf16(monkeypatch):
    take(monkeypatch, "both made ready")
    a = np.array([[1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-9]], np.float32)
    out, _ = multiplied(plain_in(MEDIUM), a, np.eye(4, dtype=np.float32))
    np.testing.assert_array_equal(out, [[1, 1 + 2**-6, 1 + 2**-7, -1]])


def names_of(precision, M, N, K, cores="wgmma", dtype=float32):
    kernel = MatmulKernel(Load(0, dtype), Load(1, dtype), (Accumulator(dtype),), precision)
    shapes = [row_major((M, N))], [row_major((M, K)), row_major((K, N))]
    return [launch.kernel.name for launch in plan_matmul(kernel, *shapes, cores=cores).launches]


def test_large_products_go_to_the_tensor_cores():
    assert names_of(HIGH, 4096, 4096, 4096) == ["matmul_wgmma"]
    assert names_of(MEDIUM, 4096, 4096, 4096) == ["pack_operand", "pack_operand", "matmul_wgmma"]
    assert names_of(HIGH, 4096, 4096, 4096, "mma")[0] == "matmul_mma"
    assert names_of(HIGH, 4095, 4095, 4095)[-1] == "matmul_wgmma"


def test_matmuls_that_tensor_cores_do_not_help_stay_in_float32():
    assert names_of(HIGH, 1, 4096, 4096)[0] in ("matmul_rows", "matmul_dots")
    assert names_of("highest", 4096, 4096, 4096) == ["turn", "matmul"]
    assert names_of(MEDIUM, 4096, 4096, 4096, "") == ["turn", "matmul"]
    for dtype in (float64, int32):
        assert names_of(MEDIUM, 4096, 4096, 4096, dtype=dtype) == names_of("highest", 4096, 4096, 4096, dtype=dtype)
    assert names_of(HIGH, 30, 30, 0) == names_of("highest", 30, 30, 0)


def test_operand_modes_follow_the_layout():
    for want, x, k, moves, is_aligned, change in (
        ("k", 36, 1, [0, 72], True, 0),
        ("x", 1, 36, [0], True, 0),
        ("packed", 1, 35, [0], True, 0),
        ("packed", 36, 1, [2], True, 0),
        ("packed", 36, 1, [0, -36], True, 0),
        ("packed", -36, 1, [0], True, 0),
        ("packed", 0, 1, [0], True, 0),
        ("packed", 36, 1, [0], False, 0),
        ("packed", 36, 1, [0], True, 2),
        ("packed", 72, 2, [0], True, 0),
    ):
        operand = MatmulOperand(1, "a", x, 0, k, tuple(moves), is_aligned=is_aligned)
        assert wgmma_operand_mode("tf32", x, operand, change) == want
    assert wgmma_operand_mode("bf16", 36, MatmulOperand(1, "a", 36, 0, 1), 0) == "packed"


def test_a_model_of_time_that_prefers_fewer_steps():
    """A cut of K for few tiles; none where there are enough."""
    for (M, N, K), is_cut in (((256, 256, 65536), True), ((8192, 8192, 512), False)):
        product = plain_problem(float32, row_major((M, N)), row_major((M, K)), row_major((K, N)))
        found = wgmma_configs(product._replace(precision="high"), GpuLimits(132))
        assert (min(found, key=lambda way: way.cycles).parts > 1) == is_cut


@pytest.mark.parametrize(
    ("across", "down", "parts", "outer", "inner"), [(1, 1, 1, 1, 1), (9, 3, 2, 2, 3), (16, 5, 1, 1, 1), (7, 2, 3, 1, 2)]
)
def test_each_tile_is_somebodys_work(across, down, parts, outer, inner):
    found = [tuple(map(int, tile_work(t, across, down, parts, inner))) for t in range(across * down * parts * outer * inner)]
    assert sorted(found) == [*np.ndindex(down, across, parts, inner, outer)]
    strip = min(STRIP_TILES, across)
    assert {col for _, col, *_ in found[: strip * down]} == set(range(strip)), "tiles beside each other come together"
