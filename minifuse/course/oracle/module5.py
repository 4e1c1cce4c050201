"""Reference answers of module 5: NumPy's ufuncs are recorded, and NumPy runs the kernels."""

import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache, reduce
from types import FunctionType
from typing import Any

import numpy as np

from ...core.indexing import Shape
from ..fusion import REDUCTIONS, FuseError, Graph, Insides, Kernel, Node, can_share, insides, shape_after
from ..graph_evaluation import live_nodes
from ..kernel_groups import count_bytes, make_kernel, nodes_to_compute, order_kernels
from ..programs import TensorLike
from ..strided import Strided
from . import answers

OPS: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "div",
    np.maximum: "maximum",
    np.less: "lt",
    np.negative: "neg",
    np.exp: "exp",
    np.log: "log",
    np.matmul: "matmul",
}


Argument = Strided | float
"""An argument of a call: a tensor or a number."""


@answers
class Tape:
    """A list of nodes, and a dict from their descriptions to their numbers."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.numbers: dict[tuple[str, tuple[int, ...], str, Shape], int] = {}

    def add(self, op: str, inputs: Sequence[int] = (), value: float | None = None, shape: Shape = ()) -> int:
        """Add a node, unless an equal one exists, and return its number."""
        number = self.numbers.setdefault((op, tuple(inputs), repr(value), tuple(shape)), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(Node(op, tuple(inputs), value, tuple(shape)))
        return number


@answers
class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A value whose ufuncs are recorded."""

    def __init__(self, tape: Tape, number: int) -> None:
        self.tape, self.number = tape, number

    @property
    def shape(self) -> Shape:
        """Return the shape of the value."""
        return self.tape.nodes[self.number].shape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: "Operand", **options: object) -> "Traced":
        if ufunc is np.greater:
            ufunc, operands = np.less, operands[::-1]
        if ufunc not in OPS:
            raise FuseError(f"{ufunc.__name__} of a value that is captured: there are no elements yet")
        return self.then(OPS[ufunc], *operands)

    def then(self, op: str, *operands: "Operand", shape: Shape | None = None) -> "Traced":
        """Record an op on operands and return its value."""
        numbers = [x.number if isinstance(x, Traced) else self.tape.add("constant", value=float(x)) for x in operands]
        shapes = [self.tape.nodes[k].shape for k in numbers]
        return Traced(self.tape, self.tape.add(op, numbers, None, shape_after(op, *shapes) if shape is None else shape))

    def exp(self) -> "Traced":
        """Record exp."""
        return self.then("exp", self)

    def log(self) -> "Traced":
        """Record log."""
        return self.then("log", self)

    def maximum(self, other: "Operand") -> "Traced":
        """Record the maximum."""
        return self.then("maximum", self, other)

    def sum(self) -> "Traced":
        """Record the sum along the last dim."""
        return self.then("sum", self)

    def max(self) -> "Traced":
        """Record the maximum along the last dim."""
        return self.then("max", self)

    def expand(self, shape: Shape) -> "Traced":
        """Record a broadcast to a shape."""
        return self.then("expand", self, shape=tuple(shape))

    def __bool__(self) -> bool:
        raise FuseError("a branch on the value of a tensor that is captured: there are no values; use maximum, or <")

    __float__ = __int__ = __iter__ = __bool__


Operand = Traced | float


def record(function: Callable[..., object], *shapes: Shape) -> Graph:
    """Record the ufuncs that a function calls."""
    tape = Tape()
    given = [Traced(tape, tape.add("input", value=k, shape=shape)) for k, shape in enumerate(shapes)]
    result: Any = function(*given)
    outputs = result if isinstance(result, tuple) else (result,)
    numbers = [x.number if isinstance(x, Traced) else tape.add("constant", value=float(x)) for x in outputs]
    return Graph(tuple(tape.nodes), tuple(numbers))


@answers
def capture(function: Callable[..., object], *shapes: Shape) -> Graph:
    """Record the ufuncs that a function calls."""
    return record(function, *shapes)


@answers
def emit_points(graph: Graph) -> str:
    """Return the graph as a comment: no task runs a kernel that is lent."""
    return as_comment(graph)


@answers
def emit_rows(graph: Graph) -> str:
    """Return the graph as a comment: no task runs a kernel that is lent."""
    return as_comment(graph)


def as_comment(graph: Graph) -> str:
    """Return a graph as lines of comments."""
    return "\n".join(f"# {line}" for line in str(graph).splitlines())


@answers
def fused_softmax(x: TensorLike) -> TensorLike:
    """Return softmax(x - max(x))."""
    e = (x - x.max()).exp()
    return e / e.sum()


def stride_classes(x: Strided, is_exact: bool = False, has_ones: bool = True) -> tuple[int | str, ...]:
    """Return 0, 1 or "s" for each dim; a dim of size 1 has class 0, unless `has_ones` is False."""
    steps = [0 if n == 1 and has_ones else s for n, s in zip(x.shape, x.strides, strict=True)]
    return tuple(steps) if is_exact else tuple(s if s in (0, 1) else "s" for s in steps)


def relation(a: Argument, b: Argument) -> str:
    """Return how two arguments alias."""
    if not (isinstance(a, Strided) and isinstance(b, Strided)) or a.storage is not b.storage:
        return "apart"
    return "same" if a[1:] == b[1:] else "overlap"


def key(
    function: Callable[..., object], arguments: tuple[Argument, ...], without: str = "", having: str = ""
) -> tuple[object, ...]:
    """Return the key of a call; for known mistakes, without one of its parts or with a superfluous one."""
    parts: list[object] = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__ if having != "numbers" else repr(x))
            continue
        classes = () if without == "strides" else stride_classes(x, has_ones=without != "ones")
        parts.append(("" if without == "dtype" else x.storage.dtype.str, classes))
        parts += [len(x.shape), *([x.shape] if having == "sizes" else [])]
        parts += [stride_classes(x, True)] if having == "strides" else []
    pairs = [(a, b) for k, a in enumerate(arguments) for b in arguments[k + 1 :]]
    parts.append([] if without == "aliases" else [relation(a, b) for a, b in pairs])
    parts_of_function: Insides = insides(function)
    values = (*[v for _, v in parts_of_function.closure], "defaults", *parts_of_function.defaults)
    closure = [v if without == "types" else describe_value(v) for v in values]
    parts.append([] if without == "closure" else closure)
    parts.append({"code": function.__name__}.get(without, parts_of_function.code) if having != "identity" else id(function))
    return tuple(parts)


def describe_value(value: object) -> str:
    """Return a text of a value: that of a function has its code, and the values that it reads."""
    if isinstance(value, FunctionType):
        code, closure, defaults = insides(value)
        return f"function {code} {describe_value(closure)} {describe_value(defaults)}"
    return f"({', '.join(map(describe_value, value))})" if isinstance(value, tuple) else f"{type(value).__name__} {value!r}"


@answers
def call_key(function: Callable[..., object], arguments: tuple[Argument, ...]) -> str:
    """Return the key as text."""
    return repr(key(function, arguments))


@answers
class KernelCache:
    """A least-recently-used cache in an ordered dict."""

    def __init__(self, most: int) -> None:
        self.most, self.kernels = most, OrderedDict[str, object]()

    def kernel(
        self, function: Callable[..., object], arguments: tuple[Argument, ...], build: Callable[[], object]
    ) -> object:
        """Return the kernel of a call, and move it to the end."""
        name = repr(key(function, arguments))
        kernel = self.kernels[name] = self.kernels[name] if name in self.kernels else build()
        self.kernels.move_to_end(name)
        while len(self.kernels) > self.most:
            self.kernels.popitem(last=False)
        return kernel


def then(op: str, *operands: Operand) -> Traced:
    """Record an op on operands of which at least one is traced."""
    return next(x for x in operands if isinstance(x, Traced)).then(op, *operands)


Rules = dict[tuple[str, int], Callable[..., Traced]]
"""The gradient of each operand: (op, index of the operand) -> function of (d, y, a, b)."""
RULES: Rules = {
    ("add", 0): lambda d, y, a, b: d,
    ("add", 1): lambda d, y, a, b: d,
    ("sub", 0): lambda d, y, a, b: d,
    ("sub", 1): lambda d, y, a, b: -d,
    ("mul", 0): lambda d, y, a, b: d * b,
    ("mul", 1): lambda d, y, a, b: d * a,
    ("div", 0): lambda d, y, a, b: d / b,
    ("div", 1): lambda d, y, a, b: -d * a / b / b,
    ("neg", 0): lambda d, y, a, b: -d,
    ("exp", 0): lambda d, y, a, b: d * y,
    ("log", 0): lambda d, y, a, b: d / a,
    ("maximum", 0): lambda d, y, a, b: d * ((1.0 - then("lt", a, b) + then("lt", b, a)) * 0.5),
    ("maximum", 1): lambda d, y, a, b: d * ((1.0 - then("lt", b, a) + then("lt", a, b)) * 0.5),
    ("sum", 0): lambda d, y, a, b: d.expand(a.shape),
    ("max", 0): lambda d, y, a, b: d * (1.0 - (a < y)) / (1.0 - (a < y)).sum(),
}
MISTAKEN: dict[str, Rules] = {
    "sign": {("sub", 1): RULES["add", 1]},
    "quotient": {("div", 1): lambda d, y, a, b: d * a / b / b},
    "ties": {("max", 0): lambda d, y, a, b: d * (1.0 - (a < y))},
}


@answers
def pull_back(op: str, d: Traced, y: Traced, a: Operand, b: Operand | None = None) -> tuple[Traced, ...]:
    """Return the gradients of the operands."""
    return operand_gradients(op, d, y, a, b)


def operand_gradients(
    op: str, d: Traced, y: Operand, a: Operand, b: Operand | None = None, *, mistake: str = ""
) -> tuple[Traced, ...]:
    """Return the gradients of the operands by RULES, or by those of a known mistake."""
    rules = RULES | MISTAKEN.get(mistake, {})
    return tuple(rules[op, place](d, y, a, b) for place in range(2 if (op, 1) in rules else 1))


def gradients(graph: Graph, saved: Sequence[int] = (), mistake: str = "") -> Graph:
    """Compute the gradient of sum(d * output) with respect to each input; `mistake` names a known mistake."""
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    live = set(live_nodes(graph))

    def run(*given: Traced) -> tuple[Traced, ...]:
        known = dict(zip([*inputs, *saved], given, strict=False))
        values: list[Operand] = []
        for k, node in enumerate(graph.nodes):
            operands = [values[i] for i in node.inputs]
            values.append(known[k] if k in known else record_node(node, operands))

        @cache
        def gradient(k: int) -> Traced:
            uses = [(u, p) for u in sorted(live) for p, i in enumerate(graph.nodes[u].inputs) if i == k]
            uses = [(u, p) for u, p in uses if graph.nodes[u].op != "lt"]
            parts = [given[-1]] if k == graph.outputs[0] else []
            for u, p in uses:
                a, *others = [values[i] for i in graph.nodes[u].inputs]
                part = operand_gradients(graph.nodes[u].op, gradient(u), values[u], a, *others, mistake=mistake)[p]
                parts.append(part if mistake == "shape" else fit(part, graph.nodes[k].shape))
            if mistake == "overwritten" and uses:
                parts = [parts[-len(uses) + max(at for at, (u, _) in enumerate(uses) if u == uses[0][0])]]
            return reduce(operator.add, parts) if parts else given[0].then("expand", 0.0, shape=graph.nodes[k].shape)

        return tuple(gradient(k) for k in inputs)

    return record(run, *[graph.nodes[k].shape for k in (*inputs, *saved, graph.outputs[0])])


def record_node(node: Node, operands: list[Operand]) -> Operand:
    """Record a node of another graph, or return its number if it is a constant."""
    if node.op == "constant":
        assert node.value is not None
        return node.value
    traced = next(x for x in operands if isinstance(x, Traced))
    return traced.then(node.op, *operands, shape=node.shape)


def fit(d: Traced, shape: Shape) -> Traced:
    """Sum or expand a gradient to the shape of its operand."""
    if d.shape == shape:
        return d
    return d.sum() if d.shape[-1] != 1 and shape[-1] == 1 else d.expand(shape)


@answers
def gradient_graph(graph: Graph, saved: Sequence[int] = ()) -> Graph:
    """Return the graph of the gradients."""
    return gradients(graph, saved)


@answers
def forward_and_backward(graph: Graph) -> tuple[Graph, Graph]:
    """Return the forward and backward graphs, and save the reductions that the gradients need."""
    return split(graph)


def split(graph: Graph) -> tuple[Graph, Graph]:
    """Return the forward and backward graphs, and save the reductions that the gradients need."""
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    count = sum(node.op == "input" for node in graph.nodes)
    whole = gradients(graph, reductions)
    used = {whole.nodes[k].value for k in live_nodes(whole) if whole.nodes[k].op == "input"}
    saved = [k for at, k in enumerate(reductions) if count + at in used]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradients(graph, saved)


@answers
def kernel_for(graph: Graph, group: Sequence[int]) -> Kernel:
    """Return the kernel with the fewest loads and stores."""
    return make_kernel(graph, group, nodes_to_compute(graph))


@answers
def schedule(graph: Graph) -> tuple[Kernel, ...]:
    """Search all orders of maximal kernels for the shortest schedule, then move nodes between kernels to save bytes."""
    return shortest_schedule(graph)


def shortest_schedule(graph: Graph) -> tuple[Kernel, ...]:
    """Search for the shortest schedule."""
    computed = frozenset(nodes_to_compute(graph))
    ways: dict[frozenset[int], tuple[frozenset[int], ...]] = {frozenset(): ()}
    while computed not in ways:
        longer: dict[frozenset[int], tuple[frozenset[int], ...]] = {}
        for done, groups in ways.items():
            for group in maximal_kernels(graph, computed, done):
                longer.setdefault(done | group, (*groups, group))
        ways = longer
    return tuple(make_kernel(graph, group, computed) for group in move_nodes(graph, list(ways[computed])))


def maximal_kernels(graph: Graph, computed: frozenset[int], done: frozenset[int]) -> list[frozenset[int]]:
    """Return the maximal kernels that can run next."""
    kernels: set[frozenset[int]] = set()
    left = sorted(computed - done)

    def can_join(group: list[int], k: int) -> bool:
        is_ready = all(i in done or i in group or i not in computed for i in graph.nodes[k].inputs)
        return k not in group and is_ready and can_share(graph, [*group, k])

    for first in [k for k in left if can_join([], k)]:
        for second in [first, *[k for k in left if can_join([first], k)]]:
            group = [first]
            for k in (second, *left, *left):
                if can_join(group, k):
                    group.append(k)
            kernels.add(frozenset(group))
    return list(kernels)


def move_nodes(graph: Graph, groups: list[frozenset[int]]) -> list[frozenset[int]]:
    """Move nodes to other kernels as long as this saves bytes."""
    has_changed = True
    while has_changed:
        has_changed = False
        for k in sorted(frozenset[int]().union(*groups)):
            home = next(g for g in groups if k in g)
            for to in groups:
                moved = order_kernels(graph, [g | {k} if g is to else g - {k} for g in groups])
                if to is home or len(home) == 1 or not can_share(graph, sorted(to | {k})) or moved is None:
                    continue
                if count_bytes(graph, moved) < count_bytes(graph, groups):
                    groups, has_changed = moved, True
                    break
    return groups
