"""The folder of a run: what it was started with, a line for each step, where it stands, and a picture.

    config.json               recipe, settings, versions; written once
    log.jsonl                 a line of JSON for each step, and for each look at what was held out
    checkpoint.safetensors    all that training needs to go on, as if it had never stopped
    curves.png                loss and accuracy

A file is written beside its place and then put there, so what is there is whole, whenever the process ends. The log only
grows; what stands in it behind the checkpoint is dropped when training goes on from there.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from ..checkpoint import load_state, replacement, save_state
from ..errors import TrainingError

CONFIG, LOG, CHECKPOINT, CURVES = "config.json", "log.jsonl", "checkpoint.safetensors", "curves.png"
PACKAGES = ("minifuse", "numba", "numpy")
FORMAT = 1
Line = dict[str, Any]


class RunFolder:
    """The files of one run.

    Parameters
    ----------
    path : Path
        The folder. `create` makes it, `open` takes one that is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log: IO[str] | None = None

    @classmethod
    def create(cls, path: Path, recipe: str, settings: Mapping[str, Any]) -> "RunFolder":
        """A new folder, with its config.

        Raises
        ------
        TrainingError
            There is a run already, or the folder cannot be written.
        """
        folder = cls(path)
        if (path / CONFIG).exists():
            raise TrainingError(f"{path} holds a run already; go on with it (--resume {path}), or choose another folder")
        config = {
            "format": FORMAT,
            "recipe": recipe,
            "settings": dict(settings),
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES},
        }
        with written(path):
            path.mkdir(parents=True, exist_ok=True)
            put(path / CONFIG, json.dumps(config, indent=2) + "\n")
        return folder

    def config(self) -> dict[str, Any]:
        """What the run was started with.

        Raises
        ------
        TrainingError
            There is no run, or its config cannot be read.
        """
        path = self.path / CONFIG
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TrainingError(
                f"{self.path} holds no run: {CONFIG} is missing; name the folder that a run printed"
            ) from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise TrainingError(f"{path} cannot be read: {error}; without it nobody knows what the run is") from None
        if not isinstance(found, dict) or not {"recipe", "settings"} <= found.keys() or found.get("format") != FORMAT:
            raise TrainingError(f"{path} is no config of a run of this version; expected format {FORMAT}")
        return found

    # The log.

    def note(self, *lines: Line) -> None:
        """Add lines to the log."""
        with written(self.path / LOG):
            if self._log is None:
                self._log = (self.path / LOG).open("a", encoding="utf-8")
            self._log.write("".join(json.dumps(line) + "\n" for line in lines))
            self._log.flush()

    def lines(self) -> Iterator[Line]:
        """What the log holds; a last line that was cut off is left out.

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
        for number, line in enumerate(text.split(b"\n")[:-1], 1):
            try:
                yield json.loads(line)
            except ValueError as error:  # no UTF-8, or no JSON
                raise TrainingError(
                    f"{path}, line {number} is damaged: {error}; delete the line, which only the curves will miss"
                ) from None

    def forget_after(self, step: int) -> None:
        """Drop from the log what lies behind a step: it will be done again."""
        kept = [line for line in self.lines() if line["step"] <= step]
        self.close()
        with written(self.path / LOG):
            put(self.path / LOG, "".join(json.dumps(line) + "\n" for line in kept))

    def close(self) -> None:
        """Let go of the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    # The checkpoint.

    def save(self, state: Mapping[str, Any]) -> None:
        """Put a checkpoint in the place of the one before."""
        save_state(dict(state), self.path / CHECKPOINT)

    def load(self, backend: str) -> dict[str, Any]:
        """The state of the last checkpoint.

        Raises
        ------
        TrainingError, CheckpointError
            There is none, it is damaged, or it was not written by a run.
        """
        path = self.path / CHECKPOINT
        if not path.exists():
            raise TrainingError(
                f"{self.path} has no checkpoint yet: the run ended before its first; start it anew elsewhere"
            )
        found: dict[str, Any] = load_state(path, backend)
        return found


def version_of(package: str) -> str:
    """The version of a package; of one that is not installed, but runs from its sources, "sources"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "sources"


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Say what could not be written, and that the checkpoint is whole."""
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"{path} cannot be written: {error.strerror or error}; the last checkpoint is whole: make room, and go on with "
            "--resume"
        ) from error


def put(path: Path, data: str | bytes) -> None:
    """Put a text, or bytes, in the place of a file, all or nothing."""
    with replacement(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)
