"""Store the last result of each task, so that `minifuse course status` need not run the checks.

An entry is a JSON file in the cache folder, one for each task of a student's folder. It is used only while its key is that
of today: a digest of the student's file and the files that it imports, of the sources of the course, and of versions. A task
stays solved while functions of other tasks in its file change, since the oracle's are in their place when it is judged.
Entries that are damaged, or that another user may have written, are ignored. Points of a grading never come from here.
"""

import ast
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .. import __version__
from ..runtime import file_trust
from ..runtime.kernel_files import cache_folder, replace_file
from . import runner
from .imports import identifiers, imported_modules
from .registry import all_tasks
from .student_process import TIME_S
from .task import Effort, Task
from .task_folder import SOURCES, task_folder
from .verdicts import Outcome, Result


def entry_folder() -> Path | None:
    """Return the folder of entries; None if the user has no home folder."""
    cache = cache_folder()
    return cache / "verdicts" if cache else None


def entry_path(folder: Path, task: Task) -> Path | None:
    """Return the path of the entry of a task in a student's folder."""
    entries = entry_folder()
    name = sha256(f"{folder.resolve()}\n{task.id}".encode(errors="surrogateescape")).hexdigest()[:32]
    return entries / f"{name}.json" if entries else None


def key(folder: Path, task: Task, *, has_passed: bool = False) -> str:
    """Return the digest of everything that determines the result of a task.

    If the task has passed, comments and what other tasks define do not count. Otherwise they do: a result names lines.
    """
    digest = sha256("\n".join([task.id, *versions(), digest_of_checks(SOURCES), digest_of_checks(task_folder())]).encode())
    for path in sorted(files_of(folder, task)):
        content = read_bytes(path)
        if has_passed and path.name == task.file and content is not None:
            content = what_counts(content, task)
        digest.update(f"\n{path.name} {'missing' if content is None else len(content)}\n".encode(errors="surrogateescape"))
        digest.update(content or b"")
    return digest.hexdigest()


def what_counts(content: bytes, task: Task) -> bytes:
    """Return the code of a file without comments and without what other tasks define in it, but with their names."""
    others = {slot for other in all_tasks() if other.file == task.file and other.id != task.id for slot in other.slots}
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return content
    names = {name for node in ast.walk(tree) for name in imported_modules(node)}
    parts: list[ast.AST | None] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in others:
            names.add(node.name)
            parts += node.decorator_list  # these, default values and base classes run when the file is loaded
            parts += [*node.args.defaults, *node.args.kw_defaults] if isinstance(node, ast.FunctionDef) else node.bases
        else:
            parts.append(node)
    return "\n".join([*sorted(names), *[ast.dump(part) for part in parts if part]]).encode(errors="surrogateescape")


def files_of(folder: Path, task: Task) -> set[Path]:
    """Return the file of a task and the files of the folder that it imports, directly or not.

    All files are returned if one of them imports a module by a name that is computed.
    """
    found, waiting = set[Path](), [folder / task.file]
    while waiting:
        path = waiting.pop()
        found.add(path)
        try:
            tree = ast.parse(read_bytes(path) or b"")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        names = {name.partition(".")[0] for node in ast.walk(tree) for name in imported_modules(node)}
        if any(word == "__import__" for node in ast.walk(tree) for word in identifiers(node)):
            names |= {sibling.stem for sibling in folder.glob("*.py")}
        waiting += [path for name in names if (path := folder / f"{name}.py") not in found and path.is_file()]
    return found


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a regular file; None if it cannot be read."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


@cache
def digest_of_checks(folder: Path | None) -> str:
    """Return the digest of the sources in a folder of tasks and checks."""
    digest = sha256()
    if folder is None:
        return digest.hexdigest()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """Return the versions of minifuse, Python, and the packages that run and check a student's code."""
    found = [f"minifuse {__version__}", f"{sys.implementation.name} {platform.python_version()}", platform.machine()]
    for package in ("numpy", "numba", "llvmlite", "hypothesis"):
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return tuple(found)


def is_kept(result: Result, effort: Effort, is_strict: bool, time_s: float) -> bool:
    """Return whether a result says what a plain `minifuse course check` would: enough examples, time, and lent functions."""
    return not is_strict and effort.examples >= Effort.examples and (time_s >= TIME_S or result.verdict != "timeout")


def store(folder: Path, task: Task, result: Result, key_before: str) -> None:
    """Store a result, unless its files have changed since `key_before`, or the cache cannot be written."""
    path = entry_path(folder, task)
    if path is None or key(folder, task) != key_before:
        return
    kept_key, text = key(folder, task, has_passed=result.verdict == "passed"), json.dumps(asdict(result))
    content = json.dumps({"key": kept_key, "checksum": checksum(kept_key, text), "result": text})
    with suppress(OSError):
        if not file_trust.why_distrusted(path.parent):
            file_trust.make_private(path.parent)
        if not file_trust.why_distrusted(path.parent):
            replace_file(path, content.encode())


def load(folder: Path, task: Task) -> Result | None:
    """Return the stored result of a task; None if there is none for the present files, checks and versions."""
    path = entry_path(folder, task)
    if path is None or file_trust.why_distrusted(path.parent):
        return None
    try:
        entry = json.loads(file_trust.read(path))
        text = entry["result"]
        fields = json.loads(text)
        outcomes = [Outcome(**(part | {"lines": [tuple(line) for line in part["lines"]]})) for part in fields["outcomes"]]
        result = Result(**(fields | {"outcomes": outcomes}))
        today = key(folder, task, has_passed=result.verdict == "passed")
        is_valid = entry["key"] == today and entry["checksum"] == checksum(today, text)
        return result if is_valid else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def checksum(key: str, text: str) -> str:
    """Return the checksum of an entry."""
    return sha256(f"{key}\n{text}".encode()).hexdigest()


def load_all(folder: Path, tasks: Iterable[Task]) -> dict[str, Result]:
    """Return the stored results, by the id of their task."""
    found = {task.id: load(folder, task) for task in tasks}
    return {task_id: result for task_id, result in found.items() if result is not None}


def run(
    folder: Path, tasks: Iterable[Task], *, effort: Effort | None = None, is_strict: bool = False, time_s: float = TIME_S
) -> Iterator[Result]:
    """Judge tasks one after the other, until a check fails, and store and yield the results."""
    chosen = effort or Effort()
    for task in tasks:
        key_before = key(folder, task)
        for result in runner.run(folder, [task], effort=chosen, is_strict=is_strict, time_s=time_s):
            if is_kept(result, chosen, is_strict, time_s):
                store(folder, task, result, key_before)
            yield result
