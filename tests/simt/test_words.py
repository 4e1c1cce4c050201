"""The functions of `cuda`: thread indices, shuffles and votes, atomics, bits."""

import math

import numpy as np
import pytest

from minifuse import simt
from minifuse.core.errors import SimtError, UnknownWordError
from minifuse.simt import cuda
from minifuse.simt.collectives import collective_results

FULL = 0xFFFFFFFF


def positions(out):
    x, y, z = cuda.grid(3)
    out[x, y, z, 0] = cuda.threadIdx.x + 10 * cuda.threadIdx.y + 100 * cuda.threadIdx.z
    out[x, y, z, 1] = cuda.blockIdx.x + 10 * cuda.blockIdx.y + 100 * cuda.blockIdx.z
    out[x, y, z, 2] = cuda.laneid
    out[x, y, z, 3] = cuda.lanemask_lt()
    sizes = cuda.gridsize(3)
    out[x, y, z, 4] = sizes[0] + 100 * sizes[1] + 10000 * sizes[2]
    out[x, y, z, 5] = cuda.grid(1) + 100 * cuda.grid(2)[1]
    out[x, y, z, 6] = cuda.blockDim.x * cuda.gridDim.y * cuda.warpsize + cuda.gridsize(1)


def test_thread_and_block_indices_are_those_of_cuda():
    out = np.full((4, 9, 10, 7), -1)
    simt.run(positions, (2, 3, 5), (2, 3, 2), out)
    for x, y, z in np.ndindex(4, 9, 10):
        t = (x % 2, y % 3, z % 2)
        lane = t[0] + 2 * t[1] + 6 * t[2]
        assert out[x, y, z].tolist() == [
            t[0] + 10 * t[1] + 100 * t[2],
            x // 2 + 10 * (y // 3) + 100 * (z // 2),
            lane,
            (1 << lane) - 1,
            4 + 900 + 100000,
            x + 100 * y,
            2 * 3 * 32 + 4,
        ]


def four_dims(out):
    out[0] = cuda.grid(4)


def test_grid_of_four_dims_is_an_error():
    with pytest.raises(SimtError, match="1, 2 or 3 dims"):
        simt.run(four_dims, 1, 1, np.zeros(1))


@pytest.mark.parametrize(
    ("word", "number", "source"),
    [
        ("shfl_sync", 5, lambda lane: 5),
        ("shfl_sync", 37, lambda lane: 5),
        ("shfl_up_sync", 3, lambda lane: lane - 3 if lane >= 3 else lane),
        ("shfl_down_sync", 3, lambda lane: lane + 3 if lane < 29 else lane),
        ("shfl_down_sync", 0, lambda lane: lane),
        ("shfl_xor_sync", 17, lambda lane: lane ^ 17),
    ],
)
def test_shuffles_read_the_source_lane(word, number, source):
    found = collective_results(word, {lane: (lane * 1.5, number) for lane in range(32)})
    assert found == {lane: source(lane) * 1.5 for lane in range(32)}


def test_votes_and_matches_are_those_of_cuda():
    operands = {lane: (lane % 3 == 0,) for lane in range(8)}
    assert set(collective_results("ballot_sync", operands).values()) == {0b01001001}
    for word, mixed, none, every in (
        ("any_sync", True, False, True),
        ("all_sync", False, False, True),
        ("eq_sync", False, True, True),
    ):
        assert collective_results(word, operands)[3] is mixed
        assert collective_results(word, {0: (0,), 5: (0.0,)})[5] is none
        assert collective_results(word, {0: (2,), 5: (True,)})[5] is every
    values = {1: (7,), 3: (8,), 4: (7,)}
    assert collective_results("match_any_sync", values) == {1: 0b10010, 3: 0b01000, 4: 0b10010}
    assert collective_results("match_all_sync", values)[1] == (0, False)
    assert collective_results("match_all_sync", {1: (7,), 4: (7,)})[1] == (0b10010, True)


def all_collectives(out):
    t = cuda.laneid
    out[t, 0] = cuda.ballot_sync(FULL, t < 3)
    out[t, 1] = cuda.any_sync(FULL, t == 9)
    out[t, 2] = cuda.all_sync(FULL, t == 9)
    out[t, 3] = cuda.eq_sync(FULL, t < 99)
    out[t, 4] = cuda.match_any_sync(FULL, t % 2)
    mask, same = cuda.match_all_sync(FULL, 4)
    out[t, 5] = mask + same
    out[t, 6] = cuda.shfl_sync(FULL, t, 3) + cuda.shfl_up_sync(FULL, t, 1) + cuda.shfl_xor_sync(FULL, t, 1)


def test_collectives_run_in_a_kernel():
    out = np.zeros((32, 7), int)
    simt.run(all_collectives, 1, 32, out)
    assert out[4].tolist() == [7, 1, 0, 1, 0x55555555, FULL + 1, 3 + 3 + 5]


def half_shuffle(a):
    cuda.shfl_sync(FULL, a[0], 0)


def test_shuffles_of_bool_and_float16_are_errors():
    for dtype, kind in ((bool, "bool"), (np.float16, "float16")):
        with pytest.raises(UnknownWordError, match=f"passes a {kind}"):
            simt.run(half_shuffle, 1, 32, np.zeros(1, dtype))


ATOMICS = [
    ("add", "i4", 5, (7,), 12),
    ("add", "i4", 2**31 - 1, (1,), -(2**31)),
    ("add", "u4", 2**32 - 1, (2,), 1),
    ("add", "u8", 2**64 - 1, (2,), 1),
    ("add", "f4", 1.0, (1e-9,), 1.0),
    ("sub", "u4", 0, (1,), 2**32 - 1),
    ("sub", "u8", 0, (1,), 2**64 - 1),
    ("sub", "f8", 1.5, (1,), 0.5),
    ("and_", "u4", 0b1100, (0b0110,), 0b0100),
    ("or_", "i4", 0b1100, (0b0110,), 0b1110),
    ("xor", "i8", 0b1100, (0b0110,), 0b1010),
    ("inc", "u4", 3, (4,), 4),
    ("inc", "u4", 4, (4,), 0),
    ("inc", "u8", 9, (4,), 0),
    ("dec", "u4", 3, (4,), 2),
    ("dec", "u4", 0, (4,), 4),
    ("dec", "u8", 9, (4,), 4),
    ("exch", "i4", 3, (4,), 4),
    ("exch", "u4", 3, (-1,), 2**32 - 1),
    ("max", "i4", 3, (4,), 4),
    ("max", "f4", 3, (2,), 3),
    ("max", "f4", math.nan, (2,), math.nan),
    ("max", "f4", 2, (math.nan,), 2),
    ("min", "f8", 3, (2,), 2),
    ("min", "u4", 3, (-1,), 3),
    ("nanmax", "f4", math.nan, (2,), 2),
    ("nanmax", "f4", 5, (math.nan,), 5),
    ("nanmin", "f8", math.nan, (2,), 2),
    ("cas", "i4", 3, (3, 9), 9),
    ("cas", "i4", 4, (3, 9), 4),
]


@pytest.mark.parametrize(("name", "dtype", "old", "operands", "new"), ATOMICS)
def test_atomics_return_the_old_value_and_wrap(name, dtype, old, operands, new):
    def kernel(a, out):
        operation = getattr_of(cuda.atomic)
        out[0] = operation(a, (1, 2), *operands)

    @simt.word
    def getattr_of(atomic):
        return getattr(atomic, name)

    a, out = np.zeros((3, 4), dtype), np.zeros(1, dtype)
    a[1, 2] = old
    trace = simt.trace(kernel, 1, 1, a, out)
    assert trace.findings == []
    assert np.array_equal(out, np.array([old], dtype), equal_nan=dtype[0] == "f")
    assert np.array_equal(a[1, 2], np.array(new, dtype), equal_nan=dtype[0] == "f")
    assert trace.events.kind.tolist() == [2, 1]
    assert np.count_nonzero(a != 0) <= 1


def swap_first(a):
    a[1] = cuda.atomic.compare_and_swap(a, 5, 6)


def test_compare_and_swap_changes_the_first_element():
    a = np.array([5, 0])
    simt.run(swap_first, 1, 1, a)
    assert a.tolist() == [6, 5]


@pytest.mark.parametrize(
    ("name", "dtype"), [("add", "i2"), ("exch", "f4"), ("inc", "i4"), ("and_", "f8"), ("cas", "f4"), ("max", "?")]
)
def test_atomics_on_unsupported_dtypes_are_errors(name, dtype):
    @simt.word
    def call(a):
        getattr(cuda.atomic, name)(a, 0, *[1] * (2 if name == "cas" else 1))

    def kernel(a):
        call(a)

    with pytest.raises(UnknownWordError, match=f"cuda.atomic.{name} on elements of"):
        simt.run(kernel, 1, 1, np.zeros(2, dtype))


def count_all(counts, a):
    cuda.atomic.add(counts, a[cuda.grid(1)], 1)


def test_atomic_histogram_equals_bincount():
    a = np.random.default_rng(0).integers(0, 5, 200)
    counts = np.zeros(5, np.int32)
    simt.run(count_all, 2, 100, counts, a)
    assert counts.tolist() == np.bincount(a).tolist()


def bits(out, a):
    i = cuda.threadIdx.x
    x = a[i]
    out[i, 0], out[i, 1], out[i, 2], out[i, 3] = cuda.popc(x), cuda.clz(x), cuda.ffs(x), cuda.brev(x)


def test_bit_functions_match_cuda():
    a = np.array([0, 1, 0b10100, 2**32 - 1, 2**40], dtype=np.int64)
    out = np.zeros((5, 4), int)
    simt.run(bits, 1, 5, out, a)
    assert out.tolist() == [
        [0, 32, 0, 0],
        [1, 31, 1, 2**31],
        [2, 27, 3, 0b00101 << 27],
        [32, 0, 1, 2**32 - 1],
        [1, 23, 41, 2**23],
    ]
    simt.run(bits, 1, 1, out, np.array([-1], np.int32))
    assert out[0].tolist() == [32, 0, 1, 2**32 - 1]


def others(out):
    cuda.nanosleep(100)
    cuda.threadfence_system()
    out[0] = cuda.selp(out[0] < 1, 3, 4)
    out[1] = cuda.cbrt(np.float32(27))
    out[2] = cuda.fma(np.float32(3), np.float32(4), np.float32(5))


def test_nanosleep_fence_selp_cbrt_and_fma_run():
    out = np.zeros(3)
    simt.run(others, 1, 1, out)
    assert out.tolist() == [3, 3, 17]


def spell_wrong(a):
    if a.size == 0:
        cuda.syncthread()


def spell_wrong_deeper(a):
    cuda.atomic.mul(a, 0, 2)


def half(a):
    cuda.fp16.hplus(a[0], a[0])


@pytest.mark.parametrize(
    ("kernel", "name", "step"),
    [(spell_wrong, "cuda.syncthread", 2), (spell_wrong_deeper, "cuda.atomic.mul", 1), (half, "cuda.fp16.hplus", 1)],
)
@pytest.mark.parametrize("launch", [simt.run, simt.trace])
def test_unknown_name_raises_with_its_line(kernel, name, step, launch):
    line = kernel.__code__.co_firstlineno + step
    with pytest.raises(UnknownWordError, match=f"{name} at test_words.py:{line} is not supported") as info:
        launch(kernel, 1, 1, np.zeros(1))
    assert info.value.lines == ((__file__, line),)
