"""custom_kernels.indexed: loads, stores and atomic adds at computed indices, on every backend, and errors."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.parallel.compiler import complete_source
from minifuse.core.errors import BackendError, DTypeError, FuseError, GradientError, IndexingError, OverlapError, ShapeError
from minifuse.runtime.kernel_cache import cache
from tests.examples import share

NUMBERS = [mf.int32, mf.int64, mf.float32, mf.float64]


@mf.elementwise(raw=("bins",))
def count(value, bins):
    mf.atomic_add(bins, value, 1)


@mf.elementwise(raw="x")
def shifted(x, by):
    n = x.shape[0]
    i = mf.index() - by
    return x[mf.minimum(mf.maximum(i, 0), n - 1)]


@mf.elementwise(raw=("x", "y"))
def transpose(x, y):
    i, j = mf.index(0), mf.index(1)
    y[j, i] = x[i, j]


# What is computed


def test_a_histogram(backend):
    value = np.random.default_rng(0).integers(0, 7, (13, 5))
    bins = mf.zeros(7, dtype=mf.int64)
    assert count(mf.tensor(value), bins) is None
    assert np.array_equal(bins.numpy(), np.bincount(value.ravel(), minlength=7))
    count(mf.tensor(value), bins)
    assert np.array_equal(bins.numpy(), 2 * np.bincount(value.ravel(), minlength=7))


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_nothing_that_is_added_is_lost(backend, dtype):
    @mf.elementwise(raw="total")
    def add(x, k, total):
        mf.atomic_add(total, k, x)
        mf.atomic_add(total, k, x)  # twice is twice
        mf.atomic_add(total, 2, 1)

    x, k = np.arange(1, 60), np.arange(59) % 2
    total = mf.full((3,), 5, dtype=dtype)
    add(mf.tensor(x, dtype=dtype), mf.tensor(k, dtype=mf.int32), total)
    assert total.tolist() == [5 + 2 * x[k == 0].sum(), 5 + 2 * x[k == 1].sum(), 64]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_an_addition_is_atomic_in_machine_code(dtype):
    add = mf.elementwise(lambda k, t: mf.atomic_add(t, k, 1), raw="t")
    text = add.source(mf.tensor([0, 1]), mf.zeros(2, dtype=dtype), backend="parallel")
    namespace = {}
    exec(compile(complete_source(text), "kernel.py", "exec"), namespace)
    found = namespace["kernel"].inspect_llvm()
    assert ("cmpxchg ptr" if dtype.is_float else "atomicrmw add ptr") in found  # floats: tried until nobody came between


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_atomic_adds_of_threads_are_not_lost(dtype):
    n = 2_000_000
    total = mf.zeros(2, dtype=dtype)
    source = mf.elementwise(lambda k, t: mf.atomic_add(t, k, 2), raw="t")
    with mf.use_backend("parallel"):
        source(mf.tensor(np.arange(n) % 2), total)
    assert total.tolist() == [n, n]


def test_a_gather_and_its_neighbours(backend):
    x = mf.tensor([1.0, 10.0, 100.0, 1000.0])
    assert shifted(x, 1, shape=4).tolist() == [1.0, 1.0, 10.0, 100.0]
    assert shifted(x, -2, shape=(4,)).tolist() == [100.0, 1000.0, 1000.0, 1000.0]
    assert shifted(x, mf.tensor([[0], [3]]), shape=(2, 4)).tolist() == [[1.0, 10.0, 100.0, 1000.0], [1.0] * 4]
    assert shifted(x, mf.tensor([2, 0])).tolist() == [1.0, 10.0]


@pytest.mark.parametrize("look", [lambda x: x, lambda x: x.T, lambda x: x[::-2, 1:], lambda x: x[:, :1].expand(6, 4)])
def test_raw_arguments_have_any_layout(backend, look):
    x = look(mf.tensor(np.arange(30.0).reshape(6, 5), dtype=mf.float32))
    y = mf.zeros(*reversed(x.shape))
    assert transpose(x, y, shape=x.shape) is None
    assert np.array_equal(y.numpy(), x.numpy().T)
    z = mf.zeros(x.shape[1] * 2, x.shape[0])[::2]  # a target in steps
    transpose(x, z, shape=x.shape)
    assert np.array_equal(z.numpy(), x.numpy().T)


@share(0.6)
@given(data=st.data())
def test_any_gather_is_numpys(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    space = tuple(data.draw(st.lists(st.integers(0, 4), max_size=2)))
    x = np.random.default_rng(0).standard_normal(shape)
    x = x.transpose(data.draw(st.permutations(range(len(shape)))))
    x = x[tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2]))) for _ in shape)]
    index = [np.random.default_rng(d).integers(0, n, space) for d, n in enumerate(x.shape)]
    take = mf.elementwise(lambda x, *i: x[i], raw="x")
    for name in ("python", "parallel"):
        found = take(*[mf.tensor(a).to(name) for a in (x, *index)])
        assert np.array_equal(found.numpy(), x[tuple(index)])


def test_results_and_effects_of_several_types(backend):
    @mf.elementwise(raw=("flags", "seen"))
    def f(x, flags, seen):
        i = mf.index()
        flags[i] = x > 2
        seen[i] = x  # an integer in a float
        return x * 2, flags[i], x.to(mf.float64) / 2, 7

    x = mf.tensor([1, 2, 3, 4], dtype=mf.int32)
    flags, seen = mf.full((4,), True, dtype=mf.bool_), mf.zeros(4)
    double, flag, half, seven = f(x, flags, seen)
    assert (double.dtype, flag.dtype, half.dtype, seven.dtype) == (mf.int32, mf.bool_, mf.float64, mf.int64)
    assert double.tolist() == [2, 4, 6, 8]
    assert flag.tolist() == flags.tolist() == [False, False, True, True]
    assert half.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert seen.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert seven.tolist() == [7] * 4


def test_each_element_sees_its_own_stores_in_order(backend):
    @mf.elementwise(raw="x")
    def f(x):
        i = mf.index()
        before = x[i]
        x[i] = before * 2
        between = x[i]
        x[i] = between + before
        mf.atomic_add(x, i, 1)
        return before, between, x[i], before

    x = mf.tensor([1.0, 2.0, 3.0])
    first, second, third, again = f(x, shape=3)
    assert first.tolist() == again.tolist() == [1.0, 2.0, 3.0]
    assert second.tolist() == [2.0, 4.0, 6.0]
    assert third.tolist() == x.tolist() == [4.0, 7.0, 10.0]


def test_a_load_before_a_store_reads_the_old_value(backend):
    @mf.elementwise(raw=("x", "total"))
    def exchange(y, x, total):
        i = mf.index()
        old = x[i]
        x[i] = y
        total[0] = y * 10
        return old, total[0]

    x, total = mf.tensor([1.0, 2.0, 3.0]), mf.zeros(1)
    old, _ = exchange(mf.tensor([4.0, 5.0, 6.0]), x, total)
    assert old.tolist() == [1.0, 2.0, 3.0]
    assert x.tolist() == [4.0, 5.0, 6.0]
    _, last = exchange(mf.tensor([7.0]), x, total)  # of one point: others may come between
    assert last.item() == total.item() == 70.0


def test_python_integers_index_from_both_ends(backend):
    f = mf.elementwise(lambda y, x: y + x[-1, 0] + x[1, -2] + x.shape[1] + x.ndim + x.size + len(x), raw="x")
    x = mf.tensor(np.arange(12.0).reshape(3, 4))
    assert f(mf.zeros(2), x).tolist() == [8 + 6 + 4 + 2 + 12 + 3] * 2


def test_numbers_of_a_call_are_indices_and_values(backend):
    @mf.elementwise(raw="x")
    def put(x, i, value, flag):
        x[i] = mf.where(flag, value, 0)

    x = mf.zeros(4)
    put(x, 1, 2.5, True, shape=())
    put(x, np.int64(3), 4, True, shape=1)
    put(x, 2, 4, False, shape=1)
    assert x.tolist() == [0.0, 2.5, 0.0, 4.0]


def test_a_scalar_and_an_empty_tensor_are_raw_arguments_too(backend):
    total = mf.elementwise(lambda x, t: mf.atomic_add(t, (), x), raw="t")
    t = mf.tensor(1.0)
    total(mf.tensor([[1.0, 2.0], [3.0, 4.0]]), t)
    assert t.item() == 11.0
    total(mf.zeros(0, 3), t)
    assert t.item() == 11.0
    count(mf.zeros(0, dtype=mf.int64), mf.zeros(0, dtype=mf.int64))
    assert shifted(mf.ones(3), 1, shape=(2, 0)).shape == (2, 0)


def test_an_overlapping_argument_is_read_before_the_store(backend):
    @mf.elementwise(raw="x")
    def spread(y, x):
        i = mf.index()
        x[x.shape[0] - 1 - i] = y

    memory = mf.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    spread(memory[:4], memory[1:])
    assert memory.tolist() == [1.0, 4.0, 3.0, 2.0, 1.0]
    spread(memory[::-1], memory)
    assert memory.tolist() == [1.0, 4.0, 3.0, 2.0, 1.0]


def test_one_such_kernel_calls_another(backend):
    @mf.elementwise(raw="bins")
    def both(a, b, bins):
        count(a, bins)
        count(b, bins)

    bins = mf.zeros(3, dtype=mf.int32)
    both(mf.tensor([0, 2, 2]), 1, bins)
    assert bins.tolist() == [1, 3, 2]


def test_values_of_the_closure_are_guarded():
    weight = 1
    add = mf.elementwise(lambda k, t: mf.atomic_add(t, k, weight), raw="t")
    t, k = mf.zeros(1), mf.tensor([0, 0])
    add(k, t)
    weight = 0.5
    add(k, t)
    assert t.item() == 3.0


# Texts


def test_comments_in_the_text_explain_its_names():
    bins = mf.zeros(7, dtype=mf.int64)
    assert count.source(mf.tensor([1, 2]), bins) == (
        "# count: in0 is value, raw0 is bins\n"
        "def kernel(start, stop, args):\n"
        "    in0 = pointer_i64(args[0])\n"
        "    raw0 = pointer_i64(args[1])\n"
        "    for i0 in range(start, stop):\n"
        "        atomic_add(raw0, in0[i0], i64(1))\n"
    )
    assert count.source(mf.tensor([1, 2]), bins, backend="cuda") == (
        "# count: in0 is value, raw0 is bins\n"
        "def kernel(in0, raw0, n0):\n"
        "    i0 = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x\n"
        "    if i0 < n0:\n"
        "        atomic_add(raw0, in0[i0], i64(1))\n"
    )
    assert bins.tolist() == [0] * 7  # nothing was run
    text = shifted.source(mf.ones(4), 1, shape=4)
    assert text.startswith("# shifted: raw0 is x, p0 is by\n")
    assert "out0[i0] = raw0[minimum(maximum(sub((base0 + i0), p0), i64(0)), p1)]" in text


def test_another_size_compiles_nothing():
    count(mf.tensor([1, 2, 3]), mf.zeros(7, dtype=mf.int64))
    shifted(mf.ones(40), 3, shape=30)
    transpose(mf.ones(5, 6), mf.zeros(6, 5), shape=(5, 6))
    before = cache.stats()
    count(mf.tensor([1, 2, 3, 4, 5]), mf.zeros(9, dtype=mf.int64))
    shifted(mf.ones(50), 6, shape=20)
    transpose(mf.ones(9, 13), mf.zeros(13, 9), shape=(9, 13))
    assert cache.stats().compiled == before.compiled


def test_threads_share_a_kernel():
    bins = mf.zeros(3, dtype=mf.int64)
    value = mf.tensor([0, 1, 1, 2, 2, 2])
    threads = [threading.Thread(target=count, args=(value, bins)) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert bins.tolist() == [16, 32, 48]


# What is refused


def test_an_index_outside_is_an_error_on_the_python_backend():
    with mf.use_backend("python"):
        bins = mf.zeros(2, 3, dtype=mf.int64)
        put = mf.elementwise(lambda i, j, b: mf.atomic_add(b, (i, j), 1), raw="b")
        for i, j, words in ((0, 3, "index 3 along dim 1"), (-1, 0, "index -1 along dim 0"), (2, 0, "index 2 along dim 0")):
            with pytest.raises(IndexingError, match=rf"{words} of a raw argument of shape \(2, 3\): it must be at least 0"):
                put(mf.tensor([0, i]), mf.tensor([0, j]), bins)
        assert bins.numpy().sum() == 0


def test_indices_that_are_no_integers_are_refused():
    x = mf.ones(2, 3)
    for function, words in (
        (lambda i, x: x[i], "a raw argument: expected one integer index per dim, got 1 for shape (2, 3)"),
        (lambda i, x: x[i * 0.5, 0], "an index of float64: expected integers; convert it with .to(mf.int64)"),
        (lambda i, x: x[i > 0, 0], "an index of bool: expected integers"),
        (lambda i, x: x[0:1, i], "an index slice(0, 1, None): expected one integer per dim"),
        (lambda i, x: x[True, i], "an index True: expected one integer per dim"),
        (lambda i, x: x[2, i], "index 2 along dim 0: the raw argument has shape (2, 3)"),
        (lambda i, x: x[-3, i], "index -3 along dim 0"),
    ):
        with pytest.raises(IndexingError) as caught:
            mf.elementwise(function, raw="x")(mf.tensor([0, 1]), x)
        assert f"{__file__}:{function.__code__.co_firstlineno}: {words}" in str(caught.value)


def test_values_that_do_not_fit_are_refused():
    i, x = mf.tensor([0, 1]), mf.zeros(2, dtype=mf.int32)
    for value in (1.5, mf.ones(2)):
        with pytest.raises(DTypeError, match=r"a store of float.* to a raw argument of int32: convert it first"):
            mf.elementwise(lambda i, v, x: mf.atomic_add(x, i, v), raw="x")(i, value, x)
    with pytest.raises(DTypeError, match="a store of int64 to a raw argument of bool"):
        mf.elementwise(lambda i, x: x.__setitem__(i, i), raw="x")(i, x > 0)
    with pytest.raises(DTypeError, match="atomic_add: got an array of bool; use int32"):
        mf.elementwise(lambda i, x: mf.atomic_add(x, i, True), raw="x")(i, x > 0)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda i, x: x + i, "an operator on a raw argument: index it, as in"),
        (lambda i, x: mf.exp(x), "expected a tensor or a real number, got IndexedOperand"),
        (lambda i, x: x.sum(), ".sum of a raw argument: expected an index"),
        (lambda i, x: i[0], 'an index: the argument is a single element; name the argument in raw=("...",)'),
        (lambda i, x: mf.atomic_add(i, 0, 1), "atomic_add: got ScalarTracer, expected a raw argument"),
        (lambda i, x: None, "returned None and modified nothing"),
        (lambda i, x: x, "returned IndexedOperand, expected an element"),
        (lambda i, x: x[i] if i > 0 else 0, "a branch on the value of an element"),
    ],
)
def test_raw_arguments_reject_whole_array_operations(function, words):
    with pytest.raises((FuseError, DTypeError)) as caught:
        mf.elementwise(function, raw="x")(mf.tensor([0, 1]), mf.ones(2))
    assert words in str(caught.value)


def test_calls_that_cannot_be_are_refused():
    bins = mf.zeros(3, dtype=mf.int64)
    with pytest.raises(FuseError, match="raw= names 'nothing', which is not a parameter of count"):
        mf.elementwise(count.function, raw="nothing")
    with pytest.raises(FuseError, match="has a parameter 'shape'"):
        mf.elementwise(lambda x, shape: x[0], raw="x")
    with pytest.raises(FuseError, match="the raw argument bins is int, expected a tensor"):
        count(mf.tensor([1]), 3)
    with pytest.raises(ShapeError, match=r"transpose: all arrays are raw arguments, .*pass shape="):
        transpose(bins, bins)
    with pytest.raises(ShapeError, match=r"count: arguments of shapes \(3,\) do not broadcast to shape=\(4,\)"):
        count(mf.tensor([1, 1, 1]), bins, shape=4)
    with pytest.raises(BackendError, match=r'two backends, parallel and python; move one with x.to\("parallel"\)'):
        count(mf.tensor([1]).to("parallel"), bins.to("python"))
    with pytest.raises(FuseError, match="atomic_add: got Tensor, expected a raw argument"):
        mf.atomic_add(bins, 0, 1)


def test_memory_that_must_not_change_is_refused():
    frozen = np.zeros(3, np.int64)
    frozen.flags.writeable = False
    with pytest.raises(OverlapError, match="the memory of the raw argument bins is read-only; pass a clone"):
        count(mf.tensor([1]), mf.from_numpy(frozen))
    with pytest.raises(OverlapError, match="several elements share one memory location"):
        count(mf.tensor([1]), mf.zeros(1, dtype=mf.int64).expand(3))
    assert shifted(mf.from_numpy(np.zeros(3, "f4")).expand(3), 1, shape=2).shape == (2,)  # reading is no change


def test_no_gradient_flows():
    x = mf.ones(3, requires_grad=True)
    for call in (lambda: shifted(x, 1, shape=3), lambda: count(mf.tensor([1]), x), lambda: transpose(x, x, shape=(1, 1))):
        with pytest.raises(GradientError, match=r"a kernel with raw arguments has no gradient; pass \w+.detach\(\)"):
            call()
    assert shifted(x.detach(), 1, shape=3).tolist() == [1.0] * 3
    with mf.no_grad():
        assert not shifted(x, 1, shape=3).requires_grad


def test_backward_knows_that_memory_was_changed():
    x = mf.ones(3, requires_grad=True)
    kept = mf.ones(3)
    y = (x * kept).sum()
    mf.elementwise(lambda i, x: x.__setitem__(i, 5), raw="x")(mf.tensor([1]), kept)
    with pytest.raises(GradientError, match="modified in place"):
        y.backward()


def test_a_captured_function_does_not_hold_one():
    bins = mf.zeros(3, dtype=mf.int64)
    words = "count inside a traced function: .* cannot be fused, .*; call it before or after"
    for capture in (mf.fuse, lambda f: lambda x: mf.source(f, x)):
        with pytest.raises(FuseError, match=words) as caught:
            capture(lambda x: (count(x, bins), x + 1)[1])(mf.tensor([1]))
        assert str(caught.value).startswith(__file__)
    assert bins.tolist() == [0, 0, 0]
