"""Fusion: the graph of a function, its kernels, and why there are not fewer.

The facts come from `explain` and `source` of the fused function, from the steps of its plan, and from their expressions.
Nothing runs or compiles: the cuda backend only records launches, so that its kernels are the same without a GPU, and the
parallel backend loads no kernel.
"""

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.backends.base import Backend
from minifuse.backends.registry import get_backend
from minifuse.compiler.pretty_print import Formula
from minifuse.core.operators import Operator
from minifuse.inspect.dry_run import RecordingBackend, RecordingDevice
from minifuse.inspect.explain import NumberedGraph
from minifuse.inspect.explanation import KernelFacts, group_refusals
from minifuse.inspect.report import format_bytes, format_count
from minifuse.ir import array_functions as kinds
from minifuse.ir.format_expressions import REDUCTION_NAMES
from minifuse.ir.graph import Argument, Node
from minifuse.ir.kernel_ir import Accumulator, Constant, Expression, KernelParameter, Load, Op, ReadOutput, ReduceExpr
from minifuse.ir.steps import NO_BUFFER

from . import fusion_steps
from .cited_facts import DERIVED, Fact, Line
from .function_parts import FunctionParts, KernelPart
from .functions import Example
from .node_to_kernel import is_free, nodes_by_expression, step_expressions, stored_expressions
from .picture import CHOSEN, IDLE, LOAD, OTHER, STORE, Cell, Frame, Grid, Picture

BACKENDS = ("python", "parallel", "cuda")
PLAYS = ("kernel by kernel", "step by step")
SIZES = (1, 8, 33, 64, 256, 1024)
MEANS = (
    (LOAD, "is read"),
    (STORE, "is written to memory"),
    (OTHER, "gathers many in one; a merge that was refused"),
    (IDLE, "costs nothing"),
    (CHOSEN, "computed by this kernel"),
)
MAX_LABEL_LENGTH = 90  # characters of a formula in a label


def planning_backend(name: str) -> Backend:
    """Return the backend of this name, for calls that are planned but not run."""
    return RecordingBackend(RecordingDevice()) if name == "cuda" else get_backend(name)


def split_function(example: Example, rows: int, backend: str) -> FunctionParts:
    """Capture a function for arguments of a size, and split its graph into kernels.

    Raises
    ------
    MinifuseError
        The backend is not available.
    """
    planned_backend = planning_backend(backend)
    arguments = [mf.Tensor.from_numpy(np.zeros(shape, np.float32), planned_backend) for shape in example.shapes(rows)]
    fused = mf.fuse(example.function)
    entry, _ = fused.get_entry(tuple(arguments), {})
    explained, graph = fused.explain(*arguments), NumberedGraph(entry.plan, entry.trace)
    nodes_of_steps = nodes_by_expression(entry.plan, graph)
    order = range(len(graph.order))
    return FunctionParts(
        example,
        rows,
        backend,
        explained,
        fused.source(*arguments),
        tuple(kernel_parts(step, entry.plan, graph, of) for step, of in zip(entry.plan.steps, nodes_of_steps, strict=True)),
        tuple(tuple(dict.fromkeys(graph.numbers[x] for x in graph.order[k].inputs if x in graph.numbers)) for k in order),
        tuple(node_symbol(graph.order[k], explained.nodes[k].name) for k in order),
        frozenset(k for k in order if is_free(graph.order[k])),
        frozenset(k for k in order if isinstance(graph.order[k].function, Argument)),
        frozenset(
            graph.numbers[node]
            for step, of in zip(entry.plan.steps, nodes_of_steps, strict=True)
            for e in stored_expressions(step)
            for node in of.get(e, ())
        ),
    )


def kernel_parts(step: Any, plan: Any, graph: NumberedGraph, held: dict[Expression, list[Node]]) -> tuple[KernelPart, ...]:
    """Return the loads, operations and stores of a kernel."""
    names = plan.host.slot_names
    formula = Formula(step, names)
    order = [e for e in step_expressions(step) if not isinstance(e, Constant | KernelParameter)]
    index = {e: k for k, e in enumerate(order)}
    product = set(step.kernel.factors)
    parts = []
    for e in order:
        below = [*product] if isinstance(e, Accumulator) else list(e.inputs)
        reads = tuple(dict.fromkeys(index[x] for x in below if x in index))
        nodes = tuple(sorted(graph.numbers[node] for node in held.get(e, ()) if node in graph.numbers))
        if isinstance(e, Load | ReadOutput):
            buffers = step.outputs if isinstance(e, ReadOutput) else step.inputs
            slot = buffers[e.index][0]
            memory = "" if slot == NO_BUFFER else names[slot]
            what = f"loads {memory}" if memory else "is the index of the point, which lies nowhere"
            parts.append(KernelPart(memory or "index", what, LOAD if memory else "", (), memory))
        else:
            name = operator_symbol(e.operator, e.dtype.name) if isinstance(e, Op | ReduceExpr) else "@"
            word = REDUCTION_NAMES.get(name, name) if isinstance(e, ReduceExpr) else name
            text = {"+": "sum", "*": "prod"}.get(word, word) if isinstance(e, ReduceExpr) else word
            said = formula.format(e)[0]
            said = f"computes {truncate(f'{said} = {formula.shared[said]}' if said in formula.shared else said)}"
            parts.append(KernelPart(text, said, OTHER if isinstance(e, ReduceExpr | Accumulator) else "", reads, "", nodes))
    for e, (slot, _) in zip(stored_expressions(step), step.outputs, strict=True):
        reads = (index[e],) if e in index else ()
        parts.append(KernelPart(names[slot], f"stores {names[slot]}", STORE, reads, names[slot]))
    return tuple(parts)


def operator_symbol(operator: Operator | None, dtype: str) -> str:
    """Return a short label of an operator; for a cast, the name of its dtype."""
    return dtype if operator is None else operator.symbol or operator.name


def truncate(text: str) -> str:
    """Cut off a formula that is too long for a label."""
    return text if len(text) <= MAX_LABEL_LENGTH else text[:MAX_LABEL_LENGTH] + " ..."


def node_symbol(node: Node, name: str) -> str:
    """Return a short label of a node of the graph."""
    function = node.function
    if isinstance(function, Argument):
        return name
    if isinstance(function, Operator):
        return operator_symbol(function, "")
    if isinstance(function, kinds.Reduce):
        return REDUCTION_NAMES.get(function.operator.name, function.operator.name)
    if isinstance(function, kinds.View):
        return str(function.method)
    return (
        "@"
        if isinstance(function, kinds.Matmul)
        else str(node.dtype)
        if isinstance(function, kinds.Cast)
        else kind_name(function)
    )


def kind_name(function: Any) -> str:
    """Return the name of a kind of function."""
    return type(function).__name__.lower()


# The picture.


def picture(function_parts: FunctionParts, play: str = PLAYS[0]) -> Picture:
    """Draw the graph in layers, a grid of operations for each kernel, and the refused merges.

    It plays the kernels, one after the other, or all that was decided on the way to them.
    """
    grids = [graph_grid(function_parts), *[kernel_grid(function_parts, k) for k in range(len(function_parts.parts))]]
    if function_parts.explained.refusals:
        grids.append(refusal_grid(function_parts))
    if play == PLAYS[1]:
        return Picture(
            sentence(function_parts), tuple(grids), tuple(fusion_steps.frames(function_parts)), fusion_steps.MEANS
        )
    return Picture(sentence(function_parts), tuple(grids), tuple(frames(function_parts)), MEANS)


def assign_layers(reads: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return (row, column) of each value: right of all that it reads, in the next free row of its column."""
    columns, heights, places = list[int](), Counter[int](), list[tuple[int, int]]()
    for inputs in reads:
        columns.append(1 + max([columns[k] for k in inputs], default=-1))
        places.append((heights[columns[-1]], columns[-1]))
        heights[columns[-1]] += 1
    return places


def readers(reads: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the nodes that read each value."""
    return [[j for j, inputs in enumerate(reads) if k in inputs] for k in range(len(reads))]


def grid_of(name: str, title: str, places: Sequence[tuple[int, int]], cells: Sequence[Cell]) -> Grid:
    """Return a grid of cells at these rows and columns."""
    placed = tuple(Cell(*at, c.text, c.label, c.kind, c.links) for at, c in zip(places, cells, strict=True))
    rows, columns = (1 + max([at[d] for at in places], default=0) for d in (0, 1))
    return Grid(name, title, rows, columns, placed)


def edge_links(prefix: str, k: int, reads: Sequence[Sequence[int]], used: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return the links to the values that a value reads, and to the nodes that read it."""
    return tuple(f"{prefix}{j}>{k}" for j in reads[k]) + tuple(f"{prefix}{k}>{j}" for j in used[k])


def graph_grid(function_parts: FunctionParts) -> Grid:
    """Draw each value of the function once, to the right of its operands."""
    used, cells = readers(function_parts.reads), list[Cell]()
    for k, node in enumerate(function_parts.explained.nodes):
        kernels = [f"launch{j}" for j in computing_kernels(function_parts, k)]
        storage = (
            "an input in memory"
            if k in function_parts.inputs
            else "no operation, which costs nothing"
            if k in function_parts.free
            else f"computed in {' and '.join(kernels) or 'no kernel of its own'}, "
            + ("and stored" if k in function_parts.stored else "never stored")
        )
        uses = f", read by {', '.join(f'%{j}' for j in used[k])}" if used[k] else ", a result"
        label = f"%{k}: {node.operation} {node.name}".rstrip() + f", {node.dtype} {node.shape}, {storage}{uses}"
        links = (f"g{k}", f"n{k}", *edge_links("g", k, function_parts.reads, used))
        cells.append(Cell(0, 0, f"%{k} {function_parts.glyphs[k]}", label, cell_kind(function_parts, k), links))
    title = "graph: blue is an input, orange is stored, hatched costs nothing, white never touches memory"
    return grid_of("graph", title, assign_layers(function_parts.reads), cells)


def cell_kind(function_parts: FunctionParts, k: int) -> str:
    """Return the kind of the cell of a value."""
    return (
        LOAD
        if k in function_parts.inputs
        else IDLE
        if k in function_parts.free
        else STORE
        if k in function_parts.stored
        else ""
    )


def computing_kernels(function_parts: FunctionParts, k: int) -> list[int]:
    """Return the kernels that compute a value; several, if it is recomputed."""
    return [j for j, parts in enumerate(function_parts.parts) if any(k in part.nodes for part in parts)]


def kernel_grid(function_parts: FunctionParts, k: int) -> Grid:
    """Draw the loads, operations and stores of a kernel, each to the right of its operands."""
    parts, facts = function_parts.parts[k], function_parts.explained.forward.kernels[k]
    reads = [part.reads for part in parts]
    used, cells = readers(reads), list[Cell]()
    sizes = {x.name: x.nbytes for x in (*facts.reads, *facts.writes)}
    for j, part in enumerate(parts):
        moved = f", {format_bytes(sizes[part.memory])}" if part.memory in sizes else ""
        nodes = f": {', '.join(f'%{n}' for n in part.nodes)} of the graph" if part.nodes else ""
        links = (f"k{k}.{j}", *[f"n{n}" for n in part.nodes], *edge_links(f"k{k}.", j, reads, used))
        links += (f"m {part.memory}",) if part.memory else ()
        cells.append(Cell(0, 0, part.text, f"launch{k} {part.says}{moved}{nodes}", part.kind, links))
    title = f"launch{k}: {facts.form}; {format_count(facts.launches, 'launch', 'launches')}, {format_bytes(facts.nbytes)}"
    return grid_of(f"kernel{k}", title, assign_layers(reads), cells)


def refusal_grid(function_parts: FunctionParts) -> Grid:
    """Draw the refused merges."""
    cells = []
    for k, x in enumerate(function_parts.explained.refusals):
        ends = [value.partition(" = ")[0] for value in (x.producer, x.consumer)]
        label = f"{x.producer} was not fused into {x.consumer}: {x.reason}"
        links = (f"r{k}", *[f"g{end[1:]}" for end in ends if end.startswith("%") and end[1:].isdecimal()])
        cells.append(Cell(0, 0, f"{ends[0]} | {ends[1]}", label, OTHER, links))
    title = "merges that were refused: what is computed | what reads it"
    return grid_of("refusals", title, [(k, 0) for k in range(len(cells))], cells)


def frames(function_parts: FunctionParts) -> list[Frame]:
    """Return a frame of the whole graph, and one for each kernel."""
    if not function_parts.parts:
        return []
    steps = [Frame(sentence(function_parts))]
    for k, (parts, facts) in enumerate(zip(function_parts.parts, function_parts.explained.forward.kernels, strict=True)):
        chosen = [(f"k{k}.{j}", CHOSEN) for j, part in enumerate(parts) if not part.memory]
        chosen += [(f"g{n}", CHOSEN) for n in dict.fromkeys(n for part in parts for n in part.nodes)]
        chosen += [
            (f"r{n}", OTHER) for n in range(len(function_parts.explained.refusals))
        ]  # their cells share links with the graph
        steps.append(Frame(describe_kernel(k, facts), tuple(chosen)))
    return steps


def describe_kernel(k: int, facts: KernelFacts) -> str:
    """Describe a kernel in a sentence."""
    reads, writes = ([f"{x.name} ({format_bytes(x.nbytes)})" for x in xs] for xs in (facts.reads, facts.writes))
    return f"launch{k} reads {', '.join(reads) or 'nothing'}, computes {facts.formula}, and writes {', '.join(writes)}."


def sentence(function_parts: FunctionParts) -> str:
    """Summarize the picture."""
    x, backend = function_parts.explained, function_parts.backend
    now, before = x.forward, x.unfused
    text = f"{x.function} on {backend}: {format_count(len(now.kernels), 'kernel')} instead of {len(before.kernels)}"
    text += f", {format_bytes(now.nbytes)} moved instead of {format_bytes(before.nbytes)}"
    return f"{text}. {function_parts.example.shows}"


# Beside the picture.


def facts(function_parts: FunctionParts, chosen: str | None = None) -> list[Fact]:
    """Return facts about the function before and after fusion, about each kernel, and about each refused merge."""
    x = function_parts.explained
    rule = "of the plan that would run; before: of the calls that the function makes by itself"
    bytes_rule = "of distinct elements: what must be moved at least, however caches help"
    now, before = x.forward, x.unfused
    known = [
        *chosen_facts(function_parts, chosen),
        Fact("kernels", f"{len(before.kernels)} before, {len(now.kernels)} after", DERIVED, rule),
        Fact("launches", f"{before.launches} before, {now.launches} after", DERIVED, "what the backend starts"),
        Fact("bytes moved", f"{format_bytes(before.nbytes)} before, {format_bytes(now.nbytes)} after", DERIVED, bytes_rule),
        Fact("times fewer bytes", f"{x.ratio:.3g}", DERIVED),
        Fact(
            "peak memory",
            f"{format_bytes(before.peak)} before, {format_bytes(now.peak)} after",
            DERIVED,
            "temporaries and results",
        ),
    ]
    known += [
        Fact(f"launch{k}", kernel.formula, DERIVED, f"{kernel.form}; {format_bytes(kernel.nbytes)}")
        for k, kernel in enumerate(now.kernels)
    ]
    known += [
        Fact("not fused", f"{producer} into {', '.join(into)}", DERIVED, reason)
        for (producer, _, reason), into in group_refusals(x.refusals).items()
    ]
    return known


def chosen_facts(function_parts: FunctionParts, chosen: str | None) -> list[Fact]:
    """Return the facts of the selected cell."""
    for grid in picture(function_parts).grids if chosen else ():
        for cell in grid.cells:
            if cell.links[0] == chosen:
                return [Fact("chosen", cell.label, DERIVED)]
    return []


def function_lines(function_parts: FunctionParts) -> list[Line]:
    """Return the source of the function, with the number of graph operations of each line."""
    lines, first = inspect.getsourcelines(function_parts.example.function)
    file = inspect.getsourcefile(function_parts.example.function)
    counts = Counter(
        node.line
        for k, node in enumerate(function_parts.explained.nodes)
        if node.line and k not in function_parts.free | function_parts.inputs
    )
    return [
        Line(first + k, text.rstrip("\n"), (("ops", n),) if (n := counts[f"{file}:{first + k}"]) else ())
        for k, text in enumerate(lines)
    ]


def generated_lines(function_parts: FunctionParts) -> list[Line]:
    """Return the code that runs: the host program, and each kernel below the operations that it computes."""
    return [Line(k, text) for k, text in enumerate(function_parts.source.splitlines(), 1)]


def command(function_parts: FunctionParts, play: str = PLAYS[0]) -> str:
    """Return the terminal command that prints the same facts."""
    shapes = ",".join("x".join(map(str, shape)) for shape in function_parts.example.shapes(function_parts.size))
    what = f"project/views/functions.py:{function_parts.example.function.__name__}"
    on = f" --backend {function_parts.backend}" if function_parts.backend != "cuda" or "cuda" in mf.backends() else ""
    steps = " --steps" if play == PLAYS[1] else ""
    return f"minifuse explain {what} --shape {shapes}{on}{steps} --passes --source"
