"""backends.registry: names of backends, the default, and new ones."""

import subprocess
import sys
import threading

import pytest

import minifuse as mf
from minifuse.backends import registry as registry_module
from minifuse.backends.cuda.device import driver
from minifuse.backends.python import PythonBackend
from minifuse.backends.registry import Registry, get_backend, registry
from minifuse.core.errors import BackendError


@pytest.fixture(autouse=True)
def same_registry_afterwards(monkeypatch):
    monkeypatch.setattr(registry, "factories", dict(registry.factories))
    monkeypatch.setattr(registry, "instances", dict(registry.instances))
    monkeypatch.setattr(registry, "default", registry.default)


class Another(PythonBackend):
    name = "another"


def test_the_names():
    assert mf.backends()[:2] == ("python", "parallel")
    assert mf.zeros(2).backend == "parallel"


@pytest.mark.parametrize(
    ("gpus", "installed", "found"),
    [
        (0, {"greenlet"}, True),
        (0, set(), False),
        (0, {"numba_cuda"}, False),
        (1, {"numba_cuda"}, False),
        (1, {"greenlet"}, False),
        (1, {"greenlet", "numba_cuda"}, True),
    ],
)
def test_a_gpu_is_a_backend_if_its_packages_are_installed(monkeypatch, gpus, installed, found):
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(gpus, 13000, ""))
    monkeypatch.setattr(registry_module, "find_spec", lambda name: "a spec" if name in installed else None)
    assert registry_module.has_cuda.__wrapped__() is found


def test_a_backend_is_made_once_when_first_asked_for():
    fresh, count = Registry(), []
    registry.factories["counted"] = lambda: count.append(1) or Another()
    assert fresh.instances == {}
    assert count == []
    assert get_backend("counted") is get_backend("counted")
    assert count == [1]


def test_a_backend_names_itself():
    backend = Another()
    assert get_backend(backend) is backend
    assert repr(backend) == "another"


def test_none_is_the_default():
    assert get_backend(None).name == get_backend().name == "parallel"
    mf.set_default_backend("python")
    assert get_backend().name == "python"
    assert mf.tensor([1.0]).backend == mf.rand(2).backend == mf.arange(3).backend == "python"


def test_an_unknown_name_is_an_error_and_changes_nothing():
    with pytest.raises(BackendError, match="backend 'gpu' does not exist; choose one of python, parallel"):
        mf.set_default_backend("gpu")
    with pytest.raises(BackendError), mf.use_backend("gpu"):
        pass
    assert mf.zeros(1).backend == "parallel"


def test_a_block_may_use_another_backend():
    with mf.use_backend("python"):
        assert mf.zeros(1).backend == "python"
        with mf.use_backend("parallel"):
            assert mf.zeros(1).backend == "parallel"
        assert mf.zeros(1).backend == "python"
    assert mf.zeros(1).backend == "parallel"


def test_the_default_is_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), mf.use_backend("python"):
        _ = 1 / 0
    assert mf.zeros(1).backend == "parallel"


def test_a_name_overrides_the_default():
    with mf.use_backend("python"):
        assert mf.zeros(1, backend="parallel").backend == "parallel"
        assert mf.zeros_like(mf.zeros(1, backend="parallel")).backend == "parallel"


def test_a_registered_backend_is_found_by_its_name():
    mf.register_backend(Another())
    assert "another" in mf.backends()
    x = mf.tensor([[1.0, 2.0], [3.0, 4.0]], backend="another", requires_grad=True)
    y = (x.softmax(1) @ x).sum()
    y.backward()
    assert y.backend == x.grad.backend == "another"
    assert (mf.tensor([1.0]).to("another") + 1).tolist() == [2]


def test_a_used_name_is_an_error_except_for_its_backend():
    backend = Another()
    mf.register_backend(backend)
    mf.register_backend(backend)
    with pytest.raises(BackendError, match="a backend named 'another' exists; set another name"):
        mf.register_backend(Another())
    assert get_backend("another") is backend


def test_a_backend_of_a_thread_is_made_once():
    registry.factories["slow"] = Another
    found = []
    threads = [threading.Thread(target=lambda: found.append(get_backend("slow"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert get_backend("slow") in found


def test_importing_and_the_python_backend_load_no_compiler():
    program = (
        "import sys, minifuse as mf\n"
        "x = mf.tensor([1.0, 2.0], backend='python', requires_grad=True)\n"
        "(x * x).sum().backward()\n"
        "print([name for name in ('numba', 'llvmlite', 'torch') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=None)
    assert run.stdout.strip() == "[]"


def test_concurrent_threads_get_one_backend():
    together, found = threading.Barrier(2), []

    def make():
        together.wait()
        return Another()

    registry.factories["another"] = make
    threads = [threading.Thread(target=lambda: found.append(get_backend("another"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
