"""custom_kernels.elementwise: kernels without raw arguments are traced, broadcast, differentiated and fused as operators."""

import threading
from functools import partial

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError, FuseError, ShapeError

HERE = __file__
DTYPES = [mf.float32, mf.float64, mf.int32, mf.int64, mf.bool_]


@mf.elementwise
def squared_diff(x, y):
    """(x - y) squared."""
    return (x - y) * (x - y)


@mf.elementwise
def polar(x, y):
    return mf.sqrt(x * x + y * y), mf.where(x > 0, y / x, 0)


def array(dtype, *shape):
    x = np.random.default_rng(0).uniform(-4, 4, shape)
    return (x > 0) if dtype is mf.bool_ else x.astype(dtype.numpy)


# What is computed


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_it_takes_any_number_type_on_every_backend(backend, dtype):
    x, y = array(dtype, 5, 7), array(dtype, 7)
    z = squared_diff(mf.tensor(x), mf.tensor(y))
    assert z.dtype is dtype
    assert np.allclose(z.numpy(), (x - y) * (x - y))


def test_it_promotes_as_operators_do(backend):
    x = mf.tensor([1, 2], dtype=mf.int32)
    for other in (1, 1.5, True, mf.tensor([1.0, 2.0]), mf.tensor([3, 4], dtype=mf.int64)):
        f = mf.elementwise(lambda a, b: a + b)
        assert f(x, other).dtype is (x + other).dtype
        assert np.array_equal(f(x, other).numpy(), (x + other).numpy())


def test_bools_have_logic(backend):
    f = mf.elementwise(lambda a, b: ((a & b) | ~a, a == b))
    a, b = mf.tensor([True, True, False]), mf.tensor([True, False, False])
    logic, equal = f(a, b)
    assert logic.tolist() == [True, False, True]
    assert equal.tolist() == [True, False, True]


@pytest.mark.parametrize(("left", "right"), [((5, 1), (3,)), ((), (2, 3)), ((2, 0), (1, 1)), ((4, 1, 6), (5, 1))])
def test_arguments_broadcast(backend, left, right):
    x, y = array(mf.float32, *left), array(mf.float32, *right)
    z = squared_diff(mf.tensor(x), mf.tensor(y))
    assert z.shape == np.broadcast_shapes(left, right)
    assert np.allclose(z.numpy(), (x - y) ** 2, atol=1e-6)


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[::-2, 1:], lambda x: x[:, :1].expand(6, 8), lambda x: x[2:3, 4:5]]
)
def test_arguments_have_any_layout(backend, view):
    x = view(mf.tensor(array(mf.float32, 6, 8)))
    assert np.allclose(squared_diff(x, 0.5).numpy(), (x.numpy() - 0.5) ** 2)


def test_several_results_are_a_tuple_of_tensors(backend):
    x, y = mf.tensor([[3.0], [-6.0]]), mf.tensor([4.0, 8.0, 0.5])
    length, ratio = polar(x, y)
    assert np.allclose(length.numpy(), np.hypot(x.numpy(), y.numpy()))
    assert np.allclose(ratio.numpy(), np.where(x.numpy() > 0, y.numpy() / x.numpy(), 0))
    first, second, third = mf.elementwise(lambda a, b: (a, 2.5, b * 2))(x, y)  # the first varies along one dim only
    assert first.shape == second.shape == third.shape == (2, 3)
    assert first.tolist() == [[3.0] * 3, [-6.0] * 3]
    assert second.tolist() == [[2.5] * 3] * 2
    (only,) = mf.elementwise(lambda a: (a + 1,))(x)
    assert only.tolist() == [[4.0], [-5.0]]


def test_a_result_has_memory_of_its_own(backend):
    x = mf.tensor([1.0, 2.0])
    y = mf.elementwise(lambda a: a)(x)
    y += 1
    assert x.tolist() == [1.0, 2.0]


def test_keywords_defaults_and_plain_values_are_arguments_too(backend):
    @mf.elementwise
    def f(x, scale=2.0, *others, kind="sum", shift=0, **more):
        y = x * scale + shift + more.get("extra", 0)
        for z in others:
            y = y + z if kind == "sum" else y * z
        return y

    x = mf.tensor([1.0, 2.0])
    assert f(x).tolist() == [2.0, 4.0]
    assert f(x, 3).tolist() == [3.0, 6.0]
    assert f(x=x, scale=x).tolist() == [1.0, 4.0]
    assert f(x, 1, 10, x).tolist() == [12.0, 14.0]
    assert f(x, 1, 10, x, kind="product", shift=1).tolist() == [20.0, 60.0]
    assert f(x, extra=x, shift=mf.tensor([[1.0], [2.0]])).shape == (2, 2)


def test_numbers_alone_are_computed_in_python():
    assert squared_diff(5, 2) == 9
    assert isinstance(squared_diff(5, 2), int)
    assert mf.elementwise(lambda x: mf.exp(x) if x > 0 else 0)(-1) == 0


def test_numpys_functions_and_scalars_are_known(backend):
    x = mf.tensor([0.5, 2.0])
    f = mf.elementwise(lambda a, b: np.maximum(np.exp(a), b) ** 2 + abs(a).clip(0.6, 1.5))
    expected = np.maximum(np.exp(x.numpy()), 3) ** 2 + x.numpy().clip(0.6, 1.5)
    assert np.allclose(f(x, np.float64(3)).numpy(), expected)
    assert np.allclose(f(x, np.full(2, 3, "f4")).numpy(), expected)


def test_it_converts_between_types(backend):
    f = mf.elementwise(lambda x: (x.to(mf.int64) // 2, x.dtype is mf.float32, x.to("bool")))
    whole, is_single, is_not_zero = f(mf.tensor([5.5, 0.0]))
    assert whole.tolist() == [2, 0]
    assert is_single.tolist() == [True, True]
    assert is_not_zero.tolist() == [True, False]


def test_the_index_of_an_element_counts_along_the_broadcast_shape(backend):
    f = mf.elementwise(lambda x, y: (mf.index(), mf.index(0), mf.index(-2) * 10 + mf.index(1), x + y))
    last, first, both, _ = f(mf.ones(3, 1), mf.ones(4))
    i, j = np.indices((3, 4))
    assert np.array_equal(last.numpy(), j)
    assert np.array_equal(first.numpy(), i)
    assert np.array_equal(both.numpy(), 10 * i + j)
    assert last.dtype is mf.int64


def test_one_calls_another(backend):
    @mf.elementwise
    def outer(x, y):
        return squared_diff(x, y) + squared_diff(x, 1) + mf.index()

    x, y = array(mf.float32, 4, 3), array(mf.float32, 3)
    expected = (x - y) ** 2 + (x - 1) ** 2 + np.arange(3)
    assert np.allclose(outer(mf.tensor(x), mf.tensor(y)).numpy(), expected, atol=1e-5)


def test_a_scalar_is_differentiated_through_it():
    x = mf.Scalar(3.0)
    squared_diff(x, 1.0).backward()
    assert x.grad == 4.0


# Gradients


def test_gradients_of_any_order(backend):
    x = mf.tensor([1.0, -2.0, 3.0], dtype=mf.float64, requires_grad=True)
    y = mf.tensor([[0.5], [2.0]], dtype=mf.float64, requires_grad=True)
    f = mf.elementwise(lambda a, b: (a - b) ** 3 * mf.exp(-b))
    mf.testing.gradcheck(f, x, y, second=True)


def test_each_of_several_results_has_its_gradient(backend):
    x = mf.tensor([1.0, 2.0], requires_grad=True)
    a, b = mf.elementwise(lambda v: (v * v, v * 3))(x)
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [8.0, 10.0]


def test_no_gradient_flows_to_integers_or_without_recording(backend):
    x = mf.tensor([1.0], requires_grad=True)
    with mf.no_grad():
        assert not squared_diff(x, 1).requires_grad
    assert squared_diff(x, mf.tensor([1])).requires_grad


# One kernel


def launches(function, *inputs):
    return function.source(*inputs).count("launch") // 2


def test_it_is_one_kernel():
    x = mf.ones(4, 6)
    assert launches(polar, x, mf.ones(6)) == 1
    text = polar.source(x, mf.ones(6))
    assert "sqrt(" in text
    assert "def kernel(start, stop, args):" in text
    assert "cuda.blockIdx" in polar.source(x, mf.ones(6), backend="cuda")


def test_inside_a_captured_function_it_is_a_part_of_its_kernel():
    text = mf.source(lambda x, y: squared_diff(x * 2, y).sum(1), mf.ones(4, 6), mf.ones(6))
    assert text.count("# launch") == 1


# Keys: what is read from outside

FACTOR = 2


def test_a_changed_global_or_closure_is_seen():
    global FACTOR
    shift = 1.0

    @mf.elementwise
    def f(x):
        return x * FACTOR + shift

    x = mf.tensor([1, 2])
    try:
        assert f(x).tolist() == [3.0, 5.0]
        shift = 10.0
        assert f(x).tolist() == [12.0, 14.0]
        FACTOR = 3
        assert f(x).tolist() == [13.0, 16.0]
    finally:
        FACTOR = 2
    shift = 1
    assert f(x).dtype is mf.int64
    shift = True
    assert f(x).tolist() == [3, 5]
    shift = 1.0
    assert f(x).dtype is mf.float64


def test_true_1_and_1_0_are_three_arguments():
    f = mf.elementwise(lambda x, k: x + k)
    x = mf.tensor([1, 2], dtype=mf.int32)
    assert [f(x, k).dtype for k in (1.0, 1, True, 1.0)] == [mf.float64, mf.int32, mf.int32, mf.float64]
    g = mf.elementwise(lambda x, ks: x + ks[0])
    assert [g(x, (k,)).dtype for k in (1.0, 1, 1.0)] == [mf.float64, mf.int32, mf.float64]


def test_functions_that_it_calls_count_as_outside():
    factor = 2.0

    def scaled(x):
        return x * factor

    f = mf.elementwise(lambda x: scaled(x) + 1)
    g = mf.elementwise(mf.elementwise(scaled))
    x = mf.tensor([1.0])
    assert (f(x).item(), g(x).item()) == (3.0, 2.0)
    factor = 4.0
    assert (f(x).item(), g(x).item()) == (5.0, 4.0)


def test_closure_values_are_constants_of_the_kernel():
    def poly(x, degree=2):
        y = 0
        for _ in range(degree):
            y = y * x + 1
        return y

    x, f = mf.tensor([2.0]), mf.elementwise(poly)
    assert f(x).tolist() == [3.0]
    assert mf.elementwise(partial(poly, degree=3))(x).tolist() == [7.0]
    poly.__defaults__ = (4,)
    assert f(x).tolist() == [15.0]
    with pytest.raises(FuseError, match="pass sizes and loop counts as Python numbers from outside the function"):
        f(x, 3)


def test_threads_agree():
    x = mf.tensor(array(mf.float32, 50))
    f = mf.elementwise(lambda a, k: a * k + mf.index())
    found = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: f(x, k % 3).numpy()})) for k in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 20
    for k, y in found.items():
        assert np.allclose(y, x.numpy() * (k % 3) + np.arange(50), atol=1e-5)


# What is refused

X = mf.ones(2, 3)


def refused(function, *inputs, error=FuseError):
    with pytest.raises(error) as caught:
        mf.elementwise(function)(*(inputs or (X,)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x if x > 0 else -x, "a branch on the value of an element"),
        (lambda x: x.sum(), ".sum: a function of elements sees one element of each argument"),
        (lambda x: x.max(), "use mf.maximum or mf.minimum of two elements"),
        (lambda x: x.reshape(6), ".reshape: a function of elements"),
        (lambda x: x * x.shape[0], ".shape: a function of elements"),
        (lambda x: x.T, ".T: a function of elements"),
        (lambda x: x @ x, "matmul: it works on whole arrays"),
        (lambda x: x[0], 'an index: the argument is a single element; name the argument in raw=("...",)'),
        (lambda x: [y for y in x], "a loop over an element"),  # noqa: C416
        (lambda x: float(x), "the value of an element"),
        (lambda x: x * np.ones(3), "an operator on an array and an element"),
        (lambda x: mf.index(2), "dim 2 is out of range"),
    ],
)
def test_errors_name_the_line_that_is_not_elementwise(function, words):
    error = ShapeError if "out of range" in words else FuseError
    message = refused(function, error=error)
    assert words in message
    if error is FuseError:
        assert f"{HERE}:{function.__code__.co_firstlineno}: " in message


def test_errors_name_the_line_of_a_branch():
    def f(x):
        y = x + 1
        return y if y > 0 else 0

    assert refused(f).startswith(f"{HERE}:{f.__code__.co_firstlineno + 2}: a branch on the value of an element: ")
    assert "use mf.where(c, a, b)" in refused(f)


def test_results_and_arguments_that_are_no_elements_are_refused():
    assert "returned None, expected an element" in refused(lambda x: None)
    assert "returned str, expected an element" in refused(lambda x: "1")
    assert "x is list; expected an array, a number" in refused(lambda x: x, [1.0])
    with pytest.raises(FuseError, match="got int, expected a function"):
        mf.elementwise(3)
    with pytest.raises(AttributeError, match="an element has no 'nothing'"):
        mf.elementwise(lambda x: x.nothing)(X)
    with pytest.raises(TypeError, match="missing a required argument"):
        squared_diff(X)


def test_arrays_from_outside_are_refused():
    table = mf.ones(3)
    numbers = np.ones(3)
    assert "reads an array from a closure or a global" in refused(lambda x: x * table)
    assert "reads an array from a closure or a global" in refused(lambda x: x * numbers[0])


def test_the_index_needs_an_element():
    with pytest.raises(FuseError, match=r"index: there is no current element; .* mf.arange"):
        mf.index()


def test_errors_of_operators_are_passed_on():
    with pytest.raises(DTypeError, match="sub: got bool"):
        squared_diff(X > 0, X > 0)
    with pytest.raises(ShapeError, match="do not broadcast"):
        squared_diff(mf.ones(2), mf.ones(3))


def test_repr_names_the_function():
    assert repr(squared_diff) == "<elementwise squared_diff(x, y)>"
    assert squared_diff.__doc__ == "(x - y) squared."
    assert squared_diff.__name__ == "squared_diff"
