"""A folder of a student's files, as slots: functions that are called by name, count their calls, and are nobody else's.

The files are loaded as modules of their own names, so that they may import each other. What belongs to another task is
replaced by the oracle's function, so that each task is judged alone; `is_strict` takes nothing from the oracle. What a file
imports is looked at before it runs: a task is to be written, not called from a library.
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import NotDoneYet
from . import oracle
from .task import COMMON, Refused, Task


class Student:
    """The slots of a student's folder, as one task sees them.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    tasks : tuple of Task
        All tasks; a file is loaded once, whichever of them it belongs to.
    task : Task or None
        The task that is judged: slots of other tasks come from the oracle. None: every slot is the student's.

    Notes
    -----
    `student.position_of(...)` calls the function of that name and counts; `student.calls` has the counts.
    """

    def __init__(self, folder: Path, tasks: tuple[Task, ...], task: Task | None) -> None:
        self.folder, self.tasks, self.task = folder.resolve(), tasks, task
        self.calls: Counter[str] = Counter()
        self.files = {task.file: task for task in tasks}
        self.home = {slot: task for task in tasks for slot in task.slots}
        self._modules: dict[str, ModuleType] = {}

    def __getattr__(self, slot: str) -> Any:
        """A slot, by its name."""
        if slot.startswith("_") or slot not in self.home:
            raise AttributeError(slot)
        task = self.home[slot]
        if self.task is not None and task is not self.task:
            return oracle.function(slot)
        module = self.module(task.file)
        if slot not in vars(module):
            raise NotDoneYet(
                task.id, f"{task.file} has no {slot}; write it, or take it back: minifuse course reset {task.id}"
            )
        return vars(module)[slot]

    def raw(self, slot: str) -> Any:
        """A function as the student wrote it, for what compiles it or runs it lane by lane; say `count` when it ran."""
        found = getattr(self, slot)
        return getattr(found, "__wrapped__", found)

    def count(self, slot: str) -> None:
        """Note that a slot ran, which was called in another way than by its name."""
        self.calls[slot] += 1

    def module(self, file: str) -> ModuleType:
        """A file, loaded."""
        name = Path(file).stem
        if name not in self._modules:
            with self._finding():
                sys.modules.pop(name, None)
                self._modules[name] = __import__(name)
        return self._modules[name]

    def path(self, file: str) -> Path:
        """Where a file lies."""
        return self.folder / file

    @contextmanager
    def _finding(self) -> Iterator[None]:
        """While files are loaded: they find each other."""
        finder = Finder(self)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)

    def counted(self, slot: str, function: Any) -> Any:
        """A slot that counts its calls, and within which the oracle is silent."""
        if isinstance(function, type):
            return counting_class(function, slot, self.calls)

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self.calls[slot] += 1
            with oracle.silent():
                return function(*args, **options)

        return call

    def fill(self, module: ModuleType, file: str) -> None:
        """Put counters around the slots of a loaded module, and the oracle into those of other tasks."""
        for slot, task in self.home.items():
            if task.file != file or slot not in vars(module):
                continue
            if self.task is None or task is self.task:
                vars(module)[slot] = self.counted(slot, vars(module)[slot])
            else:
                vars(module)[slot] = oracle.function(slot)


class Finder(MetaPathFinder):
    """Finds the files of a student's folder while they are loaded, and no others."""

    def __init__(self, student: Student) -> None:
        self.student = student

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A file of the folder."""
        file = self.student.path(f"{name}.py")
        return spec_from_loader(name, FileLoader(name, str(file), self.student)) if file.is_file() else None


class FileLoader(SourceFileLoader):
    """Looks at what a file imports, runs it, and fills its slots."""

    def __init__(self, name: str, path: str, student: Student) -> None:
        super().__init__(name, path)
        self.student = student

    def path_stats(self, path: Any) -> Any:
        """None, so that Python keeps no bytecode: two versions of a file may be saved within a second."""
        raise OSError

    def exec_module(self, module: ModuleType) -> None:
        """The file as it is now."""
        path = Path(self.path)
        look_at_imports(ast.parse(path.read_text(encoding="utf-8"), str(path)), path, self.student)
        self.student._modules[module.__name__] = module
        super().exec_module(module)
        self.student.fill(module, path.name)


def look_at_imports(tree: ast.AST, path: Path, student: Student) -> None:
    """Refuse a file that imports what its tasks are to be written without."""
    tasks = [task for task in student.tasks if task.file == path.name]
    allowed = COMMON.union(*[task.allows for task in tasks])
    siblings = {file.stem for file in student.folder.glob("*.py")}
    for node in ast.walk(tree):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else ["." * node.level + (node.module or "")]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            if name in siblings or any(
                name == some or name.startswith(f"{some}.") for some in allowed - {"minifuse.course"}
            ):
                continue
            if name != "minifuse.course":
                what = f"this is to be written without it; allowed are {', '.join(sorted(allowed))} and your own files"
                raise Refused(f"{path.name}, line {getattr(node, 'lineno', 0)}, imports {name}: {what}")


def counting_class(cls: type, slot: str, calls: Counter[str]) -> type:
    """The same class, which counts each of its instances."""
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]

    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        calls[slot] += 1
        original(self, *args, **options)

    cls.__init__ = __init__  # type: ignore[misc]
    return cls
