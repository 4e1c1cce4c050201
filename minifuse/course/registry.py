"""All tasks, those of the course and a teacher's own, in order, and look-up by name."""

import pkgutil
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from ..core.errors import CourseError
from . import own_tasks, tasks
from .task import Task
from .task_folder import VARIABLE, task_folder

MODULES = {
    0: "Fundamentals",
    1: "Autodiff",
    2: "Tensors",
    3: "Efficiency",
    4: "Networks",
    5: "Fusion",
    6: "Many devices",
    7: "A transformer",
}
TASKS: tuple[Task, ...] = tuple(
    sorted(
        (import_module(f"{tasks.__name__}.{module.name}").TASK for module in pkgutil.iter_modules(tasks.__path__[:1])),
        key=lambda task: task.order,
    )
)
"""The tasks of the course itself."""
BY_ID = {task.id: task for task in TASKS}


@lru_cache(maxsize=1)
def tasks_of_folder(folder: Path | None) -> tuple[Task, ...]:
    """Return a teacher's own tasks."""
    return own_tasks.load(folder, TASKS)


def all_tasks() -> tuple[Task, ...]:
    """Return the tasks of the course and of the teacher's folder, in order.

    Raises
    ------
    CourseError
        The folder is broken.
    """
    return tuple(sorted((*TASKS, *tasks_of_folder(task_folder())), key=lambda task: task.order))


def all_modules() -> dict[int, str]:
    """Return the names of all modules by number, in order."""
    return own_tasks.module_names(task_folder(), tasks_of_folder(task_folder()), MODULES)


def task_named(name: str) -> Task:
    """Return the task with an id, a marker, a slot, or a file.

    Parameters
    ----------
    name : str
        "2.3", "task2_3", the name of a function of the task, or the file of one task.

    Raises
    ------
    CourseError
        No task has this name, or several.
    """
    tasks = with_name(name)
    if len(tasks) == 1:
        return tasks[0]
    tasks = tasks or in_module(name)
    if tasks:
        kind = "a file of several tasks" if name == tasks[0].file else "a module"
        raise CourseError(f"{name} is {kind}, expected a task; name one of {', '.join(task.id for task in tasks)}")
    raise unknown_name_error("task", name)


def tasks_of(names: list[str]) -> list[Task]:
    """Return the tasks with these ids, markers, slots, files or module numbers, each once; all tasks for an empty list.

    Raises
    ------
    CourseError
        No task and no module has one of the names.
    """
    selected: dict[str, Task] = {}
    for name in names:
        tasks = in_module(name) or with_name(name)
        if not tasks:
            raise unknown_name_error("task or module", name)
        selected |= {task.id: task for task in tasks}
    return list(selected.values()) or list(all_tasks())


def with_name(name: str) -> list[Task]:
    """Return the task with this id, marker or slot, or the tasks of this file; an empty list if there is none."""
    return [task for task in all_tasks() if name in (task.id, task.mark, task.file, *task.slots)]


def in_module(number: str) -> list[Task]:
    """Return the tasks of a module; an empty list if this is not the number of a module."""
    return [task for task in all_tasks() if str(task.module) == number]


def unknown_name_error(kind: str, name: str) -> CourseError:
    """Return the error for an unknown name, with the closest one, and one of each kind."""
    tasks = in_module(name)
    if tasks:
        return CourseError(f"{name} is a module, expected a task; name one of {', '.join(task.id for task in tasks)}")
    first = all_tasks()[0]
    names = [*(task.id for task in all_tasks()), *files(), *(slot for task in all_tasks() for slot in task.slots)]
    near = get_close_matches(name, names, 1)
    guess = f"did you mean {near[0]}? Expected" if near else "expected"
    module = f", a module such as {first.module}" if "module" in kind else ""
    own = "" if task_folder() else f"; a task of your teacher needs --tasks DIR, or {VARIABLE} with its folder"
    return CourseError(
        f"there is no {kind} {name!r}; {guess} the number of a task, such as {first.id}{module}, the name of its function, "
        f"such as {first.slots[0]}, or its file, such as {first.file}; `minifuse course status` lists all{own}"
    )


def files() -> list[str]:
    """Return the files of a student's folder that have tasks."""
    return list(dict.fromkeys(task.file for task in all_tasks()))
