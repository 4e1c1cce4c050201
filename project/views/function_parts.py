"""A function taken apart: its graph, its kernels, and the operations of each. `fusion` makes it and shows it."""

from dataclasses import dataclass

from minifuse.inspect.explanation import Explanation

from .functions import Example


@dataclass(frozen=True)
class KernelPart:
    """An operation of a kernel, a load or a store."""

    text: str
    says: str
    kind: str
    reads: tuple[int, ...]
    """Parts of the same kernel."""
    memory: str = ""
    """The array of a load or a store."""
    nodes: tuple[int, ...] = ()
    """Of the graph: what it computes."""


@dataclass(frozen=True)
class FunctionParts:
    """A function taken apart: plain data. `parts` has a list for each kernel, `reads` the inputs of each node."""

    example: Example
    size: int
    backend: str
    explained: Explanation
    source: str
    parts: tuple[tuple[KernelPart, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    glyphs: tuple[str, ...]
    free: frozenset[int]
    """Nodes that are no operation of a kernel: views, and numbers that are repeated."""
    inputs: frozenset[int]
    stored: frozenset[int]
    """Nodes that some kernel stores."""
