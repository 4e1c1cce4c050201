"""What a fused call depends on: numbers, kinds of tensors, overlaps, threads; and what is refused, as it would be lost."""

import threading

import numpy as np
import pytest

import minifuse as mf

from .test_cache import plain_result, x_of

THREADS = 100
LIVE = 1.5  # changed by a test


# What a capture costs: none where nothing new is asked.


def captures_of(f):
    return f.stats().calls


def test_a_captured_tensor_of_the_same_kind_captures_nothing():
    w = x_of(3)

    @mf.fuse
    def f(x):
        return x * w

    x = x_of(3)
    f(x)
    for seed in range(3):
        w = x_of(3, seed=seed)
        assert f(x).tolist() == (x * w).tolist()
    assert captures_of(f) == 1
    for new in (x_of(3, dtype="float64"), x_of(3, requires_grad=True), x_of(6)[::2], x_of(1)):
        before, w = captures_of(f), new
        assert plain_result(f(x)) == plain_result(x * w)
        assert captures_of(f) == before + 1


@pytest.mark.parametrize("kind", [float, int])
def test_numbers_that_only_scale_capture_nothing(kind):
    @mf.fuse
    def f(x, n, m):
        y = x * n + (n * 2 - m) / 4
        y[0] = m
        return y, mf.full((2,), n) + 0, mf.where(x > n, x, m)

    x = x_of(3)
    for k in range(1, 6):
        n, m = kind(k), kind(2 * k + 1)
        y = x * n + (n * 2 - m) / 4
        y[0] = m
        assert plain_result(f(x, n, m)) == plain_result((y, mf.full((2,), n) + 0, mf.where(x > n, x, m)))
    assert captures_of(f) == 1


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.longdouble, np.int64, np.int32, np.uint8])
def test_numpy_scalars_that_only_scale_capture_nothing(kind):
    def function(x, n):
        return x * n, n * x + n * 2, x - n * np.float64(3), mf.where(x > n, x, n), np.multiply(x, n)

    f, x = mf.fuse(function), x_of(3)
    for k in range(1, 6):
        assert plain_result(f(x, kind(k))) == plain_result(function(x, kind(k)))
    assert captures_of(f) == 1


def test_an_array_without_dims_is_a_number_that_may_change():
    f, x, n = mf.fuse(lambda x, n: x * n), x_of(3), np.array(2.0)
    for k in range(3):
        n[...] = k
        assert f(x, n).tolist() == (x * k).tolist()
    assert captures_of(f) == 1


def test_a_number_of_elements_is_a_number_that_may_change():
    f, x = mf.fuse(lambda x, n: x * n), x_of(3)
    for size in (3, 4, 5):
        assert f(x, x_of(size).size).tolist() == (x * size).tolist()
    assert captures_of(f) == 1


def test_a_returned_array_is_new_in_each_call():
    f, x = mf.fuse(lambda x: (x * 1, np.arange(3))), x_of(3)
    for _ in range(3):
        array = f(x)[1]
        assert array.tolist() == [0, 1, 2]
        array[...] = 7


def test_one_array_as_two_arguments_is_one_tensor():
    f = mf.fuse(lambda x, y: x * 3 if x is y else x - y)
    a, b = np.arange(3.0), np.ones(3)
    for x, y in ((a, a), (a, b), (b, b)):
        assert f(x, y).tolist() == (x * 3 if x is y else x - y).tolist()


STEERING = {
    "range": lambda x, n: sum([x * k for k in range(n)], x),
    "branch": lambda x, n: x * 2 if n > 2 else x * 3,
    "index": lambda x, n: x[n],
    "slice": lambda x, n: x[n:] * 1,
    "size": lambda x, n: mf.zeros(n) + x.sum(),
    "list": lambda x, n: [x, x * 2, x * 3, x * 4, x * 5][n],
    "key": lambda x, n: {1: x * 1, 2: x * 2, 3: x * 3, 4: x * 4}[n],
    "power": lambda x, n: x**n,
    "text": lambda x, n: x * len(f"{'a' * n}"),
    "equality": lambda x, n: x * (n == 3),
    "round": lambda x, n: x * round(n * 1.4),
    "divmod": lambda x, n: x * (divmod(n, 2)[1] + 1),
    "min": lambda x, n: x * min(n, 2),
    "bits": lambda x, n: x * (n & 1) + (n << 1),
    "dim": lambda x, n: x.reshape(1, 1, 1, 1, -1).unsqueeze(n),
    "float": lambda x, n: x * float(n),
    "hash": lambda x, n: x * (n in {1, 2}),
}


@pytest.mark.parametrize("name", STEERING)
def test_numbers_that_steer_capture_anew(name):
    function = STEERING[name]
    f, x = mf.fuse(function), x_of(6)
    for n in (1, 2, 3, 4, 1, 2, 3, 4):
        assert plain_result(f(x, n)) == plain_result(function(x, n))
    assert captures_of(f) == 4


def test_the_sign_of_zero_is_not_lost():
    f = mf.fuse(lambda x, a: (x * a, x + a, mf.full((1,), a, backend=x.backend), x - a))
    x = mf.tensor([0.0, -0.0, 1.0], backend="python")  # compiled kernels do not promise it
    for a in (0.0, -0.0, 0.0):
        assert plain_result(f(x, a)) == plain_result((x * a, x + a, mf.full((1,), a, backend=x.backend), x - a))


@pytest.mark.parametrize("numbers", [(1, 1.0, True), (True, 1, 1.0), (0.0, False, 0), (2**40, 2.0**40), (-1, -1.0)], ids=str)
def test_equal_numbers_of_different_types_have_different_keys(numbers):
    function = lambda x, n: (x * n, x // 2 + n, mf.full((2,), n), [n])  # noqa: E731
    f = mf.fuse(lambda x, n: function(x, n)[:3])
    for dtype in ("int32", "int64", "float32", "bool"):
        x = mf.tensor([1, 0, 1], dtype)
        for n in numbers * 2:
            try:
                expected = plain_result(function(x, n)[:3])
            except (TypeError, OverflowError) as error:
                with pytest.raises(type(error)):
                    f(x, n)
                continue
            assert plain_result(f(x, n)) == expected, (dtype, n)


def test_numbers_are_returned_unchanged():
    f = mf.fuse(lambda x, n, m: (x * n, n, n * 2 + m, (n, None)))
    x = x_of(2)
    for n, m in ((1, 2), (3, 4.5), (2.5, 1), (7, 2), (True, 1)):
        y, same, computed, nested = f(x, n, m)
        assert (type(same), same, type(computed), computed) == (type(n), n, type(n * 2 + m), n * 2 + m)
        assert nested == (n, None)
        assert y.tolist() == (x * n).tolist()


# Kinds of tensors.


LAYOUTS = {
    "plain": lambda: x_of(4, 6),
    "transposed": lambda: x_of(6, 4).T,
    "stepped": lambda: x_of(8, 6)[::2],
    "flipped": lambda: x_of(4, 6).flip(0),
    "expanded": lambda: x_of(1, 6).expand(4, 6),
    "row": lambda: x_of(6),
    "column": lambda: x_of(4, 1),
    "element": lambda: x_of(),
    "offset": lambda: x_of(5, 7)[1:, 1:],
    "empty": lambda: x_of(0, 6),
    "float64": lambda: x_of(4, 6, dtype="float64"),
    "int32": lambda: x_of(4, 6, dtype="int32"),
    "int64": lambda: x_of(4, 6, dtype="int64"),
    "bool": lambda: x_of(4, 6) > 0,
    "leaf": lambda: x_of(4, 6, requires_grad=True),
}


def test_every_kind_of_tensor_after_every_other():
    with mf.use_backend("python"):  # which compiles nothing
        every_kind_after_every_other()


def every_kind_after_every_other():
    function = lambda x: (x * 2 + 1, x.T, x.sum(), x > 0)  # noqa: E731
    f = mf.fuse(function)
    for name in [*LAYOUTS, *reversed(LAYOUTS)]:
        x = LAYOUTS[name]()
        assert plain_result(f(x)) == plain_result(function(x)), name
        with mf.no_grad():
            assert plain_result(f(x)) == plain_result(function(x)), name
    assert captures_of(f) <= 2 * len(LAYOUTS)


@pytest.mark.parametrize("backends", [("python", "parallel"), ("parallel", "cuda", "python")], ids=str)
def test_backends_after_each_other(backends):
    f = mf.fuse(lambda x: x * 2 + mf.ones_like(x))
    for name in backends * 2:
        x = x_of(3, backend=name)
        assert (f(x).backend, f(x).tolist()) == (name, (x * 2 + 1).tolist())


def changed(x, y):
    x[1:] += y[: len(x) - 1]
    y *= 2
    return x + y[: len(x)]


def test_which_arguments_overlap():
    f = mf.fuse(changed)

    def pairs():
        a, b = x_of(8), x_of(8, seed=1)
        return [(a, b), (a, a), (a[:5], a[3:]), (a[3:], a[:5]), (a[:4], a[4:]), (a[::2], a[1::2]), (a[:5], a[2:7]), (b, a)]

    for k in (*range(8), *reversed(range(8))):
        (x, y), (p, q) = pairs()[k], pairs()[k]
        assert plain_result((f(x, y), x, y)) == plain_result((changed(p, q), p, q)), k


def test_memory_that_outside_and_arguments_share():
    w = x_of(6)

    def function(x):
        x += 1
        return x * 2 + w[: len(x)]

    f, g = mf.fuse(function), function
    for x_part in (slice(0, 3), slice(2, 5), slice(0, 6)):
        found = []
        for each in (g, f):
            w = x_of(6)
            found.append(plain_result((each(w[x_part]), w)))
        assert found[0] == found[1], x_part
    w = x_of(6)
    x = x_of(3, seed=5)
    y = x.clone()
    assert f(x).tolist() == g(y).tolist()


def test_a_new_size_compiles_nothing():
    @mf.fuse
    def f(x, y):
        t = mf.exp(x) * y + 1
        s = t / t.sum(1, True)
        t[0] = 2.0
        return s.max(0), (x @ y.T), t[::2]

    def call(m, n):
        return f(x_of(m, n, backend="parallel"), x_of(m, n, seed=1, backend="parallel"))

    call(37, 41)
    call(64, 96)
    before, captured = mf.cache.stats().compiled, captures_of(f)
    for m, n in ((38, 43), (70, 99), (128, 64), (41, 37)):
        call(m, n)
    assert mf.cache.stats().compiled == before
    assert captures_of(f) == captured + 4


# Side effects.


def test_changes_of_closure_state_are_errors():
    class Thing:
        count = 0

    thing, seen, table = Thing(), [], {}

    def count(x):
        thing.count += 1
        return x * 2

    def keep(x):
        seen.append(1)
        return x * 2

    def enter(x):
        table["last"] = 1.0
        return x * 2

    def global_(x):
        global LIVE
        LIVE = LIVE + 1
        return x * LIVE

    for function in (count, keep, enter, global_):
        f, x = mf.fuse(function), x_of(3)
        with pytest.raises(mf.FuseError, match="outside"):
            f(x)
        if function is not enter:  # whose second call changes nothing
            with pytest.raises(mf.FuseError, match="outside"):
                f(x)


def test_a_tensor_stored_outside_is_an_error_on_its_next_use():
    seen = []

    @mf.fuse
    def f(x):
        seen.append(x * 2)
        return x + 1

    with pytest.raises(mf.FuseError):
        f(x_of(3))
    for y in seen:
        with pytest.raises(mf.FuseError):
            y.numpy()


def test_a_leaked_traced_tensor_cannot_be_used_in_another_call():
    class Store:
        pass

    store = Store()

    def keep(x):
        store.y = x * 2
        return x

    with pytest.raises(mf.FuseError):
        mf.fuse(keep)(x_of(3))

    @mf.fuse
    def use(x):
        return x + store.y

    with pytest.raises(mf.FuseError):
        use(x_of(3))


# Threads.


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_many_threads_agree(backend):
    """All start with the first call; neighbours differ in the number, in the kind of the tensor, in whether they record."""
    w = x_of(33, backend=backend)
    plain = lambda x, n: (x * n + w, (x * w).sum(-1), x[..., ::2])  # noqa: E731
    f = mf.fuse(plain)
    inputs = [
        (
            x_of(*[(33,), (4, 33), (2, 33)][k % 3], seed=k, dtype=["float32", "float64"][k % 2], backend=backend),
            [2.0, 3, k][k % 3],
        )
        for k in range(THREADS)
    ]
    expected = [plain_result(plain(*xs)) for xs in inputs]
    found, barrier = [None] * THREADS, threading.Barrier(THREADS)

    def work(k):
        barrier.wait()
        try:
            if k % 5 == 0:
                with mf.no_grad():
                    found[k] = plain_result(f(*inputs[k]))
            found[k] = [plain_result(f(*inputs[k])) for _ in range(3)][-1]
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == expected


def test_one_thread_captures_while_others_compute():
    """A capture stands between its own thread and the kernels, nobody else."""
    inside, done = threading.Event(), threading.Event()
    found = {}

    def other():
        inside.wait(10)
        x = x_of(4, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        found.update(
            value=y.item(), grad=x.grad.tolist(), expected=[(x.detach() ** 2).sum().item(), (x.detach() * 2).tolist()]
        )
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    @mf.fuse
    def f(x):
        y = x * 2
        inside.set()
        done.wait(10)
        return y + 1

    x = x_of(3)
    assert f(x).tolist() == (x * 2 + 1).tolist()
    thread.join()
    assert [found["value"], found["grad"]] == found["expected"]
