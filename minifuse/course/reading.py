"""Where a student finds the pages and files that a task names: on this machine, or in the repository."""

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of a clone; of an installed package, the folder that has it


def locate(name: str) -> str:
    """Return the path of a file of the repository if this machine has it, else its address.

    Parameters
    ----------
    name : str
        "docs/guide/layouts.md", which only a clone has, or "minifuse/core/layout.py", which every installation has.
    """
    path = ROOT / name
    if path.exists():
        return min(str(path), relative_path(path), key=len)
    address = repository()
    return f"{address}/blob/main/{name}" if address else f"{name} of the repository"


def relative_path(path: Path) -> str:
    """Return a path from the working directory; the path itself if there is none, as from another drive."""
    try:
        return os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)


@cache
def repository() -> str:
    """Return the address of the repository; "" while the package names none."""
    try:
        urls = metadata("minifuse").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named: dict[str, str] = dict(url.split(", ", 1) for url in urls)
    return named.get("Repository", "").rstrip("/")
