"""Find the compiled kernel of a source: in memory, else on disk, else compile it now and store it in both.

Every backend that compiles uses this cache, which depends on no compiler and no processor. On disk a kernel is two files of
one folder: `k_<sha>.py`, the source for people to read, and `k_<sha>.bin`, the output of the compiler. `<sha>` is the sha256
of everything that determines the machine code. Any number of processes may share the folder: while one of them compiles a
kernel, it holds the lock `k_<sha>.lock`, and others that need this kernel wait for it. If the folder is full, read-only,
damaged or missing, kernels are compiled again and no call fails. Its files are executed, so they are used only if no other
user can have written them (`file_trust.py`); otherwise kernels are kept in memory.

Environment variables: `MINIFUSE_CACHE` is the folder (default: `minifuse` in the platform's cache folder), and
`MINIFUSE_CACHE_LIMIT_MB` limits its size (default 512; 0 keeps kernels in memory only).
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock, local
from typing import Any, NamedTuple, TypeVar

from ..core.errors import MinifuseError
from . import file_trust
from .kernel_files import (
    MAGIC,
    cache_folder,
    checksum,
    evict,
    hold_kernel_lock,
    iterate_files,
    kernel_lock,
    limit_nbytes,
    memory_only_message,
    read_payload,
    remove_file,
    replace_file,
)
from .plan_cache import plan_cache

T = TypeVar("T")

WRITES_PER_SIZE_CHECK = 32  # kernels written between two checks of the folder's size; a check takes 1 ms for 1,000 kernels


class CacheStats(NamedTuple):
    """Sizes of a kernel cache, and where its kernels came from."""

    in_memory: int
    """Kernels in the memory of this process."""
    compiled: int
    """Kernels that this process compiled, alone or with its compile workers."""
    loaded: int
    """Kernels that this process loaded from disk."""
    on_disk: int
    """Kernels in the folder, compiled by this or other processes."""
    nbytes_on_disk: int
    """Bytes of all cache files in the folder."""
    folder: Path | None
    """The folder of kernels; None if the user has no home folder."""
    seconds: float
    """Seconds that this process spent compiling, without its compile workers."""
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


def load_all(loads: Iterable[Callable[[], T]]) -> list[T]:
    """Call functions that load kernels, so that `collect_missing` notes every kernel that is missing, not only the first."""
    loaded, stop = list[T](), None
    for load in loads:
        try:
            loaded.append(load())
        except KernelNotCompiled as error:
            stop = error
    if stop is not None:
        raise stop
    return loaded


def write_files(contents: Mapping[str, bytes]) -> None:
    """Replace files in the cache folder, by name, each of them atomically.

    Raises
    ------
    MinifuseError
        The folder cannot be written, another user may write to it, or the settings keep kernels in memory only.
    """
    folder = cache_folder()
    if folder is None or not limit_nbytes():
        reason = "this user has no home folder for a cache" if folder is None else "MINIFUSE_CACHE_LIMIT_MB is 0"
        raise MinifuseError(f"kernels are kept in memory only, since {reason}; set MINIFUSE_CACHE, or a limit above 0")
    try:
        if not file_trust.why_distrusted(folder):
            file_trust.make_private(folder)
        if reason := file_trust.why_distrusted(folder):
            raise MinifuseError(memory_only_message(reason))
        for name, content in contents.items():
            replace_file(folder / name, content)
    except OSError as error:
        raise MinifuseError(
            f"kernel cache: cannot write to {folder}: {error.strerror or error}; free some space there, or set "
            "MINIFUSE_CACHE to a writable folder"
        ) from error


class KernelCache:
    """Compiled kernels, keyed by a hash of everything that determines their machine code.

    Notes
    -----
    Any number of threads and processes may use one folder. If several need one kernel at the same time, one compiles it and
    the others wait. If the folder does not exist yet, or its file system has no locks, several processes compile it, and the
    files of the last one remain. A file is written under a temporary name and renamed, and its checksum is verified on
    reading, so no reader uses an incomplete file. When the folder exceeds its limit, the least recently used kernels are
    removed. Kernels in memory stay until the process ends.

    Examples
    --------
    >>> from minifuse.runtime.kernel_cache import KernelCache
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
        self._requested = set[str]()  # names of kernels that were on disk only because this process needed them

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
            with self._lock:
                thread_lock = self._kernel_locks.setdefault(name, Lock())
            with thread_lock:
                if name not in self._kernels:
                    source = text.replace("def kernel(", f"def {name}(", 1)
                    entry = self._load(name, source, load)
                    if entry is None and self._collecting.missing is not None:
                        self._collecting.missing[name] = MissingKernel(name, source, build)
                        raise KernelNotCompiled(name)
                    self._kernels[name] = entry or self._build(name, source, build, load)
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

    def compile_missing(self, job: MissingKernel) -> bool:
        """Compile a kernel and store it on disk, unless it is on disk, or another process compiles it.

        Returns
        -------
        bool
            False if another process compiles it now.

        Raises
        ------
        Exception
            Any error of the compiler.
        MinifuseError
            The kernel cannot be stored.
        """
        lock = kernel_lock(job.name)
        if read_payload(job.name) is not None:
            return True
        if lock is None:
            raise MinifuseError(f"kernel cache: there is no folder to store {job.name}")
        try:
            if lock.acquire():
                return False
        except OSError as error:
            raise MinifuseError(f"kernel cache: cannot lock {job.name}: {error.strerror or error}") from error
        try:
            if read_payload(job.name) is None:  # else another process stored it before this one had the lock
                start = time.perf_counter()
                payload = job.build(job.name, job.text)
                self._seconds += time.perf_counter() - start
                self.put(job.name, job.text, payload)
                self._requested.add(job.name)
        finally:
            lock.release()
        return True

    def count_as_compiled(self, names: Iterable[str]) -> None:
        """Count kernels as compiled when they are loaded: this process has them compiled in advance."""
        self._requested |= {*names}

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
        source, data = text.encode(), MAGIC + checksum(name, payload) + payload
        write_files({f"{name}.py": source, f"{name}.bin": data})
        self._writes += 1
        if self._writes % WRITES_PER_SIZE_CHECK == 1:
            evict(limit_nbytes())
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
            remove_file(Path(str(folder), f"{name}.{suffix}"))

    def stats(self) -> CacheStats:
        """Count kernels and bytes, in memory and on disk."""
        entries, files = list(self._kernels.values()), list(iterate_files())
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
        return sum(remove_file(file) and file.suffix == ".bin" for file, _ in iterate_files())

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

    def _load(self, name: str, text: str, load: Callable[[str, bytes], T]) -> "_Entry | None":
        """Load a kernel from disk; return None if it is not there."""
        payload = read_payload(name)
        if payload is not None:
            with suppress(Exception):  # a damaged or outdated payload is compiled again
                return _Entry(load(name, payload), text, was_compiled=name in self._requested)
        return None

    def _build(self, name: str, text: str, build: Callable[[str, str], bytes], load: Callable[[str, bytes], T]) -> "_Entry":
        """Compile a kernel and store it, or wait for the process that compiles it."""
        with hold_kernel_lock(name) as has_waited:
            if has_waited and (entry := self._load(name, text, load)):
                return entry
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


cache = KernelCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.reset_locks)
