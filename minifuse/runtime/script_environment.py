"""Run files of the user in this process, with the `sys.argv` and `sys.path` that they have as scripts."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def script_environment(path: Path, arguments: Sequence[str] = ()) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` as the Python interpreter would for the script."""
    argv, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders
