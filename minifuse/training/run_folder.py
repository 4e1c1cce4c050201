"""The folder of a run: its settings, a log, the last checkpoint, and a plot.

    config.json               recipe, settings, versions; written once
    log.jsonl                 one line of JSON for each step, and for each evaluation
    checkpoint.safetensors    everything needed to resume training with identical results
    curves.png                a plot of the loss and the target metric
    run.lock                  a lock, with a description of the training process

Only one process at a time writes to a folder. A file is written under a temporary name and then renamed, so it is complete
even if the process is killed. The log is append-only; when a run is resumed, lines after the checkpoint are removed.
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

from ..core.errors import CheckpointError, TrainingError
from ..runtime.atomic_files import is_temporary_of, reason, remedy, replace_content
from ..runtime.file_locks import FileLock
from ..tensors.serialization import load_state, save_state
from .recipe import Recipe, Settings
from .records import FORMAT, Config, LogLine, read_config, read_line, recorded_settings

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
    Reading needs no lock. Methods that write acquire it, and raise `TrainingError` if another process has it;
    `close` releases it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log: int | None = None  # a file descriptor
        self._lock = FileLock(path / LOCK)

    @classmethod
    def create(cls, path: Path, recipe: str, settings: Mapping[str, object]) -> "RunFolder":
        """Create a folder with its config, and lock it.

        Raises
        ------
        TrainingError
            The folder contains a run already, or cannot be written.
        """
        folder, is_new = cls(path), not path.exists()
        try:
            with folder._writing(path):
                path.mkdir(parents=True, exist_ok=True)
            folder.lock()
            if (path / CONFIG).exists():
                raise TrainingError(
                    f"{path} contains a run already; continue it (--resume {quote(str(path))}), or choose another folder"
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
                with suppress(OSError):  # another process may have created a run in it
                    path.rmdir()
            raise
        return folder

    def lock(self) -> None:
        """Exclude other processes until `close`, and remove unfinished files of a process that was killed.

        Raises
        ------
        TrainingError
            Another process, or another object of this process, has the lock; or the folder cannot be written.
        """
        if self._lock.is_held:
            return
        with self._writing(self.path):
            owner = self._lock.acquire()
        if owner:
            raise TrainingError(
                f"{self.path} is in use by {owner}; wait until it ends, or choose another folder, since only one process "
                "at a time can train in a folder"
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

    def config(self) -> Config:
        """Read the config of the run.

        Raises
        ------
        TrainingError
            The folder contains no run, or its config is damaged.
        """
        try:
            return read_config(self.path / CONFIG)
        except FileNotFoundError:
            raise TrainingError(
                f"{self.path} contains no run: {CONFIG} is missing; choose the folder of a run, or start a run in this one "
                f"(--out {quote(str(self.path))})"
            ) from None

    def settings(self, recipe: Recipe) -> Settings:
        """Read the settings of the run.

        Raises
        ------
        TrainingError
            The folder contains no run, or its config is damaged.
        """
        return recorded_settings(self.path / CONFIG, self.config()["settings"], recipe)

    # The log.

    def note(self, *lines: Mapping[str, object]) -> None:
        """Append lines to the log. If an error is raised, none of them is appended."""
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

    def lines(self) -> Iterator[LogLine]:
        """Iterate over the lines of the log; an incomplete last line is skipped.

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
            raise TrainingError(f"{path} cannot be read: {reason(error)}; make it a file that you can read") from None
        for number, line in enumerate(text.split(b"\n")[:-1], 1):
            yield read_line(line, path, number)

    def forget_after(self, step: int) -> None:
        """Remove the log lines of all later steps, since they will be repeated."""
        self.lock()
        remaining = [line for line in self.lines() if line["step"] <= step]
        self._close_log()
        with self._writing(self.path / LOG):
            replace_content(self.path / LOG, "".join(json.dumps(line) + "\n" for line in remaining))

    def _close_log(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    # The checkpoint.

    @property
    def is_untouched(self) -> bool:
        """True if there is no checkpoint and the log is empty: the run ended before its first checkpoint."""
        return not (self.path / CHECKPOINT).exists() and next(self.lines(), None) is None

    def save(self, state: Mapping[str, object]) -> None:
        """Replace the checkpoint.

        Raises
        ------
        CheckpointError
            The checkpoint cannot be written; the previous one is unchanged.
        """
        self.lock()
        path = self.path / CHECKPOINT
        try:
            if self._log is not None:
                os.fsync(self._log)  # after a power failure the log must not be older than the checkpoint
            save_state(dict(state), path)
        except OSError as error:  # CheckpointError is a subclass of OSError
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            raise CheckpointError(self._format_failure(path, cause)) from error

    def load(self, backend: str) -> dict[str, object]:
        """Load the state of the last checkpoint.

        Raises
        ------
        TrainingError, CheckpointError
            There is no checkpoint, or the file is damaged or not a checkpoint.
        """
        path = self.path / CHECKPOINT
        if not path.exists():
            raise TrainingError(
                f"{self.path} has no {CHECKPOINT}; restore it, or also delete {LOG} to start at the first step with --resume"
            )
        state: dict[str, object] = load_state(path, backend)
        return state

    # Writing files.

    def put(self, name: str, content: bytes) -> None:
        """Replace a file of the folder atomically."""
        self.lock()
        with self._writing(self.path / name):
            replace_content(self.path / name, content)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """Convert an OSError of the block to a `TrainingError` that explains how to continue."""
        try:
            yield
        except OSError as error:
            raise TrainingError(self._format_failure(path, error)) from error

    def _format_failure(self, path: Path, error: OSError) -> str:
        """Format the message of a failed write: path, reason, state of the run, and how to continue."""
        resume = f"--resume {quote(str(self.path))}"
        if (self.path / CHECKPOINT).exists():
            advice = f"the last checkpoint is intact: {remedy(error)}, and continue with {resume}"
        elif (self.path / CONFIG).exists():
            advice = f"no step was recorded: {remedy(error)}, and start with {resume}"
        else:
            advice = f"no run was created: {remedy(error)}, or choose another folder"
        return f"{path} cannot be written: {reason(error)}; {advice}"


def version_of(package: str) -> str:
    """Return the version of a package, or "sources" if it runs from its sources without installation."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "sources"
