"""`minifuse demo`: train a network to classify digits, then compare the backends on this network."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import minifuse as mf

from ..core.wording import format_count
from ..inspect.report import Column, InspectionReport, Paragraph, ReportPart, ReportTable, make_table
from ..recipes.mlp import make_network
from .extras import EXTRAS, install_command
from .output import print_json, print_plain, report_width
from .simulation import explain_simulation, format_backend, is_simulated
from .training import TrainingResult, train_digits

COMPARED_DIGITS = 32  # digits used to compare the backends
SIMULATED_DIGITS = 4  # digits used if CUDA is simulated, where a step takes seconds
MEASURE_S = 0.5  # seconds of measurements for each backend
TRAINING_DIGITS = 1437  # four fifths of the digits
PROGRESS_WIDTH = 60  # characters
MAX_COMMAND_WIDTH = 50  # characters of a command beside its purpose
# a package of each extra that NEXT_COMMANDS need
PACKAGE_OF = {"app": "streamlit", "cli": "typer", "course": "hypothesis", "simt": "greenlet"}
NEXT_COMMANDS = (
    ("app", "starts the visualizer"),
    ("course init my-engine", "begins the course"),
    ("doctor", "checks this machine and the extras"),
    ("equivalence", "compares every operator with NumPy"),
    ("trace matmul", "shows the accesses of a CUDA kernel"),
)


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


def run(backend: str | None, epochs: int | None, seed: int, digits: int | None, json: bool) -> int:
    """Train, compare, and print the results; return the exit status 0."""
    default_size = SIMULATED_SIZE if is_simulated(backend) else DemoSize()
    size = replace(
        default_size, epochs=epochs or default_size.epochs, digits=min(digits or default_size.digits, TRAINING_DIGITS)
    )
    if not json:
        print_report(describe(size, is_simulated=default_size is SIMULATED_SIZE))
    result = train_digits(seed, size.epochs, show_batch, backend, size.digits, size.hidden, size.batch_size)
    if not json:
        print_report(describe_training(result, size))
    rows = compare(result.model, size.hidden)
    if json:
        facts = {"accuracy": result.accuracy, "seconds": result.seconds, "losses": result.losses, "course": asdict(size)}
        print_json(facts | {"backends": [asdict(row) for row in rows]})
    else:
        print_plain([[]])
        print_report(describe_comparison(rows))
    return 0


def print_report(report: InspectionReport) -> None:
    """Print a report as wide as the terminal, without rich, which may be missing."""
    print_plain(report.lines(report_width()))


def describe(size: DemoSize, is_simulated: bool) -> InspectionReport:
    """Return the data and the network, and why they are small if CUDA is simulated."""
    title = f"minifuse {mf.__version__}: 1,797 handwritten digits, 8 x 8 pixels; a 64-{size.hidden}-10 network"
    if not is_simulated:
        return InspectionReport(title, {})
    duration = format_count(size.epochs, "epoch")
    consequence = f"so a small network trains for {duration} on {size.digits:,} of {TRAINING_DIGITS:,} digits"
    full_run = f"--digits {TRAINING_DIGITS} --epochs {DemoSize().epochs} takes an hour"
    return InspectionReport(title, {"": [Paragraph(f"{explain_simulation(consequence)} ({full_run}.)", 0, "dim")]})


def show_batch(done: int, count: int, loss: float) -> None:
    """Show the progress of training."""
    show_progress(f"training: {done:,} of {count:,} batches, loss {loss:.3f}" if done < count else "")


def show_progress(text: str) -> None:
    """Rewrite the last line of the terminal; "" clears it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<{PROGRESS_WIDTH}}\r")
        sys.stderr.flush()


def describe_training(result: TrainingResult, size: DemoSize) -> InspectionReport:
    """Return the accuracy, and the time of training."""
    epochs = format_count(size.epochs, "epoch")
    text = f"{result.accuracy:.1%} of test digits classified correctly; {epochs} took {result.seconds:.2f} s"
    return InspectionReport("", {"": [Paragraph(text, 0, "green")]})


def describe_comparison(rows: Sequence[BackendResult]) -> InspectionReport:
    """Return the comparison of the backends, and the commands to try next."""
    timed = [row for row in rows if row.times_as_fast is not None]
    fastest, slowest = min(timed, key=lambda row: row.ms), max(timed, key=lambda row: row.ms)
    simulation = f"on {SIMULATED_DIGITS} digits instead of {COMPARED_DIGITS}, to compare results, not speed"
    notes = [
        *[explain_simulation(simulation)] * any(row.is_simulated for row in rows),
        f"The backends agree. {fastest.backend} is {fastest.times_as_fast:,.0f} times as fast as {slowest.backend}.",
    ]
    title = f"the same network on {COMPARED_DIGITS} digits"
    return InspectionReport(
        "",
        {title: [comparison_table(rows), *[Paragraph(note, 0) for note in notes]], "Next": describe_next(next_commands())},
    )


def describe_next(commands: Sequence[tuple[str, str]]) -> list[ReportPart]:
    """Return a table of commands and purposes; a list, if a command is too long for two columns."""
    if max(len(command) for command, _ in commands) <= MAX_COMMAND_WIDTH:
        return [make_table([Column("command", style="bold"), Column("purpose", wraps=True)], commands, 2, False)]
    pairs = [(Paragraph(purpose), Paragraph(command, 4, "bold")) for command, purpose in commands]
    return [paragraph for pair in pairs for paragraph in pair]


def next_commands() -> list[tuple[str, str]]:
    """Return the commands to try next and their purposes, and the line that installs the packages that are missing."""
    commands = list[tuple[str, str]]()
    for arguments, purpose in NEXT_COMMANDS:
        name = arguments.split()[0]
        extras = EXTRAS.get(name, "").split(",")
        is_ready = all(find_spec(package) is not None for extra, package in PACKAGE_OF.items() if extra in extras)
        purpose = purpose if is_ready else f"{purpose}; run first: {install_command(name)}"
        commands.append((f"{program_name()} {arguments}", purpose))
    return commands


def program_name() -> str:
    """Return what to write for minifuse in this terminal: its name, or its path if its environment is not activated."""
    if shutil.which("minifuse"):
        return "minifuse"
    script = Path(sys.argv[0])
    return shlex.quote(str(script)) if script.stem == "minifuse" else f"{shlex.quote(sys.executable)} -m minifuse"


def compare(model: mf.nn.Module, hidden: int) -> list[BackendResult]:
    """Compare logits and gradients of each backend with the python backend in float64, and time them."""
    state = {name: p.numpy().copy() for name, p in model.named_parameters()}
    names = mf.backends()
    digit_counts = {name: SIMULATED_DIGITS if is_simulated(name) else COMPARED_DIGITS for name in names}
    show_progress("comparing the backends: python in float64")
    references = {count: evaluate(state, hidden, count, "python", "float64")[:2] for count in set(digit_counts.values())}
    results = []
    for name, count in digit_counts.items():
        show_progress(f"comparing the backends: {name}")
        logits, gradients, ms = evaluate(state, hidden, count, name, "float32")
        reference = references[count]
        deviations = max_deviation([logits], [reference[0]]), max_deviation(gradients, reference[1])
        results.append(BackendResult(name, *deviations, ms, digits=count, is_simulated=is_simulated(name)))
    show_progress("")
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


def comparison_table(rows: Sequence[BackendResult]) -> ReportTable:
    """Return the results as a table, the slowest backend first."""
    names = ("backend", "logits", "gradients", "forward + backward", "speed")
    cells = [
        (
            format_backend(row.backend),
            f"± {row.logits:.0e}",
            f"± {row.gradients:.0e}",
            f"{row.ms:,.1f} ms" if row.ms >= 1 else f"{row.ms * 1e3:,.0f} us",
            f"{row.times_as_fast:,.0f}x" if row.times_as_fast is not None else "-",
        )
        for row in sorted(rows, key=lambda row: -row.ms)
    ]
    return make_table([Column(name, is_number=name != "backend") for name in names], cells)
