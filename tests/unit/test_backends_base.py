"""backends.base: each backend implements the same four methods, with any function of scalars.

A backend that implements these four runs every kernel.
"""

import math
from itertools import combinations

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Backend, Operand, identity_for
from minifuse.backends.python import PythonBackend
from minifuse.backends.registry import get_backend
from minifuse.compiler.plan import Plan
from minifuse.core import operators as op
from minifuse.core.dtypes import DTYPES, bool_, float32, float64, int32, int64
from minifuse.core.errors import DTypeError
from minifuse.core.layout import Layout, row_major
from minifuse.ir.kernel_ir import Kernel, KernelParameter, Load, ReadOutput, reduce_expr
from tests.steps import load

BASE = np.random.default_rng(0).uniform(0.5, 2, (5, 4, 6))

ZOO = {
    "plain": BASE,
    "transposed": BASE.T,
    "sliced": BASE[1:, ::2, 1:-1],
    "flipped": BASE[::-1, :, ::-1],
    "expanded": np.broadcast_to(BASE[:, :1], (5, 4, 6)),
    "row": BASE[2],
    "column": BASE[:, 1, 3],
    "element": BASE[1, 2, 3, ...],
    "empty": BASE[:, 2:2],
    "one in each dim": BASE[:1, :1, :1],
}


@pytest.fixture(params=["python", "parallel"])
def backend(request):
    return get_backend(request.param)


@pytest.fixture(params=ZOO)
def array(request):
    return np.asarray(ZOO[request.param])


@pytest.fixture(params=["transposed", "flipped", "element", "empty"])  # a function of plain Python is compiled in each test
def some_array(request):
    return np.asarray(ZOO[request.param])


# Operands


@pytest.mark.parametrize("view", ZOO)
def test_an_operand_of_an_array_is_the_array(view):
    array = np.asarray(ZOO[view])
    operand = Operand.from_array(array)
    assert operand.data.ndim == 1
    np.testing.assert_array_equal(operand.array(), array)
    if array.size:
        assert operand.address == array.ctypes.data  # shared, also where there is one element


@pytest.mark.parametrize("view", ZOO)
def test_an_operand_at_an_address_reads_that_memory(view):
    array = np.asarray(ZOO[view])
    layout = Layout(array.shape, tuple(s // 8 for s in array.strides), 0)
    operand = Operand.at_address(array.ctypes.data, float64, layout)
    np.testing.assert_array_equal(operand.array(), array)
    low, high = layout.span()
    assert operand.data.size == high - low  # no more of the memory than the elements span


def test_operands_share_memory():
    array = np.zeros((3, 4))
    Operand.from_array(array[::-1, 1:]).array()[0, 0] = 5
    Operand.at_address(array.ctypes.data + 8, float64, Layout((3,), (4,), 0)).data[0] = 7
    assert array[2, 1] == 5
    assert array[0, 1] == 7


def test_a_new_operand_is_row_major():
    operand = Operand.empty((2, 3), int32)
    assert operand.layout is row_major((2, 3))
    assert operand.data.dtype == np.int32
    assert Operand.empty((), bool_).array().shape == ()
    assert Operand.empty((0, 3), bool_).data.size == 0


# The four methods


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "expected"),
    [(op.exp, np.exp), (op.relu, lambda x: np.maximum(x, 0)), (op.gelu, None)],
)
def test_map_an_operator(backend, array, function, expected):
    out = Operand.empty(array.shape, float64)
    backend.map(function, Operand.from_array(array), out)
    wanted = expected(array) if expected else np.vectorize(function.body, otypes=[float])(array)
    np.testing.assert_allclose(out.array(), wanted, rtol=1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * x + 1, lambda x: x * x + 1),
        (lambda x: x if x > 1 else x * 0.1, lambda x: np.where(x > 1, x, x * 0.1)),
        (lambda x: math.sin(x), np.sin),
        (lambda x: 2.5, lambda x: np.full(x.shape, 2.5)),
    ],
    ids=["arithmetic", "branch", "math", "constant"],
)
def test_map_any_function(backend, some_array, function, expected):
    out = Operand.empty(some_array.shape, float64)
    backend.map(function, Operand.from_array(some_array), out)
    np.testing.assert_allclose(out.array(), expected(some_array), rtol=1e-14)


def test_map_with_a_loop(backend):
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    out = Operand.empty((6,), int64)
    backend.map(collatz, Operand.from_array(np.array([1, 2, 3, 7, 27, 97])), out)
    assert out.data.tolist() == [0, 1, 7, 16, 111, 118]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a * b - a, lambda a, b: a * b - a),
        (lambda a, b: a if a > b else -b, lambda a, b: np.where(a > b, a, -b)),
        (lambda a, b: math.hypot(a, b), np.hypot),
        (lambda a, b: b, lambda a, b: b),
    ],
    ids=["arithmetic", "branch", "math", "one of them"],
)
def test_zip_any_function(backend, some_array, function, expected):
    other = another(some_array)
    out = Operand.empty(some_array.shape, float64)
    backend.zip(function, Operand.from_array(some_array), Operand.from_array(other), out)
    np.testing.assert_allclose(out.array(), expected(some_array, other), rtol=1e-14, atol=1e-15)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("operator", "expected"), [(op.mul, np.multiply), (op.maximum, np.maximum)])
def test_zip_an_operator(backend, array, operator, expected):
    other = another(array)
    out = Operand.empty(array.shape, float64)
    backend.zip(operator, Operand.from_array(array), Operand.from_array(other), out)
    np.testing.assert_array_equal(out.array(), expected(array, other))


def another(array):
    """Other elements of the same shape, in another order in memory."""
    return np.asarray(np.random.default_rng(1).uniform(0.5, 2, array.shape[::-1]).T)


def test_results_are_stored_in_any_layout(backend):
    memory = np.zeros((4, 12))
    backend.map(op.neg, Operand.from_array(BASE[0]), Operand.from_array(memory[::-1, ::2]))
    np.testing.assert_array_equal(memory[::-1, ::2], -BASE[0])
    assert not memory[:, 1::2].any()
    backend.map(lambda x: x if x > 1 else 0.5, Operand.from_array(BASE[0]), Operand.from_array(memory[::-1, ::2]))
    np.testing.assert_array_equal(memory[::-1, ::2], np.where(BASE[0] > 1, BASE[0], 0.5))


def larger(a, b):
    return a if a > b else b


def product(a, b):
    return a * b


product.identity = 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [op.add, op.mul, op.maximum])
def test_reduce_with_an_operator(backend, array, function):
    check_reduce(backend, array, function)


@pytest.mark.parametrize("function", [product, larger])
def test_reduce_with_any_function(backend, some_array, function):
    check_reduce(backend, some_array, function)


def check_reduce(backend, array, function):
    """Along every choice of dims."""
    numpy = {"add": np.sum, "mul": np.prod, "maximum": np.max, "product": np.prod, "larger": np.max}[
        getattr(function, "name", None) or function.__name__
    ]
    for count in range(1, array.ndim + 1):
        for dims in combinations(range(array.ndim), count):
            folded = [array.shape[d] for d in dims]
            if 0 in folded and function in (op.maximum, larger):
                continue
            shape = tuple(1 if d in dims else n for d, n in enumerate(array.shape))
            out = Operand.empty(shape, float64)
            backend.reduce(function, Operand.from_array(array), out, dims)
            np.testing.assert_allclose(out.array(), numpy(array, dims, keepdims=True), rtol=1e-13, err_msg=str(dims))


def test_reduce_keeps_the_order_of_elements(backend):
    """a - b is neither commutative nor associative: the fold goes from the first element to the last."""
    out = Operand.empty((2, 1), float64)
    backend.reduce(lambda a, b: a - b, Operand.from_array(np.array([[10.0, 1, 2], [7.0, 3, 1]])), out, (1,))
    assert out.data.tolist() == [7, 3]


def test_an_empty_reduction_is_the_identity(backend):
    empty = Operand.from_array(np.zeros((3, 0)))
    for function, expected in ((op.add, 0), (op.mul, 1), (op.maximum, -math.inf), (product, 1)):
        out = Operand.empty((3, 1), float64)
        backend.reduce(function, empty, out, (1,))
        assert out.data.tolist() == [expected] * 3, function


def test_an_empty_reduction_without_an_identity_is_an_error(backend):
    with pytest.raises(
        DTypeError, match=r"reduce: larger has no identity, so it cannot reduce shape \(3, 0\); set larger.identity"
    ):
        backend.reduce(larger, Operand.from_array(np.zeros((3, 0))), Operand.empty((3, 1), float64), (1,))


def test_an_operator_without_reduction_is_an_error(backend):
    with pytest.raises(DTypeError, match="sub has no identity, so it cannot reduce"):
        backend.reduce(op.sub, Operand.from_array(BASE), Operand.empty((5, 4, 1), float64), (2,))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_bools(backend, name):
    bools = np.array([[False, False], [True, False], [True, True]])
    out = Operand.empty((3, 1), bool_)
    backend.reduce(getattr(op, name), Operand.from_array(bools), out, (1,))
    assert out.data.tolist() == ([False, True, True] if name == "maximum" else [False, False, True])


@pytest.mark.parametrize("dtype", DTYPES)
def test_methods_on_every_dtype(backend, dtype):
    array = np.array([[1, 0, 1], [1, 1, 1]]).astype(dtype.numpy)
    out = Operand.empty((2, 3), dtype)
    backend.map(lambda x: x, Operand.from_array(array), out)
    np.testing.assert_array_equal(out.array(), array)
    total = Operand.empty((2, 1), dtype)
    backend.reduce(op.mul, Operand.from_array(array), total, (1,))
    np.testing.assert_array_equal(total.array(), array.astype(int).prod(1, keepdims=True))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((1, 1), (1, 1)),
        ((2, 3, 4), (2, 4, 5)),
        ((3, 0), (0, 5)),
        ((0, 4), (4, 5)),
        ((2, 1, 3, 4), (2, 1, 4, 2)),
    ],
)
def test_matmul(backend, a, b):
    g = np.random.default_rng(0)
    x, y = g.standard_normal(a), g.standard_normal(b)
    for left, right in (
        (x, y),
        (x[..., ::-1, :], y),
        (np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2), y),
    ):
        out = Operand.from_array(np.full((*a[:-1], b[-1]), np.nan))
        backend.matmul(Operand.from_array(left), Operand.from_array(right), out)
        np.testing.assert_allclose(out.array(), left @ right, rtol=1e-12, atol=1e-14)


def test_matmul_of_a_repeated_batch(backend):
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4))
    many = Operand.from_array(np.broadcast_to(x, (5, 3, 4)))
    out = Operand.empty((5, 3, 3), float64)
    backend.matmul(many, Operand.from_array(np.broadcast_to(y.T, (5, 4, 3))), out)
    np.testing.assert_allclose(out.array(), np.broadcast_to(x @ y.T, (5, 3, 3)))


# The default of `bind`


class Four(PythonBackend):
    """Four methods, and nothing else; counts what it is asked for."""

    name = "four"

    def __init__(self):
        self.asked = []

    def map(self, op, a, out):
        self.asked.append("map")
        super().map(op, a, out)

    def zip(self, op, a, b, out):
        self.asked.append("zip")
        super().zip(op, a, b, out)

    def reduce(self, op, a, out, dims):
        self.asked.append("reduce")
        super().reduce(op, a, out, dims)


FUSED = {
    "chain": lambda x: mf.tanh(mf.relu(x + 1) * x - 2.5),
    "where": lambda x: mf.where(x > 1, x, x * 0.1),
    "softmax": lambda x: x.softmax(1),
    "columns": lambda x: mf.exp(x.mean(0)) * x,
    "two outputs": lambda x: (x / x.sum(1, True), x.max(1)),
    "variance": lambda x: x.var((0, 2)),
    "argmax": lambda x: x.argmax(2),
    "any": lambda x: (x > 1.5).any(1),
    "product": lambda x: x[0] @ x[1].T + x[2, 0, 0],
}


@pytest.mark.parametrize("name", FUSED)
def test_four_methods_run_a_fused_function(name):
    results = []
    for backend in (Four(), get_backend("parallel")):
        x = mf.Tensor.from_numpy(BASE, backend)
        plan = Plan(FUSED[name], [x])
        y = plan.run(x)
        results.append([v.numpy() for v in (y if isinstance(y, tuple) else (y,))])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        assert mine.dtype == theirs.dtype
    assert Four.compile is Backend.compile


def test_where_needs_no_method_of_three_operands():
    backend = Four()
    x = mf.Tensor.from_numpy(np.array([1.0, np.nan, np.inf]), backend)
    y = mf.where(x > 0, x, 5.0)
    assert y.tolist() == [1, 5, math.inf]
    assert set(backend.asked) == {"map", "zip"}


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_where_keeps_each_value_as_it_is(dtype):
    class Whole(Four):
        def zip(self, op, a, b, out):
            values = [op(*pair) for pair in zip(a.array().tolist(), b.array().tolist(), strict=True)]
            out.array()[...] = np.array(values)  # of floats and integers together, NumPy makes floats

    values = {"float64": [-0.0, math.inf, 1.5], "int64": [2**63 - 1, -(2**63), 2**53 + 1], "bool": [True, False, True]}[
        dtype
    ]
    backend = Whole()
    c, x, y = (mf.Tensor.from_numpy(np.array(v), backend) for v in ([True, False, True], values, values[::-1]))
    assert str(mf.where(c, x, y).tolist()) == str([values[0], values[1], values[2]])


def test_decomposed_stores_rows_and_elements():
    x, layout = Load(0, float64), row_major((2, 3))
    total = reduce_expr(op.add, x)
    kernel = Kernel((x / total * KernelParameter(0, float64),), (total,))
    out, row, data = np.zeros((2, 3)), np.zeros((2, 1)), np.arange(6.0).reshape(2, 3) + 1
    layouts = [layout, row_major((2, 1)).expand(2, 3)]
    launch = load(PythonBackend(), kernel, (2, 3), (1,), layouts, [layout])
    launch(out.ctypes.data, row.ctypes.data, data.ctypes.data, 10.0)
    np.testing.assert_allclose(out, data / data.sum(1, keepdims=True) * 10)
    np.testing.assert_array_equal(row, data.sum(1, keepdims=True))


def test_decomposed_in_place_reads_before_it_writes():
    x, layout = np.arange(4.0), row_major((4,))
    kernel = Kernel((ReadOutput(0, float64) * 2 + ReadOutput(1, float64), ReadOutput(0, float64)), ())
    y = np.ones(4)
    load(PythonBackend(), kernel, (4,), (), [layout, layout], [])(x.ctypes.data, y.ctypes.data)
    assert x.tolist() == [1, 3, 5, 7]
    assert y.tolist() == [0, 1, 2, 3]


def test_a_reduction_of_no_elements_stores_its_identity():
    launch = load(
        PythonBackend(),
        Kernel((), (reduce_expr(op.maximum, Load(0, float32)),)),
        (3, 0),
        (1,),
        [row_major((3, 1)).expand(3, 0)],
        [row_major((3, 0))],
    )
    out = np.zeros(3, np.float32)
    launch(out.ctypes.data, out.ctypes.data)
    assert out.tolist() == [-math.inf] * 3


def test_a_reduction_starts_with_its_initial_value():
    assert identity_for(op.add, float32) == 0
    assert identity_for(product, float32) == 1
    assert identity_for(larger, float32) is None


def test_a_backend_without_methods_supports_no_extensions():
    operand = Operand.from_array(np.zeros(3))
    for call in (
        lambda b: b.map(op.exp, operand, operand),
        lambda b: b.zip(op.add, operand, operand, operand),
        lambda b: b.reduce(op.add, operand, operand, (0,)),
        lambda b: b.matmul(operand, operand, operand),
    ):
        with pytest.raises(NotImplementedError):
            call(Backend())
