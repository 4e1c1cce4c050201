"""What cannot be fused: one error that says where, what, why and what to do; nothing runs twice, nothing is half-written."""

import inspect
import math
import operator
import re

import numpy as np
import pytest

import minifuse as mf

from .functions import Counter

HERE = __file__


def x_of(*shape, dtype="float32", **options):
    return mf.tensor(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape), dtype, **options)


def line_of(function):
    """The line of the function's source that is marked."""
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if "# here" in line)


# Functions of a vector, each with a line that cannot be captured; what the message says; and whether it runs unfused.


def branch(x):
    if x[0] > 0:  # here
        return x * 2
    return x


def loop(x):
    while x.sum() < 0:  # here
        x = x * 2
    return x


def and_(x):
    return x[0] > 0 and x  # here


def not_(x):
    return x * (not x[0])  # here


def assertion(x):
    assert (x > 0).all()  # here
    return x


def contains(x):
    return x if 3.0 in x else -x  # here


def item(x):
    return x * x[0].item()  # here


def as_float(x):
    return x * float(x.sum())  # here


def as_int(x):
    return x * int(x[0])  # here


def tolist(x):
    return x * x.tolist()[1]  # here


def numpy_method(x):
    return x * x.numpy().max()  # here


def asarray(x):
    return x * np.asarray(x)[0]  # here


def np_array(x):
    return x * float(np.array(x).sum())  # here


def math_function(x):
    return x * math.sqrt(x[0])  # here


def rounded(x):
    return x * round(float(x[1]))  # here


def index_by_a_tensor(x):
    return x[x.argmax()]  # here


def slice_by_a_tensor(x):
    return x[: x.argmax()]  # here


def size_from_a_tensor(x):
    return mf.zeros(x.argmax()) + x[0]  # here


def range_of_a_tensor(x):
    return sum(x * k for k in range(x.argmax()))  # here


def list_index(x):
    return [x, x * 2, x * 3][x.argmin()]  # here


def other_backend(x):
    return x.to("python" if x.backend != "python" else "parallel") * 2  # here


def shown(x):
    return x * len(f"{x.tolist()}")  # here


def pickled(x):
    import pickle

    return x if pickle.dumps(x) else -x  # here


def sorted_by_value(x):
    return sorted([x[0], x[1]])[0]  # here


def max_of_python(x):
    return max(x[0], x[1])  # here


def unknown_to_numpy(x):
    return np.convolve(x, x, "same")  # here


def partition(x):
    return np.partition(x, 1)  # here


def by_operator(x):
    return [10, 20, 30, 40][operator.index(x.argmax())] * x  # here


VALUES = [
    branch, loop, and_, not_, assertion, contains, item, as_float, as_int, tolist, numpy_method, asarray, np_array,
    math_function, rounded, index_by_a_tensor, slice_by_a_tensor, size_from_a_tensor, range_of_a_tensor, list_index,
    other_backend, shown, pickled, sorted_by_value, max_of_python, unknown_to_numpy, partition, by_operator,
]  # fmt: skip


@pytest.mark.parametrize("function", VALUES, ids=lambda f: f.__name__)
def test_reading_a_traced_value_names_line_and_remedy(function):
    ran = Counter()

    def run(x):
        ran.count()
        return function(x)

    f, x = mf.fuse(run), x_of(4)
    before = x.tolist()
    with pytest.raises(mf.FuseError) as found:
        f(x)
    message = str(found.value)
    assert f"{HERE}:{line_of(function)}" in message, message
    assert re.search(r"[;:] (use|return|look|compute|pass|move|write|call|convert)", message), message  # what to do
    assert len(message) < 500
    assert ran.total == 1, "tried again"
    assert x.tolist() == before


# What is wrong unfused too: the same error, with a note where.


def unequal_shapes(x):
    return x + x[:-1]  # here


def unequal_inner_sizes(x):
    return x[None] @ x[None]  # here


def no_such_dim(x):
    return x.sum(3)  # here


def no_such_reshape(x):
    return x.reshape(3, 5)  # here


def out_of_range(x):
    return x[7]  # here


def too_many_indices(x):
    return x[0, 0]  # here


def no_such_dtype(x):
    return x.to("float17")  # here


def bools_have_no_minus(x):
    return -(x > 0)  # here


def floats_into_integers(x):
    y = mf.zeros(4, dtype="int64")
    y += x  # here
    return y


def does_not_broadcast_back(x):
    y = x[:1] * 1
    y += x  # here
    return y


def no_elements(x):
    return x[:0].max()  # here


def iteration_of_nothing(x):
    return list(x.sum())  # here


def len_of_nothing(x):
    return x * len(x.sum())  # here


def expanded_target(x):
    y = (x[:1] * 1).expand(4)
    y += 1  # here
    return y


def no_such_method(x):
    return x.no_such_method()  # here


def users_own(x):
    raise KeyError("mine")  # here


def nothing_requires_a_gradient(x):
    (x * 2).sum().backward()  # here
    return x


def more_than_a_number(x):
    (x.detach().requires_grad_() * 2).backward()  # here
    return x


def grad_of_a_vector(x):
    return mf.grad(lambda x: x * 2)(x)  # here


def integers_have_no_gradient(x):
    return x.to("int64").requires_grad_()  # here


def wrong_operand(x):
    return x + "text"  # here


def wrong_condition(x):
    return mf.where(x > 0, x, "text")  # here


def several_elements_as_truth(x):
    return x if x else -x  # here


WRONG = [
    unequal_shapes, unequal_inner_sizes, no_such_dim, no_such_reshape, out_of_range, too_many_indices, no_such_dtype,
    bools_have_no_minus, floats_into_integers, does_not_broadcast_back, no_elements, iteration_of_nothing, len_of_nothing,
    expanded_target, no_such_method, users_own, nothing_requires_a_gradient, more_than_a_number, grad_of_a_vector,
    integers_have_no_gradient, wrong_operand, wrong_condition,
]  # fmt: skip


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_errors_are_those_of_the_unfused_call(function):
    ran = Counter()

    def run(x):
        ran.count()
        return function(x)

    with pytest.raises(Exception) as expected:  # noqa: PT011  # any
        function(x_of(4))
    x = x_of(4)
    with pytest.raises(type(expected.value)) as found:
        mf.fuse(run)(x)
    assert type(found.value) is type(expected.value)
    assert str(found.value).removeprefix(f"{HERE}:{line_of(function)}: ") == str(expected.value)
    assert ran.total == 1
    told = [str(found.value), *getattr(found.value, "__notes__", [])]
    frames = {(entry.path.name, entry.lineno + 1) for entry in found.traceback}
    where = any(f"{HERE}:{line_of(function)}" in text for text in told)
    assert where or (HERE.rpartition("/")[2], line_of(function)) in frames


@pytest.mark.parametrize("function", [unequal_shapes, unequal_inner_sizes, floats_into_integers], ids=lambda f: f.__name__)
def test_the_note_names_the_line(function):
    with pytest.raises(mf.MinifuseError) as found:
        mf.fuse(function)(x_of(4))
    told = [str(found.value), *getattr(found.value, "__notes__", [])]
    assert any(f"{HERE}:{line_of(function)}" in text for text in told), told


# Nothing is half-written, and the next call works.


def test_arguments_are_as_before_after_an_error_in_the_middle():
    count = Counter()

    @mf.fuse
    def f(x, y, steps):
        count.count()
        x += 1
        y[1:] *= 2
        for step in steps:
            x = step(x)
        return x

    x, y = x_of(4), x_of(3)
    bad = [lambda x: x * 2, lambda x: x + mf.zeros(5)]
    for _ in range(2):
        with pytest.raises(mf.ShapeError):
            f(x, y, bad)
    assert count.total == 2
    with pytest.raises(mf.FuseError):
        f(x, y, [lambda x: x if x[0] > 0 else -x])
    assert (x.tolist(), y.tolist()) == ([1, 2, 3, 4], [1, 2, 3])
    assert f(x, y, [lambda x: x * 2]).tolist() == [4, 6, 8, 10]
    assert (x.tolist(), y.tolist()) == ([2, 3, 4, 5], [1, 4, 6])


def test_gradients_are_as_before_after_an_error_in_the_middle():
    p = mf.tensor([1.0, 2.0], requires_grad=True)
    q = mf.tensor([1.0, 2.0], requires_grad=True)
    (p * 3).sum().backward()
    before = p.grad

    @mf.fuse
    def f(fails):
        (p * q).sum().backward()
        p.grad = None
        if fails:
            p.sum().item()
        return p.detach() * 2

    for _ in range(2):
        with pytest.raises(mf.FuseError):
            f(True)
        assert p.grad is before
        assert q.grad is None
    assert f(False).tolist() == [2, 4]
    assert p.grad is None
    assert q.grad.tolist() == [1, 2]


def test_settings_are_as_before_after_an_error_in_the_middle():
    x = mf.tensor([1.0, 2.0])

    @mf.fuse
    def f(x):
        x.requires_grad = True
        with mf.no_grad():
            return x * x[0].item()

    with pytest.raises(mf.FuseError):
        f(x)
    assert not x.requires_grad
    assert (mf.tensor([1.0], requires_grad=True) * 2).requires_grad  # calls are recorded again
    assert (x + 1).tolist() == [2, 3]  # and run again


def test_optimizers_are_as_before_after_an_error_in_the_middle():
    p = mf.tensor([1.0, 2.0], requires_grad=True)
    optimizer = mf.optim.SGD([p], lr=0.5, momentum=0.9)

    @mf.fuse
    def step(x, fails):
        optimizer.zero_grad()
        loss = (p * x).sum()
        loss.backward()
        optimizer.step()
        if fails:
            loss.item()
        return loss

    x = mf.ones(2)
    with pytest.raises(mf.FuseError):
        step(x, True)
    assert p.tolist() == [1, 2]
    assert p.grad is None
    assert step(x, False).item() == 3
    assert p.tolist() == [0.5, 1.5]


def test_an_error_in_an_inner_fused_function_is_reported_once():
    ran = Counter()

    @mf.fuse
    def inner(x):
        ran.count()
        return x * x[0].item()  # here

    @mf.fuse
    def outer(x):
        return inner(x) + 1

    with pytest.raises(mf.FuseError, match=re.escape(HERE)):
        outer(x_of(3))
    assert ran.total == 1


def test_the_function_runs_once_for_a_kind_of_call():
    ran = Counter()

    @mf.fuse
    def f(x):
        ran.count()
        return x * 2

    for _ in range(3):
        f(x_of(4))
    f(x_of(5))
    f(x_of(4))
    f.plan(x_of(4))
    f.source(x_of(4))
    assert ran.total == 2


# What comes in, and what comes out.


@pytest.mark.parametrize(
    "result",
    [None, 3, 2.5, True, "text", (), [], {}, (None, {"a": [1, "b"]}), range(3), slice(1, 2), mf.float32, int],
    ids=repr,
)
def test_results_that_are_no_tensors_are_returned(result):
    f = mf.fuse(lambda x: result)
    for _ in range(2):
        assert f(x_of(3)) == result
        assert type(f(x_of(3))) is type(result)
    y, same = mf.fuse(lambda x: (x * 2, result))(x_of(2))
    assert (y.tolist(), same) == ([2, 4], result)


def test_an_object_that_holds_a_tensor_is_refused_or_right():
    """A capture's tensor in an object of the user would have no value."""

    class Pair:
        def __init__(self, a):
            self.a = a

    f = mf.fuse(lambda x: Pair(x * 2))
    with pytest.raises(mf.FuseError, match=r"Pair|tuple|list|dict"):
        f(x_of(2))


@pytest.mark.parametrize(
    "make", [set, frozenset, lambda x: iter(x), lambda x: (y for y in x)], ids=["set", "frozenset", "iter", "generator"]
)
def test_other_containers_of_tensors_are_refused(make):
    with pytest.raises(mf.FuseError):
        mf.fuse(lambda x: make([x * 2]))(x_of(2))


NO_TENSORS = {
    "made": (lambda: mf.ones(3) * 2, ()),
    "made of a number": (lambda n: mf.full((2,), n) + 1, (3.0,)),
    "numbers": (lambda n: n * 2, (4,)),
    "nothing": (lambda: 3, ()),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_no_tensors_at_all(name):
    """As unfused, on the default backend."""
    function, inputs = NO_TENSORS[name]
    f, expected = mf.fuse(function), function(*inputs)
    for _ in range(2):
        found = f(*inputs)
        if isinstance(expected, mf.Tensor):
            assert (found.backend, found.dtype, found.tolist()) == (expected.backend, expected.dtype, expected.tolist())
        else:
            assert found == expected


def test_operands_on_two_backends():
    x, y = x_of(3, backend="python"), x_of(3, backend="parallel")
    with pytest.raises(mf.BackendError, match="two backends"):
        mf.fuse(lambda x, y: x + y)(x, y)
    with pytest.raises(mf.BackendError):
        mf.fuse(lambda x: x + mf.ones(3, backend="parallel"))(x)


def test_backward_through_the_outside():
    w = mf.tensor([1.0, 2.0], requires_grad=True)
    y = w * 2

    @mf.fuse
    def f(y):
        (y * y).sum().backward()
        return y

    with pytest.raises(mf.FuseError, match="before"):
        f(y)
    assert w.grad is None
    (y * y).sum().backward()
    assert w.grad.tolist() == [8, 16]


def test_wrong_arguments_are_the_functions_own_error():
    f = mf.fuse(lambda x, y: x + y)
    for inputs, named in (((x_of(2),), {}), ((x_of(2),) * 3, {}), ((x_of(2),), {"z": 1})):
        with pytest.raises(TypeError, match="argument"):
            f(*inputs, **named)


def test_only_functions_can_be_fused():
    with pytest.raises(mf.FuseError, match="function"):
        mf.fuse(3)
    with pytest.raises(mf.FuseError, match="recompute"):
        mf.fuse(recompute="sometimes")(lambda x: x)


def test_generators_and_coroutines_are_refused():
    """They would run after the capture has ended."""

    def generate(x):
        yield x * 2

    async def wait(x):
        return x * 2

    for function in (generate, wait):
        with pytest.raises(mf.FuseError):
            mf.fuse(function)(x_of(2))


@pytest.mark.filterwarnings("ignore")
def test_a_long_chain_and_a_deep_nest():
    """Thousands of functions are some kernels, not a RecursionError."""

    @mf.fuse
    def f(x):
        for k in range(2000):
            x = x * 0.5 + k % 3
        return x

    x = expected = x_of(3, backend="python")
    for k in range(2000):
        expected = expected * 0.5 + k % 3
    np.testing.assert_allclose(f(x).numpy(), expected.numpy(), rtol=1e-6)
