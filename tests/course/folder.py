"""A student's folder for tests of how it is handled: the reference of one file, and what somebody wrote behind it."""

from pathlib import Path

from minifuse.course.registry import task_named
from tests.course.make_stubs import REFERENCE

FILE = "tensors.py"
TASK = task_named("2.1")
RIGHT = (
    "def permuted(x, dims):\n    return Strided(x.storage, tuple(x.shape[d] for d in dims), STRIDES, x.offset)\n".replace(
        "STRIDES", "tuple(x.strides[d] for d in dims)"
    )
)
DETOUR = 'getattr(todo, "__glo" + "bals__")["__builtins__"]["__import__"]'
"""An `import` that no rail stops: code in one process can reach all that is in it."""


def written(folder: Path, more: str = "", text: str | None = None) -> Path:
    """A folder with the solutions of task 2.1, and more definitions, which count as the last ones of their names do."""
    folder.mkdir(parents=True, exist_ok=True)
    source = (REFERENCE / FILE).read_text(encoding="utf-8") if text is None else text
    (folder / FILE).write_text(f"{source}\n\n{more}\n" if more else source, encoding="utf-8")
    return folder
