"""Graphs of module 5, as plain data that its tasks share: what a function of tensors computes, and kernels that compute it.

A graph is a list of nodes; each says what it does with the values of nodes before it. The vocabulary is small and fixed:

    input constant                      a tensor that is given; a number
    add sub mul div maximum lt          of two operands that broadcast; lt gives 1.0 or 0.0
    neg exp log expand                  of one; expand repeats it to a larger shape
    sum max                             reductions along the last dim, which then has size 1
    matmul                              (m, k) @ (k, n)

A student's file imports from here; nothing here records, emits, caches or schedules.
"""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import NamedTuple

from ..core.errors import FuseError
from ..core.indexing import Shape

__all__ = [
    "BINARY",
    "FOLDS",
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
FOLDS = ("sum", "max")


class Node(NamedTuple):
    """One value of a graph."""

    op: str
    inputs: tuple[int, ...] = ()
    """Numbers of nodes that come before it, one for each operand."""
    value: float | int | None = None
    """The number of a constant, a float; which of the arguments an input is; None for all else."""
    shape: Shape = ()


class Graph(NamedTuple):
    """Values, each from earlier ones, and which of them are given back.

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
        said = [f"{n.op} {' '.join(f'%{k}' for k in n.inputs) if n.value is None else n.value}" for n in self.nodes]
        wide, name = max(map(len, said), default=0), len(str(len(said) - 1))
        lines = [f"%{k:<{name}}  {s:<{wide}}  {self.nodes[k].shape}" for k, s in enumerate(said)]
        return "\n".join([*lines, "gives " + ", ".join(f"%{k}" for k in self.outputs)])


class Kernel(NamedTuple):
    """A part of a graph that is computed by one launch: it loads values, computes its nodes in order, stores some."""

    nodes: tuple[int, ...]
    loads: tuple[int, ...]
    """Values that it reads from memory: inputs of the graph, and what kernels before it have stored."""
    stores: tuple[int, ...]
    """Those of its nodes that it writes to memory."""


class Insides(NamedTuple):
    """The code, closure and defaults of a function."""

    code: str
    """Equal for functions of equal code, wherever they were made."""
    closure: tuple[tuple[str, object], ...]
    """(name, value) of what it reads from the functions around it."""
    defaults: tuple[object, ...]


def shape_after(op: str, *shapes: Shape) -> Shape:
    """The shape of a value, from those of its operands. expand has a shape that somebody chose, so it is not asked here.

    Raises
    ------
    ValueError
        The shapes do not fit.
    """
    import numpy as np

    if op in FOLDS:
        return (*shapes[0][:-1], 1)
    if op == "matmul":
        (m, k), (inner, n) = shapes
        if k != inner:
            raise ValueError(f"matmul of {shapes[0]} and {shapes[1]}: {k} columns, {inner} rows")
        return m, n
    return tuple(int(n) for n in np.broadcast_shapes(*shapes))


def can_share(graph: Graph, numbers: Sequence[int]) -> bool:
    """Return whether one kernel can compute all these nodes, as far as their shapes go.

    A matmul is a kernel of its own. Any other kernel walks over rows: all its nodes have shapes (rows, n) or (rows, 1), with
    one `rows` and one `n`, and what it reduces has these shapes too. A smaller shape counts as one with sizes of 1 in front.
    """
    nodes = [graph.nodes[k] for k in numbers]
    if any(node.op in ("matmul", "input", "constant") for node in nodes):
        return len(nodes) == 1 and nodes[0].op == "matmul"
    reduced = [graph.nodes[node.inputs[0]] for node in nodes if node.op in FOLDS]
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
    return Insides(in_words(function.__code__), cells, tuple(function.__defaults__ or ()))


def in_words(code: CodeType) -> str:
    """A code without the place where it stands."""
    constants = [in_words(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))
