"""Compile a student's loops with Numba, and find out which of them are parallel and how often they allocate memory.

Compiled code is cached in the library's cache folder under a hash of the source functions, so checking the same code again
compiles nothing. Numba's diagnostics of parallel loops are stored beside it.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..runtime import file_trust
from ..runtime.kernel_files import cache_folder
from .access_counting import Argument
from .strided import Strided
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from numba.core.ccallback import CFunc
    from numba.core.dispatcher import Dispatcher

PACKED = re.compile(r"\bv?(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+)pd\b")  # of x86: "packed double"
MAX_CACHED_FUNCTIONS = 500  # of 10 to 100 KB each
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle threads sleep instead of spinning


class Compiled(NamedTuple):
    """A function of a student's, compiled with parallel=True."""

    call: Callable[..., None]
    loops: list[int]
    """The lines of the pranges that Numba parallelizes."""
    packed: int | None
    """Number of SIMD instructions for float64; None if the processor is not x86."""


def folder() -> Path:
    """Return the folder of compiled code: in the library's cache, or a temporary one if the cache cannot be used."""
    chosen = cache_folder()
    if chosen and not file_trust.why_distrusted(chosen / "course"):
        with suppress(OSError):  # read-only, or not a folder
            file_trust.make_private(chosen / "course")
            if not file_trust.why_distrusted(chosen / "course"):
                return chosen / "course"
    return Path(process_folder().name)


@cache
def process_folder() -> tempfile.TemporaryDirectory[str]:
    """Create a temporary folder that is deleted when the process ends."""
    return tempfile.TemporaryDirectory(prefix="minifuse-course-")


def collect_dependencies(function: FunctionType, seen: dict[str, str]) -> None:
    """Collect the code and the global values on which the compiled code of a function depends, by qualified name."""
    function = getattr(function, "py_func", function)
    for name in sorted(global_names(function.__code__)):
        value, place = function.__globals__.get(name), f"{function.__module__}.{name}"
        inner = getattr(value, "py_func", value)
        if place in seen:
            continue
        if isinstance(inner, FunctionType):
            seen[place] = function_key(inner)
            collect_dependencies(inner, seen)
        elif isinstance(inner, ModuleType) and Path(getattr(inner, "__file__", None) or "").parent == folder_of(function):
            seen[place] = Path(str(inner.__file__)).read_text(encoding="utf-8")
        elif isinstance(value, int | float | str | tuple):
            seen[place] = repr(value)
        elif isinstance(value, np.ndarray):  # compiled code contains the elements as constants
            seen[place] = repr((value.shape, value.dtype.str, value.tobytes()))


def folder_of(function: FunctionType) -> Path:
    """Return the folder of the file that defines a function."""
    return Path(function.__code__.co_filename).parent


def evict_oldest() -> None:
    """Delete the least recently used functions beyond MAX_CACHED_FUNCTIONS."""
    ages = {}
    for path in folder().iterdir():
        with suppress(FileNotFoundError):  # deleted by another process
            if path.is_dir():
                ages[path] = path.stat().st_mtime
    for path in sorted(ages, key=lambda path: ages[path])[:-MAX_CACHED_FUNCTIONS]:
        shutil.rmtree(path, ignore_errors=True)


def global_names(code: CodeType) -> set[str]:
    """Return the global names that a code object uses, nested functions included."""
    return {*code.co_names}.union(*[global_names(c) for c in code.co_consts if isinstance(c, CodeType)])


def code_key(code: CodeType) -> str:
    """Return a text that is equal for equal code objects in any file. Lines are included, since verdicts name them."""
    constants = [code_key(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars)
    return repr((code.co_code, *names, code.co_firstlineno, code.co_linetable, constants))


def function_key(function: FunctionType) -> str:
    """Return a text of a function's code and default arguments."""
    return f"{code_key(function.__code__)} {function.__defaults__} {function.__kwdefaults__}"


def key_of(function: FunctionType, **options: object) -> str:
    """Return a hash of a function, the functions that it calls, the options of the compiler, and Numba's version."""
    import numba

    seen = {"": f"{function_key(function)} {sorted(options.items())} {numba.__version__}"}
    collect_dependencies(function, seen)
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:24]


@cache
def cache_class(key: str) -> Any:  # of Numba's
    """Return a class of Numba caches that uses the folder of a key."""
    caching: Any = import_module("numba.core.caching")  # without types

    class Locator(caching._CacheLocator):  # type: ignore[misc]  # a class of Numba's, without types
        """Locates the cache by content instead of by source file."""

        _py_file = ""  # of Numba's warning that a function cannot be cached, such as one that asks for the number of threads

        def get_cache_path(self) -> str:
            """Return the folder of the key."""
            return str(folder() / key)

        def get_source_stamp(self) -> str:
            """Return the key, which contains a hash of the source."""
            return key

        def get_disambiguator(self) -> str:
            """Return a constant: the folder has one function."""
            return "0"

        @classmethod
        def from_function(cls, py_func: object, py_file: str) -> "Locator":
            """Create the folder for a function, and set its modification time, by which `evict_oldest` sorts."""
            self = cls()
            file_trust.make_private(Path(self.get_cache_path()))
            self.ensure_cache_path()
            file_trust.remove_distrusted(Path(self.get_cache_path()))  # Numba executes the files
            os.utime(self.get_cache_path())
            return self

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]  # as above
        _locator_classes = (Locator,)

    class Cache(caching.FunctionCache):  # type: ignore[misc]  # as above
        _impl_class = Implementation

    return Cache


def cached_jit(function: Callable[..., None], **options: object) -> "Dispatcher[Callable[..., None]]":
    """Return a Numba dispatcher for a function, with the cache of its content."""
    import numba

    assert isinstance(function, FunctionType)
    njit: Any = numba.njit  # its type stub does not accept **options
    dispatcher: Any = njit(nogil=True, **options)(function)  # so that another thread can report the end of its time
    dispatcher._cache = cache_class(key_of(function, **options))(function)
    typed: Dispatcher[Callable[..., None]] = dispatcher
    return typed


def compile_slot(student: Student, slot: str, *arguments: Argument) -> Compiled:
    """Compile a slot for arguments of these types; raise `Wrong` if Numba cannot.

    Numba compiles at the first call, which is made here with these arguments.
    """
    function = student.raw(slot)
    dispatcher, facts = cached_jit(function, parallel=True), folder() / key_of(function, parallel=True) / "facts.json"
    if not facts.is_file():
        internals: Any = dispatcher  # its stub has no _cache
        internals._cache.flush()  # without the facts of the cached code, compile it again
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `check_parallel` reports what Numba warns of
            call_compiled(dispatcher, *arguments)
    except Exception as error:  # of Numba, or of Python inside Numba
        raise explain_numba_error(slot, error, student) from error
    if metadata := dispatcher.get_metadata(dispatcher.signatures[0]):
        parfors = metadata["parfor_diagnostics"].initial_parfors
        lines = [loop.loc.line for loop in parfors if loop.patterns[0][0] == "prange"]  # others are from calls of NumPy
        new = facts.with_suffix(f".{os.getpid()}")
        new.write_text(
            json.dumps({"loops": lines, "packed": count_packed(dispatcher.inspect_asm(dispatcher.signatures[0]))})
        )
        new.replace(facts)  # atomic
        evict_oldest()
    return Compiled(lambda *given: call_compiled(dispatcher, *given), **json.loads(facts.read_text()))


def count_packed(assembly: str) -> int | None:
    """Count the SIMD instructions for float64 in x86 assembly; None on other processors."""
    return len(PACKED.findall(assembly)) if platform.machine() in ("x86_64", "AMD64") else None


running: list[tuple[Callable[..., None], tuple[Argument, ...]]] = []
"""The compiled calls that run now, as functions of Python and their arguments."""


def call_compiled(dispatcher: "Dispatcher[Callable[..., None]]", *arguments: Argument) -> None:
    """Call compiled code. Functions are passed as pointers, so that one compilation serves all of them."""
    converted = [
        with_array_layout(x) if isinstance(x, Strided) else function_pointer(x) if isinstance(x, FunctionType) else x
        for x in arguments
    ]
    running.append((dispatcher.py_func, arguments))
    try:
        dispatcher(*converted)
    finally:
        running.pop()


@cache
def function_pointer(function: FunctionType) -> "CFunc[FunctionType]":
    """Compile a function of float64 and return it as a C callback, which compiled code can call."""
    from numba import float64
    from numba.core.ccallback import CFunc

    callback: Any = CFunc(function, (((float64,) * function.__code__.co_argcount), float64), {}, {})
    callback._cache = cache_class(key_of(function, is_pointer=True))(function)
    callback.compile()
    typed: CFunc[FunctionType] = callback
    return typed


def with_array_layout(x: Strided) -> Strided:
    """Replace shape and strides by arrays, so that one compilation serves any number of dims."""
    return Strided._make([x.storage, np.array(x.shape, np.int64), np.array(x.strides, np.int64), x.offset])


def explain_numba_error(slot: str, error: Exception, student: Student) -> Wrong:
    """Return the failure for an error of Numba: a short explanation, with the student's line."""
    text = str(error)
    files = {file.name for file in student.folder.glob("*.py")}
    places = [(Path(f).name, int(n)) for f, n in re.findall(r'File "([^"]+)", line (\d+)', text) if Path(f).name in files]
    places += [(Path(f).name, int(n)) for f, n in re.findall(r"(\S+\.py) \((\d+)\)", text) if Path(f).name in files]
    kind, message = next(
        (explanation for sign, explanation in NUMBA_ERRORS.items() if sign in text), (type(error).__name__, "")
    )
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in")), text)
    return Wrong(f"{slot}: Numba cannot compile it: {message or first}", lines=places[:1], kind=kind)


NUMBA_ERRORS = {
    "Overwrite of parallel loop index": (
        "index",
        "the index of a prange loop, or a copy of it, is changed in the loop; do that in another function, as place_of does",
    ),
    "Unsupported array index type float64": (
        "index",
        "an index is a float64. The index of a prange loop is an unsigned integer, and a variable that is unsigned in one "
        "line and signed in another is a float64; np.int64(k) makes it signed",
    ),
    "unsupported reduction": (
        "carried",
        "a variable is carried from one iteration of a prange to the next; threads cannot wait for each other, so reduce "
        "in an inner range, one thread for each output",
    ),
    "Untyped global name": (
        "python",
        "it uses something of Python's that compiled code does not have; decorate your own helpers with @njit",
    ),
}
"""Errors of Numba by their text, with a kind and an explanation."""


def allocations(call: Callable[[], None]) -> int:
    """Count the allocations of compiled code during a call."""
    runtime: Any = import_module("numba.core.runtime.nrt")  # without types
    runtime._nrt.memsys_enable_stats()
    before = runtime.rtsys.get_allocation_stats().alloc
    call()
    return int(runtime.rtsys.get_allocation_stats().alloc - before)
