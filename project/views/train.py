"""Training: a network that is trained while the page shows it, by an ordinary training loop, a few steps at a time.

A `Run` contains data, model, optimizer, and progress. `advance` does steps until its time is up, so that the page responds
soon; between two calls nothing runs. The page shows the decision boundary of the network, or the confusion matrix of digits,
and the losses.
"""

import copy
import inspect
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import MinifuseError
from minifuse.runtime.kernel_files import cache_folder
from minifuse.training.classification import classification_loss
from minifuse.training.loop import TrainingLoop
from minifuse.training.loop import train_step as step

from ..benchmarks.formatting import duration
from . import toy_datasets
from .cited_facts import DERIVED, MEASURED, Fact, Line
from .race import gpu_name
from .train_gradients import Gradients, gradients_of
from .train_gradients import facts as gradient_facts

DIGITS = "digits"
SETS = (*toy_datasets.NAMES, DIGITS)
ACTIVATIONS = {"ReLU": mf.nn.ReLU, "Tanh": mf.nn.Tanh}
OPTIMIZERS = ("SGD with momentum", "Adam")
CELLS = 12  # along each side of the picture of the boundary
MAX_MOMENTS = 32  # kept of a run for its replay; when there are more, every second one is deleted
SLICE_S = 0.2  # seconds of training between two updates of the page
SLICES = 25  # a run has at least this many slices, so that progress is visible
WORK = {"python": 30_000, "interpreter": 3_000}  # multiplications of a forward pass that take about half a second
AT_FIRST = 100_000  # multiplications that plain Python can do in the time of compiling a kernel
KEPT_TIMES = 200  # times of the last steps whose median is shown
drawing = Lock()  # all sessions draw initial weights from one generator


@dataclass(frozen=True)
class Settings:
    """The settings of a run; the same settings give the same run."""

    data: str = "circle"
    backend: str = "parallel"
    count: int = 120
    """Points of a toy set."""
    hidden: int = 16
    activation: str = "ReLU"
    optimizer: str = OPTIMIZERS[0]
    rate: float = 0.1
    batch: int = 32
    seed: int = 0

    @property
    def title(self) -> str:
        """The settings of the run in one line."""
        return (
            f"{self.data}, {self.hidden} hidden, {self.activation}, {self.optimizer}, rate {self.rate:g}, "
            f"batch {self.batch}, seed {self.seed}, {self.backend}"
        )


@dataclass(frozen=True)
class Curve:
    """The losses of a run, epoch by epoch, stored to compare it with another."""

    title: str
    losses: tuple[float, ...]
    accuracy: float
    """The share of held-out examples that are classified correctly."""


Batch = tuple[mf.Tensor, mf.Tensor]


@dataclass(frozen=True)
class Moment:
    """What the network said after an epoch, kept for the replay."""

    epoch: int
    steps: int
    shares: npt.NDArray[np.float32]
    """The probability of class 1 at the center of each cell; empty for digits."""
    read: npt.NDArray[np.int64]
    """The most likely class of each held-out example."""
    gradients: Gradients
    """The gradients of the last step; empty before the first one."""


@dataclass
class Run:
    """A network in training."""

    settings: Settings
    model: mf.nn.Module
    loader: mf.data.Loader
    loop: TrainingLoop
    train: Batch
    test: Batch
    losses: list[float] = field(default_factory=list)
    """The mean loss of each finished epoch."""
    times: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    """Seconds of the last steps."""
    under_way: list[float] = field(default_factory=list)
    """The losses of this epoch so far."""
    moments: list[Moment] = field(default_factory=list)
    """Kept after each epoch that is a multiple of `every`."""
    every: int = 1

    @property
    def steps(self) -> int:
        """The number of finished steps."""
        return self.loop.done

    @property
    def epochs(self) -> int:
        """The number of finished epochs."""
        return len(self.losses)

    def share(self, epochs: int) -> float:
        """Return the finished share of this many epochs, from 0 to 1."""
        return min(self.steps / len(self.loader) / epochs, 1.0)


def begin(settings: Settings) -> Run:
    """Return a run of an untrained network.

    Raises
    ------
    MinifuseError
        A setting is out of its range, or the steps would take too long where they are to run.
    """
    check_settings(settings)
    x, y = examples(settings)
    tensors = mf.tensor(x, backend=settings.backend), mf.tensor(y, backend=settings.backend)
    train, test = mf.data.split(*tensors, fraction=0.8, seed=settings.seed, stratify=tensors[1])
    with drawing:
        mf.manual_seed(settings.seed)
        model = network(x.shape[1], settings, 10 if settings.data == DIGITS else 2)
    model.to(backend=settings.backend)
    loader = mf.data.Loader(*train, batch_size=batch_size(settings), seed=settings.seed)
    optimizer = make_optimizer(model, settings)
    loop = TrainingLoop(model, optimizer, loader, lambda *batch: step(classification_loss, model, optimizer, None, *batch))
    return Run(settings, model, loader, loop, (train[0], train[1]), (test[0], test[1]))


def check_settings(settings: Settings) -> None:
    """Check that the settings are allowed on this page."""
    known = {"data": SETS, "backend": mf.backends(), "activation": ACTIVATIONS, "optimizer": OPTIMIZERS}
    for name, values in known.items():
        if getattr(settings, name) not in values:
            raise MinifuseError(f"{name} is {getattr(settings, name)!r}; expected one of {', '.join(values)}")
    for name, (low, high) in {"hidden": (1, 64), "batch": (1, 256), "rate": (0, 10), "seed": (0, 2**31 - 1)}.items():
        if not low <= getattr(settings, name) <= high:
            raise MinifuseError(f"{name} is {getattr(settings, name)}; expected {low} to {high}")
    if settings.data == DIGITS and is_slow(settings.backend):
        raise MinifuseError(
            f"digits on {settings.backend}: a step of them takes seconds in the interpreter; choose points of the plane, "
            "or another backend"
        )


def is_slow(backend: str) -> bool:
    """Return True if kernels run lane by lane in the interpreter."""
    device: Any = get_backend(backend)
    return not device.is_host and not device.has_roofline


def batch_size(settings: Settings) -> int:
    """Return the batch size: the requested one, or as many examples as a slow backend can do in a short time."""
    work = WORK.get("interpreter" if is_slow(settings.backend) else settings.backend)
    inputs, hidden, classes = (64, 0, 10) if settings.data == DIGITS else (2, settings.hidden, 2)
    each = settings.hidden * (inputs + hidden + classes)
    return settings.batch if work is None else min(settings.batch, max(work // each, 1))


def examples(settings: Settings) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the data."""
    return digits() if settings.data == DIGITS else toy_datasets.points(settings.data, settings.count, settings.seed)


@cache
def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the digits as arrays, loaded once."""
    x, y = mf.data.digits(backend="parallel")
    return x.numpy(), y.numpy()


def network(inputs: int, settings: Settings, classes: int) -> mf.nn.Module:
    """Return a network with two hidden layers for points, one for digits."""
    activation, hidden = ACTIVATIONS[settings.activation], settings.hidden
    first = [mf.nn.Linear(inputs, hidden), activation()]
    second = [mf.nn.Linear(hidden, hidden), activation()] if inputs == 2 else []
    return mf.nn.Sequential(*first, *second, mf.nn.Linear(hidden, classes))


def make_optimizer(model: mf.nn.Module, settings: Settings) -> mf.optim.Optimizer:
    """Return the optimizer; Adam's rate is a tenth of the setting, as is usual."""
    if settings.optimizer == "Adam":
        return mf.optim.Adam(model.parameters(), lr=settings.rate / 10)
    return mf.optim.SGD(model.parameters(), lr=settings.rate, momentum=0.9)


def advance(run: Run, epochs: int, seconds: float = SLICE_S) -> bool:
    """Train until `epochs` epochs are done in all, the time is up, or one of SLICES parts of the epochs is done.

    Returns
    -------
    bool
        Whether fewer than `epochs` epochs are done.

    Notes
    -----
    At least one step is done. A run in several calls computes exactly the numbers of a run in one call.
    """
    end = perf_counter() + seconds
    if not run.steps:
        keep_moment(run)
    goal = min(epochs, run.epochs + max(1, epochs // SLICES))
    for record in chain.from_iterable(run.loop.advance(goal * len(run.loader))):
        run.times.append(record["seconds"])
        run.under_way.append(record["loss"])
        if len(run.under_way) == len(run.loader):
            run.losses.append(sum(run.under_way) / len(run.under_way))
            run.under_way = []
            keep_moment(run)
        if perf_counter() >= end:
            break
    return run.epochs < epochs


def keep_moment(run: Run) -> None:
    """Keep what the network says now, if its epoch is one of those that are kept."""
    if run.epochs % run.every:
        return
    run.moments.append(look(run))
    if len(run.moments) > MAX_MOMENTS:
        run.every *= 2
        run.moments = [found for found in run.moments if found.epoch % run.every == 0]


def look(run: Run) -> Moment:
    """Ask the network for its predictions: of all cells, and of the held-out examples."""
    x = run.test[0].numpy()
    is_plane = run.settings.data != DIGITS
    shares = predict_shares(run, np.concatenate([centers(), x]) if is_plane else x)
    cells = shares[: -len(x), 1] if is_plane else shares[:0, 1]
    return Moment(run.epochs, run.steps, cells, shares[-len(x) :].argmax(1), gradients_of(run.model))


def curve(run: Run) -> Curve:
    """Return the curve that is kept of a run."""
    return Curve(f"{run.settings.title}, {run.epochs} epochs", tuple(run.losses), accuracy(run, run.test))


# Predictions.


def predict_shares(run: Run, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the probability of each class by softmax, (N, inputs) -> (N, classes).

    Notes
    -----
    The current weights are copied to "parallel", since a picture needs hundreds of predictions, which would take seconds on
    the slow backends. If the disk cache has no kernels, the initial weights of a small network are copied to "python"
    instead, so that the first picture does not wait for kernels to be compiled.
    """
    work = len(x) * sum(p.size for p in run.model.parameters())
    is_first = not run.steps and work <= AT_FIRST and not has_kernels()
    backend = "python" if is_first else "parallel"
    model = run.model
    if run.settings.backend != backend:
        model = copy.deepcopy(model).to(backend=backend)
    with mf.no_grad():
        shares = model(mf.tensor(np.ascontiguousarray(x), backend=backend)).softmax(1)
    probabilities: npt.NDArray[np.float32] = shares.numpy()
    return probabilities


def has_kernels() -> bool:
    """Return True if there are kernels in the disk cache."""
    folder = cache_folder()
    return folder is not None and folder.is_dir() and next(folder.iterdir(), None) is not None


def accuracy(run: Run, part: Batch) -> float:
    """Return the share of examples whose most likely class is the right one."""
    x, y = (tensor.numpy() for tensor in part)
    return float((predict_shares(run, x).argmax(1) == y).mean())


def confusion(run: Run, read: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the confusion matrix of held-out examples that were read so: true classes in rows, predictions in columns."""
    y = run.test[1].numpy()
    classes = 10 if run.settings.data == DIGITS else 2
    matrix = np.zeros((classes, classes), np.int64)
    np.add.at(matrix, (y, read), 1)
    return matrix


@cache
def centers() -> npt.NDArray[np.float32]:
    """Return the centers of the cells, row by row from the top: (CELLS * CELLS, 2)."""
    middles = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS * 2 - 1
    return np.stack(np.meshgrid(middles, middles[::-1]), -1).reshape(-1, 2).astype(np.float32)


def share_right(run: Run, found: Moment) -> float:
    """Return the share of held-out examples whose most likely class was the right one."""
    return float((found.read == run.test[1].numpy()).mean())


def sentence(run: Run, found: Moment | None = None) -> str:
    """Say how well a run classifies: in a moment, or now."""
    found = found or look(run)
    if not found.steps:
        return f"{name_data(run)}: the network has its first weights, and has learned nothing yet."
    right = f"{share_right(run, found):.1%} of the {len(run.test[1])} held-out examples are told right"
    return f"{name_data(run)}, after {found.epoch} epochs: {right}."


def name_data(run: Run) -> str:
    """Name the data."""
    data = run.settings.data
    return "Handwritten digits" if data == DIGITS else f"Points {toy_datasets.WORDS[data]}"


# Beside the picture.


def facts(run: Run) -> list[Fact]:
    """Return facts about a run."""
    numbers = sum(p.size for p in run.model.parameters())
    batch, name = batch_size(run.settings), run.settings.backend
    where = ", ".join(filter(None, (repr(get_backend(name)), gpu_name(name))))
    cut = f"asked were {run.settings.batch}: each backend gets a step that ends soon" if batch < run.settings.batch else ""
    known = [
        Fact("backend", where, DERIVED, "what runs the steps; pictures ask the same weights on the CPU"),
        Fact("parameters", f"{numbers:,}", DERIVED, "the numbers that are learned"),
        Fact("examples", f"{len(run.train[1])} to learn from, {len(run.test[1])} held out", DERIVED, "four fifths, by seed"),
        Fact("examples a step", batch, DERIVED, cut),
        Fact("steps", f"{run.steps:,}", DERIVED, f"{len(run.loader)} an epoch"),
        Fact("epochs", run.epochs, DERIVED),
    ]
    if run.losses:
        known.append(Fact("mean loss", f"{run.losses[-1]:.4f}", DERIVED, "of the last epoch, while it learned"))
    if run.steps:  # before training, the accuracy is chance
        known += [
            Fact("right, of those learned from", f"{accuracy(run, run.train):.1%}", DERIVED, "by the weights as they are"),
            Fact("right, of those held out", f"{accuracy(run, run.test):.1%}", DERIVED, "by the weights as they are"),
        ]
    if run.times:
        median = sorted(run.times)[len(run.times) // 2]
        why = f"the median of the last {len(run.times)} steps, on this machine, just now"
        known.append(Fact("time of a step", duration(median), MEASURED, why))
    return known + gradient_facts(gradients_of(run.model), run.steps // len(run.loader) + bool(run.under_way))


def source(run: Run) -> list[Line]:
    """Return the body of the loop, with how often each line ran."""
    lines, first = inspect.getsourcelines(step)
    body = min(line for *_, line in step.__code__.co_lines() if line and line > first)  # behind signature and docstring
    counts = (("ran", run.steps),)
    return [Line(k, line.rstrip("\n"), counts if k >= body else ()) for k, line in enumerate(lines, first)]


def losses(runs: list[Curve]) -> list[dict[str, Any]]:
    """Return the losses of runs as rows: run, epoch, loss."""
    return [
        {"run": found.title, "epoch": epoch, "loss": loss}
        for found in runs
        for epoch, loss in enumerate(found.losses, start=1)
    ]


def compare_runs(now: Curve, before: Curve | None) -> list[dict[str, Any]]:
    """Return a row for each of the two runs."""
    return [
        {
            "run": name,
            "held out, right": f"{found.accuracy:.1%}",
            "epochs": len(found.losses),
            "last loss": f"{found.losses[-1]:.4f}" if found.losses else "",
            "lowest loss": f"{min(found.losses):.4f}" if found.losses else "",
            "settings": found.title,
        }
        for name, found in (("now", now), ("kept", before))
        if found is not None
    ]
