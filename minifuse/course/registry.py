"""All tasks of the course, in their order. Marks, stubs, pages, lists and results come from here."""

import pkgutil
from difflib import get_close_matches
from importlib import import_module

from ..errors import CourseError
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
    """The task of an id: "2.3", "task2_3", or a slot of it.

    Raises
    ------
    CourseError
        There is none.
    """
    found = [task for task in TASKS if name in (task.id, task.mark, *task.slots)]
    if not found:
        near = get_close_matches(name, [*BY_ID, *(slot for task in TASKS for slot in task.slots)], 1)
        raise CourseError(
            f"there is no task {name!r}; tasks are {', '.join(BY_ID)}{f'; did you mean {near[0]}?' * bool(near)}"
        )
    return found[0]


def tasks_of(names: list[str]) -> list[Task]:
    """Tasks by ids, or by numbers of modules; all for none."""
    found: list[Task] = []
    for name in names:
        module = [task for task in TASKS if str(task.module) == name]
        found += module or [task_named(name)]
    return found or list(TASKS)


def files() -> list[str]:
    """The files of a student's folder in which tasks are written."""
    return list(dict.fromkeys(task.file for task in TASKS))
