"""The passes of the compiler as frames: which nodes a pass changes, and which kernels exist after it."""

import re
from collections.abc import Iterator

from minifuse.inspect.report import format_count

from .function_parts import FunctionParts
from .fusion_graph import kernel_hull, kernel_nodes, last_line
from .graph_layout import LayeredGraph
from .picture import CHOSEN, IDLE, LOAD, STORE, Frame, Hull

MEANS = (
    (LOAD, "an input; bytes that are read"),
    (STORE, "stored in memory; bytes that are written"),
    (IDLE, "costs nothing"),
    (CHOSEN, "changed by this pass"),
)
NAME = re.compile(r"[-+!] (\w+)")  # the node that a line is about
KERNEL, LAUNCH = "# kernel ", "+ launch("  # in a line: the node is the result of a kernel; a kernel is launched


def frames(found: FunctionParts, graph: LayeredGraph) -> Iterator[Frame]:
    """Return a frame of the captured graph, and one for each pass that changes something."""
    passes = found.explained.passes
    changed = [x for x in passes if x.changes]
    has_kernels = has_launches = False
    count = f"{len(changed)} of {len(passes)} passes change something here."
    yield Frame(f"The graph as it was captured. {count}", stored_later(found), numbers=numbers(0, 0))
    for x in changed:
        has_kernels |= any(KERNEL in line for line in x.changes)
        has_launches |= any(line.startswith(LAUNCH) for line in x.changes)
        names = dict.fromkeys(match[1] for line in x.changes if (match := NAME.match(line)))
        nodes = [found.named[name] for name in names if name in found.named]
        kinds = tuple((f"g{k}", CHOSEN) for k in nodes) + (() if has_kernels else stored_later(found))
        yield Frame(
            f"After {x.name}: {x.summary}",
            kinds,
            hulls=hulls(found, graph, has_launches) if has_kernels else (),
            line=last_line(found, nodes),
            numbers=numbers(len(x.changes), len(found.parts) if has_kernels else 0),
        )


def stored_later(found: FunctionParts) -> tuple[tuple[str, str], ...]:
    """Return the kinds of the stored values before it is decided that they are stored."""
    return tuple((f"g{k}", "") for k in sorted(found.stored - found.inputs - found.free))


def hulls(found: FunctionParts, graph: LayeredGraph, has_launches: bool) -> tuple[Hull, ...]:
    """Return the outlines of all kernels, with their names if they are launched."""
    kernels = range(len(found.parts))
    names = [f"launch{k}" if has_launches else "a kernel" for k in kernels]
    return tuple(hull for k in kernels for hull in kernel_hull(found, graph, kernel_nodes(found, k), "", names[k]))


def numbers(changes: int, kernels: int) -> tuple[tuple[str, str], ...]:
    """Return the numbers of a step."""
    return (f"{changes:,}", format_count(changes, "change").partition(" ")[2]), (f"{kernels}", "kernels so far")
