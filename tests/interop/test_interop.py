"""Libraries that compute with tensors by the array API standard: each example, where the library is installed."""

import os
import subprocess
import sys

import pytest

PACKAGES = {"any_array": "numpy", "einops": "einops", "scikit_learn": "sklearn", "scipy": "scipy", "xarray": "xarray"}
RUN = 'import minifuse as mf; mf.set_default_backend("python"); from tests.interop.examples.{} import main; main()'


@pytest.mark.parametrize("example", PACKAGES)
def test_the_example_of_a_library_is_right_on_tensors(example):
    pytest.importorskip(PACKAGES[example])
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}  # SciPy reads it when it is imported
    run = subprocess.run([sys.executable, "-c", RUN.format(example)], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
