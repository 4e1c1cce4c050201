"""The backends by name. A backend is made when it is first asked for, so importing minifuse loads none that is not used."""

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
    def make() -> Backend:
        from .cuda.backend import CudaBackend

        return CudaBackend(index)

    return make


class Registry:
    """Backends by name, and the one that new tensors get."""

    def __init__(self) -> None:
        self.makers: dict[str, Callable[[], Backend]] = {"python": _python, "parallel": _parallel, "cuda": _cuda()}
        self.made: dict[str, Backend] = {}
        self.default = "parallel"


registry = Registry()


def backends() -> tuple[str, ...]:
    """The names of the backends that this machine can use.

    "cuda" is the first GPU, or the interpreter where there is none; more GPUs are "cuda:1" and so on.

    Examples
    --------
    >>> backends()[:2]
    ('python', 'parallel')
    """
    return tuple(name for name in registry.makers if name != "cuda" or has_cuda())


@cache
def has_cuda() -> bool:
    """Whether there is what runs CUDA kernels: a compiler for a GPU, or the interpreter's lanes."""
    return any(find_spec(part) is not None for part in ("numba_cuda", "greenlet"))


def get_backend(name: "str | Backend | None" = None) -> Backend:
    """The backend of a name, made when it is first asked for; the default one for None."""
    if isinstance(name, Backend):
        return name
    name = registry.default if name is None else name
    kind, _, index = name.partition(":")
    if kind == "cuda" and index:
        if not index.isdecimal():
            raise BackendError(f'backend {name!r} does not exist; GPUs are counted from 0, as in "cuda:0" and "cuda:1"')
        name = f"cuda:{int(index)}" if int(index) else "cuda"
        if name != "cuda" and name not in registry.made:
            registry.made.setdefault(name, _cuda(int(index))())
    elif name not in registry.makers:
        raise BackendError(f"backend {name!r} does not exist; there are {', '.join(backends())}")
    if name not in registry.made:
        registry.made.setdefault(name, registry.makers[name]())  # of two threads that come at once, both get the first
    return registry.made[name]


def register_backend(backend: Backend) -> None:
    """Add a backend, so that `backend="its name"` finds it.

    Parameters
    ----------
    backend
        An object with `name` and the four methods map, zip, reduce and matmul; see `minifuse.backends.base`.

    Raises
    ------
    BackendError
        The name is taken by another backend.

    Examples
    --------
    >>> from minifuse.backends.python import PythonBackend
    >>> class Mine(PythonBackend):
    ...     name = "mine"
    >>> register_backend(Mine())
    >>> "mine" in backends()
    True
    >>> _ = registry.makers.pop("mine"), registry.made.pop("mine")
    """
    if backend.name in registry.makers and registry.made.get(backend.name) is not backend:
        raise BackendError(f"backend {backend.name!r} exists already; give yours another name")
    registry.makers[backend.name] = lambda: backend
    registry.made[backend.name] = backend


def set_default_backend(name: str) -> None:
    """Choose the backend that new tensors get when none is named.

    Raises
    ------
    BackendError
        There is no such backend.

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
    """The pools of memory that the backends hand out, each device its own."""

    def stats(self, backend: str | None = None) -> MemoryStats:
        """Return what a backend's pool holds now, and how much memory the remembered plans take.

        Examples
        --------
        >>> import minifuse as mf
        >>> x = mf.ones(1000)
        >>> mf.memory.stats().in_use >= 4000
        True
        """
        return replace(get_backend(backend).pool.stats(), plans=plan_cache.stats().nbytes)

    def trim(self, backend: str | None = None) -> int:
        """Give the memory that nobody uses back to the system, or to the GPU; gives the number of bytes."""
        return get_backend(backend).pool.trim()


memory = MemoryPools()


def synchronize(name: str | None = None) -> None:
    """Wait until a backend has done all that it was asked for: a GPU works on while Python goes on.

    Needed to measure time, and to see the errors of kernels where they happen. Reading elements waits by itself.

    Examples
    --------
    >>> import minifuse as mf
    >>> y = mf.ones(3).exp()
    >>> mf.synchronize()
    """
    get_backend(name).synchronize()


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Choose the backend of new tensors for a block of code.

    Examples
    --------
    >>> import minifuse as mf
    >>> with mf.use_backend("python"):
    ...     mf.zeros(2).backend
    'python'
    """
    before = registry.default
    set_default_backend(name)
    try:
        yield
    finally:
        registry.default = before
