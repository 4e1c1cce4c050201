"""Source of a kernel -> compiled kernel: from memory, else from disk, else compiled now and kept on both.

Every backend that compiles finds its kernels here; the cache knows neither the compiler nor the processor. On disk a
kernel is two files of one folder, named after the sha256 of all that decides the machine code: `k_<sha>.py`, the source as
a person reads it, and `k_<sha>.bin`, what the compiler made of it. The folder may be shared by any number of processes, and
may be full, read-only, damaged or gone: then kernels are compiled again, and no call fails. Its files are executed, so
they are used only if no other user can have written them (`trust.py`); otherwise kernels are kept in memory.

The environment decides: `MINIFUSE_CACHE` is the folder (default: `minifuse` in the platform's cache folder), and
`MINIFUSE_CACHE_LIMIT_MB` how large it may grow (default 512; 0 keeps kernels in memory only).
"""

import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock, local
from typing import Any, NamedTuple, TypeVar

from ..core.errors import MinifuseError
from . import file_trust
from .plan_cache import plan_cache

T = TypeVar("T")

MAGIC = b"minifuse kernel 1\n"
DIGEST_SIZE = 32  # bytes of a sha256
DEFAULT_LIMIT_MB = 512
KEPT_FRACTION = 0.75  # of the limit, so that evictions are rare
WRITES_PER_CHECK = 32  # adding up the folder takes about a millisecond for a thousand kernels
RECENT_SECONDS = 3600  # seconds: a use is noted no more often, and an abandoned temporary file is left alone as long
FILE_NAME = re.compile(r"k_[0-9a-f]{24}\.(py|bin|[0-9a-f]{16}\.tmp)")  # all else in the folder is not ours


class CacheStats(NamedTuple):
    """What a kernel cache holds, and where its kernels came from."""

    in_memory: int
    """Kernels that this process uses."""
    compiled: int
    """Kernels that this process had to compile."""
    loaded: int
    """Kernels that this process found on disk."""
    on_disk: int
    """Kernels in the folder, of this and other processes."""
    nbytes_on_disk: int
    """Bytes of all files of the cache in the folder."""
    folder: Path | None
    """Where they lie; None where the platform names no folder."""
    seconds: float
    """Time in which this process compiled."""
    plans: int
    """Plans that this process remembers, of operations and fused functions."""
    nbytes_of_plans: int
    """Bytes that they take, about."""
    plan_limit: int
    """Bytes that they may take; beyond that, those that were not used for longest are evicted."""


class CachedKernel(NamedTuple):
    """A kernel that this process uses: its name, the file with its source (None if it is in memory only), its source."""

    name: str
    path: Path | None
    text: str


class MissingKernel(NamedTuple):
    """A kernel that is neither in memory nor on disk: its name, its source, and the function of both that compiles it."""

    name: str
    text: str
    build: Callable[[str, str], bytes]


class KernelNotCompiled(Exception):  # noqa: N818  # no error: it leaves a launch that somebody only asks about
    """A kernel would have to be compiled, while somebody asks which."""


class KernelCache:
    """Compiled kernels by the hash of all that decides their machine code.

    Notes
    -----
    Any number of threads and processes may use one folder. Threads that ask for the same kernel compile it once; processes
    that do so at the same moment each compile it, and the files of the last one remain. Files are written under another name
    and renamed, and a checksum is verified when one is read, so nobody sees half a file. When the folder outgrows its
    limit, the kernels that were not used for longest go. Kernels in memory stay until the process ends.

    Examples
    --------
    >>> cache = KernelCache()
    >>> text = "def kernel(x):\\n    return x + 1\\n"
    >>> double = cache.find(text, "example", lambda name, text: text.encode(), lambda name, payload: payload.decode())
    >>> double.startswith("def k_")
    True
    >>> cache.stats().in_memory
    1
    """

    def __init__(self) -> None:
        self._kernels: dict[str, _Entry] = {}  # by name
        self._lock = Lock()
        self._kernel_locks: dict[str, Lock] = {}  # name -> held while that kernel is looked for on disk or compiled
        self._writes = 0
        self._seconds = 0.0
        self._asked = _Collecting()

    def find(self, text: str, flavour: str, build: Callable[[str, str], bytes], load: Callable[[str, bytes], T]) -> T:
        """The compiled kernel of a source.

        Parameters
        ----------
        text : str
            Python source of a function that is called `kernel`. It gets the name `k_<sha>`, and is stored under this name.
        flavour : str
            All else that decides the machine code: backend, processor, flags, versions.
        build : function of (name, text)
            Compiles the source, now with its final name, to bytes. Called if the kernel is neither in memory nor on disk.
        load : function of (name, payload)
            Makes of these bytes what the backend keeps in memory, and what this method returns. It should raise
            where it cannot: bytes from disk are then compiled again.

        Raises
        ------
        Exception
            What `build` raises, and what `load` raises for bytes that were just built.

        Notes
        -----
        A kernel in memory costs a hash of its source, about 5 us; callers keep what they got.
        """
        name = "k_" + sha256(f"{flavour}\n{text}".encode()).hexdigest()[:24]
        if name not in self._kernels:
            if self._asked.wanted is not None and _read(name) is None:
                self._asked.wanted[name] = MissingKernel(name, text.replace("def kernel(", f"def {name}(", 1), build)
                raise KernelNotCompiled(name)
            with self._lock:
                turn = self._kernel_locks.setdefault(name, Lock())
            with turn:
                if name not in self._kernels:
                    source = text.replace("def kernel(", f"def {name}(", 1)
                    self._kernels[name] = self._load_or_build(name, source, build, load)
            self._kernel_locks.pop(name, None)
        value: T = self._kernels[name].value
        return value

    @contextmanager
    def collect_missing(self) -> Iterator[dict[str, MissingKernel]]:
        """In a block of code, compile nothing: `find` of what is not there raises `KernelNotCompiled`, and it is noted by
        name."""
        before, self._asked.wanted = self._asked.wanted, {}
        try:
            yield self._asked.wanted
        finally:
            self._asked.wanted = before

    def put(self, name: str, text: str, payload: bytes) -> int:
        """Put a compiled kernel on disk, for this and other processes.

        Returns
        -------
        int
            The bytes of its files.

        Raises
        ------
        MinifuseError
            The folder cannot be written, another user may write to it, or the settings say that nothing is kept on disk.
        """
        folder, limit = cache_folder(), limit_nbytes()
        if folder is None or not limit:
            reason = "this platform names no folder for it" if folder is None else "MINIFUSE_CACHE_LIMIT_MB is 0"
            raise MinifuseError(f"kernels are kept in memory only, since {reason}; set MINIFUSE_CACHE, or a limit above 0")
        source, data = text.encode(), MAGIC + _digest(name, payload) + payload
        try:
            if not file_trust.distrust(folder):
                file_trust.make_private(folder)
            if reason := file_trust.distrust(folder):
                raise MinifuseError(_memory_only_message(reason))
            _replace(folder / f"{name}.py", source)
            _replace(folder / f"{name}.bin", data)
        except OSError as error:
            raise MinifuseError(
                f"no kernel can be kept in {folder}: {error.strerror or error}; make room there, or set MINIFUSE_CACHE to a "
                "folder that can be written"
            ) from error
        self._writes += 1
        if self._writes % WRITES_PER_CHECK == 1:
            _evict(limit)
        return len(source) + len(data)

    def check(self) -> None:
        """Raise where kernels cannot be kept on disk.

        Raises
        ------
        MinifuseError
            As `put` does.
        """
        name = f"k_{0:024x}"
        self.put(name, "", b"")
        folder = cache_folder()
        for suffix in ("py", "bin"):
            _remove(Path(str(folder), f"{name}.{suffix}"))

    def stats(self) -> CacheStats:
        """Count what is in memory and on disk."""
        entries, files = list(self._kernels.values()), list(_files())
        compiled = sum(entry.was_compiled for entry in entries)
        on_disk = sum(file.suffix == ".bin" for file, _ in files)
        nbytes = sum(status.st_size for _, status in files)
        return CacheStats(
            len(entries),
            compiled,
            len(entries) - compiled,
            on_disk,
            nbytes,
            cache_folder(),
            self._seconds,
            *plan_cache.stats(),
        )

    def clear(self) -> int:
        """Remove the kernels on disk, of other processes too; those in memory stay usable.

        Returns
        -------
        int
            How many kernels were removed.
        """
        return sum(_remove(file) and file.suffix == ".bin" for file, _ in _files())

    def kernels(self) -> list[CachedKernel]:
        """What this process uses, in the order of first use."""
        folder = cache_folder()
        paths = [(name, folder and folder / f"{name}.py", entry.text) for name, entry in list(self._kernels.items())]
        return [CachedKernel(name, path if path and path.is_file() else None, text) for name, path, text in paths]

    def set_plan_limit(self, megabytes: float | None) -> None:
        """Set how much memory remembered plans may take in this process.

        Parameters
        ----------
        megabytes : float or None
            The limit; None for that of MINIFUSE_PLAN_LIMIT_MB (default 256).

        Raises
        ------
        MinifuseError
            It is no number, or negative.

        Examples
        --------
        >>> import minifuse as mf
        >>> mf.cache.set_plan_limit(100)
        >>> mf.cache.stats().plan_limit
        104857600
        >>> mf.cache.set_plan_limit(None)
        """
        plan_cache.set_limit(megabytes)

    def reset_locks(self) -> None:
        """After a fork: the threads that held a lock do not exist here."""
        self._lock, self._kernel_locks = Lock(), {}

    def _load_or_build(
        self, name: str, text: str, build: Callable[[str, str], bytes], load: Callable[[str, bytes], T]
    ) -> "_Entry":
        payload = _read(name)
        if payload is not None:
            with suppress(Exception):  # whatever is wrong with it, it is made again
                return _Entry(load(name, payload), text, was_compiled=False)
        start = time.perf_counter()
        payload = build(name, text)
        self._seconds += time.perf_counter() - start
        entry = _Entry(load(name, payload), text, was_compiled=True)
        with suppress(MinifuseError):  # if that is possible
            self.put(name, text, payload)
        return entry


class _Collecting(local):
    """What a thread only asks for, if it does."""

    wanted: dict[str, MissingKernel] | None = None


class _Entry(NamedTuple):
    """A kernel in memory: what its backend loads it as, its source, whether this process compiled it."""

    value: Any
    text: str
    was_compiled: bool


def cache_folder() -> Path | None:
    """The folder of kernels: MINIFUSE_CACHE, else `minifuse` in the user's cache folder; None for a user without a home."""
    if chosen := os.environ.get("MINIFUSE_CACHE"):
        return Path(chosen)
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
    """How many bytes the folder may hold.

    Raises
    ------
    MinifuseError
        MINIFUSE_CACHE_LIMIT_MB is not a number, or negative.
    """
    chosen = os.environ.get("MINIFUSE_CACHE_LIMIT_MB") or str(DEFAULT_LIMIT_MB)
    try:
        limit = int(float(chosen) * 2**20)
    except (ValueError, OverflowError):
        limit = -1
    if limit < 0:
        message = f"MINIFUSE_CACHE_LIMIT_MB is {chosen!r}; expected a number of megabytes, such as {DEFAULT_LIMIT_MB}"
        raise MinifuseError(f"{message}, or 0 for memory only")
    return limit


def _digest(name: str, payload: bytes) -> bytes:
    return sha256(name.encode() + payload).digest()


def _read(name: str) -> bytes | None:
    """The payload of a kernel on disk; None if there is none, or a damaged one."""
    folder = cache_folder()
    if folder is None or not limit_nbytes():
        return None
    if reason := file_trust.distrust(folder):
        _warn_once(_memory_only_message(reason))
        return None
    path = folder / f"{name}.bin"
    try:
        data = file_trust.read(path)
        with suppress(OSError):  # of a cache that this process may only read
            if time.time() - path.stat().st_mtime > RECENT_SECONDS:
                os.utime(path)  # the time of last use
    except OSError:
        return None
    start = len(MAGIC) + DIGEST_SIZE
    payload = data[start:]
    return payload if data[:start] == MAGIC + _digest(name, payload) else None


def _memory_only_message(reason: str) -> str:
    return f"kernels are kept in memory only, since {reason}; set MINIFUSE_CACHE to a folder that is this user's alone"


@lru_cache
def _warn_once(message: str) -> None:
    """Warn of a message once in a process; a filter that makes errors of warnings must not make a launch fail."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        sys.stderr.write(f"minifuse: {message}\n")


def _replace(path: Path, data: bytes) -> None:
    """Write a file at once: other processes see the old one or the new one."""
    temporary = path.with_suffix(f".{os.urandom(8).hex()}.tmp")
    try:
        file_trust.write_new(temporary, data)
        temporary.replace(path)
    except OSError:
        _remove(temporary)
        raise


def _remove(path: Path) -> bool:
    """Remove a file; False if it is gone already, or cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    """The files of the cache that are there at this moment."""
    folder = cache_folder()
    with suppress(OSError):
        for file in os.scandir(folder) if folder else ():
            if FILE_NAME.fullmatch(file.name):
                with suppress(FileNotFoundError):  # another process was faster
                    yield Path(file.path), file.stat()


def _evict(limit: int) -> None:
    """Remove the least recently used kernels if the folder is above its limit, and temporary files that were abandoned."""
    files = dict(_files())
    for file in [file for file in files if file.suffix == ".tmp"]:
        if time.time() - files.pop(file).st_mtime > RECENT_SECONDS:
            _remove(file)
    size = sum(status.st_size for status in files.values())
    if size <= limit:
        return
    last_use = {file.stem: status.st_mtime for file, status in files.items() if file.suffix == ".bin"}
    for file in sorted(files, key=lambda file: (last_use.get(file.stem, 0), file.stem)):  # a source alone goes first
        if size <= KEPT_FRACTION * limit:
            return
        _remove(file)
        size -= files[file].st_size


cache = KernelCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.reset_locks)
