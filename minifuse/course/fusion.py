"""Graphs and kernels of module 5, as plain data that student files import.

A graph is a list of nodes. Each node applies an op to values of earlier nodes:

    input constant                      an argument; a number
    add sub mul div maximum lt          two operands that broadcast; lt returns 1.0 or 0.0
    neg exp log expand                  one operand; expand repeats it to a larger shape
    sum max                             reductions along the last dim, which then has size 1
    matmul                              (m, k) @ (k, n)
"""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import NamedTuple

from ..core.errors import FuseError
from ..core.indexing import Shape

__all__ = [
    "BINARY",
    "REDUCTIONS",
    "UNARY",
    "FuseError",
    "Graph",
    "Insides",
    "Kernel",
    "Node",
    "can_share",
    "insides",
    "shape_after",
]

UNARY = ("neg", "exp", "log", "expand")
BINARY = ("add", "sub", "mul", "div", "maximum", "lt")
REDUCTIONS = ("sum", "max")


class Node(NamedTuple):
    """One value of a graph."""

    op: str
    inputs: tuple[int, ...] = ()
    """The numbers of earlier nodes, one for each operand."""
    value: float | int | None = None
    """A constant's number, a float; the index of an input's argument; None for other nodes."""
    shape: Shape = ()


class Graph(NamedTuple):
    """A list of nodes, and which of their values are returned.

    Examples
    --------
    >>> x, two = Node("input", value=0, shape=(4, 5)), Node("constant", value=2.0)
    >>> print(Graph((x, two, Node("mul", (0, 1), shape=(4, 5))), (2,)))
    %0  input 0       (4, 5)
    %1  constant 2.0  ()
    %2  mul %0 %1     (4, 5)
    gives %2
    """

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    """Numbers of nodes."""

    def __str__(self) -> str:
        ops = [f"{n.op} {' '.join(f'%{k}' for k in n.inputs) if n.value is None else n.value}" for n in self.nodes]
        op_width, number_width = max(map(len, ops), default=0), len(str(len(ops) - 1))
        lines = [f"%{k:<{number_width}}  {op:<{op_width}}  {self.nodes[k].shape}" for k, op in enumerate(ops)]
        return "\n".join([*lines, "gives " + ", ".join(f"%{k}" for k in self.outputs)])


class Kernel(NamedTuple):
    """The nodes that one launch computes, in order, and the values that it loads and stores."""

    nodes: tuple[int, ...]
    loads: tuple[int, ...]
    """Values that it reads from memory: inputs of the graph, and values that earlier kernels have stored."""
    stores: tuple[int, ...]
    """The nodes whose values it writes to memory."""


class Insides(NamedTuple):
    """The code, closure and defaults of a function."""

    code: str
    """Equal for functions with equal code, wherever they are defined."""
    closure: tuple[tuple[str, object], ...]
    """(name, value) of each variable that it reads from enclosing functions."""
    defaults: tuple[object, ...]


def shape_after(op: str, *shapes: Shape) -> Shape:
    """Infer the shape of a value from those of its operands. `expand` is not supported: its shape is an argument.

    Raises
    ------
    ValueError
        The shapes are incompatible.
    """
    import numpy as np

    if op in REDUCTIONS:
        return (*shapes[0][:-1], 1)
    if op == "matmul":
        (m, k), (inner, n) = shapes
        if k != inner:
            raise ValueError(f"matmul of {shapes[0]} and {shapes[1]}: {k} columns, {inner} rows")
        return m, n
    return tuple(int(n) for n in np.broadcast_shapes(*shapes))


def can_share(graph: Graph, numbers: Sequence[int]) -> bool:
    """Return whether the shapes allow one kernel to compute all these nodes.

    A matmul is a separate kernel. Any other kernel loops over rows: all its nodes, and the operands of its reductions, have
    shapes (rows, n) or (rows, 1) for one `rows` and one `n`. Missing leading dims count as sizes of 1.
    """
    nodes = [graph.nodes[k] for k in numbers]
    if any(node.op in ("matmul", "input", "constant") for node in nodes):
        return len(nodes) == 1 and nodes[0].op == "matmul"
    reduced = [graph.nodes[node.inputs[0]] for node in nodes if node.op in REDUCTIONS]
    shapes = [(1, 1, *node.shape)[-2:] for node in (*nodes, *reduced)]
    return len({rows for rows, _ in shapes}) <= 1 and len({n for _, n in shapes} - {1}) <= 1


def insides(function: Callable[..., object]) -> Insides:
    """Return the code, closure and defaults of a function.

    Examples
    --------
    >>> def times(k):
    ...     return lambda x: x * k
    >>> insides(times(2)).closure
    (('k', 2),)
    >>> insides(times(2)).code == insides(times(3)).code
    True
    """
    assert isinstance(function, FunctionType)
    cells = tuple(
        (name, cell.cell_contents)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    return Insides(code_key(function.__code__), cells, tuple(function.__defaults__ or ()))


def code_key(code: CodeType) -> str:
    """Return a text that is equal for equal code objects, independent of their file and line."""
    constants = [code_key(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))
