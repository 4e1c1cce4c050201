"""The registry of backends by name. A backend is created at first use, so `import minifuse` loads no compiler."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from ..core.errors import BackendError
from ..runtime.memory_pool import MemoryStats
from ..runtime.plan_cache import plan_cache
from .base import Backend


def _python() -> Backend:
    from .python import PythonBackend

    return PythonBackend()


def _parallel() -> Backend:
    from .parallel.backend import ParallelBackend

    return ParallelBackend()


def _cuda(index: int = 0) -> Callable[[], Backend]:
    def create_backend() -> Backend:
        from .cuda.device.driver import require_device

        require_device()
        from .cuda.backend import CudaBackend

        return CudaBackend(index)

    return create_backend


class Registry:
    """Backends by name, and the default backend of new tensors."""

    def __init__(self) -> None:
        self.factories: dict[str, Callable[[], Backend]] = {"python": _python, "parallel": _parallel, "cuda": _cuda()}
        self.instances: dict[str, Backend] = {}
        self.default = "parallel"


registry = Registry()


def backends() -> tuple[str, ...]:
    """Return the names of the backends that this machine can use.

    "cuda" is the first GPU, or the interpreter if there is none. Further GPUs are "cuda:1" and so on. If there is a GPU
    but not the packages of minifuse[cuda13], "cuda" is not among them.

    Examples
    --------
    >>> backends()[:2]
    ('python', 'parallel')
    """
    return tuple(name for name in registry.factories if name != "cuda" or has_cuda())


@cache
def has_cuda() -> bool:
    """Return True if CUDA kernels can run: on a GPU with numba_cuda and greenlet, or in the interpreter, with greenlet."""
    from .cuda.device.driver import query_driver

    return find_spec("greenlet") is not None and (find_spec("numba_cuda") is not None or not query_driver().gpus)


def backend_of_device(device: object) -> str:
    """Return the backend that a device of PyTorch stands for: "cpu", "cuda", "cuda:1", or the number of a GPU.

    PyTorch's users expect a GPU there. So a warning says if there is none and kernels run in the interpreter, unless
    the environment variable MINIFUSE_CUDA asks for it, or tensors are there already.
    """
    from .cuda.device.driver import warn_if_interpreted

    name = f"cuda:{device}" if isinstance(device, int) else str(device)
    if name.startswith("cuda") and name.removesuffix(":0") not in registry.instances:
        warn_if_interpreted()
    return name


def count_gpus() -> int:
    """Return the number of GPUs that kernels can run on. It does not count those that the interpreter simulates."""
    from .cuda.device.driver import query_driver

    return query_driver().gpus if has_cuda() else 0


def host_backend() -> str:
    """Return the backend that PyTorch's device "cpu" stands for: the default backend, or parallel if that is on a GPU."""
    return "parallel" if registry.default.startswith("cuda") else registry.default


def get_backend(name: "str | Backend | None" = None) -> Backend:
    """Return the backend of a name, created at first use; the default backend for None."""
    if isinstance(name, Backend):
        return name
    name = registry.default if name is None else host_backend() if name == "cpu" else name
    kind, _, index = name.partition(":")
    if kind == "cuda" and index:
        if not index.isdecimal():
            raise BackendError(f'backend {name!r} does not exist; write "cuda:0" for the first GPU, "cuda:1" for the second')
        name = f"cuda:{int(index)}" if int(index) else "cuda"
        if name != "cuda" and name not in registry.instances:
            registry.instances.setdefault(name, _cuda(int(index))())
    elif name not in registry.factories:
        raise BackendError(f"backend {name!r} does not exist; choose one of {', '.join(backends())}")
    if name not in registry.instances:
        registry.instances.setdefault(name, registry.factories[name]())  # two threads get the same instance
    return registry.instances[name]


def register_backend(backend: Backend) -> None:
    """Register a backend under its name, for `backend="name"` in other calls.

    Parameters
    ----------
    backend
        An object with `name` and the four methods map, zip, reduce and matmul; see `minifuse.backends.base`.

    Raises
    ------
    BackendError
        Another backend has this name.

    Examples
    --------
    >>> from minifuse.backends.python import PythonBackend
    >>> class Mine(PythonBackend):
    ...     name = "mine"
    >>> register_backend(Mine())
    >>> "mine" in backends()
    True
    >>> _ = registry.factories.pop("mine"), registry.instances.pop("mine")
    """
    if backend.name in registry.factories and registry.instances.get(backend.name) is not backend:
        raise BackendError(f"register_backend: a backend named {backend.name!r} exists; set another name")
    registry.factories[backend.name] = lambda: backend
    registry.instances[backend.name] = backend


def set_default_backend(name: str) -> None:
    """Set the backend of new tensors that are created without the argument `backend`.

    Raises
    ------
    BackendError
        No backend has this name.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.set_default_backend("python")
    >>> mf.zeros(2).backend
    'python'
    >>> mf.set_default_backend("parallel")
    """
    registry.default = get_backend(name).name


class MemoryPools:
    """The memory pools of the backends, one for each device."""

    def stats(self, backend: str | None = None) -> MemoryStats:
        """Return the sizes of a backend's memory pool, and the estimated size of all cached plans.

        Examples
        --------
        >>> import minifuse as mf
        >>> x = mf.ones(1000)
        >>> mf.memory.stats().in_use >= 4000
        True
        """
        return replace(get_backend(backend).pool.stats(), plans=plan_cache.stats().nbytes)

    def trim(self, backend: str | None = None) -> int:
        """Release unused memory to the system or the GPU. Returns the number of bytes."""
        return get_backend(backend).pool.trim()


memory = MemoryPools()


def synchronize(name: str | None = None) -> None:
    """Wait until a backend has finished all launches. A GPU runs kernels while Python continues.

    Use it to measure time, or to get the error of a kernel at the line that launched it. Reading elements waits by itself.

    Examples
    --------
    >>> import minifuse as mf
    >>> y = mf.ones(3).exp()
    >>> mf.synchronize()
    """
    get_backend(name).synchronize()


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Set the default backend of new tensors in a block of code.

    Examples
    --------
    >>> import minifuse as mf
    >>> with mf.use_backend("python"):
    ...     mf.zeros(2).backend
    'python'
    """
    previous = registry.default
    set_default_backend(name)
    try:
        yield
    finally:
        registry.default = previous
