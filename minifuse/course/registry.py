"""All tasks of the course, in their order. Marks, stubs, pages, lists and results come from here."""

import pkgutil
from difflib import get_close_matches
from importlib import import_module

from ..core.errors import CourseError
from . import tasks
from .task import Task

MODULES = {
    0: "Fundamentals",
    1: "Autodiff",
    2: "Tensors",
    3: "Efficiency",
    4: "Networks",
    5: "Fusion",
}
TASKS: tuple[Task, ...] = tuple(
    import_module(f"{tasks.__name__}.{found.name}").TASK for found in pkgutil.iter_modules(tasks.__path__)
)
BY_ID = {task.id: task for task in TASKS}


def task_named(name: str) -> Task:
    """Return the task of an id, of a mark, or of a slot.

    Parameters
    ----------
    name : str
        "2.3", "task2_3", or a function that the task asks for.

    Raises
    ------
    CourseError
        No task has this name.
    """
    for task in TASKS:
        if name in (task.id, task.mark, *task.slots):
            return task
    raise unknown("task", name)


def tasks_of(names: list[str]) -> list[Task]:
    """Return the tasks of ids, marks, slots or numbers of modules, each task once; all tasks for an empty list.

    Raises
    ------
    CourseError
        A name is neither that of a task nor that of a module.
    """
    found: dict[str, Task] = {}
    for name in names:
        tasks = in_module(name) or [task for task in TASKS if name in (task.id, task.mark, *task.slots)]
        if not tasks:
            raise unknown("task or module", name)
        found |= {task.id: task for task in tasks}
    return list(found.values()) or list(TASKS)


def in_module(number: str) -> list[Task]:
    """Return the tasks of a module; none for anything but the number of a module."""
    return [task for task in TASKS if str(task.module) == number]


def unknown(kind: str, name: str) -> CourseError:
    """Return the error for a name that no task has: the names that there are, and the nearest one."""
    tasks = in_module(name)
    if tasks:
        return CourseError(f"{name} is a module, expected a task; name one of {', '.join(task.id for task in tasks)}")
    near = get_close_matches(name, [*BY_ID, *(slot for task in TASKS for slot in task.slots)], 1)
    modules = f"a module ({', '.join(map(str, MODULES))}), " if "module" in kind else ""
    return CourseError(
        f"there is no {kind} {name!r}; expected {modules}a task ({', '.join(BY_ID)}) or the name of its function"
        + (f"; did you mean {near[0]}?" if near else "")
    )


def files() -> list[str]:
    """The files of a student's folder in which tasks are written."""
    return list(dict.fromkeys(task.file for task in TASKS))
