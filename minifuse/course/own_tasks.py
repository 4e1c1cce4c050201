"""Load a teacher's own tasks from a folder (see `task_folder`), and refuse a folder that is broken."""

import re
import tomllib
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ..core.errors import CourseError
from .scoring import points_of_checks
from .task import Task
from .task_folder import PACKAGES, SOURCES, extend_packages

FILE_NAME = re.compile(r"task(?P<module>0|[1-9]\d*)_(?P<number>[1-9]\d*)")
MODULES_FILE = "modules.toml"
CREATE = "create one: minifuse course new-task 10.1 running_sums --tasks"


def load(folder: Path | None, built_in: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks of a folder, in order; none for None.

    Raises
    ------
    CourseError
        The folder is missing or broken.
    """
    if folder is None:
        extend_packages(None)
        return ()
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder that exists, expected one with tasks; {CREATE} {folder}")
    paths = [path for path in sorted((folder / "tasks").glob("*.py")) if path.stem != "__init__"]
    if not paths:
        raise CourseError(f"{folder} has no tasks, expected files such as tasks/task10_1.py; {CREATE} {folder}")
    check_names(folder)
    extend_packages(folder)
    tasks = sorted([load_task(path) for path in paths], key=lambda task: task.order)
    for path in sorted((folder / "oracle").glob("*.py")):
        import_file(
            path
        )  # here, where its line can be named: in the student's process it would look like the student's error
    check_unique(folder, tasks, built_in)
    for task in tasks:
        if not (folder / "stubs" / f"{task.file}.txt").is_file():
            raise CourseError(
                f"{folder} has no stubs/{task.file}.txt, from which students begin task {task.id}; write it from "
                f"reference/{task.file}: minifuse course make-stubs --tasks {folder}"
            )
    return tuple(tasks)


def check_names(folder: Path) -> None:
    """Raise `CourseError` for a module with the name of a built-in one, which would not be found."""
    for package in PACKAGES:
        built_in = {path.name for path in (SOURCES / package).glob("*.py")} - {"__init__.py"}
        for path in sorted((folder / package).glob("*.py")):
            if path.name in built_in:
                raise CourseError(f"{path} has the name of a file of the course; give the task an id that is free")


def load_task(path: Path) -> Task:
    """Import the file of a task, and return its TASK.

    Raises
    ------
    CourseError
        The file cannot be imported, or its TASK is missing or incomplete.
    """
    found = FILE_NAME.fullmatch(path.stem)
    if not found:
        raise CourseError(f"{path} is not the name of a task, expected task10_1.py for task 10.1")
    task = vars(import_file(path)).get("TASK")
    if not isinstance(task, Task):
        got = "no TASK" if task is None else f"TASK of type {type(task).__name__}"
        raise CourseError(f"{path} has {got}; write TASK = Task(id=..., title=..., ...), as in a file of new-task")
    expected = f"{found['module']}.{found['number']}"
    if task.id != expected:
        raise CourseError(f"{path}: the id is {task.id!r}, but the name of the file is that of {expected!r}; rename one")
    check_task(path, task)
    return task


def import_file(path: Path) -> ModuleType:
    """Import a file of the folder as a module of the course.

    Raises
    ------
    CourseError
        It cannot be imported.
    """
    try:
        return import_module(f"{__package__}.{path.parent.name}.{path.stem}")
    except Exception as error:  # whatever the code of the folder raises
        raise CourseError(f"{where(error, path)} cannot be imported: {type(error).__name__}: {error}") from error


def where(error: Exception, path: Path) -> str:
    """Return the file and line of the folder at which an exception was raised, the innermost one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno},"
    root = path.parents[1]
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [place for place in frames if root in place[0].parents]
    return f"{own[-1][0]}, line {own[-1][1]}," if own else str(path)


def check_task(path: Path, task: Task) -> None:
    """Raise `CourseError` for a task that could not be judged."""
    names = [check.name for check in task.checks]
    file = Path(task.file)
    problems = {
        f"file is {task.file!r}; expected the name of a Python file, such as 'logic.py'": (
            file.name == task.file and file.suffix == ".py" and file.stem.isidentifier()
        ),
        f"slots is {task.slots!r}; expected a tuple of names, such as ('running_sums',)": (
            isinstance(task.slots, tuple) and task.slots and all(str(slot).isidentifier() for slot in task.slots)
        ),
        f"points is {task.points!r}; expected a whole number of at least 1": type(task.points) is int and task.points > 0,
        f"{len(task.hints)} hints; expected 3: the idea, the algorithm in words, where to look": len(task.hints) == 3,
        "no checks; expected at least one, such as agreement(...)": bool(names),
        f"checks named {names}; expected different names": len(set(names)) == len(names),
    }
    for mistake in task.mistakes:
        text = f"the mistake {mistake.name!r} names the check {mistake.check!r}; expected one of {names}"
        problems[text] = mistake.check in ("", *names)
    for text, is_right in problems.items():
        if not is_right:
            raise CourseError(f"{path}: {text}")
    try:
        points_of_checks(task)
    except ValueError as error:
        raise CourseError(f"{path}: {error}") from None


def check_unique(folder: Path, tasks: Sequence[Task], built_in: Iterable[Task]) -> None:
    """Raise `CourseError` for a function or file that another task has, too."""
    slots = {slot: task for task in built_in for slot in task.slots}
    files = {task.file for task in built_in}
    for task in tasks:
        for slot in task.slots:
            if slot in slots:
                raise CourseError(f"{folder}: {slot} is a function of tasks {slots[slot].id} and {task.id}; rename one")
            slots[slot] = task
        if task.file in files:
            raise CourseError(
                f"{folder}: task {task.id} is to be written in {task.file}, which is a file of the course; name another "
                f"file, which may import from {task.file}"
            )


def module_names(folder: Path | None, tasks: Sequence[Task], built_in: dict[int, str]) -> dict[int, str]:
    """Return the names of all modules in order: the built-in ones, those of modules.toml, else "Module 10".

    Raises
    ------
    CourseError
        modules.toml cannot be read.
    """
    named: dict[int, str] = {}
    path = folder / MODULES_FILE if folder else None
    if path and path.exists():
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
            named = {int(number): str(name) for number, name in found.items()}
        except (OSError, ValueError) as error:
            raise CourseError(f'{path} cannot be read: {error}; expected lines such as 10 = "Logic"') from error
    default = {task.module: f"Module {task.module}" for task in tasks}
    return dict(sorted({**default, **named, **built_in}.items()))
