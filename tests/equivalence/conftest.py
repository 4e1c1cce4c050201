"""What the equivalence tests share: the backends, a stranger's among them."""

import pytest

import minifuse as mf
from minifuse.backends.registry import registry

from .meanings import BACKENDS
from .stranger import Stranger


@pytest.fixture(scope="package", autouse=True)
def _stranger():
    """The stranger's backend is there while the tests of this folder run."""
    mf.register_backend(Stranger())
    yield
    for found in (registry.factories, registry.instances):
        found.pop("stranger")


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Each backend by name, and the default of new tensors."""
    with mf.use_backend(request.param):
        yield request.param
