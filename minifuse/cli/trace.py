"""`minifuse trace`: what a kernel does to memory, launch by launch, line by line, with every number under its label.

    TRACED    it ran: accesses, bytes, barriers
    DERIVED   from those, by the rules of `simt.metrics`: requests, sectors, wavefronts, hazards
    THEORY    from the sizes of the hardware: occupancy

The kernels run in the interpreter, on a machine with a GPU too.
"""

import json as json_
import linecache
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from inspect import getsourcelines
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import simt
from ..backends.cuda.device.simulated_device import SimulatedDevice
from ..backends.cuda.matmul.ladder import LADDER
from ..core.errors import MinifuseError
from ..core.operators import TABLE
from ..simt.check import HazardFinding, finding_as_dict, pluralize
from ..simt.columnar import WARP_SIZE
from ..simt.occupancy import MULTIPROCESSORS, occupancy
from .cells import run_cell
from .check import show_finding
from .subjects import FOLDS, LAYOUTS, Request, RequestError, Subject, subject_of

WIDTH = 80  # columns
CAPABILITY = SimulatedDevice.capability  # that occupancy is told for
UNWANTED = ("kernel", "launch", "launched_at", "count")  # of a hazard's facts: what only a script has
COLUMNS = {  # of the tables: the label and name of a number -> its heading, in two lines
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
SHARES = ("lanes", "efficiency")


def run(
    request: Request,
    seed: int,
    limit: int,
    loop_limit: int,
    save: Path | None,
    source: bool,
    json: bool,
    cell: int | None = None,
    backend: str | None = None,
) -> int:
    """Trace, show it, and give the exit status: 1 where there is a hazard, 2 where the request makes no sense."""
    if cell is not None:
        return run_cell(request, cell, backend, json)
    try:
        if backend is not None:
            raise RequestError("--backend goes with --cell; without it the kernels are those of cuda")
        with redirect_stdout(sys.stderr) if json else nullcontext():
            subject = subject_of(request)
            traces = traces_of(subject, seed, limit, loop_limit)
            saved = save_all(traces, save) if save else []
    except MinifuseError as error:
        sys.stderr.write(f"minifuse trace: {error}\n")
        return 2
    launches = [facts_of(trace, plan.kernel, source) for trace, plan in zip(traces, subject.plans, strict=False)]
    if json:
        facts = {"what": request.what, "title": subject.title, "launches": launches, "saved": list(map(str, saved))}
        sys.stdout.write(json_.dumps(facts, indent=2) + "\n")
    else:
        show(subject, traces, launches, saved, Console(width=min(WIDTH, Console().width), highlight=False))
    return int(any(launch["hazards"] for launch in launches))


def traces_of(subject: Subject, seed: int, limit: int, loop_limit: int) -> list[simt.Trace]:
    """Run the launches one after the other; what comes after one that was cut short would mean nothing."""
    traces: list[simt.Trace] = []
    for plan in subject.plans:
        traces.append(simt.trace(plan, seed=seed, limit=limit, loop_limit=loop_limit))
        if not traces[-1].is_complete:
            break
    return traces


def save_all(traces: Sequence[simt.Trace], path: Path) -> list[Path]:
    """Write each trace to a file of its own; several are numbered."""
    path = path.with_suffix(".npz")
    paths = [path] if len(traces) == 1 else [path.with_stem(f"{path.stem}-{k}") for k, _ in enumerate(traces, start=1)]
    for trace, target in zip(traces, paths, strict=True):
        try:
            trace.save(target)
        except OSError as error:
            raise RequestError(f"--save {target}: {error.strerror}; choose a place that can be written") from error
    return paths


# Facts.


def facts_of(trace: simt.Trace, kernel: Any, with_source: bool) -> dict[str, Any]:
    """All that is known of one launch, as plain numbers and texts."""
    facts = trace.summary()
    for line in facts["lines"]:
        line["text"] = linecache.getline(line["file"], line["line"]).strip()
        line["DERIVED"]["lanes"] = share(line["DERIVED"]["active_lanes"], line["DERIVED"]["possible_lanes"])
    hazards = [finding_as_dict(HazardFinding(error, None, None, ("", 0))) for error in trace.hazards()]
    facts["hazards"] = [{key: value for key, value in hazard.items() if key not in UNWANTED} for hazard in hazards]
    facts["arguments"] = dict(trace.arguments)
    facts["THEORY"] = {"occupancy": occupancy_of(trace)}
    if with_source:
        facts["source"] = source_of(getattr(kernel, "py_func", kernel))
    return facts


def source_of(kernel: Any) -> dict[str, Any]:
    """The text of a kernel; of a generated one with the functions that it calls, which stand above it."""
    file = kernel.__code__.co_filename
    lines, first = getsourcelines(kernel) if Path(file).is_file() else (linecache.getlines(file), 1)
    return {"first_line": first, "text": "".join(lines)}


def occupancy_of(trace: simt.Trace) -> dict[str, Any]:
    """How many blocks fit on a multiprocessor at once."""
    places = {(info.base, info.itemsize * prod(info.shape)) for info in trace.arrays if info.space == "shared"}
    nbytes = max(sum(nbytes for _, nbytes in places), trace.shared)
    found = occupancy(trace.threads, nbytes, None, CAPABILITY)
    capability = ".".join(map(str, CAPABILITY))
    return {**found._asdict(), "capability": capability, "shared_nbytes": nbytes, "registers": None}


def share(part: int, whole: int) -> float | None:
    """A part of a whole; None of nothing."""
    return part / whole if whole else None


# For people.


def show(
    subject: Subject, traces: Sequence[simt.Trace], launches: list[Any], saved: Sequence[Path], console: Console
) -> None:
    """Print the launches, one after the other, then what is not modelled, then the verdict."""
    number, cut = len(subject.plans), len(traces) < len(subject.plans)
    console.print(f"[bold]{subject.title}[/]")
    console.print(f"{pluralize(number, 'launch', 'launches')}, run lane by lane in the interpreter")
    for k, (trace, facts) in enumerate(zip(traces, launches, strict=True), start=1):
        console.print()
        show_head(facts, f"launch {k} of {number}", console)
        console.print(overview(facts))
        show_places(facts, console)
        for k, error in enumerate(trace.hazards()):
            console.print("\n" * (k == 0), end="")
            show_finding(HazardFinding(error, None, None, ("", 0)), console)
        if "source" in facts:
            show_source(facts, console)
    console.print()
    if launches:
        show_wrapped(f"Not modelled: {', '.join(launches[0]['not_modelled'])}.", console)
    if cut:
        left = number - len(traces)
        show_wrapped(f"Launch {len(traces)} was cut short, so {left} of {number} launches did not run.", console)
    for path in saved:
        console.print(f"trace in {path}", soft_wrap=True)
    hazards = sum(len(facts["hazards"]) for facts in launches)
    console.print(f"[{'red' if hazards else 'green'}]{pluralize(hazards, 'hazard') if hazards else 'no hazards'}[/]")


def show_wrapped(text: str, console: Console) -> None:
    """Print a sentence on as many lines as it takes."""
    console.print(textwrap.fill(text, console.width), style="dim", soft_wrap=True)


def show_head(facts: dict[str, Any], title: str, console: Console) -> None:
    """The kernel, and how large its launch is."""
    place = f"{Path(facts['file']).name}:{facts['line']}"
    console.print(Text.assemble((title, "bold"), ": ", (facts["kernel"], "bold cyan"), f" ({place})"))
    warps = -(-prod(facts["block"]) // WARP_SIZE)
    console.print(
        f"grid {sizes(facts['grid'], 'block')}, block {sizes(facts['block'], 'thread')} in {pluralize(warps, 'warp')}"
        + (f", {facts['shared']:,} bytes of dynamic shared memory" if facts["shared"] else "")
    )


def sizes(along: Sequence[int], what: str) -> str:
    """Sizes along x, y and z, without the last ones that are 1.

    Examples
    --------
    >>> sizes([4, 8, 1], "block"), sizes([1, 1, 1], "thread")
    ('4 x 8 blocks', '1 thread')
    """
    shown = list(along)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return f"{' x '.join(f'{size:,}' for size in shown)} {what}{'s' * (shown != [1])}"


def overview(facts: dict[str, Any]) -> Table:
    """What the launch did in all: a label, a name and a text in each row."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in (*traced(facts), *derived(facts), ("THEORY", "occupancy", filled(facts["THEORY"]["occupancy"]))):
        table.add_row(*row)
    return table


def traced(facts: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """What ran."""
    found, spaces = facts["TRACED"], facts["spaces"]
    kinds = {kind: sum(space["TRACED"][kind] for space in spaces.values()) for kind in ("loads", "stores", "atomics")}
    told = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number) or "none"
    yield "TRACED", "events", f"{found['events']:,} accesses: {told}"
    asked = {name: space["TRACED"]["bytes_requested"] for name, space in spaces.items()}
    yield "TRACED", "bytes", ", ".join(f"{nbytes:,} of {name} memory" for name, nbytes in asked.items() if nbytes) or "none"
    yield "TRACED", "barriers", listed(found["barriers"]) + " over all blocks" * bool(found["barriers"])
    yield "TRACED", "collectives", listed(found["collectives"])
    if found["elements_not_written"]:
        yield "TRACED", "not written", listed(found["elements_not_written"], "elements of ")


def derived(facts: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """What follows from it."""
    found, memory, shared = facts["DERIVED"], *(facts["spaces"][name]["DERIVED"] for name in ("global", "shared"))
    partial = found["partial_requests"]
    lanes = f"{partial:,} of them with idle lanes" if partial else "all with every lane of their warp"
    yield "DERIVED", "requests", f"{found['requests']:,} by warps, {lanes}"
    lines = [line["DERIVED"] for line in facts["lines"]]
    active, possible = (sum(line[name] for line in lines) for name in ("active_lanes", "possible_lanes"))
    yield "DERIVED", "divergence", f"{percent(share(active, possible))} of lanes active at an access"
    if memory["sectors"]:
        is_shared = memory["efficiency"] > 1
        efficiency = f"efficiency {percent(memory['efficiency'])}{', since lanes share elements' * is_shared}"
        yield "DERIVED", "sectors", f"{memory['sectors']:,} of 32 bytes, ideal {memory['ideal_sectors']:,}: {efficiency}"
        yield "DERIVED", "bytes moved", f"{memory['bytes_moved']:,} between memory and the kernel, caches aside"
    if shared["wavefronts"]:
        yield "DERIVED", "wavefronts", f"{shared['wavefronts']:,}, of which {shared['bank_conflicts']:,} for bank conflicts"
    yield "DERIVED", "hazards", listed(found["hazards"])


def filled(found: dict[str, Any]) -> str:
    """The occupancy in words."""
    if not found["blocks"]:
        return f"none: a block has more than a multiprocessor of compute capability {found['capability']}"
    limits = " and ".join(
        {"blocks": "the number of blocks", "shared": "shared memory"}.get(x, x) for x in found["limited_by"]
    )
    most = MULTIPROCESSORS[CAPABILITY].warps
    return (
        f"{found['warps']} of {most} warps ({percent(found['fraction'])}) on compute capability {found['capability']}, "
        f"limited by {limits}; registers not counted"
    )


def listed(numbers: dict[str, int], of: str = "") -> str:
    """Numbers with their names."""
    return ", ".join(f"{number:,} {of}{name}" for name, number in numbers.items()) or "none"


def percent(fraction: float | None) -> str:
    """A fraction in percent; a dash where there is none."""
    return "-" if fraction is None else f"{fraction:.0%}"


def show_places(facts: dict[str, Any], console: Console) -> None:
    """The numbers of each array and of each line of the source, with its text above them, in columns."""
    arrays = [row for row in facts["arrays"] if row["DERIVED"]["requests"]]
    rows = [*arrays, *facts["lines"]]
    columns = [key for key in COLUMNS if any(number_of(row, key) for row in rows)]
    widths = [max(map(len, (*COLUMNS[key], *(cell(row, key) for row in rows)))) for key in columns]
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
            console.print(Text(title_of(row), "cyan"), overflow="ellipsis", no_wrap=True)
            show_cells(cell(row, key) for key in columns)


def title_of(row: dict[str, Any]) -> str:
    """An array or a line of the source in words."""
    if "text" in row:
        return f"{row['line']:4}  {row['text']}"
    return f"{row['name']}: {row['space']} memory, {row['dtype']} {tuple(row['shape'])}"


def number_of(row: dict[str, Any], key: tuple[str, str]) -> Any:
    """The number of an array or line in a column; None where it has none."""
    return row[key[0]].get(key[1])


def cell(row: dict[str, Any], key: tuple[str, str]) -> str:
    """That number as text."""
    number = number_of(row, key)
    return percent(number) if key[1] in SHARES else f"{number:,}"


def show_source(facts: dict[str, Any], console: Console) -> None:
    """The kernel, with the numbers of its lines."""
    console.print("\n[bold]source[/]")
    for number, line in enumerate(facts["source"]["text"].splitlines(), start=facts["source"]["first_line"]):
        console.print(Text(f"{number:4}  {line}"), soft_wrap=True)


def run_list(json: bool) -> int:
    """Say what can be traced."""
    rungs = {f"matmul:{rung.name}": rung.reason for rung in LADDER.values()}
    if json:
        facts = {"operators": list(TABLE), "folds": list(FOLDS), "products": ["matmul", *rungs], "layouts": LAYOUTS}
        sys.stdout.write(json_.dumps(facts, indent=2) + "\n")
        return 0
    console = Console(width=min(WIDTH, Console().width), highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("operators", " ".join(TABLE))
    table.add_row("folds", f"{' '.join(FOLDS)}  (along one dim with --dim)")
    table.add_row("matmul", "as the library does it; --shape M,N,K")
    for name, reason in rungs.items():
        table.add_row(name, reason)
    table.add_row("FILE.py:kernel", "your own, of numba.cuda or plain, with --grid, --block and --arg")
    console.print(table)
    console.print("\n[bold]layouts[/] for --layout")
    for name, what in LAYOUTS.items():
        console.print(f"{name:10} {what}")
    return 0
