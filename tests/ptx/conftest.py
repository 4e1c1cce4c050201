"""What the tests of this folder need: the compiler for CUDA. They need no GPU."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _compiler():
    """Skip where there is no compiler."""
    pytest.importorskip(
        "numba_cuda", reason='numba-cuda is not installed: pip install "minifuse[cuda13]" (no GPU is needed)'
    )
