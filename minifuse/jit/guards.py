"""Guards of closures: the state that a function reads from closures, globals, defaults and attributes.

The state of functions that it calls is guarded, too. All of it is part of the key of a fused call, with types. So if a
global changes, the function is traced again, and `True`, `1` and `1.0` are different keys. Tensors in this state are inputs
of the call like its arguments: replacing one by another tensor of the same kind needs no new trace.

If nothing has changed, a check costs about 60 ns per guard, since it compares object identities.

State is not detected if only running the function shows that it is read: `getattr` with a computed name, a file, the time.
Nor is state inside objects of C extensions, which are compared by identity.
"""

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence, Sized
from functools import cache, partial
from hashlib import blake2b
from operator import attrgetter
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import BY_NUMPY, NumpyArray
from ..core.errors import FuseError
from ..core.pytree import DynamicDict
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from ..backends.base import Backend

VALUE_TYPES = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice, np.generic)
MAX_GUARDS = 100_000  # guards of one function
MAX_DIGESTED_ELEMENTS = 1 << 16  # elements that a digest of an array reads in each call, which takes about 0.3 ms
LIBRARY_MODULES = ("minifuse", "numpy", "builtins", *sys.stdlib_module_names)
# Modules of classes whose instances store the user's attributes.
TRANSPARENT_MODULES = ("types", "argparse", "collections", "configparser", "_thread")
get_cell_contents = attrgetter("cell_contents")
DEFAULT_GETTERS = attrgetter("__defaults__"), attrgetter("__kwdefaults__")
BuiltinContainer = tuple[object, ...] | list[object] | dict[object, object] | set[object] | frozenset[object]
METHOD_TYPES = (FunctionType, staticmethod, classmethod, property)

Getter = Callable[[Any], Any]
GuardSite = tuple[Getter, object]  # a getter, and its argument


class IdentityKey:
    """An object in a key. It is compared by identity, even if it has an `__eq__`."""

    __slots__ = ("thing",)

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class Fingerprint:
    """The key that a search built, as one object, so that a lookup compares identities."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[object, ...]) -> None:
        self.entries = entries


class ClosureGuard:
    """The guard of all state that some functions and objects can reach.

    Attributes
    ----------
    tensors : list of Tensor
        The tensors that the last check found, in a fixed order, and tensors over the memory of the NumPy arrays that it
        found.
    """

    def __init__(self, *roots: object) -> None:
        self.roots = roots
        self.key: Fingerprint | None = None
        self.keys: dict[tuple[object, ...], Fingerprint] = {}
        self.tensors: list[Tensor] = []
        self._guard_sites: list[tuple[Getter, object, object]] = []
        self._sizes: list[tuple[Sized, int]] = []
        self._tensors: list[GuardSite] = []
        self._arrays: list[GuardSite] = []
        self._is_known = False

    def array_digests(self) -> tuple[tuple[IdentityKey, bytes], ...]:
        """Return the NumPy arrays among the objects, with digests of their elements, for a key.

        A function computes with their values while it is traced, so a trace is valid for these elements only.
        """
        arrays = [get(name) for get, name in self._arrays]
        return tuple((IdentityKey(x), array_digest(x)) for x in arrays)

    def fingerprint(self) -> Hashable:
        """Return a key of all state except the data of tensors.

        If all guarded objects are identical to those of the last search, it is the previous key.
        """
        if self._is_known:
            try:
                for get, name, value in self._guard_sites:
                    if get(name) is not value:
                        return self.rebuild()
                for container, size in self._sizes:
                    if len(container) != size:
                        return self.rebuild()
                if not self._tensors:
                    return self.key
                self.tensors = [as_tensor(get(name)) for get, name in self._tensors]
                return (self.key, *[x.meta for x in self.tensors])
            except (AttributeError, IndexError, ValueError):  # an object was removed, or is no longer a tensor
                pass
        return self.rebuild()

    def rebuild(self) -> Hashable:
        """Search all reachable state again."""
        search = GuardBuilder(self.roots)
        entries = tuple(search.key)
        self.key = self.keys.setdefault(entries, Fingerprint(entries))
        if len(self.keys) > 1000:
            self.keys = {entries: self.key}
        self._guard_sites, self._sizes, self._tensors = search.guard_sites, search.sizes, search.tensors
        self._arrays = search.arrays
        self._is_known = True
        if not self._tensors:
            self.tensors = []
            return self.key
        self.tensors = [as_tensor(get(name)) for get, name in self._tensors]
        return (self.key, *[x.meta for x in self.tensors])


class GuardBuilder:
    """One search of all reachable state: it builds a key, and the list of guards to check later."""

    def __init__(self, roots: Sequence[object]) -> None:
        self.queue = deque[tuple[object, frozenset[str]]]()  # a queue: long chains must not recurse
        self.key: list[object] = []  # hashable objects
        self.guard_sites: list[tuple[Getter, object, object]] = []
        self.sizes: list[tuple[Sized, int]] = []
        self.tensors: list[GuardSite] = []
        self.arrays: list[GuardSite] = []
        self.numbered: dict[int, tuple[int, object]] = {}  # id -> number in the search, and the object, to keep it alive
        for root in roots:
            self.enqueue(root)
            while self.queue:
                self.visit_object(*self.queue.popleft())

    def add_guard(self, get: Getter, name: object, names: frozenset[str] = frozenset()) -> None:
        """Guard the object that `get(name)` returns. `names` are the names in the code that refers to it."""
        try:
            x = get(name)
        except (AttributeError, ValueError):  # an empty cell
            return
        if isinstance(x, np.ndarray):
            self.arrays.append((get, name))
        if isinstance(x, Tensor) or (isinstance(x, np.ndarray) and x.dtype in BY_NUMPY):
            if id(x) in self.numbered:
                self.guard_sites.append((get, name, x))
                self.key.append(self.numbered[id(x)][0])
            else:
                self.assign_number(x)
                self.tensors.append((get, name))
                self.key.append(Tensor)
            return
        if len(self.guard_sites) > MAX_GUARDS:
            raise FuseError(
                f"fuse: the function refers to more than {MAX_GUARDS:,} objects in closures and globals; pass them as "
                "arguments"
            )
        self.guard_sites.append((get, name, x))
        self.enqueue(x, names)

    def assign_number(self, x: object) -> None:
        """Number an object."""
        self.numbered[id(x)] = len(self.numbered), x

    def enqueue(self, x: object, names: frozenset[str] = frozenset()) -> None:
        """Add an object to the queue of the search."""
        self.queue.append((x, names))

    def visit_object(self, x: object, names: frozenset[str]) -> None:
        """Visit the objects that an object refers to; `names` are the names in the code that refers to it."""
        if isinstance(x, VALUE_TYPES):
            self.key += [type(x), repr(x)]
            return
        if id(x) in self.numbered:
            self.key.append(self.numbered[id(x)][0])
            return
        self.assign_number(x)
        if isinstance(x, tuple | list | dict | set | frozenset):
            self.visit_container(x)
        elif isinstance(x, FunctionType):
            self.visit_function(x)
        elif isinstance(x, METHOD_TYPES):
            for function in method_functions(x):
                self.enqueue(function)
        elif isinstance(x, MethodType):
            self.enqueue(x.__func__)
            self.add_guard(partial(getattr, x), "__self__")
        elif isinstance(x, partial):
            self.key.append(partial)
            for part in ("func", "args", "keywords"):
                self.add_guard(partial(getattr, x), part)
        elif isinstance(x, ModuleType):
            self.visit_module(x, names)
        elif isinstance(x, type):
            self.visit_class(x, names)
        elif hasattr(x, "__guarded__"):  # a fused function, or a custom kernel
            self.enqueue(x.__guarded__)
        else:
            self.visit_instance(x)

    def visit_container(self, x: BuiltinContainer) -> None:
        """Visit the contents of a tuple, list, dict or set."""
        self.key += [type(x), len(x)]
        if not isinstance(x, tuple | frozenset):
            self.sizes.append((x, len(x)))
        if isinstance(x, dict):
            is_dynamic = isinstance(x, DynamicDict)
            for name, value in list(x.items()):
                self.enqueue(name)
                if not (is_dynamic and type(value) in (int, float)):
                    self.add_guard(x.get, name)
        elif isinstance(x, tuple | list):
            for k in range(len(x)):
                self.add_guard(x.__getitem__, k)
        else:
            for value in x:
                self.enqueue(value)

    def visit_function(self, function: FunctionType) -> None:
        """Visit the cells, defaults and globals of a Python function; of a library function, only functions in its cells."""
        self.key.append(IdentityKey(function.__code__))
        if is_library_module(function.__module__):
            self.key.append(IdentityKey(function))
            for cell in function.__closure__ or ():
                if callable(getattr(cell, "cell_contents", None)):  # as in `mf.grad(f)`, and in wrappers of decorators
                    self.add_guard(get_cell_contents, cell)
            return
        for cell in function.__closure__ or ():
            self.add_guard(get_cell_contents, cell)
        for part in DEFAULT_GETTERS:
            self.add_guard(part, function)
        names = frozenset(code_names(function.__code__))
        for name in sorted(names):
            if name in function.__globals__:
                self.add_guard(function.__globals__.get, name, names)

    def visit_module(self, module: ModuleType, names: frozenset[str]) -> None:
        """Visit the attributes of a module that the code uses, unless it is a library module."""
        self.key.append(IdentityKey(module))
        if not is_library_module(module.__name__):
            for name in sorted(names & vars(module).keys()):
                self.add_guard(vars(module).get, name, names)

    def visit_class(self, cls: type, names: frozenset[str]) -> None:
        """Visit methods and other attributes of a class that the code may use."""
        self.key.append(IdentityKey(cls))
        for parent in cls.__mro__:
            if not is_library_module(parent.__module__):
                for name, value in list(vars(parent).items()):
                    if isinstance(value, METHOD_TYPES) or not name.startswith("__"):
                        self.add_guard(vars(parent).get, name, names)

    def visit_instance(self, x: object) -> None:
        """Visit the attributes of an object, and its class."""
        cls = type(x)
        self.key.append(IdentityKey(x) if is_opaque(cls) else IdentityKey(cls))
        if is_opaque(cls):
            return
        if not is_library_module(cls.__module__):
            self.enqueue(cls)
        attributes = getattr(x, "__dict__", None)
        if attributes is not None:
            self.sizes.append((attributes, len(attributes)))
            for name in [name for name in attributes if name not in getattr(cls, "not_captured", ())]:
                self.key.append(name)
                self.add_guard(attributes.get, name)
        for parent in cls.__mro__:
            slots = vars(parent).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__"):
                    self.add_guard(partial(getattr, x), name)


def code_names(code: CodeType) -> Iterator[str]:
    """Yield the names in code, also in nested functions and comprehensions."""
    yield from code.co_names
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from code_names(x)


def method_functions(x: object) -> list[FunctionType]:
    """Return the Python functions of a method, a static or class method, or a property."""
    parts = (x.fget, x.fset) if isinstance(x, property) else (getattr(x, "__func__", x),)
    return [part for part in parts if isinstance(part, FunctionType)]


def is_library_module(module: str | None) -> bool:
    """Return True for modules of minifuse, NumPy, Python and installed packages, which are assumed not to change."""
    name = (module or "").partition(".")[0]
    return name in LIBRARY_MODULES or (name != "__main__" and is_installed(name))


@cache
def is_installed(name: str) -> bool:
    """Return True if a package is in a folder of installed packages."""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def is_opaque(cls: type) -> bool:
    """Return True if objects of a class are compared by identity: builtins, and those of NumPy and minifuse."""
    name = cls.__module__ or ""
    is_model_part = name.startswith(("minifuse.nn", "minifuse.optim", "minifuse.distributed"))
    return is_library_module(name) and not is_model_part and name not in TRANSPARENT_MODULES


def as_tensor(x: Tensor | NumpyArray) -> Tensor:
    """Return a tensor unchanged, and an array as a tensor over the same memory, the same tensor each time."""
    if isinstance(x, np.ndarray):
        cached = _array_tensors.get(id(x))
        if cached is None or cached[0] is not x:
            while len(_array_tensors) > 100:
                _array_tensors.pop(next(iter(_array_tensors)), None)
            cached = _array_tensors[id(x)] = x, Tensor.from_numpy(x, _default_backend())
        return cached[1]
    return x


def array_digest(array: NumpyArray) -> bytes:
    """Return a digest of the elements of an array: of a large one, at most MAX_DIGESTED_ELEMENTS at equal distances."""
    if array.dtype.hasobject:
        return b""  # objects are compared by identity
    sample = array.reshape(-1)[:: -(-array.size // MAX_DIGESTED_ELEMENTS) or 1]
    return blake2b(sample.tobytes()).digest()


def tensor_over(array: object) -> Tensor | None:
    """Return the tensor over the memory of an array that a search has found; None for any other array."""
    cached = _array_tensors.get(id(array))
    return cached[1] if cached is not None and cached[0] is array else None


_array_tensors: dict[int, tuple[NumpyArray, Tensor]] = {}


def _default_backend() -> "Backend":
    from ..backends.registry import get_backend

    return get_backend(None)
