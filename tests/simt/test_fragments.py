"""`mma.sync` in the interpreter: layouts of fragments, precision of operands, and the lanes that must take part."""

import numpy as np
import pytest

from minifuse import simt
from minifuse.core.errors import BarrierError, SimtError
from minifuse.simt import cuda, fragments, mma_sync

KINDS = {"tf32": 8, "bf16": 16}


def pack_bf16(values):
    """Pack pairs of numbers, which bf16 represents exactly, into int32."""
    bits = values.astype(np.float32).view(np.uint32) >> 16
    return (bits[:, 1::2] << 16 | bits[:, ::2]).astype(np.uint32).view(np.int32)


def load_fragments(kind, a, b, c):
    """Load a, b and c into registers of all lanes: arrays of shapes (32, 4), (32, 2), (32, 4)."""
    at_a, at_b = fragments.OPERAND_INDICES[kind]
    left, right = a[at_a.row, at_a.column], b[at_b.row, at_b.column]
    if kind == "bf16":
        left, right = pack_bf16(left), pack_bf16(right)
    return left, right, c[fragments.ACCUMULATOR_INDEX.row, fragments.ACCUMULATOR_INDEX.column].astype(np.float32)


def warp_product(kind, out, left, right, sums):
    t = cuda.threadIdx.x
    a = (left[t, 0], left[t, 1], left[t, 2], left[t, 3])
    found = mma_sync(kind, a, (right[t, 0], right[t, 1]), (sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3]))
    for k in range(4):
        out[t, k] = found[k]


def run(kind, left, right, sums, threads=32, **options):
    out = np.full((32, 4), np.nan, np.float32)

    def kernel(out, left, right, sums):
        warp_product(kind, out, left, right, sums)

    simt.run(kernel, 1, threads, out, left, right, sums, **options)
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_mma_sync_computes_the_warp_product(kind, seed):
    random = np.random.default_rng(seed)
    depth = KINDS[kind]
    a, b, c = [random.integers(-9, 10, shape).astype(np.float32) for shape in ((16, depth), (depth, 8), (16, 8))]
    out = run(kind, *load_fragments(kind, a, b, c), seed=seed)
    found = np.full((16, 8), np.nan)
    found[fragments.ACCUMULATOR_INDEX.row, fragments.ACCUMULATOR_INDEX.column] = out
    np.testing.assert_array_equal(found, a @ b + c)


def test_fragment_layouts_match_the_ptx_manual():
    """Compare some lanes with the figures of the manual: T17 has elements of row 4 and, with g + 8, of row 12."""
    a, b = fragments.OPERAND_INDICES["tf32"]
    assert list(zip(a.row[17], a.column[17], strict=True)) == [(4, 1), (12, 1), (4, 5), (12, 5)]
    assert list(zip(b.row[17], b.column[17], strict=True)) == [(1, 4), (5, 4)]
    assert list(zip(fragments.ACCUMULATOR_INDEX.row[17], fragments.ACCUMULATOR_INDEX.column[17], strict=True)) == [
        (4, 2),
        (4, 3),
        (12, 2),
        (12, 3),
    ]
    a, b = fragments.OPERAND_INDICES["bf16"]
    assert list(zip(a.row[6], a.column[6], strict=True)) == [(r, c) for k in (4, 12) for r in (1, 9) for c in (k, k + 1)]
    assert list(zip(b.row[6], b.column[6], strict=True)) == [(4, 1), (5, 1), (12, 1), (13, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_element_belongs_to_one_register(kind):
    depth = KINDS[kind]
    for places, shape in zip(
        (*fragments.OPERAND_INDICES[kind], fragments.ACCUMULATOR_INDEX), ((16, depth), (depth, 8), (16, 8)), strict=True
    ):
        count = np.zeros(shape, int)
        np.add.at(count, (places.row, places.column), 1)
        assert (count == 1).all()


def test_tf32_operands_are_truncated():
    a, b, c = np.zeros((16, 8)), np.eye(8), np.zeros((16, 8))
    a[0, :4] = 1 + 2.0**-11, 1 + 2.0**-10, -1 - 2.0**-11, np.inf
    b[3:] = 0
    b[3, 3] = 1
    left, right, sums = load_fragments("tf32", a.astype(np.float32), b.astype(np.float32), c)
    out = run("tf32", left, right, sums)
    found = np.zeros((16, 8))
    found[fragments.ACCUMULATOR_INDEX.row, fragments.ACCUMULATOR_INDEX.column] = out
    assert found[0, 3] == np.inf
    assert np.isnan(found[0, 0])  # inf * 0
    a[0, 3] = 0
    found[fragments.ACCUMULATOR_INDEX.row, fragments.ACCUMULATOR_INDEX.column] = run(
        "tf32", *load_fragments("tf32", a.astype("f4"), b.astype("f4"), c)
    )
    np.testing.assert_array_equal(found[0, :3], [1, 1 + 2.0**-10, -1])


def test_lane_that_skips_mma_sync_is_an_error():
    """The other lanes would wait forever."""
    operands = load_fragments("tf32", np.ones((16, 8)), np.ones((8, 8)), np.zeros((16, 8)))

    def kernel(out, left, right, sums):
        if cuda.threadIdx.x != 5:
            warp_product("tf32", out, left, right, sums)

    with pytest.raises(SimtError, match="mma_sync"):
        simt.run(kernel, 1, 32, np.zeros((32, 4), "f4"), *operands)


def test_mma_sync_in_a_partial_warp_is_an_error():
    operands = load_fragments("tf32", np.ones((16, 8)), np.ones((8, 8)), np.zeros((16, 8)))
    with pytest.raises(BarrierError, match="mma_sync"):
        run("tf32", *operands, threads=31)


def test_mma_sync_is_recorded_once_per_warp():
    operands = load_fragments("bf16", np.ones((16, 16)), np.ones((16, 8)), np.zeros((16, 8)))
    out = np.zeros((32, 4), "f4")

    def kernel(out, left, right, sums):
        warp_product("bf16", out, left, right, sums)

    trace = simt.trace(kernel, 1, 32, out, *operands)
    assert [(found.kind, found.mask) for found in trace.collectives] == [("mma_sync", 0xFFFFFFFF)]
    assert not trace.hazards()
    assert (out == 16).all()
