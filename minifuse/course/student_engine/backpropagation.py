"""Backward passes by the `backpropagate` that a student wrote, over the calls that minifuse records."""

from collections.abc import Sequence
from typing import Any

from ...core.autograd import BackwardRequest, Edge, TapeNode, propagate
from .engine import StudentEngine

SLOT = "backpropagate"


class Gradients:
    """The gradients of the outputs of one recorded call, by the number of the output. They can be added."""

    def __init__(self, by_output: dict[int, Any]) -> None:
        self.by_output = by_output

    def __add__(self, other: "Gradients | int") -> "Gradients":
        if not isinstance(other, Gradients):  # 0, with which `sum` starts
            return self
        total = dict(self.by_output)
        for k, g in other.by_output.items():
            total[k] = total[k] + g if k in total else g
        return Gradients(total)

    __radd__ = __add__


class TapeVariable:
    """A recorded call or a leaf of minifuse, as task 1.4 sees a variable."""

    def __init__(self, tape: "Tape", place: Any, is_constant: bool = False) -> None:
        self.tape, self.place, self.is_constant = tape, place, is_constant
        self._history: TapeCall | None = None

    @property
    def history(self) -> "TapeCall | None":
        """Return the recorded call; None for a leaf."""
        if self._history is None and hasattr(self.place, "edges") and hasattr(self.place, "free_saved"):
            self._history = TapeCall(self.tape, self.place)
        return self._history

    def accumulate(self, d: Gradients) -> None:
        """Add to the gradient of a leaf."""
        for g in d.by_output.values():
            known = self.tape.leaves.get(self.place)
            self.tape.leaves[self.place] = g if known is None else known + g


class TapeCall:
    """A recorded call, as task 1.3 sees one: it is its own function and context."""

    def __init__(self, tape: "Tape", node: TapeNode) -> None:
        self.tape, self.node, self.edges = tape, node, tuple(node.edges)
        self.inputs = tuple(tape.variable(edge) for edge in self.edges)
        self.function, self.context = self, None

    def backward(self, context: object, d: Gradients) -> tuple[Gradients, ...]:
        """Return the gradient of each input."""
        gradients = self.tape.request.visit(self.node, [d.by_output.get(k) for k in range(self.node.count)])
        if not gradients:
            return tuple(Gradients({}) for _ in self.inputs)
        return tuple(
            Gradients({} if g is None else {edge[1] if type(edge) is tuple else 0: g})
            for edge, g in zip(self.edges, gradients, strict=True)
        )


class Tape:
    """The variables of one backward pass: one for each recorded call, and for each leaf."""

    def __init__(self, request: BackwardRequest) -> None:
        self.request = request
        self.leaves: dict[Any, Any] = {}
        self.constant = TapeVariable(self, None, is_constant=True)
        self._variables: dict[Any, TapeVariable] = {}

    def variable(self, edge: Edge | None) -> TapeVariable:
        """Return the variable that an edge leads to; a constant if no gradient is wanted there."""
        if edge is None or not self.request.is_wanted(edge):
            return self.constant
        place = edge[0] if type(edge) is tuple else edge
        if place not in self._variables:
            self._variables[place] = TapeVariable(self, place)
        return self._variables[place]


class Roots:
    """A call whose inputs are the roots of a backward pass. Its `backward` hands each of them its gradient."""

    def __init__(self, tape: Tape) -> None:
        self.roots = [(edge, g) for edge, g in tape.request.roots if tape.request.is_wanted(edge)]
        self.inputs: Sequence[TapeVariable] = tuple(tape.variable(edge) for edge, _ in self.roots)
        self.function, self.context = self, None

    def backward(self, context: object, d: object) -> tuple[Gradients, ...]:
        """Return the gradients of the roots."""
        return tuple(Gradients({edge[1] if type(edge) is tuple else 0: g}) for edge, g in self.roots)


class Backpropagation:
    """The algorithm of backward passes: the student's if it is written, else minifuse's."""

    def __init__(self, engine: StudentEngine) -> None:
        self.engine = engine

    def run(self, request: BackwardRequest) -> dict[Any, Any]:
        """Return {leaf: gradient}."""
        if not self.engine.has(SLOT, "topological_order", "chain_rule"):
            self.engine.lend(SLOT)
            return propagate(request)
        tape = Tape(request)
        start = TapeVariable(tape, None)
        start._history = Roots(tape)  # type: ignore[assignment]  # of the same attributes
        self.engine.slot(SLOT)(start, Gradients({0: None}))
        return tape.leaves
