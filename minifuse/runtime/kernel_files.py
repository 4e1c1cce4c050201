"""The files of compiled kernels: where the folder is, which files are read, and how they are written, locked and removed.

`kernel_cache` decides which kernel is needed; this module has no other state than the files.
"""

import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ..core.errors import MinifuseError
from . import file_trust
from .file_locks import FileLock

MAGIC = b"minifuse kernel 1\n"
DIGEST_SIZE = 32  # bytes of a sha256 digest
DEFAULT_LIMIT_MB = 512  # size limit of the folder
KEPT_FRACTION = 0.75  # an eviction shrinks the folder to this fraction of the limit, so that evictions are rare
RECENT_SECONDS = 3600  # a time of last use is updated at most this often; temporary files younger than this are kept
FILE_NAME = re.compile(r"k_[0-9a-f]{24}\.(py|bin|lock|[0-9a-f]{16}\.tmp)")  # other files are never touched
POLL_SECONDS = 0.005  # between two looks at a kernel that another process compiles
MAX_LOCK_SECONDS = 60.0  # after this time the other process is taken to be stopped, and the kernel is compiled here


def cache_folder() -> Path | None:
    """Return the folder of kernels: MINIFUSE_CACHE, else `minifuse` in the user's cache folder.

    The result is None if the user has no home folder.
    """
    if folder := os.environ.get("MINIFUSE_CACHE"):
        return Path(folder)
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base, "minifuse")


def limit_nbytes() -> int:
    """Return the size limit of the folder in bytes.

    Raises
    ------
    MinifuseError
        MINIFUSE_CACHE_LIMIT_MB is not a number, or negative.
    """
    text = os.environ.get("MINIFUSE_CACHE_LIMIT_MB") or str(DEFAULT_LIMIT_MB)
    try:
        limit = int(float(text) * 2**20)
    except (ValueError, OverflowError):
        limit = -1
    if limit < 0:
        message = f"MINIFUSE_CACHE_LIMIT_MB is {text!r}; expected a number of megabytes, such as {DEFAULT_LIMIT_MB}"
        raise MinifuseError(f"{message}, or 0 for memory only")
    return limit


def kernel_lock(name: str) -> FileLock | None:
    """Return the lock of a kernel between processes; None if there is no folder in which to store it."""
    folder = cache_folder()
    if folder is None or not limit_nbytes() or not folder.is_dir() or file_trust.why_distrusted(folder):
        return None
    return FileLock(folder / f"{name}.lock")


@contextmanager
def hold_kernel_lock(name: str) -> Iterator[bool]:
    """Hold the lock of a kernel, if its folder has locks, and yield whether another process held it before."""
    lock, has_waited, start = kernel_lock(name), False, time.monotonic()
    try:
        with suppress(OSError):  # the folder is read-only
            while lock is not None and lock.acquire() and time.monotonic() - start < MAX_LOCK_SECONDS:
                has_waited = True
                time.sleep(POLL_SECONDS)
        yield has_waited
    finally:
        if lock is not None:
            lock.release()


def checksum(name: str, payload: bytes) -> bytes:
    """Return the checksum of a kernel's name and payload."""
    return sha256(name.encode() + payload).digest()


def read_payload(name: str) -> bytes | None:
    """Return the payload of a kernel on disk; None if it is missing or damaged."""
    folder = cache_folder()
    if folder is None or not limit_nbytes():
        return None
    if reason := file_trust.why_distrusted(folder):
        warn_once(memory_only_message(reason))
        return None
    path = folder / f"{name}.bin"
    try:
        data = file_trust.read(path)
        with suppress(OSError):  # the cache may be read-only
            if time.time() - path.stat().st_mtime > RECENT_SECONDS:
                os.utime(path)  # the time of last use
    except OSError:
        return None
    start = len(MAGIC) + DIGEST_SIZE
    payload = data[start:]
    return payload if data[:start] == MAGIC + checksum(name, payload) else None


def memory_only_message(reason: str) -> str:
    """Return the message for a folder that is not trusted."""
    advice = "set MINIFUSE_CACHE to a folder that only this user can write to"
    return f"kernels are kept in memory only, since {reason}; {advice}"


@lru_cache
def warn_once(message: str) -> None:
    """Warn once per process. If a filter turns warnings into errors, print the message, so that no launch fails."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        sys.stderr.write(f"minifuse: {message}\n")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: other processes see the old content or the new content."""
    temporary = path.with_suffix(f".{os.urandom(8).hex()}.tmp")
    try:
        file_trust.write_new(temporary, data)
        temporary.replace(path)
    except OSError:
        remove_file(temporary)
        raise


def remove_file(path: Path) -> bool:
    """Remove a file; return False if it is already gone or cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def iterate_files() -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of the cache that exist now, with their status."""
    folder = cache_folder()
    with suppress(OSError):
        for file in os.scandir(folder) if folder else ():
            if FILE_NAME.fullmatch(file.name):
                with suppress(FileNotFoundError):  # another process removed it
                    yield Path(file.path), file.stat()


def evict(limit: int) -> None:
    """Remove abandoned temporary files and locks, and the least recently used kernels if the folder exceeds its limit."""
    files = dict(iterate_files())
    for file in [file for file in files if file.suffix in (".tmp", ".lock")]:
        if time.time() - files.pop(file).st_mtime > RECENT_SECONDS:
            remove_file(file)
    size = sum(status.st_size for status in files.values())
    if size <= limit:
        return
    last_use = {file.stem: status.st_mtime for file, status in files.items() if file.suffix == ".bin"}
    # A source file without machine code has no time of last use, and is removed first.
    for file in sorted(files, key=lambda file: (last_use.get(file.stem, 0), file.stem)):
        if size <= KEPT_FRACTION * limit:
            return
        remove_file(file)
        size -= files[file].st_size
