"""What is said of a machine's driver, and of its errors. The driver's library is a fake here: no GPU is asked."""

import ctypes

import pytest

import minifuse as mf
from minifuse.backends.cuda import backend as backend_module
from minifuse.backends.cuda import driver
from minifuse.backends.cuda.driver import Found
from minifuse.backends.cuda.simulated import SimulatedDevice
from minifuse.errors import BackendError, CudaError, MissingPartError, OutOfMemoryError


class Library:
    """NVIDIA's driver, as far as `look` asks."""

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
    """`look` at a library, or at none."""

    def at(library, forced=""):
        def load(name):
            assert name in ("libcuda.so.1", "nvcuda.dll")
            if library is None:
                raise OSError(name)
            return library

        monkeypatch.setenv(driver.FORCED, forced)
        monkeypatch.setattr(ctypes, "CDLL", load)
        return driver.look.__wrapped__()

    return at


# What there is


def test_gpus_are_counted(look):
    assert look(Library(count=3, version=12080)) == Found(3, 12080, "")


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
    assert look(Library(), forced) == Found(0, 0, "MINIFUSE_CUDA=simulated is set")


@pytest.mark.parametrize(("version", "extra"), [(13020, "cuda13"), (12040, "cuda12"), (14000, "cuda13"), (0, "cuda13")])
def test_the_extra_that_fits_the_driver(version, extra):
    assert Found(1, version, "").extra == extra


# What is missing


def test_a_driver_that_is_too_old():
    with pytest.raises(CudaError, match=r"for CUDA 11\.4, expected 12\.0 or newer; update the driver, or set MINIFUSE_CUDA"):
        driver.require(Found(1, 11040, ""))


@pytest.mark.parametrize("missing", ["numba_cuda", "cuda.core", "cuda.bindings"])
@pytest.mark.parametrize(("version", "extra"), [(13000, "cuda13"), (12060, "cuda12")])
def test_a_package_that_is_missing(monkeypatch, missing, version, extra):
    def without(name):
        if name.startswith(missing):
            raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(driver, "import_module", without)
    with pytest.raises(
        MissingPartError, match=rf'there is a GPU.*{missing}.*pip install "minifuse\[{extra}\]", or set MINIFUSE'
    ):
        driver.require(Found(1, version, ""))


def test_nothing_is_missing(monkeypatch):
    asked = []
    monkeypatch.setattr(driver, "import_module", asked.append)
    driver.require(Found(1, 12000, ""))
    assert asked == ["cuda.bindings.driver", "cuda.core", "numba_cuda"]


# Which device a backend gets


@pytest.fixture
def device_of(monkeypatch):
    """`device_of` on a machine on which `look` finds something."""

    def on(found, index=0):
        monkeypatch.setattr(driver, "look", lambda: found)
        return backend_module.device_of.__wrapped__(index)

    return on


def test_without_a_gpu_any_number_of_them_is_simulated(device_of):
    for index in (0, 3):
        device = device_of(Found(0, 0, "no NVIDIA driver is installed"), index)
        assert isinstance(device, SimulatedDevice)
        assert device.index == index


def test_a_gpu_that_does_not_exist(device_of):
    with pytest.raises(BackendError, match=r"cuda:2 does not exist; this machine has cuda:0, cuda:1"):
        device_of(Found(2, 13000, ""), 2)


def test_a_gpu_with_an_old_driver_is_not_simulated_silently(device_of):
    with pytest.raises(CudaError, match="expected 12"):
        device_of(Found(1, 11080, ""))


# Errors in words


def test_a_call_gives_its_values_or_an_error():
    class Status(int):
        name = "CUDA_ERROR_INVALID_VALUE"

    assert driver.check((Status(0),)) == []
    assert driver.check((Status(0), 5)) == 5
    assert driver.check((Status(0), 5, 6)) == [5, 6]
    with pytest.raises(CudaError, match=r"^CUDA_ERROR_INVALID_VALUE: code 1$"):
        driver.check((Status(1),))


@pytest.mark.parametrize("name", driver.ADVICE)
def test_errors_that_say_what_to_do(name):
    error = driver.translated(RuntimeError(f"{name}: while a kernel ran"))
    assert type(error) is CudaError
    assert str(error) == f"{name}: while a kernel ran; {driver.ADVICE[name]}"


def test_out_of_memory_is_a_memory_error():
    error = driver.translated(RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: the API call failed"))
    assert isinstance(error, OutOfMemoryError)
    assert isinstance(error, MemoryError)  # so that the pool trims and tries once more
    assert issubclass(OutOfMemoryError, CudaError)


def test_an_error_without_details():
    assert str(driver.translated(ValueError("CUDA_ERROR_UNKNOWN"))) == "CUDA_ERROR_UNKNOWN: ValueError"


def test_the_errors_are_public():
    assert mf.CudaError is CudaError
    assert mf.OutOfMemoryError is OutOfMemoryError
