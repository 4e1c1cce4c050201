"""Fusion: the graph of a function, its kernels, and why there are not fewer.

The facts come from `explain` and `source` of the fused function, from the steps of its plan, and from their expressions.
Nothing runs or compiles: the cuda backend only records launches, so that its kernels are the same without a GPU, and the
parallel backend loads no kernel.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.backends.base import Backend
from minifuse.backends.registry import get_backend
from minifuse.compiler.format_node import NodeNames
from minifuse.compiler.pipeline import initial_graph
from minifuse.core.operators import Operator
from minifuse.core.wording import format_count
from minifuse.inspect.dry_run import RecordingBackend, RecordingDevice
from minifuse.inspect.explain import NumberedGraph
from minifuse.inspect.explanation import KernelFacts, group_refusals
from minifuse.inspect.report import format_bytes
from minifuse.ir import array_functions as kinds
from minifuse.ir.format_expressions import REDUCTION_NAMES
from minifuse.ir.graph import Argument, Node
from minifuse.ir.kernel_ir import Accumulator, Constant, Expression, KernelParameter, Load, ReadOutput
from minifuse.ir.steps import NO_BUFFER

from . import fusion_passes, fusion_steps
from .cited_facts import DERIVED, Fact, Line
from .function_parts import FunctionParts, KernelPart
from .functions import Example
from .fusion_graph import (
    graph_of,
    kernel_hull,
    kernel_nodes,
    last_line,
    loading_edges,
    memory_names,
    refusal_edges,
    shorten_sentence,
)
from .fusion_passes import PassFrames
from .graph_layout import LayeredGraph
from .node_to_kernel import is_free, nodes_by_expression, step_expressions, stored_expressions
from .picture import CHOSEN, IDLE, LOAD, OTHER, STORE, Cell, Frame, Grid, Hull, Picture
from .sources import example_lines

BACKENDS = ("python", "parallel", "cuda")
PLAYS = ("kernel by kernel", "step by step", "pass by pass")
SIZES = (1, 8, 33, 64, 256, 1024)
MEANS = (
    (LOAD, "an input; bytes that are read"),
    (STORE, "stored in memory; bytes that are written"),
    (OTHER, "a merge that was refused"),
    (IDLE, "costs nothing"),
    (CHOSEN, "computed by this kernel"),
)
MAX_ELEMENTS = 1 << 22  # of an input or a result of a typed function; nothing is computed
BAR = 12  # cells of the longer bar


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
        pass_names(entry.plan, graph),
    )


def kernel_parts(step: Any, plan: Any, graph: NumberedGraph, held: dict[Expression, list[Node]]) -> tuple[KernelPart, ...]:
    """Return the loads, operations and stores of a kernel."""
    names = plan.host.slot_names
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
            parts.append(KernelPart(LOAD if memory else "", (), memory))
        else:
            parts.append(KernelPart("", reads, "", nodes))
    for e, (slot, _) in zip(stored_expressions(step), step.outputs, strict=True):
        parts.append(KernelPart(STORE, (index[e],) if e in index else (), names[slot]))
    return tuple(parts)


def pass_names(plan: Any, graph: NumberedGraph) -> dict[str, int]:
    """Return the numbers of the nodes by the names that the passes of the compiler have for them."""
    initial = initial_graph(plan.graph, plan.backward, plan.layouts)
    names = NodeNames(plan.host.slot_names[: len(plan.arguments)])
    names.add((*initial.arguments, *initial.nodes))
    return {name: graph.numbers[node] for node, name in names.items() if node in graph.numbers}


def operator_symbol(operator: Operator | None, dtype: str) -> str:
    """Return a short label of an operator; for a cast, the name of its dtype."""
    return dtype if operator is None else operator.symbol or operator.name


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


def picture(found: FunctionParts, play: str = PLAYS[0]) -> Picture:
    """Draw the graph with its kernels, and the bytes that they move, before and after.

    It plays the kernels, one after the other, or all that was decided on the way to them, or the passes of the compiler.
    """
    layout, said = (("graph", "bytes"),), sentence(found)
    if play == PLAYS[2]:  # each step has the arrows of its graph
        passes = PassFrames(found)
        grids = passes.layout.grid, bytes_grid(found)
        return Picture(said, grids, tuple(passes.frames()), fusion_passes.MEANS, layout=layout)
    graph = graph_of(found)
    words, steps = (MEANS, frames) if play == PLAYS[0] else (fusion_steps.MEANS, fusion_steps.frames)
    played = tuple(steps(found, graph))
    first = min(1, len(played) - 1) if play == PLAYS[0] else 0
    return Picture(said, (graph.grid, bytes_grid(found)), played, words, graph.edges(), layout=layout, first=first)


def bytes_grid(found: FunctionParts) -> Grid:
    """Draw the bytes that are moved without fusion and with it as two bars, of which a part is read and the rest written."""
    before, after = found.explained.unfused, found.explained.forward
    most = max(before.nbytes, after.nbytes, 1)
    cells, names = list[Cell](), list[str]()
    for row, (when, moved) in enumerate((("before", before), ("after", after))):
        kernels = format_count(len(moved.kernels), "kernel")
        count = bar_length(moved.nbytes, most)
        read = sum(x.nbytes for kernel in moved.kernels for x in kernel.reads)
        written = sum(x.nbytes for kernel in moved.kernels for x in kernel.writes)
        reading = round(count * read / max(read + written, 1))
        label = (
            f"{when}: {kernels}, {format_bytes(moved.nbytes)}: {format_bytes(read)} read, {format_bytes(written)} written"
        )
        cells += [Cell(row, k, "", label, LOAD if k < reading else STORE, (f"{when}{k}", when)) for k in range(count)]
        names.append(f"{when}: {format_bytes(moved.nbytes)}")
    return Grid("bytes", "Bytes moved", 2, BAR, tuple(cells), tuple(names))


def bar_length(nbytes: int, most: int) -> int:
    """Return the cells of a bar: in proportion to its bytes, and at least one."""
    return max(round(BAR * nbytes / most), 1)


def frames(found: FunctionParts, graph: LayeredGraph) -> list[Frame]:
    """Return a frame of the whole graph, one for each kernel, and one for each reason why there are not fewer."""
    kernels = range(len(found.parts))
    x = found.explained

    def hulls(chosen: int | None) -> tuple[Hull, ...]:
        kinds = [CHOSEN if k == chosen else "" for k in kernels]
        return tuple(
            hull for k in kernels for hull in kernel_hull(found, graph, kernel_nodes(found, k), kinds[k], f"launch{k}")
        )

    totals = (f"{len(x.unfused.kernels)} → {len(kernels)}", "kernels"), (f"{x.ratio:.3g}", "times fewer bytes")
    names = memory_names(found)
    steps = [Frame(sentence(found), hulls=hulls(None), numbers=totals)]
    for k, facts in enumerate(x.forward.kernels):
        nodes = kernel_nodes(found, k)
        chosen = tuple((f"g{n}", CHOSEN) for n in nodes if n not in found.stored)
        moved = (format_count(len(nodes), "operation").partition(" ")[2], format_bytes(facts.nbytes))
        steps.append(
            Frame(
                describe_kernel(k, facts, names),
                chosen,
                edges=loading_edges(found, graph, k),
                hulls=hulls(k),
                line=last_line(found, nodes),
                numbers=((str(len(nodes)), f"{moved[0]} in launch{k}"), (moved[1], "moved"), *totals),
            )
        )
    for (producer, _, reason), into in group_refusals(x.refusals).items():
        ends = [n for text in (producer, *into) if (n := node_number(text)) is not None]
        readers = ends[1:] if node_number(producer) is not None else []
        steps.append(
            Frame(
                shorten_sentence(f"{name_of(producer)} is not fused into {', '.join(map(name_of, into))}: {reason}."),
                tuple((f"g{n}", OTHER) for n in ends),
                edges=tuple(dict.fromkeys(edge for n in readers for edge in refusal_edges(found, graph, ends[0], n))),
                hulls=hulls(None),
                line=last_line(found, ends),
                numbers=totals,
            )
        )
    return steps


def name_of(text: str) -> str:
    """Return the name of a value from its formula, "%3 = %0 @ %2"."""
    return text.partition(" = ")[0]


def node_number(text: str) -> int | None:
    """Return the number of a value from its formula, "%3 = %0 @ %2"; None if it has none."""
    name = name_of(text)
    return int(name[1:]) if name.startswith("%") and name[1:].isdecimal() else None


def describe_kernel(k: int, facts: KernelFacts, names: Mapping[str, str]) -> str:
    """Describe a kernel in a sentence. `names` has better names of arrays."""
    reads, writes = (", ".join(names.get(x.name, x.name) for x in xs) or "nothing" for xs in (facts.reads, facts.writes))
    end = f"{format_bytes(facts.scratch)} of scratch" if facts.scratch else "nothing between touches memory"
    return shorten_sentence(f"launch{k} reads {reads} and writes {writes}; {end}.")


def sentence(function_parts: FunctionParts) -> str:
    """Summarize the picture."""
    x = function_parts.explained
    now, before = x.forward, x.unfused
    kernels = f"{format_count(len(now.kernels), 'kernel')} instead of {len(before.kernels)}"
    return f"{x.function}: {kernels}, {x.ratio:.3g} times fewer bytes. {function_parts.example.shows}"


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
    example = function_parts.example
    file = example.function.__code__.co_filename
    counts = Counter(
        node.line
        for k, node in enumerate(function_parts.explained.nodes)
        if node.line and k not in function_parts.free | function_parts.inputs
    )
    return [
        replace(line, counts=(("ops", n),) if (n := counts[f"{file}:{line.number}"]) else ())
        for line in example_lines(example)
    ]


def generated_lines(function_parts: FunctionParts) -> list[Line]:
    """Return the code that runs: the host program, and each kernel below the operations that it computes."""
    return [Line(k, text) for k, text in enumerate(function_parts.source.splitlines(), 1)]


def command(function_parts: FunctionParts, play: str = PLAYS[0]) -> str:
    """Return the terminal command that prints the same facts."""
    shapes = ",".join("x".join(map(str, shape)) for shape in function_parts.example.shapes(function_parts.size))
    what = f"{function_parts.example.file}:{function_parts.example.function.__name__}"
    on = f" --backend {function_parts.backend}" if function_parts.backend != "cuda" or "cuda" in mf.backends() else ""
    steps = " --steps" if play == PLAYS[1] else ""
    return f"minifuse explain {what} --shape {shapes}{on}{steps} --passes --source"
