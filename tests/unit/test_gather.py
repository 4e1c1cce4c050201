"""ir.gather: values, layouts, gradients and fusion of gathered elements, and indices out of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.launcher import python_kernel
from minifuse.backends.parallel import segment_sum
from minifuse.compiler.fusibility import GATHER_NEEDS_MEMORY, GATHER_NOT_IN_MATMUL, SCATTER_ADD_ENDS_KERNEL
from minifuse.compiler.plan import Plan
from minifuse.core.errors import DTypeError, FuseError, IndexingError, OverlapError, ShapeError
from minifuse.core.operators import add
from minifuse.inspect.dry_run import launches_of
from minifuse.ir.gather import Gather, Scatter
from minifuse.ir.index_checks import MIN_CHECKED_IN_KERNEL
from minifuse.ir.kernel_ir import LoopNest
from minifuse.testing import gradcheck
from tests.examples import share

RANDOM = np.random.default_rng(0)
# (shape, shape of the index): dims all different, past a warp and a block, of size 1, without elements, and no dims
SHAPES = [((5, 7), (2, 3)), ((9,), (4,)), ((4, 5, 3), (6,)), ((2, 70), (35,)), ((2, 3, 4, 5), (2, 2))]
SHAPES += [((5, 1), (9,)), ((5, 7), ()), ((5, 7), (0,)), ((3, 0), (4,))]


def numbers(*shape, dtype=np.float64):
    return RANDOM.standard_normal(shape).astype(dtype)


def sums(g, index, dim, size):
    """What arrives at each position, with NumPy."""
    parts = np.moveaxis(g, range(dim, dim + index.ndim), range(index.ndim))
    total = np.zeros((size, *parts.shape[index.ndim :]))
    np.add.at(total, index, parts)
    return np.moveaxis(total, 0, dim)


def take(x, index, dim=0):
    return x.apply(Gather(dim), x, index)


def put(x, index, size, dim=0):
    return x.apply(Scatter(add, dim, size), x, index)


def launched(function, *inputs):
    """The formulas of the kernels that a function becomes."""
    return [kernel.formula for kernel in mf.fuse(function).explain(*inputs).forward.kernels]


def reasons(function, *inputs):
    return [refusal.reason for refusal in mf.fuse(function).explain(*inputs).refusals]


# Values and gradients


@pytest.mark.sampled(3, each="shapes")
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_values_and_gradients_along_each_dim(backend, shapes):
    shape, of_index = shapes
    for dim, size in enumerate(shape):
        if size == 0:
            continue
        a, index = numbers(*shape), RANDOM.integers(0, size, of_index)
        for dtype in (mf.int64, mf.int32)[: 1 + (len(of_index) < 2)]:
            x = mf.tensor(a, requires_grad=True)
            y = take(x, mf.tensor(index, dtype=dtype), dim)
            assert np.array_equal(y.numpy(), np.take(a, index, dim))
            g = numbers(*y.shape)
            (y * mf.tensor(g)).sum().backward()
            assert np.allclose(x.grad.numpy(), sums(g, index, dim, size), atol=1e-12)


def test_layouts(backend):
    """What is picked from, the index, and the gradient that arrives, each permuted, sliced, flipped and repeated."""
    a, k, g = numbers(7, 5, 6), RANDOM.integers(0, 5, (4, 3)), numbers(7, 4, 3, 6)
    whole = {"x": mf.tensor(a), "index": mf.tensor(k), "g": mf.tensor(g)}
    wanted, back = np.take(a, k, 1), sums(g, k, 1, 5)
    for name in whole:
        x = whole[name]
        turned = x.permute(*reversed(range(x.ndim))).clone().permute(*reversed(range(x.ndim)))
        wide = mf.tensor(np.repeat(x.numpy(), 2, axis=-1))[..., ::2]
        flipped = mf.tensor(x.numpy()[::-1].copy()).flip(0)
        for seen in (turned, wide, flipped):
            given = {**whole, name: seen}
            assert np.array_equal(take(given["x"], given["index"], 1).numpy(), wanted)
            assert np.allclose(put(given["g"], given["index"], 5, 1).numpy(), back, atol=1e-12)
    row, repeated = mf.tensor(a[0, 0]), whole["x"][0, 0].expand(5, 6)
    assert np.array_equal(take(repeated, whole["index"]).numpy(), np.broadcast_to(a[0, 0], (4, 3, 6)))
    once = mf.tensor([3]).expand(9)
    assert np.array_equal(take(row, once).numpy(), np.repeat(a[0, 0, 3], 9))
    assert np.allclose(put(row[:1].expand(9), once, 6).numpy(), [0, 0, 0, 9 * a[0, 0, 0], 0, 0])


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", [mf.float32, mf.float64, mf.int32, mf.int64, mf.bool_], ids=str)
def test_element_types(backend, dtype):
    a = RANDOM.integers(0, 2, (5, 3))
    x, index = mf.tensor(a, dtype=dtype), np.array([4, 0, 4])
    y = x.index_select(0, mf.tensor(index))
    assert y.dtype is dtype
    assert np.array_equal(y.numpy(), a[index].astype(dtype.numpy))


def test_gradients_of_gradients(backend):
    index = mf.tensor([2, 0, 2, 3, 2])
    x = mf.tensor(numbers(4, 2), requires_grad=True)
    assert gradcheck(lambda x: (take(x, index) ** 3).sum(), x)
    assert gradcheck(lambda x: (put(x[:, 0].reshape(-1)[:4], index[:4], 6) ** 3).sum(), x)

    def slope(x):
        return (mf.grad(lambda x: (take(x, index) ** 3).sum())(x) ** 2).sum()

    a, times = x.numpy(), np.bincount(index.numpy(), minlength=4)[:, None]
    assert np.allclose(mf.grad(slope)(x).numpy(), 2 * (times * 3 * a**2) * (times * 6 * a))


@pytest.mark.backends("parallel", "cuda")
def test_sums_are_the_same_in_every_run(backend):
    """Also on several threads, and of numbers whose order of addition shows."""
    g, index = mf.tensor(numbers(100, 70, dtype=np.float32) * 1e4), mf.tensor(RANDOM.integers(0, 4, 100))
    first = put(g, index, 4).numpy().copy()
    assert np.allclose(first, sums(g.numpy().astype(np.float64), index.numpy(), 0, 4), rtol=1e-3, atol=1)
    for _ in range(2):
        assert np.array_equal(put(g, index, 4).numpy(), first)


@pytest.mark.backends("parallel")
def test_many_threads_add_up_in_the_order_of_one():
    g, index = numbers(2000, 640, dtype=np.float32), RANDOM.integers(0, 65, 2000)
    (step,) = Plan(Scatter(add, 0, 65), [mf.tensor(g), mf.tensor(index)]).steps
    outputs, inputs = step.layouts()
    walk = segment_sum.plan_segment_sum(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs]), ())
    assert walk is not None
    assert walk.count == 640
    assert walk.chunks > 1
    total = np.zeros((65, 640), np.float32)
    for row, k in zip(g, index, strict=True):
        total[k] += row
    assert np.array_equal(put(mf.tensor(g), mf.tensor(index), 65).numpy(), total)


def test_infinity_and_nan_stay_in_their_rows(backend):
    g = np.ones((4, 3), np.float32)
    g[1, 2], g[2, 0] = np.nan, np.inf
    y = put(mf.tensor(g), mf.tensor([0, 1, 3, 1]), 5).numpy()
    assert np.isnan(y[1, 2])
    assert y[3, 0] == np.inf
    assert np.array_equal(y[[0, 2, 4]], [[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert np.array_equal(y[1, :2], [2, 2])


# What is out of range


def test_indices_out_of_range_are_named(backend):
    x = mf.zeros(5, 7)
    for bad, place in (([0, 5], "5 at [1]"), ([-1], "-1 at [0]"), ([1, 2, 1 << 40], "1099511627776 at [2]")):
        with pytest.raises(IndexingError, match=r"index_select: .* out of range for dim 0 of size 5; .* 0 to 4") as e:
            x.index_select(0, mf.tensor(bad))
        index, _, position = place.partition(" ")
        assert f"index {index}" in str(e.value)
        assert position in str(e.value) or backend == "cuda"  # a kernel notes the index only
    with pytest.raises(IndexingError, match=r"dim 1 of size 7; expected 0 to 6"):
        x.index_select(-1, mf.tensor([7]))
    with pytest.raises(IndexingError, match="it has no elements"):
        mf.zeros(0, 2).index_select(0, mf.tensor([0]))


def test_in_a_captured_function_they_are_nan_and_receive_nothing(backend):
    a, index = numbers(3, 2), mf.tensor([0, 3, -1, 1 << 40, -(1 << 62), 2])

    @mf.fuse
    def f(x, index):
        y = x.index_select(0, index) * 2
        return y, x.to(mf.int64).index_select(0, index), (x > 0).index_select(0, index)

    y, k, c = f(mf.tensor(a), index)
    assert np.array_equal(np.isnan(y.numpy()[:, 0]), [False, True, True, True, True, False])
    assert np.array_equal(y.numpy()[[0, 5]], 2 * a[[0, 2]])
    assert np.array_equal(k.numpy()[1:5], np.zeros((4, 2)))
    assert not c.numpy()[1:5].any()
    grad = mf.fuse(mf.grad(lambda x: x.index_select(0, index).sum()))(mf.tensor(a))
    assert np.array_equal(grad.numpy(), [[1, 1], [0, 0], [1, 1]])
    nothing = mf.fuse(lambda x, i: x.index_select(0, i))(mf.zeros(0, 2), mf.tensor([0, 1]))
    assert np.isnan(nothing.numpy()).all()
    assert nothing.shape == (2, 2)


def test_other_mistakes():
    x = mf.zeros(5, 7)
    with pytest.raises(DTypeError, match="got an index of float32, expected a tensor of int64 or int32"):
        x.index_select(0, mf.tensor([1.0]))
    with pytest.raises(DTypeError, match="got an index of bool"):
        x.index_select(0, mf.tensor([True]))
    with pytest.raises(DTypeError, match="got an index of list"):
        x.index_select(0, [1])
    with pytest.raises(ShapeError, match=r"got an index of shape \(1, 1\), expected 1 dim"):
        x.index_select(0, mf.tensor([[1]]))
    with pytest.raises(ShapeError, match="dim 2 is out of range"):
        x.index_select(2, mf.tensor([1]))
    with pytest.raises(FuseError, match="one element of each argument"):
        mf.elementwise(lambda x: x.index_select(0, x))(x)
    with pytest.raises(IndexingError, match=r"index 5 at \[1\] is out of range for dim 0 of size 5; expected -5 to 4"):
        x[mf.tensor([1, 5])]


# How it fuses


def normalized(x):
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt()


def test_embedding_position_and_layer_norm_are_one_kernel(backend):
    def f(table, chosen, position):
        return normalized(take(table, chosen) + position)

    table, index, position = numbers(11, 33), RANDOM.integers(0, 11, (3, 5)), numbers(5, 33)
    inputs = mf.tensor(table), mf.tensor(index), mf.tensor(position)
    wanted = normalized(mf.tensor(table[index] + position)).numpy()
    assert np.allclose(mf.fuse(f)(*inputs).numpy(), wanted)
    assert np.allclose(f(*inputs).numpy(), wanted)
    (formula,) = launched(f, *inputs)
    assert "table[chosen, index] + position" in formula


def test_a_gather_fuses_with_its_index_and_its_consumers(backend):
    table, index = mf.tensor(numbers(6, 4)), mf.tensor([0, 3, 5])
    for f, wanted in (
        (lambda x, i: x.index_select(0, (i * 2 + 1) % 6).exp(), lambda x, i: np.exp(x[(i * 2 + 1) % 6])),
        (lambda x, i: x.index_select(0, i).sum(1), lambda x, i: x[i].sum(1)),
        (lambda x, i: x.index_select(0, i).sum(0), lambda x, i: x[i].sum(0)),
        (lambda x, i: x.index_select(1, i % 4).T + 1, lambda x, i: x[:, i % 4].T + 1),
        (lambda x, i: x.index_select(0, i)[1:, None, ::-1] * 2, lambda x, i: x[i][1:, None, ::-1] * 2),
        (lambda x, i: x.index_select(0, i).reshape(3, 2, 2).sum((0, 2)), lambda x, i: x[i].reshape(3, 2, 2).sum((0, 2))),
        (lambda x, i: x.index_select(0, i).index_select(1, i % 4) + 0, lambda x, i: x[i][:, i % 4]),
        (lambda x, i: mf.arange(6).index_select(0, i) * 2, lambda x, i: 2 * i),
    ):
        assert np.allclose(mf.fuse(f)(table, index).numpy(), wanted(table.numpy(), index.numpy()))
    for f in (lambda x, i: x.index_select(0, (i * 2 + 1) % 6).exp(), lambda x, i: x.index_select(0, i)[1:, None, ::-1] * 2):
        assert len(launched(f, table, index)) == 1


def test_marks_for_gradients_copy_nothing():
    """What is picked from is read where it lies, also as the input of a gradient, and detached."""
    table, index = mf.tensor(numbers(6, 4)), mf.tensor([0, 3, 3])
    gradient = lambda x, i: mf.grad(lambda x: (x.index_select(0, i) ** 2).sum())(x)  # noqa: E731
    assert len(launched(gradient, table, index)) == 1
    assert np.allclose(mf.fuse(gradient)(table, index).numpy(), 2 * table.numpy() * np.array([[1, 0, 0, 2, 0, 0]]).T)
    assert len(launched(lambda x, i: x.detach().T[1:].index_select(1, i) * 2, table, index)) == 1


def test_a_source_that_must_be_stored_is_reported():
    table, index, b = mf.tensor(numbers(6, 4)), mf.tensor([0, 3, 5]), mf.tensor(numbers(4, 4))
    computed = lambda x, i: (x * 2).index_select(0, i)  # noqa: E731
    assert len(launched(computed, table, index)) == 2
    assert GATHER_NEEDS_MEMORY in reasons(computed, table, index)
    product = lambda x, i, b: (x.index_select(0, i) * 2) @ b + x.index_select(0, i)  # noqa: E731
    assert GATHER_NOT_IN_MATMUL in reasons(product, table, index, b)
    added = lambda g, i: put(g, i, 3) * 2  # noqa: E731
    assert len(launched(added, b, mf.tensor([0, 2, 2, 1]))) == 2
    assert SCATTER_ADD_ENDS_KERNEL in reasons(added, b, mf.tensor([0, 2, 2, 1]))


def test_matmuls_of_gathered_rows(backend):
    x, b, c, index = numbers(6, 4), numbers(4, 3), numbers(9, 3), np.array([5, 0, 0, 2, 1])

    def f(x, b, c, index):
        return (take(x, index) * 2) @ b + take(c, index + 1)

    given = mf.tensor(x), mf.tensor(b), mf.tensor(c), mf.tensor(index)
    assert np.allclose(mf.fuse(f)(*given).numpy(), 2 * x[index] @ b + c[index + 1])


def test_a_source_is_gathered_before_it_is_overwritten(backend):
    x, index = numbers(5, 3), np.array([4, 4, 0, 1, 2])

    @mf.fuse
    def alone(x, index):
        x += x.index_select(0, index)

    @mf.fuse
    def read_again(x, index):
        x += x.index_select(0, index)
        return x.index_select(0, index)

    y = mf.tensor(x)
    alone(y, mf.tensor(index))
    assert np.allclose(y.numpy(), x + x[index])
    y = mf.tensor(x)
    picked = read_again(y, mf.tensor(index))
    assert np.allclose(y.numpy(), x + x[index])
    assert np.allclose(picked.numpy(), (x + x[index])[index])
    z = mf.tensor(x)
    z += z.index_select(0, mf.tensor(index))
    assert np.allclose(z.numpy(), x + x[index])
    with pytest.raises(OverlapError):
        mf.tensor([1.0]).expand(3).copy_(mf.tensor(x[:, 0]).index_select(0, mf.tensor([0, 1, 2])))


def test_a_training_step_equals_numpys(backend):
    table, index, wanted = numbers(6, 4), RANDOM.integers(0, 6, (3, 5)), numbers(3, 5, 4)

    @mf.fuse
    def step(w, index, wanted):
        loss = ((take(w, index) * 2 - wanted) ** 2).sum()
        loss.backward()
        with mf.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        return loss

    w = mf.tensor(table, requires_grad=True)
    loss = step(w, mf.tensor(index), mf.tensor(wanted))
    d = table[index] * 2 - wanted
    assert np.allclose(loss.item(), (d * d).sum())
    assert np.allclose(w.numpy(), table - 0.1 * sums(4 * d, index, 0, 6))


@given(st.data())
@share(0.3)
def test_random_indices(data):
    """Fused and one by one, forward and back, against NumPy."""
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    index = np.array(data.draw(st.lists(st.integers(0, shape[dim] - 1), max_size=7)), np.int64)
    a = numbers(*shape)
    for function in (take, mf.fuse(take)):
        x = mf.tensor(a, requires_grad=True)
        y = function(x, mf.tensor(index), dim)
        assert np.array_equal(y.numpy(), np.take(a, index, dim))
        (y * y).sum().backward()
        assert np.allclose(x.grad.numpy(), sums(2 * y.numpy(), index, dim, shape[dim]))


# What is told of it


def test_only_gathered_elements_are_counted_as_bytes():
    facts = mf.fuse(take).explain(mf.zeros(1000, 8), mf.tensor([1, 2, 3]))
    (kernel,) = facts.forward.kernels
    assert {x.name: x.nbytes for x in kernel.reads} == {"index": 3 * 8, "x": 3 * 8 * 4}
    assert kernel.nbytes == 3 * 8 + 2 * 3 * 8 * 4
    (kernel,) = mf.fuse(take).explain(mf.zeros(2, 8), mf.zeros(50, dtype=mf.int64)).forward.kernels
    assert {x.name: x.nbytes for x in kernel.reads} == {"index": 50 * 8, "x": 2 * 8 * 4}
    row = mf.fuse(lambda x, i: x[1] + x.index_select(0, i)).explain(mf.zeros(2, 8), mf.zeros(50, dtype=mf.int64))
    assert row.forward.kernels[0].nbytes == 50 * 8 + 2 * 8 * 4 + 50 * 8 * 4  # the row is one of them
    text = mf.fuse(lambda x, chosen: take(x, chosen)).source(mf.zeros(1000, 8), mf.tensor([1, 2, 3]))
    assert "x[chosen, index]" in text
    assert "raw0 = x [s1]" in text


def test_explain_names_the_users_calls():
    facts = mf.fuse(put).explain(mf.zeros(4, 3), mf.tensor([0, 2, 2, 1]), 3)
    assert [node.operation for node in facts.nodes][-1] == "scatter_add(%0, %1, dim=0)"
    assert any("scatter_add(%0, %1, dim=0)" in step.text for step in facts.steps)
    assert not any("where" in step.text or "expand" in step.text for step in facts.steps)
    facts = mf.fuse(take).explain(mf.zeros(4, 3), mf.tensor([0, 2, 2, 1]))
    assert [step.text for step in facts.steps if step.kind == "taken"] == ["launch0 computes %2 = gather(%0, %1, dim=0)."]


# Kernels


def cuda_kernels():
    """Functions whose kernels have each form: points, rows, columns, keys along rows and along columns."""
    a, i = mf.tensor(numbers(9, 35, dtype=np.float32)), mf.tensor(RANDOM.integers(0, 9, 40))
    yield "points", lambda x, i: take(x, i), (a, i)
    yield "rows", lambda x, i: normalized(take(x, i)), (a, i)
    yield "columns", lambda x, i: take(x, i).sum(0), (a, i)
    yield "keys in columns", lambda x, i: put(take(x, i), i, 9), (a, i)
    yield "keys in rows", lambda x, i: put(x, i, 9), (a.reshape(-1)[:40], i)
    wide = mf.tensor(numbers(9, 72, dtype=np.float32))
    yield "fours", lambda x, i: take(x, i) * 2, (wide, i)
    yield "rows of fours", lambda x, i: normalized(take(x, i)), (wide, i)
    yield "of float64 by int32", lambda x, i: take(x, i), (a.to(mf.float64), i.to(mf.int32))
    yield "of bools", lambda x, i: take(x, i), (a > 0, i)


@pytest.mark.parametrize(("function", "inputs"), [pytest.param(f, x, id=name) for name, f, x in cuda_kernels()])
def test_no_launch_has_a_hazard(function, inputs):
    wanted = function(*inputs).numpy()
    plans = launches_of(function, *inputs)
    for plan in plans:
        trace = simt.trace(plan, seed=1, limit=None)
        assert trace.is_complete
        assert trace.hazards() == []
    assert np.allclose(trace.outputs["out0"].reshape(wanted.shape), wanted, atol=1e-4)


@pytest.mark.parametrize(("function", "inputs"), [pytest.param(f, x, id=name) for name, f, x in cuda_kernels()])
def test_kernels_compile_for_a_gpu(function, inputs):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    for step in Plan(function, inputs).steps:
        outputs, read = step.layouts()
        nest = LoopNest(step.shape, step.dims, [*outputs, *read])
        text = generate_kernel(step.kernel, nest, step.indexed_layouts())
        threads = MAX_ROW_THREADS if text.form == "rows" else MAX_COLUMN_THREADS
        ptx = compile_ptx(python_kernel(text), [kind for _, kind in text.parameters], threads, cc=(9, 0)).ptx
        assert ".local" not in ptx
        assert ".f64" not in ptx or inputs[0].dtype is mf.float64


def test_adjacent_elements_are_loaded_four_at_a_time():
    """Where the rows begin at multiples of four, and the kernel sees them from such a place."""
    table, index = numbers(6, 72, dtype=np.float32), RANDOM.integers(0, 6, 13)
    whole, inside = mf.tensor(table), mf.tensor(numbers(6, 75, dtype=np.float32))[:, 1:73]
    for x in (whole, inside):
        for function in (
            lambda x, i: take(x, i) * 2,
            lambda x, i: take(x, i)[:, 1:] + 1,
            lambda x, i: take(x, i)[:, 4:40] + 1,
            lambda x, i: normalized(take(x, i)),
            lambda x, i: normalized(take(x, i)[:, 1:69]),
            lambda x, i: take(x, i).flip(1) * 2,
        ):
            wanted = function(x, mf.tensor(index)).numpy()
            given = x.to("cuda"), mf.tensor(index).to("cuda")
            assert np.allclose(mf.fuse(function)(*given).numpy(), wanted, atol=1e-5)
    source = mf.fuse(lambda x, i: take(x, i) * 2).source(whole, mf.tensor(index), backend="cuda")
    assert "r0 = load4(raw0, t1 * raw0_0 + base1 + i1)" in source
    source = mf.fuse(lambda x, i: normalized(take(x, i))).source(whole, mf.tensor(index), backend="cuda")
    assert source.count("load4(row0, i1)") == 3  # it waits in shared memory for all sweeps
    assert "hold_f32(raw0, " in source
    source = mf.fuse(lambda x, i: take(x, i, 1) * 2).source(whole, mf.tensor(index), backend="cuda")
    assert "load4" not in source


def test_keys_are_looked_at_before_a_value_is_loaded():
    g, index = mf.zeros(6, 40), mf.tensor([0, 1, 1, 4, 0, 2])
    source = mf.fuse(lambda g, i: put(g, i, 5)).source(g, index, backend="cuda")
    assert "own0 = i2 < n2 and in0[i2] == t0" in source
    assert "i2 = first + cuda.ffs(own) - 1" in source
    source = mf.fuse(lambda g, i: put(g, i, 5)).source(g[:, 0], index, backend="cuda")
    assert "if in0[i1] == t0:\n                fold0 += in2[i1 * in2_1]" in source


@pytest.mark.parametrize(("value", "count"), [(lambda g: g * 2, 1), (lambda g: mf.tanh(g) / g, 2)])
def test_a_gpu_computes_dear_values_before_their_sum(value, count):
    """A thread waits for each value that it selects; a CPU computes it where it adds it."""

    def function(g, index):
        return put(value(g), index, 5)

    g, index = mf.ones(6, 40), mf.tensor([0, 1, 1, 4, 0, 2])
    reports = [mf.fuse(function).explain(x, index.to(x.backend)).forward for x in (g, g.to("cuda"))]
    assert [len(report.kernels) for report in reports] == [1, count]
    assert np.allclose(mf.fuse(function)(g.to("cuda"), index.to("cuda")).numpy(), function(g, index).numpy())


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 65, 130, 257])
def test_votes_of_any_number_of_keys(count):
    """Past a warp, two, and a block of them; columns past a warp too."""
    g, index = numbers(count, 41, dtype=np.float32), RANDOM.integers(0, 3, count)
    y = put(mf.tensor(g).to("cuda"), mf.tensor(index).to("cuda"), 3)
    assert np.allclose(y.numpy(), sums(g.astype(np.float64), index, 0, 3), atol=1e-4)


def rows(n):
    return mf.arange(n).reshape(n, 1, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) == rows(5), g, 1.0).sum(1),  # not 0 elsewhere
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) == rows(5), g, 0.0).max(1),  # no sum
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) == rows(5), g * rows(5), 0).sum(1),  # a value for each row
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) == rows(10)[::2], g, 0.0).sum(1),  # steps of 2
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) != rows(5), g, 0.0).sum(1),
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) + rows(5) == rows(5), g, 0.0).sum(1),  # a key for each row
        lambda g, i, t: mf.where(i.reshape(1, 6, 1) == rows(5), t, 0).sum(1),  # a value for each row, from memory
    ],
)
def test_near_misses_are_no_segment_sum(backend, function):
    given = mf.tensor(numbers(6, 8)), mf.tensor([0, 1, 1, 4, 0, 2]), mf.tensor(numbers(5, 6, 8))
    assert np.allclose(mf.fuse(function)(*given).numpy(), function(*given).numpy())


def test_numpys_take(backend):
    a = numbers(4, 3)
    x = mf.tensor(a)
    cases = [([[0, -1], [2, 2]], 0, "raise"), (3, None, "raise"), (-1, 1, "raise")]
    cases += [([7, -9], 1, "wrap"), ([7, -9], 0, "clip")]
    for index, axis, mode in cases:
        assert np.array_equal(np.take(x, index, axis=axis, mode=mode).numpy(), np.take(a, index, axis=axis, mode=mode))
    assert np.array_equal(np.take(x, mf.tensor([0, -1]), 1).numpy(), np.take(a, [0, -1], 1))
    with pytest.raises(IndexingError, match=r"np.take: index -5 at \[1\] .* expected -4 to 3"):
        np.take(x, [0, -5], 0)
    with pytest.raises(ValueError, match="mode is 'other'"):
        np.take(x, [0], 0, mode="other")


def test_a_kernel_checks_the_range_of_a_large_index_in_host_memory():
    x, index = mf.arange(10), np.zeros((2, MIN_CHECKED_IN_KERNEL), np.int64)
    index[1, 70_000] = 9
    assert mf.nonzero(x[mf.tensor(index)]).tolist() == [[1, 70_000]]
    index[1, 70_001] = 10
    with pytest.raises(IndexingError, match=r"index 10 at \[1, 70001\] is out of range"):
        x[mf.tensor(index)]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_gather_along_a_dim_takes_strides_and_has_a_gradient(dim):
    x = mf.tensor(RANDOM.normal(size=(4, 5, 3)), backend="python").permute(2, 0, 1).requires_grad_()
    shape = [2 if d == dim else n for d, n in enumerate(x.shape)]
    index = mf.tensor(RANDOM.integers(-x.shape[dim], x.shape[dim], shape), backend="python")
    expected = np.take_along_axis(x.detach().numpy(), index.numpy(), dim)
    np.testing.assert_array_equal(x.gather(dim, index).detach().numpy(), expected)
    gradcheck(lambda x: x.gather(dim, index), x.detach().clone().requires_grad_())
