"""Format an explanation as text. This module reads only the facts; it imports no graphs and no plans."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiler.pretty_print import wrap_lines

if TYPE_CHECKING:
    from .explain import BackwardFacts, Explanation, KernelFacts, OperandFacts, PassFacts, RefusalFacts

PAGE_WIDTH = 96  # columns
MAX_SHOWN_NODES = 120  # nodes on the page
MIN_ROUNDED_BYTES = 1_000_000  # bytes; larger sizes are rounded


def format_page(x: "Explanation", width: int = PAGE_WIDTH) -> Iterator[str]:
    """Yield the lines of the page."""
    yield from wrap_lines(format_headline(x), width)
    yield ""
    yield from align_columns(table_of_totals(x))
    for title, lines in {"graph": format_graph(x, width), **format_sections(x, width)}.items():
        yield from ["", title, *lines]


def format_sections(x: "Explanation", width: int, has_steps: bool = False) -> dict[str, Sequence[str]]:
    """Return the sections after the graph, by title."""
    kernels = [line for k, of in enumerate(x.forward.kernels) for line in format_kernel(f"launch{k}", of, width)]
    refused = list(format_refusals(x.refusals, width))
    steps = list(format_steps(x, width)) if has_steps else []
    found: dict[str, Sequence[str]] = {"step by step": steps, "kernels": kernels, "not fused": refused}
    if x.backward is not None:
        found["backward"] = list(format_backward(x.backward, width))
    return {title: lines for title, lines in found.items() if lines}


def format_steps(x: "Explanation", width: int) -> Iterator[str]:
    """Yield a numbered sentence for each decision of the scheduler."""
    column = len(str(len(x.steps)))
    for k, step in enumerate(x.steps, 1):
        first, *rest = wrap_lines(step.text, width - column - 4)
        yield f"  {k:{column}}  {first}"
        yield from (" " * (column + 4) + line for line in rest)


def format_refusals(refusals: "Sequence[RefusalFacts]", width: int) -> Iterator[str]:
    """Yield the producers that were not fused, their consumers, and the reasons."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for x in refusals:
        groups.setdefault((x.producer, x.line, x.reason), []).append(x.consumer)
    for (producer, line, reason), consumers in groups.items():
        location = f" ({format_location(line)})" if line else ""
        yield from indent_lines(f"{producer}{location}, into {', into '.join(consumers)}:", width)
        yield from indent_lines(reason, width, 4)


def format_headline(x: "Explanation") -> str:
    """Summarize the explanation in one sentence."""
    kernels, others = len(x.forward.kernels), len(x.unfused.kernels)
    text = f"{x.function} on {x.backend}: {format_count(kernels, 'kernel')} instead of {others}, "
    text += f"{format_bytes(x.forward.nbytes)} moved instead of {format_bytes(x.unfused.nbytes)}"
    return f"{text}, {x.ratio:.3g} times fewer" if x.ratio > 1 else text


def table_of_totals(x: "Explanation") -> list[list[str]]:
    """Return the cells of the table of totals."""
    found = [
        ["", "kernels", "launches", "bytes moved", "peak memory"],
        totals_row("fused", x.forward),
        totals_row("unfused", x.unfused),
    ]
    if x.backward is not None:
        found += [totals_row("backward, fused", x.backward.run), totals_row("backward, unfused", x.backward.unfused)]
    return found


def totals_row(name: str, facts: "PassFacts") -> list[str]:
    """Return one row of the table of totals."""
    return [name, f"{len(facts.kernels):,}", f"{facts.launches:,}", format_bytes(facts.nbytes), format_bytes(facts.peak)]


def align_columns(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align cells in columns: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        line = "".join(f"  {text:>{width}}" for text, width in zip(rest, widths[1:], strict=True))
        yield f"  {first:{widths[0]}}{line}".rstrip()


def format_graph(x: "Explanation", width: int) -> Iterator[str]:
    """Yield the nodes, one per line."""
    cells = list(node_cells(x))
    column = min(max((len(text) for _, text, _, _ in cells), default=0), width // 2)
    for number, text, kind, line in cells:
        yield f"  {number:{len(cells[-1][0])}}  {text:{column}}  {kind:22}  {line}".rstrip()


def node_cells(x: "Explanation") -> Iterator[tuple[str, str, str, str]]:
    """Yield number, operation, shape with dtype, and source line of each node."""
    for node in x.nodes[:MAX_SHOWN_NODES]:
        kind = f"{node.dtype} {node.shape if node.shape or node.operation != 'number' else ''}".strip()
        yield f"%{node.number}", f"{node.operation} {node.name}".strip(), kind, format_location(node.line)
    if len(x.nodes) > MAX_SHOWN_NODES:
        yield "...", f"and {len(x.nodes) - MAX_SHOWN_NODES} more", "", ""


def format_kernel(title: str, kernel: "KernelFacts", width: int) -> Iterator[str]:
    """Yield the formula, the iteration space and the memory traffic of a kernel."""
    yield from indent_lines(f"{title}: {kernel.formula}", width)
    launches = format_count(kernel.launches, "launch", "launches")
    flops = f", {kernel.flops:,} flops" if kernel.flops else ""
    scratch = f", {format_bytes(kernel.scratch)} passed between launches" if kernel.scratch else ""
    yield from indent_lines(f"{kernel.form}; {launches}, {format_bytes(kernel.nbytes)}{scratch}{flops}", width, 4)
    for word, operands in (("reads ", kernel.reads), ("writes", kernel.writes)):
        if operands:
            yield from indent_lines(f"{word} {', '.join(map(format_operand, operands))}", width, 4)


def format_operand(x: "OperandFacts") -> str:
    """Format one operand and its size."""
    return f"{x.name} ({format_bytes(x.nbytes)})"


def format_backward(x: "BackwardFacts", width: int) -> Iterator[str]:
    """Yield the kernels of the backward pass, and where it gets the values that it needs."""
    for k, kernel in enumerate(x.run.kernels):
        yield from format_kernel(f"launch{k}", kernel, width)
    saved = [f"{value} ({format_bytes(nbytes)})" for value, nbytes in x.saved]
    for title, values in (("kept alive", x.kept), ("saved", saved), ("recomputed", x.again)):
        yield from indent_lines(f"{title}: {'; '.join(values) or 'nothing'}", width)


def indent_lines(text: str, width: int, by: int = 2) -> list[str]:
    """Wrap a text and indent its lines."""
    return [" " * by + line for line in wrap_lines(text, width - by)]


def format_count(number: int, what: str, several: str = "") -> str:
    """Format a number with its noun, singular or plural."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def format_bytes(nbytes: float) -> str:
    """Format a number of bytes for reading.

    Examples
    --------
    >>> format_bytes(8000), format_bytes(67_108_864), format_bytes(3.2e9)
    ('8,000 B', '67.1 MB', '3.20 GB')
    """
    if nbytes < MIN_ROUNDED_BYTES:
        return f"{nbytes:,.0f} B"
    return f"{nbytes / 1e6:.3g} MB" if nbytes < 1e9 else f"{nbytes / 1e9:.2f} GB"


def format_location(line: str) -> str:
    """Remove the folders from file:line."""
    return Path(line).name if line else ""
