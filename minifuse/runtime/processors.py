"""Count the processors and the memory that this process may use, limited by its affinity mask and its control groups.

A container often has a quota: a number of microseconds of CPU time in each period, on any processors. If more threads run
than the quota allows, all are paused for the rest of each period. Linux stores quotas in a tree of control groups (cgroups).
The quotas of the group of this process and of all its parents apply. They are read from
files, before the first thread starts.

References
----------
.. [1] Linux kernel documentation, "Control Group v2", `cpu.max` and `memory.max`; "CFS Bandwidth Control",
   `cpu.cfs_quota_us`; "The /proc Filesystem", `MemAvailable`.
"""

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

QUOTA_FILES = {"cgroup2": ("cpu.max",), "cgroup": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}  # by type of file system

UNLIMITED = 1 << 16  # processors, more than any machine has; used if there is no quota


class Group(NamedTuple):
    """A control group: the type of its file system, the mount point, and its path below the mount point."""

    kind: str
    mount: Path
    path: PurePosixPath


def count_processors(root: Path = Path("/")) -> int:
    """Return the number of threads that can run at once: the allowed processors, but at most the quota, rounded up.

    Parameters
    ----------
    root : Path
        The root of the file system with `proc` and the control groups; tests pass another folder.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cpu_quota(root)
    return min(allowed or 1, math.ceil(quota) if quota else UNLIMITED)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return the CPU quota of this process in processors; None without a limit.

    Examples
    --------
    >>> cpu_quota(Path("nowhere")) is None
    True
    """
    limits = [quota for group in control_groups(root) for quota in quotas(group)]
    return min(limits, default=None)


def available_nbytes(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that new processes may use without swapping; None if the system does not say it.

    Of control groups, only those of version 2 are read, and only their limits.

    Examples
    --------
    >>> available_nbytes(Path("nowhere")) is None
    True
    """
    limits = []
    try:
        available = re.search(r"^MemAvailable:\s*(\d+) kB", (root / "proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        available = None
    if available:
        limits.append(int(available[1]) << 10)
    for group in control_groups(root):
        for path in folders(group):
            with suppress(OSError, ValueError):  # no such file, or "max"
                limits.append(int((path / "memory.max").read_text()))
    return min(limits, default=None)


def control_groups(root: Path) -> Iterator[Group]:
    """Yield the control groups of this process that may limit CPU time, of versions 1 and 2."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    for line in mounts:
        # Fields: id, parent, device, mounted folder, mount point, options, optional fields, "-", type, source, options of
        # the type
        mount, _, file_system = line.partition(" - ")
        folder, mount_point = mount.split()[3:5]
        kind, _, options = (file_system.split() + [""] * 3)[:3]
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            for membership in memberships:
                _, controllers, path = membership.split(":", 2)
                if controllers == "" if kind == "cgroup2" else "cpu" in controllers.split(","):
                    yield Group(kind, root / mount_point.lstrip("/"), path_below(PurePosixPath(path), PurePosixPath(folder)))


def path_below(path: PurePosixPath, folder: PurePosixPath) -> PurePosixPath:
    """Return the path of a group relative to the mounted folder; the folder itself for a group outside of it."""
    return path.relative_to(folder) if path.is_relative_to(folder) else PurePosixPath()


def quotas(group: Group) -> Iterator[float]:
    """Yield the quotas of a group and of its parents, in processors."""
    for folder in folders(group):
        try:
            words = " ".join((folder / name).read_text() for name in QUOTA_FILES[group.kind]).split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # no such file, "max", or another format
            continue
        if quota > 0 and period > 0:  # -1 means no limit
            yield quota / period


def folders(group: Group) -> Iterator[Path]:
    """Yield the folders of a group and of its parents."""
    path = PurePosixPath(*[part for part in group.path.parts if part != "/"])
    for part in (path, *path.parents):
        yield group.mount / part
