"""An explanation as a page of text. It takes the facts as they are, and knows nothing of graphs and plans."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiler.pretty_print import wrapped

if TYPE_CHECKING:
    from .explain import BackwardFacts, Explanation, KernelFacts, OperandFacts, PassFacts, RefusalFacts

WIDTH = 96  # columns
MOST = 120  # nodes that are shown
LARGE = 1_000_000  # bytes, from which on sizes are rounded


def page(x: "Explanation", width: int = WIDTH) -> Iterator[str]:
    """The lines of the page."""
    yield from wrapped(headline(x), width)
    yield ""
    yield from table(rows(x))
    for title, lines in {"graph": graph(x, width), **sections(x, width)}.items():
        yield from ["", title, *lines]


def sections(x: "Explanation", width: int, has_steps: bool = False) -> dict[str, Sequence[str]]:
    """The parts of the page after the graph, each under its title."""
    kernels = [line for k, of in enumerate(x.forward.kernels) for line in kernel_lines(f"launch{k}", of, width)]
    refused = list(refusal_lines(x.refusals, width))
    steps = list(step_lines(x, width)) if has_steps else []
    found: dict[str, Sequence[str]] = {"step by step": steps, "kernels": kernels, "not merged": refused}
    if x.backward is not None:
        found["backward"] = list(backward(x.backward, width))
    return {title: lines for title, lines in found.items() if lines}


def step_lines(x: "Explanation", width: int) -> Iterator[str]:
    """How it came to these kernels: a numbered sentence for each decision."""
    column = len(str(len(x.steps)))
    for k, step in enumerate(x.steps, 1):
        first, *rest = wrapped(step.text, width - column - 4)
        yield f"  {k:{column}}  {first}"
        yield from (" " * (column + 4) + line for line in rest)


def refusal_lines(refusals: "Sequence[RefusalFacts]", width: int) -> Iterator[str]:
    """What was not merged, into what, and why."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for x in refusals:
        groups.setdefault((x.producer, x.line, x.reason), []).append(x.consumer)
    for (producer, line, reason), consumers in groups.items():
        yield from indented(f"{producer}{f' ({short(line)})' * bool(line)}, into {', into '.join(consumers)}:", width)
        yield from indented(reason, width, 4)


def headline(x: "Explanation") -> str:
    """The whole in a sentence."""
    kernels, others = len(x.forward.kernels), len(x.unfused.kernels)
    text = f"{x.function} on {x.backend}: {counted(kernels, 'kernel')} instead of {others}, "
    text += f"{size(x.forward.nbytes)} moved instead of {size(x.unfused.nbytes)}"
    return f"{text}, {x.ratio:.3g} times fewer" if x.ratio > 1 else text


def rows(x: "Explanation") -> list[list[str]]:
    """The table of totals."""
    found = [["", "kernels", "launches", "bytes moved", "peak memory"], row("fused", x.forward), row("unfused", x.unfused)]
    if x.backward is not None:
        found += [row("backward, fused", x.backward.run), row("backward, unfused", x.backward.unfused)]
    return found


def row(name: str, facts: "PassFacts") -> list[str]:
    """One line of it."""
    return [name, f"{len(facts.kernels):,}", f"{facts.launches:,}", size(facts.nbytes), size(facts.peak)]


def table(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells in columns: the first to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        line = "".join(f"  {text:>{width}}" for text, width in zip(rest, widths[1:], strict=True))
        yield f"  {first:{widths[0]}}{line}".rstrip()


def graph(x: "Explanation", width: int) -> Iterator[str]:
    """The nodes, one a line."""
    cells = list(node_cells(x))
    column = min(max((len(text) for _, text, _, _ in cells), default=0), width // 2)
    for number, text, kind, line in cells:
        yield f"  {number:{len(cells[-1][0])}}  {text:{column}}  {kind:22}  {line}".rstrip()


def node_cells(x: "Explanation") -> Iterator[tuple[str, str, str, str]]:
    """Of each node its number, what it is, its shape and dtype, and its line."""
    for node in x.nodes[:MOST]:
        kind = f"{node.dtype} {node.shape if node.shape or node.operation != 'number' else ''}".strip()
        yield f"%{node.number}", f"{node.operation} {node.name}".strip(), kind, short(node.line)
    if len(x.nodes) > MOST:
        yield "...", f"and {len(x.nodes) - MOST} more", "", ""


def kernel_lines(title: str, kernel: "KernelFacts", width: int) -> Iterator[str]:
    """What a kernel computes, over what, and what it moves."""
    yield from indented(f"{title}: {kernel.formula}", width)
    launches = counted(kernel.launches, "launch", "launches")
    flops = f", {kernel.flops:,} flops" if kernel.flops else ""
    scratch = f", {size(kernel.scratch)} handed on between launches" if kernel.scratch else ""
    yield from indented(f"{kernel.form}; {launches}, {size(kernel.nbytes)}{scratch}{flops}", width, 4)
    for word, operands in (("reads ", kernel.reads), ("writes", kernel.writes)):
        if operands:
            yield from indented(f"{word} {', '.join(map(operand, operands))}", width, 4)


def operand(x: "OperandFacts") -> str:
    """One operand."""
    return f"{x.name} ({size(x.nbytes)})"


def backward(x: "BackwardFacts", width: int) -> Iterator[str]:
    """Its kernels, and where it finds what it needs."""
    for k, kernel in enumerate(x.run.kernels):
        yield from kernel_lines(f"launch{k}", kernel, width)
    saved = [f"{value} ({size(nbytes)})" for value, nbytes in x.saved]
    for title, values in (("kept alive", x.kept), ("saved for it", saved), ("computed again", x.again)):
        yield from indented(f"{title}: {'; '.join(values) or 'nothing'}", width)


def indented(text: str, width: int, by: int = 2) -> list[str]:
    """A text in lines, moved to the right."""
    return [" " * by + line for line in wrapped(text, width - by)]


def counted(number: int, what: str, several: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def size(nbytes: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> size(8000), size(67_108_864), size(3.2e9)
    ('8,000 B', '67.1 MB', '3.20 GB')
    """
    if nbytes < LARGE:
        return f"{nbytes:,.0f} B"
    return f"{nbytes / 1e6:.3g} MB" if nbytes < 1e9 else f"{nbytes / 1e9:.2f} GB"


def short(line: str) -> str:
    """file:line without the folders."""
    return Path(line).name if line else ""
