"""backends.cuda.matmul.mma in the interpreter: rounding, layouts, prologue and epilogue, hazards, bank conflicts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.backends.cuda.intrinsics.mma import bf16_bits, lane_columns, lane_rows, round_to_tf32
from minifuse.backends.cuda.matmul.mma import MMA_LARGE, MMA_SHAPES, MMA_SMALL, make_mma, mma_shared_bytes
from minifuse.core.dtypes import HIGH, MEDIUM, float32, int32
from minifuse.core.operators import gt, relu, where
from minifuse.ir.kernel_ir import Accumulator, cast

from ..cuda.cores import take
from .test_cuda_matmul_fusion import Case, floats, whole
from .test_cuda_matmul_launches import BATCHES, VIEWS

DOT = Accumulator(float32)
PRECISIONS = {HIGH: 2.0**-11, MEDIUM: 2.0**-8}  # half of the last place
on_each_precision = pytest.mark.parametrize("precision", PRECISIONS)
SIZES = [(1, 1, 1), (7, 5, 33), (64, 64, 32), (65, 68, 31), (66, 66, 34)]


def product(a, b, precision):
    return Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [a], [b], precision=precision)


# Rounding.


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_rounding_is_to_the_nearest(bits):
    x = np.uint32(bits).view(np.float32)
    y, z = round_to_tf32(x), np.uint32(bf16_bits(x) << 16).view(np.float32)
    if not np.isfinite(x):
        assert str(y) == str(x)
        assert str(z) == str(x)
        return
    for value, kept in ((y, 10), (z, 7)):
        assert int(value.view(np.uint32)) & ((1 << (23 - kept)) - 1) == 0
        if np.isfinite(value):
            step = 2.0 ** (max(int(np.floor(np.log2(abs(float(x) or 1)))), -126) - kept)
            assert abs(float(value) - float(x)) <= step / 2
        else:
            assert abs(float(x)) >= float(np.finfo(np.float32).max) * (1 - 2.0**-kept)


def test_ties():
    """tf32 away from zero, as cvt.rna; bf16 to even, as cvt.rn."""
    for sign in (1, -1):
        assert round_to_tf32(sign * (1 + 2.0**-11)) == sign * (1 + 2.0**-10)
        assert round_to_tf32(sign * (1 + 3 * 2.0**-11)) == sign * (1 + 2.0**-9)
    assert bf16_bits(1 + 2.0**-8) == bf16_bits(1.0)
    assert bf16_bits(1 + 3 * 2.0**-8) == bf16_bits(1 + 2.0**-6)


# The kernel.


@pytest.mark.sampled(2, each="precision")
@on_each_precision
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_exact_where_operands_are(precision, size, monkeypatch):
    take(monkeypatch, "small")
    M, N, K = size
    case = product(*whole(1, (M, K), (K, N)), precision)
    assert case.run() == ["matmul_mma"]
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@on_each_precision
def test_a_large_tile(precision, monkeypatch):
    take(monkeypatch, "large")
    case = product(*whole(2, (130, 20), (20, 132)), precision)
    case.run()
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@on_each_precision
def test_operands_are_rounded_to_nearest(precision, monkeypatch):
    """Each product is off by two half units at most, and not to one side: bits that are cut off make all smaller."""
    take(monkeypatch, "small")
    a, b = [np.abs(x) for x in floats(3, (66, 70), (70, 68))]
    case, unit = product(a, b, precision), PRECISIONS[precision]
    bound = case.bound()
    bound(*case.values())
    error = case.outs[0] / case.expected()[0] - 1
    assert unit / 50 < np.abs(error).max() <= 2 * unit + unit**2 + 1e-6
    assert abs(error.mean()) < 0.1 * unit


@pytest.mark.sampled(3, each="left")
@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("right", VIEWS)
def test_every_layout(left, right, monkeypatch):
    take(monkeypatch, "small")
    a, b = whole(4, (12, 20), (20, 36))
    case = product(VIEWS[left](a), VIEWS[right](b), HIGH if left < right else MEDIUM)
    case.run()
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("batch", "parts"), [("none", 2), ("one", 2), *[(name, 1) for name in BATCHES if name != "none"]], ids=str
)
def test_batches_and_split_k(batch, parts, monkeypatch):
    take(monkeypatch, "small", parts)
    left, right = BATCHES[batch]
    K = 130 if parts > 1 else 9
    case = product(*whole(5, (*left, 5, K), (*right, K, 9)), HIGH)
    assert set(case.run()) == {"matmul_mma", *["add_parts"] * (parts > 1)}
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@on_each_precision
@pytest.mark.parametrize("width", [8, 9])
def test_prologue_and_epilogue(precision, width, monkeypatch):
    take(monkeypatch, "small")
    a, b, bias, residual, rows = whole(6, (67, 20), (20, width), (width,), (67, width), (67, 1))

    def make(a, b, x, p):
        total = DOT * p[0] + x[0]
        return a[0] * 2.0 + 1.0, relu(b[0]) - 1.0, (relu(total) + x[1], cast(total, int32), where(gt(DOT, x[2]), DOT, x[2]))

    case = Case(make, [a], [b], [bias, residual, rows], [0.5], precision=precision)
    assert case.run() == ["matmul_mma"]
    for out, expected in zip(case.outs, case.expected(), strict=True):
        np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


def test_nan_and_infinity_reach_only_their_row_and_column(monkeypatch):
    take(monkeypatch, "small")
    a, b = whole(7, (10, 12), (12, 9))
    a[3, 5], a[6, 0], b[7, 8] = np.nan, np.inf, -np.inf
    for precision in PRECISIONS:
        case = product(a, b, precision)
        case.run()
        np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@on_each_precision
def test_no_hazards_and_no_bank_conflicts(precision):
    """Pairs of half a warp lie in 32 banks, so that fragments come in two wavefronts of 128 bytes each."""
    a, b = whole(8, (64, 40), (40, 64))
    out = np.full((64, 64), np.nan, np.float32)
    kernel = make_mma(MMA_SMALL, "x4", "x4", False, {HIGH: "tf32", MEDIUM: "bf16"}[precision])
    turned = np.ascontiguousarray(a.T)
    arguments = out.reshape(-1), turned.reshape(-1), b.reshape(-1), 64, 64, 40, 64, 1, 1, 64, 64, 1, 1, 40, 0, 1
    trace = simt.trace(kernel.function, 1, kernel.threads, *arguments, 0, 0, 0, 0, 0, 0, True, 1.0, shared=kernel.shared)
    assert [str(error) for error in trace.hazards()] == []
    np.testing.assert_array_equal(out, a @ b)
    counts = Counter(found.kind for found in trace.collectives)
    warps, tiles, deep = 4, 2 * 4, {HIGH: 8, MEDIUM: 16}[precision]
    assert counts == {"mma_sync": warps * tiles * 64 // deep}  # K in two steps of 32
    requests = trace.requests()
    shared = [row for row, info in enumerate(trace.arrays) if info.name == "S"]
    loads = np.isin(requests.array, shared) & (requests.kind == 0)
    assert loads.any()
    assert (requests.wavefronts[loads] == requests.ideal_wavefronts[loads]).all()


def test_shapes_fit():
    for shape in MMA_SHAPES:
        assert mma_shared_bytes(shape) == make_mma(shape).shared <= 227 * 1024 // shape.blocks
    assert lane_rows(64) == (0, 1, 16, 17, 32, 33, 48, 49)
    assert lane_columns(32) == (0, 1, 2, 3, 16, 17, 18, 19)
    assert MMA_LARGE.threads == MMA_SMALL.threads == 128
