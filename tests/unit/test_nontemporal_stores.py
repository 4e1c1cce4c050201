"""backends.parallel.nontemporal_stores: a kernel stores the same numbers past the caches."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.parallel import backend as backend_module
from minifuse.backends.parallel import nontemporal_stores
from minifuse.backends.parallel.compiler import compile_kernel_text
from minifuse.backends.registry import get_backend
from minifuse.core import operators as op
from minifuse.core.dtypes import bool_, float32
from minifuse.core.layout import Layout, row_major
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest, Op, ReadOutput, reduce_expr
from tests.steps import load

backend = get_backend("parallel")
KINDS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "bool_": np.uint8}
A, B = Load(0, float32), Load(1, float32)
SHIFTED = Op(op.sub, (A, reduce_expr(op.maximum, A)), float32)


def plus_one(word):
    """The address of a kernel for out0[i] = in0[i] + 1."""
    return compile_kernel_text(f"""
def kernel(start, stop, args):
    out0 = pointer_{word}(args[0])
    in0 = pointer_{word}(args[1])
    for i0 in range(start, stop):
        out0[i0] = in0[i0] + 1
""")


@given(
    word=st.sampled_from(list(KINDS)),
    start=st.integers(0, 70),
    size=st.integers(0, 3000),
    offset=st.integers(0, 70),
    points=st.sampled_from([1, 2, 64, 256]),
)
def test_the_elements_of_a_range_are_stored_and_no_others(word, start, size, offset, points):
    kind = KINDS[word]
    x, out = np.arange(4000).astype(kind), np.full(4000, 77, kind)
    address = out.ctypes.data + offset * out.itemsize
    args = [plus_one(word), 2, 1, points, out.itemsize, address, x.ctypes.data]
    stream = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)(nontemporal_stores.stream_kernel())
    stream(start, start + size, np.array(args, np.int64).tobytes())
    expected = np.full(4000, 77, kind)
    expected[offset + start : offset + start + size] = (x + kind(1))[start : start + size]
    np.testing.assert_array_equal(out, expected)


def run(kernel, shape, dims, arrays, dtypes, limit, monkeypatch):
    """The outputs of a kernel over dense arrays, and whether they were streamed."""
    with monkeypatch.context() as patch:
        patch.setattr(nontemporal_stores, "MIN_STREAM_BYTES", limit)
        patch.setattr(backend_module, "count_chunks", lambda count, work: min(count, 5))
        rows = [1 if d in dims else size for d, size in enumerate(shape)]
        outs = [np.zeros(shape if k < len(kernel.pointwise_outputs) else rows, dtype) for k, dtype in enumerate(dtypes)]
        layouts = [row_major(x.shape).expand(*shape) for x in (*outs, *arrays)]
        launch = load(backend, kernel, shape, dims, layouts[: len(outs)], layouts[len(outs) :])
        launch(*[x.ctypes.data for x in (*outs, *arrays)])
        return outs, bool(launch.header)


@pytest.mark.parametrize(
    ("kernel", "shape", "dims", "dtypes"),
    [
        (Kernel((Op(op.add, (A, B), float32),), ()), (100_003,), (), ["f4"]),
        (Kernel((Op(op.lt, (A, B), bool_), Op(op.mul, (A, B), float32)), ()), (7001,), (), ["?", "f4"]),
        (Kernel((Op(op.add, (A, B), float32),), ()), (301, 1, 77), (), ["f4"]),
        (Kernel((SHIFTED,), (reduce_expr(op.maximum, A),)), (203, 65), (1,), ["f4", "f4"]),  # the row is stored as ever
    ],
)
def test_every_result_is_that_of_ordinary_stores(kernel, shape, dims, dtypes, monkeypatch):
    rng = np.random.default_rng(1)
    count = len(kernel.find_all(Load))
    arrays = [rng.standard_normal(shape).astype(np.float32) for _ in range(count)]
    if shape[1:2] == (1,):
        arrays[1] = arrays[1][:, :, :1].copy()  # broadcast, so that the loops do not merge
    ordinary, is_streamed = run(kernel, shape, dims, arrays, dtypes, 1 << 60, monkeypatch)
    assert not is_streamed
    streamed, is_streamed = run(kernel, shape, dims, arrays, dtypes, 0, monkeypatch)
    assert is_streamed
    for a, b in zip(ordinary, streamed, strict=True):
        assert np.any(a)
        np.testing.assert_array_equal(a, b)


def header(kernel, shape, layouts, dims=()):
    """What `stream_kernel` would be told."""
    return nontemporal_stores.stream_arguments(kernel, LoopNest(shape, dims, layouts), address=5, argument_count=9)


def test_large_outputs_are_stored_past_the_caches():
    n = nontemporal_stores.MIN_STREAM_BYTES // 4
    add = Kernel((Op(op.add, (A, B), float32),), ())
    dense = row_major((n,))
    assert header(add, (n,), [dense] * 3) == [5, 9, 1, nontemporal_stores.BUFFER_BYTES // 4, 4]
    assert header(add, (n - 1,), [row_major((n - 1,))] * 3) == []  # a cache may keep it
    spread = Layout((n,), (2,), 0)
    assert header(add, (n,), [spread, dense, dense]) == []
    wide = row_major((4, n // 4))
    assert header(add, (4, n // 4), [wide, wide, Layout((4, n // 4), (0, 1), 0)]) == []  # one row fills the buffer
    rows = n // 12 + 1
    narrow = row_major((rows, 12))
    assert header(add, (rows, 12), [narrow, narrow, Layout((rows, 12), (1, 0), 0)]) == [5, 9, 1, 32, 48]
    in_place = Kernel((Op(op.add, (ReadOutput(0, float32), A), float32),), ())
    assert header(in_place, (n,), [dense] * 2) == []
    folded = Kernel((), (reduce_expr(op.add, A),))
    assert header(folded, (n, 2), [Layout((n, 2), (1, 0), 0), row_major((n, 2))], dims=(1,)) == []


def test_a_size_that_is_streamed_compiles_nothing(monkeypatch):
    add = Kernel((Op(op.add, (A, B), float32),), ())
    arrays = [np.ones(5000, np.float32)] * 2
    run(add, (5000,), (), arrays, ["f4"], 1 << 60, monkeypatch)
    before = mf.cache.stats()[:3]  # of this process: others write into the same folder
    assert run(add, (5000,), (), arrays, ["f4"], 0, monkeypatch)[1]
    assert mf.cache.stats()[:3] == before


def test_a_large_tensor_is_streamed_and_right():
    n = nontemporal_stores.MIN_STREAM_BYTES // 4 + 3
    x = mf.arange(n, dtype=mf.float32, backend="parallel") % 1000
    y = (x * 2 + 1).numpy()
    np.testing.assert_array_equal(y, np.arange(n, dtype=np.float32) % 1000 * 2 + 1)
