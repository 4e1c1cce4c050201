"""minifuse: a tensor engine to read in a week. Strides, autodiff, and kernels close to the limit of the hardware.

    import minifuse as mf

    x = mf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x.exp() @ x.T).softmax(1).log().mean()
    y.backward()
    x.grad

Names follow PyTorch. `docs/guide/floors.md` describes an order in which to read the source.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from . import data, nn, optim, testing
from . import functions as _functions
from .backends.registry import backends, memory, register_backend, set_default_backend, synchronize, use_backend
from .core import operators as _operators
from .core.dispatch import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .core.dtypes import OTHER_NAMES as _OTHER_NAMES
from .core.dtypes import bool_, float32, float64, int8, int16, int32, int64, uint8
from .core.errors import (
    BackendError,
    CheckpointError,
    CompileError,
    CudaError,
    DataError,
    DTypeError,
    FuseError,
    GradientError,
    IndexingError,
    MinifuseError,
    MissingPartError,
    OutOfMemoryError,
    OverlapError,
    ShapeError,
    SimtError,
    ViewError,
)
from .core.operators import *  # noqa: F403  # its `__all__` lists the operators that are public names
from .core.precision import (
    get_fast_math,
    get_float32_matmul_precision,
    set_fast_math,
    set_float32_matmul_precision,
    use_fast_math,
    use_float32_matmul_precision,
)
from .core.scalar import Scalar
from .custom_kernels.elementwise import elementwise
from .custom_kernels.indexed import atomic_add
from .custom_kernels.reduction import reduction
from .custom_kernels.scalar_tracer import index
from .inspect.profile import profile
from .ir.array_methods import clip
from .jit.fuse import fuse
from .nn import log_softmax, softmax
from .runtime.kernel_cache import cache
from .tensors.creation import (
    arange,
    empty_like,
    from_dlpack,
    from_numpy,
    full,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .tensors.random import get_rng_state, manual_seed, rand, randn, set_rng_state
from .tensors.serialization import load, load_metadata, load_state, save, save_state
from .tensors.tensor import Tensor
from .tensors.transforms import grad, source

__version__ = "0.2.0"  # the only place; the distribution reads it from here

_LAZY = {  # name -> module, or module:name
    "autograd": "autograd", "fft": "functions.fft", "func": "func", "linalg": "functions.linalg", "simt": "simt",
    "utils": "utils", "vmap": "func:vmap",
    "Shard": "core.shards:Shard",
    **{name: f"tensors.sharded_checkpoint:{name}" for name in ("load_sharded", "merge_shards", "save_sharded")},
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    """Import the library of functions and some packages when they are first used. `mf.simt` needs greenlet.

    The functions of `mf.nn.functional` are here, too: PyTorch has many of them in both places.
    """
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        found = _import_module(f"minifuse.{module}")
        return getattr(found, attribute) if attribute else found
    entry = _functions.load().get(name) or getattr(nn.functional, name, None) or _functions.find_function(name, __all__)
    globals()[name] = entry
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_functions.load(), *_OTHER_NAMES})


__all__ = [
    "BackendError",
    "CheckpointError",
    "CompileError",
    "CudaError",
    "DTypeError",
    "DataError",
    "FuseError",
    "GradientError",
    "IndexingError",
    "MinifuseError",
    "MissingPartError",
    "OutOfMemoryError",
    "OverlapError",
    "Scalar",
    "ShapeError",
    "Shard",  # noqa: F405  # `__getattr__` imports it
    "SimtError",
    "Tensor",
    "ViewError",
    "arange",
    "atomic_add",
    "autograd",  # noqa: F405  # `__getattr__` imports it
    "backends",
    "bool_",
    "cache",
    "clip",
    "data",
    "elementwise",
    "empty_like",
    "enable_grad",
    "fft",  # noqa: F405  # `__getattr__` imports it
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "full",
    "func",  # noqa: F405  # `__getattr__` imports it
    "fuse",
    "get_fast_math",
    "get_float32_matmul_precision",
    "get_rng_state",
    "grad",
    "index",
    "inference_mode",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "linalg",  # noqa: F405  # `__getattr__` imports it
    "load",
    "load_metadata",
    "load_sharded",  # noqa: F405  # `__getattr__` imports it
    "load_state",
    "log_softmax",
    "manual_seed",
    "memory",
    "merge_shards",  # noqa: F405  # `__getattr__` imports it
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "optim",
    "profile",
    "rand",
    "randn",
    "reduction",
    "register_backend",
    "save",
    "save_sharded",  # noqa: F405  # `__getattr__` imports it
    "save_state",
    "set_default_backend",
    "set_fast_math",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_rng_state",
    "simt",  # noqa: F405  # `__getattr__` imports it
    "softmax",
    "source",
    "synchronize",
    "tensor",
    "testing",
    "uint8",
    "use_backend",
    "use_fast_math",
    "use_float32_matmul_precision",
    "utils",  # noqa: F405  # `__getattr__` imports it
    "vmap",  # noqa: F405  # `__getattr__` imports it
    "zeros",
    "zeros_like",
]
__all__ += _operators.__all__
