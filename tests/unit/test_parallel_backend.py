"""backends.parallel.backend: which kernels are compiled, and bits that do not depend on the number of threads.

The contract is tested for all backends in `test_backends_base`.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Operand
from minifuse.backends.parallel import backend as backend_module
from minifuse.backends.parallel import numba_fallback
from minifuse.backends.parallel.driver import CHUNKS_PER_THREAD, PARALLEL_WORK, THREADS, count_chunks
from minifuse.backends.registry import get_backend
from minifuse.compiler.plan import Plan
from minifuse.core import operators as op
from minifuse.core.dtypes import float32, float64, int64
from minifuse.core.layout import row_major
from minifuse.ir.kernel_ir import Kernel, Load, reduce_expr
from tests.steps import load

backend = get_backend("parallel")


def kernels_of(function):
    """How many kernels a piece of code adds to those in memory, compiled or from disk."""
    before = mf.cache.stats().in_memory
    function()
    return mf.cache.stats().in_memory - before


@pytest.fixture
def compiled(monkeypatch):
    """Names of the functions that were compiled as they are."""
    names = []
    original = numba_fallback.compile_function
    monkeypatch.setattr(numba_fallback, "compile_function", lambda f: names.append(f.__name__) or original(f))
    return names


# Traced, or compiled as it is


def test_arithmetic_is_traced_into_a_kernel_of_ours(compiled):
    out = Operand.empty((5,), float64)
    text = []

    def polynomial(x):
        text.append(type(x).__name__)
        return x * x + 0.625

    backend.map(polynomial, Operand.from_array(np.arange(5.0)), out)
    assert out.data.tolist() == [0.625, 1.625, 4.625, 9.625, 16.625]
    assert compiled == []
    assert text == ["TracedValue"]  # called once, with an expression


def test_a_branch_is_compiled_as_it_is(compiled):
    def leaky(x):
        return x if x > 0 else x * 0.1

    def distance(a, b):
        return a - b if a > b else b - a

    out = Operand.empty((4,), float32)
    x = Operand.from_array(np.array([-1.0, 0.0, 2.0, np.nan], np.float32))
    backend.map(leaky, x, out)
    np.testing.assert_allclose(out.data, np.array([-0.1, 0, 2, np.nan], np.float32))
    backend.zip(distance, x, Operand.from_array(np.ones(4, np.float32)), out)
    np.testing.assert_allclose(out.data, [2, 1, 1, np.nan])
    assert compiled == ["leaky", "distance"]


# What compiles something new


def chain(n, m):
    x = mf.ones(n, m, requires_grad=True)
    d = x - x.mean(1, True)
    y = (mf.relu(d / mf.sqrt((d * d).mean(1, True) + 1e-5)) * mf.ones(m)).softmax(1)
    (y + x).sum().backward()


def test_a_new_size_compiles_nothing():
    chain(4, 8)
    assert kernels_of(lambda: [chain(n, m) for n, m in ((5, 9), (33, 31), (100, 3), (7, 64))]) == 0


def test_a_new_number_compiles_nothing():
    x = mf.tensor([1.0, 2.0, 3.0])
    assert (x * 0.75).tolist() == [0.75, 1.5, 2.25]
    assert kernels_of(lambda: [x * (k + 0.125) for k in range(20)]) == 0
    assert kernels_of(lambda: mf.source(lambda x: x * 17.5, x)) == 0
    assert (x * 100.125).tolist() == [100.125, 200.25, 300.375]
    assert (x * 1e300).tolist() == [np.inf] * 3


def test_a_new_slice_compiles_nothing():
    x = mf.ones(100, 100)
    (x[1:5, 2:7] + 1.5).sum()
    assert kernels_of(lambda: [(x[k : k + 4, 2 * k : 2 * k + 5] + 1.5).sum() for k in range(20)]) == 0


def test_a_new_class_of_strides_does_compile():
    x = mf.arange(12, dtype="float32").reshape(3, 4)
    function = lambda x: (x * 1.5 + 0.25) * (x + 7.5) * (x - 3.5)  # noqa: E731
    plans = [backend.compile(Plan(function, [y]).steps[0]).source for y in (x, x[:, ::2], x[0].expand(3, 4))]
    assert len(set(plans)) == 3


PROGRAM = """
import sys
import minifuse as mf
from minifuse.backends.base import Operand
from numba.core import event

with event.install_recorder("numba:run_pass") as passes:
    x = mf.ones(64, 128, requires_grad=True)
    y = mf.tanh(x * mf.ones(128) + 1.5).softmax(1) @ x.T
    (y + 1).sum().backward()
    x.detach().to(mf.int64).max(0)
stats = mf.cache.stats()
print(stats.compiled, stats.loaded, stats.on_disk, len(passes.buffer), "numba.core.typing" in sys.modules)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    environment = os.environ | {"MINIFUSE_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    results = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        results.append([int(n) for n in run.stdout.split()[:4]])
    (compiled, loaded, on_disk, events), second = results
    assert compiled == on_disk > 5
    assert loaded == 0
    assert events > 0
    assert second == [0, compiled, compiled, 0]


# Threads


def test_small_work_stays_on_one_thread():
    assert count_chunks(1000, PARALLEL_WORK) == 1
    assert count_chunks(1, 1e12) == 1
    assert count_chunks(1 << 20, PARALLEL_WORK + 1) == min(1 << 20, CHUNKS_PER_THREAD * THREADS)
    assert count_chunks(3, 1e12) == 3 or THREADS == 1


def test_work_is_elements_times_cost(monkeypatch):
    asked = []
    monkeypatch.setattr(backend_module, "count_chunks", lambda count, work: asked.append((count, work)) or 1)
    x, shape = Load(0, float32), (6, 50)
    kernel = Kernel((op.exp(x),), ())
    load(backend, kernel, shape, (), [row_major(shape)], [row_major(shape)])
    assert asked.pop() == (300, 300 * kernel.cost())
    kernel = Kernel((), (reduce_expr(op.add, x),))
    load(backend, kernel, shape, (1,), [row_major((6, 1)).expand(*shape)], [row_major(shape)])
    assert asked.pop() == (6, 300 * kernel.cost())


@pytest.mark.parametrize("function", ["sum", "max", "softmax", "columns", "chain", "product"])
def test_the_bits_are_the_same_for_any_number_of_chunks_and_in_each_run(monkeypatch, function):
    call = {
        "sum": lambda x: x.sum(),
        "max": lambda x: x.max() + x.prod(1).sum(),
        "softmax": lambda x: x.softmax(1),
        "columns": lambda x: x.mean(0),
        "chain": lambda x: mf.tanh(x * 1.7) / (x + 3.3),
        "product": lambda x: x @ x.T[:, :50],
    }[function]
    array = np.random.default_rng(0).standard_normal((301, 1003)).astype(np.float32)
    x = mf.tensor(array)
    results = []
    for chunks in (1, 2, 3, 7, 64, 7):
        monkeypatch.setattr(backend_module, "count_chunks", lambda count, work, chunks=chunks: min(count, chunks))
        plan = Plan(call, [x])  # not remembered, so that it is bound anew
        results.append(plan.run(x).numpy().tobytes())
    assert len(set(results)) == 1


def test_processes_with_other_numbers_of_threads_agree(tmp_path):
    program = (
        "import minifuse as mf, hashlib\n"
        "mf.manual_seed(0); x = mf.randn(700, 3001)\n"
        "y = [x.sum(), x.softmax(1), x.mean(0), (x * 1.5).exp(), x.var()]\n"
        "print(hashlib.sha256(b''.join(v.numpy().tobytes() for v in y)).hexdigest())\n"
    )
    found = set()
    for threads in ("1", "2", "5"):
        environment = os.environ | {"MINIFUSE_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


# Binding


def test_a_launch_is_a_function_of_addresses_and_numbers():
    x, out = np.arange(6.0), np.zeros(6)
    kernel = Plan(lambda x: x * 2.5 + 1, [mf.tensor(x)]).steps[0].kernel
    launch = load(backend, kernel, (6,), (), [row_major((6,))], [row_major((6,))])
    launch(out.ctypes.data, x.ctypes.data, 2.5)
    assert out.tolist() == (x * 2.5 + 1).tolist()
    launch(x.ctypes.data, x.ctypes.data, -1.0)
    assert x.tolist() == [1, 0, -1, -2, -3, -4]


def test_a_kernel_over_nothing_writes_nothing():
    out = np.full(3, 7.0)
    launch = load(backend, Kernel((Load(0, float64),), ()), (0, 3), (), [row_major((0, 3))], [row_major((0, 3))])
    launch(out.ctypes.data, out.ctypes.data)
    assert out.tolist() == [7, 7, 7]


def test_binding_the_same_kernel_twice_finds_it():
    layouts = [row_major((5,))], [row_major((5,))]
    kernel = Kernel((op.sin(Load(0, float64)) + op.cos(Load(0, float64)),), ())
    load(backend, kernel, (5,), (), *layouts)
    assert kernels_of(lambda: load(backend, kernel, (5,), (), *layouts)) == 0


def test_an_int64_parameter_beyond_a_double_stays_exact():
    x = mf.tensor([0, 1])
    assert (x + (2**62 + 1)).tolist() == [2**62 + 1, 2**62 + 2]
    assert (x + 3).dtype is int64
