"""backends.cuda.backend without a GPU: memory in every layout, the four methods, launch plans, kernel names."""

import math
from itertools import combinations

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Operand
from minifuse.backends.cuda.launcher import to_kernel_number
from minifuse.backends.registry import get_backend
from minifuse.compiler.plan import Plan
from minifuse.core import operators as op
from minifuse.core.dtypes import BY_NUMPY, DTYPES, bool_, float32, float64, int32, int64
from minifuse.core.errors import BackendError, DTypeError
from minifuse.core.layout import Layout, row_major
from minifuse.ir.step_kernels import plain_matmul
from tests.steps import load

from ..cuda.simulated import simulated

BASE = np.random.default_rng(0).uniform(0.5, 2, (5, 4, 6))
VIEWS = {
    "plain": BASE,
    "transposed": BASE.T,
    "sliced": BASE[1:, ::2, 1:-1],
    "flipped": BASE[::-1, :, ::-1],
    "expanded": np.broadcast_to(BASE[:, :1], (5, 4, 6)),
    "row": BASE[2],
    "column": BASE[:, 1, 3],
    "element": BASE[1, 2, 3, ...],
    "empty": BASE[:, 2:2],
    "few of many": BASE[::4, ::3, ::5],
}
BACKEND = simulated()

every_view = pytest.mark.parametrize("view", VIEWS)


def array_of(view):
    return np.asarray(VIEWS[view])


# Memory


@every_view
def test_arrays_keep_their_layout_on_the_device_and_back(view):
    array = array_of(view)
    buffer, address, layout = BACKEND.from_numpy(array)
    assert layout.shape == array.shape
    assert layout.offset == 0
    if array.size:
        assert layout.strides == tuple(s // 8 for s in array.strides)  # also 0 and negative ones
        low, high = layout.span()
        assert buffer.address <= address + low * 8
        assert address + high * 8 <= buffer.address + buffer.nbytes
    found = BACKEND.to_numpy(buffer, address, float64, layout)
    np.testing.assert_array_equal(found, array)
    assert not np.shares_memory(found, array)


def test_a_strided_view_is_packed_on_the_device():
    array = np.arange(100_000.0)[::1000]
    buffer, _, layout = BACKEND.from_numpy(array)
    assert buffer.nbytes < 16 * 100 * 8
    assert layout.strides == (1,)


def test_of_a_few_elements_far_apart_only_these_are_copied(monkeypatch):
    x = mf.arange(100_000, backend=BACKEND)[::1000]
    copied, copy_out = [], BACKEND.device.copy_out
    monkeypatch.setattr(
        BACKEND.device, "copy_out", lambda address, array: copied.append(array.size) or copy_out(address, array)
    )
    assert x.tolist() == list(range(0, 100_000, 1000))
    assert copied == [100]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_there_and_back(dtype):
    array = (np.arange(30).reshape(5, 6) % 5).astype(dtype.numpy)
    x = mf.tensor(array, backend=BACKEND)
    assert x.dtype is dtype
    np.testing.assert_array_equal(x.numpy(), array)
    for see in (lambda v: v.T, lambda v: v[::-1, ::2], lambda v: v[2:2], lambda v: v[3, 4, ...]):
        np.testing.assert_array_equal(see(x).numpy(), see(array))


@pytest.mark.parametrize(
    ("dtype", "value"), [(float32, 1.5), (float64, math.nan), (int64, -(2**63)), (bool_, True), (int32, 0)]
)
def test_filling(dtype, value):
    buffer = BACKEND.allocate(512)
    BACKEND.fill(buffer, buffer.address, dtype, row_major((3, 5)), value)
    found = BACKEND.to_numpy(buffer, buffer.address, dtype, row_major((3, 5)))
    np.testing.assert_array_equal(found, np.full((3, 5), value, dtype.numpy))


def test_a_host_copy_is_read_only():
    x = mf.ones(3, backend=BACKEND)
    found = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 5
    x += 1
    assert found.tolist() == [1, 1, 1]
    assert np.asarray(x).tolist() == [2, 2, 2]


def test_later_changes_in_numpy_do_not_reach_the_device():
    array = np.ones(3, "f4")
    x = mf.from_numpy(array, backend=BACKEND)
    array[0] = 7
    assert x.tolist() == [1, 1, 1]


@every_view
def test_moves_to_the_device_and_back(view):
    array = array_of(view)
    x = mf.tensor(array, backend="parallel").to(backend=BACKEND)
    assert x.meta.backend is BACKEND
    back = x.to("parallel")
    assert back.backend == "parallel"
    np.testing.assert_array_equal(back.numpy(), array)


def test_gradients_move_back():
    x = mf.ones(3, requires_grad=True)
    (x.to(backend=BACKEND) * 2).sum().backward()
    assert x.grad.backend == "parallel"
    assert x.grad.tolist() == [2, 2, 2]


# Names


def test_repr_shows_that_a_tensor_is_simulated():
    assert repr(mf.ones(2, backend=BACKEND)) == 'tensor([1., 1.], backend="cuda (simulated)")'
    assert repr(simulated(1)) == "cuda:1 (simulated)"
    assert mf.ones(2, backend=BACKEND).backend == "cuda"


@pytest.mark.parametrize("name", ["cuda:x", "cuda:-1", "cuda:1.5"])
def test_names_of_gpus_are_numbers(name):
    with pytest.raises(BackendError, match='does not exist; write "cuda:0" for the first GPU'):
        get_backend(name)


def test_the_first_gpu_has_two_names():
    assert get_backend("cuda:0") is get_backend("cuda")


def test_operands_of_two_gpus_do_not_mix():
    with pytest.raises(BackendError, match="two backends, cuda and cuda:1"):
        mf.ones(3, backend=BACKEND) + mf.ones(3, backend=simulated(1))


def test_an_eager_operation_and_its_gradient():
    x = mf.tensor([1.0, -2.0, 3.0], backend=BACKEND, requires_grad=True)
    y = mf.relu(x * 2).sum()
    y.backward()
    assert (y.item(), x.grad.tolist()) == (8, [2, 0, 2])
    assert y.meta.backend is BACKEND


# The four methods, with any function of scalars


def result(shape, dtype=float64):
    return Operand.empty(shape, dtype)


@pytest.mark.sampled(3, each="function")
@every_view
@pytest.mark.parametrize(
    ("function", "expected"),
    [(op.exp, np.exp), (lambda x: x * x + 1, lambda x: x * x + 1), (lambda x: 2.5, lambda x: np.full(x.shape, 2.5))],
    ids=["operator", "lambda", "constant"],
)
def test_map(view, function, expected):
    array, out = array_of(view), result(array_of(view).shape)
    BACKEND.map(function, Operand.from_array(array), out)
    np.testing.assert_allclose(out.array(), expected(array), rtol=1e-14)


@pytest.mark.parametrize("view", ["transposed", "flipped", "element", "empty"])
def test_map_a_function_that_looks_at_its_data(view):
    array, out = array_of(view), result(array_of(view).shape)
    BACKEND.map(lambda x: x if x > 1 else math.sin(x), Operand.from_array(array), out)
    np.testing.assert_allclose(out.array(), np.where(array > 1, array, np.sin(array)), rtol=1e-14)


def test_map_a_function_with_a_loop():
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    out = result((6,), int64)
    BACKEND.map(collatz, Operand.from_array(np.array([1, 2, 3, 7, 27, 97])), out)
    assert out.data.tolist() == [0, 1, 7, 16, 111, 118]


@pytest.mark.sampled(3, each="function")
@every_view
@pytest.mark.parametrize(
    ("function", "expected"),
    [(op.mul, np.multiply), (lambda a, b: a * b - a, lambda a, b: a * b - a), (lambda a, b: b, lambda a, b: b)],
    ids=["operator", "lambda", "one of them"],
)
def test_zip(view, function, expected):
    array, out = array_of(view), result(array_of(view).shape)
    other = np.asarray(np.random.default_rng(1).uniform(0.5, 2, array.shape[::-1]).T)
    BACKEND.zip(function, Operand.from_array(array), Operand.from_array(other), out)
    np.testing.assert_allclose(out.array(), expected(array, other), rtol=1e-14)


def test_zip_a_function_that_looks_at_its_data():
    out = result((4, 6))
    BACKEND.zip(lambda a, b: a if a > b else -b, Operand.from_array(BASE[0]), Operand.from_array(BASE[1]), out)
    np.testing.assert_allclose(out.array(), np.where(BASE[0] > BASE[1], BASE[0], -BASE[1]))


def product(a, b):
    return a * b


product.identity = 1


@pytest.mark.sampled(3, each="function")
@every_view
@pytest.mark.parametrize(
    ("function", "numpy"), [(op.add, np.sum), (op.maximum, np.max), (product, np.prod)], ids=["add", "maximum", "own"]
)
def test_reduce(view, function, numpy):
    array = array_of(view)
    for count in range(1, array.ndim + 1):
        for dims in combinations(range(array.ndim), count):
            if 0 in [array.shape[d] for d in dims] and function is op.maximum:
                continue
            out = result(tuple(1 if d in dims else n for d, n in enumerate(array.shape)))
            BACKEND.reduce(function, Operand.from_array(array), out, dims)
            np.testing.assert_allclose(out.array(), numpy(array, dims, keepdims=True), rtol=1e-13, err_msg=str(dims))


def test_an_empty_reduction_is_the_identity():
    for function, expected in ((op.add, 0), (op.mul, 1), (op.maximum, -math.inf), (product, 1)):
        out = result((3, 1))
        BACKEND.reduce(function, Operand.from_array(np.zeros((3, 0))), out, (1,))
        assert out.data.tolist() == [expected] * 3, function


def larger(a, b):
    return a if a > b else b


@pytest.mark.parametrize("view", ["transposed", "flipped", "element"])
def test_a_reduction_without_identity_starts_with_the_first_element(view):
    array = -array_of(view)
    for dims in combinations(range(array.ndim), max(1, array.ndim - 1)):
        out = result(tuple(1 if d in dims else n for d, n in enumerate(array.shape)))
        BACKEND.reduce(larger, Operand.from_array(array), out, dims)
        np.testing.assert_array_equal(out.array(), array.max(dims, keepdims=True))


def test_an_empty_reduction_without_identity_is_an_error():
    with pytest.raises(
        DTypeError, match=r"reduce: larger has no identity, so it cannot reduce shape \(3, 0\); set larger.identity"
    ):
        BACKEND.reduce(larger, Operand.from_array(np.zeros((3, 0))), result((3, 1)), (1,))


def test_results_are_stored_in_any_layout():
    memory = np.zeros((4, 12))
    BACKEND.map(op.neg, Operand.from_array(BASE[0]), Operand.from_array(memory[::-1, ::2]))
    np.testing.assert_array_equal(memory[::-1, ::2], -BASE[0])
    assert not memory[:, 1::2].any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_matmul(dtype):
    random = np.random.default_rng(0)
    a, b = [(random.uniform(-3, 3, shape) * 2).astype(dtype) for shape in ((3, 7), (7, 5))]
    out = result((3, 5), BY_NUMPY[np.dtype(dtype)])
    BACKEND.matmul(Operand.from_array(a[::-1]), Operand.from_array(b), out)
    np.testing.assert_allclose(out.array(), a[::-1] @ b, rtol=1e-5, atol=1e-5)


# Launches as plans


CASES = {
    "points": (lambda x: x * 2 + 1, (33, 7)),
    "points in steps": (lambda x: x[:, ::2] + 1, (9, 10)),
    "points repeated": (lambda x: x + x[0], (5, 40)),
    "points turned over": (lambda x: x + x.T, (12, 12)),
    "rows": (lambda x: x.sum(1), (5, 40)),
    "long rows": (lambda x: x.max(1), (2, 700)),
    "rows of softmax": (lambda x: x.softmax(1), (3, 130)),
    "columns": (lambda x: x.sum(0), (40, 5)),
    "columns of softmax": (lambda x: x.softmax(0), (17, 33)),
    "several dims": (lambda x: x.sum((0, 2)), (3, 4, 9)),
    "argmax": (lambda x: x.argmax(1), (4, 70)),
    "variance": (lambda x: x.var(0), (12, 6)),
    "any": (lambda x: (x > 1).any(1), (6, 50)),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_launch_has_a_hazard(name, seed):
    """Races, reads before writes, bounds, barriers; in the order of lanes, and in another one."""
    function, shape = CASES[name]
    x = mf.tensor(np.random.default_rng(0).uniform(-2, 2, shape).astype("f4"), backend=BACKEND)
    plan = Plan(function, [x])
    (step,), (expected,) = plan.steps, [y.numpy() for y in [plan.run(x)]]
    bound = BACKEND.compile(step).load()
    out = mf.zeros(*expected.shape, dtype=expected.dtype, backend=BACKEND)
    slots = [x, *plan.hidden, out]
    addresses = [
        slots[slot].address + offset if slot >= 0 else offset for slot, offset in step.address_offsets()
    ]  # or positions
    trace = mf.simt.trace(bound.plans(*addresses, *[float(n) for n in step.numbers])[0], seed=seed)
    assert trace.is_complete
    assert trace.hazards() == []
    np.testing.assert_array_equal(out.numpy(), expected)


def test_no_launch_of_a_product_has_a_hazard():
    a, b = [mf.tensor(np.ones(shape, "f4"), backend=BACKEND) for shape in ((5, 9), (9, 7))]
    out = mf.zeros(5, 7, backend=BACKEND)
    inputs = [a.meta.layout, b.meta.layout]
    bound = load(BACKEND, plain_matmul(float32), out.shape, (), [out.meta.layout], inputs)
    for plan in bound.plans(out.address, a.address, b.address):
        trace = mf.simt.trace(plan)
        assert trace.is_complete
        assert trace.hazards() == []
    assert out.tolist() == [[9] * 7] * 5


def test_unaligned_addresses_are_loaded_one_element_at_a_time():
    x = mf.tensor(np.arange(64, dtype="f4"), backend=BACKEND)
    wide, narrow = [
        mf.simt.trace(
            BACKEND.compile(Plan(lambda x: x + 1, [v]).steps[0])
            .load()
            .plans(mf.zeros(64, backend=BACKEND).address, v.address)[0]
        )
        for v in (x[:60], x[1:61])
    ]
    assert set(wide.events.nbytes) == {16}
    assert set(narrow.events.nbytes) == {4}
    assert not wide.hazards()
    assert not narrow.hazards()


def test_a_launch_runs_its_launch_plan():
    x, out = mf.ones(100, backend=BACKEND), mf.zeros(100, backend=BACKEND)
    bound = BACKEND.compile(Plan(lambda x: x * 2.5, [x]).steps[0]).load()
    plan = bound.plans(out.address, x.address, 2.5)[0]
    assert plan.grid == bound.geometry.grid
    assert plan.block == bound.geometry.block
    assert out.tolist() == [0] * 100  # nothing has run yet
    mf.simt.run(plan)
    assert out.tolist() == [2.5] * 100


# Numbers


def test_numbers_take_the_type_of_the_kernel():
    assert type(to_kernel_number(0.1, float32)) is np.float32
    assert type(to_kernel_number(3, int32)) is np.int32
    assert type(to_kernel_number(True, bool_)) is np.uint8
    assert to_kernel_number(2**63 - 1, int64) == 2**63 - 1


@pytest.mark.parametrize(("number", "dtype"), [(2**31, int32), (-(2**31) - 1, int32), (2**63, int64)])
def test_numbers_that_do_not_fit(number, dtype):
    with pytest.raises(DTypeError, match=f"{number} does not fit {dtype}"):
        to_kernel_number(number, dtype)
    with pytest.raises(DTypeError, match="does not fit"):
        mf.ones(3, dtype=dtype, backend=BACKEND) + number


def test_an_empty_launch_runs_nothing():
    x = mf.ones(0, 3, backend=BACKEND)
    assert (x + 1).shape == (0, 3)
    launch = load(
        BACKEND, plain_matmul(float32), (0, 3), (), [Layout((0, 3), (3, 1), 0)], [row_major((0, 4)), row_major((4, 3))]
    )
    assert launch(0, 0, 0) is None


def test_device_memory_has_its_own_pool():
    x = mf.ones(1000, backend=BACKEND)
    y = x + 1
    address = y.address
    del y
    assert (x + 1).address == address
    BACKEND.synchronize()
