"""A run that is trained while its page stays responsive: slice by slice of steps, in a thread.

A page starts a slice and waits for a moment. If the slice has not ended then, because a step is slow in the interpreter, or
kernels are being compiled, the page draws the last snapshot, and polls again. Snapshots are taken between slices only, so
each shows one state of the network.
"""

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from threading import Thread

from . import train, train_pictures
from .cited_facts import Fact
from .picture import Picture
from .train import Curve, Run, Settings

PATIENCE_S = 0.2  # seconds that a page waits for a slice


@dataclass(frozen=True)
class Seen:
    """A snapshot of a run between two slices."""

    curve: Curve
    picture: Picture
    facts: tuple[Fact, ...]
    epochs: int
    steps: int
    share: float
    """The finished fraction of the steps, from 0 to 1."""


class Training:
    """A run, its running slice, and its last snapshot."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seen: Seen | None = None
        self._seen_state: object = None  # (steps, epochs, chosen) that `seen` shows
        self._thread: Thread | None = None
        self._error: Exception | None = None

    @property
    def is_idle(self) -> bool:
        """True if no slice is running."""
        return self._thread is None or not self._thread.is_alive()

    def go(self, epochs: int) -> None:
        """Start a slice, unless a slice is running or all epochs are done."""
        if self.is_idle and self.run.epochs < epochs:
            self._start(train.advance, self.run, epochs)

    def prepare(self, epochs: int) -> None:
        """Compute the first picture in the background, because kernels may have to be compiled for it."""
        if self.is_idle and self.seen is None:
            self._start(self._look, epochs, None)

    def _start(self, act: Callable[..., object], *arguments: object) -> None:
        def work() -> None:
            try:
                act(*arguments)
            except Exception as error:  # raised by `wait`, in the thread of the page
                self._error = error

        self._thread = Thread(target=work, name="minifuse-train", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = PATIENCE_S) -> bool:
        """Wait at most some seconds for the running slice, and return `is_idle`.

        Raises
        ------
        Exception
            The exception that ended the slice.
        """
        if self._thread is not None:
            self._thread.join(seconds)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self.is_idle

    def look(self, epochs: int, chosen: str | None = None) -> Seen:
        """Return the state of the run, or its state before the running slice."""
        if self.seen is None:
            self.prepare(epochs)
            self.wait(None)
        if self.is_idle and self._seen_state != (self.run.steps, epochs, chosen):
            self._look(epochs, chosen)
        assert self.seen is not None
        return self.seen

    def _look(self, epochs: int, chosen: str | None) -> None:
        run = self.run
        picture, facts = train_pictures.picture(run, chosen), tuple(train.facts(run))
        self.seen = Seen(train.curve(run), picture, facts, run.epochs, run.steps, run.share(epochs))
        self._seen_state = run.steps, epochs, chosen


def command(settings: Settings, epochs: int) -> str:
    """Return the terminal command for the same training from the start; default options are omitted."""
    defaults, names = Settings(backend=settings.backend), {"count": "points"}
    options = [
        f"--{names.get(name, name)} {quote(str(value))}"
        for name, value in vars(settings).items()
        if name != "data" and value != getattr(defaults, name)
    ]
    return " ".join(["minifuse train", settings.data, f"--backend {settings.backend}", f"--epochs {epochs}", *options])
