"""tensors.tensor against NumPy: properties, conversions, protocols, and mutation."""

import copy
import itertools
import pickle
import sys

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import plans
from minifuse.core.dtypes import DTYPES
from minifuse.core.errors import GradientError, OverlapError, ShapeError, ViewError
from minifuse.tensors.mutation import shares_memory, store, tensor_range
from minifuse.tensors.tensor import view_cache


@pytest.fixture(params=["python", "parallel"])
def backend(request):
    return request.param


def numbers(*shape, dtype="float64"):
    return np.random.default_rng(len(shape)).integers(1, 9, shape).astype(dtype)


# Properties


def test_properties_of_a_tensor():
    x = mf.ones(2, 3, 4)
    assert (x.shape, x.strides, x.offset, x.ndim, x.size) == ((2, 3, 4), (12, 4, 1), 0, 3, 24)
    assert (x.dtype, x.backend, x.requires_grad, x.grad, x.is_leaf) == (mf.float32, "parallel", False, None, True)


def test_strides_and_offset_count_elements():
    for dtype in DTYPES:
        x = mf.zeros(4, 6, dtype=dtype)[1:, ::-2]
        assert (x.shape, x.strides, x.offset) == ((3, 3), (6, -2), 11)


def test_a_view_of_a_view_knows_where_it_starts():
    x = mf.arange(24).reshape(4, 6)
    y = x[1:][:, 2:].T[1]
    assert (y.offset, y.strides) == (9, (6,))
    assert y.tolist() == [9, 15, 21]
    assert y.buffer is x.buffer


def test_contiguous_is_row_major_without_gaps():
    x = mf.zeros(4, 6)
    assert [v.is_contiguous() for v in (x, x[1:], x.T, x[:, ::2], x[:1, ::-1], mf.ones(1).expand(3))] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert x.contiguous() is x
    assert x.T.contiguous().strides == (4, 1)


# Text

TEXTS = {
    "vector": (lambda: mf.tensor([1.0, 2.5]), "tensor([1. , 2.5])"),
    "matrix": (lambda: mf.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
    "number": (lambda: mf.tensor(3.0), "tensor(3.)"),
    "nothing": (lambda: mf.zeros(0), "tensor([])"),
    "bools": (lambda: mf.tensor([True, False]), "tensor([ True, False])"),
    "float64": (lambda: mf.zeros(2, dtype="float64"), "tensor([0., 0.], dtype=float64)"),
    "int32": (lambda: mf.zeros(2, dtype="int32"), "tensor([0, 0], dtype=int32)"),
    "gradient": (lambda: mf.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    "backend": (lambda: mf.tensor([1.0], backend="python"), 'tensor([1.], backend="python")'),
    "all": (
        lambda: mf.tensor([1.0], dtype="float64", backend="python", requires_grad=True) * 2,
        'tensor([2.], dtype=float64, backend="python", requires_grad=True)',
    ),
    "view": (lambda: mf.arange(6).reshape(2, 3).T[::-1], "tensor([[2, 5],\n        [1, 4],\n        [0, 3]])"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_tensor_shows_its_elements(name):
    make, text = TEXTS[name]
    assert repr(make()) == text


def test_a_large_tensor_shows_its_ends():
    assert repr(mf.zeros(10_000)) == "tensor([0., 0., 0., ..., 0., 0., 0.])"


# To Python


def test_item_tolist_and_numbers():
    x = mf.tensor([[1.5, 2.5]])
    assert x.tolist() == [[1.5, 2.5]]
    assert mf.tensor(2.5).tolist() == mf.tensor([[2.5]]).item() == float(mf.tensor(2.5)) == 2.5
    assert [type(mf.tensor(v).item()) for v in (1.5, 2, True)] == [float, int, bool]
    assert int(mf.tensor(7.9)) == 7
    assert bool(mf.tensor([[0.0]])) is False
    assert bool(mf.tensor(-1)) is True


def test_a_0d_integer_is_an_index():
    assert "abc"[mf.tensor(1)] == "b"
    x = mf.arange(5)
    assert x[mf.tensor(2)].item() == 2
    assert x[mf.tensor(-1, dtype="int32") :].tolist() == [4]
    assert list(range(mf.tensor(3))) == [0, 1, 2]


# To NumPy and back


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_memory(dtype, backend):
    x = mf.zeros(4, 6, dtype=dtype, backend=backend)[::-1, 1::2]
    array = x.numpy()
    assert (array.shape, array.dtype) == (x.shape, dtype.numpy)
    assert array.strides == tuple(s * dtype.itemsize for s in x.strides)
    array[0, 0] = 1
    assert x[0, 0].item() == 1
    x[1, 2] = x[0, 0]
    assert array[1, 2] == 1


def test_asarray_converts_and_copies_as_asked():
    x = mf.tensor([1.5, 2.5])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert np.asarray(x, dtype=int).tolist() == [1, 2]
    assert np.shares_memory(np.asarray(x, copy=False), x.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype="float64", copy=False)
    np.testing.assert_allclose(x, [1.5, 2.5])


ARRAYS = {
    "plain": numbers(3, 4),
    "flipped": numbers(3, 4)[::-1, ::-2],
    "transposed": numbers(3, 4).T,
    "expanded": np.broadcast_to(numbers(4), (3, 4)),
    "0-d": np.array(2.5),
    "empty": numbers(3, 4)[:, 2:2],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_from_numpy_copies_nothing(name, backend):
    array = ARRAYS[name]
    x = mf.from_numpy(array, backend=backend)
    np.testing.assert_array_equal(x, array)
    assert x.shape == array.shape
    assert np.shares_memory(x.numpy(), array) or not array.size
    np.testing.assert_array_equal((x * 2 + 1).numpy(), array * 2 + 1)
    np.testing.assert_array_equal(x.sum().numpy(), array.sum())


def test_from_numpy_keeps_the_array_alive():
    x = mf.from_numpy(np.arange(1000.0)[::-1])
    assert x.sum().item() == 499500


def test_read_only_memory_can_be_read():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = mf.from_numpy(array)
    assert (x + 1).tolist() == [1, 2, 3]
    assert not x.numpy().flags.writeable
    with pytest.raises(OverlapError, match="read-only memory"):
        x += 1
    assert array.tolist() == [0, 1, 2]


def test_numpy_on_the_left():
    x, array = mf.tensor([1.0, 2.0], requires_grad=True), np.array([10.0, 20.0], np.float32)
    for y in (array + x, x + array):
        assert isinstance(y, mf.Tensor)
        assert y.tolist() == [11, 22]
    assert (array @ x).item() == 50
    assert (np.float32(3) * x).tolist() == [3, 6]
    (array * x).sum().backward()
    assert x.grad.tolist() == [10, 20]


# DLPack


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_there_and_back_copies_nothing(dtype):
    x = mf.arange(12).to(dtype).reshape(3, 4)[:, ::2]
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x.numpy())
    if array.flags.writeable:  # NumPy before 2.2.5 imports a read-only array, which it does not export
        y = mf.from_dlpack(array)
        assert y.tolist() == x.tolist()
        assert (y.strides, y.dtype) == (x.strides, dtype)
    assert mf.from_dlpack(x).numpy().ctypes.data == x.numpy().ctypes.data


def test_torch_sees_the_same_memory():
    torch = pytest.importorskip("torch")
    x = mf.arange(12, dtype="float32").reshape(3, 4)
    t = torch.from_dlpack(x.T)
    t[0, 2] = -1
    assert x[2, 0].item() == -1
    y = mf.from_dlpack(t[1:])
    y += 100
    assert x[0].tolist() == [0, 101, 102, 103]
    assert (y @ mf.ones(3)).tolist() == t[1:].sum(1).tolist()


# Types, backends, copies


def test_to_another_dtype():
    x = mf.tensor([0.0, 1.9, -1.9])
    for wanted in (mf.int64, "int64", int, np.int64):
        assert x.to(wanted).tolist() == [0, 1, -1]
    assert x.to(bool).tolist() == [False, True, True]
    assert x.to(mf.float32) is x
    assert x.to(dtype="float64").dtype is mf.float64


def test_to_another_backend_and_both(backend):
    other = "python" if backend == "parallel" else "parallel"
    x = mf.tensor([1.5, 2.5], backend=backend)
    assert x.to(backend) is x
    assert (x.to(other).backend, x.to(other).tolist()) == (other, [1.5, 2.5])
    y = x.to(other, "int64")
    assert (y.backend, y.dtype, y.tolist()) == (other, mf.int64, [1, 2])
    assert x.to("int64", backend=other).backend == other
    assert not np.shares_memory(x.to(other).numpy(), x.numpy())


def test_gradients_flow_through_to(backend):
    other = "python" if backend == "parallel" else "parallel"
    x = mf.tensor([1.0, 2.0], backend=backend, requires_grad=True)
    y = (x * 3).to(other, "float64") ** 2
    y.sum().backward()
    assert (x.grad.tolist(), x.grad.dtype, x.grad.backend) == ([18, 36], mf.float32, backend)


def test_second_gradients_flow_through_a_move():
    x = mf.tensor([1.0, 2.0], requires_grad=True)
    (x.to("python") ** 3).sum().backward(create_graph=True)
    g, x.grad = x.grad, None
    g.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_clone_is_a_copy_with_a_gradient():
    x = mf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.T.clone()
    assert (y.tolist(), y.strides) == ([[1, 3], [2, 4]], (2, 1))
    assert y.buffer is not x.buffer
    (y * mf.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_python_can_copy_a_tensor(duplicate):
    x = mf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = duplicate(x)
    with mf.no_grad():
        y += 1
    assert x.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [[2, 3], [4, 5]]
    assert (y.meta, y.is_leaf) == (x.meta, True)


def test_view_shares_and_reshape_copies_where_it_must():
    x = mf.arange(24).reshape(4, 6)
    assert x.view(2, -1, 3).buffer is x.buffer
    assert x[:, :3].view(2, 2, 3).buffer is x.buffer
    with pytest.raises(ViewError, match=r"write x\.reshape\(\.\.\.\), which copies"):
        x.T.view(24)
    y = x.T.reshape(24)
    assert y.buffer is not x.buffer
    assert y.tolist() == np.arange(24).reshape(4, 6).T.ravel().tolist()
    assert x.reshape(3, 8).buffer is x.buffer
    assert x.T.contiguous().view(24).tolist() == y.tolist()


def test_requires_grad_may_be_set_on_leaves():
    x = mf.ones(2)
    assert x.requires_grad_() is x
    assert (x * 2).requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad
    y = mf.ones(2, requires_grad=True) * 2
    y.requires_grad = True  # it does already
    with pytest.raises(GradientError):
        y.requires_grad = False


# In place

OPERATORS = {
    "+=": lambda a, b: a.__iadd__(b),
    "-=": lambda a, b: a.__isub__(b),
    "*=": lambda a, b: a.__imul__(b),
    "/=": lambda a, b: a.__itruediv__(b),
    "//=": lambda a, b: a.__ifloordiv__(b),
    "%=": lambda a, b: a.__imod__(b),
    "**=": lambda a, b: a.__ipow__(b),
}
BITS = {"&=": lambda a, b: a.__iand__(b), "|=": lambda a, b: a.__ior__(b)}
VIEWS = {
    "all": lambda x: x,
    "transposed": lambda x: x.T,
    "slice": lambda x: x[1:, ::2],
    "flipped": lambda x: x[::-1, ::-1],
    "row": lambda x: x[2],
    "column": lambda x: x[:, 1],
    "element": lambda x: x[1, 2, ...],
    "nothing": lambda x: x[:, 2:2],
}


@pytest.mark.sampled(2, each="symbol")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("symbol", OPERATORS)
def test_every_operator_in_place(symbol, view):
    array = numbers(4, 6)
    x = mf.tensor(array)
    target, part = VIEWS[view](x), VIEWS[view](array)
    address = target.address
    for other in (3.0, numbers(*part.shape)):
        assert OPERATORS[symbol](target, mf.tensor(other) if isinstance(other, np.ndarray) else other) is target
        OPERATORS[symbol](part, other)
    np.testing.assert_allclose(x, array, rtol=1e-14)
    assert target.address == address


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_in_place_keeps_the_dtype(dtype, backend):
    array = numbers(3, 5, dtype=dtype)
    x = mf.tensor(array, backend=backend)
    for symbol in ("+=", "-=", "*=", "//=", "%="):
        OPERATORS[symbol](x, 2)
        OPERATORS[symbol](array, 2)
        OPERATORS[symbol](x, mf.tensor(numbers(5, dtype=dtype), backend=backend))
        OPERATORS[symbol](array, numbers(5, dtype=dtype))
    assert x.dtype.name == dtype
    np.testing.assert_array_equal(x, array)


@pytest.mark.parametrize("symbol", BITS)
def test_bits_in_place(symbol, backend):
    for a, b in ((numbers(7, dtype="int64"), numbers(7, dtype="int64") * 3), (numbers(7) > 4, numbers(7)[::-1] > 3)):
        x = mf.tensor(a, backend=backend)
        BITS[symbol](x, mf.tensor(b, backend=backend))
        assert x.tolist() == BITS[symbol](a.copy(), b).tolist()


def test_operands_of_other_dtypes_are_converted():
    x = mf.ones(3)
    x += mf.tensor([0.1, 0.2, 0.3], dtype="float64")
    assert x.dtype is mf.float32
    np.testing.assert_allclose(x, [1.1, 1.2, 1.3], rtol=1e-6)
    x *= mf.arange(3)
    np.testing.assert_allclose(x, [0, 1.2, 2.6], rtol=1e-6)
    x += [1, 2, 3]
    x -= np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(x, [0, 1.2, 2.6], rtol=1e-6)


OVERLAPS = {
    "shifted up": lambda x: (x[1:], x[:-1]),
    "shifted down": lambda x: (x[:-1], x[1:]),
    "reversed": lambda x: (x, x[::-1]),
    "itself": lambda x: (x, x),
    "every other": lambda x: (x[::2], x[1::2]),
    "a repeated element": lambda x: (x, x[3]),
    "transposed": lambda x: (x.reshape(8, 8), x.reshape(8, 8).T),
    "rotated": lambda x: (x.reshape(8, 8), x.reshape(8, 8).T[::-1]),
    "a row added to all": lambda x: (x.reshape(8, 8), x.reshape(8, 8)[2]),
    "a column added to all": lambda x: (x.reshape(8, 8), x.reshape(8, 8)[:, 2:3]),
}


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("symbol", ["+=", "*=", "-=", "="])
def test_overlapping_operands_are_read_before_they_are_written(name, symbol, backend):
    start = np.random.default_rng(0).uniform(1, 2, 64)
    array, x = start.copy(), mf.tensor(start, backend=backend)
    target, source = OVERLAPS[name](array)
    wanted, given = OVERLAPS[name](x)
    if symbol == "=":
        target[...] = source.copy()
        wanted[...] = given
    else:
        OPERATORS[symbol](target, source.copy())
        OPERATORS[symbol](wanted, given)
    np.testing.assert_allclose(x, array, rtol=1e-14)


def test_long_overlaps_on_several_threads():
    """A walk in the wrong order, or in chunks, would read what another chunk has written."""
    start = np.random.default_rng(0).standard_normal(3_000_000)
    for a, b in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)), (slice(None), slice(None, None, -1))):
        x = mf.tensor(start)
        x[a] += x[b]
        array = start.copy()
        array[a] += start[b]
        np.testing.assert_array_equal(x, array)


def test_a_square_matrix_plus_its_transpose():
    array = numbers(65, 65)
    x = mf.tensor(array)
    x += x.T
    np.testing.assert_array_equal(x, array + array.T)


VALUES = {
    "number": 2.5,
    "integer": 7,
    "bool": True,
    "NumPy number": np.float32(1.5),
    "0-d array": np.array(3.5),
    "list": [1, 2, 3],
    "array": np.array([1.0, 2.0, 3.0]),
    "array of integers": np.array([[1], [2]]),
    "whole": np.arange(6.0).reshape(2, 3),
}


@pytest.mark.sampled(2, each="value")
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("is_tensor", [False, True])
def test_a_store_of_anything_that_broadcasts(value, is_tensor, backend):
    array, x = np.zeros((2, 3)), mf.zeros(2, 3, dtype="float64", backend=backend)
    array[...] = VALUES[value]
    x[...] = mf.tensor(VALUES[value], backend=backend) if is_tensor else VALUES[value]
    assert x.tolist() == array.tolist()


@pytest.mark.parametrize(
    "index",
    [0, -1, (1, 2), slice(1, None), (slice(None), 1), (slice(None, None, -1), slice(0, 2)), ..., (None, 0), (..., 2)],
    ids=str,
)
def test_a_store_at_any_index(index, backend):
    array = numbers(2, 3)
    x = mf.tensor(array, backend=backend)
    for value in (9, 2.5, mf.tensor(4.0, backend=backend)):
        x[index] = value
        array[index] = float(value)
        assert x.tolist() == array.tolist()
    x[index] = x[index] * 2
    array[index] = array[index] * 2
    assert x.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_is_stored_in_every_dtype(dtype, backend):
    x = mf.zeros(3, dtype=dtype, backend=backend)
    x[1] = 1
    x[2] = True
    assert x.tolist() == [0, 1, 1]
    assert x.fill_(1).tolist() == [1, 1, 1]
    assert x.zero_().tolist() == [0, 0, 0]


def test_numbers_that_are_stored_make_no_plans():
    x = mf.zeros(10)
    x[0] = 0.5
    before = len(plans)
    for k in range(1, 10):
        x[k] = k + 0.5
    assert len(plans) == before
    assert x.tolist() == [k + 0.5 for k in range(10)]


def test_copy_fill_and_zero_give_the_tensor():
    x = mf.zeros(2, 3)
    assert x.copy_([1, 2, 3]) is x
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert x.copy_(mf.arange(2).reshape(2, 1)).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert x.fill_(1.5).sum().item() == 9
    assert x.zero_().sum().item() == 0


def test_leaves_change_under_no_grad(backend):
    w = mf.tensor([1.0, 2.0, 3.0], requires_grad=True, backend=backend)
    with mf.no_grad():
        w -= 0.5
        w *= 2
        w[0] = 7
        w[1:] += w[:-1]
    assert w.tolist() == [7, 10, 8]
    assert w.requires_grad
    assert w.is_leaf
    (w * w).sum().backward()
    assert w.grad.tolist() == [14, 20, 16]


def test_one_call_may_store_in_several_tensors():
    w, m, g = mf.tensor([1.0, 2.0]), mf.tensor([0.5, 0.5]), mf.tensor([10.0, 20.0])

    def momentum(w, m, g):
        m = m * 0.5 + g
        return w - 0.125 * m, m

    store(momentum, [w, m], g)
    assert m.tolist() == [10.25, 20.25]
    assert w.tolist() == [1 - 10.25 / 8, 2 - 20.25 / 8]


STORES = {
    "two from both": (lambda a, b: (a + b, a - b), 2),
    "two that are folded": (lambda a, b: (a * b.sum(), b + a.mean()), 2),
    "two products": (lambda a, b: (a @ b, b @ a), 2),
    "swapped": (lambda a, b: (b, a), 2),
    "swapped and turned": (lambda a, b: (b.T, a.T), 2),
    "one in the other": (lambda a, b: (a + 1, a.T), 2),
    "softmax": (lambda a: (a.softmax(0),), 1),
    "centred": (lambda a: (a - a.mean(1, True),), 1),
    "transposed": (lambda a: (a.T,), 1),
    "reversed and added": (lambda a: (a[::-1] + a * 2,), 1),
    "squared": (lambda a: (a @ a,), 1),
    "normed by the last": (lambda a: (a / a[-1, -1],), 1),
    "a row everywhere": (lambda a: (a[0].expand(7, 7),), 1),
    "a sum everywhere": (lambda a: (a.sum().expand(7, 7),), 1),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", STORES)
def test_results_are_computed_before_their_inputs_are_overwritten(name, backend):
    function, count = STORES[name]
    arrays = [np.random.default_rng(k).uniform(1, 2, (7, 7)) for k in range(count)]
    expected = [y.numpy().copy() for y in function(*[mf.tensor(a) for a in arrays])]
    for seen in (lambda x: x, lambda x: x.T):
        targets = [seen(mf.tensor(seen(a), backend=backend)) for a in arrays]
        store(lambda *xs: function(*xs), targets)
        for x, e in zip(targets, expected, strict=True):
            np.testing.assert_allclose(x, e, rtol=1e-12)


def swapped(a, b):
    return b, a


def test_two_tensors_swap():
    x = mf.arange(6, dtype="float32")
    store(swapped, [x[:3], x[3:]])
    assert x.tolist() == [3, 4, 5, 0, 1, 2]


def test_two_targets_must_not_overlap():
    x = mf.arange(6, dtype="float32")
    for a, b in ((x[:4], x[2:]), (x, x), (x[1:], x[:-1])):
        with pytest.raises(OverlapError, match="two tensors that share memory"):
            store(swapped, [a, b])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_overlap_is_about_addresses():
    x = mf.zeros(4, 6)
    assert tensor_range(x[1, ::-2]) == (x.address + 4 * 7, x.address + 4 * 12)
    assert shares_memory(x[:2], x[1:])
    assert not shares_memory(x[:2], x[2:])
    assert not shares_memory(x[0:0], x)
    assert not shares_memory(x, mf.zeros(4, 6))
    array = np.zeros(6)
    a, b = mf.from_numpy(array[:4]), mf.from_numpy(array[2:])  # two buffers, one memory
    assert shares_memory(a, b)
    a += mf.arange(4)
    b[...] = a
    assert array.tolist() == [0, 1, 0, 1, 2, 3]


def test_a_cached_plan_does_not_skip_checks_of_each_call():
    """The second call with operands of the same kinds goes a shorter way, and refuses and keeps apart the same."""
    x, y = mf.arange(12, dtype="float64"), mf.ones(6, dtype="float64")
    for _ in range(2):
        x[:6] += y  # apart
    part = x[1:7]
    part += x[:6]  # the same kinds, and they overlap
    assert x.tolist() == [2, 5, 7, 9, 11, 13, 13, 7, 8, 9, 10, 11]
    array = np.zeros(12)
    a, b = mf.from_numpy(array[:6]), mf.from_numpy(array[2:8])  # two buffers, one memory
    array[:] = range(1, 13)
    b += a
    assert array.tolist() == [1, 2, 4, 6, 8, 10, 12, 14, 9, 10, 11, 12]
    fixed = np.zeros(6)
    fixed.setflags(write=False)
    z = mf.from_numpy(fixed)
    with pytest.raises(OverlapError, match="read-only"):
        z += y
    w = mf.ones(6, dtype="float64", requires_grad=True)
    loss = (w * y).sum()
    y += x[:6]
    with pytest.raises(GradientError, match="modified in place"):
        loss.backward()


def test_in_place_through_two_arrays_of_one_memory():
    array = np.arange(6.0)
    a, b = mf.from_numpy(array[1:]), mf.from_numpy(array[:-1])
    a += b
    assert array.tolist() == [0, 1, 3, 5, 7, 9]


def test_an_expanded_target_is_refused_unless_it_repeats_nothing():
    with pytest.raises(OverlapError, match="several elements share one memory location"):
        mf.zeros(1, 3).expand(2, 3).zero_()
    assert mf.zeros(2, 3).expand(2, 3).fill_(1).sum().item() == 6
    assert mf.zeros(1, 3).expand(1, 3).fill_(1).sum().item() == 3


# Views


def test_views_are_remembered_and_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules["minifuse.tensors.tensor"], "MAX_CACHED_VIEWS", 50)
    x = mf.arange(1000)
    for k in range(300):
        assert x[k : k + 3].tolist() == [k, k + 1, k + 2]
    assert len(view_cache) <= 52


def test_many_slices_make_no_plans():
    x = mf.arange(1000, dtype="float32").requires_grad_()
    (x[0:2] + 1).sum()
    before = len(plans)
    assert sum((x[k : k + 2] + 1).sum().item() for k in range(300)) == sum(2 * k + 3 for k in range(300))
    assert len(plans) == before
    x[3:5].sum().backward()
    assert x.grad.numpy().nonzero()[0].tolist() == [3, 4]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_tensor_in_any_order_of_memory_computes_the_same(order):
    array = numbers(3, 4, 5).transpose(order)
    x = mf.from_numpy(array)
    np.testing.assert_allclose((x * 2 + x.sum(0)).numpy(), array * 2 + array.sum(0))


def test_shapes_that_do_not_fit_leave_all_as_it_was():
    x = mf.arange(6, dtype="float32")
    with pytest.raises(ShapeError):
        x += mf.ones(4)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
