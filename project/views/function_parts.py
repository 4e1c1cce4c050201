"""The parts of a function: its graph, its kernels, and the operations of each kernel. `fusion` computes and draws them."""

from dataclasses import dataclass

from minifuse.inspect.explanation import Explanation

from .functions import Example


@dataclass(frozen=True)
class KernelPart:
    """An operation, a load or a store of a kernel."""

    text: str
    says: str
    kind: str
    reads: tuple[int, ...]
    """The parts of the same kernel that it reads."""
    memory: str = ""
    """The array that is loaded or stored."""
    nodes: tuple[int, ...] = ()
    """The nodes of the graph that it computes."""


@dataclass(frozen=True)
class FunctionParts:
    """The parts of a function as plain data. `parts` has a list for each kernel, `reads` the inputs of each node."""

    example: Example
    size: int
    backend: str
    explained: Explanation
    source: str
    parts: tuple[tuple[KernelPart, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    glyphs: tuple[str, ...]
    free: frozenset[int]
    """Nodes without an operation in a kernel: views, and broadcast numbers."""
    inputs: frozenset[int]
    stored: frozenset[int]
    """Nodes that a kernel stores."""
