"""The folder of a run: what it was started with, a line for each step, where it stands, and a picture.

    config.json               recipe, settings, versions; written once
    log.jsonl                 a line of JSON for each step, and for each measurement on held-out examples
    checkpoint.safetensors    all that training needs to go on, as if it had never stopped
    curves.png                loss and accuracy
    run.lock                  while a process trains: which

One process at a time writes into a folder. A file is written beside its place and then put there, so it is whole whenever
the process ends. The log only grows; lines behind the checkpoint are dropped when training goes on from there.
"""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any

from ..core.errors import CheckpointError, TrainingError
from ..runtime.atomic_files import is_temporary_of, reason, remedy, replace_content
from ..runtime.file_locks import FileLock
from ..tensors.serialization import load_state, save_state
from .recipe import Recipe, Settings
from .records import FORMAT, Line, read_config, read_line, recorded_settings

CONFIG, LOG, CHECKPOINT, CURVES = "config.json", "log.jsonl", "checkpoint.safetensors", "curves.png"
LOCK = "run.lock"
PACKAGES = ("minifuse", "numba", "numpy")


class RunFolder:
    """The files of one run.

    Parameters
    ----------
    path : Path
        The folder. `create` makes a new one.

    Notes
    -----
    Reading needs no lock. Methods that write take it first, and raise `TrainingError` where another process holds it;
    `close` releases it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log: int | None = None  # a file descriptor
        self._lock = FileLock(path / LOCK)

    @classmethod
    def create(cls, path: Path, recipe: str, settings: Mapping[str, Any]) -> "RunFolder":
        """Create a folder with its config, and lock it.

        Raises
        ------
        TrainingError
            There is a run already, or the folder cannot be written.
        """
        folder, is_new = cls(path), not path.exists()
        try:
            with folder._writing(path):
                path.mkdir(parents=True, exist_ok=True)
            folder.lock()
            if (path / CONFIG).exists():
                raise TrainingError(
                    f"{path} holds a run already; go on with it (--resume {quote(str(path))}), or choose another folder"
                )
            config = {
                "format": FORMAT,
                "recipe": recipe,
                "settings": dict(settings),
                "began": datetime.now(UTC).isoformat(timespec="seconds"),
                "versions": {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES},
            }
            with folder._writing(path / CONFIG):
                replace_content(path / CONFIG, json.dumps(config, indent=2) + "\n")
        except BaseException:
            folder.close()
            if is_new:
                with suppress(OSError):  # another process may have begun a run in it
                    path.rmdir()
            raise
        return folder

    def lock(self) -> None:
        """Exclude other processes until `close`, and remove what a killed one left unfinished.

        Raises
        ------
        TrainingError
            Another process, or another object of this process, writes into the folder; or it cannot be written.
        """
        if self._lock.is_held:
            return
        with self._writing(self.path):
            owner = self._lock.acquire()
        if owner:
            raise TrainingError(
                f"{self.path} is in use by {owner}, and only one process at a time may train in a folder; wait until it "
                "ends, or choose another folder"
            )
        for file in list(self.path.iterdir()):
            if any(is_temporary_of(file.name, name) for name in (CONFIG, LOG, CHECKPOINT, CURVES)):
                with suppress(OSError):
                    file.unlink()

    def close(self) -> None:
        """Close the log and release the lock."""
        self._close_log()
        self._lock.release()

    # The config.

    def config(self) -> dict[str, Any]:
        """Return what the run was started with.

        Raises
        ------
        TrainingError
            There is no run, or its config is damaged.
        """
        try:
            return read_config(self.path / CONFIG)
        except FileNotFoundError:
            raise TrainingError(
                f"{self.path} holds no run: {CONFIG} is missing; name the folder that a run printed, or begin a run in this "
                f"one (--out {quote(str(self.path))})"
            ) from None

    def settings(self, recipe: Recipe) -> Settings:
        """Return the settings that the run was started with.

        Raises
        ------
        TrainingError
            There is no run, or its config is damaged.
        """
        return recorded_settings(self.path / CONFIG, self.config()["settings"], recipe)

    # The log.

    def note(self, *lines: Line) -> None:
        """Append lines to the log, all of them or none."""
        self.lock()
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with self._writing(self.path / LOG):
            if self._log is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
                self._log = os.open(self.path / LOG, flags, 0o666)
            size = os.fstat(self._log).st_size
            try:
                while data:
                    data = data[os.write(self._log, data) :]
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._log, size)
                raise

    def lines(self) -> Iterator[Line]:
        """Iterate over the lines of the log; a last line that was cut off is left out.

        Raises
        ------
        TrainingError
            Another line is damaged.
        """
        path = self.path / LOG
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise TrainingError(f"{path} cannot be read: {reason(error)}; make it a file that this user may read") from None
        for number, line in enumerate(text.split(b"\n")[:-1], 1):
            yield read_line(line, path, number)

    def forget_after(self, step: int) -> None:
        """Drop from the log the lines behind a step, which will be done again."""
        self.lock()
        kept = [line for line in self.lines() if line["step"] <= step]
        self._close_log()
        with self._writing(self.path / LOG):
            replace_content(self.path / LOG, "".join(json.dumps(line) + "\n" for line in kept))

    def _close_log(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    # The checkpoint.

    @property
    def is_untouched(self) -> bool:
        """Return whether the run ended before its first checkpoint: there is none, and the log has no step."""
        return not (self.path / CHECKPOINT).exists() and next(self.lines(), None) is None

    def save(self, state: Mapping[str, Any]) -> None:
        """Put a checkpoint in the place of the one before.

        Raises
        ------
        CheckpointError
            It cannot be written; the one before is unchanged.
        """
        self.lock()
        path = self.path / CHECKPOINT
        try:
            if self._log is not None:
                os.fsync(self._log)  # after a power cut the log must reach as far as the checkpoint
            save_state(dict(state), path)
        except OSError as error:  # a CheckpointError is one too
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            raise CheckpointError(self._said(path, cause)) from error

    def load(self, backend: str) -> dict[str, Any]:
        """Return the state of the last checkpoint.

        Raises
        ------
        TrainingError, CheckpointError
            There is none, it is damaged, or it was not written by a run.
        """
        path = self.path / CHECKPOINT
        if not path.exists():
            raise TrainingError(
                f"{self.path} has no checkpoint yet, expected {CHECKPOINT}; restore it, or delete {LOG} too, and --resume "
                "begins at the first step"
            )
        found: dict[str, Any] = load_state(path, backend)
        return found

    # Files that are written.

    def put(self, name: str, content: bytes) -> None:
        """Replace a file of the folder, all or nothing."""
        self.lock()
        with self._writing(self.path / name):
            replace_content(self.path / name, content)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """Raise an OSError of the block as a `TrainingError` that says how the run can go on."""
        try:
            yield
        except OSError as error:
            raise TrainingError(self._said(path, error)) from error

    def _said(self, path: Path, error: OSError) -> str:
        """Return the message of a failed write: the path, the reason, what is left, what to do."""
        again = f"--resume {quote(str(self.path))}"
        if (self.path / CHECKPOINT).exists():
            left = f"the last checkpoint is whole: {remedy(error)}, and go on with {again}"
        elif (self.path / CONFIG).exists():
            left = f"no step was recorded: {remedy(error)}, and begin with {again}"
        else:
            left = f"no run was begun: {remedy(error)}, or choose another folder"
        return f"{path} cannot be written: {reason(error)}; {left}"


def version_of(package: str) -> str:
    """Return the version of a package; of one that is not installed, but runs from its sources, "sources"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "sources"
