"""`minifuse demo`: a network learns to read digits; then the backends are compared on that very network."""

import json as json_
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import minifuse as mf

from .training import Result, network, train_digits

BATCH = 32  # digits that the backends are compared on
SECONDS = 0.5  # of measuring, for each backend


@dataclass(frozen=True)
class Row:
    """One backend on the trained network: the largest deviations from float64, and the time of forward and backward."""

    backend: str
    logits: float
    gradients: float
    ms: float
    times_as_fast: float = 1.0  # as the slowest


def run(backend: str | None, epochs: int, seed: int, json: bool) -> None:
    """Train, compare, and show it."""
    console = Console(quiet=json)
    console.print(f"[bold]minifuse {mf.__version__}[/]: 1,797 handwritten digits, 8 x 8 pixels; a 64-128-10 network")
    result = train(backend, epochs, seed, console)
    speed = epochs * 1437 / result.seconds
    console.print(
        f"[bold green]{result.accuracy:.1%}[/] of held-out digits read right; {epochs} epochs took {result.seconds:.2f} s, "
        f"{speed:,.0f} digits/s\n"
    )
    rows = compare(result.model)
    console.print(table_of(rows))
    fast, slow = min(rows, key=lambda r: r.ms), max(rows, key=lambda r: r.ms)
    console.print(f"The backends agree. {fast.backend} is {fast.times_as_fast:,.0f} times as fast as {slow.backend}.")
    console.print("\nNext: [bold]minifuse equivalence[/] compares every operator,")
    console.print("      [bold]minifuse doctor[/] examines this machine.")
    if json:
        facts = {"accuracy": result.accuracy, "seconds": result.seconds, "losses": result.losses}
        print(json_.dumps(facts | {"backends": [asdict(row) for row in rows]}, indent=2))


def train(backend: str | None, epochs: int, seed: int, console: Console) -> Result:
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

        return train_digits(seed, epochs, on_batch, backend)


def compare(model: mf.nn.Module) -> list[Row]:
    """The network on every backend against the plain one in float64: what it says, its gradients, and its time."""
    x, y = [data.numpy()[:BATCH] for data in mf.data.digits()]
    state = {name: p.numpy().copy() for name, p in model.named_parameters()}
    judge = evaluate(state, x, y, "python", "float64")[:2]
    found = []
    for name in mf.backends():
        logits, gradients, ms = evaluate(state, x, y, name, "float32")
        found.append(Row(name, deviation([logits], [judge[0]]), deviation(gradients, judge[1]), ms))
    slowest = max(row.ms for row in found)
    return [Row(row.backend, row.logits, row.gradients, row.ms, slowest / row.ms) for row in found]


def evaluate(
    state: dict[str, npt.NDArray[Any]], x: npt.NDArray[Any], y: npt.NDArray[Any], backend: str, dtype: str
) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]], float]:
    """Logits, gradients of all parameters, and the median time of both in milliseconds."""
    model = network().to(dtype, backend=backend)
    model.load_state_dict({name: mf.tensor(value, dtype, backend) for name, value in state.items()})
    inputs, targets = mf.tensor(x, dtype, backend), mf.tensor(y, backend=backend)
    times: list[float] = []
    while sum(times) < SECONDS * bool(dtype == "float32") or not times:
        start = perf_counter()
        model.zero_grad()
        logits = model(inputs)
        mf.nn.cross_entropy(logits, targets).backward()
        times.append(perf_counter() - start)
    return logits.numpy(), [p.grad.numpy() for p in model.parameters() if p.grad is not None], median(times) * 1e3


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
        table.add_row(row.backend, f"± {row.logits:.0e}", f"± {row.gradients:.0e}", time, f"{row.times_as_fast:,.0f}x")
    return table
