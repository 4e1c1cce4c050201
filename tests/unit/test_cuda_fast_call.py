"""backends.cuda: matmul and attention through the C fast call pass the driver the arguments of the Python launch.

Driver and device are fakes that record each launch, so nothing is computed. Tensor cores may be those of any GPU.
"""

import struct
import time
from threading import Thread, get_ident
from types import SimpleNamespace

import numpy as np
import pytest

from minifuse.backends.cuda.attention.launches import CudaAttentionLauncher
from minifuse.backends.cuda.planned_launcher import CudaMatmulLauncher
from minifuse.backends.fast_call import SLOT_FORMATS, FastLaunch, make_fast_launch
from minifuse.core.dtypes import HIGH, MEDIUM, float32, float64, int32, int64
from minifuse.core.errors import DTypeError
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import relu
from minifuse.ir.attention import Attention, KeyValueGradient, QueryGradient
from minifuse.ir.kernel_ir import Accumulator, IndexValue, KernelParameter, Load, ReadOutput, cast
from minifuse.ir.step_kernels import MatmulKernel, plain_matmul
from minifuse.runtime.memory_pool import MemoryBuffer, Pool

from .test_fast_call import FakeDriver

A, B, DOT = Load(0, float32), Load(1, float32), Accumulator(float32)
FIRST = 1 << 20  # the address of the first operand; the others lie one STEP apart
STEP = 1 << 30


class Prepared:
    """A launch by the long way, which is noted."""

    def __init__(self, device, geometry, shared):
        self.device, self.geometry, self.shared = device, geometry, shared
        device.prepared.append(self)
        self.number = len(device.prepared)

    def __call__(self, *arguments):
        self.device.long.append((self.number, arguments))


class FakeDevice:
    """A GPU whose driver is a fake; maps are found in memory of their own, each at another address."""

    is_simulated = False
    multiprocessors, max_shared_bytes = 132, 227 * 1024

    def __init__(self, tensor_cores=""):
        self.tensor_cores, self.pool, self.prepared, self.long = tensor_cores, Pool(MemoryBuffer), [], []
        self.slots, self.maps, self.tensor_maps = {}, {}, self
        self.fake = FakeDriver(self.slots)

    def load(self, source, kernel, signature, *bounds, **options):
        return signature

    def prepare(self, loaded, geometry, shared=0):
        made = Prepared(self, geometry, shared)
        self.slots[made.number] = len(loaded)
        return made

    def fast_entry(self, runs, kinds, long_way, wide=(), whole=None):
        launches = [
            FastLaunch(run.number, arguments, run.geometry.grid, run.geometry.block, run.shared) for run, arguments in runs
        ]
        return make_fast_launch(self.fake.driver, kinds, launches, long_way, wide, whole)

    def find(self, box, address):
        assert address % 16 == 0
        return self.maps.setdefault((box, address), SimpleNamespace(address=(len(self.maps) + 1) << 50))

    def recover(self, run, arguments, error):
        raise error


def asked_for(ready):
    """What the driver would be asked for by launches that are ready."""
    found = []
    for launch in ready:
        words = [struct.pack("=" + SLOT_FORMATS.get(k, "Q"), x) for k, x in zip(launch.kinds, launch.arguments, strict=True)]
        run = launch.run
        found.append((run.number, (*run.geometry.grid,), (*run.geometry.block,), run.shared, 7, words, None))
    return found


def bound_product(kernel, a, b, cores="", others=(), outputs=1, out=None):
    """A product of layouts, and the addresses of its operands, far from each other."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    inputs = [a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]), *[x.expand(*shape) for x in others]]
    bound = CudaMatmulLauncher(FakeDevice(cores), kernel, [out or row_major(shape)] * outputs, inputs)
    return bound, [FIRST + k * STEP for k in range(outputs + len(inputs))]


def check(bound, values, launches=None):
    """Both ways ask for the same; the short one is a way of its own."""
    device, short = bound.device, bound.fast_entry()
    assert short is not bound
    expected = asked_for(bound.ready_launches(*values))
    assert launches is None or len(expected) == launches
    for _ in range(2):  # a workspace comes back as soon as a call has ended
        device.fake.asked.clear()
        assert short(*values) is None
        assert device.fake.asked == expected
    assert device.long == []
    return expected


def turned(rows, columns):
    return Layout((rows, columns), (1, rows), 0)


PRODUCTS = {  # layouts of a and b, and how many launches
    "tiles": (row_major((64, 64)), row_major((64, 64)), 1),
    "turned": (turned(96, 70), turned(70, 40), 1),
    "K is cut": (row_major((64, 4096)), row_major((4096, 64)), 2),
    "an operand is turned over": (row_major((4096, 4096)), row_major((4096, 4096)), 2),
    "a row": (row_major((1, 4096)), row_major((4096, 4096)), None),
    "a column": (row_major((4096, 4096)), row_major((4096, 1)), None),
    "tall": (row_major((65536, 64)), row_major((64, 64)), 1),
    "deep": (row_major((64, 65536)), row_major((65536, 64)), 2),
    "a batch": (row_major((5, 33, 64)), row_major((5, 64, 17)), None),
    "a batch in pieces": (row_major((70_000, 2, 3)), row_major((70_000, 3, 4)), 2),
    "repeated": (row_major((7, 33, 64)), row_major((64, 17)), None),
    "nothing": (row_major((0, 64)), row_major((64, 17)), 0),
    "sums of nothing": (row_major((8, 0)), row_major((0, 17)), 1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    a, b, launches = PRODUCTS[name]
    bound, addresses = bound_product(plain_matmul(float32), a, b)
    check(bound, addresses, launches)


@pytest.mark.parametrize("dtype", [float64, int32], ids=str)
def test_other_element_types(dtype):
    for name in ("tiles", "K is cut", "a row"):
        bound, addresses = bound_product(plain_matmul(dtype), *PRODUCTS[name][:2])
        check(bound, addresses)


@pytest.mark.parametrize("precision", [HIGH, MEDIUM])
@pytest.mark.parametrize("name", ["turned", "an operand is turned over", "K is cut"])
def test_tensor_cores(name, precision):
    """What the copy engine knows of an operand follows from its address, that of the workspace too."""
    a, b, _ = PRODUCTS[name]
    bound, addresses = bound_product(MatmulKernel(A, B, (DOT,), precision), a, b, "wgmma")
    check(bound, addresses)
    assert bool(bound.device.maps) == (name == "an operand is turned over")
    check(bound, [x + 4096 for x in addresses])


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("precision", ["", HIGH, MEDIUM])
@pytest.mark.parametrize("moved", [(4, 0, 0), (0, 4, 0), (0, 0, 8), (12, 4, 8)], ids=str)
@pytest.mark.parametrize("name", ["tiles", "K is cut", "an operand is turned over"])
def test_addresses_that_are_no_multiples_of_16(name, moved, precision):
    """They take other kernels, by a short way too."""
    a, b, _ = PRODUCTS[name]
    kernel = MatmulKernel(A, B, (DOT,), precision) if precision else plain_matmul(float32)
    bound, addresses = bound_product(kernel, a, b, "wgmma")
    aligned, others = check(bound, addresses), [x + step for x, step in zip(addresses, moved, strict=True)]
    assert check(bound, others) != aligned
    assert check(bound, addresses) == aligned


def scaled():
    """relu(dot * other + x) where a is multiplied by a number on its way in, and the sums as they are."""
    x, number, other = Load(2, float32), KernelParameter(0, float32), KernelParameter(1, float32)
    return MatmulKernel(A * number, B, (relu(DOT * other + x), DOT))


@pytest.mark.parametrize("name", ["tiles", "K is cut", "a row", "a batch", "a batch in pieces"])
def test_prologue_and_epilogue(name):
    a, b, _ = PRODUCTS[name]
    bound, addresses = bound_product(scaled(), a, b, others=[row_major((1, b.shape[-1]))], outputs=2)
    check(bound, (*addresses, 0.1, -2.5))
    check(bound, (*addresses, 3, np.float32(7)))
    for k in range(2):  # of outputs
        moved = list(addresses)
        moved[k] += 4
        check(bound, (*moved, 0.1, -2.5))


def test_positions_are_no_addresses():
    """They count in ones, and need be multiples of nothing."""
    a, b, _ = PRODUCTS["a batch in pieces"]
    index = Layout((70_000, 2, 4), (8, 4, 1), 0)
    kernel = MatmulKernel(A, B, (DOT + cast(IndexValue(2, int64), float32),))
    bound, addresses = bound_product(kernel, a, b, others=[index])
    first, second = check(bound, (*addresses[:3], 3))
    moved = {struct.unpack("=q", y)[0] - struct.unpack("=q", x)[0] for x, y in zip(first[5], second[5], strict=True)}
    assert 65535 * 8 in moved
    assert len(bound.prepared) == 1


def test_numbers_that_need_a_check_have_no_fast_call():
    kernel = MatmulKernel(A, B, (cast(DOT, int32) + KernelParameter(0, int32),))
    bound, addresses = bound_product(kernel, row_major((64, 64)), row_major((64, 64)))
    assert bound.fast_entry() is bound
    with pytest.raises(DTypeError, match="does not fit int32"):
        bound.fast_entry()(*addresses, 2**31)


@pytest.mark.parametrize(("name", "is_short"), [("tiles", True), ("K is cut", True), ("a batch in pieces", False)])
def test_a_failed_in_place_launch_is_not_repeated(name, is_short):
    """After a second launch that fails, the first one would be done again."""
    a, b, _ = PRODUCTS[name]
    bound, addresses = bound_product(MatmulKernel(A, B, (ReadOutput(0, float32) + DOT,)), a, b)
    assert (bound.fast_entry() is not bound) == is_short
    if is_short:
        check(bound, addresses)


@pytest.mark.parametrize("name", ["tiles", "K is cut"])
@pytest.mark.parametrize("precision", ["", HIGH])
def test_a_driver_error_falls_back_to_python(name, precision):
    a, b, _ = PRODUCTS[name]
    bound, addresses = bound_product(
        MatmulKernel(A, B, (DOT,), precision) if precision else plain_matmul(float32), a, b, "wgmma"
    )
    short = bound.fast_entry()
    bound.device.fake.status = 719
    for moved in (0, 4):
        values = [x + moved for x in addresses]
        expected = [(launch.run.number, launch.arguments[1:3]) for launch in bound.ready_launches(*values)]
        bound.device.long.clear()
        short(*values)
        found = [(number, list(arguments[1:3])) for number, arguments in bound.device.long]
        assert found[:1] == expected[:1]  # the second reads a workspace of its own
        assert [number for number, _ in found] == [number for number, _ in expected]


@pytest.mark.parametrize("name", ["tiles", "K is cut", "an operand is turned over"])
def test_odd_values_fall_back_to_python_and_are_rejected(name):
    bound, addresses = bound_product(MatmulKernel(A, B, (DOT,), HIGH), *PRODUCTS[name][:2], "wgmma")
    short = bound.fast_entry()
    for values in ((), addresses[:2], ("one", *addresses[1:]), (*addresses[:2], None)):
        with pytest.raises((TypeError, IndexError)):
            short(*values)
    assert bound.device.fake.asked == []


def test_threads_have_workspaces_of_their_own():
    """From the first launch that writes to one until the last that reads it, no other thread has it."""
    bound, addresses = bound_product(plain_matmul(float32), *PRODUCTS["K is cut"][:2])
    device, short, events = bound.device, bound.fast_entry(), []

    class Slots(dict):
        def __getitem__(self, kernel):
            time.sleep(2e-5)  # others may come
            return super().__getitem__(kernel)

    device.fake.slots = Slots(device.slots)
    device.fake.asked = SimpleNamespace(append=lambda asked: events.append((get_ident(), asked[0], asked[5])))

    def work(k):
        for _ in range(100):
            short(addresses[0] + 4096 * k, *addresses[1:])

    threads = [Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events) == 2 * 600
    held = {}
    for thread, kernel, slots in events:
        if kernel == 2:  # the adder reads what this thread's product has written
            assert held.pop(slots[1]) == thread
        else:
            assert slots[0] not in held
            held[slots[0]] = thread
    assert len({slots[0] for _, kernel, slots in events if kernel == 1}) > 1


@pytest.mark.parametrize("kind", [Attention, QueryGradient, KeyValueGradient], ids=lambda kind: kind.names[0])
@pytest.mark.parametrize("batch", [(3,), (70_000,)], ids=str)
def test_attention(kind, batch):
    q, vector = row_major((*batch, 20, 32)), row_major((*batch, 20))
    outputs = {Attention: [q, vector], QueryGradient: [q], KeyValueGradient: [q, q]}[kind]
    inputs = [q] * 3 if kind is Attention else [q] * 4 + [vector] * 2
    bound = CudaAttentionLauncher(FakeDevice(), kind(True, 0.3), outputs, inputs)
    addresses = [FIRST + k * STEP for k in range(len(outputs) + len(inputs))]
    check(bound, addresses, launches=1 + (batch[0] > 65535))
    addresses[1] += 4  # a fast path of its own
    check(bound, addresses, launches=1 + (batch[0] > 65535))
