"""How many processors this process may use: those that are open to it, and the CPU time that its control groups allow.

A container is often limited by a quota: so many microseconds of CPU time in each period, on any processors. Threads beyond
that number are paused for the rest of each period. The kernel stores quotas in a tree of groups, and each group on the way
to the root counts. Nothing but the files is read, so all is known before the first thread starts.

References
----------
.. [1] Linux kernel documentation, "Control Group v2", `cpu.max`; "CFS Bandwidth Control", `cpu.cfs_quota_us`.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

QUOTA_FILES = {"cgroup2": ("cpu.max",), "cgroup": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}  # by type of file system

MAX_PROCESSORS = 1 << 16  # more than any machine has: a quota that is none


class Group(NamedTuple):
    """A control group: the type of its file system, where that is mounted, and its path below."""

    kind: str
    mount: Path
    path: PurePosixPath


def count_processors(root: Path = Path("/")) -> int:
    """Return the number of threads that can run at once: open processors, at most the quota, rounded up.

    Parameters
    ----------
    root : Path
        Where `proc` and the control groups are mounted; tests have a folder of their own.
    """
    open_to_us = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cpu_quota(root)
    return min(open_to_us or 1, math.ceil(quota) if quota else MAX_PROCESSORS)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many processors' time this process gets by its control groups; None without a limit.

    Examples
    --------
    >>> cpu_quota(Path("nowhere")) is None
    True
    """
    limits = [quota for group in groups(root) for quota in quotas(group)]
    return min(limits, default=None)


def groups(root: Path) -> Iterator[Group]:
    """Yield the groups of this process that may limit CPU time, of version 2 and of version 1."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    for line in mounts:
        # id, parent, device, mounted folder, where, options, optional fields, "-", type, source, options of the type
        left, _, right = line.partition(" - ")
        folder, where = left.split()[3:5]
        kind, _, options = (right.split() + [""] * 3)[:3]
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            for membership in memberships:
                _, controllers, path = membership.split(":", 2)
                if controllers == "" if kind == "cgroup2" else "cpu" in controllers.split(","):
                    yield Group(kind, root / where.lstrip("/"), below(PurePosixPath(path), PurePosixPath(folder)))


def below(path: PurePosixPath, folder: PurePosixPath) -> PurePosixPath:
    """Return the path of a group below the folder that is mounted; the mount itself for a group outside."""
    return path.relative_to(folder) if path.is_relative_to(folder) else PurePosixPath()


def quotas(group: Group) -> Iterator[float]:
    """Yield the quotas of a group and of all above it, in processors."""
    path = PurePosixPath(*[part for part in group.path.parts if part != "/"])
    for part in (path, *path.parents):
        try:
            words = " ".join((group.mount / part / name).read_text() for name in QUOTA_FILES[group.kind]).split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # no such file, "max", or a file of another form
            continue
        if quota > 0 and period > 0:  # -1 is no limit
            yield quota / period
