"""The shortest way to a launch on a GPU: it is taken, and gives what the long way gives."""

import threading

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.planned_launcher import CudaMatmulLauncher
from minifuse.core.dtypes import BY_NUMPY, HIGH, MEDIUM, float32
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import relu
from minifuse.ir.kernel_ir import Accumulator, KernelParameter, Load
from minifuse.ir.step_kernels import MatmulKernel, plain_matmul

from .conftest import bits

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
def test_fast_calls_equal_python_launches(n, first):
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


def test_a_value_of_another_type_is_an_error():
    x = mf.ones(1000, backend="cuda")
    direct = mixed.plan(x, x, 1.0).run.__globals__["launch0"]
    with pytest.raises((TypeError, ValueError)):
        direct(x.address, x.address, x.address, "one")


# Products


def sample(*shape, seed=0, dtype="f4"):
    return np.random.default_rng([*shape, seed]).normal(size=shape).astype(dtype)


class Product:
    """A product of arrays that lie on the GPU, `first` elements behind where their memory begins."""

    def __init__(self, backend, kernel, arrays, first=0):
        self.backend, self.kernel, self.kept, self.dtype = backend, kernel, [], arrays[0].dtype
        batch = np.broadcast_shapes(*[x.shape[:-2] for x in arrays[:2]])
        self.shape = (*batch, arrays[0].shape[-2], arrays[1].shape[-1])
        self.first, self.inputs, layouts = first, [], []
        for k, x in enumerate(arrays):
            base = np.concatenate([np.zeros(first, x.dtype), np.ravel(x, "K")])
            buffer, address, _ = backend.from_numpy(base)
            self.kept.append(buffer)
            self.inputs.append(address + first * x.itemsize)
            strides = [step // x.itemsize if n > 1 else 0 for n, step in zip(x.shape, x.strides, strict=True)]
            shape = (*batch, *x.shape[-2:]) if k < 2 else self.shape
            layouts.append(Layout(x.shape, tuple(strides), 0).expand(*shape))
        self.bound = CudaMatmulLauncher(
            backend.device, kernel, [row_major(self.shape)] * len(kernel.pointwise_outputs), layouts
        )

    def run(self, launch, *numbers):
        """What a launch stores, over memory that held something else."""
        outs = [
            self.backend.from_numpy(np.full(np.prod(self.shape) + self.first, 77, self.dtype))
            for _ in self.kernel.pointwise_outputs
        ]
        launch(*[address + self.first * self.dtype.itemsize for _, address, _ in outs], *self.inputs, *numbers)
        dtype = BY_NUMPY[self.dtype]
        fetched = [self.backend.to_numpy(buffer, address, dtype, layout) for buffer, address, layout in outs]
        return [x[self.first :].reshape(self.shape) for x in fetched]


def check(product, expected, monkeypatch, *numbers, scale=64.0):
    """The short way is taken, and gives the bits of the long one."""
    long = product.run(product.bound, *numbers)
    short = product.bound.fast_entry()
    assert short is not product.bound
    with monkeypatch.context() as patched:
        patched.setattr(CudaMatmulLauncher, "__call__", lambda *_: pytest.fail("took the long way"))
        for _ in range(3):
            found = product.run(short, *numbers)
            assert [x.tobytes() for x in found] == [x.tobytes() for x in long]
    for x, exact in zip(found, expected, strict=True):
        error = np.linalg.norm(x - exact) / max(np.linalg.norm(exact), 1e-30)
        assert error < scale * 1e-6


PRODUCTS = {  # shapes of a and b; which of them lies the other way
    "tiles": ((64, 64), (64, 64), ""),
    "turned": ((130, 70), (70, 140), "ab"),
    "K is cut": ((64, 4096), (4096, 64), ""),
    "an operand is turned over": ((2048, 2048), (2048, 2048), ""),
    "a row": ((1, 4096), (4096, 1024), ""),
    "a column": ((4096, 1024), (1024, 1), "a"),
    "tall": ((65536, 64), (64, 64), ""),
    "deep": ((64, 65536), (65536, 64), ""),
    "a batch": ((7, 33, 64), (7, 64, 17), ""),
    "a batch in pieces": ((70_000, 2, 3), (70_000, 3, 4), ""),
    "repeated": ((7, 33, 64), (64, 17), "a"),
}


def operands(name, dtype="f4"):
    *shapes, lie_turned = PRODUCTS[name]
    found = [sample(*shape, seed=k, dtype=dtype) for k, shape in enumerate(shapes)]
    for k, name in enumerate("ab"):
        if name in lie_turned:
            found[k] = np.ascontiguousarray(found[k].swapaxes(-1, -2)).swapaxes(-1, -2)
    return found


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, first, on_gpu, monkeypatch):
    a, b = operands(name)
    check(Product(on_gpu, plain_matmul(float32), [a, b], first), [a.astype(float) @ b], monkeypatch)


@pytest.mark.parametrize("name", ["tiles", "K is cut", "a row"])
def test_products_of_float64(name, on_gpu, monkeypatch):
    a, b = operands(name, "f8")
    check(Product(on_gpu, plain_matmul(BY_NUMPY[a.dtype]), [a, b]), [a @ b], monkeypatch)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("precision", "scale"), [(HIGH, 2e3), (MEDIUM, 1e4)])
@pytest.mark.parametrize("name", ["tiles", "K is cut", "an operand is turned over"])
def test_products_on_tensor_cores(name, precision, scale, first, on_gpu, monkeypatch):
    kernel = MatmulKernel(Load(0, float32), Load(1, float32), (Accumulator(float32),), precision)
    for seed in range(3):  # other addresses, other maps
        a, b = operands(name)
        a = a + np.float32(seed)
        check(Product(on_gpu, kernel, [a, b], first), [a.astype(float) @ b], monkeypatch, scale=scale)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["tiles", "K is cut", "a row", "a batch", "a batch in pieces"])
def test_prologue_and_epilogue(name, first, on_gpu, monkeypatch):
    x, number, other = Load(2, float32), KernelParameter(0, float32), KernelParameter(1, float32)
    kernel = MatmulKernel(
        Load(0, float32) * number, Load(1, float32), (relu(Accumulator(float32) * other + x), Accumulator(float32))
    )
    a, b = operands(name)
    bias = sample(1, b.shape[-1], seed=2)
    sums = np.float32(0.5) * a.astype(float) @ b
    expected = [np.maximum(sums * -2 + bias, 0), sums]
    check(Product(on_gpu, kernel, [a, b, bias], first), expected, monkeypatch, 0.5, -2)


@pytest.mark.parametrize("name", ["tiles", "K is cut", "a row", "turned"])
def test_an_operator_uses_the_fast_call(name):
    a, b = map(mf.tensor, operands(name))
    matmul = mf.fuse(lambda a, b: a @ b)
    assert not isinstance(matmul.plan(a, b).run.__globals__["launch0"], CudaMatmulLauncher)
    assert bits(matmul(a, b)) == bits(a @ b)
    with pytest.raises((TypeError, ValueError, IndexError)):
        matmul.plan(a, b).run.__globals__["launch0"]("one", a.address, b.address)


def test_products_of_two_threads():
    """Each has a workspace of its own, though both come from one pool."""
    a, b = operands("K is cut")
    x = [mf.tensor(a * np.float32(k + 1)) for k in range(2)]
    y = mf.tensor(b)
    expected, wrong = [bits(x[k] @ y) for k in range(2)], []

    def work(k):
        for _ in range(300):
            found = x[k] @ y
        wrong.extend([k] * (bits(found) != expected[k]))
        wrong.extend(k for _ in range(30) if bits(x[k] @ y) != expected[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_products_among_launches_that_are_replayed():
    """A graph keeps the workspaces of its launches; launches by the short way between its replays take others."""
    layers = [mf.tensor(sample(192, 192, seed=k) / 14) for k in range(4)]

    def steps(x, *layers):
        for w in layers:
            x = mf.tanh(x @ w)
        return x

    fused = mf.fuse(steps)
    inputs = [mf.tensor(sample(192, 192, seed=9 + k)) for k in range(3)]
    exact = [x.numpy().astype(float) for x in inputs]
    for w in layers:
        exact = [np.tanh(x @ w.numpy()) for x in exact]
    first, alone = [bits(fused(x, *layers)) for x in inputs], [bits(x @ layers[0]) for x in inputs]
    for x, y in zip(inputs, exact, strict=True):
        assert np.abs(fused(x, *layers).numpy() - y).max() < 1e-5
    for _ in range(12):
        assert [bits(fused(x, *layers)) for x in inputs] == first
        assert [bits(x @ layers[0]) for x in inputs] == alone
        assert bits(fused(mf.tensor(inputs[0].numpy()), *layers)) == first[0]  # at an address that comes for once
