"""Inputs of fused calls that are one tensor or share memory: keys, results, gradients, and what may be read from a copy."""

import numpy as np
import pytest

import minifuse as mf

from .aliasing import check

BACKENDS = ["python", "parallel", "cuda"]
PROGRAMS = 2000  # random ones, on the plain backend
PART = 100  # of them in one test


def tensors(*seeds, backend=None, **options):
    return [mf.tensor(np.random.default_rng(k).integers(-8, 9, 6) / 4, "float32", backend, **options) for k in seeds]


def assert_equal(got, expected):
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), 1e-5, 1e-6)


# Which arguments are one tensor belongs to the key.


COINCIDENCES = {
    "positions": (lambda f, x, y: f(x, y), lambda x, y: x * y),
    "keywords": (lambda f, x, y: f(x=x, y=y), lambda x, y: x * y),
    "dicts": (lambda f, x, y: f({"a": x, "b": y}), lambda d: d["a"] * d["b"]),
    "lists": (lambda f, x, y: f([x, [y]]), lambda xs: xs[0] * xs[1][0]),
    "views": (lambda f, x, y: f(x, y[:]), lambda x, y: x * y),
    "reversed views": (lambda f, x, y: f(x[::-1], y), lambda x, y: x * y),
    "three": (lambda f, x, y: f(x, y, x), lambda x, y, z: x * y - z),
    "numbers between": (lambda f, x, y: f(x, 2.0, y, 2.0), lambda x, a, y, b: x * a - y * b),
    "identity in Python": (lambda f, x, y: f(x, y), lambda x, y: x * 3 if x is y else x - y),
    "change in place": (lambda f, x, y: f(x, y), lambda x, y: (x.mul_(2) if hasattr(x, "mul_") else x.__imul__(2)) + y),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", COINCIDENCES)
def test_the_same_tensor_twice_then_two_tensors(name, backend):
    call, function = COINCIDENCES[name]
    fused = mf.fuse(function)
    for pattern in ((0, 0), (0, 1), (1, 1), (1, 0)):
        got, expected = tensors(0, 1, backend=backend), tensors(0, 1, backend=backend)
        found = call(fused, *[got[k] for k in pattern])
        assert_equal([found, *got], [call(function, *[expected[k] for k in pattern]), *expected])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_that_is_also_read_from_outside(backend):
    a, b = tensors(0, 1, backend=backend)
    w = a
    f = mf.fuse(lambda x: x * w)
    for x in (a, b, a):
        assert_equal([f(x)], [x * w])
    w = b
    for x in (a, b):
        assert_equal([f(x)], [x * w])


def test_two_names_outside_that_become_one_tensor():
    a, b = tensors(0, 1)
    v = w = a

    def function(x):
        w[...] = x * 2
        return v + 0

    f = mf.fuse(function)
    for second in (a, b, a):
        w = second
        v.fill_(1)
        expected = a * 1 if w is not a else b * 2
        assert_equal([f(b)], [b * 2 if w is a else expected])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("explore", ["explain", "compile", "source", "plan"])
def test_looking_at_a_call_of_equal_arguments_does_not_bind_them(explore, backend):
    a, b = tensors(0, 1, backend=backend)
    f = mf.fuse(lambda x, y: x * y)
    getattr(f, explore)(a, a)
    assert_equal([f(a, b)], [a * b])


@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_to_itself_and_then_to_others(backend):
    f = mf.fuse(lambda q, k, v: mf.nn.functional.scaled_dot_product_attention(q, k, v))
    q, k, v = (mf.tensor(np.random.default_rng(seed).normal(size=(2, 5, 4)), "float32", backend) for seed in range(3))
    for inputs in ((q, q, q), (q, k, v), (q, k, k)):
        assert_equal([f(*inputs)], [mf.nn.functional.scaled_dot_product_attention(*inputs)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loss_of_a_tensor_with_itself_then_with_another(backend):
    f = mf.fuse(lambda x, y: ((x - y) ** 2).mean())
    a, b = tensors(0, 1, backend=backend)
    assert f(a, a).item() == 0
    assert f(a, b).item() == pytest.approx(((a - b) ** 2).mean().item())


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_gradient_is_lost_after_a_call_with_equal_arguments(backend):
    f = mf.fuse(lambda x, y: (x * y).sum())
    for pattern in ((0, 0), (0, 1), (1, 1)):
        xs = tensors(0, 1, backend=backend, requires_grad=True)
        ys = tensors(0, 1, backend=backend, requires_grad=True)
        f(*[xs[k] for k in pattern]).backward()
        (ys[pattern[0]] * ys[pattern[1]]).sum().backward()
        assert [x.grad is None for x in xs] == [y.grad is None for y in ys]

        for x, y in zip(xs, ys, strict=True):
            if y.grad is not None:
                assert_equal([x.grad], [y.grad])


def test_a_gradient_that_is_also_an_argument():
    def step(x, g):
        return x * 2 + x.grad - g

    f = mf.fuse(step)
    (x,), (a, b) = tensors(0, requires_grad=True), tensors(1, 2)
    for grad, g in ((a, a), (a, b), (b, b)):
        x.grad = grad
        with mf.no_grad():
            assert_equal([f(x, g)], [step(x, g)])


def test_a_gradient_set_or_cleared_is_traced_again():
    f = mf.fuse(lambda x: x * 2 if x.grad is None else x.grad * 3)
    (x,), (a,) = tensors(0, requires_grad=True), tensors(1)
    for grad in (None, a, None):
        x.grad = grad
        with mf.no_grad():
            assert_equal([f(x)], [x * 2 if grad is None else a * 3])


def gets_an_argument_as_its_gradient(x, y, g):
    x.grad = g
    return g * 2


def exchanges_gradients(x, y, g):
    x.grad, y.grad = y.grad, x.grad


def gets_the_gradient_of_another(x, y, g):
    x.grad = y.grad
    y.grad = None


@pytest.mark.parametrize("twice", [False, True], ids=["apart", "one gradient"])
@pytest.mark.parametrize(
    "function",
    [gets_an_argument_as_its_gradient, exchanges_gradients, gets_the_gradient_of_another],
    ids=lambda f: f.__name__,
)
def test_a_tensor_that_becomes_the_gradient_of_another_is_that_tensor(function, twice):
    found = []
    for f in (function, mf.fuse(function)):
        for _ in range(2):
            x, y, g, a, b = tensors(0, 1, 2, 3, 4)
            x.requires_grad = y.requires_grad = True
            x.grad, y.grad = a, a if twice else b
            f(x, y, g)
            found.append([[z is k for k in (a, b, g, None)] for z in (x.grad, y.grad)])
    assert found[:2] == found[2:]


# Memory that several arguments share.


def changes_one_and_returns_a_view_of_the_other(x, y):
    x *= 2
    return y[1:]


SLICES = [(slice(2, 4), slice(None)), (slice(None), slice(2, 4)), (slice(0, 4), slice(2, 8)), (slice(4, 8), slice(2, 6))]


@pytest.mark.parametrize("slices", SLICES, ids=str)
def test_a_view_of_an_argument_that_another_overlaps(slices):
    found = []
    for f in (changes_one_and_returns_a_view_of_the_other, mf.fuse(changes_one_and_returns_a_view_of_the_other)):
        a = np.arange(1.0, 9.0)
        x, y, z = (mf.from_numpy(a[part]) for part in (*slices, slice(1, 8)))
        r = f(x, y)
        seen = r.numpy().copy()
        part = z[: len(r)]
        part -= r
        assert np.shares_memory(r.numpy(), a)
        found.append((seen.tolist(), r.tolist(), a.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("slices", SLICES, ids=str)
def test_a_result_knows_that_its_memory_was_changed_through_an_argument(slices):
    for f in (changes_one_and_returns_a_view_of_the_other, mf.fuse(changes_one_and_returns_a_view_of_the_other)):
        a = np.arange(1.0, 9.0)
        x, y = (mf.from_numpy(a[part]) for part in slices)
        r = f(x, y)
        w = mf.ones(*r.shape, dtype="float64", requires_grad=True)
        loss = (w * r).sum()
        y *= 10
        with pytest.raises(mf.GradientError, match="modified in place after it was used"):
            loss.backward()


def test_tensors_over_one_array_share_the_count_of_its_changes():
    a = np.arange(6.0)
    x, y, z = mf.from_numpy(a[:4]), mf.from_numpy(a[2:]), mf.from_numpy(np.asarray(memoryview(a)[1:5]))
    for other in (y, z, mf.from_numpy(x.numpy())):
        w = mf.ones(4, dtype="float64", requires_grad=True)
        loss = (w * x).sum()
        other += 1
        with pytest.raises(mf.GradientError, match="modified in place after it was used"):
            loss.backward()


def test_windows_of_an_array_share_the_count_of_its_changes():
    a = np.arange(6.0)
    windows = mf.from_numpy(np.lib.stride_tricks.sliding_window_view(a, 4))
    w = mf.ones(3, 4, dtype="float64", requires_grad=True)
    loss = (w * windows).sum()
    x = mf.from_numpy(a)
    x += 1
    with pytest.raises(mf.GradientError, match="modified in place after it was used"):
        loss.backward()


def test_arrays_apart_do_not_share_the_count_of_changes():
    x, y = mf.from_numpy(np.arange(4.0)), mf.from_numpy(np.arange(4.0))
    w = mf.ones(4, dtype="float64", requires_grad=True)
    loss = (w * x).sum()
    y += 1
    loss.backward()
    assert w.grad.tolist() == x.tolist()


# What is captured anew.


def subtracts(x, y):
    x -= y * 2


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_where_arguments_overlap_captures_nothing_anew(backend):
    f = mf.fuse(subtracts)
    a = np.random.default_rng(0).normal(size=(12, 12))
    got, expected = mf.tensor(a, backend=backend), a.copy()
    for j in range(11):
        f(got[:, j + 1], got[j, :])
        expected[:, j + 1] -= expected[j, :].copy() * 2
    np.testing.assert_allclose(got.numpy(), expected, 1e-9)
    assert f.stats().captures <= 2


def seven_views(a, b, c, d, e, f, g):
    a += b
    c += d * 2
    e -= f
    g *= a


@pytest.mark.parametrize("function", [subtracts, seven_views])
@pytest.mark.parametrize("backend", BACKENDS)
def test_repeated_calls_that_change_arguments_take_the_quick_path(function, backend, monkeypatch):
    fused = mf.fuse(function)
    count = function.__code__.co_argcount
    got, expected = (mf.tensor(np.arange(14.0).reshape(7, 2), backend=backend) for _ in range(2))
    for _ in range(2):  # the first call captures, the second one remembers the addresses
        fused(*[got[k] for k in range(count)])
    monkeypatch.setattr(fused, "get_entry", None)  # the slow path calls it
    fused(*[got[k] for k in range(count)])
    for _ in range(3):
        function(*[expected[k] for k in range(count)])
    assert_equal([got], [expected])


def test_columns_that_interleave_are_apart():
    f = mf.fuse(subtracts)
    m = mf.zeros(8, 8)
    for j in range(1, 8):
        f(m[:, 0], m[:, j])
    assert f.stats().captures == 1


def test_an_argument_that_is_read_after_the_change_is_no_copy():
    def function(x, y):
        x *= 2
        return y + 0

    f = mf.fuse(function)
    for start in range(4):
        got, expected = mf.arange(10.0), mf.arange(10.0)
        found = f(got[2:6], got[start : start + 4])
        assert_equal([found, got], [function(expected[2:6], expected[start : start + 4]), expected])


def test_memory_between_two_overlapping_arguments_keeps_its_changes():
    def function(x, y, z):
        x.fill_(1)
        y.copy_(z)
        z.fill_(2)

    f = mf.fuse(function)
    got, expected = mf.zeros(8, 8) - 1, mf.zeros(8, 8) - 1
    for m, each in ((got, f), (expected, function)):
        each(m[7, :6], m[2:, 2], m.reshape(64)[25:19:-1])
    assert_equal([got], [expected])


def test_read_only_memory_is_refused_in_later_calls_too():
    a = np.ones(3)
    a.flags.writeable = False
    for function in (lambda x: x.fill_(2), subtracts):
        f = mf.fuse(function)
        more = [mf.ones(3, dtype="float64")] * (function is subtracts)
        f(mf.zeros(3, dtype="float64"), *more)
        with pytest.raises(mf.OverlapError, match="read-only"):
            f(mf.from_numpy(a), *more)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ends_with_result", [True, False], ids=["with a result", "without a result"])
def test_read_only_arrays_may_overlap_changed_ones(ends_with_result, backend):
    def function(x, y):
        x += 1
        x -= y * 2
        return x * y if ends_with_result else None

    found = []
    for f in (function, mf.fuse(function)):
        a = np.arange(6.0)
        for _ in range(2):
            x, y = mf.from_numpy(a[1:5], backend=backend), mf.from_numpy(np.broadcast_to(a[3:4], (4,)), backend=backend)
            found.append([z.tolist() for z in (f(x, y), x, y) if z is not None])
    assert found[:2] == found[2:]


def reads_the_next_row(x):
    x[0] *= 2
    return x[1] * 1


def swaps_rows(x):
    x[2], x[0] = x[0] * 3, x[1] * 2
    x[1] += x[2] - x[0]
    return x[1] * x[2]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [reads_the_next_row, swaps_rows], ids=lambda f: f.__name__)
def test_a_change_of_one_window_is_seen_in_those_that_overlap_it(function, backend):
    found = []
    for f in (function, mf.fuse(function)):
        windows = np.lib.stride_tricks.sliding_window_view(np.arange(1.0, 8.0), 4, writeable=True)
        x = mf.from_numpy(windows, backend=backend)
        found.append([z.tolist() for z in (f(x), x)])
    assert found[0] == found[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_of_one_row_of_an_expanded_argument_is_seen_in_all(backend):
    found = []
    for f in (reads_the_next_row, mf.fuse(reads_the_next_row)):
        v = mf.arange(4.0, backend=backend)
        found.append([f(v.expand(3, 4)).tolist(), v.tolist()])
    assert found[0] == found[1]


w1 = mf.ones(4)


def test_a_tensor_found_by_name_that_shares_memory_with_a_changed_argument():
    def function(x):
        y = globals()["w" + "1"] * 1
        x += y
        return x * 1

    f = mf.fuse(function)
    assert f(mf.ones(4)).tolist() == [2, 2, 2, 2]
    with pytest.raises(mf.OverlapError, match="pass both as arguments"):
        f(w1.detach())


# Values that are read between two changes.


def reads_between(x, y):
    x.copy_(y)
    t = y * x
    x[2:5] = y.sum()
    return t.sum() - x


def shifts_after(x, y):
    x.copy_(y * 2)
    t = y * x
    x[1:] = x[:-1]
    return t + x


def reads_a_part_between(x, y):
    x[1:] = y[:-1]
    t = x[1:] * 2
    x[2:4] = t.sum()
    return t + x[1:]


def stores_forward_and_backward(x, y):
    x.copy_(y)
    back = x[::-1]
    back *= y - 1


def stores_backward_what_was_stored(x, y):
    y[2:5] = y.sum()
    x.copy_(y * 2)
    x[::-1] = y - 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function", [stores_forward_and_backward, stores_backward_what_was_stored], ids=lambda f: f.__name__
)
def test_one_launch_stores_each_element_once(function, backend):
    got, expected = tensors(0, 1, backend=backend), tensors(0, 1, backend=backend)
    mf.fuse(function)(*got)
    function(*expected)
    assert_equal(got, expected)


def test_comparing_differentiated_values_frees_nothing():
    def function(x, y, z):
        t = y * y + z
        (x * mf.where(x > t, x, y)).sum().backward()
        return t

    found = []
    for f in (function, mf.fuse(function)):
        x, y, z = tensors(0, 1, 2, requires_grad=True)
        f(x, y, z).sum().backward()
        found.append([g.grad.tolist() for g in (x, y, z)])
    assert found[0] == found[1]


def stores_one_value_twice(x, y):
    x.copy_(y * 2)
    x[2:5] = y.sum()
    y.copy_(y * 2)
    return x + y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function", [stores_one_value_twice, reads_between, shifts_after, reads_a_part_between], ids=lambda f: f.__name__
)
def test_a_value_read_between_two_changes_is_that_of_the_first(function, backend):
    got, expected = tensors(0, 1, backend=backend), tensors(0, 1, backend=backend)
    assert_equal([mf.fuse(function)(*got), *got], [function(*expected), *expected])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("first", range(0, PROGRAMS, PART))
def test_random_coincidences_agree(first):
    for seed in range(first, first + PART):
        check(seed)
