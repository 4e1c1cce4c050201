"""Serialize a kernel, so that another process compiles it.

A kernel is a Python function: generated text, or a function inside of another one, with the tile shapes and the epilogue as
its closure. `pickle` can only name functions of modules, so cloudpickle, which is a part of Numba, serializes the code of
all others. Intrinsics and device functions of modules are stored by name.
"""

import io
import pickle
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ...simt import cuda as simulated_cuda
from .intrinsics import base
from .intrinsics.base import Intrinsic

if TYPE_CHECKING:
    from numba.cloudpickle import CloudPickler


def dump_kernel(kernel: Callable[..., None]) -> bytes:
    """Return the bytes of a kernel.

    Raises
    ------
    Exception
        The kernel contains an object that cannot be serialized.
    """
    file = io.BytesIO()
    _pickler_class()(file, pickle.HIGHEST_PROTOCOL).dump(kernel)
    return file.getvalue()


def load_kernel(data: bytes) -> FunctionType:
    """Return the kernel of `dump_kernel`, in any process that runs the same version of this package."""
    kernel: FunctionType = pickle.loads(data)  # the bytes come from the process that started this one
    return kernel


def simulated_namespace() -> object:
    """Return the names of `numba.cuda` that kernels refer to before they are rebound."""
    return simulated_cuda


@cache
def _pickler_class() -> "type[CloudPickler]":
    from numba.cloudpickle import CloudPickler  # takes 0.3 s, since it imports Numba

    class KernelPickler(CloudPickler):
        """A pickler that stores the intrinsics of modules by name."""

        def reducer_override(self, value: object) -> Any:
            """Return how to restore a value."""
            if value is simulated_cuda:
                return simulated_namespace, ()
            if not isinstance(value, Intrinsic):
                return super().reducer_override(value)  # type: ignore[no-untyped-call]  # Numba's copy has no types
            name = str(value.__name__)
            for module in (base, sys.modules.get(value.python_semantics.__module__)):
                if getattr(module, name, None) is value:
                    return getattr, (module, name)
            return Intrinsic, (value.python_semantics, value.build)

    return KernelPickler
