"""`minifuse demo`: a network learns to read digits; then the backends are compared on that very network."""

import json as json_
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import minifuse as mf

from .simulation import explain, is_simulated, shown
from .training import Result, network, train_digits

BATCH = 32  # digits that the backends are compared on
FEW = 4  # digits, where CUDA is simulated: there a step costs seconds
SECONDS = 0.5  # of measuring, for each backend
TRAINING = 1437  # digits to train on: four fifths


@dataclass(frozen=True)
class Course:
    """How much is learnt: the network's size, digits, and how they are taken."""

    hidden: int = 128
    digits: int = TRAINING
    batch_size: int = 64
    epochs: int = 20


SHORT = Course(32, 256, 8, 1)  # where CUDA is simulated: half a minute


@dataclass(frozen=True)
class Row:
    """One backend on the trained network: the largest deviations from float64, and the time of forward and backward."""

    backend: str
    logits: float
    gradients: float
    ms: float
    times_as_fast: float | None = None  # as the slowest; None where CUDA is simulated, which is no race
    digits: int = BATCH
    is_simulated: bool = False


def run(backend: str | None, epochs: int | None, seed: int, digits: int | None, json: bool) -> None:
    """Train, compare, and show it."""
    console = Console(quiet=json)
    usual = SHORT if is_simulated(backend) else Course()
    course = replace(usual, epochs=epochs or usual.epochs, digits=min(digits or usual.digits, TRAINING))
    console.print(
        f"[bold]minifuse {mf.__version__}[/]: 1,797 handwritten digits, 8 x 8 pixels; a 64-{course.hidden}-10 network"
    )
    if usual is SHORT:
        less = f"so a small network trains for {counted(course.epochs, 'epoch')} on {course.digits:,} of {TRAINING:,} digits"
        whole = f"--digits {TRAINING} --epochs {Course().epochs} takes an hour"
        console.print(f"{explain(less)} ({whole}.)", style="dim", highlight=False)
    result = train(backend, course, seed, console)
    speed = course.epochs * course.digits / result.seconds
    console.print(
        f"[bold green]{result.accuracy:.1%}[/] of held-out digits read right; {counted(course.epochs, 'epoch')} took "
        f"{result.seconds:.2f} s, {speed:,.0f} digits/s\n"
    )
    rows = compare(result.model, course.hidden)
    show(rows, console)
    if json:
        facts = {"accuracy": result.accuracy, "seconds": result.seconds, "losses": result.losses, "course": asdict(course)}
        print(json_.dumps(facts | {"backends": [asdict(row) for row in rows]}, indent=2))


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number} {what}{'s' * (number != 1)}"


def show(rows: Sequence[Row], console: Console) -> None:
    """Print how the backends compare."""
    console.print(table_of(rows))
    if any(row.is_simulated for row in rows):
        console.print(explain(f"on {FEW} digits instead of {BATCH}, to be compared and not to be fast"), style="dim")
    raced = [row for row in rows if row.times_as_fast is not None]
    fast, slow = min(raced, key=lambda r: r.ms), max(raced, key=lambda r: r.ms)
    console.print(f"The backends agree. {fast.backend} is {fast.times_as_fast:,.0f} times as fast as {slow.backend}.")
    console.print("\nNext: [bold]minifuse equivalence[/] compares every operator,")
    console.print("      [bold]minifuse trace matmul[/] takes a CUDA kernel apart,")
    console.print("      [bold]minifuse doctor[/] examines this machine.")


def train(backend: str | None, course: Course, seed: int, console: Console) -> Result:
    """Train with a progress bar."""
    columns = [
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=None, loss=float("nan"))

        def on_batch(done: int, count: int, loss: float) -> None:
            progress.update(task, completed=done, total=count, loss=loss)

        return train_digits(seed, course.epochs, on_batch, backend, course.digits, course.hidden, course.batch_size)


def compare(model: mf.nn.Module, hidden: int) -> list[Row]:
    """The network on every backend against the plain one in float64: what it says, its gradients, and its time."""
    state = {name: p.numpy().copy() for name, p in model.named_parameters()}
    names = mf.backends()
    digits = {name: FEW if is_simulated(name) else BATCH for name in names}
    judges = {count: evaluate(state, hidden, count, "python", "float64")[:2] for count in set(digits.values())}
    found = []
    for name, count in digits.items():
        logits, gradients, ms = evaluate(state, hidden, count, name, "float32")
        exact = judges[count]
        deviations = deviation([logits], [exact[0]]), deviation(gradients, exact[1])
        found.append(Row(name, *deviations, ms, digits=count, is_simulated=is_simulated(name)))
    slowest = max(row.ms for row in found if not row.is_simulated)
    return [row if row.is_simulated else replace(row, times_as_fast=slowest / row.ms) for row in found]


def evaluate(
    state: dict[str, npt.NDArray[Any]], hidden: int, count: int, backend: str, dtype: str
) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]], float]:
    """Logits, gradients of all parameters, and the median time of both in milliseconds, for the first digits."""
    x, y = [data.numpy()[:count] for data in mf.data.digits()]
    model = network(hidden).to(dtype, backend=backend)
    model.load_state_dict({name: mf.tensor(value, dtype, backend) for name, value in state.items()})
    inputs, targets = mf.tensor(x, dtype, backend), mf.tensor(y, backend=backend)
    is_slow = backend == "python" or is_simulated(backend)  # seconds a step: one is enough, and nothing is compiled
    times: list[float] = []
    while len(times) < 1 + (not is_slow) or (sum(times[1:]) < SECONDS and not is_slow):
        start = perf_counter()
        model.zero_grad()
        logits = model(inputs)
        mf.nn.cross_entropy(logits, targets).backward()
        mf.synchronize(backend)
        times.append(perf_counter() - start)
    gradients = [p.grad.numpy() for p in model.parameters() if p.grad is not None]
    return logits.numpy(), gradients, median(times[1:] or times) * 1e3


def deviation(got: Sequence[npt.NDArray[Any]], exact: Sequence[npt.NDArray[Any]]) -> float:
    """The largest |got - exact|; an AssertionError where that is more than float32 can explain."""
    worst = 0.0
    for a, b in zip(got, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max())))
        worst = max(worst, float(np.abs(a - b).max()))
    return worst


def table_of(rows: Sequence[Row]) -> Table:
    """The rows, for people."""
    table = Table(box=None, pad_edge=False, title=f"the same network on {BATCH} digits", title_justify="left")
    for name in ("backend", "logits", "gradients", "forward + backward", "speed"):
        table.add_column(name, justify="left" if name == "backend" else "right")
    for row in sorted(rows, key=lambda r: -r.ms):
        time = f"{row.ms:,.1f} ms" if row.ms >= 1 else f"{row.ms * 1e3:,.0f} us"
        speed = f"{row.times_as_fast:,.0f}x" if row.times_as_fast is not None else "-"
        table.add_row(shown(row.backend), f"± {row.logits:.0e}", f"± {row.gradients:.0e}", time, speed)
    return table
