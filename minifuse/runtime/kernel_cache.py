"""Find the compiled kernel of a source: in memory, else on disk, else compile it now and store it in both.

Every backend that compiles uses this cache, which depends on no compiler and no processor. On disk a kernel is two files of
one folder: `k_<sha>.py`, the source for people to read, and `k_<sha>.bin`, the output of the compiler. `<sha>` is the sha256
of everything that determines the machine code. Any number of processes may share the folder. If it is full, read-only,
damaged or missing, kernels are compiled again and no call fails. Its files are executed, so they are used only if no other
user can have written them (`file_trust.py`); otherwise kernels are kept in memory.

Environment variables: `MINIFUSE_CACHE` is the folder (default: `minifuse` in the platform's cache folder), and
`MINIFUSE_CACHE_LIMIT_MB` limits its size (default 512; 0 keeps kernels in memory only).
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
DIGEST_SIZE = 32  # bytes of a sha256 digest
DEFAULT_LIMIT_MB = 512  # size limit of the folder
KEPT_FRACTION = 0.75  # an eviction shrinks the folder to this fraction of the limit, so that evictions are rare
WRITES_PER_SIZE_CHECK = 32  # kernels written between two checks of the folder's size; a check takes 1 ms for 1,000 kernels
RECENT_SECONDS = 3600  # a time of last use is updated at most this often; temporary files younger than this are kept
FILE_NAME = re.compile(r"k_[0-9a-f]{24}\.(py|bin|[0-9a-f]{16}\.tmp)")  # other files are never touched


class CacheStats(NamedTuple):
    """Sizes of a kernel cache, and where its kernels came from."""

    in_memory: int
    """Kernels in the memory of this process."""
    compiled: int
    """Kernels that this process compiled."""
    loaded: int
    """Kernels that this process loaded from disk."""
    on_disk: int
    """Kernels in the folder, compiled by this or other processes."""
    nbytes_on_disk: int
    """Bytes of all cache files in the folder."""
    folder: Path | None
    """The folder of kernels; None if the user has no home folder."""
    seconds: float
    """Seconds that this process spent compiling."""
    plans: int
    """Plans of operations and fused functions that this process keeps."""
    nbytes_of_plans: int
    """Estimated bytes of the plans that this process keeps."""
    plan_limit: int
    """Limit of the bytes of plans; above it, the least recently used plans are evicted."""


class CachedKernel(NamedTuple):
    """A kernel in memory: its name, the path of its source file (None if it is not on disk), and its source."""

    name: str
    path: Path | None
    text: str


class MissingKernel(NamedTuple):
    """A kernel that is neither in memory nor on disk. `build(name, text)` compiles its source `text`."""

    name: str
    text: str
    build: Callable[[str, str], bytes]


class KernelNotCompiled(Exception):  # noqa: N818  # not an error: it ends the binding of a kernel in `collect_missing`
    """Raised inside `collect_missing` instead of compiling a kernel."""


class KernelCache:
    """Compiled kernels, keyed by a hash of everything that determines their machine code.

    Notes
    -----
    Any number of threads and processes may use one folder. Threads that need one kernel at the same time compile it once.
    Several processes each compile it, and the files of the last one remain. A file is written under a temporary name and
    renamed, and its checksum is verified on reading, so no reader uses an incomplete file. When the folder exceeds its
    limit, the least recently used kernels are removed. Kernels in memory stay until the process ends.

    Examples
    --------
    >>> cache = KernelCache()
    >>> text = "def kernel(x):\\n    return x + 1\\n"
    >>> loaded = cache.find(text, "example", lambda name, text: text.encode(), lambda name, payload: payload.decode())
    >>> loaded.startswith("def k_")
    True
    >>> cache.stats().in_memory
    1
    """

    def __init__(self) -> None:
        self._kernels: dict[str, _Entry] = {}  # by name
        self._lock = Lock()
        self._kernel_locks: dict[str, Lock] = {}  # name -> locked while that kernel is loaded or compiled
        self._writes = 0
        self._seconds = 0.0
        self._collecting = _Collecting()

    def find(self, text: str, fingerprint: str, build: Callable[[str, str], bytes], load: Callable[[str, bytes], T]) -> T:
        """Return the compiled kernel of a source. Load it from disk, or compile it, if it is not in memory.

        Parameters
        ----------
        text : str
            Python source of a function named `kernel`. It is renamed to `k_<sha>`, and stored under this name.
        fingerprint : str
            Everything else that determines the machine code: backend, processor, flags, versions.
        build : function of (name, text)
            Compiles the renamed source to bytes. Called if the kernel is neither in memory nor on disk.
        load : function of (name, payload)
            Converts the bytes of `build` to the object that the backend keeps in memory, which `find` returns. If `load`
            raises for bytes from disk, the kernel is compiled again.

        Raises
        ------
        Exception
            Any error of `build`, and any error of `load` for bytes that were just built.

        Notes
        -----
        For a kernel in memory a call costs a hash of its source, about 5 us. Callers keep the result.
        """
        name = "k_" + sha256(f"{fingerprint}\n{text}".encode()).hexdigest()[:24]
        if name not in self._kernels:
            if self._collecting.missing is not None and _read(name) is None:
                self._collecting.missing[name] = MissingKernel(name, text.replace("def kernel(", f"def {name}(", 1), build)
                raise KernelNotCompiled(name)
            with self._lock:
                kernel_lock = self._kernel_locks.setdefault(name, Lock())
            with kernel_lock:
                if name not in self._kernels:
                    source = text.replace("def kernel(", f"def {name}(", 1)
                    self._kernels[name] = self._load_or_build(name, source, build, load)
            self._kernel_locks.pop(name, None)
        value: T = self._kernels[name].value
        return value

    @contextmanager
    def collect_missing(self) -> Iterator[dict[str, MissingKernel]]:
        """Collect missing kernels by name in a block of code, instead of compiling them.

        Inside, `find` raises `KernelNotCompiled` for a kernel that is neither in memory nor on disk.
        """
        outer_missing, self._collecting.missing = self._collecting.missing, {}
        try:
            yield self._collecting.missing
        finally:
            self._collecting.missing = outer_missing

    def put(self, name: str, text: str, payload: bytes) -> int:
        """Store a compiled kernel on disk, for this and other processes.

        Returns
        -------
        int
            The size of its files in bytes.

        Raises
        ------
        MinifuseError
            The folder cannot be written, another user may write to it, or the settings keep kernels in memory only.
        """
        folder, limit = cache_folder(), limit_nbytes()
        if folder is None or not limit:
            reason = "this user has no home folder for a cache" if folder is None else "MINIFUSE_CACHE_LIMIT_MB is 0"
            raise MinifuseError(f"kernels are kept in memory only, since {reason}; set MINIFUSE_CACHE, or a limit above 0")
        source, data = text.encode(), MAGIC + _digest(name, payload) + payload
        try:
            if not file_trust.why_distrusted(folder):
                file_trust.make_private(folder)
            if reason := file_trust.why_distrusted(folder):
                raise MinifuseError(_memory_only_message(reason))
            _replace(folder / f"{name}.py", source)
            _replace(folder / f"{name}.bin", data)
        except OSError as error:
            raise MinifuseError(
                f"kernel cache: cannot write to {folder}: {error.strerror or error}; free some space there, or set "
                "MINIFUSE_CACHE to a writable folder"
            ) from error
        self._writes += 1
        if self._writes % WRITES_PER_SIZE_CHECK == 1:
            _evict(limit)
        return len(source) + len(data)

    def check(self) -> None:
        """Check that kernels can be stored on disk.

        Raises
        ------
        MinifuseError
            Kernels cannot be stored, for one of the reasons of `put`.
        """
        name = f"k_{0:024x}"
        self.put(name, "", b"")
        folder = cache_folder()
        for suffix in ("py", "bin"):
            _remove(Path(str(folder), f"{name}.{suffix}"))

    def stats(self) -> CacheStats:
        """Count kernels and bytes, in memory and on disk."""
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
        """Remove all kernels on disk, including those of other processes. Kernels in memory stay usable.

        Returns
        -------
        int
            How many kernels were removed.
        """
        return sum(_remove(file) and file.suffix == ".bin" for file, _ in _files())

    def kernels(self) -> list[CachedKernel]:
        """List the kernels in memory, in the order of first use."""
        folder = cache_folder()
        paths = [(name, folder and folder / f"{name}.py", entry.text) for name, entry in list(self._kernels.items())]
        return [CachedKernel(name, path if path and path.is_file() else None, text) for name, path, text in paths]

    def set_plan_limit(self, megabytes: float | None) -> None:
        """Limit the memory of cached plans in this process.

        Parameters
        ----------
        megabytes : float or None
            The limit in megabytes; None for the value of MINIFUSE_PLAN_LIMIT_MB (default 256).

        Raises
        ------
        MinifuseError
            The limit is not a number, or is negative.

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
        """Replace all locks after a fork: the threads that locked them do not exist in the child."""
        self._lock, self._kernel_locks = Lock(), {}

    def _load_or_build(
        self, name: str, text: str, build: Callable[[str, str], bytes], load: Callable[[str, bytes], T]
    ) -> "_Entry":
        payload = _read(name)
        if payload is not None:
            with suppress(Exception):  # a damaged or outdated payload is compiled again
                return _Entry(load(name, payload), text, was_compiled=False)
        start = time.perf_counter()
        payload = build(name, text)
        self._seconds += time.perf_counter() - start
        entry = _Entry(load(name, payload), text, was_compiled=True)
        with suppress(MinifuseError):  # a kernel that cannot be stored still works
            self.put(name, text, payload)
        return entry


class _Collecting(local):
    """The missing kernels that a thread collects; None outside of `collect_missing`."""

    missing: dict[str, MissingKernel] | None = None


class _Entry(NamedTuple):
    """A kernel in memory: the object that its backend loaded, its source, whether this process compiled it."""

    value: Any
    text: str
    was_compiled: bool


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


def _digest(name: str, payload: bytes) -> bytes:
    return sha256(name.encode() + payload).digest()


def _read(name: str) -> bytes | None:
    """Return the payload of a kernel on disk; None if it is missing or damaged."""
    folder = cache_folder()
    if folder is None or not limit_nbytes():
        return None
    if reason := file_trust.why_distrusted(folder):
        _warn_once(_memory_only_message(reason))
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
    return payload if data[:start] == MAGIC + _digest(name, payload) else None


def _memory_only_message(reason: str) -> str:
    advice = "set MINIFUSE_CACHE to a folder that only this user can write to"
    return f"kernels are kept in memory only, since {reason}; {advice}"


@lru_cache
def _warn_once(message: str) -> None:
    """Warn once per process. If a filter turns warnings into errors, print the message, so that no launch fails."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        sys.stderr.write(f"minifuse: {message}\n")


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: other processes see the old content or the new content."""
    temporary = path.with_suffix(f".{os.urandom(8).hex()}.tmp")
    try:
        file_trust.write_new(temporary, data)
        temporary.replace(path)
    except OSError:
        _remove(temporary)
        raise


def _remove(path: Path) -> bool:
    """Remove a file; return False if it is already gone or cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of the cache that exist now, with their status."""
    folder = cache_folder()
    with suppress(OSError):
        for file in os.scandir(folder) if folder else ():
            if FILE_NAME.fullmatch(file.name):
                with suppress(FileNotFoundError):  # another process removed it
                    yield Path(file.path), file.stat()


def _evict(limit: int) -> None:
    """Remove abandoned temporary files, and the least recently used kernels if the folder exceeds its limit."""
    files = dict(_files())
    for file in [file for file in files if file.suffix == ".tmp"]:
        if time.time() - files.pop(file).st_mtime > RECENT_SECONDS:
            _remove(file)
    size = sum(status.st_size for status in files.values())
    if size <= limit:
        return
    last_use = {file.stem: status.st_mtime for file, status in files.items() if file.suffix == ".bin"}
    # A source file without machine code has no time of last use, and is removed first.
    for file in sorted(files, key=lambda file: (last_use.get(file.stem, 0), file.stem)):
        if size <= KEPT_FRACTION * limit:
            return
        _remove(file)
        size -= files[file].st_size


cache = KernelCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.reset_locks)
