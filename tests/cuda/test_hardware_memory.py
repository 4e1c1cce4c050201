"""The memory of a GPU: more than 32 bits count, none left, and who may use it."""

import threading

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.device import driver

from .simulated import simulated

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

FAR = 1 << 31  # elements, and bytes, that 32 bits do not count
EXTRA = (1 << 20) + 3


@pytest.fixture
def gib(gpu):
    """Skips where less than so many gibibytes are free."""

    def free(needed):
        found = driver.check(gpu.device.bindings.cuMemGetInfo())[0]
        if found < needed << 30:
            pytest.skip(f"{found >> 30} GiB of the GPU are free, and this needs {needed}")

    return free


# More than 2^31


def test_more_bytes_than_31_bits_count(gib):
    gib(10)
    n = FAR // 4 + EXTRA
    x = mf.zeros(n)
    x[FAR // 4 :] += 1
    assert x.sum().item() == EXTRA
    assert x[FAR // 4 - 2 : FAR // 4 + 2].tolist() == [0, 0, 1, 1]
    y = (x + x).flip(0) * 2
    assert y[:2].tolist() == [4, 4]
    assert y[EXTRA - 1 : EXTRA + 1].tolist() == [4, 0]
    assert y.argmax().item() == 0
    assert x.argmax().item() == FAR // 4


def test_more_elements_than_31_bits_count(gib):
    gib(10)
    n = FAR + EXTRA
    x = mf.zeros(n, dtype="bool")
    assert not x.any().item()
    x[FAR:] = True
    assert x[FAR - 1 : FAR + 1].tolist() == [False, True]
    assert x.sum().item() == EXTRA
    assert (~x).sum().item() == FAR
    assert x[1:].any().item()
    assert not x[: FAR - 1].any().item()
    assert x[::2][-2:].tolist() == [True, True]


def test_floats_of_that_many_elements(gib):
    gib(40)
    x = mf.full((FAR + EXTRA,), 2.0)
    x[-1] = 3.0
    y = x * x
    assert y[-2:].tolist() == [4, 9]
    assert (y.min().item(), y.max().item()) == (4, 9)
    del y
    assert (x[1:] - x[:-1]).sum().item() == 1


def test_sums_of_a_matrix_of_that_many_elements(gib):
    gib(30)
    rows, columns = 70_000, 33_000
    x = mf.ones(rows, columns)
    x[-1, -1] = 2.0
    for found, count, last in ((x.sum(0), rows, columns), (x.sum(1), columns, rows)):
        assert found.shape == (last,)
        assert (found.min().item(), found.max().item(), found[-1].item()) == (count, count + 1, count + 1)


def test_a_matrix_of_that_many_elements_is_turned_over(gib):
    gib(10)
    side = 46_500  # side * side > 2^31
    x = mf.zeros(side, side, dtype="bool")
    x[-1, 7] = True
    y = x.T.contiguous()
    assert y[7, -1].item()
    assert y.sum().item() == 1


def test_a_product_over_that_many_elements(gib):
    gib(20)
    m, k = 65_537, 32_801  # m * k > 2^31
    a = mf.ones(m, k)
    a[-1] = 2.0
    y = a @ mf.ones(k, 4)
    assert (y.min().item(), y.max().item(), y[-1].tolist()) == (k, 2 * k, [2 * k] * 4)
    z = a.T @ mf.ones(m, 2)
    assert (z.min().item(), z.max().item()) == (m + 1, m + 1)


# None left


def test_out_of_memory_is_a_clear_error_and_the_process_goes_on(gpu):
    kept, gone = mf.ones(1000), mf.ones(1 << 20)
    del gone
    with pytest.raises(
        mf.OutOfMemoryError, match=r"cuda:0: cannot allocate [\d,]+ bytes; [\d,]+ of [\d,]+ bytes are free.*delete tensors"
    ):
        mf.zeros(1 << 44, dtype="bool")
    assert gpu.device.pool.stats().free == 0  # it was given back before the second attempt
    assert (kept + 1).sum().item() == 2000
    with pytest.raises(MemoryError):
        mf.ones(1 << 20, 1 << 20) + 1
    assert mf.ones(3).sum().item() == 3


def test_unused_memory_goes_back_when_it_is_needed(gpu):
    free = driver.check(gpu.device.bindings.cuMemGetInfo())[0]
    for share in (0.55, 0.6, 0.65):  # two of them do not fit together
        x = mf.zeros(int(free * share), dtype="bool")
        assert not x[-3:].any().item()
        del x


def test_memory_is_used_again(gpu):
    x = mf.ones(1 << 20)
    y = x + 1
    address = y.address
    del y
    before = gpu.device.pool.stats().new
    for _ in range(10):
        y = x + 1
        assert y.address == address
        del y
    assert gpu.device.pool.stats().new == before


# To and from the host


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_there_and_back(dtype):
    a = (np.arange(3 * 5 * 7).reshape(3, 5, 7) % 5).astype(dtype)
    views = [
        a,
        a.T,
        a[::-1, :, ::-2],
        a[1, 2],
        a[0, 0, 0, ...],
        a[:, :0],
        np.broadcast_to(a[:, :1], (3, 5, 7)),
        a[:, 1:3, 1:-1],
    ]
    for view in views:
        x = mf.from_numpy(view, backend="cuda")
        np.testing.assert_array_equal(x.numpy(), view)
        np.testing.assert_array_equal(x.to("parallel").numpy(), view)
        np.testing.assert_array_equal(mf.tensor(view, backend="parallel").to("cuda").numpy(), view)
    x = mf.tensor(a)
    for see in (lambda v: v.T, lambda v: v[::-1, 1:, ::2], lambda v: v[1], lambda v: v[:, 2:3]):
        np.testing.assert_array_equal(see(x).numpy(), see(a))


def test_a_copy_on_the_host_cannot_be_written():
    array = mf.ones(3).numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5


@pytest.mark.parametrize("value", [0, 1, -1.5, float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_filling(value, dtype):
    x = mf.full((3, 1031), value, dtype=dtype)
    np.testing.assert_array_equal(x.numpy(), np.full((3, 1031), value, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"), [("int32", -7), ("int64", 2**40 + 1), ("int64", 0), ("bool", True), ("bool", False)]
)
def test_filling_with_integers(dtype, value):
    assert set(mf.full((1031,), value, dtype=dtype).tolist()) == {value}


# Who uses it


def test_backends_do_not_mix():
    x = mf.ones(3)
    for other in (mf.ones(3, backend="parallel"), mf.ones(3, backend=simulated())):
        with pytest.raises(mf.BackendError, match="two backends"):
            x + other


def test_threads_launch_at_once():
    """Each its own sums and products, some of which are compiled meanwhile."""
    found, errors = {}, []

    def work(k):
        try:
            a = np.random.default_rng(k).uniform(-1, 1, (65, 65)).astype("f4")
            x = mf.tensor(a, backend="cuda")
            for _ in range(100):
                x = mf.tanh(x @ x.T / 65 + x.sum(0) * (k + 0.25)) - x.max(1, True)
            found[k] = x.numpy()
        except Exception as error:
            errors.append(error)

    for wave in (range(4), range(4)):
        threads = [threading.Thread(target=work, args=(k,)) for k in wave]
        before = dict(found)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert all(np.array_equal(before[k], found[k], equal_nan=True) for k in before)
    assert len(found) == 4


def test_synchronize_waits_for_running_kernels(gpu):
    x = mf.ones(1 << 24)
    for _ in range(20):
        x = mf.sin(x) + 1
    mf.synchronize("cuda")
    assert gpu.device.core is not None
    assert np.isfinite(x[:3].numpy()).all()


# Several GPUs


@pytest.fixture
def second(gpu):
    found = driver.query_driver().gpus
    if found < 2:
        pytest.skip("there is one GPU; this needs two")
    return mf.ones(1, backend="cuda:1").meta.backend


def test_a_second_gpu_has_its_own_tensors(second):
    x, y = mf.ones(1000, backend="cuda"), mf.full((1000,), 2.0, backend="cuda:1")
    assert (x.backend, y.backend) == ("cuda", "cuda:1")
    assert (y + y).sum().item() == 4000
    assert (x + x).sum().item() == 2000
    with pytest.raises(mf.BackendError, match="two backends, cuda and cuda:1"):
        x + y
    assert (y.to("cuda") + x).sum().item() == 3000
    assert x.to("cuda:1").backend == "cuda:1"
    assert repr(y[:1]) == 'tensor([2.], backend="cuda:1")'


def test_threads_on_two_gpus(second):
    found = {}

    def work(name):
        x = mf.ones(513, 257, backend=name)
        for _ in range(50):
            x = mf.tanh(x + x.mean(0)) @ mf.ones(257, 257, backend=name) / 257
        found[name] = x.numpy()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("cuda", "cuda:1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found["cuda"], found["cuda:1"])


def test_a_gpu_that_does_not_exist():
    count = driver.query_driver().gpus
    with pytest.raises(mf.BackendError, match=rf"cuda:{count} does not exist"):
        mf.ones(1, backend=f"cuda:{count}")
