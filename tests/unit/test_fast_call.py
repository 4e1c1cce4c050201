"""backends.fast_call: the launch through generated C code, with a fake driver that records its arguments."""

import ctypes
import math
from threading import Thread

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.fast_call import (
    IF_ALIGNED,
    SLOT_FORMATS,
    CallValue,
    DriverAddresses,
    FastLaunch,
    encode_argument,
    make_fast_launch,
    make_fast_run,
)

ADDRESS, UINT = ctypes.c_void_p, ctypes.c_uint
SLOTS = ctypes.POINTER(ADDRESS)


def long(*values):
    """The long way, which tells what it was called with."""
    return "long", values


class FakeDriver:
    """cuLaunchKernel and cuCtxSetCurrent as C functions, which answer with `status`; kernel k has slots[k] arguments."""

    def __init__(self, slots, several=False):
        self.asked, self.used, self.status = [], [], 0
        self.slots = {5: slots} if isinstance(slots, int) else slots

        def launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, places, extra):
            values = [ctypes.string_at(places[k], 8) for k in range(self.slots[kernel])]
            self.asked.append((kernel, (gx, gy, gz), (bx, by, bz), shared, stream, values, extra))
            return self.status if isinstance(self.status, int) else self.status[kernel]

        def use(context):
            self.used.append(context)
            return 0

        launch_type = ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS, *[UINT] * 7, ADDRESS, SLOTS, ADDRESS)
        self.functions = launch_type(launch), ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS)(use)
        at, use_at = [ctypes.cast(f, ADDRESS).value for f in self.functions]
        self.driver = DriverAddresses(at, 7, use_at, 99) if several else DriverAddresses(at, 7)

    def launch(self, kinds, constants=(), wide=(), whole=None, long_way=long):
        """A direct launch of kernel 5 over all values, constants, and, where addresses count, what they choose."""
        arguments = [*map(CallValue, range(len(kinds))), *constants, *[IF_ALIGNED] * (whole is not None)]
        return self.sequence(kinds, [FastLaunch(5, arguments, (1, 2, 3), (4, 5, 6), 70)], wide, whole, long_way)

    def sequence(self, kinds, launches, wide=(), whole=None, long_way=long):
        return make_fast_launch(self.driver, kinds, launches, long_way, wide, whole)


def i64(x):
    return int(x).to_bytes(8, "little", signed=True)


def test_everything_reaches_the_driver():
    fake = FakeDriver(slots=5)
    launch = fake.launch(("*f32", "f64", "i64"), constants=[-3, 2**40])
    assert launch(64, -0.1, -9) is None
    values = [i64(64), np.float64(-0.1).tobytes(), i64(-9), i64(-3), i64(2**40)]
    assert fake.asked == [(5, (1, 2, 3), (4, 5, 6), 70, 7, values, None)]
    assert fake.used == []


@pytest.mark.parametrize(
    "value", [0.1, -0.0, math.inf, -math.inf, 1e300, 1e-46, 3, 2**60, True, np.float32(0.3), np.int64(8)]
)
def test_a_number_is_rounded_as_numpy_does(value):
    fake = FakeDriver(slots=1)
    fake.launch(("f32",))(value)
    with np.errstate(over="ignore"):
        assert fake.asked[0][5][0][:4] == np.float32(value).tobytes()


def test_nan_stays_nan():
    fake = FakeDriver(slots=1)
    fake.launch(("f32",))(math.nan)
    assert math.isnan(np.frombuffer(fake.asked[0][5][0][:4], np.float32)[0])


@pytest.mark.parametrize(("a", "b", "last"), [(64, 4096, 1234), (64, 4100, 0), (72, 4096, 0), (8, 8, 0)])
def test_addresses_choose_the_last_argument(a, b, last):
    """Value 1 does not count: it is an operand that takes one element at a time anyway."""
    fake = FakeDriver(slots=5)
    fake.launch(("*f32", "*f32", "*f32"), constants=[11], wide=[0, 2], whole=1234)(a, 3, b)
    assert fake.asked[0][5] == [i64(a), i64(3), i64(b), i64(11), i64(last)]


@pytest.mark.parametrize(
    "values",
    [(), (1,), (1, 2.0, 3), ("1", 2.0), (1.5, 2.0), (1, "2"), (None, 2.0), (2**63, 2.0), (1, 10**400)],
    ids=repr,
)
def test_odd_values_fall_back_to_python(values):
    fake = FakeDriver(slots=2)
    assert fake.launch(("*f32", "f32"))(*values) == ("long", values)
    assert fake.asked == []


def test_a_driver_error_falls_back_to_python():
    fake = FakeDriver(slots=1)
    fake.status = 719
    assert fake.launch(("*f32",))(64) == ("long", (64,))
    assert len(fake.asked) == 1


def test_the_error_of_the_fallback_is_raised():
    fake = FakeDriver(slots=1)

    def refuse(*values):
        raise mf.CudaError("this is what was wrong")

    with pytest.raises(mf.CudaError, match="this is what was wrong"):
        fake.launch(("*f32",), long_way=refuse)("no address")


@pytest.mark.parametrize("kinds", [("*f32", "i32"), ("u8",)])
def test_numbers_that_need_a_check_have_no_fast_call(kinds):
    assert FakeDriver(slots=2).launch(kinds) is None


def test_any_number_of_values_may_count():
    fake = FakeDriver(slots=131)
    launch = fake.launch(("*f32",) * 130, wide=[0, 129], whole=4)
    for values, last in (([64] * 130, 4), ([64] + [1] * 128 + [64], 4), ([64] * 129 + [65], 0), ([72] + [64] * 129, 0)):
        launch(*values)
        assert fake.asked.pop()[5] == [*map(i64, values), i64(last)]


# Several launches, and what their arguments may be.


def test_arguments_in_any_order_and_moved_on():
    fake = FakeDriver(slots=7)
    arguments = [
        CallValue(2),
        -3,
        CallValue(0, 40),
        CallValue(0, -24),
        CallValue(1),
        encode_argument("f32", 1.5),
        CallValue(0),
    ]
    assert fake.sequence(("*f32", "f32", "i64"), [FastLaunch(5, arguments)])(4096, 0.1, 2**40) is None
    number = np.float32(0.1).tobytes() + bytes(4)
    half = np.float32(1.5).tobytes() + bytes(4)
    assert fake.asked[0][5] == [i64(2**40), i64(-3), i64(4136), i64(4072), number, half, i64(4096)]


@pytest.mark.parametrize(
    ("kind", "number"),
    [("f32", -0.1), ("f64", math.pi), ("i8", -5), ("i16", -5), ("i32", -5), ("i64", -(2**62)), ("u8", 1), ("f32", math.inf)],
)
def test_a_constant_fills_its_slot(kind, number):
    numpy = {
        "i8": np.int8,
        "i16": np.int16,
        "f32": np.float32,
        "f64": np.float64,
        "i32": np.int32,
        "i64": np.int64,
        "u8": np.uint8,
    }[kind]
    assert set(SLOT_FORMATS) == {"f32", "f64", "i8", "i16", "i32", "i64", "u8"}
    bytes_of = i64(encode_argument(kind, number))
    assert bytes_of == numpy(number).tobytes().ljust(8, b"\0")


def test_launches_run_in_order_with_their_own_grids():
    fake = FakeDriver(slots={5: 3, 6: 0, 8: 5})
    launches = [
        FastLaunch(8, [CallValue(0), 1, 2, 3, CallValue(1)], (7, 1, 1), (32, 8, 1)),
        FastLaunch(6, [], (1, 9, 1), (64, 1, 1), 1000),
        FastLaunch(5, [9, CallValue(1, 16), 8], (2, 3, 4), (5, 6, 7), 48),
    ]
    assert fake.sequence(("*f32", "*f32"), launches)(64, 128) is None
    assert fake.asked == [
        (8, (7, 1, 1), (32, 8, 1), 0, 7, [i64(64), i64(1), i64(2), i64(3), i64(128)], None),
        (6, (1, 9, 1), (64, 1, 1), 1000, 7, [], None),
        (5, (2, 3, 4), (5, 6, 7), 48, 7, [i64(9), i64(144), i64(8)], None),
    ]


@pytest.mark.parametrize("failing", [8, 6, 5])
def test_after_a_launch_that_fails_none_follows(failing):
    fake = FakeDriver(slots={5: 1, 6: 0, 8: 1}, several=True)
    fake.status = {8: 0, 6: 0, 5: 0, failing: 719}
    launches = [FastLaunch(8, [CallValue(0)]), FastLaunch(6, []), FastLaunch(5, [CallValue(0)])]
    assert fake.sequence(("*f32",), launches)(64) == ("long", (64,))
    assert [kernel for kernel, *_ in fake.asked] == [8, 6, 5][: [8, 6, 5].index(failing) + 1]
    assert fake.used == [99]


@pytest.mark.parametrize(("a", "b", "is_short"), [(64, 4096, True), (64, 4100, False), (72, 4096, False)])
def test_addresses_that_must_be_multiples_of_16(a, b, is_short):
    fake = FakeDriver(slots=3)
    found = fake.launch(("*f32", "*f32", "*f32"), wide=[0, 2])(a, 3, b)
    assert found == (None if is_short else ("long", (a, 3, b)))
    assert len(fake.asked) == is_short


def test_no_launch_at_all():
    fake = FakeDriver(slots=0)
    assert fake.sequence(("*f32",), [])(64) is None
    assert fake.sequence(("*f32",), [])("64") == ("long", ("64",))
    assert fake.asked == []


def test_with_several_gpus_the_context_is_set_first():
    fake = FakeDriver(slots=1, several=True)
    fake.launch(("*f32",))(64)
    assert fake.used == [99]
    assert len(fake.asked) == 1


def test_many_threads():
    """What a call packs is its own: no thread sees another's values."""
    fake = FakeDriver(slots=3)
    launch = fake.launch(("*f32", "i64"), constants=[5])

    def work(first):
        for k in range(first, first + 200):
            launch(k, -k)

    threads = [Thread(target=work, args=(1000 * k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.asked) == 1600
    assert all(slots == [slots[0], i64(-int.from_bytes(slots[0], "little")), i64(5)] for *_, slots, _ in fake.asked)


# A kernel of the CPU, started by the same packing.


def noting_kernel(seen, slots):
    """A C function void(start, stop, args) that notes what it is called with, and its address."""

    def kernel(start, stop, args):
        seen.append((start, stop, [ctypes.string_at(args + 8 * k, 8) for k in range(slots)]))

    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ADDRESS)(kernel)
    return function, ctypes.cast(function, ADDRESS).value


def test_a_cpu_kernel_runs_over_all_elements():
    seen = []
    function, address = noting_kernel(seen, slots=5)
    run = make_fast_run(address, 1000, ["i64", "f64", "i64"], [-3, 2**40], lambda *values: ("long", values))
    assert run(64, -0.1, -9) is None
    assert seen == [(0, 1000, [i64(64), np.float64(-0.1).tobytes(), i64(-9), i64(-3), i64(2**40)])]
    del function


def test_arguments_may_precede_the_values():
    seen = []
    function, address = noting_kernel(seen, slots=6)
    run = make_fast_run(address, 7, ["i64", "f64"], [-3], lambda *values: ("long", values), header=[5, 2**40, -6])
    assert run(64, -0.1) is None
    assert seen == [(0, 7, [i64(5), i64(2**40), i64(-6), i64(64), np.float64(-0.1).tobytes(), i64(-3)])]
    assert run(64, "x") == ("long", (64, "x"))
    del function


@pytest.mark.parametrize("values", [(), (1,), (1, 2.0, 3), ("1", 2.0), (1.5, 2.0), (1, "2"), (2**63, 2.0)], ids=repr)
def test_odd_values_never_reach_a_kernel_of_the_cpu(values):
    seen = []
    function, address = noting_kernel(seen, slots=2)
    run = make_fast_run(address, 8, ["i64", "f64"], [], lambda *values: ("long", values))
    assert run(*values) == ("long", values)
    assert seen == []
    del function
