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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__
from ..runtime import file_trust
from ..runtime.kernel_files import cache_folder, replace_file
from . import runner
from .drawn_cases import DrawnCases
from .imports import identifiers, imported_modules, syntax_tree
from .registry import all_tasks
from .student_process import TIME_S
from .task import Effort, Task
from .task_folder import SOURCES, task_folder
from .verdicts import Outcome, Result

Contents = Mapping[str, bytes | None]
"""The contents of files by name, in alphabetical order; None for a file that cannot be read."""
COMPUTED = "__import__"  # a name by which a file imports modules that no statement names


def entry_folder() -> Path | None:
    """Return the folder of entries; None if the user has no home folder."""
    cache = cache_folder()
    return cache / "verdicts" if cache else None


def entry_path(folder: Path, task: Task) -> Path | None:
    """Return the path of the entry of a task in a student's folder."""
    entries = entry_folder()
    name = sha256(f"{folder.resolve()}\n{task.id}".encode(errors="surrogateescape")).hexdigest()[:32]
    return entries / f"{name}.json" if entries else None


def key(contents: Contents, task: Task, *, has_passed: bool = False) -> str:
    """Return the digest of everything that determines the result of a task.

    If the task has passed, comments and what other tasks define do not count. Otherwise they do: a result names lines.
    """
    digest = sha256(key_of_checks(task).encode())
    for name, content in contents.items():
        if has_passed and name == task.file and content is not None:
            content = what_counts(content, task)
        digest.update(f"\n{name} {'missing' if content is None else len(content)}\n".encode(errors="surrogateescape"))
        digest.update(content or b"")
    return digest.hexdigest()


def key_of_checks(task: Task) -> str:
    """Return what determines the checks of a task: versions, and digests of sources."""
    return "\n".join([task.id, *versions(), digest_of_checks(SOURCES), digest_of_checks(task_folder())])


def drawn_cases(task: Task) -> DrawnCases:
    """Return the cases that the searches of a task drew in earlier runs, with the usual effort."""
    cache = cache_folder()
    return DrawnCases(cache / "cases" / f"{task.id}.bin" if cache else None, key_of_checks(task))


def what_counts(content: bytes, task: Task) -> bytes:
    """Return the code of a file without comments and without what other tasks define in it, but with their names."""
    others = {slot for other in all_tasks() if other.file == task.file and other.id != task.id for slot in other.slots}
    tree = syntax_tree(content)
    if tree is None:
        return content
    names = set(imports_of(content))
    parts: list[ast.AST | None] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in others:
            names.add(node.name)
            parts += node.decorator_list  # these, default values and base classes run when the file is loaded
            parts += [*node.args.defaults, *node.args.kw_defaults] if isinstance(node, ast.FunctionDef) else node.bases
        else:
            parts.append(node)
    return "\n".join([*sorted(names), *[ast.dump(part) for part in parts if part]]).encode(errors="surrogateescape")


def contents_of(folder: Path, task: Task) -> Contents:
    """Return the contents of the file of a task and of the files of the folder that it imports, directly or not, by name.

    All files are returned if one of them imports a module by a name that is computed.
    """
    found, waiting = dict[str, bytes | None](), [task.file]
    while waiting:
        file = waiting.pop()
        content = found[file] = read_bytes(folder / file)
        names = {name.partition(".")[0] for name in imports_of(content or b"")}
        if COMPUTED in names:
            names |= {sibling.stem for sibling in folder.glob("*.py")}
        waiting += [file for name in names if (file := f"{name}.py") not in found and (folder / file).is_file()]
    return dict(sorted(found.items()))


@lru_cache
def imports_of(content: bytes) -> frozenset[str]:
    """Return the modules that a file imports, and COMPUTED if it may import others; none if it is not valid Python."""
    tree = syntax_tree(content)
    nodes = list(ast.walk(tree)) if tree else []
    computed = {COMPUTED} if any(COMPUTED in identifiers(node) for node in nodes) else set()
    return frozenset(computed.union(*map(imported_modules, nodes)))


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


def store(folder: Path, task: Task, result: Result, contents: Contents) -> None:
    """Store a result of files with these contents, unless they have changed since, or the cache cannot be written."""
    path = entry_path(folder, task)
    if path is None or contents_of(folder, task) != contents:
        return
    kept_key, text = key(contents, task, has_passed=result.verdict == "passed"), json.dumps(asdict(result))
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
        today = key(contents_of(folder, task), task, has_passed=result.verdict == "passed")
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
    folder: Path,
    tasks: Iterable[Task],
    *,
    effort: Effort | None = None,
    is_strict: bool = False,
    time_s: float = TIME_S,
    begin: Callable[[str], None] | None = None,
) -> Iterator[Result]:
    """Judge tasks one after the other, until a check fails, and store and yield the results. See `runner.run`."""
    chosen = effort or Effort()
    for task in tasks:
        contents = contents_of(folder, task)
        drawn = drawn_cases(task) if chosen == Effort() else None
        options: dict[str, Any] = {
            "effort": chosen,
            "is_strict": is_strict,
            "time_s": time_s,
            "begin": begin,
            "drawn": drawn,
        }
        for result in runner.run(folder, [task], **options):
            if is_kept(result, chosen, is_strict, time_s):
                store(folder, task, result, contents)
            yield result
