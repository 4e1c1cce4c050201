"""A student's loops, compiled by Numba: the same answers, really parallel, and no memory taken while they run.

Compiled code is kept in the library's cache folder, under the content of the functions that it was made from, so a second
check of the same text compiles nothing. What Numba says about its loops is kept beside it, and told in plain words.
"""

import ast
import hashlib
import inspect
import json
import os
import platform
import re
import shutil
import tempfile
import textwrap
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..runtime import file_trust
from ..runtime.kernel_cache import cache_folder
from .access_counting import Argument
from .strided import Strided
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from numba.core.ccallback import CFunc
    from numba.core.dispatcher import Dispatcher

PACKED = re.compile(r"\bv?(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+)pd\b")  # of x86: "packed double"
MAX_CACHED_FUNCTIONS = 500  # compiled functions, of some 10 to 100 KB each
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads without work sleep, and leave the cores to others


class Compiled(NamedTuple):
    """A function of a student's, compiled with parallel=True."""

    call: Callable[..., None]
    loops: list[int]
    """Lines of each prange that Numba runs on many threads."""
    packed: int | None
    """How many instructions compute with several float64s at once; None on a processor whose words are not known."""


def folder() -> Path:
    """Return the folder of compiled code: beside the library's, or one of this process where that cannot be used."""
    chosen = cache_folder()
    if chosen and not file_trust.why_distrusted(chosen / "course"):
        with suppress(OSError):  # read-only, or no folder at all
            file_trust.make_private(chosen / "course")
            if not file_trust.why_distrusted(chosen / "course"):
                return chosen / "course"
    return Path(own_folder().name)


@cache
def own_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes with the process."""
    return tempfile.TemporaryDirectory(prefix="minifuse-course-")


def parts_of(function: FunctionType, seen: dict[str, str]) -> None:
    """All that the compiled code of a function depends on: its own code, and what the names in it stand for."""
    function = getattr(function, "py_func", function)
    for name in sorted(names_in(function.__code__)):
        value, place = function.__globals__.get(name), f"{function.__module__}.{name}"
        inner = getattr(value, "py_func", value)
        if place in seen:
            continue
        if isinstance(inner, FunctionType):
            seen[place] = function_in_words(inner)
            parts_of(inner, seen)
        elif isinstance(inner, ModuleType) and Path(getattr(inner, "__file__", None) or "").parent == home_of(function):
            seen[place] = Path(str(inner.__file__)).read_text(encoding="utf-8")
        elif isinstance(value, int | float | str | tuple):
            seen[place] = repr(value)
        elif isinstance(value, np.ndarray):  # compiled code has its elements as they were
            seen[place] = repr((value.shape, value.dtype.str, value.tobytes()))


def home_of(function: FunctionType) -> Path:
    """The folder of the file in which a function is written."""
    return Path(function.__code__.co_filename).parent


def make_room() -> None:
    """Forget what was used longest ago, beyond the number of functions that are kept."""
    ages = {}
    for path in folder().iterdir():
        with suppress(FileNotFoundError):  # another process makes room too
            if path.is_dir():
                ages[path] = path.stat().st_mtime
    for path in sorted(ages, key=lambda path: ages[path])[:-MAX_CACHED_FUNCTIONS]:
        shutil.rmtree(path, ignore_errors=True)


def names_in(code: CodeType) -> set[str]:
    """The names that a code uses, those of functions within it included."""
    return {*code.co_names}.union(*[names_in(c) for c in code.co_consts if isinstance(c, CodeType)])


def code_in_words(code: CodeType) -> str:
    """A code without the place of its file, so that a copy of it is the same; its lines are told in verdicts."""
    constants = [code_in_words(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars)
    return repr((code.co_code, *names, code.co_firstlineno, code.co_linetable, constants))


def function_in_words(function: FunctionType) -> str:
    """Its code, and the values that its parameters have where they are left out."""
    return f"{code_in_words(function.__code__)} {function.__defaults__} {function.__kwdefaults__}"


def key_of(function: FunctionType, **options: object) -> str:
    """A name for the content of a function, what it calls, how it is compiled, and Numba's version."""
    import numba

    seen = {"": f"{function_in_words(function)} {sorted(options.items())} {numba.__version__}"}
    parts_of(function, seen)
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:24]


@cache
def cache_class(key: str) -> Any:  # of Numba's
    """A cache of Numba's, in a folder of its own."""
    caching: Any = import_module("numba.core.caching")  # without types

    class Locator(caching._CacheLocator):  # type: ignore[misc]  # a class of Numba's, without types
        """By content."""

        def get_cache_path(self) -> str:
            """A folder for each content."""
            return str(folder() / key)

        def get_source_stamp(self) -> str:
            """The content again."""
            return key

        def get_disambiguator(self) -> str:
            """Nothing to tell apart."""
            return "0"

        @classmethod
        def from_function(cls, py_func: object, py_file: str) -> "Locator":
            """For any function; its folder tells when it was used last."""
            self = cls()
            file_trust.make_private(Path(self.get_cache_path()))
            self.ensure_cache_path()
            file_trust.remove_distrusted(Path(self.get_cache_path()))  # Numba executes what it finds
            os.utime(self.get_cache_path())
            return self

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]  # as above
        _locator_classes = (Locator,)

    class Cache(caching.FunctionCache):  # type: ignore[misc]  # as above
        _impl_class = Implementation

    return Cache


def cached_jit(function: Callable[..., None], **options: object) -> "Dispatcher[Callable[..., None]]":
    """A function for Numba to compile, unless that was done before."""
    import numba

    assert isinstance(function, FunctionType)
    njit: Any = numba.njit  # of options that its stub knows one by one
    dispatcher: Any = njit(**options)(function)
    dispatcher._cache = cache_class(key_of(function, **options))(function)
    found: Dispatcher[Callable[..., None]] = dispatcher
    return found


def compiled(student: Student, slot: str, *arguments: Argument) -> Compiled:
    """A slot, compiled for such arguments; `Wrong` where Numba cannot.

    The arguments are those of a first call, with numbers that do no harm: it is made here.
    """
    function = student.raw(slot)
    dispatcher, facts = cached_jit(function, parallel=True), folder() / key_of(function, parallel=True) / "facts.json"
    if not facts.is_file():
        internals: Any = dispatcher  # its stub has no _cache
        internals._cache.flush()  # the loops of what is cached are not known
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Numba warns of is judged by `is_parallel`
            call(dispatcher, *arguments)
    except Exception as error:  # of Numba's own, or of Python's where Numba did not expect it
        raise refused(slot, error, student) from error
    if metadata := dispatcher.get_metadata(dispatcher.signatures[0]):
        found = metadata["parfor_diagnostics"].initial_parfors
        lines = [loop.loc.line for loop in found if loop.patterns[0][0] == "prange"]  # others it made of calls of NumPy
        new = facts.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({"loops": lines, "packed": packed_in(dispatcher.inspect_asm(dispatcher.signatures[0]))}))
        new.replace(facts)  # whole, or not at all
        make_room()
    return Compiled(lambda *given: call(dispatcher, *given), **json.loads(facts.read_text()))


def packed_in(assembly: str) -> int | None:
    """How many instructions of a machine code compute with several float64s at once."""
    return len(PACKED.findall(assembly)) if platform.machine() in ("x86_64", "AMD64") else None


def call(dispatcher: "Dispatcher[Callable[..., None]]", *arguments: Argument) -> None:
    """Run compiled code; functions become pointers, so that one compilation serves them all."""
    given = [packed(x) if isinstance(x, Strided) else pointer(x) if isinstance(x, FunctionType) else x for x in arguments]
    dispatcher(*given)


@cache
def pointer(function: FunctionType) -> "CFunc[FunctionType]":
    """A function of float64s as an address that compiled code calls."""
    from numba import float64
    from numba.core.ccallback import CFunc

    made: Any = CFunc(function, (((float64,) * function.__code__.co_argcount), float64), {}, {})
    made._cache = cache_class(key_of(function, is_pointer=True))(function)
    made.compile()
    found: CFunc[FunctionType] = made
    return found


def packed(x: Strided) -> Strided:
    """A tensor as loops get it: shape and strides are arrays, so that one compilation serves all numbers of dims."""
    return Strided._make([x.storage, np.array(x.shape, np.int64), np.array(x.strides, np.int64), x.offset])


def refused(slot: str, error: Exception, student: Student) -> Wrong:
    """Explain an error of Numba in few words, with the student's line."""
    text = str(error)
    files = {file.name for file in student.folder.glob("*.py")}
    places = [(Path(f).name, int(n)) for f, n in re.findall(r'File "([^"]+)", line (\d+)', text) if Path(f).name in files]
    places += [(Path(f).name, int(n)) for f, n in re.findall(r"(\S+\.py) \((\d+)\)", text) if Path(f).name in files]
    kind, said = next((found for sign, found in PLAIN.items() if sign in text), (type(error).__name__, ""))
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in")), text)
    return Wrong(f"{slot}: Numba cannot compile it: {said or first}", lines=places[:1], kind=kind)


PLAIN = {
    "Overwrite of parallel loop index": (
        "index",
        "the index of a prange loop, or a copy of it, is changed in the loop; let a function of its own do that, as "
        "place_of does",
    ),
    "Unsupported array index type float64": (
        "index",
        "an index is a float64. The index of a prange loop is an unsigned integer, and with a signed one // and % give a "
        "float64; np.int64(k) makes it signed",
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
    """How often compiled code took memory during a call."""
    runtime: Any = import_module("numba.core.runtime.nrt")  # without types
    runtime._nrt.memsys_enable_stats()
    before = runtime.rtsys.get_allocation_stats().alloc
    call()
    return int(runtime.rtsys.get_allocation_stats().alloc - before)


def takes_no_memory(slot: str, call: Callable[[int], None], sizes: tuple[int, int]) -> None:
    """Refuse a call that takes memory more often for a larger size; `call` makes one of the size that it is given."""
    few, many = [allocations(partial(call, size)) for size in sizes]
    if many > few:
        raise Wrong(
            f"{slot} takes memory in its loop: {few} times for {sizes[0]} elements, {many} times for {sizes[1]}; that is a "
            "call of the allocator in each iteration, and threads wait for each other there",
            kind="allocation",
        )


def is_parallel(student: Student, slot: str, found: Compiled) -> None:
    """Refuse a function whose outermost loops over elements are no prange."""
    function = student.raw(slot)
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    parallel = set(found.loops)
    file = Path(function.__code__.co_filename).name
    body = tree.body[0]
    if not found.loops:
        loops = [node.lineno + start - 1 for node in outermost(body)]
        raise Wrong(
            f"{slot}: Numba found no loop to run in parallel; the outermost one over the elements must be a prange",
            lines=[(file, line) for line in loops[:1]],
            kind="serial",
        )
    for node in outermost(body):
        line = node.lineno + start - 1
        inner = [at.lineno + start - 1 for at in ast.walk(node) if isinstance(at, ast.For | ast.While) and at is not node]
        within = [at for at in inner if at in parallel]
        if line not in parallel and within:
            raise Wrong(
                f"{slot}: the loop in line {line} runs on one thread, and starts the prange in line {within[0]} anew each "
                "time; to start threads costs more than a few elements: the outermost loop is the one to share out",
                lines=[(file, line), (file, within[0])],
                kind="inner loop",
            )


def outermost(body: ast.AST) -> list[ast.For | ast.While]:
    """Loops that stand in no other loop."""
    found: list[ast.For | ast.While] = []
    for node in ast.iter_child_nodes(body):
        found += [node] if isinstance(node, ast.For | ast.While) else outermost(node)
    return found
