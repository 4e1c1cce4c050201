"""The decisions of the compiler as frames: the captured graph, a frame for each decision, and the kernels.

Each frame shows the cells after so many decisions. The frames are computed from the decisions alone; tests check that the
last decision results in the plan.
"""

from collections.abc import Collection, Iterator, Mapping

from minifuse.core.wording import format_count
from minifuse.inspect.fusion_log_text import DecisionText
from minifuse.inspect.report import format_bytes

from .function_parts import FunctionParts
from .fusion_graph import kernel_hull, last_line, refusal_edges, shorten_sentence
from .graph_layout import LayeredGraph
from .picture import CHOSEN, IDLE, LOAD, OTHER, STORE, Frame, Hull

MEANS = (
    (LOAD, "an input; bytes that are read"),
    (STORE, "stored, as nothing else is decided; bytes that are written"),
    (OTHER, "a merge that was refused"),
    (IDLE, "costs nothing"),
    (CHOSEN, "what this step is about"),
)


class Progress:
    """The decisions so far. Values are numbers of the graph, kernels numbers of the plan."""

    def __init__(self) -> None:
        self.open: dict[int | None, dict[int, None]] = {}  # unfinished kernel -> values that it computes so far
        self.computed: list[tuple[int, ...]] = []  # the values that each finished kernel computes
        self.stored: list[tuple[int, ...]] = []
        self.refused: list[tuple[int, ...]] = []  # (producer, consumer)

    def apply(self, step: DecisionText) -> Collection[int]:
        """Apply the next decision, and return the values that its kernel computes so far."""
        if step.kind == "begun":
            self.open[step.kernel] = {}
        elif step.kind in ("taken", "held"):
            self.open[step.kernel] |= dict.fromkeys(step.values)
        elif step.kind == "refused":
            self.refused.append(step.values)
        elif step.kind == "again":
            return self.open.pop(step.kernel)
        elif step.kind in ("made", "copied"):
            self.stored.append(step.values)
            self.computed.append(tuple(self.open.pop(step.kernel, ())))
            return self.computed[-1]
        return self.open.get(step.kernel, ())


def frames(found: FunctionParts, graph: LayeredGraph) -> Iterator[Frame]:
    """Return frames of the captured graph, of each decision, and of the kernels."""
    x, progress = found.explained, Progress()
    count = sum(k not in found.free | found.inputs for k in range(len(x.nodes)))
    begin = f"The graph as it was captured: {format_count(count, 'operation')}, none of them in a kernel yet."
    yield Frame(begin, cell_kinds(found, progress, {}), numbers=numbers(progress))
    for step in x.steps:
        inside, is_refused = progress.apply(step), step.kind == "refused"
        highlighted = dict.fromkeys((*inside, *step.values), OTHER if is_refused else CHOSEN)
        yield Frame(
            shorten_sentence(sentence(found, step)),
            cell_kinds(found, progress, highlighted),
            edges=refusal_edges(found, graph, *step.values[:2]) if is_refused else (),
            hulls=hulls(found, graph, progress, step.kernel),
            line=last_line(found, step.values),
            numbers=numbers(progress),
        )
    moved = format_bytes(x.forward.nbytes)
    yield Frame(
        f"That is all: {format_count(len(x.forward.kernels), 'kernel')}, and {moved} moved. Only what is orange is stored.",
        hulls=hulls(found, graph, progress),
        numbers=numbers(progress),
    )


def numbers(progress: Progress) -> tuple[tuple[str, str], ...]:
    """Return the numbers of a step."""
    return (f"{len(progress.computed)}", "kernels complete"), (f"{len(progress.refused)}", "merges refused")


def rows(function_parts: FunctionParts) -> list[dict[str, str]]:
    """Return the decisions as rows of a table."""
    return [
        {
            "step": str(k),
            "decision": step.kind,
            "kernel": "" if step.kernel is None else "given up" if step.launch is None else f"launch{step.launch}",
            "in words": sentence(function_parts, step),
        }
        for k, step in enumerate(function_parts.explained.steps, 2)  # as the picture counts: its first is the captured graph
    ]


def sentence(function_parts: FunctionParts, step: DecisionText) -> str:
    """Describe a decision; for a new kernel, with the bytes that it moves."""
    if step.kind not in ("made", "copied") or step.launch is None:
        return step.text
    return f"{step.text} It moves {format_bytes(function_parts.explained.forward.kernels[step.launch].nbytes)}."


def cell_kinds(found: FunctionParts, progress: Progress, highlighted: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    """Return (link, kind) of all cells whose kind differs from the final one."""
    computed = {k for values in (*progress.open.values(), *progress.computed) for k in values}
    kinds = dict[str, str]()
    for k in range(len(found.explained.nodes)):
        if k in highlighted:
            kinds[f"g{k}"] = highlighted[k]
        elif k not in found.free | found.inputs | computed:
            kinds[f"g{k}"] = STORE
    return tuple(kinds.items())


def hulls(found: FunctionParts, graph: LayeredGraph, progress: Progress, kernel: int | None = None) -> tuple[Hull, ...]:
    """Return the outlines of the kernels so far. That of the kernel that the step is about is highlighted."""
    complete = [
        hull for k, nodes in enumerate(progress.computed) for hull in kernel_hull(found, graph, nodes, "", f"launch{k}")
    ]
    begun = [(CHOSEN if k == kernel else "", nodes) for k, nodes in progress.open.items()]
    return (*complete, *[hull for kind, nodes in begun for hull in kernel_hull(found, graph, nodes, kind, "")])
