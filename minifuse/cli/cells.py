"""`minifuse trace --cell`: print the inputs of one output element in order, and the operators that combine them.

    TRACED    recorded while the kernel ran on value IDs: the reads and operators, their threads and their order
    DERIVED   computed from these: the depth of the tree of operators, and its result in float64

The kernel of the parallel backend runs as Python source; LLVM may sum a row in another order.
"""

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from ..backends.operand import Operand
from ..core.errors import MinifuseError
from ..core.operators import TABLE
from ..core.wording import format_count
from ..inspect.provenance import (
    BACKENDS,
    CellProvenance,
    ProvenanceStage,
    ProvenanceTree,
    all_stages,
    compute_cell,
    trace_cell,
)
from .output import new_console, overview_table, print_json, print_report, report_error
from .subjects import (
    DEFAULT_SHAPE,
    RequestError,
    TraceRequest,
    format_title,
    parse_shape,
    random_arrays,
    reduction_named,
    requested_dtype,
)

REDUCTIONS = ("sum", "prod", "max", "min", "mean")
OPERATORS = tuple(name for name, entry in TABLE.items() if entry.result != "bool" and entry.accepts_floats)
MAX_LINES, MAX_NUMBERS, MAX_TEXT = 12, 8, 60  # lines of reads, numbers in a line, characters of a formula
CAVEAT = (
    "The source of the CPU kernel ran as Python. LLVM may reassociate sums: the compiled kernel may sum a row in vector "
    "lanes, in another order."
)
POOL = "The threads of the pool take chunks in order; which thread takes which chunk is decided at run time."


def run_cell(request: TraceRequest, cell: int, backend: str | None, json: bool) -> int:
    """Trace one output element and print its inputs; return 2 if the request is invalid."""
    try:
        title, origin, inputs, value = trace_request(request, cell, backend or "cuda")
    except MinifuseError as error:
        return report_error("trace", error)
    facts = {"what": request.what, "title": title} | provenance_facts(origin, inputs, value)
    if json:
        print_json(facts)
    else:
        show(facts, origin, inputs, new_console())
    return 0


def trace_request(
    request: TraceRequest, cell: int, backend: str
) -> tuple[str, CellProvenance, dict[str, np.ndarray], float | None]:
    """Trace one output element: return a title, its provenance, the memory of the inputs, and the stored value."""
    if backend not in BACKENDS:
        raise RequestError(f"--backend {backend}: expected one of {', '.join(BACKENDS)}")
    if request.what not in (*REDUCTIONS, *OPERATORS):
        raise RequestError(f"--cell: got {request.what}, expected {', '.join(REDUCTIONS)}, or a float operator")
    reason = f"only applies to kernels in a file, not to {request.what}"
    request.refuse(["arguments", "grid", "block", "shared", *["dim"] * (request.what in TABLE)], reason)
    entry = TABLE.get(request.what)
    shapes = [parse_shape(text) for text in request.shapes] or [DEFAULT_SHAPE]
    shapes = shapes * entry.arity if entry and len(shapes) == 1 else shapes
    if len(shapes) != (entry.arity if entry else 1):
        raise RequestError(f"{request.what}: got {len(shapes)} shapes, expected one --shape, or one for each operand")
    dtype = requested_dtype(request, "float32")
    arrays = random_arrays(shapes, [dtype] * len(shapes), request.layout)
    title = format_title(request.what, shapes, dtype, request) + (f", dim {request.dim}" if request.dim is not None else "")
    function = entry or reduction_named(request.what, request.dim)
    origin = trace_cell(function, arrays, backend, cell)
    return title, origin, input_memory(arrays), compute_cell(function, arrays, backend, cell)


def input_memory(arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the flat memory of the inputs, by the names used in the provenance."""
    return {f"in{k}": Operand.from_array(array).data for k, array in enumerate(arrays)}


# Facts.


def provenance_facts(origin: CellProvenance, inputs: dict[str, np.ndarray], value: float | None) -> dict[str, Any]:
    """Return the facts of an output element as plain data."""
    tree, reads = origin.tree, origin.reads
    values = tree.values(inputs)
    return {
        "backend": origin.backend,
        "cell": origin.cell,
        "TRACED": {
            "reads": len(reads),
            "readers": len({(read.launch, read.thread) for read in reads}),
            "turns": max((read.read_index for read in reads), default=-1) + 1,
            "launches": len({node.launch for node in tree.nodes if node.operator} or origin.launches),
            "pieces": len(tree.earlier_results),
            "value": value,
        },
        "DERIVED": {
            "operators": sum(bool(node.operator) for node in tree.nodes),
            "depth": tree.depth(),
            "value_in_this_order": float(values[-1]),
        },
        "ran": [{"chosen": list(launch.blocks_run), "of": launch.block_count} for launch in origin.launches],
        "reads": [
            {
                "array": r.array,
                "element": r.element,
                "launch": r.launch + 1,
                "block": r.thread[0],
                "thread": r.thread[1],
                "turn": r.read_index,
            }
            for r in reads
        ],
        "stages": [
            {"launch": stage.launch + 1, "title": stage.title, "values": [float(values[k]) for k in stage.nodes]}
            for stage in all_stages(tree)
        ],
        "tree": [part_facts(tree, k) for k in range(len(tree.nodes))],
    } | ({"caveat": CAVEAT} if origin.backend == "parallel" else {})


def part_facts(tree: ProvenanceTree, k: int) -> dict[str, object]:
    """Return one node of a tree as plain data; `of` lists the indices of an operator's inputs."""
    node = tree.nodes[k]
    if node.is_element:
        return {"array": node.array, "element": node.element}
    if not node.operator:
        return {"number": node.number if np.isfinite(node.number) else str(node.number)}
    facts = {"operator": node.operator, "of": list(node.operands), "launch": node.launch + 1}
    return facts | {"block": node.thread[0], "thread": node.thread[1]} | ({"way": node.exchange} if node.exchange else {})


# Text output.


def show(facts: dict[str, Any], origin: CellProvenance, inputs: dict[str, np.ndarray], console: Console) -> None:
    """Print the reads of an output element, then its tree."""
    console.print(Text(f"{facts['title']}: cell {origin.cell} on the {origin.backend} backend", "bold"), soft_wrap=True)
    print_report(overview_table(overview(facts, origin)), console)
    console.print("\n[bold]elements read, in order[/]")
    lines = list(format_reads(origin))
    for line in lines[:MAX_LINES]:
        console.print(Text(line), no_wrap=True, overflow="ellipsis")
    if len(lines) > MAX_LINES:
        console.print(f"and so on, {len(lines) - MAX_LINES:,} more lines; --json has all", style="dim")
    console.print("\n[bold]how they are combined[/]")
    values = origin.tree.values(inputs)
    for stage in all_stages(origin.tree):
        show_stage(stage, origin, values, console)
    if origin.backend == "parallel":
        console.print()
        console.print(textwrap.fill(CAVEAT, console.width), style="dim", soft_wrap=True)


def overview(facts: dict[str, Any], origin: CellProvenance) -> Iterator[tuple[str, str, str]]:
    """Iterate over the summary rows: label, name and text."""
    traced, derived = facts["TRACED"], facts["DERIVED"]
    unit = {"cuda": "threads", "parallel": "chunks"}.get(origin.backend)
    readers = (
        f", by {traced['readers']:,} {unit if traced['readers'] != 1 else (unit or '')[:-1]}"
        if unit and traced["readers"]
        else ""
    )
    yield "TRACED", "reads", f"{traced['reads']:,} elements{readers}, at most {traced['turns']:,} in sequence"
    if traced["pieces"]:
        yield "TRACED", "launches", f"{traced['launches']}: {traced['pieces']} partial results, then a reduction of them"
    for k, launch in enumerate(origin.launches, start=1):
        if unit and launch.block_count > 1:
            noun = "blocks" if origin.backend == "cuda" else "chunks"
            yield "TRACED", f"launch {k}", f"{noun} {format_range(launch.blocks_run)} of {launch.block_count} ran"
    yield "DERIVED", "depth", f"{derived['depth']:,} operators on the longest path, {derived['operators']:,} in total"
    if traced["value"] is not None:
        yield "TRACED", "stored", f"{traced['value']:.9g}"
    yield "DERIVED", "this order", f"{derived['value_in_this_order']:.17g} in float64"


def format_range(numbers: tuple[int, ...]) -> str:
    """Format increasing numbers in a short form.

    Examples
    --------
    >>> format_range((4, 5, 6, 7)), format_range((2,)), format_range((2, 10, 18))
    ('4..7', '2', '2, 10, 18')
    """
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}..{numbers[-1]}"
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS]))
    return shown + (f" and {len(numbers) - MAX_NUMBERS} more" if len(numbers) > MAX_NUMBERS else "")


def format_reader(origin: CellProvenance, launch: int, thread: tuple[int, int]) -> str:
    """Format the thread, chunk or loop that read or combined values."""
    if origin.backend == "cuda":
        return f"block {thread[0]}, thread {thread[1]}"
    return f"chunk {thread[0]}" if origin.backend == "parallel" else "the loop"


def format_reads(origin: CellProvenance) -> Iterator[str]:
    """Iterate over lines of text: for each thread in turn, the runs of adjacent elements that it read."""
    has_several_launches = len({read.launch for read in origin.reads}) > 1
    for (launch, thread), group in groupby(origin.reads, key=lambda read: (read.launch, read.thread)):
        runs: list[list[Any]] = []
        for read in group:
            last = runs[-1] if runs else None
            if last and last[0] == read.array and read.element == last[2] + 1:
                last[2] = read.element
            else:
                runs.append([read.array, read.element, read.element])
        texts = [f"{a}[{first}]" if first == last else f"{a}[{first}..{last}]" for a, first, last in runs]
        rest = f" and {len(texts) - MAX_NUMBERS:,} more" if len(texts) > MAX_NUMBERS else ""
        prefix = f"launch {launch + 1}, " if has_several_launches else ""
        yield f"  {prefix}{format_reader(origin, launch, thread)}: {', '.join(texts[:MAX_NUMBERS])}{rest}"


def show_stage(stage: ProvenanceStage, origin: CellProvenance, values: list[np.floating], console: Console) -> None:
    """Print one stage of the tree: its first few values, and how they were computed."""
    tree = origin.tree
    prefix = f"launch {stage.launch + 1}: " if tree.earlier_results else ""
    count = len(stage.nodes)
    console.print(Text(f"{prefix}{stage.title} ({format_count(count, 'number')})", "cyan"), soft_wrap=True)
    for k in stage.nodes[:MAX_NUMBERS]:
        console.print(Text(f"  {format_part(origin, k, values)}"), no_wrap=True, overflow="ellipsis")
    if count > MAX_NUMBERS:
        console.print(f"  and {count - MAX_NUMBERS:,} more", style="dim")


def format_part(origin: CellProvenance, k: int, values: list[np.floating]) -> str:
    """Format one node: the thread that computed it, its value, and its inputs."""
    tree, node = origin.tree, origin.tree.nodes[k]
    if not node.operator:
        return (
            f"{float(values[k]):.6g}  =  {tree.text(k)}"
            if node.is_element
            else f"{node.number:g}, from a thread that reads no element"
        )
    names = {piece: f"piece{n}" for n, piece in enumerate(tree.earlier_results)}
    text = tree.text(k, MAX_TEXT, {} if k in names else names)
    if node.exchange:
        symbol, numbers = TABLE[node.operator].symbol, [f"{float(values[p]):.6g}" for p in node.operands]
        text = f" {symbol} ".join(numbers) if symbol else f"{node.operator}({', '.join(numbers)})"
    return f"{format_reader(origin, node.launch, node.thread)}: {float(values[k]):.6g}  =  {text}"
