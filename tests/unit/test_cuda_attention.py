"""backends.cuda.attention in the interpreter: results, hazards, bank conflicts, layouts, bytes moved."""

from functools import cache

import numpy as np
import pytest

from minifuse import simt
from minifuse.backends.cuda.attention import backward, forward
from minifuse.backends.cuda.attention.forward import TILES, WIDTHS, AttentionTile
from minifuse.backends.cuda.attention.launches import (
    ATTENTION_KERNELS,
    CudaAttentionLauncher,
    attention_cost,
    plan_attention,
    split_batch,
    why_no_kernel,
)
from minifuse.backends.cuda.backend import get_device
from minifuse.backends.cuda.device.simulated_device import SimulatedDevice
from minifuse.backends.operand import Operand
from minifuse.core.dtypes import float32, float64
from minifuse.core.layout import row_major
from minifuse.ir.attention import Attention, KeyValueGradient, QueryGradient

LOAD, STORE = 0, 1
SMALL = AttentionTile(2, 16, 32, 1)  # a warp more, and fewer rows of each, than `short` has


def sample(batch, M, N, D, is_causal, scale=0.3):
    """All that goes in and comes out, by name: float32 going in, exact coming out."""
    random = np.random.default_rng([M, N, D])
    q, k, v, g = [random.standard_normal((*batch, n, D)).astype(np.float32) for n in (M, N, N, M)]
    scores = scale * q.astype(float) @ k.swapaxes(-1, -2)
    if is_causal:
        scores = np.where(np.arange(M)[:, None] >= np.arange(N), scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    e = np.exp(scores - largest)
    p, sums = e / e.sum(-1, keepdims=True), (np.log(e.sum(-1, keepdims=True)) + largest)[..., 0]
    y = p @ v
    delta = (g * y).sum(-1)
    ds = p * (g @ v.swapaxes(-1, -2).astype(float) - delta[..., None])
    exact = {"y": y, "dq": scale * ds @ k, "dk": scale * ds.swapaxes(-1, -2) @ q, "dv": p.swapaxes(-1, -2) @ g}
    given = {"q": q, "k": k, "v": v, "g": g, "sums": sums.astype(np.float32), "delta": delta.astype(np.float32)}
    return given, exact | {"sums": sums}


PASSES = {
    Attention: (("y", "sums"), ("q", "k", "v")),
    QueryGradient: (("dq",), ("q", "k", "v", "g", "sums", "delta")),
    KeyValueGradient: (("dk", "dv"), ("q", "k", "v", "g", "sums", "delta")),
}
on_each = pytest.mark.parametrize("kind", PASSES, ids=lambda kind: kind.names[0])


def ran(kind, given, exact, is_causal, seen=lambda x: x, scale=0.3, run=None):
    """Compute one function over arrays as `seen` sees them, compare, and give what `run` made of its launches."""
    names, reads = PASSES[kind]
    outputs = [seen(np.full(exact[name].shape, np.nan, np.float32)) for name in names]
    operands = [Operand.from_array(x) for x in (*outputs, *[seen(given[name]) for name in reads])]
    layouts = [x.layout.without_offset() for x in operands]
    bound = CudaAttentionLauncher(get_device(0), kind(is_causal, scale), layouts[: len(names)], layouts[len(names) :])
    addresses = [x.address for x in operands]
    found = bound(*addresses) if run is None else [run(plan) for plan in bound.plans(*addresses)]
    for name, got in zip(names, outputs, strict=True):
        np.testing.assert_allclose(got, seen(exact[name]), 2e-6, 4e-6 * max(1, np.abs(exact[name]).max()))
    return found


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Blocks of two small warps, so that few rows are several tiles; `as_they_are` has the tiles in use."""
    for name, known in ATTENTION_KERNELS.items():
        monkeypatch.setitem(
            ATTENTION_KERNELS,
            name,
            known._replace(tiles=dict.fromkeys(WIDTHS, SMALL), short_tile=AttentionTile(1, 0, 32, 1)),
        )


@pytest.mark.sampled(3, each="kind")
@on_each
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("M", "N", "D"), [(1, 1, 16), (33, 66, 20), (40, 31, 17)])
def test_sizes_past_the_edges_of_tiles(kind, is_causal, M, N, D):
    ran(kind, *sample((), M, N, D, is_causal), is_causal)


@on_each
def test_no_hazards_and_nothing_outside_is_touched(kind):
    """Rows that are not full, tiles that warps pass over, two of a batch."""
    (trace,) = ran(kind, *sample((2,), 37, 37, 18, True), True, run=simt.trace)
    assert trace.hazards() == []


@on_each
def test_results_do_not_depend_on_the_order_of_warps(kind):
    given, exact = sample((), 40, 70, 16, True)
    for seed in (1, 2):
        ran(kind, given, exact, True, run=lambda plan, seed=seed: simt.run(plan, seed=seed))


def heads_last(x):
    """(B, H, T, D) as a view of (B, T, H, D); one number a row as it is."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if x.ndim == 4 else x


def beside(x):
    """Every second element, backwards, of something larger."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), np.float32)
    wide[..., 1::2] = x[..., ::-1]
    return wide[..., 1::2][..., ::-1]


def unaligned(x):
    """Dense, but not at a multiple of 16 bytes."""
    flat = np.zeros(x.size + 4, np.float32)
    start = next(k for k in range(4) if flat[k:].ctypes.data % 16 == 4)
    flat[start : start + x.size] = x.reshape(-1)
    return flat[start : start + x.size].reshape(x.shape)


@on_each
@pytest.mark.parametrize("seen", [heads_last, beside, unaligned], ids=lambda seen: seen.__name__)
def test_any_layout(kind, seen):
    ran(kind, *sample((1, 2), 5, 6, 16, False), False, seen)


@on_each
def test_keys_that_all_heads_share(kind):
    """A batch of stride 0; what several heads receive is folded outside."""
    given, exact = sample((1,), 5, 6, 16, True)
    given |= {name: np.broadcast_to(given[name], (2, *given[name].shape[1:])) for name in given}
    ran(kind, given, {name: np.broadcast_to(x, (2, *x.shape[1:])).copy() for name, x in exact.items()}, True)


@on_each
def test_the_tiles_in_use(kind, monkeypatch):
    """Of the width that networks use, with a row past the edge of a block."""
    monkeypatch.undo()
    rows = ATTENTION_KERNELS[kind.names[0]].tiles[64].height + 1
    M, N = (rows, 3) if kind is not KeyValueGradient else (3, rows)
    ran(kind, *sample((), M, N, 64, False), False)


@pytest.mark.parametrize("width", WIDTHS)
@on_each
def test_tile_shapes_match_each_other(kind, width, monkeypatch):
    monkeypatch.undo()
    known = ATTENTION_KERNELS[kind.names[0]]
    for tile in (known.tiles[width], *[known.short_tile] * (width < WIDTHS[-1])):
        for along in ("x4", "x"):
            kernel = known.make(tile, width, along)
            assert kernel.shared * tile.blocks <= 227 * 1024
            assert tile.rows % 16 == 0
            assert tile.columns % 32 == 0
            assert kernel.threads * tile.blocks <= 2048


# What the kernels are for, counted.


@cache
def counts(kind, M, N, D, is_causal):
    """Of each array the bytes that lanes load and store, and its bank conflicts by line, with the tiles in use."""
    (trace,) = ran(kind, *sample((), M, N, D, is_causal), is_causal, run=simt.trace)
    requests, found = trace.requests(), {}
    for row, info in enumerate(trace.arrays):
        of_row = requests.array == row
        more = requests.wavefronts[of_row] - requests.ideal_wavefronts[of_row]
        lines = [trace.instructions[k].line for k in requests.instruction[of_row]]
        files = [trace.instructions[k].file for k in requests.instruction[of_row]]
        conflicts = sum(int(n) for n, file, _ in zip(more, files, lines, strict=True) if "attention" in file)
        for kind_ in (LOAD, STORE):
            events = (trace.events.array == row) & (trace.events.kind == kind_)
            found[info.name, kind_] = int(trace.events.nbytes[events].sum())
        found[info.name, "conflicts"] = conflicts
    return found


def test_scores_are_never_stored_in_global_memory():
    """Of 96 rows that see 64 others: q once, k and v once for each of three blocks, and the outputs."""
    found = counts(Attention, 96, 64, 32, False)
    matrix = 4 * 32
    assert (found["q", LOAD], found["k", LOAD], found["v", LOAD]) == (96 * matrix, 3 * 64 * matrix, 3 * 64 * matrix)
    assert (found["out", STORE], found["sums", STORE]) == (96 * matrix, 96 * 4)
    stored = sum(n for (name, kind), n in found.items() if kind == STORE and name != "S")
    assert stored < 4 * 96 * 64


def test_causal_blocks_load_only_unmasked_keys():
    """Three blocks of 32 rows see one, two and three tiles of 32 columns."""
    found = counts(Attention, 96, 96, 32, True)
    assert found["k", LOAD] == found["v", LOAD] == (1 + 2 + 3) * 32 * 4 * 32
    found = counts(KeyValueGradient, 96, 96, 32, True)
    assert found["q", LOAD] == found["g", LOAD] == 2 * (3 + 2 + 1) * 32 * 4 * 32  # turned over, and as they are


@on_each
def test_products_and_handed_over_weights_have_no_bank_conflicts(kind):
    """What is copied past registers into columns has some, as in `matmul`."""
    assert counts(kind, 96, 96, 32, True)["S", "conflicts"] == 0


# Which function, and which launch.


def test_which_functions_are_known():
    shape = 2, 5, 16
    for _, reads in PASSES.values():
        shapes = [shape[:-1] if name in ("sums", "delta") else shape for name in reads]
        assert why_no_kernel(shapes, [float32] * len(shapes)) is None
        assert "not float64" in why_no_kernel(shapes, [float64] * len(shapes))
    for D, is_known in ((15, False), (16, True), (128, True), (129, False)):
        assert (why_no_kernel([(3, D)] * 3, [float32] * 3) is None) == is_known
    assert why_no_kernel([(3, 16), (4, 16), (4, 20)], [float32] * 3)
    assert why_no_kernel([(3, 16), (0, 16), (0, 16)], [float32] * 3)


def launches(batch, M=40, D=64, is_aligned=True):
    of, row = row_major((*batch, M, D)), row_major((*batch, M))
    return plan_attention(Attention(True, 1.0), [of, row], [of] * 3, is_aligned)


def test_a_batch_of_any_size_is_few_launches():
    assert [launch.grid for launch in launches((2, 3))] == [(2, 6, 1)]
    assert [launch.grid for launch in launches((70_000,), 1)] == [(1, 65_535, 1), (1, 4_465, 1)]
    of = row_major((3, 4, 5, 6, 16)).permute(2, 1, 0, 3, 4)  # axes that do not merge
    found = plan_attention(Attention(True, 1.0), [row_major(of.shape), row_major(of.shape[:-1])], [of] * 3)
    assert sum(launch.grid[1] for launch in found) == 60
    assert len({launch.arguments[:5] for launch in found}) == len(found) == 5


def test_pieces_cover_a_batch_once():
    sizes, strides = [3, 70_000, 2], [(140_000,), (2,), (1,)]
    seen = np.concatenate([
        (start + np.add.outer(np.arange(n[0]) * s[0][0], np.arange(n[1]) * s[1][0] if len(n) > 1 else [0])).ravel()
        for n, s, (start,) in split_batch(sizes, strides, (0,))
    ])  # fmt: skip
    np.testing.assert_array_equal(np.sort(seen), np.arange(420_000))


def test_copies_of_16_bytes_where_layouts_allow_it():
    assert launches((2,))[0].kernel.constants[-1] == "x4"
    assert launches((2,), is_aligned=False)[0].kernel.constants[-1] == "x"
    assert launches((2,), D=18)[0].kernel.constants[-1] == "x"


def test_the_kernel_for_few_rows(monkeypatch):
    monkeypatch.undo()
    assert launches((), 32)[0].kernel.constants[:4] == forward.SHORT_TILE
    assert launches((), 33)[0].kernel.constants[:4] == TILES[64]
    assert launches((), 32, 128)[0].kernel.constants[:4] == TILES[128]
    assert backward.SHORT_TILE.threads == 32


def test_loads_and_flops_are_counted():
    """A product of M * N * D for each of two; of causal ones what is seen."""
    of = row_major((2, 3, 4))
    assert attention_cost(Attention(False, 1.0), [of, row_major((2, 3))], [of] * 3) == (1, 2 * 2 * 2 * 3 * 3 * 4)
    assert attention_cost(Attention(True, 1.0), [of, row_major((2, 3))], [of] * 3) == (1, 2 * 2 * 2 * 6 * 4)


def test_a_failed_launch_raises():
    class Broken(SimulatedDevice):
        def prepare(self, kernel, geometry, shared=0):
            def run(*arguments):
                raise RuntimeError("no more")

            return run

    of = row_major((3, 16))
    bound = CudaAttentionLauncher(Broken(0), Attention(True, 1.0), [of, row_major((3,))], [of] * 3)
    with pytest.raises(RuntimeError, match="no more"):
        bound(*[np.zeros(48, np.float32).ctypes.data] * 5)
