"""From a function written for Numba to one that the machine can run, with our words in the place of Numba's.

The function is copied, never changed: the code with its loops counted, other globals, closure, defaults and builtins. The
functions that it calls are adopted as well. The values behind names are looked up again for each launch, so a global that
changed is seen; Numba would keep the value of its first compilation. A name that kernels here do not have raises
UnknownWordError with the line that uses it.
"""

import builtins
import cmath
import dis
import enum
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NoReturn

import numpy as np

from ..core.errors import UnknownWordError
from . import random
from .address_spaces import ConstantClosureArray, DeviceClosureArray, is_device_memory
from .arithmetic import CASTS, CMATH, DTYPE_ALIASES, MATH, NUMPY, IntegerCast, scalar_argument, split_names
from .cuda_api import CudaNamespace, cuda
from .lanes import KERNEL_BUILTINS, file_name, raise_unknown
from .libdevice import LIBDEVICE
from .loops import count_loops

NUMBA: Final = ("numba", "numba_cuda")
MAX_CACHED_KERNELS: Final = 256  # adopted kernels
COOPERATIVE_NAMES: Final = {"cg", "this_grid"}
PLAIN_TYPES: Final = (bool, int, float, complex, str, enum.Enum, enum.EnumType)
Line = tuple[str, int]
UNSUPPORTED_OPCODES: Final = {
    "IMPORT_NAME": "import",
    "PUSH_EXC_INFO": "try and with",
    "YIELD_VALUE": "yield",
    "LOAD_BUILD_CLASS": "class",
    "BUILD_MAP": "a dict",
    "BUILD_SET": "a set",
    "STORE_GLOBAL": "global",
    "DELETE_GLOBAL": "global",
}
ARRAY_FUNCTIONS: Final = split_names(
    "dot matmul sum prod mean max min any all argmax argmin cumsum sort linalg where clip concatenate"
)
ARRAY_CREATION_FUNCTIONS: Final = split_names(
    "zeros ones empty full arange linspace array zeros_like empty_like ones_like full_like"
)
SUGGESTIONS: Final = {  # of a name that kernels do not have
    **{f"np.{name}": "write a loop over the elements, or call it on the host" for name in ARRAY_FUNCTIONS},
    **{f"np.{name}": "write cuda.local.array(shape, dtype), or pass an array in" for name in ARRAY_CREATION_FUNCTIONS},
    "np.random": "write xoroshiro128p_uniform_float32(states, i) of numba.cuda.random",
    "import": "import at the top of the file",
    "try and with": "test for the case with an `if`: a kernel handles no exceptions",
    "yield": "write a loop",
    "class": "define it outside the kernel",
    "a dict": "take an array or a tuple",
    "a set": "take an array or a tuple",
    "global": "store in an array: the globals of a kernel are constants",
    "sorted": "sort on the host, or write a loop over an array",
    "sum": "write a loop over the elements",
}
MISSING: Final = object()


class ReboundKernel:
    """A kernel that the machine can run, and the values that it was made for."""

    def __init__(self, function: Callable[..., None], source: FunctionType, sources: "Rebinder") -> None:
        self.function, self.source = function, source
        self.parameter_names = list(source.__code__.co_varnames[: source.__code__.co_argcount])
        self.is_cooperative = sources.is_cooperative
        self._seen, self._copied = sources.seen, sources.copied

    def is_current(self) -> bool:
        """Whether every name still means what it meant."""
        try:
            return all(lookup(key) is value for _, lookup, key, value in self._seen)
        except ValueError:  # a cell that is empty now
            return False

    def changed_globals(self) -> list[str]:
        """Return the names that have another value than when the kernel was adopted; of an array, other elements."""
        found = [
            name for name, array, copy in self._copied if not np.array_equal(array, copy, equal_nan=array.dtype.kind in "fc")
        ]
        for name, lookup, key, value in self._seen:
            try:
                now = lookup(key)
            except ValueError:
                now = MISSING
            is_equal = now is value or (
                type(now) is type(value) and isinstance(now, (*PLAIN_TYPES, np.generic)) and now == value
            )
            if not is_equal:
                found.append(name)
        return list(dict.fromkeys(found))


class ModuleProxy:
    """A module as a kernel sees it: its words, and others that are found when they are asked for."""

    def __init__(self, find: Callable[[str], Any], known: Mapping[str, Any]) -> None:
        self._find = find
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        return self._find(name)


class Rebinder:
    """Adopts one kernel with all that it calls.

    Parameters
    ----------
    copies_arrays : bool
        Whether arrays of the program around the kernel keep the elements that they have now, as Numba compiles them in.
    """

    def __init__(self, copies_arrays: bool = False) -> None:
        self.seen: list[tuple[str, Callable[[Any], Any], Any, Any]] = []  # name, how it is looked up, the key, the value
        self.copied: list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []  # name, array, copy
        self._copies_arrays = copies_arrays
        self.is_cooperative = False
        self._copies: dict[FunctionType, FunctionType] = {}

    def copy(self, function: FunctionType) -> FunctionType:
        """The function over our words."""
        if function in self._copies:
            return self._copies[function]
        code = function.__code__
        known_names: dict[str, Any] = {"__builtins__": KERNEL_BUILTINS, "__name__": function.__globals__.get("__name__")}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copied = FunctionType(count_loops(code), known_names, function.__name__, None, cells)
        self._copies[function] = copied
        self.is_cooperative |= not COOPERATIVE_NAMES.isdisjoint(code.co_names)
        check_opcodes(code)
        for name, attribute, line in used_globals(code):
            value = self._lookup(name, function.__globals__.get, name, MISSING)
            if value is not MISSING:
                known_names[name] = self.rebind_value(value, name, (code.co_filename, line), attribute)
            elif name not in KERNEL_BUILTINS:
                raise_unknown_name(name, (code.co_filename, line))
        for name, cell, original in zip(code.co_freevars, cells, function.__closure__ or (), strict=True):
            value = self._lookup(name, cell_contents, original)
            cell.cell_contents = self.rebind_value(value, name, (code.co_filename, code.co_firstlineno))
        place = code.co_filename, code.co_firstlineno
        copied.__defaults__ = (
            tuple(self.rebind_value(value, "a default", place) for value in function.__defaults__ or ()) or None
        )
        copied.__kwdefaults__ = {
            name: self.rebind_value(value, name, place) for name, value in (function.__kwdefaults__ or {}).items()
        }
        return copied

    def _lookup(self, name: str, lookup: Callable[..., Any], key: Any, default: Any = None) -> Any:
        value = lookup(key) if default is None else lookup(key, default)
        self.seen.append((name, lookup, key, None if value is MISSING else value))
        return value

    def rebind_value(self, value: Any, name: str, place: Line, attribute: str | None = None) -> Any:
        """What a value of the program around the kernel is in the kernel; `attribute` of it is what the kernel uses."""
        if isinstance(value, ModuleType) or value is cuda:
            return self._module(value, name, place, attribute)
        if (
            value is None
            or isinstance(value, (*PLAIN_TYPES, np.dtype))
            or is_simt_object(value)
            or getattr(value, "is_word", False)
        ):
            return value
        if getattr(value, "python_semantics", None) is not None:
            semantics = value.python_semantics
            return self.rebind_value(semantics, name, place) if isinstance(semantics, type) else semantics
        found = find_equivalent(value)
        if found is not MISSING:
            self.is_cooperative |= getattr(value, "__name__", "") in COOPERATIVE_NAMES
            return found
        if isinstance(value, tuple):
            parts = [self.rebind_value(part, f"{name}[{index}]", place) for index, part in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, np.ndarray):
            return ConstantClosureArray(name, self._array(name, value))
        if is_device_memory(value):
            return DeviceClosureArray(name, value)
        if isinstance(value, np.generic):
            return scalar_argument(value)
        function = python_function(value)
        if function is not None:
            return self.copy(function)
        if isinstance(value, type) and (issubclass(value, Exception) or hasattr(value, "_fields")):
            return value
        return raise_unknown_name(name, place, f" of type {type(value).__name__}" if value is not MISSING else "")

    def _array(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the array of the program around the kernel as the kernel is to see it."""
        if not self._copies_arrays:
            return array
        known = next((copy for _, original, copy in self.copied if original is array), None)
        if known is None:
            known = array.copy(order="K")
            self.copied.append((name, array, known))
        return known

    def _module(self, module: Any, name: str, place: Line, attribute: str | None) -> Any:
        table = TABLES.get(module.__name__) if isinstance(module, ModuleType) else None
        if table is not None:
            if attribute is not None and attribute not in table:
                raise_unknown_name(f"{name}.{attribute}", place)
            return ModuleProxy(lambda key: raise_unknown(f"{name}.{key}"), table)
        if is_numba_cuda(module):
            if (
                attribute is not None
                and not hasattr(CudaNamespace, attribute)
                and DTYPE_ALIASES.get(attribute, attribute) not in CASTS
            ):
                raise_unknown_name(f"{name}.{attribute}", place)
            return cuda
        words = ModuleProxy(lambda key: self.rebind_value(getattr(module, key, MISSING), f"{name}.{key}", place), {})
        if attribute is not None:
            getattr(words, attribute)
        return words


def rebind_frozen(function: FunctionType) -> ReboundKernel:
    """Return a kernel that keeps the globals that it has now, as Numba does from its first compilation on."""
    adopter = Rebinder(copies_arrays=True)
    return ReboundKernel(adopter.copy(function), function, adopter)


def rebind(kernel: Any) -> ReboundKernel:
    """Return the kernel for our machine; the one of the last launch where every name still means the same."""
    if isinstance(kernel, ReboundKernel):
        return kernel
    source = python_function(kernel)
    if source is None:
        raise UnknownWordError(f"a kernel is a Python function or what cuda.jit makes of one; got {type(kernel).__name__}")
    with LOCK:
        found = CACHE.get(source)
        if found is None or not found.is_current():
            adopter = Rebinder()
            found = CACHE[source] = ReboundKernel(adopter.copy(source), source, adopter)
            if len(CACHE) > MAX_CACHED_KERNELS:
                CACHE.popitem(last=False)
        return found


TABLES: Final[Mapping[str, Mapping[str, Any]]] = {"math": MATH, "cmath": CMATH, "numpy": NUMPY}
CACHE: OrderedDict[FunctionType, ReboundKernel] = OrderedDict()
LOCK: Final = threading.RLock()


def cell_contents(cell: CellType) -> Any:
    """What a variable of the surrounding function holds."""
    return cell.cell_contents


def python_function(value: Any) -> FunctionType | None:
    """The Python function behind a kernel or a device function; None where there is none."""
    while not isinstance(value, FunctionType):
        value = getattr(value, "py_func", None) or getattr(value, "python_semantics", None)
        if value is None:
            return None
    return value


def is_simt_object(value: Any) -> bool:
    """Whether it is a word of this package already."""
    kind = value if isinstance(value, type | FunctionType) else type(value)
    return kind.__module__ in (CudaNamespace.__module__, IntegerCast.__module__)


def is_numba_cuda(module: Any) -> bool:
    """Whether it is the module that scripts call `cuda`, or ours."""
    return (
        module is cuda
        or module is sys.modules.get("numba.cuda")
        or module.__name__ in ("numba.cuda", "numba_cuda.numba.cuda")
    )


def find_equivalent(value: Any) -> Any:
    """Our word for an object of math, NumPy, Python or Numba; MISSING where it is none of them."""
    try:
        if value in EQUIVALENTS:
            return EQUIVALENTS[value]
    except TypeError:  # it has no hash, so it is none of these
        return MISSING
    module = getattr(value, "__module__", None) or ""
    if type(value).__module__.partition(".")[0] in NUMBA and isinstance(getattr(value, "name", None), str):
        return CASTS.get(DTYPE_ALIASES.get(value.name, value.name), MISSING)
    if module.endswith("cuda.random") and module.partition(".")[0] in NUMBA:
        return getattr(random, value.__name__, MISSING)
    if module.endswith("cuda.libdevice") and module.partition(".")[0] in NUMBA:
        return LIBDEVICE.get(value.__name__, MISSING)
    real = sys.modules.get("numba.cuda")
    if real is not None:
        for name in CUDA_NAMES:
            if getattr(real, name, MISSING) is value:
                return getattr(cuda, name)
        if getattr(getattr(real, "cg", None), "this_grid", MISSING) is value:
            return cuda.cg.this_grid
        atomic = getattr(real, "atomic", None)
        for name in ATOMIC_NAMES:
            if getattr(atomic, name, MISSING) is value:
                return getattr(cuda.atomic, name)
    return MISSING


CUDA_NAMES: Final = [name for name in vars(CudaNamespace) if not name.startswith("_") and name != "laneid"]
ATOMIC_NAMES: Final = [name for name in vars(type(cuda.atomic)) if not name.startswith("_")]
EQUIVALENTS: Final[dict[Any, Any]] = {
    **{getattr(builtins, name): word for name, word in KERNEL_BUILTINS.items() if callable(word)},
    **{getattr(np, name): word for name, word in NUMPY.items() if callable(word)},
    **{getattr(math, name): word for name, word in MATH.items() if callable(word) and hasattr(math, name)},
    **{getattr(cmath, name): word for name, word in CMATH.items() if callable(word)},
}


def used_globals(code: CodeType) -> Iterator[tuple[str, str | None, int]]:
    """Each global name that a function and the functions in it use, the attribute taken of it, and the line."""
    line = code.co_firstlineno
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            takes = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
            yield step.argval, following.argval if takes and following else None, line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from used_globals(constant)


def check_opcodes(code: CodeType) -> None:
    """Refuse what Numba has no meaning for on a GPU."""
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname in UNSUPPORTED_OPCODES:
            raise_unknown_name(UNSUPPORTED_OPCODES[step.opname], (code.co_filename, line))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            check_opcodes(constant)


def raise_unknown_name(name: str, place: Line, what: str = "") -> NoReturn:
    """Raise the error for a name that kernels here do not have."""
    instead = SUGGESTIONS.get(name.replace("numpy.", "np."))
    raise UnknownWordError(
        f"{name}{what} at {file_name(place[0])}:{place[1]} is unknown to minifuse.simt; "
        "kernels use numba.cuda's words, math, numbers of NumPy, and functions made of them"
        + (f": {instead}" if instead else ""),
        lines=(place,),
    )
