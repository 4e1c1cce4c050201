"""Arrays and pointers in kernels: strides, bounds, views, vectors, poison, addresses."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.core.errors import OutOfBoundsError, SimtError, UninitializedReadError, UnknownWordError
from minifuse.simt import cuda


def copy_2d(out, a):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[i, j] = a[i, j]


def copy_3d(out, a):
    i, j, k = cuda.grid(3)
    if i < a.shape[0] and j < a.shape[1] and k < a.shape[2]:
        out[i, j, k] = a[i, j, k]


LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "flipped": lambda a: a[::-1, ::-1],
    "offset": lambda a: a[1:, 2:],
    "strided": lambda a: a[::2, ::3],
    "expanded": lambda a: np.broadcast_to(a[:1], (5, a.shape[1])),
}


@pytest.mark.sampled(3, each="layout")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u2", "i4", "i8", "u8", "?", "c8"])
def test_strided_arrays_are_read_and_written_in_place(layout, dtype):
    a = LAYOUTS[layout](np.arange(35).reshape(5, 7).astype(dtype))
    whole = np.zeros((2 * a.shape[0], 3 * a.shape[1]), dtype)
    out = whole[::2, ::-3]
    trace = simt.trace(copy_2d, (2, 2), (5, 4), out, a)
    assert trace.is_complete
    assert np.array_equal(out, a)
    assert np.count_nonzero(whole) == np.count_nonzero(a)
    loads, stores = trace.events.kind == 0, trace.events.kind == 1
    for which, array in ((loads, a), (stores, out)):
        info = trace.arrays[trace.events.array[which][0]]
        assert info.strides == array.strides
        row, col = np.divmod(np.arange(a.size), a.shape[1])
        expected = info.base + row * array.strides[0] + col * array.strides[1]
        assert sorted(trace.events.address[which].tolist()) == sorted(expected.tolist())
        assert set(trace.events.nbytes.tolist()) == {a.itemsize}


def test_three_dim_arrays_are_copied():
    a = np.arange(2 * 3 * 5.0).reshape(5, 3, 2).T
    out = np.zeros((2, 3, 5))
    simt.run(copy_3d, 1, (2, 3, 5), out, a)
    assert np.array_equal(out, a)


def access(a, row, col):
    a[row, col] = 1


def read_one(a, i):
    cuda.const.array_like(a)[i]


@pytest.mark.parametrize("index", [(-1, 0), (0, -1), (3, 0), (0, 4), (1 << 40, 0), (np.uint64(3), 0)])
def test_out_of_bounds_and_negative_indices_are_errors(index):
    a = np.zeros((3, 4))
    with pytest.raises(OutOfBoundsError, match=r"global array 'a' of shape \(3, 4\): access to element") as info:
        simt.run(access, 1, 1, a, *index)
    assert (info.value.array, info.value.element, info.value.block, info.value.threads) == ("a", index, (0,), ((0,),))
    assert info.value.lines == ((__file__, access.__code__.co_firstlineno + 1),)
    assert not a.any()
    trace = simt.trace(access, 1, 1, a, *index)
    assert not trace.is_complete
    assert type(trace.findings[-1]) is OutOfBoundsError


@pytest.mark.parametrize("index", [(1.0, 0), (np.float32(1), 0), (True, 0), (0, np.True_), (None, 0)])
def test_non_integer_index_is_an_error(index):
    with pytest.raises(SimtError, match="use an integer") as info:
        simt.run(access, 1, 1, np.zeros((3, 4)), *index)
    assert not isinstance(info.value, OutOfBoundsError)


def too_many(a):
    a[0, 0, 0] = 1


def test_too_many_indices_are_an_error():
    with pytest.raises(OutOfBoundsError, match=r"the index .* has 3 positions"):
        simt.run(too_many, 1, 1, np.zeros((3, 4)))


def rows(out, a):
    i = cuda.threadIdx.x
    row = a[i]
    part = row[1:4]
    out[i, 0] = part[2]
    out[i, 1] = a[..., 2][i]
    out[i, 2] = len(part) + a.ndim + part.size + a.T.shape[0]
    out[i, 3] = a.reshape(-1)[i]


def test_views_keep_base_and_offset():
    a = np.arange(12.0).reshape(3, 4)
    out = np.zeros((3, 4))
    trace = simt.trace(rows, 1, 3, out, a)
    assert out.tolist() == [[a[i, 3], a[i, 2], 3 + 2 + 3 + 4, a.flat[i]] for i in range(3)]
    info = trace.arrays[1]
    loads = trace.events.address[trace.events.kind == 0] - info.base
    assert loads.tolist() == [8 * n for i in range(3) for n in (4 * i + 3, 4 * i + 2, i)]


def out_of_view(a):
    a[1:3][2] = 1


def out_of_row(a):
    a[..., -1]


def test_views_are_bounds_checked():
    with pytest.raises(OutOfBoundsError):
        simt.run(out_of_view, 1, 1, np.zeros(5))
    with pytest.raises(OutOfBoundsError):
        simt.run(out_of_row, 1, 1, np.zeros((3, 4)))


def fill(a, b):
    a[1:4] = 7
    b[:, 1] = a[0:3]


def test_slice_assignment_stores_each_element():
    a, b = np.zeros(5, np.int32), np.zeros((3, 2))
    trace = simt.trace(fill, 1, 1, a, b)
    assert a.tolist() == [0, 7, 7, 7, 0]
    assert b.tolist() == [[0, 0], [0, 7], [0, 7]]
    assert trace.events.kind.tolist() == [1] * 3 + [0, 1] * 3


def test_aliasing_arguments_keep_their_address_distance():
    def both(out, a):
        out[0] = a[0]

    whole = np.arange(100.0)
    trace = simt.trace(both, 1, 1, whole[3:], whole[10:20])
    out, a = trace.arrays
    assert a.base - out.base == 7 * 8
    assert (out.base - 24) % 256 == 0
    trace = simt.trace(both, 1, 1, np.zeros(100), np.zeros(3))
    assert all(info.base % 256 == 0 for info in trace.arrays)
    assert abs(trace.arrays[0].base - trace.arrays[1].base) >= 800


def uninitialised(out):
    tile = cuda.shared.array((2, 3), np.float32)
    t = cuda.threadIdx.x
    if t < 3:
        tile[0, t] = t
    cuda.syncthreads()
    out[t] = tile[t // 3, t % 3]


def uninitialised_local(out):
    mine = cuda.local.array(4, np.int32)
    mine[0] = 1
    out[cuda.threadIdx.x] = mine[cuda.threadIdx.x]


def test_read_before_write_is_reported():
    out = np.zeros(6, np.float32)
    trace = simt.trace(uninitialised, 1, 6, out)
    assert trace.is_complete
    (error,) = [hazard for hazard in trace.hazards() if isinstance(hazard, UninitializedReadError)]
    assert (error.array, error.element, error.threads, error.epoch) == ("tile", (1, 0), ((3,),), 1)
    assert "shared array 'tile' of shape (2, 3): element (1, 0) is read before it is written" in str(error)
    assert np.isnan(out[3:]).all()
    with pytest.raises(UninitializedReadError, match="local array 'mine'"):
        simt.run(uninitialised_local, 1, 2, np.zeros(2))


def shared_on_one_line(out):
    a, b = cuda.shared.array(2, np.float32), cuda.shared.array(2, np.float32)
    t = cuda.threadIdx.x
    a[t], b[t] = 1, 2
    cuda.syncthreads()
    out[t] = a[1 - t] + 10 * b[1 - t]


def dynamic(out):
    raw = cuda.shared.array(0, np.float32)
    ints = cuda.shared.array(0, np.int32)
    t = cuda.threadIdx.x
    first, second = raw[:4], ints[4:]
    first[t] = t + 0.5
    second[t] = t
    cuda.syncthreads()
    out[t] = first[3 - t] + second[3 - t]
    out[4] = len(raw)


def test_shared_arrays_on_one_line_are_distinct():
    out = np.zeros(2)
    trace = simt.trace(shared_on_one_line, 1, 2, out)
    assert out.tolist() == [21, 21]
    assert len({info.base for info in trace.arrays if info.space == "shared"}) == 2


def test_dynamic_shared_arrays_share_one_allocation():
    out = np.zeros(5)
    trace = simt.trace(dynamic, 2, 4, out, shared=32)
    assert out.tolist() == [6.5, 4.5, 2.5, 0.5, 8]
    raw, ints = (info for info in trace.arrays if info.space == "shared")
    assert raw.base == ints.base
    assert (raw.name, ints.name, raw.dtype, ints.dtype) == ("raw", "ints", "float32", "int32")
    with pytest.raises(OutOfBoundsError):
        simt.run(dynamic, 1, 4, out, shared=20)


def past_dynamic(out, first):
    cuda.shared.array(4, np.float64)
    raw = cuda.shared.array(0, np.float64)
    raw[2:][first + cuda.threadIdx.x] = 1


def test_too_little_dynamic_shared_memory_names_the_bytes():
    missing = (
        "the launch has 64 bytes of dynamic shared memory, and this element needs 72: kernel[grid, block, stream, nbytes]"
    )
    with pytest.raises(OutOfBoundsError, match=re.escape(missing)):
        simt.run(past_dynamic, 1, 8, np.zeros(1), 0, shared=64)
    with pytest.raises(OutOfBoundsError, match="the launch has 0 bytes of dynamic shared memory, and this element needs 8"):
        simt.run(past_dynamic, 1, 1, np.zeros(1), 0)
    with pytest.raises(OutOfBoundsError, match="needs 0 <= index < 6; guard the access"):
        simt.run(past_dynamic, 1, 1, np.zeros(1), -1, shared=64)


def shared_across_blocks(out):
    tile = cuda.shared.array(1, np.int64)
    if cuda.blockIdx.x == 0:
        tile[0] = 5
    out[cuda.blockIdx.x] = tile[0]


def test_shared_memory_is_per_block():
    with pytest.raises(UninitializedReadError) as info:
        simt.run(shared_across_blocks, 2, 1, np.zeros(2, int))
    assert info.value.block == (1,)


def make_tile(n):
    tile = cuda.shared.array(n, np.float32)
    tile[0] = 1


def odd_shape(out):
    make_tile(cuda.threadIdx.x + 1)


def unknown_type(out):
    cuda.shared.array(3, "three")


def test_shared_arrays_need_a_constant_shape_and_a_known_dtype():
    with pytest.raises(SimtError, match="the shape of a shared array must be a constant"):
        simt.run(odd_shape, 1, 2, np.zeros(1))
    with pytest.raises(UnknownWordError, match="'three'"):
        simt.run(unknown_type, 1, 1, np.zeros(1))


@simt.word
def load_four(array, i):
    return array.load(4 * i, 4)


@simt.word
def store_four(array, i, values):
    array.store(4 * i, values)


def copy_vectors(out, a):
    i = cuda.threadIdx.x
    store_four(out, i, load_four(a, i))


def test_vector_access_is_one_event_at_the_kernel_line():
    a, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    trace = simt.trace(copy_vectors, 1, 4, out, a)
    assert np.array_equal(out, a)
    assert trace.events.nbytes.tolist() == [16] * 8
    assert {row.function for row in trace.instructions} == {"copy_vectors"}
    assert {row.line for row in trace.instructions} == {copy_vectors.__code__.co_firstlineno + 2}
    assert trace.events.value[:2].tolist() == [0, 0]


@pytest.mark.parametrize(("start", "size", "words"), [(1, 9, "misaligned address"), (0, 3, "which is out of bounds")])
def test_misaligned_or_out_of_bounds_vectors_are_errors(start, size, words):
    a = np.zeros(16, np.float32)[start : start + size]
    with pytest.raises(OutOfBoundsError, match=words):
        simt.run(copy_vectors, 1, 1, np.zeros(16, np.float32), a)


@simt.word
def gather_pairs(array, places):
    return array.gather(np.array(places), 2)


@pytest.mark.parametrize("launch", [simt.run, simt.trace])
def test_gather_records_one_load_per_vector(launch):
    """Pointers with and without an offset. An invalid index among valid ones raises the error of a single load."""

    def gather(out, a, i, j):
        found = gather_pairs(a, (4, i, j))
        for k in range(6):
            out[k] = found[k // 2, k % 2]

    for low in (0, -2):
        out, a = np.zeros(6), np.arange(8.0)
        trace = launch(gather, 1, 1, out, simt.Pointer(a, low=low), 0, 2)
        assert out.tolist() == [4 - low, 5 - low, -low, 1 - low, 2 - low, 3 - low]
        assert trace is None or trace.events.nbytes[:3].tolist() == [16] * 3
        for j, words in ((1, "misaligned address"), (8, "which is out of bounds"), (-4, "which is out of bounds")):
            with pytest.raises(OutOfBoundsError, match=words):
                simt.run(gather, 1, 1, out, simt.Pointer(a, low=low), 0, j)


def test_vector_access_needs_contiguous_memory():
    with pytest.raises(SimtError, match="a vector access needs contiguous memory"):
        simt.run(copy_vectors, 1, 1, np.zeros(16, np.float32), np.zeros(32, np.float32)[::2])


def neighbours(out, p, n):
    i = cuda.threadIdx.x
    if i < n:
        out[i] = p[i - 1] + p[i + 1]
        p[i] = -1


def test_pointer_access_is_bounds_checked():
    memory = np.arange(6.0)
    out = np.zeros(4)
    trace = simt.trace(neighbours, 1, 4, out, simt.Pointer(memory, low=-1), 4)
    assert trace.is_complete
    assert memory.tolist() == [0, -1, -1, -1, -1, 5]
    assert trace.arrays[1].shape == (6,)
    with pytest.raises(OutOfBoundsError, match=r"pointer 'p': access to element 5.* needs -1 <= index < 5"):
        simt.run(neighbours, 1, 5, np.zeros(5), simt.Pointer(memory, low=-1), 5)


def test_pointer_from_an_address_reads_and_writes():
    memory = np.arange(8.0)
    pointer = simt.Pointer(memory[3:].ctypes.data, -1, 5, np.float64, owner=memory)
    out = np.zeros(4)
    simt.run(neighbours, 1, 1, out, pointer, 1)
    assert out[0] == memory[2] + memory[4]
    assert memory[3] == -1
    with pytest.raises(ValueError, match="needs high= and dtype="):
        simt.Pointer(1000, 3)
    with pytest.raises(ValueError, match="contiguous"):
        simt.Pointer(memory[::2])
    with pytest.raises(ValueError, match="elements for the indices"):
        simt.Pointer(memory, 0, 9)


def load_behind(out, p):
    out[0] = p.load(-2, 2)[1]


@simt.word
def pointer_at(table, k):
    return table.follow(k, np.float64)


def fill_behind(table, k):
    out = pointer_at(table, k)
    out[cuda.threadIdx.x] = table[0]


def pointer_table(*arrays):
    """Return a table of a number, followed by the addresses of arrays."""
    behind = {k: (f"out[{k - 1}]", simt.Pointer(x)) for k, x in enumerate(arrays, 1)}
    return simt.Table(np.array([7, *[x.ctypes.data for x in arrays]]), behind)


def test_pointer_table_is_followed_to_its_arrays():
    a, b, whole = np.zeros(2), np.zeros(3), np.zeros(2, np.int64)
    trace = simt.trace(fill_behind, 1, 3, pointer_table(a, b, whole), 2)
    assert trace.is_complete
    assert (a.tolist(), b.tolist()) == ([0, 0], [7, 7, 7])
    assert list(trace.outputs) == ["out[1]"]
    assert sorted(trace.events.nbytes.tolist()) == [8] * 9  # address, number and element of each thread
    with pytest.raises(OutOfBoundsError, match=r"'out\[0\]'.*access to element 2"):
        simt.run(fill_behind, 1, 3, pointer_table(a, b), 1)
    with pytest.raises(OutOfBoundsError, match=r"'table'.*access to element 9"):
        simt.run(fill_behind, 1, 3, pointer_table(a, b), 9)
    with pytest.raises(SimtError, match="element 0 is loaded as a pointer, but is no address"):
        simt.run(fill_behind, 1, 3, pointer_table(a, b), 0)
    with pytest.raises(SimtError, match=r"the address of 'out\[2\]', of int64.*expected the address of memory of float64"):
        simt.run(fill_behind, 1, 2, pointer_table(a, b, whole), 3)


def test_pointers_load_vectors():
    out = np.zeros(1)
    simt.run(load_behind, 1, 1, out, simt.Pointer(np.arange(4.0), low=-2))
    assert out[0] == 1


class Device:
    def __init__(self, data):
        self.data, self.written = data, np.zeros(data.shape, bool)


def test_device_memory_tracks_written_elements():
    def double(out, a):
        i = cuda.grid(1)
        out[i] = 2 * a[i]

    out, a = Device(np.zeros(4)), Device(np.ones(4))
    a.written[:3] = True
    simt.run(double, 1, 3, out, a)
    assert out.written.tolist() == [True] * 3 + [False]
    trace = simt.trace(double, 1, 4, out, a)
    assert trace.fresh == ()  # some elements of each were written before, so the launch need not write the others
    assert simt.trace(double, 1, 3, Device(np.zeros(4)), a).fresh == ("out",)
    assert [error.element for error in trace.findings] == [(3,)]
    assert trace.outputs["out"] is out.data


def test_object_and_read_only_arrays_are_errors():
    def touch(a):
        a[0] = 1

    with pytest.raises(SimtError, match="has dtype object"):
        simt.run(touch, 1, 1, np.zeros(3, object))
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    with pytest.raises(SimtError, match="read-only"):
        simt.run(touch, 1, 1, read_only)


def unknown_attribute(a):
    a.sort()


def test_unknown_array_attribute_is_an_error():
    with pytest.raises(UnknownWordError, match="attribute 'sort'"):
        simt.run(unknown_attribute, 1, 1, np.zeros(3))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_random_accesses_agree_with_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    a = np.arange(np.prod(shape)).reshape(shape)
    view = a[tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in shape)]
    index = tuple(data.draw(st.integers(-1, size)) for size in view.shape)

    def take(out, a):
        out[0] = a[index]

    out = np.zeros(1, int)
    if all(0 <= i < size for i, size in zip(index, view.shape, strict=True)):
        trace = simt.trace(take, 1, 1, out, view)
        assert out[0] == view[index]
        assert trace.events.address[0] - trace.arrays[1].base == sum(i * s for i, s in zip(index, view.strides, strict=True))
    else:
        with pytest.raises(OutOfBoundsError):
            simt.run(take, 1, 1, out, view)
