"""A student's folder: made once, never overwritten. Progress is not kept anywhere; it is what the files say.

`.minifuse/` in it holds the stubs that it was made from, so that a newer course can be merged three ways, and what was taken
back, so that nothing is lost.
"""

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from importlib.resources import files as resources
from pathlib import Path

from ..core.errors import CourseError, MissingPartError
from ..runtime.atomic_files import reason, replace_content
from ..runtime.file_locks import FileLock
from .capstone import SCRIPT
from .registry import MODULES, TASKS, files
from .task import Task

KEPT = Path(".minifuse")
PRISTINE, BACKUPS, MERGES, LOCK = KEPT / "pristine", KEPT / "backups", KEPT / "merges", KEPT / "lock"
REFERENCE = Path(__file__).resolve().parents[2] / "tests" / "course" / "reference"  # in a clone; no wheel has it

TESTS = '''"""For those who know pytest: `pytest -m task2_3`, `pytest -k "strides"`. `minifuse course check` says more."""

from pathlib import Path

from minifuse.course.pytest_tasks import parameters, run


def pytest_generate_tests(metafunc):
    metafunc.parametrize("task", parameters())


def test_task(task):
    run(Path(__file__).parent, task)
'''


def stub(file: str) -> str:
    """The text of a file before anybody has written in it."""
    return resources(__package__).joinpath("stubs", f"{file}.txt").read_text(encoding="utf-8")


def pytest_ini() -> str:
    """Marks for all tasks."""
    marks = "\n".join(f"    {task.mark}: {task.title}" for task in TASKS)
    return f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\nmarkers =\n{marks}\n"


def readme() -> str:
    """Describe the files of the folder, and how to begin."""
    modules = {task.module for task in TASKS}
    rows = [
        f"| {k} {name} | {' '.join(t.id for t in TASKS if t.module == k)} |" for k, name in MODULES.items() if k in modules
    ]
    return README.format(modules="\n".join(rows), first=TASKS[0].id, file=TASKS[0].file, mark=TASKS[0].mark)


README = """# Your engine

Each file here has functions that are still to be written: `todo("2.1a")` stands where your code goes. The engine around
them is complete, so begin with any module.

```console
$ minifuse course status            # where you are
$ minifuse course check {first}         # is it right? if not: the smallest case that shows it
$ minifuse course hint {first}          # an idea; -n 2 says more
$ minifuse course watch             # checks whatever you save
```

| module | tasks |
|---|---|
{modules}

Begin with `{file}`. `pytest -m {mark}` works too, and `python train_digits.py` trains a network on the engine as it is.

Nothing here is ever overwritten: `minifuse course reset {first}` puts a task back, and keeps what you had in
`.minifuse/backups`.
"""


def fresh() -> dict[str, str]:
    """All files of a folder that nobody has written in, by their names."""
    given = {"README.md": readme(), "pytest.ini": pytest_ini(), "test_tasks.py": TESTS, "train_digits.py": SCRIPT}
    return {file: stub(file) for file in files()} | given


def init(folder: Path) -> list[Path]:
    """Make a student's folder; gives the files that were written.

    Raises
    ------
    CourseError
        A file that would be written is there already, or nothing can be written here. Nothing is written then.
    """
    texts = fresh()
    refuse_those_there(folder, texts)
    with changing(folder):
        refuse_those_there(folder, texts)  # another process may have been faster
        for name, text in texts.items():
            write(folder / PRISTINE / name, text)
            write(folder / name, text)
    return [folder / name for name in texts]


def refuse_those_there(folder: Path, names: Iterable[str]) -> None:
    """Raise `CourseError` if one of the files of a new folder exists."""
    if there := [name for name in names if os.path.lexists(folder / name)]:
        more = f" and {len(there) - 1} more files of the course" if len(there) > 1 else ""
        raise CourseError(
            f"{folder} has {there[0]}{more} already, and nothing was written; name another folder, or use "
            f"`minifuse course upgrade` for one that was made before"
        )


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Exclude other processes while a command changes a student's folder.

    Raises
    ------
    CourseError
        Another process changes it, or it cannot be written.
    """
    lock = FileLock(folder / LOCK)
    try:
        (folder / KEPT).mkdir(parents=True, exist_ok=True)
        owner = lock.acquire()
    except OSError as error:
        raise unwritten(folder, error) from error
    if owner:
        raise CourseError(f"{folder} is being changed by {owner}, and nothing was written; try again when that has ended")
    try:
        yield
    finally:
        lock.release()


def write(path: Path, text: str) -> None:
    """Replace a file in one step, so that it is never half-written.

    Raises
    ------
    CourseError
        It cannot be written, or is a folder.
    """
    if path.is_dir():
        raise CourseError(f"{path} is a folder, expected the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path, text, is_durable=False)
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> CourseError:
    """Return the error of a file or folder that cannot be written."""
    return CourseError(f"{path} cannot be written: {reason(error)}; is there room, and may you write in this folder?")


def read(path: Path) -> str:
    """The text of a student's file.

    Raises
    ------
    CourseError
        It cannot be read, or is no text.
    """
    try:
        return path.read_bytes().decode("utf-8")  # with the line ends that it has
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text; save it as UTF-8 in your editor"
        raise CourseError(f"{path} cannot be read: {said}") from error


def found(folder: Path) -> Path:
    """Return the student's folder: this one, or the nearest above it.

    Raises
    ------
    CourseError
        The folder does not exist, or no folder of the course is there or above.
    """
    if not folder.is_dir():
        raise CourseError(
            f"{folder} is not a folder that exists; name a folder of the course, or leave --dir out inside of one"
        )
    place = absolute(folder)
    for at in (place, *place.parents):
        if (at / KEPT).is_dir():
            return at
    raise CourseError(f"{folder} is no folder of the course; make one: minifuse course init DIR")


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
    """A copy of a file under a number that is not taken."""
    kept = folder / BACKUPS
    number = 1 + max([int(p.suffix[1:]) for p in kept.glob(f"{path.name}.*") if p.suffix[1:].isdecimal()], default=0)
    copy = kept / f"{path.name}.{number}"
    write(copy, read(path))
    return copy


def reset(folder: Path, task: Task) -> Path | None:
    """Put the functions of a task back to what they were at first; gives the backup, None where there was nothing."""
    with changing(folder):
        path, first = folder / task.file, stub(task.file)
        if not path.exists():
            write(path, first)
            return None
        text = read(path)
        try:
            for slot in task.slots:
                text = replaced(text, slot, part_of(first, slot))
        except SyntaxError as error:
            raise CourseError(
                f"{task.file}, line {error.lineno}, is no Python: {error.msg}; put it right, or move the file away first"
            ) from error
        copy = back_up(path, folder)
        write(path, text)
        return copy


def part_of(text: str, slot: str) -> str:
    """The lines of a function or class at the top of a file, with what stands directly above it; "" if it is not there."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == slot:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            return "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])
    return ""


def replaced(text: str, slot: str, new: str) -> str:
    """The text with another definition of a slot; at its end, if it has none."""
    old = part_of(text, slot)
    if old:
        return text.replace(old, new if new.endswith("\n") or not old.endswith("\n") else f"{new}\n", 1)
    return f"{text.rstrip()}\n\n\n{new}"


def upgrade(folder: Path, keeps_mine: bool = False) -> list[str]:
    """Bring a folder to this version's files: what the student wrote stays. Gives a sentence for each file that changed.

    Parameters
    ----------
    folder : Path
    keeps_mine : bool
        Whether the student's lines stay where both changed the same ones.

    Raises
    ------
    CourseError
        There are such lines: everything is left as it is, and the merge is kept aside, to be looked at.
    """
    with changing(folder):
        return upgraded(folder, keeps_mine)


def upgraded(folder: Path, keeps_mine: bool) -> list[str]:
    """Bring a locked folder to this version's files, as `upgrade` does."""
    changes, said, conflicts = {}, [], []
    for file, new in fresh().items():
        mine, base = folder / file, folder / PRISTINE / file
        old = read(base) if base.exists() else ""
        if not mine.exists():
            changes[file] = new
            said.append(f"{file} is new")
        elif old != new:
            text = read(mine)
            changes[file], marked = merged(old, text, new)
            if marked and not keeps_mine:
                write(folder / MERGES / file, marked)
                conflicts.append(f"{file} (see {MERGES / file})")
            if changes[file] != text:
                said.append(f"{file} has the newer text, and all that you wrote")
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
    return said


def merged(old: str, mine: str, new: str) -> tuple[str, str]:
    """Three texts as one, with `mine` where both changed the same lines; then with marks, "" if there are no such lines."""
    try:
        from merge3 import Merge3
    except ImportError:
        raise MissingPartError('to merge, install the course: pip install "minifuse[course]"') from None
    base, one, other = (text.splitlines(keepends=True) for text in (old, mine, new))
    merge = Merge3(base, one, other)
    mixed = "".join(line for part in merge.merge_groups() for line in (part[2] if part[0] == "conflict" else part[1]))
    has_conflict = any(part[0] == "conflict" for part in merge.merge_groups())
    return mixed, "".join(merge.merge_lines("yours", "the course")) if has_conflict else ""


def difference(folder: Path, task: Task) -> list[str]:
    """The student's functions of a task beside the reference, as a unified diff.

    Raises
    ------
    CourseError
        The reference is not here: only a clone of the repository has it.
    """
    reference = REFERENCE / task.file
    if not reference.is_file():
        raise CourseError("the reference solutions are in the repository, not in what pip installs; clone it to compare")
    theirs, ours = read(folder / task.file), reference.read_text(encoding="utf-8")
    lines: list[str] = []
    for slot in task.slots:
        mine, right = lines_of(theirs, slot), lines_of(ours, slot)
        lines += unified_diff(mine, right, f"yours: {slot}", f"reference: {slot}", lineterm="")
    return lines


def lines_of(text: str, slot: str) -> Sequence[str]:
    """The lines of a slot, without the marks of its regions."""
    return [line for line in part_of(text, slot).splitlines() if line.strip() != "# end" and "# begin " not in line]
