"""Arrays of a GPU handed to torch and CuPy and taken from them: no copy, and nobody's memory goes while somebody has it."""

import gc
import warnings

import numpy as np
import pytest

import minifuse as mf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("on_gpu"),
    pytest.mark.filterwarnings("ignore"),  # what other libraries warn of is their affair
]

DTYPES = ["float32", "float64", "int32", "int64", "bool"]
VIEWS = {
    "whole": lambda x: x,
    "offset": lambda x: x[1:],
    "strided": lambda x: x[:, 1::2],
    "turned over": lambda x: x.T,
    "one element": lambda x: x[2, 3],
    "empty": lambda x: x[:, 2:2],
    "repeated": lambda x: x[:1].expand(6, 8) if hasattr(x, "expand") else np.broadcast_to(x[:1], (6, 8)),
}


def imported(name):
    """Another library; what it warns of while it is imported is its affair too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


class Torch:
    """torch, in the words that these tests need."""

    def __init__(self):
        self.module = imported("torch")
        if not self.module.cuda.is_available():
            pytest.skip("torch is built without CUDA")

    def new(self, array):
        return self.module.from_numpy(np.ascontiguousarray(array)).cuda()

    def of_dlpack(self, x):
        return self.module.from_dlpack(x)

    def of_interface(self, x):
        return self.module.as_tensor(x, device="cuda")

    def address(self, y):
        return y.data_ptr()

    def strides(self, y):
        return tuple(y.stride())

    def numpy(self, y):
        return y.cpu().numpy()

    def fill(self, y, value):
        y.fill_(value)


class CuPy:
    """CuPy, in the same words."""

    def __init__(self):
        self.module = imported("cupy")

    def new(self, array):
        return self.module.asarray(array)

    def of_dlpack(self, x):
        return self.module.from_dlpack(x)

    def of_interface(self, x):
        return self.module.asarray(x)

    def address(self, y):
        return y.data.ptr

    def strides(self, y):
        return tuple(s // y.itemsize for s in y.strides)

    def numpy(self, y):
        return y.get()

    def fill(self, y, value):
        y.fill(value)


@pytest.fixture(params=[Torch, CuPy], ids=["torch", "cupy"])
def library(request, gpu):
    return request.param()


@pytest.fixture(params=["of_dlpack", "of_interface"])
def hand_over(request, library):
    """A way to hand a tensor to the library."""
    return getattr(library, request.param)


def sample(dtype="float32"):
    return (np.arange(48).reshape(6, 8) % 7).astype(dtype)


# Out


@pytest.mark.parametrize("view", VIEWS)
def test_a_tensor_is_handed_over_without_a_copy(library, hand_over, view):
    see = VIEWS[view]
    x = see(mf.tensor(sample()))
    y = hand_over(x)
    assert tuple(y.shape) == x.shape
    if x.size:
        assert library.address(y) == x.address
        moving = [k for k, n in enumerate(x.shape) if n > 1]
        assert [library.strides(y)[k] for k in moving] == [x.strides[k] for k in moving]
    np.testing.assert_array_equal(library.numpy(y), see(sample()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_out_and_in(library, hand_over, dtype):
    x = mf.tensor(sample(dtype))
    y = hand_over(x)
    assert library.numpy(y).dtype == dtype
    z = mf.from_dlpack(y)
    assert z.dtype.name == dtype
    assert z.address == x.address
    np.testing.assert_array_equal(z.numpy(), sample(dtype))


def test_stores_of_either_library_are_visible_to_both(library, hand_over):
    x = mf.tensor(sample())
    y = hand_over(x)
    library.fill(y[1:3], 9)
    expected = sample()
    expected[1:3] = 9
    np.testing.assert_array_equal(x.numpy(), expected)
    x += 1
    np.testing.assert_array_equal(library.numpy(y), expected + 1)


def test_exported_memory_outlives_the_tensor(library, hand_over):
    x = mf.tensor(sample())
    y = hand_over(x)
    address = x.address
    del x
    gc.collect()
    others = [mf.full((6, 8), -1.0) for _ in range(20)]
    assert address not in [other.address for other in others]
    np.testing.assert_array_equal(library.numpy(y), sample())
    del y
    gc.collect()
    again = [mf.full((6, 8), -1.0) for _ in range(40)]
    assert address in [other.address for other in (*others, *again)]  # and is used again afterwards


def test_an_unused_capsule_frees_its_tensor(gpu):
    x = mf.tensor(sample())
    address, capsule = x.address, x.__dlpack__()
    del x
    gc.collect()
    assert address not in [mf.zeros(6, 8).address for _ in range(3)]
    del capsule
    mf.zeros(6, 8).__dlpack__()  # the next capsule lets go of it
    kept = [mf.zeros(6, 8) for _ in range(20)]
    assert address in [y.address for y in kept]


# In


@pytest.mark.parametrize(
    "see",
    [lambda x: x, lambda x: x[1:], lambda x: x[:, 1::2], lambda x: x.T, lambda x: x[2, 3], lambda x: x[:, 2:2]],
    ids=["whole", "offset", "strided", "turned over", "one element", "empty"],
)
def test_an_array_is_imported_without_a_copy(library, see):
    y = see(library.new(sample()))
    x = mf.from_dlpack(y)
    assert x.backend == "cuda"
    assert x.shape == tuple(y.shape)
    if x.size:
        assert x.address == library.address(y)
    np.testing.assert_array_equal(x.numpy(), see(sample()))
    np.testing.assert_array_equal((x + x).numpy(), see(sample()) * 2)


def test_stores_into_an_imported_array(library):
    y = library.new(sample())
    x = mf.from_dlpack(y)
    x[2:] *= 3
    expected = sample()
    expected[2:] *= 3
    np.testing.assert_array_equal(library.numpy(y), expected)
    library.fill(y, 4)
    assert x.sum().item() == 4 * 48


def test_an_imported_array_outlives_its_owner(library):
    y = library.new(sample())
    x = mf.from_dlpack(y)[1:]
    address = library.address(y)
    del y
    gc.collect()
    others = [library.new(sample() * 0 - 1) for _ in range(20)]
    assert address not in [library.address(other) for other in others]
    np.testing.assert_array_equal(x.numpy(), sample()[1:])


def test_a_dtype_that_minifuse_does_not_have(library):
    with pytest.raises(mf.DTypeError, match=r"float16.*convert it first"):
        mf.from_dlpack(library.new(np.zeros(3, np.float16)))


def test_gradients_flow_through_imported_arrays(library):
    x = mf.from_dlpack(library.new(sample("float64"))).requires_grad_()
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * sample("float64"))


# Order


def test_exports_wait_for_earlier_launches(library, hand_over):
    """Nobody waits in between: all of it goes to one stream."""
    x = mf.zeros(1 << 24)
    y = hand_over(x)
    for k in range(10):
        x += 1
        library.fill(y[: 1 << 23], k)
    x += 1
    assert (x[0].item(), x[-1].item()) == (10, 11)
    np.testing.assert_array_equal(library.numpy(y)[[0, -1]], [10, 11])


def test_another_stream_waits_for_ours(gpu):
    """torch's own streams do not wait for the default one by themselves: whoever hands over sees to it."""
    library = Torch()
    torch = library.module
    stream = torch.cuda.Stream()
    x = mf.zeros(1 << 27)
    for _ in range(20):
        x = mf.sin(x) * 0 + x + 1
    with torch.cuda.stream(stream):
        last = torch.from_dlpack(x)[-1].clone()
    stream.synchronize()
    assert last.item() == 20


def test_numpy_does_not_see_the_memory_of_a_gpu():
    x = mf.ones(3)
    assert not hasattr(x.buffer, "__array_interface__")
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(x), np.ones(3))


def test_a_tensor_on_the_host_has_no_interface_of_a_gpu():
    assert not hasattr(mf.ones(3, backend="parallel"), "__cuda_array_interface__")
