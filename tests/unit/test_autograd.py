"""core.autograd: which calls are recorded, which tensors are saved and for how long, gradients, and errors."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler.plan import call
from minifuse.core import autograd, dispatch
from minifuse.core.errors import GradientError

FREED = r"freed its saved values; call backward\(retain_graph=True\) the first time, or compute the value again"


def leaf(*numbers, dtype="float64", **more):
    return mf.tensor(list(numbers), dtype=dtype, requires_grad=True, **more)


# What is recorded


def test_a_result_wants_a_gradient_where_an_input_does():
    x, c = leaf(1, 2), mf.tensor([1.0, 2.0], dtype="float64")
    assert (x * c).requires_grad
    assert not (c * c).requires_grad
    assert (c @ x).requires_grad
    assert x[0].requires_grad
    assert x.T.requires_grad
    assert x.sum().requires_grad
    assert x.clone().requires_grad
    assert x.to(mf.float32).requires_grad


def test_only_floats_have_gradients():
    x = leaf(1, 2, 3)
    for y in (x > 1, x == x, mf.isnan(x), x.argmax(), x.to(mf.int64), (x > 2).any(), (x > 2).sum()):
        assert not y.requires_grad
        assert y.is_leaf
    assert mf.where(x > 1, x, 0).requires_grad


def test_detach_cuts():
    x = leaf(1, 2, 3)
    y = x.detach()
    assert (y.requires_grad, y.is_leaf) == (False, True)
    assert y.buffer is x.buffer
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


def test_a_leaf_is_a_tensor_that_was_not_computed():
    x = leaf(1, 2)
    assert x.is_leaf
    assert not (x * 2).is_leaf
    assert not x[0].is_leaf
    assert (mf.zeros(2) * 2).is_leaf


# no_grad


def test_no_grad_records_nothing():
    x = leaf(1, 2)
    with mf.no_grad():
        for y in (x * 2, x[0], x.T, x.sum(), x.softmax(0), x.to(mf.float32), x.clone()):
            assert (y.requires_grad, y.grad_fn) == (False, None)
    assert (x * 2).requires_grad


def test_no_grad_nests_and_one_object_may_be_used_again():
    x, off = leaf(1), mf.no_grad()
    with off:
        with off, mf.no_grad():
            assert not (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_no_grad_ends_with_an_error():
    x = leaf(1)
    with pytest.raises(ZeroDivisionError), mf.no_grad():
        _ = 1 / 0
    assert (x * 2).requires_grad


def test_no_grad_is_a_decorator():
    @mf.no_grad()
    def evaluate(x, scale=1):
        """Twice x."""
        return x * 2 * scale

    assert not evaluate(leaf(1), scale=3).requires_grad
    assert evaluate.__name__ == "evaluate"
    assert evaluate.__doc__ == "Twice x."


def test_no_grad_may_be_left_inside_by_recording():
    x = leaf(1)
    with mf.no_grad(), dispatch.grad_recording(True):
        assert (x * 2).requires_grad


def test_no_grad_is_of_one_thread():
    x, found = leaf(1), []
    inside, looked = threading.Event(), threading.Event()

    def other():
        inside.wait()
        found.append((x * 2).requires_grad)
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with mf.no_grad():
        inside.set()
        looked.wait()
        found.append((x * 2).requires_grad)
    thread.join()
    assert found == [True, False]


# Where gradients arrive


def test_gradients_add_up_in_grad():
    x = leaf(1, 2)
    (x * 3).sum().backward()
    first = x.grad
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7, 7]
    assert first.tolist() == [3, 3]  # who kept the first one keeps it
    x.grad = None
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_paths_add_up():
    x = leaf(3)
    y = x * x + x
    (y * y + x[0]).backward(mf.ones(1, dtype="float64"))
    assert x.grad.tolist() == [2 * (9 + 3) * (6 + 1) + 1]


def test_only_leaves_get_a_grad():
    x = leaf(1, 2)
    y = x * 2
    y.sum().backward()
    assert y.grad is None
    assert x.grad is not None


def test_a_leaf_may_be_differentiated_by_itself():
    x = mf.tensor(3.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1


def test_the_gradient_passed_to_backward_is_not_stored():
    x, g = leaf(1, 2), mf.tensor([10.0, 20.0], dtype="float64")
    x.backward(g)
    assert x.grad.tolist() == [10, 20]
    with mf.no_grad():
        g += 1
    assert x.grad.tolist() == [10, 20]


ALIASING = {
    "sum of two": lambda a, b: a + b,
    "a view": lambda a, b: a + b[::-1],
    "an expanded sum": lambda a, b: (a + b).sum().expand(4),
    "one twice": lambda a, b: a + a + b,
    "reshaped": lambda a, b: (a.reshape(2, 2) + b.reshape(2, 2)).reshape(4),
    "where": lambda a, b: mf.where(a > -9, a, b) + b,
}


@pytest.mark.parametrize("name", ALIASING)
def test_gradients_share_memory_with_nothing(name):
    a, b, g = leaf(1, 2, 3, 4), leaf(5, 6, 7, 8), mf.tensor([1.0, 2.0, 3.0, 4.0], dtype="float64")
    y = ALIASING[name](a, b)
    y.backward(g)
    grads = [a.grad, b.grad]
    before = [x.tolist() for x in (*grads, g, a, b)]
    for k, x in enumerate([*grads, g]):
        assert x.is_contiguous()
        with mf.no_grad():
            x *= 1000  # and an expanded one could not be written to
        after = [v.tolist() for v in (*grads, g, a, b)]
        assert [j for j, (p, q) in enumerate(zip(before, after, strict=True)) if p != q] == [k]
        before = after


def test_grads_of_two_backwards_share_nothing():
    a, b, g = leaf(1, 2), leaf(3, 4), mf.ones(2, dtype="float64")
    a.backward(g)
    b.backward(g)
    with mf.no_grad():
        a.grad *= 5
    assert b.grad.tolist() == g.tolist() == [1, 1]


def test_gradients_have_the_shape_dtype_and_backend_of_their_leaf():
    for backend in ("python", "parallel"):
        x = mf.ones(3, 1, backend=backend, requires_grad=True)
        b = mf.ones(4, dtype="float64", backend=backend, requires_grad=True)
        (x * b).sum().backward()
        assert [(v.grad.shape, v.grad.dtype, v.grad.backend) for v in (x, b)] == [
            ((3, 1), mf.float32, backend),
            ((4,), mf.float64, backend),
        ]
        assert not x.grad.requires_grad


def test_gradients_cross_backends():
    x = mf.ones(3, requires_grad=True)
    ((x * 2).to("python") * mf.tensor([1.0, 2.0, 3.0], backend="python")).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    assert x.grad.backend == "parallel"


def test_an_unused_output_receives_a_zero_gradient():
    x = leaf(1, 2, 3)
    double, triple = call(two_outputs, x)
    double.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert triple.requires_grad


def two_outputs(x):
    return x * 2, x * 3


# The graph and its end


@pytest.mark.parametrize(
    "function", [lambda x: (x * x).sum(), lambda x: x.exp().sum(), lambda x: (x * 2).sum(), lambda x: x.softmax(0)[0]]
)
def test_a_second_backward_explains_itself(function):
    x = leaf(1, 2)
    y = function(x)
    y.backward()
    first = x.grad.tolist()
    with pytest.raises(GradientError, match=FREED):
        y.backward()
    assert x.grad.tolist() == first


def test_retain_graph_allows_a_second_backward():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(GradientError, match=FREED):
        y.backward()


def test_create_graph_retains_the_graph_by_default():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(create_graph=True)
    y.backward(create_graph=True, retain_graph=False)
    with pytest.raises(GradientError, match=FREED):
        y.backward()


def test_a_shared_part_is_freed_with_the_first():
    x = leaf(1, 2)
    shared = x.exp()
    first, second = shared.sum(), (shared * 2).sum()
    first.backward()
    with pytest.raises(GradientError, match=FREED):
        second.backward()


@pytest.mark.parametrize("step", [lambda y: y + 1, lambda y: y * 1.0, lambda y: y[::-1]], ids=["add", "mul", "view"])
def test_a_graph_may_be_ten_thousand_calls_deep(step):
    x = y = leaf(1, 2)
    for _ in range(10_000):
        y = step(y)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("step", [lambda y: y + 1, lambda y: y * y, lambda y: y[::-1]], ids=["add", "mul", "view"])
def test_a_deep_graph_that_is_never_used_is_freed_without_recursion(step):
    y = leaf(1, 1)
    for _ in range(20_000):
        y = step(y)
    del y
    gc.collect()


def test_a_deep_graph_of_scalars():
    x = y = mf.Scalar(1.0)
    for _ in range(10_000):
        y = y * 1.0
    y.backward()
    assert x.grad == 1


def test_a_deep_graph_can_be_differentiated_twice():
    x = y = leaf(0.5)
    for _ in range(2_000):
        y = y * 1.0
    (y * y * y).backward(mf.ones(1, dtype="float64"), create_graph=True)
    g, x.grad = x.grad, None
    g.sum().backward()
    assert x.grad.item() == pytest.approx(6 * 0.5)


# Changes in place


SAVED = {
    "an operand of a product": lambda x, h: h * h,
    "the output of exp": lambda x, h: h.exp(),
    "a maximum": lambda x, h: h.max(),
    "a softmax": lambda x, h: h.softmax(0),
    "a factor of a matrix product": lambda x, h: h[None] @ h[:, None],
    "a slice of what was used": lambda x, h: h[1:] * h[1:],
}


@pytest.mark.parametrize("name", SAVED)
def test_changing_a_saved_tensor_in_place_is_an_error(name):
    x = leaf(1, 2, 3)
    hidden = x * 1.5
    y = SAVED[name](x, hidden)
    with mf.no_grad():
        target = y if name in ("the output of exp", "a softmax") else hidden
        target += 1
    with pytest.raises(GradientError, match=r"needs was modified in place after it was used; modify x\.clone"):
        y.sum().backward()
    assert x.grad is None


def test_a_change_through_a_view_is_seen():
    x = leaf(1, 2, 3)
    hidden = x * 1.5
    y = (hidden * hidden).sum()
    with mf.no_grad():
        hidden.detach()[1:].T[0] = 7.0
    with pytest.raises(GradientError, match="modified in place"):
        y.backward()


def test_changing_a_tensor_that_is_not_saved_is_allowed():
    x = leaf(1, 2, 3)
    hidden = x + 1
    y = (hidden * 2).sum()
    with mf.no_grad():
        hidden += 100
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_change_before_the_use_is_none():
    x, c = leaf(1, 2, 3), mf.zeros(3, dtype="float64")
    c += 5
    y = (x * c).sum()
    y.backward()
    assert x.grad.tolist() == [5, 5, 5]


def test_a_leaf_may_be_changed_between_steps():
    x = leaf(1, 2, 3)
    for _ in range(3):
        (x * x).sum().backward()
        with mf.no_grad():
            x -= 0.25 * x.grad
        x.grad = None
    assert x.tolist() == [0.125, 0.25, 0.375]
    assert x.is_leaf
    assert x.requires_grad


# Memory


def in_use(function):
    """Bytes that a piece of code leaves in use, while its result is held."""
    gc.collect()
    before = mf.memory.stats().in_use
    result = function()
    gc.collect()
    return mf.memory.stats().in_use - before, result


N = 1 << 14
MANY_BYTES = 8 * N


def repeat(step, x, times=20):
    for _ in range(times):
        x = step(x)
    return x


@pytest.mark.parametrize(
    ("step", "kept"),
    [
        (lambda y: y * 2.5, 0),
        (lambda y: y + 1.5, 0),
        (lambda y: -y, 0),
        (lambda y: y[::-1] - 3, 0),
        (lambda y: y.exp(), 20),
        (lambda y: y * y, 20),
    ],
    ids=["times a number", "plus a number", "neg", "flip", "exp", "square"],
)
def test_intermediates_that_no_gradient_needs_are_freed(step, kept):
    x = mf.full((N,), 0.5, dtype="float64", requires_grad=True)
    nbytes, y = in_use(lambda: repeat(step, x))
    assert y.requires_grad
    assert nbytes <= max(1, kept) * MANY_BYTES


def test_an_intermediate_tensor_dies_with_its_name():
    x = mf.ones(100, requires_grad=True)
    y = x * 2
    seen = weakref.ref(y)
    z = (y + 1).sum()
    del y
    assert seen() is None
    z.backward()
    assert x.grad[0].item() == 2


def test_backward_frees_all_saved_tensors():
    x = mf.full((N,), 0.01, dtype="float64", requires_grad=True)
    y = repeat(lambda y: y.exp() * y, x, 5).sum()
    nbytes, _ = in_use(y.backward)
    assert nbytes < 0  # the intermediates went, one gradient came
    left, _ = in_use(lambda: None)
    assert left == 0


def test_nothing_is_left_when_a_graph_goes():
    x = mf.full((N,), 0.5, dtype="float64", requires_grad=True)

    def step():
        loss = ((x.exp() @ x) * x.softmax(0)).sum()
        loss.backward()
        x.grad = None

    step()
    nbytes, _ = in_use(lambda: [step() for _ in range(5)])
    assert nbytes == 0


def test_a_graph_is_freed_by_counting_references_alone():
    x = mf.full((N,), 0.5, dtype="float64", requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        before = mf.memory.stats().in_use
        for _ in range(5):
            y = (x.exp() * x).sum()
            y.backward(create_graph=False)
            del y
            x.grad = None
        assert mf.memory.stats().in_use == before
    finally:
        gc.enable()


def test_no_grad_keeps_nothing():
    x = mf.full((N,), 0.5, dtype="float64", requires_grad=True)
    with mf.no_grad():
        nbytes, y = in_use(lambda: repeat(lambda y: (y * y).exp(), x, 5))
    assert nbytes <= MANY_BYTES
    assert y.grad_fn is None


def test_a_training_step_needs_the_same_memory_each_time():
    x, w = mf.rand(64, 100), mf.rand(100, 30, requires_grad=True)

    def step():
        loss = (mf.relu(x @ w) ** 2).mean()
        loss.backward()
        with mf.no_grad():
            w.__isub__(0.01 * w.grad)
        w.grad = None

    gc.collect()  # what other tests left: the pool looks at four buffers before it makes another
    for _ in range(10):
        step()
    before = mf.memory.stats()
    for _ in range(20):
        step()
    after = mf.memory.stats()
    assert (after.in_use, after.new) == (before.in_use, before.new)


# Higher derivatives, against closed forms

FORMS = {
    "exp(x) x": (
        lambda x: x.exp() * x,
        [lambda a: np.exp(a) * (a + 1), lambda a: np.exp(a) * (a + 2), lambda a: np.exp(a) * (a + 3)],
    ),
    "sin(x) x": (
        lambda x: x.sin() * x,
        [
            lambda a: np.sin(a) + a * np.cos(a),
            lambda a: 2 * np.cos(a) - a * np.sin(a),
            lambda a: -3 * np.sin(a) - a * np.cos(a),
        ],
    ),
    "x^4": (lambda x: x**4, [lambda a: 4 * a**3, lambda a: 12 * a**2, lambda a: 24 * a]),
    "1 / x": (lambda x: 1 / x, [lambda a: -1 / a**2, lambda a: 2 / a**3, lambda a: -6 / a**4]),
    "log(x)": (lambda x: x.log(), [lambda a: 1 / a, lambda a: -1 / a**2, lambda a: 2 / a**3]),
    "sqrt(x)": (lambda x: x.sqrt(), [lambda a: 0.5 * a**-0.5, lambda a: -0.25 * a**-1.5, lambda a: 0.375 * a**-2.5]),
    "tanh(x)": (
        lambda x: x.tanh(),
        [
            lambda a: 1 - np.tanh(a) ** 2,
            lambda a: -2 * np.tanh(a) * (1 - np.tanh(a) ** 2),
            lambda a: (6 * np.tanh(a) ** 2 - 2) * (1 - np.tanh(a) ** 2),
        ],
    ),
    "sum(x)^3": (
        lambda x: x.sum() ** 3,
        [
            lambda a: np.full_like(a, 3 * a.sum() ** 2),
            lambda a: np.full_like(a, 6 * a.sum() * a.size),
            lambda a: np.full_like(a, 6 * a.size**2),
        ],
    ),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_three_derivatives_one_after_the_other(name, backend):
    function, derivatives = FORMS[name]
    x = leaf(0.3, 1.2, 2.1, backend=backend)
    y = function(x)
    for derivative in derivatives:
        x.grad = None
        y.sum().backward(create_graph=True)
        y = x.grad
        assert y.requires_grad
        np.testing.assert_allclose(y.detach(), derivative(x.detach().numpy()), rtol=1e-12)


def test_a_gradient_penalty():
    """The gradient with respect to w of |df/dx|^2, for f = tanh(x @ w)."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((3, 2))
    x, w = mf.tensor(a, requires_grad=True), mf.tensor(b, requires_grad=True)
    mf.tanh(x @ w).sum().backward(create_graph=True)
    g, x.grad, w.grad = x.grad, None, None
    (g * g).sum().backward()

    def penalty(b):
        return (((1 - np.tanh(a @ b) ** 2) @ b.T) ** 2).sum()

    numeric = np.zeros_like(b)
    for i in np.ndindex(b.shape):
        step = np.zeros_like(b)
        step[i] = 1e-6
        numeric[i] = (penalty(b + step) - penalty(b - step)) / 2e-6
    np.testing.assert_allclose(w.grad, numeric, rtol=1e-6, atol=1e-8)


def test_without_create_graph_a_gradient_has_no_history():
    x = leaf(1, 2)
    (x * x).sum().backward()
    assert (x.grad.requires_grad, x.grad.grad_fn) == (False, None)


# The protocol, without tensors


class Halver:
    """A call that sends half of what arrives to each of its two inputs."""

    count = 1

    def __init__(self, *inputs):
        self.edges, self.released = [autograd.grad_edge(x) if x.requires_grad else None for x in inputs], 0

    def backward(self, gradients):
        return [gradients[0] / 2] * 2

    def free_saved(self):
        self.released += 1


class Thing:
    def __init__(self, history=None, requires_grad=True):
        self.grad_fn, self.requires_grad = history, requires_grad


def test_it_knows_the_protocol_not_tensors():
    a, b, constant = Thing(), Thing(), Thing(requires_grad=False)
    first, second = Halver(a, b), None
    middle = Thing((first, 0))
    second = Halver(middle, constant)
    root = Thing((second, 0))
    assert autograd.run_backward([root], [8.0]) == {a: 2.0, b: 2.0}
    assert (first.released, second.released) == (1, 1)
    found = autograd.run_backward([root], [8.0], retain_graph=True, wrt=[(first, 0), a])
    assert found == {a: 2.0, (first, 0): 4.0}
    assert autograd.run_backward([root, root], [8.0, 2.0], retain_graph=True, wrt=[(first, 0)]) == {(first, 0): 5.0}
    assert (first.released, second.released) == (1, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from("+*-")), min_size=1, max_size=12))
def test_any_graph_agrees_with_its_dual_numbers(steps):
    """Forward derivatives, carried along, against backward ones; values reuse each other in any order."""
    leaves = [mf.Scalar(0.5 + k / 4) for k in range(3)]
    values = list(leaves)
    duals = [(v.data, np.eye(3)[k]) for k, v in enumerate(leaves)]
    for i, j, symbol in steps:
        i, j = i % len(values), j % len(values)
        (p, dp), (q, dq) = duals[i], duals[j]
        if symbol == "+":
            values.append(values[i] + values[j])
            duals.append((p + q, dp + dq))
        elif symbol == "-":
            values.append(values[i] - values[j])
            duals.append((p - q, dp - dq))
        else:
            values.append(mf.sin(values[i] * values[j]))
            duals.append((np.sin(p * q), np.cos(p * q) * (dp * q + p * dq)))
    values[-1].backward()
    assert values[-1].data == pytest.approx(duals[-1][0])
    expected = duals[-1][1]
    assert [v.grad or 0 for v in leaves] == pytest.approx(list(expected))
