"""Load the files of a student's folder, and count the calls of the functions that the student has written.

The files are loaded as modules that can import each other. Functions of other tasks are replaced by the oracle's, so that
each task is judged alone; `is_strict` uses nothing from the oracle. `imports` restricts what a file may import.
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
from .loans import with_named_errors
from .oracle import Slot
from .verdicts import Refused, Stopped

TASKS_WITHOUT_LOANS = frozenset({"0.2"})  # tasks to which nothing is lent: their functions get what they need as arguments


class Student:
    """The slots of a student's folder: the functions and classes that the student writes.

    Parameters
    ----------
    folder : Path
        The student's folder.
    tasks : tuple of Task
        All tasks. A file is loaded once, even if it belongs to several tasks.
    task : Task or None
        The task to judge; slots of other tasks come from the oracle. None: every slot is the student's.

    Notes
    -----
    `student.position_of(...)` calls the function of this name and counts the call in `student.calls`.
    """

    def __init__(self, folder: Path, tasks: tuple[Assignment, ...], task: Assignment | None) -> None:
        self.folder, self.tasks, self.task = folder.resolve(), tasks, task
        self.calls: Counter[str] = Counter()
        self.lent: Counter[str] = Counter()
        """Number of calls of each function that is lent."""
        self.notes: list[str] = []
        """Remarks of checks on a right solution."""
        self.share = 1.0
        """The fraction of the task's points that a check grants."""
        self.files = {task.file: task for task in tasks}
        self.home = {slot: task for task in tasks for slot in task.slots}
        self._modules: dict[str, ModuleType] = {}
        self._is_inside = False

    def __getattr__(self, slot: str) -> Any:
        """Return the function of a slot."""
        if slot.startswith("_") or slot not in self.home:
            raise AttributeError(slot)
        task = self.home[slot]
        if self.task is not None and task.id != self.task.id:
            return oracle.function(slot)
        module = self.module(task.file)
        if slot not in vars(module):
            raise NotDoneYet(
                task.id, f"{task.file} has no {slot}; write it, or restore the stub: minifuse course reset {task.id}"
            )
        return vars(module)[slot]

    def is_from_student(self, slot: str) -> bool:
        """Return whether a slot is the student's own."""
        return slot in self.home and self.task in (None, self.home[slot])

    def raw(self, slot: str) -> FunctionType:
        """Return a function without its counter, to compile or trace it. The caller calls `count`."""
        counter = getattr(self, slot)
        function: FunctionType = getattr(counter, "__wrapped__", counter)
        return function

    def count(self, slot: str) -> None:
        """Count a call of a slot that did not go through the counter."""
        self.calls[slot] += 1

    def begin(self, task: Assignment) -> None:
        """Load the file of a task, and check that it defines the slots as functions or classes.

        Raises
        ------
        CourseError
            A slot is missing.
        Refused
            A slot is not a function or class that the student has written, but for example imported.
        """
        definitions = vars(self.module(task.file))
        for slot in task.slots:
            if slot not in definitions:
                others = [name for name, value in definitions.items() if callable(value) and name not in self.home]
                near = get_close_matches(slot, others, 1, 0.7)
                message = f", but {near[0]}: was that meant?" if near else ": was it renamed, or deleted?"
                raise CourseError(
                    f"{task.file} has no {slot}{message} `minifuse course reset {task.id}` puts it back, unwritten"
                )
            value = getattr(definitions[slot], "__wrapped__", definitions[slot])
            if not self.is_written(value):
                raise Refused(f"{slot} in {task.file} is {describe_kind(value)}; write a function: def {slot}(...)")

    def is_written(self, value: object) -> bool:
        """Return whether a value is a class, or a function with `def`, of a file in the folder."""
        if isinstance(value, type):
            return value.__module__ in self._modules
        if not isinstance(value, FunctionType) or value.__name__ == "<lambda>":
            return False
        return Path(value.__code__.co_filename).parent == self.folder

    def module(self, file: str) -> ModuleType:
        """Load a file as a module, once."""
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
        """Load another file of the folder for an import; None if it does not exist."""
        return self.module(f"{name}.py") if name.isidentifier() and self.path(f"{name}.py").is_file() else None

    def path(self, file: str) -> Path:
        """Return the path of a file."""
        return self.folder / file

    def count_calls(self, slot: str, function: Slot) -> Slot:
        """Return a function that counts its calls, and in which the student's code cannot call the oracle."""
        if isinstance(function, type):
            for name, method in list(vars(function).items()):
                if isinstance(method, staticmethod | classmethod):
                    setattr(function, name, type(method)(self.count_calls(slot, method.__func__)))
                elif isinstance(method, FunctionType) and not name.startswith("__"):
                    setattr(function, name, counting_calls_of_class(function, method, self.count_calls(slot, method)))
            return counting_class(function, slot, self.calls)

        @wraps(function)
        def call(*args: object, **options: object) -> object:
            self.calls[slot] += 1
            if self._is_inside:  # called from the student's code
                return function(*args, **options)
            self._is_inside = True
            try:
                with oracle.forbid_calls(), stop_on_exit():
                    return function(*args, **options)
            finally:
                self._is_inside = False

        return call

    def lent_function(self, slot: str, task: Assignment) -> Slot:
        """Return the oracle's function for a slot of an earlier task; for one of a later task, a function that refuses."""
        places = [one.id for one in self.tasks]
        judged = self.task.id if self.task else task.id
        is_earlier = places.index(task.id) < places.index(judged)
        if is_earlier and judged not in TASKS_WITHOUT_LOANS:
            return with_named_errors(oracle.function(slot), task.id)
        reason = "your functions get what they need as arguments" if is_earlier else f"which comes after {judged}"

        def refuse(*_: object, **__: object) -> NoReturn:
            raise Refused(f"{slot} is a function of task {task.id}: {reason}; write this one without it")

        return refuse

    def fill(self, module: ModuleType, file: str) -> None:
        """Wrap the slots of a loaded module in counters; those of earlier tasks are lent, and those of later ones refuse."""
        for slot, task in self.home.items():
            if task.file != file or slot not in vars(module):
                continue
            if self.task is not None and task.id != self.task.id:
                vars(module)[slot] = self.lent_function(slot, task)
            elif callable(vars(module)[slot]):
                vars(module)[slot] = self.count_calls(slot, vars(module)[slot])


class FileLoader(SourceFileLoader):
    """A loader that checks the imports of a file, runs it, and wraps its slots."""

    def __init__(self, name: str, path: str, student: Student) -> None:
        super().__init__(name, path)
        self.student = student

    def path_stats(self, path: object) -> NoReturn:
        """Raise OSError, so that Python writes no bytecode: two versions of a file may have the same modification time."""
        raise OSError

    def exec_module(self, module: ModuleType) -> None:
        """Run the current content of the file."""
        path, student = Path(self.path), self.student
        may = imports.allowed_modules(path.name, student.tasks)
        judged, task = student.task, student.files.get(path.name)
        if judged is not None and judged.file == path.name:
            task = judged
        tree = imports.parse_file(path, task.id if task else "TASK")
        imports.check_imports(tree, path, may, {file.stem for file in student.folder.glob("*.py")})
        vars(module)["__builtins__"] = imports.restricted_builtins(path, may, student.sibling)
        with stop_on_exit():
            super().exec_module(module)
        student.fill(module, path.name)


@contextmanager
def stop_on_exit() -> Iterator[None]:
    """Convert SystemExit and MemoryError of the student's code in this block to `Stopped`, which ends judging at once."""
    try:
        yield
    except SystemExit as error:
        raise Stopped("your code ends the program (exit, quit or SystemExit); end a function with return") from error
    except MemoryError as error:
        raise Stopped(
            "your code took more memory than it may have; does something grow in a loop that does not end?"
        ) from error


def describe_kind(value: object) -> str:
    """Describe a value that is not a function of the student's."""
    if isinstance(value, FunctionType):
        return "a lambda" if value.__name__ == "<lambda>" else f"a function of {value.__module__}"
    if isinstance(value, type):
        return f"a class of {value.__module__}"
    return f"of type {type(value).__name__}" if not callable(value) else f"an object of type {type(value).__name__}"


def counting_calls_of_class(cls: type, method: FunctionType, counted: Slot) -> Slot:
    """Return a method that is counted where it is called on the class, as a static method is."""

    @wraps(method)
    def call(*args: object, **options: object) -> object:
        return (method if args and isinstance(args[0], cls) else counted)(*args, **options)

    return call


def counting_class(cls: type, slot: str, calls: Counter[str]) -> type:
    """Make a class count its instances."""
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]  # cls is the class itself, not a subclass

    def __init__(self: object, *args: object, **options: object) -> None:  # noqa: N807
        calls[slot] += 1
        original(self, *args, **options)

    cls.__init__ = __init__  # type: ignore[misc]  # the class is changed to count
    return cls
