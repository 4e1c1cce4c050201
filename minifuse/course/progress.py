"""A student's progress: results that are known without a run, and the task that comes next."""

import ast
from collections.abc import Mapping
from pathlib import Path

from . import verdict_cache, workspace
from .imports import syntax_tree
from .registry import all_tasks
from .task import Task
from .verdicts import Outcome, Result


def known_results(folder: Path) -> dict[str, Result]:
    """Return the results of tasks that are as they were at first, and the stored ones, by the id of their task."""
    results = untouched_results(folder)
    return results | verdict_cache.load_all(folder, [task for task in all_tasks() if task.id not in results])


def untouched_results(folder: Path) -> dict[str, Result]:
    """Return the pending results of the tasks that are as they were at first, by the id of their task."""
    return {task.id: untouched(task) for task in all_tasks() if is_untouched(folder, task)}


def passes(results: Mapping[str, Result], task: Task) -> bool:
    """Return whether a task is known to pass."""
    return task.id in results and results[task.id].verdict == "passed"


def next_task(results: Mapping[str, Result], after: Task | None = None) -> Task | None:
    """Return the first task after another one that is not known to pass, or before it if there is none; None if all pass."""
    tasks = all_tasks()
    begin = tasks.index(after) + 1 if after else 0
    return next((task for task in (*tasks[begin:], *tasks[:begin]) if not passes(results, task)), None)


def is_untouched(folder: Path, task: Task) -> bool:
    """Return whether the functions of a task are those of the stub, so that it need not run."""
    mine, first = parts(text(folder / task.file)), parts(workspace.stub(task.file).encode())
    return all(is_same_code(mine.get(slot), first[slot]) for slot in task.slots)


def untouched(task: Task) -> Result:
    """Return the pending result of a task that is not changed yet."""
    message = f"task {task.id} is still to be written; `minifuse course hint {task.id}` helps"
    return Result(task.id, [Outcome(task.checks[0].name, "pending", message)], {})


def text(path: Path) -> bytes:
    """Return the bytes of a file; b"" if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def parts(source: bytes) -> dict[str, ast.stmt]:
    """Return the top-level definitions of a file as syntax trees; {} if it is not valid Python."""
    tree = syntax_tree(source)
    body = tree.body if tree else []
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def is_same_code(one: object, other: object) -> bool:
    """Return whether two parts of syntax trees are equal. Their first difference ends the comparison."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_code, one, other))
    if isinstance(one, ast.AST) and type(one) is type(other):
        return all(is_same_code(getattr(one, name, None), getattr(other, name, None)) for name in one._fields)
    return type(one) is type(other) and one == other
