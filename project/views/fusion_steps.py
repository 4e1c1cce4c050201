"""The decisions of the compiler as frames: the captured graph, a frame for each decision, and the kernels.

Each frame shows the cells after so many decisions. The frames are computed from the decisions alone; tests check that the
last decision results in the plan.
"""

from collections.abc import Collection, Iterator, Mapping

from minifuse.inspect.fusion_log_text import DecisionText
from minifuse.inspect.report import format_bytes, format_count

from .function_parts import FunctionParts
from .picture import CHOSEN, IDLE, LOAD, OTHER, STORE, Frame

MEANS = (
    (LOAD, "is read"),
    (STORE, "is stored: by a kernel of its own, while nothing else is decided"),
    (OTHER, "gathers many in one; a merge that was refused"),
    (IDLE, "costs nothing; of kernels and merges: not decided yet"),
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


def frames(function_parts: FunctionParts) -> Iterator[Frame]:
    """Return frames of the captured graph, of each decision, and of the kernels."""
    x, progress, launches = function_parts.explained, Progress(), dict[int | None, int]()
    count = sum(k not in function_parts.free | function_parts.inputs for k in range(len(x.nodes)))
    begin = f"The graph as it was captured: {format_count(count, 'operation')}, none of them in a kernel yet. "
    begin += f"Without fusion, the calls of {x.function} are {format_count(len(x.unfused.kernels), 'kernel')}, "
    begin += f"and move {format_bytes(x.unfused.nbytes)}."
    yield Frame(begin, cell_kinds(function_parts, progress, {}, {}))
    for step in x.steps:
        inside = progress.apply(step)
        if step.launch is not None:
            launches[step.kernel] = step.launch
        highlighted = dict.fromkeys((*inside, *step.values), OTHER if step.kind == "refused" else CHOSEN)
        yield Frame(sentence(function_parts, step), cell_kinds(function_parts, progress, highlighted, launches, step.launch))
    yield Frame(
        f"That is all: {format_count(len(x.forward.kernels), 'kernel')}, and {format_bytes(x.forward.nbytes)} moved. "
        "Only what is orange "
        "is written to memory."
    )


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


def cell_kinds(
    function_parts: FunctionParts,
    progress: Progress,
    highlighted: Mapping[int, str],
    launches: Mapping[int | None, int],
    launch: int | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return (link, kind) of all cells whose kind differs from the final one."""
    computed = {k for values in (*progress.open.values(), *progress.computed) for k in values}
    kinds = dict[str, str]()
    for k in range(len(function_parts.explained.nodes)):
        if k in highlighted:
            kinds[f"g{k}"] = highlighted[k]
        elif k not in function_parts.free | function_parts.inputs | computed:
            kinds[f"g{k}"] = STORE
    begun = {launches[kernel]: inside for kernel, inside in progress.open.items() if kernel in launches}
    for j, parts in enumerate(function_parts.parts):
        for n, part in enumerate(parts):
            if launch == j and any(k in highlighted for k in part.nodes):
                kinds[f"k{j}.{n}"] = CHOSEN
            elif j >= len(progress.stored) and not any(k in begun.get(j, ()) for k in part.nodes):
                kinds[f"k{j}.{n}"] = IDLE
    for n in range(len(function_parts.explained.refusals)):  # which share links with the graph, and keep their own looks
        kinds[f"r{n}"] = OTHER if n < len(progress.refused) else IDLE
    return tuple(kinds.items())
