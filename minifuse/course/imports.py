"""Restrict the imports of a student's file to modules that its tasks allow and to the student's other files.

Imports of solutions are refused with the line, before the file runs and while it runs. So are detours by `importlib` or
`sys.modules`, and calls of `exec`. This prevents accidents, not attacks: code in one process can reach everything in it, so
the judge is in another one (`student_process`). To grade code of strangers, use a container.
"""

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn, Protocol

from ..core.errors import CourseError
from .verdicts import Refused

COMMON = frozenset(
    "__future__ collections dataclasses functools itertools math operator random typing minifuse.course".split()  # noqa: SIM905
)

# Names that lead from any object to everything else; no task needs one.
DETOURS = frozenset(
    "__base__ __bases__ __builtins__ __closure__ __code__ __getattribute__ __globals__ __loader__ __mro__ "  # noqa: SIM905
    "__reduce__ __reduce_ex__ __self__ __spec__ __subclasses__ __wrapped__ _os _sys attrgetter builtins f_back f_builtins "
    "f_globals get_type_hints gi_frame importlib inspect methodcaller os sys tb_frame".split()
)
ABOUT_FUNCTIONS = (
    "callable(x) says whether x is a function; insides(function) of task 5.4 returns its code and what it reads"
)
INSTEAD = {"__code__": ABOUT_FUNCTIONS, "__closure__": ABOUT_FUNCTIONS}
"""Advice on names of DETOURS: code to write in their place."""
ASKING = ("getattr", "setattr", "hasattr", "delattr")  # refuse a name of DETOURS that is put together while the code runs
FORBIDDEN_BUILTINS = ("breakpoint", "compile", "eval", "exec", "input", "open")  # calls raise `Refused`


class TaskFile(NamedTuple):
    """A task as plain data, as far as the loading of its file needs it: see `Assignment`."""

    id: str
    file: str
    slots: tuple[str, ...]
    allows: frozenset[str]


class Assignment(Protocol):
    """The part of a task that is needed to load a student's file."""

    @property
    def id(self) -> str:
        """Return the id of the task: "2.3"."""

    @property
    def file(self) -> str:
        """Return the file that the student writes."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the functions and classes that the student writes."""

    @property
    def allows(self) -> frozenset[str]:
        """Return the modules that the file may import besides COMMON."""


def parse_file(path: Path, task_id: str) -> ast.Module:
    """Parse a student's file, of which a task is a part.

    Raises
    ------
    CourseError
        The file is missing, or is not UTF-8.
    SyntaxError
        The file is not valid Python.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CourseError(f"{path.name} is missing; `minifuse course reset {task_id}` brings it back") from None
    except OSError as error:
        raise CourseError(f"{path.name} cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CourseError(f"{path.name}, line {line}, is not UTF-8; save the file as UTF-8 in your editor") from None
    if "\0" in text:
        raise CourseError(
            f"{path.name}, line {text[: text.index(chr(0))].count(chr(10)) + 1}, has a null byte, which Python rejects"
        )
    return ast.parse(text, str(path))


def allowed_modules(file: str, tasks: Iterable[Assignment]) -> frozenset[str]:
    """Return the modules that the tasks of a file allow it to import. A package includes its modules."""
    return COMMON.union(*[task.allows for task in tasks if task.file == file])


def is_allowed(name: str, may: frozenset[str]) -> bool:
    """Return whether a module or its package may be imported. `minifuse.course` does not include its modules."""
    packages = may - {"minifuse.course"}
    return name in may or any(name.startswith(f"{package}.") for package in packages)


def check_imports(tree: ast.AST, path: Path, may: frozenset[str], siblings: set[str]) -> None:
    """Raise `Refused` if a file imports a module that is not allowed, or uses a name of DETOURS."""
    for node in ast.walk(tree):
        at = f"{path.name}, line {getattr(node, 'lineno', 0)},"
        for name in imported_modules(node):
            if name not in siblings or is_allowed(name, may):
                check_import(name, at, may, isinstance(node, ast.ImportFrom))
        for word in identifiers(node):
            if word in DETOURS:
                raise Refused(f"{at} uses {word}, which no task needs{instead_of(word)}")


def instead_of(word: str) -> str:
    """Return what to write instead of a name of DETOURS, after a colon; "" for most."""
    return f": {INSTEAD[word]}" if word in INSTEAD else ""


@lru_cache
def syntax_tree(source: bytes) -> ast.Module | None:
    """Return the syntax tree of a file; None if it is not valid Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def imported_modules(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return ["." * node.level + (node.module or "")] if isinstance(node, ast.ImportFrom) else []


def identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names in a node."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            yield name
        case ast.ImportFrom(names=names):
            yield from (alias.name for alias in names)
        case ast.MatchClass(kwd_attrs=names):
            yield from names


def check_import(name: str, at: str, may: frozenset[str], takes_names: bool) -> None:
    """Raise `Refused` for a module that is not allowed, and for `import minifuse...`, which imports the whole package."""
    if not is_allowed(name, may):
        first = name.partition(".")[0]
        others = ", ".join(sorted(may - {"__future__"}))
        reason = "the answers are in there" if first in ("minifuse", "tests") else "the task is to be solved without it"
        raise Refused(f"{at} imports {name}: {reason}; allowed are {others}, and your own files")
    if name.startswith("minifuse") and not takes_names:
        raise Refused(f"{at} imports all of {name}; write `from {name} import ...` with the names that you need")


def restricted_builtins(path: Path, may: frozenset[str], sibling: Callable[[str], ModuleType | None]) -> dict[str, object]:
    """Return the builtins of a student's file: `__import__` checks the module, and FORBIDDEN_BUILTINS raise `Refused`."""

    def refusal(word: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            raise Refused(f"{path.name} calls {word}(), which no task needs: a function receives its data as arguments")

        return refuse

    def import_(
        name: str, scope: object = None, inner: object = None, names: Sequence[str] | None = (), level: int = 0
    ) -> ModuleType:
        if not is_allowed(name, may) and (own := sibling(name)) is not None:
            return own
        check_import("." * level + name, f"{path.name}", may, bool(names))
        module = __import__(name, None, None, names or (), 0)
        if module.__name__ not in COMMON:
            return module
        shown = public_view(module)
        for part in names or ():
            if not hasattr(shown, part) and part != "*":
                raise Refused(
                    f"{path.name} imports {part} from {name}, which has {', '.join(shown.__dict__.get('__all__', ()))}"
                )
        return shown

    def guarded(function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def ask(value: object, name: str, *rest: object) -> object:
            if name in DETOURS:
                raise Refused(f"{path.name} asks for {name}, which no task needs{instead_of(name)}")
            return function(value, name, *rest)

        return ask

    asking = {word: guarded(getattr(builtins, word)) for word in ASKING}
    forbidden = {word: refusal(word) for word in FORBIDDEN_BUILTINS}
    return vars(builtins) | asking | forbidden | {"__import__": import_}


def public_view(module: ModuleType) -> ModuleType:
    """Return a copy of a module with the names of `__all__` only, if it refers to other modules, as in `dataclasses.sys`."""
    inner_modules = [value for value in vars(module).values() if isinstance(value, ModuleType)]
    if not inner_modules or not hasattr(module, "__all__"):
        return module
    shown = ModuleType(module.__name__, module.__doc__)
    vars(shown).update({name: getattr(module, name) for name in ("__all__", *module.__all__)})
    for name, part in list(sys.modules.items()):
        package, _, last = name.rpartition(".")
        if package == module.__name__ != "minifuse.course":  # its modules contain the answers
            setattr(shown, last, public_view(part))
    return shown
