"""Grade a class: a folder with a folder for each student.

The `.py` files of a student are copied to a temporary folder before they are graded, so that links, pipes and huge files are
left out, and no code runs in the folder that was handed in. Each task is judged in a process with limits. That protects the
grading from accidents, not from attacks: to grade code of strangers, run the whole command in a container.
"""

import os
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ..core.errors import CourseError
from ..runtime.atomic_files import reason
from . import runner
from .registry import files, task_named
from .scoring import Points, count_points
from .student_process import TIME_S, hidden_main_module
from .task import Effort, Task
from .verdicts import Outcome, Result
from .workspace import STATE

CLASS_FILE = "class.toml"
MAX_FILE_BYTES = 1 << 20  # of a student's file; the reference solutions have less than 20 KB
MAX_NAMES = 3  # of a folder without files of the course
ARCHIVES = frozenset({".zip", ".gz", ".tgz", ".tar", ".7z", ".rar"})
TIMED_TASKS = frozenset({"3.5"})  # they measure time, so they run when no other task does


@dataclass(frozen=True)
class ClassSettings:
    """The settings of a class, from its class.toml; options of the command line come before them."""

    seed: int | None = None
    """Determines the drawn cases. Each student gets the same ones."""
    examples: int | None = None
    tasks: list[str] = field(default_factory=list)
    task_folder: str = ""
    """The folder with the teacher's own tasks, seen from that of the class."""


@dataclass
class Grading:
    """The results of one student."""

    student: str
    """The name of the student's folder."""
    results: dict[str, Result]
    """By the id of the task."""
    notes: list[str] = field(default_factory=list)
    """Facts about the files: what is missing, and what was left out."""

    def points(self, tasks: Sequence[Task]) -> Points:
        """Return the points of tasks."""
        return count_points(self.results, tasks)


def is_class(folder: Path) -> bool:
    """Return whether a folder contains folders of students, and no file of the course itself."""
    return not is_solution(folder) and bool(student_folders(folder))


def is_solution(folder: Path) -> bool:
    """Return whether a folder is that of one student."""
    return (folder / STATE).is_dir() or any(os.path.lexists(folder / file) for file in files())


def student_folders(folder: Path) -> list[Path]:
    """Return the folders in a class, sorted by name, without hidden ones.

    Raises
    ------
    CourseError
        The folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__")))
    except OSError as error:
        raise CourseError(f"{folder} cannot be read: {reason(error)}") from error


def solution_folder(folder: Path) -> Path:
    """Return a student's folder, or the only folder in it with files of the course, as in an unpacked archive."""
    if is_solution(folder):
        return folder
    try:
        nested = [path for path in student_folders(folder) if not path.is_symlink() and is_solution(path)]
    except (CourseError, OSError):
        return folder
    return nested[0] if len(nested) == 1 else folder


def read_settings(folder: Path) -> ClassSettings:
    """Read class.toml of a class, if there is one.

    Raises
    ------
    CourseError
        It cannot be read, has an unknown key, or a value of a wrong type.
    """
    path = folder / CLASS_FILE
    if not path.exists():
        return ClassSettings()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from error
    known = [one.name for one in fields(ClassSettings)]
    if unknown := sorted(found.keys() - set(known)):
        raise CourseError(f"{path} has {', '.join(unknown)}; expected {', '.join(known)}")
    for name in ("seed", "examples"):
        value = found.get(name, 1)
        if type(value) is not int or value < (name == "examples"):
            raise CourseError(f"{path}: {name} is {value!r}; expected a whole number, such as {name} = 60")
    tasks = found.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise CourseError(f'{path}: tasks is {tasks!r}; expected a list of names, such as tasks = ["2", "3.1"]')
    if not isinstance(found.get("task_folder", ""), str):
        raise CourseError(
            f'{path}: task_folder is {found["task_folder"]!r}; expected a path, such as task_folder = "../my-tasks"'
        )
    return ClassSettings(**found)


def find_tasks(folder: Path, name: str) -> Path:
    """Return the folder of tasks that class.toml names. It runs in the judge, so it may not be what a student handed in.

    Raises
    ------
    CourseError
        It is in the folder of the class.
    """
    path = (folder / name).resolve()
    if path.is_relative_to(folder.resolve()):
        raise CourseError(
            f"{folder / CLASS_FILE}: task_folder is {name!r}, which is in the folder of the class, where students' files "
            f'are; expected one outside of it, such as task_folder = "../my-tasks"'
        )
    return path


def collect(folder: Path, copy: Path, needed: Iterable[str] = ()) -> list[str]:
    """Copy the `.py` files of a student's folder, and return notes about files that are missing or left out."""
    try:
        source = solution_folder(folder)
        names = sorted(entry.name for entry in os.scandir(source) if entry.name.endswith(".py"))
    except OSError as error:
        return [f"the folder cannot be read: {reason(error)}"]
    notes = [f"found in {source.name}"] if source != folder else []
    notes += [f"{name} {problem}" for name in names if (problem := copy_file(source / name, copy / name))]
    missing = [file for file in needed if file not in names]
    if not set(names) & set(files()):
        return [*notes, f"no file of the course; {describe_contents(source)}"]
    return notes + ([f"missing: {', '.join(missing)}"] if missing else [])


def describe_contents(folder: Path) -> str:
    """Return the first names in a folder, and what to do with archives: "it has my-engine.zip: unpack it"."""
    names = [printable(path.name) for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    if not names:
        return "it is empty"
    shown = ", ".join(names[:MAX_NAMES]) + f" and {len(names) - MAX_NAMES} more" * (len(names) > MAX_NAMES)
    return f"it has {shown}" + ": unpack it" * any(Path(name).suffix in ARCHIVES for name in names)


def copy_file(path: Path, copy: Path) -> str:
    """Copy a regular file; return why it was left out, "" if it was not."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return "is a link" if stat.S_ISLNK(status.st_mode) else "is not a regular file"
        if status.st_size > MAX_FILE_BYTES:
            return f"has {status.st_size:,} bytes, more than {MAX_FILE_BYTES:,}"
        shutil.copyfile(path, copy, follow_symlinks=False)
    except OSError as error:
        return f"cannot be read: {reason(error)}"
    return ""


class ClassGrader:
    """Grades students one after the other, and up to `jobs` tasks of a student at the same time.

    Parameters
    ----------
    tasks : sequence of Task
    effort : Effort
        The number of examples, and the seed that all students share.
    jobs : int
        The number of processes that judge at the same time. Tasks that measure time run alone.
    """

    def __init__(
        self, tasks: Sequence[Task], effort: Effort, *, is_strict: bool = False, time_s: float = TIME_S, jobs: int = 1
    ) -> None:
        self.tasks, self.effort, self.is_strict, self.time_s, self.jobs = tasks, effort, is_strict, time_s, jobs

    def grade(self, folder: Path, done: Callable[[Task], None] | None = None) -> Grading:
        """Grade a student, whatever is in the folder; `done` is called after each task."""
        with tempfile.TemporaryDirectory(prefix="minifuse-class-", ignore_cleanup_errors=True) as place:
            copy = Path(place)
            notes = collect(folder, copy, dict.fromkeys(task.file for task in self.tasks))
            present = [task for task in self.tasks if (copy / task.file).exists()]
            found = self.judge(copy, present, done)
        results = {task.id: found.get(task.id) or missing_result(task) for task in self.tasks}
        return Grading(printable(folder.name), results, notes)

    def judge(self, folder: Path, tasks: Sequence[Task], done: Callable[[Task], None] | None = None) -> dict[str, Result]:
        """Judge tasks of a folder, and return the results by id, in the order of the tasks."""
        together = [task for task in tasks if self.jobs > 1 and task.id not in TIMED_TASKS]
        alone = [task for task in tasks if task not in together]
        run = partial(judge_task, folder, effort=self.effort, is_strict=self.is_strict, time_s=self.time_s)
        found: dict[str, Result] = {}
        for task, result in chain(self._in_processes(run, together), ((task, run(task.id)) for task in alone)):
            found[task.id] = result
            if done:
                done(task)
        return {task.id: found[task.id] for task in tasks}

    def _in_processes(self, run: Callable[[str], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Judge tasks in several processes. A process that dies fails the tasks that are left."""
        if not tasks:
            return
        pool = ProcessPoolExecutor(min(self.jobs, len(tasks)), get_context("spawn"))
        try:
            with hidden_main_module():  # the first task starts all processes
                waiting = [(task, pool.submit(run, task.id)) for task in tasks]
            for task, future in waiting:
                try:
                    yield task, future.result()
                except BrokenProcessPool as error:
                    yield task, Result(task.id, [Outcome("the judge's process ends", "error", str(error))], {})
        finally:
            pool.shutdown(cancel_futures=True)


def judge_task(folder: Path, task_id: str, *, effort: Effort, is_strict: bool, time_s: float) -> Result:
    """Judge a task with all its checks. An error of this function is a result, too: it must not stop a class."""
    options: dict[str, Any] = {"effort": effort, "is_strict": is_strict, "time_s": time_s}
    try:
        (result,) = runner.run(folder, [task_named(task_id)], runs_all_checks=True, **options)
    except (OSError, ValueError, TypeError, KeyError) as error:  # no process, or what it sent is no result
        return Result(task_id, [Outcome("its process ends", "error", f"{type(error).__name__}: {error}")], {})
    return result


def printable(name: str) -> str:
    """Return the name of a folder without characters that a terminal or a file in UTF-8 cannot have."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def missing_result(task: Task) -> Result:
    """Return the result of a task whose file was not handed in."""
    return Result(task.id, [Outcome(f"{task.file} is handed in", "error", f"{task.file} is missing")], {})
