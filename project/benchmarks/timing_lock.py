"""Locks of processes that measure on one machine at the same time: rows are compiled in parallel, and timed alone.

Compiling the programs of a suite takes much longer than timing them, and uses one core. With `--timing-lock FILE`, several
processes run parts of a suite. Each prepares all of its rows while it holds the lock on the file shared, and then holds it
alone for each row that it times. So no row is timed while another process compiles, checks a result or uses the device.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TimingLock:
    """A lock on a file between processes, held shared or alone; without a path, it excludes no one.

    The operating system releases the lock when a process ends, for any reason. The file is created, and stays.

    Raises
    ------
    ValueError
        The system has no such locks, or the file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        if path:
            try:
                import fcntl  # noqa: F401, since Windows has no shared locks

                path.touch()
            except (ImportError, OSError) as error:
                raise ValueError(f"{path} cannot be locked ({error}); name a file of a POSIX system's local disk") from error

    def __bool__(self) -> bool:
        """Return True if there is a file, so that other processes may measure at the same time."""
        return self.path is not None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other processes; wait while one of them holds it alone."""
        with self._held(is_alone=False):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock alone; wait until no other process holds it."""
        with self._held(is_alone=True):
            yield

    @contextmanager
    def _held(self, is_alone: bool) -> Iterator[None]:
        if self.path is None:
            yield
            return
        import fcntl

        handle = os.open(self.path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(handle)
