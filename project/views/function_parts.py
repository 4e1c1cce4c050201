"""The parts of a function: its graph, its kernels, and the operations of each kernel. `fusion` computes and draws them."""

from dataclasses import dataclass

from minifuse.inspect.explanation import Explanation

from .functions import Example


@dataclass(frozen=True)
class KernelPart:
    """An operation, a load or a store of a kernel."""

    kind: str
    """LOAD or STORE of `picture`; empty for an operation."""
    reads: tuple[int, ...]
    """The indices of the parts of the same kernel that this part reads."""
    memory: str = ""
    """The name of the array that is loaded or stored; empty for an operation."""
    nodes: tuple[int, ...] = ()
    """The indices of the graph nodes that this part computes."""


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
    """Nodes whose values a kernel stores."""
    named: dict[str, int]
    """Nodes by the names that the passes of the compiler have for them, such as "max0"."""
