"""backends.cuda.device.driver: versions and errors of the NVIDIA driver, with a fake driver library."""

import ctypes
import weakref
from itertools import count

import pytest

import minifuse as mf
from minifuse.backends.cuda import backend as backend_module
from minifuse.backends.cuda.device import driver
from minifuse.backends.cuda.device.driver import DriverInfo
from minifuse.backends.cuda.device.gpu import GpuDevice
from minifuse.backends.cuda.device.simulated_device import SimulatedDevice
from minifuse.core.errors import BackendError, CudaError, MissingPartError, OutOfMemoryError
from minifuse.runtime.memory_pool import Pool


class Library:
    """NVIDIA's driver, as far as `query_driver` asks."""

    def __init__(self, count=1, version=13000, init=0, failing=""):
        self.count, self.version, self.init, self.failing = count, version, init, failing

    def cuInit(self, flags):  # noqa: N802
        return self.init

    def cuDriverGetVersion(self, pointer):  # noqa: N802
        pointer._obj.value = self.version
        return int(self.failing == "version")

    def cuDeviceGetCount(self, pointer):  # noqa: N802
        pointer._obj.value = self.count
        return int(self.failing == "count")


@pytest.fixture
def look(monkeypatch):
    """`query_driver` at a library, or at none."""

    def at(library, forced=""):
        def load(name):
            assert name in ("libcuda.so.1", "nvcuda.dll")
            if library is None:
                raise OSError(name)
            return library

        monkeypatch.setenv(driver.SIMULATE_VARIABLE, forced)
        monkeypatch.setattr(ctypes, "CDLL", load)
        return driver.query_driver.__wrapped__()

    return at


# What there is


def test_gpus_are_counted(look):
    assert look(Library(count=3, version=12080)) == DriverInfo(3, 12080, "")


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (None, "no NVIDIA driver is installed"),
        (Library(init=100), "the NVIDIA driver finds no GPU"),
        (Library(count=0), "the NVIDIA driver finds no GPU"),
        (Library(init=999), "the NVIDIA driver does not start (error 999)"),
        (Library(failing="version"), "the NVIDIA driver does not start (error 0)"),
        (Library(failing="count"), "the NVIDIA driver does not start (error 0)"),
    ],
)
def test_why_there_is_none(look, library, reason):
    found = look(library)
    assert found.gpus == 0
    assert found.reason == reason


@pytest.mark.parametrize("forced", ["simulated", "Simulated"])
def test_the_interpreter_can_be_asked_for(look, forced):
    assert look(Library(), forced) == DriverInfo(0, 0, "MINIFUSE_CUDA=simulated is set")


@pytest.mark.parametrize(("version", "extra"), [(13020, "cuda13"), (12040, "cuda12"), (14000, "cuda13"), (0, "cuda13")])
def test_the_extra_that_fits_the_driver(version, extra):
    assert DriverInfo(1, version, "").extra == extra


# What is missing


def test_a_driver_that_is_too_old():
    with pytest.raises(CudaError, match=r"for CUDA 11\.4, expected 12\.0 or newer; update the driver, or set MINIFUSE_CUDA"):
        driver.require_cuda_packages(DriverInfo(1, 11040, ""))


@pytest.mark.parametrize("missing", ["numba_cuda", "cuda.core", "cuda.bindings"])
@pytest.mark.parametrize(("version", "extra"), [(13000, "cuda13"), (12060, "cuda12")])
def test_a_package_that_is_missing(monkeypatch, missing, version, extra):
    def without(name):
        if name.startswith(missing):
            raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(driver, "import_module", without)
    with pytest.raises(
        MissingPartError, match=rf'a GPU was found.*{missing}.*pip install "minifuse\[{extra}\]", or set MINIFUSE'
    ):
        driver.require_cuda_packages(DriverInfo(1, version, ""))


def test_nothing_is_missing(monkeypatch):
    asked = []
    monkeypatch.setattr(driver, "import_module", asked.append)
    monkeypatch.setattr(driver, "is_numpy_supported", lambda: True)
    driver.require_cuda_packages(DriverInfo(1, 12000, ""))
    assert asked == ["cuda.bindings.driver", "cuda.core", "numba_cuda"]


# Which device a backend gets


@pytest.fixture
def device_of(monkeypatch):
    """`get_device` on a machine on which `query_driver` finds something."""

    def on(found, index=0):
        monkeypatch.setattr(driver, "query_driver", lambda: found)
        return backend_module.get_device.__wrapped__(index)

    return on


def test_without_a_gpu_any_number_of_them_is_simulated(device_of):
    for index in (0, 3):
        device = device_of(DriverInfo(0, 0, "no NVIDIA driver is installed"), index)
        assert isinstance(device, SimulatedDevice)
        assert device.index == index


def test_a_gpu_that_does_not_exist(device_of):
    with pytest.raises(BackendError, match=r"cuda:2 does not exist; this machine has cuda:0, cuda:1"):
        device_of(DriverInfo(2, 13000, ""), 2)


def test_a_gpu_with_an_old_driver_is_not_simulated_silently(device_of):
    with pytest.raises(CudaError, match="expected 12"):
        device_of(DriverInfo(1, 11080, ""))


# Errors in words


def test_a_call_returns_its_values_or_raises():
    class Status(int):
        name = "CUDA_ERROR_INVALID_VALUE"

    assert driver.check((Status(0),)) == []
    assert driver.check((Status(0), 5)) == 5
    assert driver.check((Status(0), 5, 6)) == [5, 6]
    with pytest.raises(CudaError, match=r"^CUDA_ERROR_INVALID_VALUE: code 1$"):
        driver.check((Status(1),))


@pytest.mark.parametrize("name", driver.ADVICE)
def test_driver_errors_name_a_remedy(name):
    error = driver.translate_error(RuntimeError(f"{name}: while a kernel ran"))
    assert type(error) is CudaError
    assert str(error) == f"{name}: while a kernel ran; {driver.ADVICE[name]}"


def test_out_of_memory_is_a_memory_error():
    error = driver.translate_error(RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: the API call failed"))
    assert isinstance(error, OutOfMemoryError)
    assert isinstance(error, MemoryError)  # so that the pool trims and tries once more
    assert issubclass(OutOfMemoryError, CudaError)


class Allocation:
    """What cuda.core gives for memory."""


class Gpu:
    """As much of a GPU and of its driver as an allocation needs: `room` bytes."""

    def __init__(self, room, reason="CUDA_ERROR_OUT_OF_MEMORY: the API call failed"):
        self.room, self.reason, self.memory_resource = room, reason, self
        self.handles = count(4096, 4096)

    def set_current(self):
        pass

    def allocate(self, nbytes, stream):
        if nbytes > self.room:
            raise RuntimeError(self.reason)
        self.room -= nbytes
        owner = Allocation()
        owner.handle = next(self.handles)
        weakref.finalize(owner, self.give_back, nbytes)
        return owner

    def give_back(self, nbytes):
        self.room += nbytes

    def cuMemGetInfo(self):  # noqa: N802
        return 0, self.room, 1 << 20


def device_with(gpu):
    device = GpuDevice.__new__(GpuDevice)
    device.index, device.count, device.core, device.bindings, device.stream = 0, 1, gpu, gpu, None
    device.pool = Pool(device.allocate, keep=1 << 19)
    return device


def test_unused_memory_is_freed_before_an_error():
    device = device_with(Gpu(room=10_000))
    buffers = [device.pool.allocate(1 << 12) for _ in range(2)]
    assert device.core.room == 10_000 - 2 * 4096
    del buffers
    assert device.pool.allocate(1 << 13).nbytes == 1 << 13
    assert device.pool.reserved == 1 << 13


def test_a_failed_allocation_names_the_free_memory():
    device = device_with(Gpu(room=10_000))
    kept = device.pool.allocate(1 << 12)
    with pytest.raises(
        OutOfMemoryError,
        match=r"cuda:0: cannot allocate 16,384 bytes; 5,904 of 1,048,576 bytes are free, and tensors and the memory",
    ):
        device.pool.allocate(1 << 14)
    assert kept.address % 4096 == 0
    assert device.pool.allocate(1 << 10).nbytes == 1 << 10  # and life goes on


def test_other_errors_of_an_allocation_are_passed_on():
    device = device_with(Gpu(room=0, reason="CUDA_ERROR_ILLEGAL_ADDRESS: a kernel before"))
    with pytest.raises(CudaError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS.*MINIFUSE_CUDA=simulated") as found:
        device.pool.allocate(64)
    assert not isinstance(found.value, MemoryError)


def test_an_error_without_details():
    assert str(driver.translate_error(ValueError("CUDA_ERROR_UNKNOWN"))) == "CUDA_ERROR_UNKNOWN: ValueError"


def test_the_errors_are_public():
    assert mf.CudaError is CudaError
    assert mf.OutOfMemoryError is OutOfMemoryError


@pytest.mark.parametrize(
    ("reason", "error", "words"),
    [
        (
            "CUDA_ERROR_OUT_OF_MEMORY: the API call failed",
            OutOfMemoryError,
            r"cuda:1 has too little free memory to start",
        ),
        ("CUDA_ERROR_NO_DEVICE: none", CudaError, r"CUDA_ERROR_NO_DEVICE: none"),
    ],
)
def test_a_gpu_that_does_not_start_names_the_reason(monkeypatch, reason, error, words):
    core = pytest.importorskip("cuda.core", reason='cuda-core is not installed: pip install "minifuse[cuda13]"')

    class Full:
        def __init__(self, index):
            pass

        def set_current(self):
            raise RuntimeError(reason)

    monkeypatch.setattr(core, "Device", Full)
    monkeypatch.setattr(driver, "query_driver", lambda: DriverInfo(2, 13000, ""))
    with pytest.raises(error, match=words):
        GpuDevice(1)
