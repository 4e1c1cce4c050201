"""Compute the values of a graph with NumPy, and find out on which nodes they depend."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from .fusion import REDUCTIONS, Graph, shape_after
from .strided import Array

MAX_ELEMENTS = 1 << 20  # of all values of a graph together; a student's graph may contain any shapes
NUMPY_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "maximum": np.maximum,
    "lt": lambda x, y: np.less(x, y).astype(np.float64),
    "sum": lambda x: np.sum(x, -1, keepdims=True),
    "max": lambda x: np.max(x, -1, keepdims=True, initial=-np.inf),
    "matmul": np.matmul,
}


def evaluate_nodes(
    graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS
) -> list[Array]:
    """Compute every value of a graph with NumPy.

    Raises
    ------
    ValueError
        The shapes of operands are incompatible, or the values would be too large.
    """
    values: list[Array] = []
    size = 0
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[k] for k in node.inputs]
            if operands:
                size += prod(
                    map(int, node.shape if node.op == "expand" else shape_after(node.op, *[x.shape for x in operands]))
                )
            if size > MAX_ELEMENTS:
                raise ValueError(f"the values of the graph have more than {MAX_ELEMENTS:,} elements")
            if node.op == "input":
                values.append(np.asarray(arrays[int(node.value or 0)], np.float64))
            elif node.op == "constant":
                values.append(np.asarray(node.value, np.float64))
            elif node.op == "expand":
                values.append(np.broadcast_to(operands[0], node.shape))
            else:
                values.append(np.asarray(table[node.op](*operands)))
    return values


def evaluate_graph(
    graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS
) -> list[Array]:
    """Compute the outputs of a graph with NumPy."""
    values = evaluate_nodes(graph, arrays, table)
    return [values[k] for k in graph.outputs]


def reduction_depths(graph: Graph) -> list[int]:
    """Return, for each value, the number of passes over a row that it needs: a reduction needs one more than its operand."""
    depths: list[int] = []
    for node in graph.nodes:
        depths.append(max([depths[k] for k in node.inputs], default=0) + (node.op in REDUCTIONS))
    return depths


def live_nodes(graph: Graph, roots: Sequence[int] | None = None) -> list[int]:
    """Return the indices of the nodes on which `roots` (default: the outputs) depend, in order, with the roots."""
    live = set(graph.outputs if roots is None else roots)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in live:
            live.update(graph.nodes[k].inputs)
    return sorted(live)
