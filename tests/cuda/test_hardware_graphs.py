"""Launches replayed as a CUDA graph on a GPU: the same bits as one by one, whatever changes between the calls."""

import threading

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import float32
from minifuse.core.layout import row_major
from minifuse.core.operators import TABLE, add
from minifuse.ir.kernel_ir import Kernel, KernelParameter, Load, reduce_expr
from minifuse.ir.step_kernels import plain_matmul
from minifuse.runtime.memory_pool import round_to_size_class
from tests.steps import load

from .conftest import bits

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

N = 192  # a product of this size is cut along K, so it has a workspace
COUNTS = [3, 3, 2, 3]


def launches(backend):
    """y = x * number; z = exp(y) + x; s = z.sum(1); w = z @ y. Each with addresses of its outputs, then of its inputs."""
    x, other, number = Load(0, float32), Load(1, float32), KernelParameter(0, float32)
    square, rows = row_major((N, N)), row_major((N, 1)).expand(N, N)
    scaled = Kernel((x.apply(TABLE["mul"], x, number),), ())
    moved = Kernel((x.apply(add, x.apply(TABLE["exp"], x), other),), ())
    summed = Kernel((), (reduce_expr(add, x),))
    return [
        load(backend, scaled, (N, N), (), [square], [square]),
        load(backend, moved, (N, N), (), [square], [square, square]),
        load(backend, summed, (N, N), (1,), [rows], [square]),
        load(backend, plain_matmul(float32), (N, N), (), [square], [square, square]),
    ]


class Memory:
    """The memory of one call: x, y, z, s and w, of which `first` bytes are left free in front."""

    def __init__(self, backend, seed, first=0):
        self.backend, self.size = backend, N * N
        self.x = np.random.default_rng(seed).uniform(-1, 1, (N, N)).astype("f4")
        self.buffers = [backend.allocate(round_to_size_class(4 * N * N + 64)) for _ in range(5)]
        self.addresses = [buffer.address + first for buffer in self.buffers]
        backend.device.copy_in(self.x, self.addresses[0])

    def values(self, number):
        x, y, z, s, w = self.addresses
        return (y, x, number, z, y, x, s, z, w, z, y)

    def results(self):
        """The bytes of y, z, s and w; then they are forgotten."""
        found = []
        for k, count in ((1, N * N), (2, N * N), (3, N), (4, N * N)):
            flat = np.empty(count, "f4")
            self.backend.device.copy_out(self.addresses[k], flat)
            found.append(flat.tobytes())
            self.backend.device.copy_in(np.full(count, np.nan, "f4"), self.addresses[k])
        return found


def one_by_one(parts, values):
    rest = list(values)
    for launch, count in zip(parts, COUNTS, strict=True):
        launch(*rest[:count])
        del rest[:count]


@pytest.fixture
def parts(gpu):
    return launches(gpu)


@pytest.fixture
def sequence(gpu, parts):
    return gpu.join(parts, COUNTS, {})


def expect(memory, parts, values):
    """What the launches give one by one."""
    one_by_one(parts, values)
    return memory.results()


def test_the_same_bits_as_one_by_one(gpu, parts, sequence):
    memory = Memory(gpu, 0)
    values = memory.values(0.5)
    right = expect(memory, parts, values)
    exact = np.exp(memory.x.astype("f8") / 2) + memory.x
    np.testing.assert_allclose(np.frombuffer(right[1], "f4").reshape(N, N), exact, rtol=1e-5, atol=1e-6)
    for _ in range(5):
        sequence(*values)
        assert memory.results() == right
    assert len(sequence.replays) == 1


def test_another_number_in_each_call(gpu, parts, sequence):
    memory = Memory(gpu, 1)
    for number in (0.5, 0.25, -1.5, 0.0, -0.0, 2.0, float("nan"), float("inf"), 1e-3):
        right = expect(memory, parts, memory.values(number))
        sequence(*memory.values(number))
        assert memory.results() == right
    assert sequence.replays


def test_other_addresses(gpu, parts, sequence):
    """Memory that takes turns, and such that is no multiple of 16 bytes, which takes other kernels."""
    memories = [Memory(gpu, 2), Memory(gpu, 3), Memory(gpu, 4, first=4)]
    right = [expect(memory, parts, memory.values(0.5)) for memory in memories]
    for _ in range(4):
        for memory, bits_of in zip(memories, right, strict=True):
            sequence(*memory.values(0.5))
            assert memory.results() == bits_of
    assert len(sequence.replays) == 3


def test_more_memory_than_replays(gpu, parts, sequence):
    memories = [Memory(gpu, seed) for seed in range(11)]
    right = [expect(memory, parts, memory.values(0.5)) for memory in memories]
    for _ in range(3):
        for memory, bits_of in zip(memories, right, strict=True):
            for _ in range(2):
                sequence(*memory.values(0.5))
            assert memory.results() == bits_of


def test_a_graph_is_changed_while_its_last_launch_runs(gpu, parts, sequence):
    """Calls follow each other without a wait; each writes to a place of its own."""
    memory, outs = Memory(gpu, 5), [gpu.allocate(round_to_size_class(4 * N * N)) for _ in range(40)]
    x, y, z, s, _ = memory.addresses
    for step, out in enumerate(outs):
        number = 0.5 + step / 64
        sequence(y, x, number, z, y, x, s, z, out.address, z, y)
    found = []
    for out in outs:
        flat = np.empty(N * N, "f4")
        gpu.device.copy_out(out.address, flat)
        found.append(flat.tobytes())
    for step in range(40):
        assert found[step] == expect(memory, parts, memory.values(0.5 + step / 64))[3]


def test_threads(gpu, parts, sequence):
    """Two threads with memory of their own; the last call of each decides what lies there."""
    memories = [Memory(gpu, 6), Memory(gpu, 7)]
    right = [expect(memory, parts, memory.values(99 / 100)) for memory in memories]
    for _ in range(2):
        sequence(*memories[0].values(0.5))
    errors = []

    def work(memory):
        try:
            for step in range(100):
                sequence(*memory.values(step / 100))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(memory,)) for memory in memories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [memory.results() for memory in memories] == right


def test_work_before_and_after_is_in_order(gpu, sequence):
    """A replay is in the stream like any launch: it reads what was written before, and is read after."""
    memory = Memory(gpu, 8)
    for step in range(6):
        x = mf.tensor(memory.x) * (step + 1)
        _, y, z, s, w = memory.addresses
        sequence(y, x.address, 0.5, z, y, x.address, s, z, w, z, y)
        assert memory.results()[0] == bits(x * 0.5)
