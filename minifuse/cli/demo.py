"""`minifuse demo`: train a network to classify digits, then compare the backends on this network."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import minifuse as mf

from ..recipes.mlp import make_network
from .output import print_json
from .simulation import explain_simulation, format_backend, is_simulated
from .training import TrainingResult, train_digits

COMPARED_DIGITS = 32  # digits used to compare the backends
SIMULATED_DIGITS = 4  # digits used if CUDA is simulated, where a step takes seconds
MEASURE_S = 0.5  # seconds of measurements for each backend
TRAINING_DIGITS = 1437  # four fifths of the digits


@dataclass(frozen=True)
class DemoSize:
    """Size of the network and the data, and how long to train."""

    hidden: int = 128
    digits: int = TRAINING_DIGITS
    batch_size: int = 64
    epochs: int = 20


SIMULATED_SIZE = DemoSize(32, 256, 8, 1)  # if CUDA is simulated: half a minute


@dataclass(frozen=True)
class BackendResult:
    """Results of one backend: largest deviations from float64, and the time of forward and backward."""

    backend: str
    logits: float
    gradients: float
    ms: float
    times_as_fast: float | None = None  # relative to the slowest; None if CUDA is simulated
    digits: int = COMPARED_DIGITS
    is_simulated: bool = False


def run(backend: str | None, epochs: int | None, seed: int, digits: int | None, json: bool) -> None:
    """Train, compare, and print the results."""
    console = Console(quiet=json)
    default_size = SIMULATED_SIZE if is_simulated(backend) else DemoSize()
    size = replace(
        default_size, epochs=epochs or default_size.epochs, digits=min(digits or default_size.digits, TRAINING_DIGITS)
    )
    console.print(
        f"[bold]minifuse {mf.__version__}[/]: 1,797 handwritten digits, 8 x 8 pixels; a 64-{size.hidden}-10 network"
    )
    if default_size is SIMULATED_SIZE:
        duration = format_count(size.epochs, "epoch")
        consequence = f"so a small network trains for {duration} on {size.digits:,} of {TRAINING_DIGITS:,} digits"
        full_run = f"--digits {TRAINING_DIGITS} --epochs {DemoSize().epochs} takes an hour"
        console.print(f"{explain_simulation(consequence)} ({full_run}.)", style="dim", highlight=False)
    result = train(backend, size, seed, console)
    speed = size.epochs * size.digits / result.seconds
    console.print(
        f"[bold green]{result.accuracy:.1%}[/] of test digits classified correctly; {format_count(size.epochs, 'epoch')} "
        f"took {result.seconds:.2f} s, {speed:,.0f} digits/s\n"
    )
    rows = compare(result.model, size.hidden)
    show(rows, console)
    if json:
        facts = {"accuracy": result.accuracy, "seconds": result.seconds, "losses": result.losses, "course": asdict(size)}
        print_json(facts | {"backends": [asdict(row) for row in rows]})


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun."""
    return f"{number} {noun}{'s' * (number != 1)}"


def show(rows: Sequence[BackendResult], console: Console) -> None:
    """Print the comparison of the backends."""
    console.print(comparison_table(rows))
    if any(row.is_simulated for row in rows):
        console.print(
            explain_simulation(f"on {SIMULATED_DIGITS} digits instead of {COMPARED_DIGITS}, to compare results, not speed"),
            style="dim",
        )
    timed = [row for row in rows if row.times_as_fast is not None]
    fastest, slowest = min(timed, key=lambda r: r.ms), max(timed, key=lambda r: r.ms)
    console.print(
        f"The backends agree. {fastest.backend} is {fastest.times_as_fast:,.0f} times as fast as {slowest.backend}."
    )
    console.print("\nNext: [bold]minifuse equivalence[/] compares every operator,")
    console.print("      [bold]minifuse trace matmul[/] shows the memory accesses of a CUDA kernel,")
    console.print("      [bold]minifuse doctor[/] checks this machine.")


def train(backend: str | None, size: DemoSize, seed: int, console: Console) -> TrainingResult:
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

        return train_digits(seed, size.epochs, on_batch, backend, size.digits, size.hidden, size.batch_size)


def compare(model: mf.nn.Module, hidden: int) -> list[BackendResult]:
    """Compare logits and gradients of each backend with the python backend in float64, and time them."""
    state = {name: p.numpy().copy() for name, p in model.named_parameters()}
    names = mf.backends()
    digit_counts = {name: SIMULATED_DIGITS if is_simulated(name) else COMPARED_DIGITS for name in names}
    references = {count: evaluate(state, hidden, count, "python", "float64")[:2] for count in set(digit_counts.values())}
    results = []
    for name, count in digit_counts.items():
        logits, gradients, ms = evaluate(state, hidden, count, name, "float32")
        reference = references[count]
        deviations = max_deviation([logits], [reference[0]]), max_deviation(gradients, reference[1])
        results.append(BackendResult(name, *deviations, ms, digits=count, is_simulated=is_simulated(name)))
    slowest = max(row.ms for row in results if not row.is_simulated)
    return [row if row.is_simulated else replace(row, times_as_fast=slowest / row.ms) for row in results]


def evaluate(
    state: dict[str, np.ndarray], hidden: int, count: int, backend: str, dtype: str
) -> tuple[np.ndarray, list[np.ndarray], float]:
    """Return logits, gradients of all parameters, and the median time of both in milliseconds, for the first digits."""
    x, y = [data.numpy()[:count] for data in mf.data.digits()]
    model = make_network(hidden).to(dtype, backend=backend)
    model.load_state_dict({name: mf.tensor(value, dtype, backend) for name, value in state.items()})
    inputs, targets = mf.tensor(x, dtype, backend), mf.tensor(y, backend=backend)
    is_slow = backend == "python" or is_simulated(backend)  # one step is enough: it takes seconds, and compiles nothing
    times: list[float] = []
    while len(times) < 1 + (not is_slow) or (sum(times[1:]) < MEASURE_S and not is_slow):
        start = perf_counter()
        model.zero_grad()
        logits = model(inputs)
        mf.nn.cross_entropy(logits, targets).backward()
        mf.synchronize(backend)
        times.append(perf_counter() - start)
    gradients = [p.grad.numpy() for p in model.parameters() if p.grad is not None]
    return logits.numpy(), gradients, median(times[1:] or times) * 1e3


def max_deviation(results: Sequence[np.ndarray], references: Sequence[np.ndarray]) -> float:
    """Return the largest |results - references|; raise AssertionError if rounding to float32 does not explain it."""
    worst = 0.0
    for a, b in zip(results, references, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max())))
        worst = max(worst, float(np.abs(a - b).max()))
    return worst


def comparison_table(rows: Sequence[BackendResult]) -> Table:
    """Return the results as a table."""
    table = Table(box=None, pad_edge=False, title=f"the same network on {COMPARED_DIGITS} digits", title_justify="left")
    for name in ("backend", "logits", "gradients", "forward + backward", "speed"):
        table.add_column(name, justify="left" if name == "backend" else "right")
    for row in sorted(rows, key=lambda r: -r.ms):
        time = f"{row.ms:,.1f} ms" if row.ms >= 1 else f"{row.ms * 1e3:,.0f} us"
        speed = f"{row.times_as_fast:,.0f}x" if row.times_as_fast is not None else "-"
        table.add_row(format_backend(row.backend), f"± {row.logits:.0e}", f"± {row.gradients:.0e}", time, speed)
    return table
