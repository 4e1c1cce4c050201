"""Training: a network that learns before one's eyes, by the loop that a user would write, a few steps at a time.

A `Run` holds all of it: data, model, optimizer, where it stands. `advance` takes steps until its time is up, so that
whoever waits gets an answer soon; between two calls nothing runs. Shown are where the network draws its boundary, or
which digits it takes for which, and the losses.
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
from minifuse.runtime.kernel_cache import cache_folder
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
CELLS = 12  # of the boundary, along each side
UNSURE = 0.2  # a share nearer than this to one half is drawn as undecided
SLICE_S = 0.2  # of steps at a time
SLICES = 25  # at least so many until the end, so that one sees it happen
WORK = {"python": 30_000, "interpreter": 3_000}  # multiplications of a step, forward, that end in about half a second
AT_FIRST = 100_000  # multiplications that plain Python does before a kernel is compiled
KEPT_TIMES = 200  # of the last steps, of which the median is shown
DRAWN_DIGITS = 2
drawing = Lock()  # the first weights come from one generator for all sessions


@dataclass(frozen=True)
class Settings:
    """What makes a run what it is; the same settings give the same run."""

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
        """What one calls the run."""
        return (
            f"{self.data}, {self.hidden} hidden, {self.activation}, {self.optimizer}, rate {self.rate:g}, "
            f"batch {self.batch}, seed {self.seed}, {self.backend}"
        )


@dataclass(frozen=True)
class Curve:
    """The losses of a run, epoch by epoch, kept to compare with another."""

    title: str
    losses: tuple[float, ...]
    accuracy: float
    """The share of held-out examples that were told right."""


Batch = tuple[mf.Tensor, mf.Tensor]


@dataclass
class Run:
    """A network on its way."""

    settings: Settings
    model: mf.nn.Module
    loader: mf.data.Loader
    loop: TrainingLoop
    train: Batch
    test: Batch
    losses: list[float] = field(default_factory=list)
    """The mean of each epoch that is done."""
    times: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    """Seconds of the last steps."""
    under_way: list[float] = field(default_factory=list)
    """The losses of this epoch so far."""

    @property
    def steps(self) -> int:
        """How many are done."""
        return self.loop.done

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.losses)

    def share(self, epochs: int) -> float:
        """How much is done of so many epochs, from 0 to 1."""
        return min(self.steps / len(self.loader) / epochs, 1.0)


def begin(settings: Settings) -> Run:
    """A network with its first weights, which has seen nothing yet.

    Raises
    ------
    MinifuseError
        A setting is out of its range, or the steps would take too long where they are to run.
    """
    refuse(settings)
    x, y = examples(settings)
    tensors = mf.tensor(x, backend=settings.backend), mf.tensor(y, backend=settings.backend)
    train, test = mf.data.split(*tensors, fraction=0.8, seed=settings.seed, stratify=tensors[1])
    with drawing:
        mf.manual_seed(settings.seed)
        model = network(x.shape[1], settings, 10 if settings.data == DIGITS else 2)
    model.to(backend=settings.backend)
    loader = mf.data.Loader(*train, batch_size=batch_of(settings), seed=settings.seed)
    optimizer = optimizer_of(model, settings)
    loop = TrainingLoop(model, optimizer, loader, lambda *batch: step(classification_loss, model, optimizer, None, *batch))
    return Run(settings, model, loader, loop, (train[0], train[1]), (test[0], test[1]))


def refuse(settings: Settings) -> None:
    """Raise where a setting is not one that can be shown here."""
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
    """Whether kernels run lane by lane in the interpreter."""
    found: Any = get_backend(backend)
    return not found.is_host and not found.has_roofline


def batch_of(settings: Settings) -> int:
    """Examples a step: as asked, or as many as a slow backend can do while somebody waits."""
    work = WORK.get("interpreter" if is_slow(settings.backend) else settings.backend)
    inputs, hidden, classes = (64, 0, 10) if settings.data == DIGITS else (2, settings.hidden, 2)
    each = settings.hidden * (inputs + hidden + classes)
    return settings.batch if work is None else min(settings.batch, max(work // each, 1))


def examples(settings: Settings) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The data."""
    return digits() if settings.data == DIGITS else toy_datasets.points(settings.data, settings.count, settings.seed)


@cache
def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The digits as arrays, read once."""
    x, y = mf.data.digits(backend="parallel")
    return x.numpy(), y.numpy()


def network(inputs: int, settings: Settings, classes: int) -> mf.nn.Module:
    """Two hidden layers for points, one for digits, which are easier than they look."""
    activation, hidden = ACTIVATIONS[settings.activation], settings.hidden
    first = [mf.nn.Linear(inputs, hidden), activation()]
    second = [mf.nn.Linear(hidden, hidden), activation()] if inputs == 2 else []
    return mf.nn.Sequential(*first, *second, mf.nn.Linear(hidden, classes))


def optimizer_of(model: mf.nn.Module, settings: Settings) -> mf.optim.Optimizer:
    """What changes the weights; Adam's rate is a tenth, as one sets it."""
    if settings.optimizer == "Adam":
        return mf.optim.Adam(model.parameters(), lr=settings.rate / 10)
    return mf.optim.SGD(model.parameters(), lr=settings.rate, momentum=0.9)


def advance(run: Run, epochs: int, seconds: float = SLICE_S) -> bool:
    """Train on until `epochs` are done in all, the time is up, or a part of them is done that is worth a look.

    Returns
    -------
    bool
        Whether something is left to do.

    Notes
    -----
    At least one step is taken. Stopping and going on gives the very numbers of a run that was never stopped.
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
    """What is kept of a run."""
    return Curve(f"{run.settings.title}, {run.epochs} epochs", tuple(run.losses), accuracy(run, run.test))


# What the network says.


def told(run: Run, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The share that the network gives each class, (N, inputs) -> (N, classes).

    Notes
    -----
    Asked on "parallel", with the weights as they are: a picture wants hundreds of answers, which would take seconds on
    the slow backends. Where no kernel was ever compiled, the first weights of a small network are asked on "python", which
    has nothing to compile: the first picture is there before the kernels are.
    """
    work = len(x) * sum(p.size for p in run.model.parameters())
    is_first = not run.steps and work <= AT_FIRST and not has_kernels()
    backend = "python" if is_first else "parallel"
    model = run.model
    if run.settings.backend != backend:
        model = copy.deepcopy(model).to(backend=backend)
    with mf.no_grad():
        shares = model(mf.tensor(np.ascontiguousarray(x), backend=backend)).softmax(1)
    found: npt.NDArray[np.float32] = shares.numpy()
    return found


def has_kernels() -> bool:
    """Whether some kernel was compiled before, and kept."""
    folder = cache_folder()
    return folder is not None and folder.is_dir() and next(folder.iterdir(), None) is not None


def accuracy(run: Run, part: Batch) -> float:
    """The share of examples whose most likely class is the right one."""
    x, y = (tensor.numpy() for tensor in part)
    return float((told(run, x).argmax(1) == y).mean())


def confusion(run: Run) -> npt.NDArray[np.int64]:
    """How many held-out examples of each class, by row, were taken for each, by column."""
    x, y = (tensor.numpy() for tensor in run.test)
    classes = 10 if run.settings.data == DIGITS else 2
    found = np.zeros((classes, classes), np.int64)
    np.add.at(found, (y, told(run, x).argmax(1)), 1)
    return found


# Pictures.


def picture(run: Run, chosen: str | None = None) -> Picture:
    """The boundary of a toy set; of digits, which were taken for which."""
    return misread(run, chosen) if run.settings.data == DIGITS else boundary(run)


def boundary(run: Run) -> Picture:
    """The square in cells: what the network says in the middle of each, and the points that lie there."""
    middles = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS * 2 - 1
    places = np.stack(np.meshgrid(middles, middles[::-1]), -1).reshape(-1, 2).astype(np.float32)
    shares = told(run, places)[:, 1].reshape(CELLS, CELLS)
    inside: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    for part, is_test in ((run.train, False), (run.test, True)):
        x, y = (tensor.numpy() for tensor in part)
        for (across, up), which in zip(x, y, strict=True):
            row, column = CELLS - 1 - placed(float(up)), placed(float(across))
            inside.setdefault((row, column), []).append((int(which), is_test))
    cells = []
    for row, column in np.ndindex(CELLS, CELLS):
        share, found = float(shares[row, column]), inside.get((row, column), [])
        where = f"x {places[row * CELLS + column, 0]:.2f}, y {places[row * CELLS + column, 1]:.2f}"
        label = f"{where}: class 1 is {share:.0%} likely; {counted(found)}"
        cells.append(Cell(row, column, signs(found), label, kind_of(share)))
    names = tuple(f"{x:.1f}" for x in middles)
    title = "blue: class 0, orange: class 1, hatched: undecided; ○ and ●: their points"
    grid = Grid("boundary", title, CELLS, CELLS, tuple(cells), names[::-1], names)
    words = ((LOAD, "class 0"), (STORE, "class 1"), (IDLE, "undecided"), (OTHER, "no number"))
    return Picture(sentence(run), (grid,), words=words)


def placed(x: float) -> int:
    """The cell of a coordinate."""
    return min(max(int((x + 1) / 2 * CELLS), 0), CELLS - 1)


def kind_of(share: float) -> str:
    """How a cell looks, by what the network gives class 1."""
    if not np.isfinite(share):
        return OTHER
    return IDLE if abs(share - 0.5) < UNSURE else STORE if share > 0.5 else LOAD


def signs(found: list[tuple[int, bool]]) -> str:
    """Points as one draws them: at most two, then a number."""
    classes = [which for which, _ in found]
    if len(classes) <= 2:
        return "".join("○●"[which] for which in classes)
    both = "◐" if len(set(classes)) == 2 else "○●"[classes[0]]
    return f"{len(classes)}{both}"


def counted(found: list[tuple[int, bool]]) -> str:
    """Points in words."""
    if not found:
        return "no point"
    parts = []
    for key in dict.fromkeys(sorted(found)):
        n = found.count(key)
        parts.append(f"{n} point{'s' * (n > 1)} of class {key[0]}{', held out' if key[1] else ''}")
    return "; ".join(parts)


def misread(run: Run, chosen: str | None = None) -> Picture:
    """Which held-out digits were taken for which, and some of them as they were written."""
    found = confusion(run)
    cells = list[Cell]()
    for (is_, told_), n in np.ndenumerate(found):
        kind = "" if not n else LOAD if is_ == told_ else STORE
        label = f"{n} of the digit {is_} read as {told_}"
        cells.append(Cell(is_, told_, str(n) if n else "", label, kind, (pair(is_, told_),)))
    names = tuple(map(str, range(10)))
    grid = Grid("confusion", "rows: what it is; columns: what it was read as", 10, 10, tuple(cells), names, names)
    words = ((LOAD, "read right"), (STORE, "misread"), (OTHER, "ink"))
    return Picture(sentence(run), (grid, *drawn_digits(run, chosen)), words=words)


def pair(is_: int, told_: int) -> str:
    """The name of a cell of the confusion."""
    return f"is{is_}read{told_}"


def drawn_digits(run: Run, chosen: str | None) -> list[Grid]:
    """Held-out digits of the cell that was chosen; else of the first that were misread, or the first of all."""
    x, y = (tensor.numpy() for tensor in run.test)
    read = told(run, x).argmax(1)
    wanted = [k for k in range(len(y)) if pair(int(y[k]), int(read[k])) == chosen] or list(np.flatnonzero(read != y)) or [0]
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
        for n, k in enumerate(wanted[:DRAWN_DIGITS])
    ]


def sentence(run: Run) -> str:
    """What is to be seen."""
    if not run.steps:
        return f"{start_of(run)}: the network has its first weights, and has learned nothing yet."
    loss = f", mean loss {run.losses[-1]:.4f}" if run.losses else ""
    right = f"{accuracy(run, run.test):.1%} of the {len(run.test[1])} held-out examples are told right"
    return f"{start_of(run)}: after {run.epochs} epochs{loss}; {right}."


def start_of(run: Run) -> str:
    """What the data are."""
    data = run.settings.data
    return "Handwritten digits" if data == DIGITS else f"Points {toy_datasets.WORDS[data]}"


# Beside the picture.


def facts(run: Run) -> list[Fact]:
    """What is known of a run."""
    numbers = sum(p.size for p in run.model.parameters())
    batch, name = batch_of(run.settings), run.settings.backend
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
    if run.steps:  # before, it is chance
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
    """The body of the loop, and how often each line ran."""
    lines, first = inspect.getsourcelines(step)
    return [Line(first + k, line.rstrip("\n"), (("ran", run.steps),) if k > 1 else ()) for k, line in enumerate(lines)]


def losses(runs: list[Curve]) -> list[dict[str, Any]]:
    """The losses of runs as rows: run, epoch, loss."""
    return [
        {"run": found.title, "epoch": epoch, "loss": loss}
        for found in runs
        for epoch, loss in enumerate(found.losses, start=1)
    ]


def compared(now: Curve, before: Curve | None) -> list[dict[str, Any]]:
    """Two runs beside each other: a row each."""
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
