"""backends.cuda.matmul.ladder: each matmul kernel is right, free of hazards, and better by the count that it claims.

Counts are exact where sizes are multiples of the tiles.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from minifuse import simt
from minifuse.backends.cuda.intrinsics.base import device, f32
from minifuse.backends.cuda.matmul.epilogue import NO_HOOKS
from minifuse.backends.cuda.matmul.ladder import LADDER, SIDE, SQUARE, STRIP, STRIP_K, TILE, make_matmul
from minifuse.backends.cuda.matmul.tile_copies import lanes_along_k, swizzled_offset
from minifuse.backends.cuda.tile_shapes import ITEMSIZE, SHAPES_BY_ITEMSIZE, SMALL, TileShape
from minifuse.core.errors import ShapeError

LOAD, STORE = 0, 1
ROOT, LADDER_ROWS = Path(__file__).parents[2], "gpu-ladder"
on_each_rung = pytest.mark.parametrize("name", LADDER)


def operands(M, N, K, seed=0):
    random = np.random.default_rng([seed, M, N, K])
    a, b = [random.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N))]
    return np.full((M, N), np.nan, np.float32), a, b


def check(out, a, b):
    """Against float64: each of K roundings is at most 2^-24 of what is summed up."""
    bound = np.abs(a).astype(float) @ np.abs(b).astype(float) * 2.0**-24 * (a.shape[1] + 1)
    error = np.abs(out - a.astype(float) @ b.astype(float))
    assert (error <= bound).all(), f"error {error.max():.2e}, or elements that nobody wrote"


@pytest.mark.sampled(3, each="name")
@on_each_rung
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 0), (2, 31, 3)], ids=str)
def test_small_products(name, sizes):
    out, a, b = operands(*sizes)
    simt.run(LADDER[name].plan(out, a, b))
    check(out, a, b)


@pytest.mark.sampled(2)
@on_each_rung
@pytest.mark.parametrize(("side", "more", "K"), [(0, 1, 9), (1, 1, 9), (1, 4, 12)])
def test_products_past_the_edge_of_a_tile_without_hazards(name, side, more, K):
    """Past it along M or along N, with rows that are multiples of 16 bytes and with others."""
    sizes = [7, 7, K]
    sizes[side] = LADDER[name].tile[side] + more
    out, a, b = operands(*sizes)
    trace = simt.trace(LADDER[name].plan(out, a, b))
    assert [str(error) for error in trace.hazards()] == []
    check(out, a, b)


@on_each_rung
def test_nothing_outside_is_touched(name):
    """Pointers to the operands alone; what lies around them stays."""
    M, N, K = 7, 13, 9
    rung, (out, a, b) = LADDER[name], operands(M, N, K)
    around = np.full(out.size + 8, 77, np.float32)
    pointers = [simt.Pointer(x) for x in (around[4:-4], a.reshape(-1), b.reshape(-1))]
    kernel = rung.kernel(M, N, K)
    simt.run(kernel.function, rung.grid(M, N), rung.block, *rung.arguments(*pointers, M, N, K), shared=kernel.shared)
    check(around[4:-4].reshape(M, N), a, b)
    assert (around[:4] == 77).all()
    assert (around[-4:] == 77).all()


@on_each_rung
def test_the_grid_covers_the_output(name):
    rung = LADDER[name]
    rows, columns = rung.tile
    for M, N in ((1, 1), (rows, columns), (rows + 1, columns), (rows, columns + 1), (1000, 300)):
        x, y = rung.grid(M, N)
        down, across = (x, y) if name == "naive" else (y, x)
        assert (down - 1) * rows < M <= down * rows
        assert (across - 1) * columns < N <= across * columns


def test_operands_that_a_rung_does_not_take():
    out, a, b = operands(4, 5, 6)
    for bad in ((out, a, b[:3]), (out[:, :3], a, b), (out, a.T.copy().T, b), (out, a.astype(float), b)):
        with pytest.raises(ShapeError, match=r"naive: expected dense float32 out \(M, N\)"):
            LADDER["naive"].plan(*bad)


@on_each_rung
def test_each_kernel_states_what_it_improves(name):
    rung = LADDER[name]
    assert rung.name == name
    assert rung.reason
    assert rung.function.__doc__


def test_each_rung_was_measured_and_is_faster_than_the_one_before():
    """The figures that the ladder's docstring points to, as the page of benchmarks has them."""
    found = json.loads((ROOT / "project/benchmarks/results/gpu-h200.json").read_text())
    shares = {
        row["name"].split(",")[0]: row["ratios"]["torch"]["median"] for row in found["rows"] if row["group"] == LADDER_ROWS
    }
    assert list(shares) == list(LADDER)
    assert sorted(shares.values()) == list(shares.values())


# What each rung teaches.


@cache
def counts(name, M, N, K):
    """Of each array: loads and stores of lanes, and of the warps' requests the sectors and wavefronts."""
    trace = simt.trace(LADDER[name].plan(*operands(M, N, K)))
    requests, found = trace.requests(), {}
    for row, info in enumerate(trace.arrays):
        for kind in (LOAD, STORE):
            events = (trace.events.array == row) & (trace.events.kind == kind)
            of_row = (requests.array == row) & (requests.kind == kind)
            found[info.name, kind] = {
                "events": int(events.sum()),
                "bytes": int(trace.events.nbytes[events].sum()),
                "sectors": set(requests.sectors[of_row].tolist()),
                "wavefronts": int(requests.wavefronts[of_row].sum() - requests.ideal_wavefronts[of_row].sum()),
            }
    return found


def test_a_warp_along_a_column_touches_a_sector_a_thread():
    naive, coalesced = counts("naive", 32, 32, 16), counts("coalesced", 32, 32, 16)
    assert naive["a", LOAD]["sectors"] == {32}
    assert naive["b", LOAD]["sectors"] == {1}
    assert naive["out", STORE]["sectors"] == {32}
    assert coalesced["a", LOAD]["sectors"] == {1}
    assert coalesced["b", LOAD]["sectors"] == {4}
    assert coalesced["out", STORE]["sectors"] == {4}
    assert naive["a", LOAD]["events"] == coalesced["a", LOAD]["events"] == 32 * 32 * 16


@pytest.mark.parametrize(
    ("name", "sizes", "tile"),
    [
        ("coalesced", (8, 32, 4), (1, 1)),
        ("shared_tiles", (32, 64, 32), (TILE, TILE)),
        ("strips", (128, 64, 16), (STRIP, STRIP)),
        ("squares", (128, 256, 8), (SQUARE, SQUARE)),
        ("vector_loads", (128, 256, 8), (SQUARE, SQUARE)),
        ("in_use", (128, 128, 16), SMALL.tile[:2]),
    ],
)
def test_larger_tiles_load_less_from_memory(name, sizes, tile):
    """An element of a comes once for each tile across, one of b once for each tile down."""
    M, N, K = sizes
    found = counts(name, M, N, K)
    assert found["a", LOAD]["bytes"] == 4 * M * K * (N // tile[1])
    assert found["b", LOAD]["bytes"] == 4 * K * N * (M // tile[0])
    assert found["out", STORE]["bytes"] == 4 * M * N


def test_registers_spare_loads_from_shared_memory():
    """Loads for one multiplication: 2, then 9/8, 1/4, and four elements at once."""

    def loads(name, M, N, K):
        found = counts(name, M, N, K)
        return (found["tile_a", LOAD]["events"] + found["tile_b", LOAD]["events"]) / (M * N * K)

    assert loads("shared_tiles", 32, 64, 32) == 2
    assert loads("strips", 128, 64, 16) == (STRIP_K + 1) / STRIP_K
    assert loads("squares", 128, 256, 8) == 2 / SIDE
    assert loads("vector_loads", 128, 256, 8) == 2 / SIDE / 4


def test_vector_loads_are_a_quarter_of_the_loads():
    scalar, vector = counts("squares", 128, 256, 8), counts("vector_loads", 128, 256, 8)
    for array, kind in (("a", LOAD), ("b", LOAD), ("out", STORE), ("tile_a", LOAD), ("tile_b", LOAD)):
        assert 4 * vector[array, kind]["events"] == scalar[array, kind]["events"]
        assert vector[array, kind]["bytes"] == scalar[array, kind]["bytes"]


@pytest.mark.parametrize(
    ("name", "sizes"), [("shared_tiles", (32, 64, 32)), ("strips", (128, 64, 16)), ("squares", (128, 256, 8))]
)
def test_tiles_without_bank_conflicts(name, sizes):
    found = counts(name, *sizes)
    assert [found[key]["wavefronts"] for key in found if key[0].startswith("tile")] == [0, 0, 0, 0]


def test_the_kernel_in_use_loads_its_sums_operands_without_bank_conflicts():
    found = counts("in_use", 128, 128, 16)
    assert found["S", LOAD]["wavefronts"] == 0
    assert found["b", LOAD]["sectors"] == {16}  # 512 bytes a warp
    assert found["a", LOAD]["sectors"] == {4}  # two rows of 64 bytes


def test_a_tile_turned_over_meets_each_bank_once():
    """32 neighbours along k of a row: rows k, k + 8, ... begin in one bank, and `mixed` parts them."""
    for is_swizzled, banks in ((True, 32), (False, 8)):
        spot = swizzled_offset(132, is_swizzled)
        for x in (0, 5, 127):
            places = [spot(x, k) for k in range(32)]
            assert len({place % 32 for place in places}) == banks
            assert all(place // 132 == k and place % 132 // 4 == x // 4 for k, place in enumerate(places))


# What is made for the kernel in use.


@pytest.mark.parametrize("element", ITEMSIZE)
def test_tile_shapes_match_each_other(element):
    for shape in SHAPES_BY_ITEMSIZE[ITEMSIZE[element]]:
        (BM, BN, BK), (WM, WN), (LM, LN) = shape.tile, shape.warp, shape.lanes
        assert LM * LN == 32
        assert (BM % WM, BN % WN, WM % (4 * LM), WN % (4 * LN), BK % 16) == (0, 0, 0, 0, 0)
        assert shape.threads * shape.blocks <= 2048
        assert shape.nbytes(element) * shape.blocks <= 227 * 1024
        for width, X in ((1, BM), (1, BN), (4, BM), (4, BN)):
            of_k = lanes_along_k(BK)
            for TK in (of_k, max(1, shape.threads // (X // width))) if width == 1 else (shape.threads // (X // width),):
                assert X % (shape.threads // TK * width) == 0  # a tile is copied in whole turns
                assert BK % TK == 0
        assert of_k < 32 or shape.threads // of_k % 4 == 0  # a thread of a mixed tile keeps its place in groups of four
        assert 4 * shape.pad(element) * ITEMSIZE[element] % 16 == 0  # rows begin where four elements can be loaded


@pytest.mark.sampled(3, each="modes")
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("modes", [("k", "x4"), ("x4", "k"), ("x", "x")], ids=str)
def test_a_kernel_of_another_shape(stages, modes):
    """A tile of 16 x 32 in a warp: many steps and stages in little time."""
    shape = TileShape((16, 32, 16), stages, (16, 32), (4, 8), 1)
    M, N, K = 20, 44, 70
    kernel = make_matmul(shape, *modes)
    out, a, b = operands(M, N, K)
    a_stored = a.T.copy() if modes[0] == "x4" else a
    b_stored = b.T.copy() if modes[1] == "k" else b
    a_strides, b_strides = (1, M) if modes[0] == "x4" else (K, 1), (1, K) if modes[1] == "k" else (N, 1)
    flat = [x.reshape(-1) for x in (out, a_stored, b_stored)]
    numbers = M, N, K, N, 1, *a_strides, *b_strides, 1, K, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1.0
    trace = simt.trace(kernel.function, (2, 2), kernel.threads, *flat, *numbers, shared=kernel.shared)
    assert trace.hazards() == []
    check(out, a, b)


def test_an_epilogue_sees_each_element_once():
    @device
    def add_bias_and_clip(value, row, col, at):
        _, _, (bias,) = at
        return max(value + bias[col] + f32(row), f32(0))

    hooks = NO_HOOKS._replace(epilogue=add_bias_and_clip, text="add_bias_and_clip", types=("*f32",))
    shape = TileShape((16, 32, 16), 2, (16, 32), (4, 8), 1)
    for guarded, (M, N, K) in ((False, (17, 33, 20)), (True, (5, 7, 3))):
        kernel = make_matmul(shape, "k", "x", guarded, hooks=hooks)
        out, a, b = operands(M, N, K)
        bias = np.linspace(-9, 9, N).astype(np.float32)
        flat = [x.reshape(-1) for x in (out, a, b)]
        numbers = M, N, K, N, 1, K, 1, N, 1, 1, K, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.0
        grid = -(-N // 32), -(-M // 16)
        trace = simt.trace(kernel.function, grid, kernel.threads, *flat, *numbers, bias, shared=kernel.shared)
        assert trace.hazards() == []
        assert (trace.events.kind[trace.events.array == 0] == STORE).sum() == M * N
        exact = np.maximum(2 * (a.astype(float) @ b) + bias + np.arange(M)[:, None], 0)
        np.testing.assert_allclose(out, exact, rtol=1e-5, atol=2e-5)
        assert kernel.source != make_matmul(shape, "k", "x", guarded).source
