"""`minifuse trace`: report the memory accesses of a kernel, launch by launch and line by line. Each number has a label:

    TRACED    recorded while the kernel ran: accesses, bytes, barriers
    DERIVED   computed from these by the rules of `simt.metrics`: requests, sectors, wavefronts, hazards
    THEORY    computed from hardware limits: occupancy

The kernels run in the interpreter, even on a machine with a GPU.
"""

import linecache
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from inspect import getsourcelines
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from .. import simt
from ..backends.cuda.device.simulated_device import SimulatedDevice
from ..backends.cuda.matmul.ladder import LADDER
from ..core.errors import MinifuseError
from ..core.operators import TABLE
from ..core.wording import format_count
from ..inspect.report import Column, make_table
from ..simt.check import HazardFinding, finding_as_dict
from ..simt.columnar import WARP_SIZE
from ..simt.occupancy import MULTIPROCESSORS, occupancy
from .cells import run_cell
from .check import show_finding
from .output import new_console, overview_table, print_json, print_report, report_error
from .subjects import LAYOUTS, REDUCTIONS, RequestError, TraceRequest, TraceSubject, plan_subject

CAPABILITY = SimulatedDevice.capability  # used for the occupancy
SCRIPT_FIELDS = ("kernel", "launch", "launched_at", "count")  # facts of a hazard that only a script has
COLUMNS = {  # (label, name) of a number -> its two-line heading
    ("TRACED", "loads"): ("", "loads"),
    ("TRACED", "stores"): ("", "stores"),
    ("TRACED", "atomics"): ("", "atomics"),
    ("DERIVED", "requests"): ("", "requests"),
    ("DERIVED", "lanes"): ("active", "lanes"),
    ("DERIVED", "sectors"): ("", "sectors"),
    ("DERIVED", "ideal_sectors"): ("", "ideal"),
    ("DERIVED", "efficiency"): ("effi-", "ciency"),
    ("DERIVED", "bytes_moved"): ("bytes", "moved"),
    ("DERIVED", "wavefronts"): ("wave-", "fronts"),
    ("DERIVED", "bank_conflicts"): ("con-", "flicts"),
}
FRACTION_COLUMNS = ("lanes", "efficiency")


def run(
    request: TraceRequest,
    seed: int,
    limit: int,
    loop_limit: int,
    save: Path | None,
    source: bool,
    json: bool,
    cell: int | None = None,
    backend: str | None = None,
) -> int:
    """Trace the kernels and print the report; return 1 if there is a hazard, 2 if the request is invalid."""
    if cell is not None:
        return run_cell(request, cell, backend, json)
    try:
        if backend is not None:
            raise RequestError("--backend only applies with --cell; without it, the kernels of the cuda backend are traced")
        with redirect_stdout(sys.stderr) if json else nullcontext():
            subject = load_subject(request, source, save) if request.what.endswith(".npz") else plan_subject(request)
            traces = subject.traces or run_launches(subject, seed, limit, loop_limit)
            saved = save_all(traces, save) if save else []
    except MinifuseError as error:
        return report_error("trace", error)
    kernels = [plan.kernel if source else None for plan in subject.plans] or [None] * len(traces)
    launches = [launch_facts(trace, kernel) for trace, kernel in zip(traces, kernels, strict=False)]
    if json:
        facts = {"what": request.what, "title": subject.title, "launches": launches, "saved": list(map(str, saved))}
        print_json(facts)
    else:
        show(subject, traces, launches, saved, new_console())
    return int(any(launch["hazards"] for launch in launches))


def load_subject(request: TraceRequest, source: bool, save: Path | None) -> TraceSubject:
    """Load a trace that was saved before. Nothing runs, so no other option applies."""
    request.refuse(["shapes", "dim", "dtype", "layout", "arguments", "grid", "block", "shared"], "does not apply to a trace")
    if source or save:
        raise RequestError(f"--{'source' if source else 'save'} does not apply to {request.what}, which is saved already")
    try:
        trace = simt.load(request.what)
    except OSError as error:
        raise RequestError(f"{request.what}: {error.strerror}") from error
    return TraceSubject(f"{trace.kernel} in {Path(request.what).name}", [], [trace])


def run_launches(subject: TraceSubject, seed: int, limit: int, loop_limit: int) -> list[simt.Trace]:
    """Run the launches in order. If one is cut short, stop there, since later launches may depend on it."""
    traces: list[simt.Trace] = []
    for plan in subject.plans:
        traces.append(simt.trace(plan, seed=seed, limit=limit, loop_limit=loop_limit))
        if not traces[-1].is_complete:
            break
    return traces


def save_all(traces: Sequence[simt.Trace], path: Path) -> list[Path]:
    """Save each trace to its own file. If there are several, number the files."""
    path = path.with_suffix(".npz")
    paths = [path] if len(traces) == 1 else [path.with_stem(f"{path.stem}-{k}") for k, _ in enumerate(traces, start=1)]
    for trace, target in zip(traces, paths, strict=True):
        try:
            trace.save(target)
        except OSError as error:
            raise RequestError(f"--save {target}: {error.strerror}; choose a path that you can write to") from error
    return paths


# Facts.


def launch_facts(trace: simt.Trace, kernel: Callable[..., None] | None) -> dict[str, Any]:
    """Return the facts of one launch as plain data, with the source of the kernel if it is passed."""
    facts = trace.summary()
    for line in facts["lines"]:
        line["text"] = linecache.getline(line["file"], line["line"]).strip()
        line["DERIVED"]["lanes"] = ratio(line["DERIVED"]["active_lanes"], line["DERIVED"]["possible_lanes"])
    hazards = [finding_as_dict(HazardFinding(error, None, None, ("", 0))) for error in trace.hazards()]
    facts["hazards"] = [{key: value for key, value in hazard.items() if key not in SCRIPT_FIELDS} for hazard in hazards]
    facts["arguments"] = dict(trace.arguments)
    facts["THEORY"] = {"occupancy": launch_occupancy(trace)}
    if kernel is not None:
        facts["source"] = kernel_source(getattr(kernel, "py_func", kernel))
    return facts


def kernel_source(kernel: Callable[..., None]) -> dict[str, object]:
    """Return the source of a kernel. For a generated kernel, it includes the functions that the kernel calls."""
    file = kernel.__code__.co_filename
    lines, first = getsourcelines(kernel) if Path(file).is_file() else (linecache.getlines(file), 1)
    return {"first_line": first, "text": "".join(lines)}


def launch_occupancy(trace: simt.Trace) -> dict[str, object]:
    """Compute how many blocks fit on a multiprocessor at once."""
    regions = {(info.base, info.itemsize * prod(info.shape)) for info in trace.arrays if info.space == "shared"}
    nbytes = max(sum(nbytes for _, nbytes in regions), trace.shared)
    result = occupancy(trace.threads, nbytes, None, CAPABILITY)
    capability = ".".join(map(str, CAPABILITY))
    return {**result._asdict(), "capability": capability, "shared_nbytes": nbytes, "registers": None}


def ratio(part: int, total: int) -> float | None:
    """Return part / total, or None if the total is 0."""
    return part / total if total else None


# Text output.


def show(
    subject: TraceSubject,
    traces: Sequence[simt.Trace],
    launches: list[dict[str, Any]],
    saved: Sequence[Path],
    console: Console,
) -> None:
    """Print each launch, the effects that are not modeled, and the number of hazards."""
    launch_count = len(subject.plans) or len(traces)
    is_cut_short = len(traces) < launch_count
    console.print(Text(subject.title, "bold"))
    console.print(f"{format_count(launch_count, 'launch', 'launches')}, run lane by lane in the interpreter")
    for k, (trace, facts) in enumerate(zip(traces, launches, strict=True), start=1):
        console.print()
        show_launch_size(facts, f"launch {k} of {launch_count}", console)
        occupancy = "THEORY", "occupancy", format_occupancy(facts["THEORY"]["occupancy"])
        print_report(overview_table([*traced_rows(facts), *derived_rows(facts), occupancy]), console)
        show_access_table(facts, console)
        for n, error in enumerate(trace.hazards()):
            console.print("\n" * (n == 0), end="")
            show_finding(HazardFinding(error, None, None, ("", 0)), console)
        if "source" in facts:
            show_source(facts, console)
    console.print()
    if launches:
        show_wrapped(f"Not modeled: {', '.join(launches[0]['not_modelled'])}.", console)
    if is_cut_short:
        remaining = launch_count - len(traces)
        show_wrapped(f"Launch {len(traces)} was cut short, so {remaining} of {launch_count} launches did not run.", console)
    for path in saved:
        console.print(f"trace in {path}", soft_wrap=True)
    hazards = sum(len(facts["hazards"]) for facts in launches)
    console.print(f"[{'red' if hazards else 'green'}]{format_count(hazards, 'hazard') if hazards else 'no hazards'}[/]")


def show_wrapped(text: str, console: Console) -> None:
    """Print a wrapped sentence."""
    console.print(textwrap.fill(text, console.width), style="dim", soft_wrap=True)


def show_launch_size(facts: dict[str, Any], title: str, console: Console) -> None:
    """Print the kernel and the size of its launch."""
    location = f"{Path(facts['file']).name}:{facts['line']}"
    console.print(Text.assemble((title, "bold"), ": ", (facts["kernel"], "bold cyan"), f" ({location})"))
    warps = -(-prod(facts["block"]) // WARP_SIZE)
    dynamic = f", {facts['shared']:,} bytes of dynamic shared memory" if facts["shared"] else ""
    console.print(
        f"grid {format_sizes(facts['grid'], 'block')}, block {format_sizes(facts['block'], 'thread')} in "
        f"{format_count(warps, 'warp')}{dynamic}"
    )


def format_sizes(sizes: Sequence[int], noun: str) -> str:
    """Format sizes along x, y and z, without trailing ones that are 1.

    Examples
    --------
    >>> format_sizes([4, 8, 1], "block"), format_sizes([1, 1, 1], "thread")
    ('4 x 8 blocks', '1 thread')
    """
    shown_sizes = list(sizes)
    while len(shown_sizes) > 1 and shown_sizes[-1] == 1:
        shown_sizes.pop()
    return f"{' x '.join(f'{size:,}' for size in shown_sizes)} {noun}{'s' * (shown_sizes != [1])}"


def traced_rows(facts: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Iterate over the summary rows of traced numbers."""
    traced, spaces = facts["TRACED"], facts["spaces"]
    kinds = {kind: sum(space["TRACED"][kind] for space in spaces.values()) for kind in ("loads", "stores", "atomics")}
    counts = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number) or "none"
    yield "TRACED", "events", f"{traced['events']:,} accesses: {counts}"
    requested = {name: space["TRACED"]["bytes_requested"] for name, space in spaces.items()}
    yield (
        "TRACED",
        "bytes",
        ", ".join(f"{nbytes:,} of {name} memory" for name, nbytes in requested.items() if nbytes) or "none",
    )
    yield "TRACED", "barriers", format_counts(traced["barriers"]) + " over all blocks" * bool(traced["barriers"])
    yield "TRACED", "collectives", format_counts(traced["collectives"])
    if traced["elements_not_written"]:
        yield "TRACED", "not written", format_counts(traced["elements_not_written"], "elements of ")


def derived_rows(facts: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Iterate over the summary rows of derived numbers."""
    derived, global_numbers, shared_numbers = (
        facts["DERIVED"],
        *(facts["spaces"][name]["DERIVED"] for name in ("global", "shared")),
    )
    partial = derived["partial_requests"]
    lanes = f"{partial:,} of them with idle lanes" if partial else "all lanes active in each"
    yield "DERIVED", "requests", f"{derived['requests']:,} by warps, {lanes}"
    lines = [line["DERIVED"] for line in facts["lines"]]
    active, possible = (sum(line[name] for line in lines) for name in ("active_lanes", "possible_lanes"))
    yield "DERIVED", "divergence", f"{format_percent(ratio(active, possible))} of lanes active at an access"
    if global_numbers["sectors"]:
        is_shared = global_numbers["efficiency"] > 1
        efficiency = f"efficiency {format_percent(global_numbers['efficiency'])}{', since lanes share elements' * is_shared}"
        yield (
            "DERIVED",
            "sectors",
            f"{global_numbers['sectors']:,} of 32 bytes, ideal {global_numbers['ideal_sectors']:,}: {efficiency}",
        )
        yield (
            "DERIVED",
            "bytes moved",
            f"{global_numbers['bytes_moved']:,} between memory and the kernel, if nothing is cached",
        )
    if shared_numbers["wavefronts"]:
        yield (
            "DERIVED",
            "wavefronts",
            f"{shared_numbers['wavefronts']:,}, of which {shared_numbers['bank_conflicts']:,} for bank conflicts",
        )
    yield "DERIVED", "hazards", format_counts(derived["hazards"])


def format_occupancy(facts: dict[str, Any]) -> str:
    """Format the occupancy as a sentence."""
    if not facts["blocks"]:
        return f"none: a block needs more resources than a multiprocessor of compute capability {facts['capability']} has"
    limits = " and ".join(
        {"blocks": "the number of blocks", "shared": "shared memory"}.get(x, x) for x in facts["limited_by"]
    )
    max_warps = MULTIPROCESSORS[CAPABILITY].warps
    return (
        f"{facts['warps']} of {max_warps} warps ({format_percent(facts['fraction'])}) on compute capability "
        f"{facts['capability']}, limited by {limits}; registers not counted"
    )


def format_counts(numbers: dict[str, int], prefix: str = "") -> str:
    """Format numbers with their names, each preceded by a prefix."""
    return ", ".join(f"{number:,} {prefix}{name}" for name, number in numbers.items()) or "none"


def format_percent(fraction: float | None) -> str:
    """Format a fraction in percent; None as a dash."""
    return "-" if fraction is None else f"{fraction:.0%}"


def show_access_table(facts: dict[str, Any], console: Console) -> None:
    """Print a table with a row of numbers for each array and each source line. Each row has its title above it."""
    arrays = [row for row in facts["arrays"] if row["DERIVED"]["requests"]]
    rows = [*arrays, *facts["lines"]]
    columns = [key for key in COLUMNS if any(cell_number(row, key) for row in rows)]
    widths = [max(map(len, (*COLUMNS[key], *(format_cell(row, key) for row in rows)))) for key in columns]
    gap = " " * (2 if sum(widths) + 2 * len(widths) <= console.width else 1)

    def show_cells(cells: Iterable[str], style: str = "") -> None:
        line = gap.join(f"{text:>{width}}" for text, width in zip(cells, widths, strict=True))
        console.print(Text(f"  {line}", style), no_wrap=True, soft_wrap=True)

    if not rows:
        return
    console.print()
    labels = [key[0] if k == 0 or columns[k - 1][0] != key[0] else "" for k, key in enumerate(columns)]
    for texts in (labels, *zip(*(COLUMNS[key] for key in columns), strict=True)):
        show_cells(texts, "dim")
    for title, group in (("by array", arrays), ("by line", facts["lines"])):
        console.print(f"[bold]{title}[/]")
        for row in group:
            console.print(Text(row_title(row), "cyan"), overflow="ellipsis", no_wrap=True)
            show_cells(format_cell(row, key) for key in columns)


def row_title(row: dict[str, Any]) -> str:
    """Format the title of an array or a source line."""
    if "text" in row:
        return f"{row['line']:4}  {row['text']}"
    return f"{row['name']}: {row['space']} memory, {row['dtype']} {tuple(row['shape'])}"


def cell_number(row: dict[str, Any], key: tuple[str, str]) -> Any:
    """Return the number in a column, or None."""
    return row[key[0]].get(key[1])


def format_cell(row: dict[str, Any], key: tuple[str, str]) -> str:
    """Format the number in a column."""
    number = cell_number(row, key)
    return format_percent(number) if key[1] in FRACTION_COLUMNS else f"{number:,}"


def show_source(facts: dict[str, Any], console: Console) -> None:
    """Print the kernel with line numbers."""
    console.print("\n[bold]source[/]")
    for number, line in enumerate(facts["source"]["text"].splitlines(), start=facts["source"]["first_line"]):
        console.print(Text(f"{number:4}  {line}"), soft_wrap=True)


def run_list(json: bool) -> int:
    """Print everything that can be traced."""
    rungs = {f"matmul:{rung.name}": rung.reason for rung in LADDER.values()}
    if json:
        facts = {"operators": list(TABLE), "folds": list(REDUCTIONS), "products": ["matmul", *rungs], "layouts": LAYOUTS}
        print_json(facts)
        return 0
    console = new_console()
    rows = [
        ("operators", " ".join(TABLE)),
        ("reductions", f"{' '.join(REDUCTIONS)}  (along one dim with --dim)"),
        ("matmul", "the kernels that minifuse launches; --shape M,N,K"),
        *rungs.items(),
        ("FILE.py:kernel", "your own kernel, with or without @cuda.jit; give --grid, --block and --arg"),
        ("FILE.py:function", "the kernels of a function of tensors, fused or not; give --shape"),
        ("FILE.npz", "a trace that was saved before"),
    ]
    columns = Column("subject", style="bold"), Column("text", wraps=True)
    print_report(make_table(columns, rows, 0, False), console)
    console.print("\n[bold]layouts[/] for --layout")
    for name, description in LAYOUTS.items():
        console.print(f"{name:10} {description}")
    return 0
