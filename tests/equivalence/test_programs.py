"""Random programs: one operation after the other, and captured as one function, on every backend. NumPy is the judge."""

import numpy as np
import pytest
from hypothesis import given

import minifuse as mf
from minifuse.compiler.plan import call
from minifuse.testing import Program, assert_close, expressions, gradcheck
from minifuse.testing.programs import BINARY, UNARY, ProgramStep, reduce_operation, view_operation
from tests.examples import share

from .meanings import BACKENDS

STEP = 1e-6
MANY = 1000  # numbers that may meet in one
LARGE = 16.0  # of what is added up

every_backend = pytest.mark.parametrize("backend", BACKENDS)
RUNS = {"eager": lambda program, *xs: program(*xs), "captured": call}


def sample(program, dtype="float64"):
    return [np.random.default_rng(k).uniform(-1.5, 1.5, shape).astype(dtype) for k, shape in enumerate(program.shapes)]


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def weights_of(values):
    return [np.random.default_rng(k).uniform(0.5, 1.5, v.shape) for k, v in enumerate(values)]


def differences(program, arrays, k):
    """What each element of input k receives, as NumPy has it."""
    found = np.empty(arrays[k].shape)
    for index in np.ndindex(found.shape):
        sides = []
        for step in (STEP, -STEP):
            moved = [a.copy() for a in arrays]
            moved[k][index] += step
            values = as_tuple(program.numpy(*moved))
            sides.append([v * w for v, w in zip(values, weights_of(values), strict=True)])
        found[index] = sum((up - down).sum() for up, down in zip(*sides, strict=True)) / (2 * STEP)
    return found


def check(backend, run, program):
    """Values, dtypes and gradients of a program in float64."""
    arrays = sample(program)
    xs = [mf.tensor(a, backend=backend, requires_grad=True) for a in arrays]
    outputs, expected = as_tuple(RUNS[run](program, *xs)), as_tuple(program.numpy(*arrays))
    for y, right, w in zip(outputs, expected, weights_of(expected), strict=True):
        assert y.dtype is mf.float64
        assert_close(y, right, "program", n=MANY, scale=LARGE)
        if y.requires_grad:
            y.backward(mf.tensor(w, backend=backend), retain_graph=True)
    for k, x in enumerate(xs):
        grad = mf.zeros_like(x) if x.grad is None else x.grad
        assert_close(grad, differences(program, arrays, k), "difference", scale=LARGE, what=f"the gradient of x{k}")


@pytest.mark.sampled(2, each="backend")
@every_backend
@pytest.mark.parametrize("run", RUNS)
@given(program=expressions())
def test_values_and_gradients(backend, run, program):
    check(backend, run, program)


def square(*steps):
    """A program on a square matrix, where shapes do not tell rows from columns."""
    return Program([(4, 4)], [ProgramStep(*step) for step in steps], [len(steps)])


ROWS, COLUMNS = reduce_operation("sum", 1, True), reduce_operation("sum", 0, True)
TRANSPOSED = view_operation("permute", (1, 0))
SQUARES = {
    "rows by rows": square((ROWS, (0,)), (BINARY["div"], (0, 1))),
    "rows by columns": square((ROWS, (0,)), (TRANSPOSED, (1,)), (BINARY["div"], (0, 2))),
    "columns by rows": square((COLUMNS, (0,)), (TRANSPOSED, (1,)), (BINARY["div"], (0, 2))),
    "both": square((ROWS, (0,)), (COLUMNS, (0,)), (BINARY["mul"], (1, 2)), (BINARY["sub"], (3, 0))),
    "a matrix and its transpose": square((TRANSPOSED, (0,)), (BINARY["mul"], (0, 1)), (ROWS, (2,)), (BINARY["sub"], (1, 3))),
    "a fold of a fold": square(
        (UNARY["exp"], (0,)), (ROWS, (1,)), (BINARY["div"], (1, 2)), (COLUMNS, (3,)), (BINARY["mul"], (1, 4))
    ),
}


@pytest.mark.sampled(2, each="name")
@every_backend
@pytest.mark.parametrize("name", SQUARES)
def test_rows_and_columns_of_a_square_are_not_mixed_up(backend, name):
    check(backend, "captured", SQUARES[name])


@every_backend
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap_around_inside_a_kernel(backend, dtype):
    """What overflows on the way is not stored, and must wrap around all the same."""
    limits = np.iinfo(dtype)
    a, b = [
        x.reshape(-1)
        for x in np.meshgrid(np.array([limits.min, limits.max, -3, 2, limits.max - 1], dtype), [limits.max, -1, 5])
    ]

    def program(x, y):
        return (x + y) // 3, (x - y) % 7, x * y > x, abs(-x) < 0

    found = call(program, mf.tensor(a, backend=backend), mf.tensor(b.astype(dtype), backend=backend))
    with np.errstate(over="ignore"):
        for y, right in zip(found, program(a, b.astype(dtype)), strict=True):
            np.testing.assert_array_equal(y.numpy(), right)


ORDERS = {  # each side alone wraps around; a compiler that takes for granted that nothing overflows folds the comparison
    "x + 1 > x": lambda x, y: x + 1 > x,
    "x + y >= x": lambda x, y: x + abs(y) >= x,
    "x - 1 < x": lambda x, y: x - 1 < x,
    "x - y < 0": lambda x, y: (x - abs(y)) < 0,
    "2x // 2": lambda x, y: (x * 2) // 2,
    "xx >= 0": lambda x, y: x * x >= 0,
    "x ** 3 // x": lambda x, y: x**3 // x,
    "-x < 0": lambda x, y: (-x < 0) & (x > 0),
    "|x| >= 0": lambda x, y: abs(x) >= 0,
    "x ^ y": lambda x, y: ((x & y) + (x | y)) - y == x,
}


@pytest.mark.sampled(2, each="name")
@every_backend
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", ORDERS)
def test_integers_that_wrapped_are_compared_as_they_are(backend, dtype, name):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = np.array([least, least + 1, -3, 2, most // 2 + 1, most - 1, most] * 7, dtype)
    b = np.roll(a, 3)
    found = call(ORDERS[name], mf.tensor(a, backend=backend), mf.tensor(b, backend=backend))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.numpy(), ORDERS[name](a, b))


@every_backend
@pytest.mark.parametrize("dims", [None, 0, 1])
def test_reductions_of_integers_wrap_around(backend, dims):
    """All terms are positive, and yet some sums and products are not."""
    a = np.full((5, 33), 2**58 + 3)
    a[3] = 1

    def program(x):
        return abs(x).sum(dims) > 0, (x * x).prod(dims) >= 0, abs(x).sum(dims), x.prod(dims)

    found = call(program, mf.tensor(a, backend=backend))
    with np.errstate(over="ignore"):
        for y, right in zip(found, program(a), strict=True):
            np.testing.assert_array_equal(y.numpy(), right)


@pytest.mark.sampled(2)
@every_backend
@given(program=expressions(inputs=3, rounding=True))
def test_values_in_float32_and_between(backend, program):
    """The first input in float32, the second in float64, and casts on the way."""
    arrays = [a.astype(dtype) for a, dtype in zip(sample(program), ["float32", "float64", "float32"], strict=True)]
    xs = [mf.tensor(a, backend=backend) for a in arrays]
    for y, right in zip(as_tuple(call(program, *xs)), as_tuple(program.numpy(*arrays)), strict=True):
        assert_close(y.to(mf.float32), right, "program", scale=LARGE)


@share(0.25)
@given(program=expressions(depth=5, max_dims=2, max_side=4))
def test_second_derivatives(program):
    xs = [mf.tensor(a, requires_grad=True) for a in sample(program)]
    assert gradcheck(lambda *xs: call(program, *xs), *xs, second=True)
