"""The data of `f.explain(...)`: records of kernels, nodes, refusals and decisions, and the report that shows them.

This module uses neither graphs nor plans: `explain` makes the records from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import short_file
from ..core.wording import format_count
from .fusion_log_text import DecisionText
from .report import (
    Column,
    FoldedText,
    InspectionReport,
    Paragraph,
    ReportPart,
    ReportTable,
    format_bytes,
    make_table,
    number_column,
)

MAX_SHOWN_NODES = 120  # nodes that the report lists
MIN_RATIO_SHOWN = 1.05  # a smaller ratio of bytes moved is hardly a gain, and might be printed as 1
CHANGE_STYLES = {"-": "red", "+": "green", "!": "yellow"}


@dataclass(frozen=True)
class OperandFacts:
    """An array that a kernel reads or writes."""

    name: str
    shape: tuple[int, ...]
    """The shape as the kernel indexes it."""
    strides: tuple[int, ...]
    """Strides in elements."""
    dtype: str
    nbytes: int
    """Bytes of the distinct elements."""


@dataclass(frozen=True)
class KernelFacts:
    """One step of a plan."""

    formula: str
    form: str
    """The kind of kernel, and the space that it iterates over."""
    reads: tuple[OperandFacts, ...]
    writes: tuple[OperandFacts, ...]
    nbytes: int
    """Distinct bytes read plus distinct bytes written; scratch memory of the step counts twice."""
    scratch: int
    """Bytes that one launch of the step stores for the next launch."""
    launches: int
    """How many kernels the backend launches for the step."""
    flops: int
    """Floating-point operations of a matmul; 0 for any other kernel."""
    schedule: str = ""
    """How a GPU deals out the axes of the loops, and why, with one line for each launch; empty on other backends."""
    source: str = ""
    """The source of the kernel, or of all kernels that the backend launches for the step."""


@dataclass(frozen=True)
class PassFacts:
    """Kernels that run one after the other, such as a forward pass."""

    kernels: tuple[KernelFacts, ...]
    nbytes: int
    launches: int
    peak: int
    """The most bytes of temporaries and results that exist at once, rounded up as they are allocated."""


@dataclass(frozen=True)
class NodeFacts:
    """A value of the graph."""

    number: int
    operation: str
    name: str
    """The user's name of an input."""
    shape: tuple[int, ...]
    dtype: str
    line: str
    """The line of the user's code, file:line, if it is known."""


@dataclass(frozen=True)
class RefusalFacts:
    """A producer that was not fused into a consumer, and the reason."""

    producer: str
    consumer: str
    reason: str
    line: str


@dataclass(frozen=True)
class GraphNodeFacts:
    """A node of the graph between two passes of the compiler. It has one name in all passes."""

    name: str
    operation: str
    """Its formula, from the names of its inputs; "input" for an argument."""
    reads: tuple[str, ...]
    """The names of its inputs. Numbers have none, and are in the formula."""
    shape: tuple[int, ...]
    dtype: str
    is_free: bool
    """Whether no kernel has an operation for it: a view, a repeated number, or a mark for gradients."""
    is_stored: bool
    """Whether a kernel stores it, as far as the passes have decided."""
    kernels: tuple[int, ...]
    """The kernels that compute it: numbers of launches or, before there are launches, of groups of nodes."""


@dataclass(frozen=True)
class CompilerPassFacts:
    """A pass of the compiler, and what it changed. A node has one name in all passes."""

    name: str
    summary: str
    """The first line of the docstring of the pass."""
    changes: tuple[str, ...]
    """Lines of the graph that went ("- ...") and came ("+ ..."), and a sentence for each new refusal ("! ...")."""
    nodes: tuple[GraphNodeFacts, ...] = ()
    """The graph after the pass, inputs first; empty if the pass changed nothing."""
    growth: tuple[tuple[str, ...], ...] = ()
    """For the pass that forms kernels: the nodes of one kernel each time that a node has joined it, or has begun it."""


@dataclass(frozen=True)
class BackwardFacts:
    """The backward pass. In its formulas, d0 is the gradient of result 0, and %5 is node 5 of the graph."""

    run: PassFacts
    unfused: PassFacts
    """The backward passes of the calls without fusion; additions of several gradients of one tensor are not counted."""
    kept: tuple[str, ...]
    """Inputs and results that stay in memory for the backward pass."""
    saved: tuple[tuple[str, int], ...]
    """Intermediates that are stored for the backward pass, as (value, bytes)."""
    again: tuple[str, ...]
    """Values of the forward pass that the backward pass recomputes."""


@dataclass(frozen=True)
class Explanation:
    """The effect of fusion on a function. `print` shows it; `as_dict` returns values that JSON can store.

    All sizes are in bytes.
    """

    function: str
    backend: str
    nodes: tuple[NodeFacts, ...]
    forward: PassFacts
    unfused: PassFacts
    """The calls that the function would make without fusion. A value is assumed to be freed after its last use; Python's
    variables may keep it longer, so the peak is a lower bound.
    """
    backward: BackwardFacts | None
    refusals: tuple[RefusalFacts, ...]
    steps: tuple[DecisionText, ...]
    """The decisions of the compiler that led to these kernels, in order."""
    passes: tuple[CompilerPassFacts, ...]
    """The passes of the compiler, in order."""
    captured: tuple[GraphNodeFacts, ...]
    """The graph that the first pass gets."""
    shows_passes: bool = False
    """True if `print` shows the passes."""

    @property
    def ratio(self) -> float:
        """Return how many times fewer bytes the fused forward pass moves."""
        return self.unfused.nbytes / max(self.forward.nbytes, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return all facts as dicts, lists, strings and numbers."""
        facts = asdict(self) | {"ratio": self.ratio}
        del facts["shows_passes"]
        return facts

    def report(self, has_steps: bool = False) -> InspectionReport:
        """Arrange the facts: totals, graph, passes and decisions if requested, kernels, refusals, backward pass."""
        columns = number_column("step"), Column("decision", wraps=True)
        steps = list(enumerate((step.text for step in self.steps), 1)) if has_steps else []
        sections: dict[str, Sequence[ReportPart]] = {
            "": [totals_table(self)],
            "graph": [graph_table(self)],
            "passes": [*describe_passes(self.passes)] if self.shows_passes else [],
            "step by step": [make_table(columns, steps, 2, False)] * has_steps,
            "kernels": [*describe_kernels(self.forward.kernels)],
            "not fused": [*describe_refusals(self.refusals)],
            "backward": [*describe_backward(self.backward)] if self.backward else [],
        }
        return InspectionReport(format_headline(self), sections)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def format_headline(x: Explanation) -> str:
    """Summarize an explanation in one sentence."""
    kernel_count, unfused_count = len(x.forward.kernels), len(x.unfused.kernels)
    text = f"{x.function} on {x.backend}: {format_count(kernel_count, 'kernel')} instead of {unfused_count}, "
    text += f"{format_bytes(x.forward.nbytes)} moved instead of {format_bytes(x.unfused.nbytes)}"
    return f"{text}, {x.ratio:.3g} times fewer" if x.ratio >= MIN_RATIO_SHOWN else text


def totals_table(x: Explanation) -> ReportTable:
    """Return the totals of each pass, fused and unfused."""
    passes = {"fused": x.forward, "unfused": x.unfused}
    if x.backward is not None:
        passes |= {"backward, fused": x.backward.run, "backward, unfused": x.backward.unfused}
    sizes = [Column(key, format=format_bytes, is_number=True) for key in ("bytes moved", "peak memory")]
    rows = [(name, len(facts.kernels), facts.launches, facts.nbytes, facts.peak) for name, facts in passes.items()]
    return make_table([Column(""), number_column("kernels"), number_column("launches"), *sizes], rows, 2)


def graph_table(x: Explanation) -> ReportTable:
    """Return number, operation, shape with dtype, and source line of each node."""
    rows = []
    for node in x.nodes[:MAX_SHOWN_NODES]:
        kind = f"{node.dtype} {node.shape if node.shape or node.operation != 'number' else ''}".strip()
        rows.append((f"%{node.number}", f"{node.operation} {node.name}".strip(), kind, format_location(node.line)))
    if len(x.nodes) > MAX_SHOWN_NODES:
        rows.append(("...", f"and {len(x.nodes) - MAX_SHOWN_NODES} more", "", ""))
    operation, line = Column("operation", wraps=True), Column("line", style="dim")
    return make_table([Column("node", style="cyan"), operation, Column("kind", style="dim"), line], rows, 2, False)


def describe_passes(passes: Sequence[CompilerPassFacts]) -> Iterator[Paragraph]:
    """Yield the summary of each pass, and the lines of the graph that it changed."""
    for x in passes:
        yield Paragraph(f"{x.name}: {x.summary}")
        for change in x.changes:
            yield Paragraph(change, 4, CHANGE_STYLES[change[0]])
        if not x.changes:
            yield Paragraph("no change", 4, "dim")


def describe_kernels(kernels: Sequence[KernelFacts]) -> Iterator[Paragraph | FoldedText]:
    """Yield the formula, the iteration space, the memory traffic and the source of each kernel."""
    for k, kernel in enumerate(kernels):
        yield Paragraph(f"launch{k}: {kernel.formula}")
        launches = format_count(kernel.launches, "launch", "launches")
        flops = f", {kernel.flops:,} flops" if kernel.flops else ""
        scratch = f", {format_bytes(kernel.scratch)} passed between launches" if kernel.scratch else ""
        yield Paragraph(f"{kernel.form}; {launches}, {format_bytes(kernel.nbytes)}{scratch}{flops}", 4)
        for line in kernel.schedule.splitlines():
            yield Paragraph(f"schedule: {line}", 4)
        for word, operands in (("reads ", kernel.reads), ("writes", kernel.writes)):
            if operands:
                yield Paragraph(f"{word} {', '.join(f'{x.name} ({format_bytes(x.nbytes)})' for x in operands)}", 4)
        yield FoldedText(f"source of launch{k}", kernel.source)


def describe_refusals(refusals: Sequence[RefusalFacts]) -> Iterator[Paragraph]:
    """Yield the producers that were not fused, their consumers, and the reasons."""
    for (producer, line, reason), consumers in group_refusals(refusals).items():
        location = f" ({format_location(line)})" if line else ""
        yield Paragraph(f"{producer}{location}, into {', into '.join(consumers)}:")
        yield Paragraph(reason, 4)


def group_refusals(refusals: Sequence[RefusalFacts]) -> dict[tuple[str, str, str], list[str]]:
    """Map each producer, with its line and the reason, to its consumers."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for x in refusals:
        groups.setdefault((x.producer, x.line, x.reason), []).append(x.consumer)
    return groups


def describe_backward(x: BackwardFacts) -> Iterator[Paragraph | FoldedText]:
    """Yield the kernels of the backward pass, and the values that are kept alive, saved or recomputed for it."""
    yield from describe_kernels(x.run.kernels)
    saved = [f"{value} ({format_bytes(nbytes)})" for value, nbytes in x.saved]
    for title, values in (("kept alive", x.kept), ("saved", saved), ("recomputed", x.again)):
        yield Paragraph(f"{title}: {'; '.join(values) or 'nothing'}")


def format_location(line: str) -> str:
    """Remove the folders from file:line."""
    file, colon, number = line.rpartition(":")
    return f"{short_file(file)}{colon}{number}"
