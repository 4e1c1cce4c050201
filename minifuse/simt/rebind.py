"""Rebind a function written for Numba to the interpreter: copy it with the interpreter's functions in place of Numba's.

The original is never changed. The copy counts its loop iterations, and has its own globals, closure and builtins. Functions
that it calls are rebound as well. Each launch looks up the values of names again, so a changed global has its new value.
Numba keeps the value of its first compilation. A name that kernels cannot use raises UnknownWordError with the line that
uses the name.
"""

import builtins
import cmath
import dis
import enum
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from ..core.errors import UnknownWordError, short_file
from . import random
from .address_spaces import CapturedConstantArray, CapturedDeviceArray, is_device_memory, rebuild_tuple
from .arithmetic import CASTS, CMATH, DTYPE_ALIASES, MATH, NUMPY, IntegerCast, convert_scalar_argument, split_names
from .bytecode_locations import Line
from .cuda_api import CudaNamespace, cuda
from .lanes import KERNEL_BUILTINS, raise_unknown
from .libdevice import LIBDEVICE
from .loops import add_loop_counters
from .numba_syntax import find_source, refusals

NUMBA_PACKAGES: Final = ("numba", "numba_cuda")
numba_cuda_lock: Final = threading.RLock()  # held to import or use the real numba.cuda, and to replace it for a script
MAX_CACHED_KERNELS: Final = 256
COOPERATIVE_NAMES: Final = {"cg", "this_grid"}
PLAIN_TYPES: Final = (bool, int, float, complex, str, enum.Enum, enum.EnumType)
UNSUPPORTED_OPCODES: Final = {
    "IMPORT_NAME": "import",
    "PUSH_EXC_INFO": "try and with",
    "YIELD_VALUE": "yield",
    "LOAD_BUILD_CLASS": "class",
    "BUILD_LIST": "a list",
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
SUGGESTIONS: Final = {  # unsupported name -> what to write instead
    **{f"np.{name}": "write a loop over the elements, or call it on the host" for name in ARRAY_FUNCTIONS},
    **{f"np.{name}": "write cuda.local.array(shape, dtype), or pass an array in" for name in ARRAY_CREATION_FUNCTIONS},
    "np.random": "write xoroshiro128p_uniform_float32(states, i) of numba.cuda.random",
    "import": "import at the top of the file",
    "try and with": "test for the case with an `if`: a kernel handles no exceptions",
    "yield": "write a loop",
    "class": "define it outside the kernel",
    "a list": "take an array, a tuple or cuda.local.array(shape, dtype)",
    "a dict": "take an array or a tuple",
    "a set": "take an array or a tuple",
    "global": "store in an array: the globals of a kernel are constants",
    "sorted": "sort on the host, or write a loop over an array",
    "sum": "write a loop over the elements",
}
MISSING: Final = object()


class GlobalLookup(NamedTuple):
    """A global or closure variable of a kernel: how it is looked up, and its value when the kernel was rebound."""

    name: str
    lookup: Callable[..., object]
    key: object
    value: object


class ReboundKernel:
    """A kernel that the machine can run, and the global values that it was rebound with."""

    def __init__(self, function: FunctionType, source: FunctionType, rebinder: "Rebinder") -> None:
        self.function, self.source = function, source
        self.parameter_names = list(source.__code__.co_varnames[: source.__code__.co_argcount])
        self.is_cooperative = rebinder.is_cooperative
        self._lookups, self._array_copies = rebinder.lookups, rebinder.array_copies

    def is_current(self) -> bool:
        """Return whether every global name still has the same value."""
        try:
            return all(lookup(key) is value for _, lookup, key, value in self._lookups)
        except ValueError:  # the cell is empty now
            return False

    def changed_globals(self) -> list[str]:
        """Return the names whose value, or whose array elements, have changed since the kernel was rebound."""
        changed = [
            name
            for name, array, copy in self._array_copies
            if not np.array_equal(array, copy, equal_nan=array.dtype.kind in "fc")
        ]
        for name, lookup, key, value in self._lookups:
            try:
                current = lookup(key)
            except ValueError:
                current = MISSING
            is_equal = current is value or (
                type(current) is type(value) and isinstance(current, (*PLAIN_TYPES, np.generic)) and current == value
            )
            if not is_equal:
                changed.append(name)
        return list(dict.fromkeys(changed))


class ModuleProxy:
    """A module as a kernel uses it: names with known values, and names that are looked up on access."""

    def __init__(self, find: Callable[[str], object], known_names: Mapping[str, object]) -> None:
        self._find = find
        vars(self).update(known_names)

    def __getattr__(self, name: str) -> object:
        return self._find(name)


class Rebinder:
    """Rebind one kernel and all functions that it calls.

    Parameters
    ----------
    copies_arrays : bool
        If True, copy global arrays, so that the kernel uses their current elements, as if they were compiled in.
    """

    def __init__(self, copies_arrays: bool = False) -> None:
        self.lookups: list[GlobalLookup] = []
        self.array_copies: list[tuple[str, np.ndarray, np.ndarray]] = []  # name, array, copy
        self._copies_arrays = copies_arrays
        self.is_cooperative = False
        self._copies: dict[FunctionType, FunctionType] = {}

    def copy(self, function: FunctionType) -> FunctionType:
        """Return a copy of the function that runs in the interpreter."""
        if function in self._copies:
            return self._copies[function]
        code = function.__code__
        namespace: dict[str, object] = {"__builtins__": KERNEL_BUILTINS, "__name__": function.__globals__.get("__name__")}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copied = FunctionType(add_loop_counters(code), namespace, function.__name__, None, cells)
        is_kernel = not self._copies
        self._copies[function] = copied
        self.is_cooperative |= not COOPERATIVE_NAMES.isdisjoint(code.co_names)
        check_opcodes(code)
        check_source(function, is_kernel)
        for name, attribute, line in used_globals(code):
            value = self._lookup(name, function.__globals__.get, name, MISSING)
            if value is not MISSING:
                namespace[name] = self.rebind_value(value, name, (code.co_filename, line), attribute)
            elif name not in KERNEL_BUILTINS:
                raise_unknown_name(name, (code.co_filename, line))
        for name, cell, original in zip(code.co_freevars, cells, function.__closure__ or (), strict=True):
            value = self._lookup(name, cell_contents, original)
            cell.cell_contents = self.rebind_value(value, name, (code.co_filename, code.co_firstlineno))
        location = code.co_filename, code.co_firstlineno
        copied.__defaults__ = (
            tuple(self.rebind_value(value, "a default", location) for value in function.__defaults__ or ()) or None
        )
        copied.__kwdefaults__ = {
            name: self.rebind_value(value, name, location) for name, value in (function.__kwdefaults__ or {}).items()
        }
        return copied

    def _lookup(self, name: str, lookup: Callable[..., object], key: object, default: object = None) -> object:
        value = lookup(key) if default is None else lookup(key, default)
        self.lookups.append(GlobalLookup(name, lookup, key, None if value is MISSING else value))
        return value

    def rebind_value(self, value: object, name: str, location: Line, attribute: str | None = None) -> object:
        """Convert a global value of the program to the value that the kernel uses.

        If the kernel uses only an attribute of it, `attribute` is its name.
        """
        if isinstance(value, ModuleType) or value is cuda:
            return self._rebind_module(value, name, location, attribute)
        if (
            value is None
            or isinstance(value, (*PLAIN_TYPES, np.dtype))
            or is_simt_object(value)
            or getattr(value, "is_word", False)
        ):
            return value
        semantics = getattr(value, "python_semantics", None)
        if semantics is not None:
            return self.rebind_value(semantics, name, location) if isinstance(semantics, type) else semantics
        equivalent = find_equivalent(value)
        if equivalent is not MISSING:
            self.is_cooperative |= getattr(value, "__name__", "") in COOPERATIVE_NAMES
            return equivalent
        if isinstance(value, tuple):
            parts = [self.rebind_value(part, f"{name}[{index}]", location) for index, part in enumerate(value)]
            return rebuild_tuple(value, parts)
        if isinstance(value, np.ndarray):
            return CapturedConstantArray(name, self._rebind_array(name, value))
        if is_device_memory(value):
            return CapturedDeviceArray(name, value)
        if isinstance(value, np.generic):
            return convert_scalar_argument(value)
        function = python_function(value)
        if function is not None:
            return self.copy(function)
        if isinstance(value, type) and (issubclass(value, Exception) or hasattr(value, "_fields")):
            return value
        return raise_unknown_name(name, location, f" of type {type(value).__name__}" if value is not MISSING else "")

    def _rebind_array(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return the global array that the kernel uses: the array itself, or its copy."""
        if not self._copies_arrays:
            return array
        copied = next((copy for _, original, copy in self.array_copies if original is array), None)
        if copied is None:
            copied = array.copy(order="K")
            self.array_copies.append((name, array, copied))
        return copied

    def _rebind_module(self, module: ModuleType | CudaNamespace, name: str, location: Line, attribute: str | None) -> object:
        table = MODULE_TABLES.get(module.__name__) if isinstance(module, ModuleType) else None
        if table is not None:
            if attribute is not None and attribute not in table:
                raise_unknown_name(f"{name}.{attribute}", location, similar_names=table)
            return ModuleProxy(lambda key: raise_unknown(f"{name}.{key}"), table)
        if is_numba_cuda(module):
            if (
                attribute is not None
                and not hasattr(CudaNamespace, attribute)
                and DTYPE_ALIASES.get(attribute, attribute) not in CASTS
            ):
                raise_unknown_name(f"{name}.{attribute}", location, similar_names=CUDA_NAMES)
            return cuda
        proxy = ModuleProxy(lambda key: self.rebind_value(getattr(module, key, MISSING), f"{name}.{key}", location), {})
        if attribute is not None:
            getattr(proxy, attribute)
        return proxy


def rebind_frozen(function: FunctionType) -> ReboundKernel:
    """Rebind a kernel that keeps its current globals, as Numba does from its first compilation on."""
    rebinder = Rebinder(copies_arrays=True)
    return ReboundKernel(rebinder.copy(function), function, rebinder)


def rebind(kernel: object) -> ReboundKernel:
    """Rebind a kernel. Return the cached result if every global name still has the same value."""
    if isinstance(kernel, ReboundKernel):
        return kernel
    source = python_function(kernel)
    if source is None:
        raise UnknownWordError(f"expected a Python function or a kernel of cuda.jit, got {type(kernel).__name__}")
    with LOCK:
        rebound = CACHE.get(source)
        if rebound is None or not rebound.is_current():
            rebinder = Rebinder()
            rebound = CACHE[source] = ReboundKernel(rebinder.copy(source), source, rebinder)
            if len(CACHE) > MAX_CACHED_KERNELS:
                CACHE.popitem(last=False)
        return rebound


MODULE_TABLES: Final[Mapping[str, Mapping[str, object]]] = {"math": MATH, "cmath": CMATH, "numpy": NUMPY}
CACHE: OrderedDict[FunctionType, ReboundKernel] = OrderedDict()
LOCK: Final = threading.RLock()


def cell_contents(cell: CellType) -> object:
    """Return the value of a closure variable."""
    return cell.cell_contents


def python_function(value: object) -> FunctionType | None:
    """Return the Python function of a kernel or a device function, or None."""
    while not isinstance(value, FunctionType):
        value = getattr(value, "py_func", None) or getattr(value, "python_semantics", None)
        if value is None:
            return None
    return value


def is_simt_object(value: object) -> bool:
    """Return whether a value already belongs to this package."""
    kind = value if isinstance(value, type | FunctionType) else type(value)
    return kind.__module__ in (CudaNamespace.__module__, IntegerCast.__module__)


def is_numba_cuda(module: ModuleType | CudaNamespace) -> bool:
    """Return whether a module is `numba.cuda` or its replacement."""
    return (
        module is cuda
        or module is sys.modules.get("numba.cuda")
        or module.__name__ in ("numba.cuda", "numba_cuda.numba.cuda")
    )


def find_equivalent(value: Any) -> object:
    """Return the interpreter's equivalent of an object of math, NumPy, Python or Numba, or MISSING."""
    if value is MISSING:  # else it would be equal to whatever Numba lacks
        return MISSING
    try:
        if value in EQUIVALENTS:
            return EQUIVALENTS[value]
    except TypeError:  # unhashable, so it has no equivalent
        return MISSING
    module = getattr(value, "__module__", None) or ""
    if type(value).__module__.partition(".")[0] in NUMBA_PACKAGES and isinstance(getattr(value, "name", None), str):
        return CASTS.get(DTYPE_ALIASES.get(value.name, value.name), MISSING)
    if module.endswith("cuda.random") and module.partition(".")[0] in NUMBA_PACKAGES:
        return getattr(random, value.__name__, MISSING)
    if module.endswith("cuda.libdevice") and module.partition(".")[0] in NUMBA_PACKAGES:
        return LIBDEVICE.get(value.__name__, MISSING)
    numba_cuda = sys.modules.get("numba.cuda")
    if numba_cuda is not None:
        for name in CUDA_NAMES:
            if getattr(numba_cuda, name, MISSING) is value:
                return getattr(cuda, name)
        if getattr(getattr(numba_cuda, "cg", None), "this_grid", MISSING) is value:
            return cuda.cg.this_grid
        atomic = getattr(numba_cuda, "atomic", None)
        for name in ATOMIC_NAMES:
            if getattr(atomic, name, MISSING) is value:
                return getattr(cuda.atomic, name)
    return MISSING


CUDA_NAMES: Final = [name for name in vars(CudaNamespace) if not name.startswith("_") and name != "laneid"]
ATOMIC_NAMES: Final = [name for name in vars(type(cuda.atomic)) if not name.startswith("_")]
EQUIVALENTS: Final[dict[Hashable, object]] = {
    **{getattr(builtins, name): equivalent for name, equivalent in KERNEL_BUILTINS.items() if callable(equivalent)},
    **{getattr(np, name): equivalent for name, equivalent in NUMPY.items() if callable(equivalent)},
    **{getattr(math, name): equivalent for name, equivalent in MATH.items() if callable(equivalent) and hasattr(math, name)},
    **{getattr(cmath, name): equivalent for name, equivalent in CMATH.items() if callable(equivalent)},
}


def used_globals(code: CodeType) -> Iterator[tuple[str, str | None, int]]:
    """Yield each global name that a function and its inner functions use, the attribute that follows, and the line."""
    line = code.co_firstlineno
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            is_attribute = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
            yield step.argval, following.argval if is_attribute and following else None, line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from used_globals(constant)


def check_opcodes(code: CodeType) -> None:
    """Raise UnknownWordError for Python statements that Numba cannot compile for a GPU."""
    line, steps = code.co_firstlineno, list(dis.get_instructions(code))
    unpacked = {step.positions for step in steps if "LIST_TO_TUPLE" in f"{step.opname} {step.argrepr}"}  # (*a, b)
    for step in steps:
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        is_tuple = step.opname == "BUILD_LIST" and step.positions in unpacked
        if step.opname in UNSUPPORTED_OPCODES and not is_tuple:
            raise_unknown_name(UNSUPPORTED_OPCODES[step.opname], (code.co_filename, line))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            check_opcodes(constant)


def check_source(function: FunctionType, is_kernel: bool) -> None:
    """Raise UnknownWordError for a shape or a result that Numba cannot compile for a GPU."""
    source = find_source(function, is_kernel)
    for text, line in refusals(source) if source is not None else ():
        location = function.__code__.co_filename, line
        raise UnknownWordError(f"{function.__name__} at {short_file(location[0])}:{line}: {text}", lines=(location,))


def raise_unknown_name(name: str, location: Line, detail: str = "", similar_names: Iterable[str] = ()) -> NoReturn:
    """Raise UnknownWordError for a name that kernels cannot use."""
    suggestion = SUGGESTIONS.get(name.replace("numpy.", "np."))
    similar = get_close_matches(name.rpartition(".")[2], similar_names, 1)
    if similar and not suggestion:
        suggestion = f"did you mean {name.rpartition('.')[0]}.{similar[0]}?"
    raise UnknownWordError(
        f"{name}{detail} at {short_file(location[0])}:{location[1]} is not supported by minifuse.simt; "
        "kernels can use numba.cuda, math, NumPy scalar functions, and functions that use only these"
        + (f": {suggestion}" if suggestion else ""),
        lines=(location,),
    )
