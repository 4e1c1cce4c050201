"""A folder of a student's files, as slots: functions that are called by name, count their calls, and are nobody else's.

The files are loaded as modules of their own names, so that they may import each other. What belongs to another task is
replaced by the oracle's function, so that each task is judged alone; `is_strict` takes nothing from the oracle. What a file
may reach is said in `imports`.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from ..core.errors import CourseError, NotDoneYet
from . import imports, oracle
from .imports import Assignment
from .oracle import Slot
from .verdicts import Refused, Stopped


class Student:
    """The slots of a student's folder, as one task sees them.

    Parameters
    ----------
    folder : Path
        The folder of the files.
    tasks : tuple of Task
        All tasks; a file is loaded once, whichever of them it belongs to.
    task : Task or None
        The task that is judged: slots of other tasks come from the oracle. None: every slot is the student's.

    Notes
    -----
    `student.position_of(...)` calls the function of that name and counts; `student.calls` has the counts.
    """

    def __init__(self, folder: Path, tasks: tuple[Assignment, ...], task: Assignment | None) -> None:
        self.folder, self.tasks, self.task = folder.resolve(), tasks, task
        self.calls: Counter[str] = Counter()
        self.notes: list[str] = []
        """Remarks of a check on a solution that is right."""
        self.share = 1.0
        """Of the task's points, where a check gives them by degrees."""
        self.files = {task.file: task for task in tasks}
        self.home = {slot: task for task in tasks for slot in task.slots}
        self._modules: dict[str, ModuleType] = {}
        self._is_inside = False

    def __getattr__(self, slot: str) -> Any:
        """A slot, by its name."""
        if slot.startswith("_") or slot not in self.home:
            raise AttributeError(slot)
        task = self.home[slot]
        if self.task is not None and task.id != self.task.id:
            return oracle.function(slot)
        module = self.module(task.file)
        if slot not in vars(module):
            raise NotDoneYet(
                task.id, f"{task.file} has no {slot}; write it, or take it back: minifuse course reset {task.id}"
            )
        return vars(module)[slot]

    def raw(self, slot: str) -> FunctionType:
        """A function as the student wrote it, for what compiles it or runs it lane by lane; say `count` when it ran."""
        found = getattr(self, slot)
        written: FunctionType = getattr(found, "__wrapped__", found)
        return written

    def count(self, slot: str) -> None:
        """Note that a slot ran, which was called in another way than by its name."""
        self.calls[slot] += 1

    def begin(self, task: Assignment) -> None:
        """Load the file of a task, and see that its slots are functions or classes that are written there.

        Raises
        ------
        CourseError
            A slot is missing.
        Refused
            A slot is something else: a call may be right, but nobody wrote it.
        """
        found = vars(self.module(task.file))
        for slot in task.slots:
            if slot not in found:
                others = [name for name, value in found.items() if callable(value) and name not in self.home]
                near = get_close_matches(slot, others, 1, 0.7)
                said = f", but {near[0]}: was that meant?" if near else ": was it renamed, or deleted?"
                raise CourseError(
                    f"{task.file} has no {slot}{said} `minifuse course reset {task.id}` puts it back, unwritten"
                )
            value = getattr(found[slot], "__wrapped__", found[slot])
            if not self.is_written(value):
                raise Refused(
                    f"{slot} in {task.file} is {kind_of(value)}; it is to be a function that you write: def {slot}(...)"
                )

    def is_written(self, value: object) -> bool:
        """Return whether this is a function by `def`, or a class, of a file in the folder."""
        if isinstance(value, type):
            return value.__module__ in self._modules
        if not isinstance(value, FunctionType) or value.__name__ == "<lambda>":
            return False
        return Path(value.__code__.co_filename).parent == self.folder

    def module(self, file: str) -> ModuleType:
        """A file, loaded."""
        name = Path(file).stem
        if name not in self._modules:
            loader = FileLoader(name, str(self.path(file)), self)
            module = ModuleType(name)
            module.__spec__, module.__file__ = ModuleSpec(name, loader, origin=loader.path), loader.path
            self._modules[name] = module
            if name not in sys.modules or isinstance(vars(sys.modules[name]).get("__loader__"), FileLoader):
                sys.modules[name] = module  # `inspect` looks there for the source of a class
            module.__loader__ = loader
            try:
                loader.exec_module(module)
            except BaseException:
                del self._modules[name]
                raise
        return self._modules[name]

    def sibling(self, name: str) -> ModuleType | None:
        """Another file of the folder, for an import; None if there is no such file."""
        return self.module(f"{name}.py") if name.isidentifier() and self.path(f"{name}.py").is_file() else None

    def path(self, file: str) -> Path:
        """Return the path of a file."""
        return self.folder / file

    def counted(self, slot: str, function: Slot) -> Slot:
        """A slot that counts its calls, and within which the oracle is silent."""
        if isinstance(function, type):
            for name, method in list(vars(function).items()):
                if isinstance(method, staticmethod):
                    setattr(function, name, staticmethod(self.counted(slot, method.__func__)))
            return counting_class(function, slot, self.calls)

        @wraps(function)
        def call(*args: object, **options: object) -> object:
            self.calls[slot] += 1
            if self._is_inside:  # one of the student's functions calls another, or itself
                return function(*args, **options)
            self._is_inside = True
            try:
                with oracle.silent(), ending():
                    return function(*args, **options)
            finally:
                self._is_inside = False

        return call

    def fill(self, module: ModuleType, file: str) -> None:
        """Put counters around the slots of a loaded module, and the oracle into those of other tasks."""
        for slot, task in self.home.items():
            if task.file != file or slot not in vars(module):
                continue
            if self.task is not None and task.id != self.task.id:
                vars(module)[slot] = oracle.function(slot)
            elif callable(vars(module)[slot]):
                vars(module)[slot] = self.counted(slot, vars(module)[slot])


class FileLoader(SourceFileLoader):
    """Looks at what a file imports, runs it, and fills its slots."""

    def __init__(self, name: str, path: str, student: Student) -> None:
        super().__init__(name, path)
        self.student = student

    def path_stats(self, path: object) -> NoReturn:
        """None, so that Python keeps no bytecode: two versions of a file may be saved within a second."""
        raise OSError

    def exec_module(self, module: ModuleType) -> None:
        """The file as it is now."""
        path, student = Path(self.path), self.student
        may = imports.allowed(path.name, student.tasks)
        imports.look_at(imports.parsed(path), path, may, {file.stem for file in student.folder.glob("*.py")})
        vars(module)["__builtins__"] = imports.guarded(path, may, student.sibling)
        with ending():
            super().exec_module(module)
        student.fill(module, path.name)


@contextmanager
def ending() -> Iterator[None]:
    """While the student's code runs: to leave, or to take all memory, ends the judging at once; no case is made smaller."""
    try:
        yield
    except SystemExit as error:
        raise Stopped("your code ends the program (exit, quit or SystemExit); end a function with return") from error
    except MemoryError as error:
        raise Stopped(
            "your code took more memory than it may have; does something grow in a loop that does not end?"
        ) from error


def kind_of(value: object) -> str:
    """Describe something that is no function."""
    if isinstance(value, FunctionType):
        return "a lambda" if value.__name__ == "<lambda>" else f"a function of {value.__module__}"
    if isinstance(value, type):
        return f"a class of {value.__module__}"
    return f"of type {type(value).__name__}" if not callable(value) else f"an object of type {type(value).__name__}"


def counting_class(cls: type, slot: str, calls: Counter[str]) -> type:
    """Make a class count its instances."""
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]  # cls is the class itself, not a subclass

    def __init__(self: object, *args: object, **options: object) -> None:  # noqa: N807
        calls[slot] += 1
        original(self, *args, **options)

    cls.__init__ = __init__  # type: ignore[misc]  # the class is changed to count
    return cls
