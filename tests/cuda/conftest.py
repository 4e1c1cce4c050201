"""What the tests on hardware share. Without a GPU they are skipped, with the reason; `make test-gpu` runs them."""

import warnings

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.device import driver


def pytest_collection_modifyitems(items):
    """Without a GPU, what needs one is skipped: a line for each file, with the reason."""
    found = driver.query_driver()
    if not found.gpus:
        why = pytest.mark.skip(reason=f"{found.reason}; make test-gpu tests hardware on a machine that has a GPU")
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(why)


@pytest.fixture(scope="session")
def gpu():
    """The backend of the first GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler's packages, while they are imported
        x = mf.tensor([1.0], backend="cuda")
        assert (x + 1).item() == 2
    return x.meta.backend


@pytest.fixture
def on_gpu(gpu):
    """New tensors lie on the GPU; afterwards its memory goes back."""
    with mf.use_backend("cuda"):
        yield gpu
    gpu.synchronize()
    gpu.device.pool.trim()


def pytest_report_header():
    found = driver.query_driver()
    return f"GPUs: {found.gpus or found.reason}"


def bits(x):
    """The bytes of a tensor's elements: -0.0 and 0.0 differ, and so do NaNs of different kinds."""
    return np.ascontiguousarray(x.numpy()).tobytes()
