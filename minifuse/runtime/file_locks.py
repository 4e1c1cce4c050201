"""Locks between processes: who may write into a folder.

A lock belongs to the operating system (`flock`, on Windows a locked byte), which releases it when its process ends, however
that ends. The file beside it names the owner for messages only: a process number alone would prove nothing, since numbers
are reused and another machine has others.
"""

import json
import os
import socket
import sys
import weakref
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

LOCKED_BYTE = 1 << 30  # Windows forbids others to read a locked byte, so it is behind the content
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # the content is replaced, and never that of another file
MAX_CONTENT_BYTES = 4096  # read from a lock file, which anybody may have written


class FileLock:
    """A lock on a file, held by at most one object of one process at a time.

    Parameters
    ----------
    path : Path
        The file. It is created with the lock and removed with it; a file that is left behind locks nothing.

    Notes
    -----
    A child process that is forked does not hold the lock. Network file systems pass the lock to the server (NFS since
    Linux 2.6.12); where a file system has no locks at all, `acquire` succeeds and excludes nobody.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._release: weakref.finalize[[int, Path, int], FileLock] | None = None

    @property
    def is_held(self) -> bool:
        """True while this object holds the lock."""
        return self._release is not None and self._release.alive

    def acquire(self) -> str:
        """Take the lock, if it is free.

        Returns
        -------
        str
            "" if this object now holds the lock, or held it before; otherwise a description of the owner, such as
            "process 4711 (since 2026-11-23 12:00:01)".

        Raises
        ------
        OSError
            The file cannot be created.
        """
        while not self.is_held:
            handle = os.open(self.path, OPEN_FLAGS, 0o666)
            try:
                if not try_lock(handle):
                    return owner_of(handle)
                if is_file_at(handle, self.path):  # else its owner has removed it since it was opened
                    write_owner(handle)
                    self._release = weakref.finalize(self, release, handle, self.path, os.getpid())
                    HELD.add(self)
                    return ""
            finally:
                if not self.is_held:
                    os.close(handle)
        return ""

    def release(self) -> None:
        """Release the lock and remove its file; nothing happens if this object does not hold it."""
        if self._release is not None:
            self._release()

    def forget(self) -> None:
        """Close the file in a forked child; its parent keeps the lock."""
        if self._release is not None and (found := self._release.detach()):
            os.close(found[2][0])


HELD: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def release(handle: int, path: Path, process: int) -> None:
    """Remove the file of a lock and close it, which releases the lock."""
    if os.getpid() == process and os.name != "nt":
        with suppress(OSError):  # while it is locked, so that nobody locks a file that is about to go
            path.unlink()
    os.close(handle)
    if os.name == "nt":  # an open file cannot be removed there: this fails where another process waits for it
        with suppress(OSError):
            path.unlink()


def try_lock(handle: int) -> bool:
    """Lock an open file; return False if another open file of it holds the lock."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no locks
        return True
    return True


def is_file_at(handle: int, path: Path) -> bool:
    """Return True if an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def write_owner(handle: int) -> None:
    """Write into the file of a lock which process holds it."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    content = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()
    with suppress(OSError):  # on a full disk the lock holds without a name
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, content)


def owner_of(handle: int) -> str:
    """Return a description of the process that holds a lock, from the content of its file."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        found: Any = json.loads(os.read(handle, MAX_CONTENT_BYTES))
        process, host, since = int(found["pid"]), str(found["host"]), str(found["since"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    if process == os.getpid() and host == socket.gethostname():
        return f"this process, {process} (since {since})"
    return f"process {process}{'' if host == socket.gethostname() else f' on {host}'} (since {since})"


def forget_all() -> None:
    """After a fork: leave all locks to the parent."""
    for lock in list(HELD):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_all)
