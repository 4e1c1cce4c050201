"""The shortest way to a launch on a GPU: it is taken, and gives what the long way gives."""

import threading

import numpy as np
import pytest

import minifuse as mf

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]


@mf.fuse
def mixed(x, y, k):
    return mf.exp(x) * y + k


def both(x, y, k):
    """The result of a call, and of the same launch the long way."""
    run = mixed.plan(x, y, k).run
    found = run(x, y, k)
    direct = run.__globals__["launch0"]
    launcher = direct.__self__[1]
    other = mf.full(found.shape, np.nan, backend="cuda")
    launcher(other.address, x.address, y.address, k)
    return direct, found, other


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("n", [1, 1000, 1024, 100_003])
def test_both_ways_give_the_same(n, first):
    """Addresses that are no multiples of 16 too: the kernel then takes one element at a time."""
    values = np.random.default_rng(n).normal(size=(2, n + first)).astype("f4")
    x, y = (mf.tensor(v, backend="cuda")[first:] for v in values)
    direct, found, other = both(x, y, 0.1)
    assert type(direct).__name__ == "builtin_function_or_method"
    assert found.numpy().tobytes() == other.numpy().tobytes()
    expected = np.exp(values[0, first:]) * values[1, first:] + np.float32(0.1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-6)


def test_a_new_thread():
    """Its first launch has no GPU yet, and takes the long way."""
    x = mf.ones(1000, backend="cuda")
    mixed(x, x, 1.0)
    found = []
    thread = threading.Thread(target=lambda: found.extend(mixed(x, x, float(k)) for k in range(3)))
    thread.start()
    thread.join()
    for k, y in enumerate(found):
        np.testing.assert_allclose(y.numpy(), np.full(1000, np.e + k), rtol=1e-6)


def test_a_value_of_another_type_is_told():
    x = mf.ones(1000, backend="cuda")
    direct = mixed.plan(x, x, 1.0).run.__globals__["launch0"]
    with pytest.raises((TypeError, ValueError)):
        direct(x.address, x.address, x.address, "one")
