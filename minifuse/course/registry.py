"""All tasks of the course, in order, and look-up by name."""

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
    import_module(f"{tasks.__name__}.{module.name}").TASK for module in pkgutil.iter_modules(tasks.__path__)
)
BY_ID = {task.id: task for task in TASKS}


def task_named(name: str) -> Task:
    """Return the task with an id, a marker, or a slot.

    Parameters
    ----------
    name : str
        "2.3", "task2_3", or the name of a function of the task.

    Raises
    ------
    CourseError
        No task has this name.
    """
    for task in TASKS:
        if name in (task.id, task.mark, *task.slots):
            return task
    raise unknown_name_error("task", name)


def tasks_of(names: list[str]) -> list[Task]:
    """Return the tasks with these ids, markers, slots or module numbers, each once; all tasks for an empty list.

    Raises
    ------
    CourseError
        No task and no module has one of the names.
    """
    selected: dict[str, Task] = {}
    for name in names:
        tasks = in_module(name) or [task for task in TASKS if name in (task.id, task.mark, *task.slots)]
        if not tasks:
            raise unknown_name_error("task or module", name)
        selected |= {task.id: task for task in tasks}
    return list(selected.values()) or list(TASKS)


def in_module(number: str) -> list[Task]:
    """Return the tasks of a module; an empty list if this is not the number of a module."""
    return [task for task in TASKS if str(task.module) == number]


def unknown_name_error(kind: str, name: str) -> CourseError:
    """Return the error for an unknown name, with all names and the closest one."""
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
    """Return the files of a student's folder that have tasks."""
    return list(dict.fromkeys(task.file for task in TASKS))
