"""Imports of a student's file: modules that its tasks allow, and files of its own. Checked before it runs, and while.

A task is to be written, so what answers it elsewhere is refused with the line: an import, a detour by `importlib` or
`sys.modules`, a text that is run. This is a rail, no wall: code in one process can reach all that is in it. Whoever grades
the code of strangers does that in a container.
"""

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn, Protocol

from ..core.errors import CourseError
from .verdicts import Refused

COMMON = frozenset(
    "__future__ collections dataclasses functools itertools math operator random typing minifuse.course".split()  # noqa: SIM905
)

# Ways from any object to everything else; no task needs one.
DETOURS = frozenset(
    "__builtins__ __closure__ __code__ __globals__ __loader__ __spec__ __subclasses__ __wrapped__ "  # noqa: SIM905
    "_os _sys builtins f_back f_builtins f_globals gi_frame importlib inspect os sys tb_frame".split()
)
TEXTS = ("breakpoint", "compile", "eval", "exec", "input", "open")  # builtins that a file is given a refusal for


class Assignment(Protocol):
    """The part of a task by which a student's files are loaded: the file, its slots, and the modules that it may import."""

    @property
    def id(self) -> str:
        """Return its name: "2.3"."""

    @property
    def file(self) -> str:
        """Return the file that it is written in."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the functions and classes that are to be written."""

    @property
    def allows(self) -> frozenset[str]:
        """Return the modules that it may import besides COMMON."""


def parsed(path: Path) -> ast.Module:
    """A student's file as a tree.

    Raises
    ------
    CourseError
        It is not there, or no text.
    SyntaxError
        It is no Python.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CourseError(f"{path.name} is missing; `minifuse course reset` with the task brings it back") from None
    except OSError as error:
        raise CourseError(f"{path.name} cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CourseError(
            f"{path.name}, line {line}, has bytes that are no UTF-8 text; save the file as UTF-8 in your editor"
        ) from None
    if "\0" in text:
        raise CourseError(
            f"{path.name}, line {text[: text.index(chr(0))].count(chr(10)) + 1}, has a null byte; it is no Python text"
        )
    return ast.parse(text, str(path))


def allowed(file: str, tasks: Iterable[Assignment]) -> frozenset[str]:
    """The modules that a file may import: those of all its tasks. A package allows its modules too."""
    return COMMON.union(*[task.allows for task in tasks if task.file == file])


def is_allowed(name: str, may: frozenset[str]) -> bool:
    """Return whether a module is among these, or in a package that is; modules of this package must be named."""
    inner = may - {"minifuse.course"}
    return name in may or any(name.startswith(f"{some}.") for some in inner)


def look_at(tree: ast.AST, path: Path, may: frozenset[str], siblings: set[str]) -> None:
    """Refuse a file that imports what its tasks are to be written without, or goes there by a detour.

    Raises
    ------
    Refused
        With the line.
    """
    for node in ast.walk(tree):
        at = f"{path.name}, line {getattr(node, 'lineno', 0)},"
        for name in imported(node):
            if name not in siblings or is_allowed(name, may):
                ask(name, at, may, isinstance(node, ast.ImportFrom))
        for word in words(node):
            if word in DETOURS:
                raise Refused(f"{at} reaches for {word}, which no task needs")


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return ["." * node.level + (node.module or "")] if isinstance(node, ast.ImportFrom) else []


def words(node: ast.AST) -> Iterator[str]:
    """Names in a node that could be a detour."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            yield name
        case ast.ImportFrom(names=names):
            yield from (alias.name for alias in names)


def ask(name: str, at: str, may: frozenset[str], takes_names: bool) -> None:
    """Refuse a module that is not allowed, and `import minifuse.course`, which would bring the whole package."""
    if not is_allowed(name, may):
        first = name.partition(".")[0]
        others = ", ".join(sorted(may - {"__future__"}))
        what = "the answers are in there" if first in ("minifuse", "tests") else "this is to be written without it"
        raise Refused(f"{at} imports {name}: {what}; allowed are {others}, and your own files")
    if name.startswith("minifuse") and not takes_names:
        raise Refused(f"{at} imports {name} whole; write `from {name} import ...` with the names that you need")


def guarded(path: Path, may: frozenset[str], sibling: Callable[[str], ModuleType | None]) -> dict[str, object]:
    """The builtins of a student's file: an `__import__` that asks, and no way to run a text or to wait for somebody."""

    def refusal(word: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            raise Refused(f"{path.name} calls {word}(), which no task needs: a function gets what it works on as arguments")

        return refuse

    def import_(
        name: str, scope: object = None, inner: object = None, names: Sequence[str] | None = (), level: int = 0
    ) -> ModuleType:
        if not is_allowed(name, may) and (own := sibling(name)) is not None:
            return own
        ask("." * level + name, f"{path.name}", may, bool(names))
        found = __import__(name, None, None, names or (), 0)
        if found.__name__ not in COMMON:
            return found
        shown = face(found)
        for part in names or ():
            if not hasattr(shown, part) and part != "*":
                raise Refused(
                    f"{path.name} imports {part} from {name}, which has {', '.join(shown.__dict__.get('__all__', ()))}"
                )
        return shown

    return vars(builtins) | {word: refusal(word) for word in TEXTS} | {"__import__": import_}


def face(module: ModuleType) -> ModuleType:
    """A module as its `__all__` shows it, where it holds other modules: `dataclasses.sys` is no part of dataclasses."""
    inside = [value for value in vars(module).values() if isinstance(value, ModuleType)]
    if not inside or not hasattr(module, "__all__"):
        return module
    shown = ModuleType(module.__name__, module.__doc__)
    vars(shown).update({name: getattr(module, name) for name in ("__all__", *module.__all__)})
    for name, part in list(sys.modules.items()):
        package, _, last = name.rpartition(".")
        if package == module.__name__ != "minifuse.course":  # whose parts are the answers
            setattr(shown, last, face(part))
    return shown
