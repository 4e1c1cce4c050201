"""Lock a folder between processes, so that at most one of them writes into it.

The operating system manages the lock (`flock`, on Windows a locked byte) and releases it when its process ends, for any
reason. The content of the file names the owner, for error messages only. A process number would not prove that the owner is
running: numbers are reused, and other machines have the same numbers.
"""

import json
import os
import socket
import sys
import weakref
from contextlib import suppress
from datetime import datetime
from pathlib import Path

LOCKED_BYTE = 1 << 30  # offset of the locked byte: past the content, since Windows lets no one else read a locked byte
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # no symbolic links, since the content is overwritten
MAX_CONTENT_BYTES = 4096  # bytes of a lock file that are read, since anyone may have written it


class FileLock:
    """A lock on a file, which at most one object of one process holds at a time.

    Parameters
    ----------
    path : Path
        The file. `acquire` creates it and `release` removes it. An existing file does not mean that the lock is held.

    Notes
    -----
    A forked child process does not hold the lock. Network file systems pass the lock to the server (NFS since Linux
    2.6.12). On a file system without locks, `acquire` succeeds and excludes no one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._release: weakref.finalize[[int, Path, int], FileLock] | None = None

    @property
    def is_held(self) -> bool:
        """True while this object holds the lock."""
        return self._release is not None and self._release.alive

    def acquire(self) -> str:
        """Acquire the lock if it is free.

        Returns
        -------
        str
            "" if this object holds the lock now; otherwise a description of the owner, such as "process 4711 (since
            2026-11-23 12:00:01)".

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
                if is_file_at(handle, self.path):  # otherwise the last owner removed the file after it was opened here
                    write_owner(handle)
                    self._release = weakref.finalize(self, release, handle, self.path, os.getpid())
                    HELD_LOCKS.add(self)
                    return ""
            finally:
                if not self.is_held:
                    os.close(handle)
        return ""

    def release(self) -> None:
        """Release the lock and remove its file. Do nothing if this object does not hold it."""
        if self._release is not None:
            self._release()

    def forget(self) -> None:
        """Close the file in a forked child. The parent keeps the lock."""
        if self._release is not None and (detached := self._release.detach()):
            _, _, (handle, *_), _ = detached
            os.close(handle)


HELD_LOCKS: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def release(handle: int, path: Path, process: int) -> None:
    """Remove the file of a lock and close it, which releases the lock."""
    if os.getpid() == process and os.name != "nt":
        with suppress(OSError):  # before unlocking, so that no one locks a file that is removed afterwards
            path.unlink()
    os.close(handle)
    if os.name == "nt":  # Windows cannot remove an open file, so this fails while another process has it open
        with suppress(OSError):
            path.unlink()


def try_lock(handle: int) -> bool:
    """Lock an open file. Return False if the lock is held through another handle of the file."""
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
    except OSError:  # the file system has no locks
        return True
    return True


def is_file_at(handle: int, path: Path) -> bool:
    """Return True if the file at a path is still the open file."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def write_owner(handle: int) -> None:
    """Write this process into the lock file as its owner."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    content = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()
    with suppress(OSError):  # on a full disk the lock works without the name of its owner
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, content)


def owner_of(handle: int) -> str:
    """Describe the process that holds a lock, from the content of its file."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        owner = json.loads(os.read(handle, MAX_CONTENT_BYTES))
        process, host, since = int(owner["pid"]), str(owner["host"]), str(owner["since"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    if process == os.getpid() and host == socket.gethostname():
        return f"this process, {process} (since {since})"
    return f"process {process}{'' if host == socket.gethostname() else f' on {host}'} (since {since})"


def forget_all() -> None:
    """Forget all locks after a fork: they belong to the parent."""
    for lock in list(HELD_LOCKS):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_all)
