"""Create a student's folder for tests: the reference solutions of one file, and more code appended to it."""

import re
from pathlib import Path

from minifuse.course.registry import task_named
from minifuse.course.runner import run
from tests.course.make_stubs import REFERENCE

FILE = "tensors.py"
TASK = task_named("2.1")
RIGHT = (
    "def permuted(x, dims):\n    return Strided(x.storage, tuple(x.shape[d] for d in dims), STRIDES, x.offset)\n".replace(
        "STRIDES", "tuple(x.strides[d] for d in dims)"
    )
)
DETOUR = 'vars(type(todo))["__glo" + "bals__"].__get__(todo)["__builtins__"]["__import__"]'
"""An `import` that the restrictions do not prevent: code in one process can reach everything in it."""
CELL = re.compile(r"^# %% (\w+): (.+)$", re.MULTILINE)
"""A line that begins a solution in a file with many: its name, and what it does."""


def written(folder: Path, more: str = "", text: str | None = None) -> Path:
    """Create a folder with the solutions of task 2.1 and appended definitions, which replace those of the same names."""
    folder.mkdir(parents=True, exist_ok=True)
    source = (REFERENCE / FILE).read_text(encoding="utf-8") if text is None else text
    (folder / FILE).write_text(f"{source}\n\n{more}\n" if more else source, encoding="utf-8")
    return folder


def judge(folder: Path, task, effort=None, **options):
    """Judge one task of a folder, and return the result."""
    (result,) = run(folder, [task], effort=effort, **options)
    return result


def cells_of(directory: Path, task) -> list[tuple[str, str]]:
    """Read the (name, code) of each solution of a task in a directory; none if there is no file of that task."""
    path = directory / f"task{task.id.replace('.', '_')}.py"
    _, *parts = CELL.split(path.read_text(encoding="utf-8") if path.exists() else "")
    return list(zip(parts[::3], parts[2::3], strict=True))
