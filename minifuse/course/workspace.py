"""Create, reset and upgrade a student's folder. Files are never overwritten without a backup.

Its folder `.minifuse/` contains the original stubs, for a three-way merge with a newer version of the course, and backups.
The folder does not contain your progress: it is determined by running the checks.
"""

import ast
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from importlib.resources import files as resources
from pathlib import Path

from ..core.errors import CourseError, MissingPartError
from ..runtime.atomic_files import reason, replace_content
from ..runtime.file_locks import FileLock
from .capstone import SCRIPT
from .imports import COMMON
from .registry import all_modules, all_tasks, files
from .stub_regions import task_of
from .task import Task
from .task_folder import file_of_tasks

STATE = Path(".minifuse")
PRISTINE, BACKUPS, MERGES, LOCK = STATE / "pristine", STATE / "backups", STATE / "merges", STATE / "lock"
REFERENCE = Path(__file__).resolve().parents[2] / "tests" / "course" / "reference"  # only in a clone of the repository

TESTS = '''"""For those who know pytest: `pytest -m task2_3`, `pytest -k "strides"`. `minifuse course check` says more."""

from pathlib import Path

from minifuse.course.pytest_tasks import parameters, run


def pytest_generate_tests(metafunc):
    metafunc.parametrize("task", parameters())


def test_task(task):
    run(Path(__file__).parent, task)
'''


def stub(file: str) -> str:
    """Return the original text of a student's file."""
    own = file_of_tasks("stubs", f"{file}.txt")
    if own:
        return own.read_text(encoding="utf-8")
    return resources(__package__).joinpath("stubs", f"{file}.txt").read_text(encoding="utf-8")


def first_lines_of_code(task: Task) -> list[str]:
    """Return the first line of code of parts of a task, such as "broadcast_shape: rank = max(len(a), len(b))"."""
    name = f"{task.file}.lines.txt"
    own, built_in = file_of_tasks("stubs", name), resources(__package__).joinpath("stubs", name)
    if own is None and not built_in.is_file():
        return []
    lines = (own or built_in).read_text(encoding="utf-8").splitlines()
    text = stub(task.file)
    definitions = {slot: definition_of(text, slot) for slot in task.slots}
    found = []
    for part, _, line in (line.partition(" ") for line in lines if task_of(line) == task.id):
        slot = next((slot for slot, definition in definitions.items() if f'todo("{part}")' in definition), part)
        found.append(f"{slot}: {line}")
    return found


def reference(file: str) -> Path | None:
    """Return the path of the reference solution of a file; None if it is missing, as in what students have."""
    path = file_of_tasks("reference", file) or REFERENCE / file
    return path if path.is_file() else None


def pytest_ini() -> str:
    """Return the configuration of pytest with a marker for each task."""
    marks = "\n".join(f"    {task.mark}: {task.title}" for task in all_tasks())
    return f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\nmarkers =\n{marks}\n"


def readme() -> str:
    """Return the text of README.md."""
    tasks = all_tasks()
    modules = {task.module for task in tasks}
    rows = [
        f"| {k} {name} | {' '.join(t.id for t in tasks if t.module == k)} |"
        for k, name in all_modules().items()
        if k in modules
    ]
    imports = ", ".join(f"`{name}`" for name in sorted(COMMON - {"__future__", "minifuse.course"}))
    return README.format(modules="\n".join(rows), first=tasks[0].id, file=tasks[0].file, mark=tasks[0].mark, imports=imports)


README = """# Your engine

Each file here has functions that are still to be written: `todo("2.1a")` stands where your code goes. The engine around
them is complete, so begin with any module.

```console
$ minifuse course status            # where you are
$ minifuse course check {first}         # is it right? if not: the smallest case that shows it
$ minifuse course hint {first}          # an idea; -n 2 says more
$ minifuse course watch             # checks whatever you save
$ minifuse course quiz {first}          # a few questions on the page of a task
```

| module | tasks |
|---|---|
{modules}

Each task has a page with a picture, an example and common mistakes; the last lines of `minifuse course hint {first}` say
where it is.

Begin with `{file}`. `pytest -m {mark}` works too, and `python train_digits.py` trains a network on the engine as it is.

A file may import {imports} and
`minifuse.course`, your other files, and what its first lines import already. NumPy is allowed where they import it.

Nothing here is ever overwritten: `minifuse course reset {first}` puts a task back, and keeps what you had in
`.minifuse/backups`.
"""


def fresh() -> dict[str, str]:
    """Return the texts of all files of a new folder, by name."""
    others = {"README.md": readme(), "pytest.ini": pytest_ini(), "test_tasks.py": TESTS, "train_digits.py": SCRIPT}
    return {file: stub(file) for file in files()} | others


def init(folder: Path) -> list[Path]:
    """Create a student's folder, and return the files that were written.

    Raises
    ------
    CourseError
        One of the files exists, the folder is inside another one of the course, or it is not writable. Nothing is written
        then.
    """
    texts = fresh()
    check_absent(folder, texts)
    if outer := next((parent for parent in absolute(folder).parents if (parent / STATE).is_dir()), None):
        raise CourseError(
            f"{folder} would be in {outer}, which is a folder of the course already; begin there: minifuse course check "
            f"{all_tasks()[0].id}"
        )
    with locked(folder):
        check_absent(folder, texts)  # another process may have been faster
        for name, text in texts.items():
            write(folder / PRISTINE / name, text)
            write(folder / name, text)
    return [folder / name for name in texts]


def check_absent(folder: Path, names: Iterable[str]) -> None:
    """Raise `CourseError` if one of the files of a new folder exists."""
    if existing := [name for name in names if os.path.lexists(folder / name)]:
        others = f" and {len(existing) - 1} more files of the course" if len(existing) > 1 else ""
        to_go_on = f"to go on: cd {shlex.quote(str(folder))}; otherwise " if (folder / STATE).is_dir() else ""
        raise CourseError(
            f"{folder} has {existing[0]}{others} already, and nothing was written; {to_go_on}name another folder, or use "
            f"`minifuse course upgrade` for a folder of an earlier version"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a student's folder in this block.

    Raises
    ------
    CourseError
        Another process has the lock, or the folder is not writable.
    """
    lock = FileLock(folder / LOCK)
    try:
        (folder / STATE).mkdir(parents=True, exist_ok=True)
        owner = lock.acquire()
    except OSError as error:
        raise write_error(folder, error) from error
    if owner:
        raise CourseError(f"{folder} is being changed by {owner}, and nothing was written; try again when that has ended")
    try:
        yield
    finally:
        lock.release()


def write(path: Path, text: str) -> None:
    """Replace a file atomically.

    Raises
    ------
    CourseError
        The file cannot be written, or is a folder.
    """
    if path.is_dir():
        raise CourseError(f"{path} is a folder, expected the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path, text, is_durable=False)
    except OSError as error:
        raise write_error(path, error) from error


def write_error(path: Path, error: OSError) -> CourseError:
    """Return the error for a file or folder that cannot be written."""
    return CourseError(f"{path} cannot be written: {reason(error)}; is there room, and may you write in this folder?")


def read(path: Path) -> str:
    """Return the text of a student's file.

    Raises
    ------
    CourseError
        The file cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")  # keeps the line ends
    except (OSError, UnicodeDecodeError) as error:
        message = error.strerror if isinstance(error, OSError) else "it is not UTF-8; save it as UTF-8 in your editor"
        raise CourseError(f"{path} cannot be read: {message}") from error


def find_folder(folder: Path, advice: str = "leave --dir out inside of one") -> Path:
    """Return the student's folder: this one, or the nearest above it.

    Parameters
    ----------
    folder : Path
    advice : str
        What else to write if the folder does not exist.

    Raises
    ------
    CourseError
        The folder does not exist, or neither it nor a parent is a folder of the course.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder that exists; name a folder of the course, or {advice}")
    place = absolute(folder)
    for at in (place, *place.parents):
        if (at / STATE).is_dir():
            return at
    name = folder if folder != Path() else "the current folder"
    below = sorted(path.parents[1] for path in folder.glob(f"*/{PRISTINE}"))
    if below:
        names = f"{', '.join(one.name for one in below)} in it {'is' if len(below) == 1 else 'are'}"
        raise CourseError(f"{name} is not a folder of the course, but {names}; run: cd {shlex.quote(str(below[0]))}")
    raise CourseError(f"{name} is not a folder of the course; create one: minifuse course init DIR")


def absolute(folder: Path) -> Path:
    """Return the absolute path of a folder.

    Raises
    ------
    CourseError
        The working directory has been removed.
    """
    try:
        return folder.resolve()
    except OSError as error:
        raise CourseError(f"{folder} cannot be found: {error.strerror}; was the folder that you are in removed?") from error


def back_up(path: Path, folder: Path) -> Path:
    """Copy a file to the backups under the next free number."""
    backups = folder / BACKUPS
    number = 1 + max([int(p.suffix[1:]) for p in backups.glob(f"{path.name}.*") if p.suffix[1:].isdecimal()], default=0)
    copy = backups / f"{path.name}.{number}"
    write(copy, read(path))
    return copy


def reset(folder: Path, task: Task) -> Path | None:
    """Reset the functions of a task to the stub. Return the path of the backup; None if the file was missing."""
    with locked(folder):
        path, first = folder / task.file, stub(task.file)
        if not path.exists():
            write(path, first)
            return None
        text = read(path)
        try:
            for slot in task.slots:
                text = replace_definition(text, slot, definition_of(first, slot))
        except SyntaxError as error:
            raise CourseError(
                f"{task.file}, line {error.lineno}, is not valid Python: {error.msg}; correct it, or move the file away"
            ) from error
        copy = back_up(path, folder)
        write(path, text)
        return copy


def definition_of(text: str, slot: str) -> str:
    """Return the source of a top-level function or class with its decorators; "" if the file does not define it."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == slot:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            return "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])
    return ""


def replace_definition(text: str, slot: str, new: str) -> str:
    """Replace the definition of a slot in a text; append it if the text has none."""
    old = definition_of(text, slot)
    if old:
        return text.replace(old, new if new.endswith("\n") or not old.endswith("\n") else f"{new}\n", 1)
    return f"{text.rstrip()}\n\n\n{new}"


def upgrade(folder: Path, keeps_mine: bool = False) -> list[str]:
    """Merge this version's files into a folder, and return a sentence for each changed file.

    Parameters
    ----------
    folder : Path
    keeps_mine : bool
        True to keep the student's lines where both changed the same ones.

    Raises
    ------
    CourseError
        Both changed the same lines. The folder is not changed; the merges are in `.minifuse/merges`.
    """
    with locked(folder):
        return upgrade_locked(folder, keeps_mine)


def upgrade_locked(folder: Path, keeps_mine: bool) -> list[str]:
    """Run `upgrade` in a locked folder."""
    changes, message, conflicts = {}, [], []
    for file, new in fresh().items():
        mine, base = folder / file, folder / PRISTINE / file
        old = read(base) if base.exists() else ""
        if not mine.exists():
            changes[file] = new
            message.append(f"{file} is new")
        elif old != new:
            text = read(mine)
            changes[file], marked = merge_texts(old, text, new)
            if marked and not keeps_mine:
                write(folder / MERGES / file, marked)
                conflicts.append(f"{file} (see {MERGES / file})")
            if changes[file] != text:
                message.append(f"{file} has the newer text, and all that you wrote")
    if conflicts:
        raise CourseError(
            f"you and the course changed the same lines of {', '.join(conflicts)}; nothing was changed. "
            f"`minifuse course upgrade --mine` keeps your lines there"
        )
    for file, text in changes.items():
        path = folder / file
        if path.exists() and read(path) != text:
            back_up(path, folder)
        write(path, text)
        write(folder / PRISTINE / file, fresh()[file])
    return message


def merge_texts(old: str, mine: str, new: str) -> tuple[str, str]:
    """Merge three texts. Return the merge with `mine` in conflicts, and one with conflict markers; "" if no conflict."""
    try:
        from merge3 import Merge3
    except ImportError:
        raise MissingPartError('to merge, install the course: pip install "minifuse[course]"') from None
    base, one, other = (text.splitlines(keepends=True) for text in (old, mine, new))
    merge = Merge3(base, one, other)
    mixed = "".join(line for part in merge.merge_groups() for line in (part[2] if part[0] == "conflict" else part[1]))
    has_conflict = any(part[0] == "conflict" for part in merge.merge_groups())
    return mixed, "".join(merge.merge_lines("yours", "the course")) if has_conflict else ""


def diff_with_reference(folder: Path, task: Task) -> list[str]:
    """Return a unified diff of the student's functions of a task and the reference.

    Raises
    ------
    CourseError
        The reference is missing: only a clone of the repository has it.
    """
    path = reference(task.file)
    if path is None:
        raise CourseError("the reference solutions are in the repository, not in what pip installs; clone it to compare")
    theirs, ours = read(folder / task.file), path.read_text(encoding="utf-8")
    lines: list[str] = []
    for slot in task.slots:
        mine, right = lines_of(theirs, slot), lines_of(ours, slot)
        lines += unified_diff(mine, right, f"yours: {slot}", f"reference: {slot}", lineterm="")
    return lines


def lines_of(text: str, slot: str) -> Sequence[str]:
    """Return the lines of a definition, without the comments that mark regions."""
    return [line for line in definition_of(text, slot).splitlines() if line.strip() != "# end" and "# begin " not in line]
