"""A folder with a teacher's own tasks: where it is, and how its files become modules of the course.

    tasks/task10_1.py       the task: its text, hints, checks and mistakes       imported by the judge only
    questions/task10_1.py   what the student's process computes for a case       imported by both processes
    oracle/task10_1.py      the right answers, which are lent to later tasks     imported by both, without the judged ones
    quizzes/quiz10_1.py     the questions of a quiz; optional
    stubs/FILE.txt          what students begin with, made from the reference
    stubs/FILE.lines.txt    the first lines of its parts, the last hint, made from the reference
    reference/FILE          the reference solutions; not for students
    zoo/task10_1.py         wrong solutions, each with its mistake; not for students
    pages/10.1-NAME.md      the page; optional
    modules.toml            names of new modules; optional

The folders of modules extend the packages of the same names, so a file has the shape of a built-in one, and is imported as
`minifuse.course.tasks.task10_1`. The environment variable MINIFUSE_TASKS names the folder, so that processes that are
started inherit it; the option `--tasks` sets it.
"""

import os
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

VARIABLE = "MINIFUSE_TASKS"
PACKAGES = ("tasks", "questions", "oracle", "quizzes")
STUDENT_PACKAGES = ("questions", "oracle")
"""The packages of the process that runs a student's code."""
SOURCES = Path(__file__).parent


def task_folder() -> Path | None:
    """Return the folder of the environment variable as an absolute path; None if it is not set."""
    name = os.environ.get(VARIABLE, "")
    return Path(name).absolute() if name else None


def use(folder: Path) -> None:
    """Use the tasks of a folder from now on, also in processes that are started."""
    os.environ[VARIABLE] = str(folder.absolute())


def file_of_tasks(kind: str, name: str) -> Path | None:
    """Return the path of a file such as reference/logic.py in the folder; None if there is none."""
    folder = task_folder()
    path = folder / kind / name if folder else None
    return path if path and path.is_file() else None


def place_of(error: BaseException) -> str:
    """Return the line of the folder's files that raised an exception, as "tasks/task10_1.py, line 17"; "" if none did."""
    folder = task_folder()
    frames = [(Path(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(path, line) for path, line in frames if folder and folder in path.parents]
    return f"{own[-1][0].relative_to(folder).as_posix()}, line {own[-1][1]}" if folder and own else ""


def extend_packages(folder: Path | None, packages: Iterable[str] = PACKAGES) -> None:
    """Let packages of the course find the modules of a folder, and forget those of another one."""
    for name in packages:
        package = import_module(f"{__package__}.{name}")
        built_in, *others = package.__path__
        wanted = [str(folder / name)] if folder else []
        if others == wanted:
            continue
        for full_name, module in list(sys.modules.items()):
            if full_name.startswith(f"{package.__name__}.") and Path(module.__file__ or "").parent != Path(built_in):
                del sys.modules[full_name]
                vars(package).pop(full_name.rpartition(".")[2], None)
        package.__path__[:] = [built_in, *wanted]
