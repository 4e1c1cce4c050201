"""The backends by name. A backend is made when it is first asked for, so importing minifuse loads none that is not used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import BackendError
from .base import Backend


def _python() -> Backend:
    from .python import PythonBackend

    return PythonBackend()


def _parallel() -> Backend:
    from .parallel.backend import ParallelBackend

    return ParallelBackend()


class Registry:
    """Backends by name, and the one that new tensors get."""

    def __init__(self) -> None:
        self.makers: dict[str, Callable[[], Backend]] = {"python": _python, "parallel": _parallel}
        self.made: dict[str, Backend] = {}
        self.default = "parallel"


registry = Registry()


def backends() -> tuple[str, ...]:
    """The names of the backends that this machine can use.

    Examples
    --------
    >>> backends()[:2]
    ('python', 'parallel')
    """
    return tuple(registry.makers)


def backend_named(name: "str | Backend | None" = None) -> Backend:
    """The backend of a name, made when it is first asked for; the default one for None."""
    if isinstance(name, Backend):
        return name
    name = registry.default if name is None else name
    if name not in registry.makers:
        raise BackendError(f"backend {name!r} does not exist; there are {', '.join(registry.makers)}")
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
    registry.default = backend_named(name).name


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
