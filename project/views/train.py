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
from .picture import IDLE, LOAD, OTHER, STORE, Cell, Grid, Picture
from .race import gpu_name

DIGITS = "digits"
SETS = (*toy_datasets.NAMES, DIGITS)
ACTIVATIONS = {"ReLU": mf.nn.ReLU, "Tanh": mf.nn.Tanh}
OPTIMIZERS = ("SGD with momentum", "Adam")
CELLS = 12  # along each side of the picture of the boundary
UNSURE = 0.2  # a probability that differs by less than this from one half is drawn as undecided
SLICE_S = 0.2  # seconds of training between two updates of the page
SLICES = 25  # a run has at least this many slices, so that progress is visible
WORK = {"python": 30_000, "interpreter": 3_000}  # multiplications of a forward pass that take about half a second
AT_FIRST = 100_000  # multiplications that plain Python can do in the time of compiling a kernel
KEPT_TIMES = 200  # times of the last steps whose median is shown
DRAWN_DIGITS = 2
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
    goal = min(epochs, run.epochs + max(1, epochs // SLICES))
    for record in chain.from_iterable(run.loop.advance(goal * len(run.loader))):
        run.times.append(record["seconds"])
        run.under_way.append(record["loss"])
        if len(run.under_way) == len(run.loader):
            run.losses.append(sum(run.under_way) / len(run.under_way))
            run.under_way = []
        if perf_counter() >= end:
            break
    return run.epochs < epochs


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


def confusion(run: Run) -> npt.NDArray[np.int64]:
    """Return the confusion matrix of the held-out examples: true classes in rows, predictions in columns."""
    x, y = (tensor.numpy() for tensor in run.test)
    classes = 10 if run.settings.data == DIGITS else 2
    matrix = np.zeros((classes, classes), np.int64)
    np.add.at(matrix, (y, predict_shares(run, x).argmax(1)), 1)
    return matrix


# Pictures.


def picture(run: Run, chosen: str | None = None) -> Picture:
    """Draw the decision boundary of a toy set, or the confusion matrix of digits."""
    return confusion_picture(run, chosen) if run.settings.data == DIGITS else boundary(run)


def boundary(run: Run) -> Picture:
    """Draw the square in cells, with the prediction at the center of each, and the points in it."""
    middles = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS * 2 - 1
    places = np.stack(np.meshgrid(middles, middles[::-1]), -1).reshape(-1, 2).astype(np.float32)
    shares = predict_shares(run, places)[:, 1].reshape(CELLS, CELLS)
    inside: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    for part, is_test in ((run.train, False), (run.test, True)):
        x, y = (tensor.numpy() for tensor in part)
        for (across, up), which in zip(x, y, strict=True):
            row, column = CELLS - 1 - cell_index(float(up)), cell_index(float(across))
            inside.setdefault((row, column), []).append((int(which), is_test))
    cells = []
    for row, column in np.ndindex(CELLS, CELLS):
        share, found = float(shares[row, column]), inside.get((row, column), [])
        where = f"x {places[row * CELLS + column, 0]:.2f}, y {places[row * CELLS + column, 1]:.2f}"
        label = f"{where}: class 1 is {share:.0%} likely; {describe_points(found)}"
        cells.append(Cell(row, column, signs(found), label, cell_kind(share)))
    names = tuple(f"{x:.1f}" for x in middles)
    title = "blue: class 0, orange: class 1, hatched: undecided; ○ and ●: their points"
    grid = Grid("boundary", title, CELLS, CELLS, tuple(cells), names[::-1], names)
    words = ((LOAD, "class 0"), (STORE, "class 1"), (IDLE, "undecided"), (OTHER, "no number"))
    return Picture(sentence(run), (grid,), words=words)


def cell_index(x: float) -> int:
    """Return the row or column of the cell of a coordinate."""
    return min(max(int((x + 1) / 2 * CELLS), 0), CELLS - 1)


def cell_kind(share: float) -> str:
    """Return the kind of a cell, by the probability of class 1."""
    if not np.isfinite(share):
        return OTHER
    return IDLE if abs(share - 0.5) < UNSURE else STORE if share > 0.5 else LOAD


def signs(points: list[tuple[int, bool]]) -> str:
    """Format points as at most two signs, or a number and a sign."""
    classes = [which for which, _ in points]
    if len(classes) <= 2:
        return "".join("○●"[which] for which in classes)
    both = "◐" if len(set(classes)) == 2 else "○●"[classes[0]]
    return f"{len(classes)}{both}"


def describe_points(points: list[tuple[int, bool]]) -> str:
    """Describe the points of a cell."""
    if not points:
        return "no point"
    parts = []
    for key in dict.fromkeys(sorted(points)):
        n = points.count(key)
        parts.append(f"{n} point{'s' * (n > 1)} of class {key[0]}{', held out' if key[1] else ''}")
    return "; ".join(parts)


def confusion_picture(run: Run, chosen: str | None = None) -> Picture:
    """Draw the confusion matrix of the held-out digits, and some of the digits."""
    matrix = confusion(run)
    cells = list[Cell]()
    for (actual, predicted), n in np.ndenumerate(matrix):
        kind = "" if not n else LOAD if actual == predicted else STORE
        label = f"{n} of the digit {actual} read as {predicted}"
        cells.append(Cell(actual, predicted, str(n) if n else "", label, kind, (confusion_link(actual, predicted),)))
    names = tuple(map(str, range(10)))
    grid = Grid("confusion", "rows: what it is; columns: what it was read as", 10, 10, tuple(cells), names, names)
    words = ((LOAD, "read right"), (STORE, "misread"), (OTHER, "ink"))
    return Picture(sentence(run), (grid, *drawn_digits(run, chosen)), words=words)


def confusion_link(actual: int, predicted: int) -> str:
    """Return the link of a cell of the confusion matrix."""
    return f"is{actual}read{predicted}"


def drawn_digits(run: Run, chosen: str | None) -> list[Grid]:
    """Draw held-out digits of the chosen cell; without one, the first misclassified digits, or the first of all."""
    x, y = (tensor.numpy() for tensor in run.test)
    read = predict_shares(run, x).argmax(1)
    indices = (
        [k for k in range(len(y)) if confusion_link(int(y[k]), int(read[k])) == chosen]
        or list(np.flatnonzero(read != y))
        or [0]
    )
    return [
        Grid(
            f"digit{n}",
            f"held-out digit {k}: a {y[k]}, read as {read[k]}",
            8,
            8,
            tuple(
                Cell(
                    row,
                    column,
                    str(ink) if ink else "",
                    f"row {row}, column {column}, ink {ink} of 16",
                    OTHER if ink else "",
                )
                for (row, column), ink in np.ndenumerate(np.rint(x[k] * 16).astype(int).reshape(8, 8))
            ),
        )
        for n, k in enumerate(indices[:DRAWN_DIGITS])
    ]


def sentence(run: Run) -> str:
    """Summarize the picture."""
    if not run.steps:
        return f"{name_data(run)}: the network has its first weights, and has learned nothing yet."
    loss = f", mean loss {run.losses[-1]:.4f}" if run.losses else ""
    right = f"{accuracy(run, run.test):.1%} of the {len(run.test[1])} held-out examples are told right"
    return f"{name_data(run)}: after {run.epochs} epochs{loss}; {right}."


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
    return known


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
