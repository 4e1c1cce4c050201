"""tensors.transforms: gradients of functions, and sources of calls."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError, GradientError, MinifuseError


@pytest.fixture(params=["python", "parallel"], autouse=True)
def backend(request):
    with mf.use_backend(request.param):
        yield request.param


def cube(x):
    return (x * x * x).sum()


def test_grad_is_the_gradient_as_a_function():
    x = mf.tensor([1.0, 2.0])
    assert mf.grad(cube)(x).tolist() == [3, 12]
    assert (x.grad, x.requires_grad) == (None, False)
    assert not mf.grad(cube)(x).requires_grad


def test_grads_nest():
    def derivative(f):
        return lambda x: mf.grad(f)(x).sum()

    a, f = np.array([0.5, 2.0]), cube
    for expected in (3 * a**2, 6 * a, [6, 6], [0, 0]):
        np.testing.assert_allclose(mf.grad(f)(mf.tensor(a)), expected)
        f = derivative(f)


def test_a_grad_inside_sees_both_variables():
    def inner(x):
        return (mf.grad(lambda y: (y**3 * x).sum())(x) * x).sum()  # d/dy at y = x is 3 x**3, so this is 3 x**4

    assert mf.grad(inner)(mf.tensor([2.0])).tolist() == [12 * 2**3]


def test_a_constant_inside_a_grad_is_not_confused_with_the_variable():
    """Perturbation confusion: d/dx (x * d/dy (x + y)) is 1, not 2."""
    f = mf.grad(lambda x: (x * mf.grad(lambda y: (x + y).sum())(x)).sum())
    assert f(mf.tensor([5.0])).tolist() == [1]


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 5), (1, 2), (-1, 2), (-2, 5), ((0, 1), (5, 2)), ((1, 0), (2, 5)), ([1], (2,)), ((0, 0), (5, 5)), ((0, -1), (5, 2))],
    ids=str,
)
def test_argnums_choose_the_arguments(argnums, expected):
    found = mf.grad(lambda x, y: x * y, argnums=argnums)(mf.tensor(2.0), mf.tensor(5.0))
    assert (tuple(g.item() for g in found) if isinstance(found, tuple) else found.item()) == expected


def test_one_tensor_twice_is_two_variables():
    x = mf.tensor([3.0])
    a, b = mf.grad(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(x, x)
    assert (a.tolist(), b.tolist()) == ([18], [9])


def test_other_arguments_are_passed_on():
    def f(x, n, *, scale):
        return (x**n * scale).sum()

    assert mf.grad(f)(mf.tensor([2.0]), 3, scale=10).tolist() == [120]


def test_an_argument_that_is_not_used_gets_zeros():
    x, y = mf.tensor([[1.0, 2.0]]), mf.tensor([3.0], dtype="float64")
    gx, gy = mf.grad(lambda x, y: (y * y).sum(), argnums=(0, 1))(x, y)
    assert (gx.tolist(), gx.dtype, gy.tolist()) == ([[0, 0]], mf.float32, [6])
    assert mf.grad(lambda x: mf.tensor(3.0))(x).tolist() == [[0, 0]]


def test_leaves_outside_keep_their_grad():
    w = mf.tensor([3.0], requires_grad=True)
    assert mf.grad(lambda x: (x * w).sum())(mf.tensor([2.0])).tolist() == [3]
    assert w.grad is None


def test_a_gradient_can_be_used_in_a_loss():
    """The gradient of |df/dx|^2 with respect to w, through mf.grad: f = w x^2, so |2 w x|^2 and 8 w x^2."""
    w = mf.tensor(3.0, requires_grad=True)
    x = mf.tensor(2.0, requires_grad=True)
    g = mf.grad(lambda x: (w * x * x).sum())(x)
    assert g.requires_grad
    (g * g).backward()
    assert (w.grad.item(), x.grad.item()) == (8 * 3 * 4, 8 * 9 * 2)


def test_the_result_is_detached_by_default():
    assert not mf.grad(cube)(mf.tensor([1.0])).requires_grad
    x = mf.tensor([1.0], requires_grad=True)
    assert mf.grad(cube)(x).requires_grad
    with mf.no_grad():
        assert not mf.grad(cube)(x).requires_grad
        assert mf.grad(cube)(x).tolist() == [3]


def test_a_function_may_branch_on_values():
    def absolute(x):
        return x if x > 0 else -x

    g = mf.grad(absolute)
    assert [g(mf.tensor(v)).item() for v in (-2.0, 3.0)] == [-1, 1]


@pytest.mark.parametrize(
    ("function", "inputs", "error", "message"),
    [
        (
            lambda x: x * 2,
            [mf.ones(3)],
            GradientError,
            r"the function returned shape \(3,\), expected a tensor of one element",
        ),
        (lambda x: None, [mf.ones(3)], GradientError, "the function returned NoneType"),
        (lambda x: x.sum(), [mf.ones(3, dtype=int)], DTypeError, "argument 0 is a tensor of int64, expected a"),
        (lambda x: x, [2.0], DTypeError, "argument 0 is float, expected a tensor of floats; choose others with argnums"),
    ],
)
def test_errors_say_which_argument(function, inputs, error, message):
    with pytest.raises(error, match=message):
        mf.grad(function)(*inputs)


@pytest.mark.parametrize("argnums", [1, -2, (0, 3)], ids=str)
def test_an_argument_that_is_not_there_is_an_error_of_ours(argnums):
    with pytest.raises(MinifuseError, match="argument"):
        mf.grad(cube, argnums=argnums)(mf.ones(3))


# Source


def test_source_captures_and_runs_nothing(backend):
    x = mf.ones(2, 3)
    before = x.tolist()
    text = mf.source(lambda x, c: (x * c).softmax(1), x, 2.5)
    assert text.startswith("def run(x0, x1):\n    m0 = allocate(64)\n    launch0(m0.address, x0.address, x1)\n")
    assert x.tolist() == before
    assert ("def kernel" in text) == (backend == "parallel")
    assert ("one operation at a time" in text) == (backend == "python")


def test_source_of_an_operator():
    assert "launch0" in mf.source(mf.exp, mf.ones(3))
    assert mf.source(mf.maximum, mf.ones(3), mf.ones(3)) == mf.source(lambda a, b: mf.maximum(a, b), mf.ones(3), mf.ones(3))


def test_source_shows_the_saved_tensors():
    assert "Call(plan" in mf.source(mf.exp, mf.ones(3, requires_grad=True))
    assert "Call" not in mf.source(mf.exp, mf.ones(3))
