"""Questions of task 1.3: the chain rule for one call."""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ..graphs import Graph, Node, Watch, build_variables
from ..student import Student
from ..variables import Context


class AnyCall(NamedTuple):
    """A call whose derivatives are drawn. None stands for a derivative that is not a number."""

    inputs: tuple[int, ...]
    """The number of the variable, for each input. The odd ones are constants."""
    derivatives: tuple[float | None, ...]
    """The derivatives that `backward` returns; the second time their reverse."""
    ds: tuple[float | None, ...]
    """The derivative that the result receives, for each time that the chain rule is asked."""


class Thing:
    """A derivative that is passed on, and with which nothing can be computed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def refuse(self, *_: object) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("this derivative is no number; chain_rule only passes it on")

    __eq__ = __ne__ = __lt__ = __add__ = __radd__ = __mul__ = __rmul__ = __neg__ = __bool__ = __float__ = refuse
    __hash__ = None  # type: ignore[assignment]  # as of a tensor that compares elements


class PlainCall:
    """A recorded call of a function that returns drawn derivatives, and notes what it receives."""

    def __init__(self, inputs: tuple[Node, ...], case: AnyCall) -> None:
        self.inputs, self.context, self.received = inputs, Context(), list[tuple[bool, object]]()
        rounds = [[thing_of(x, f"derivative {k}") for k, x in enumerate(case.derivatives)] for _ in case.ds]
        call = self

        class Drawn:
            """The function."""

            @staticmethod
            def backward(context: Context, d: object) -> tuple[object, ...]:
                """Return the derivatives of this round."""
                call.received.append((context is call.context, d))
                now = rounds[(len(call.received) - 1) % len(rounds)]
                return tuple(now[::-1] if len(call.received) > 1 else now)

        self.function = Drawn


def thing_of(x: float | None, name: str) -> object:
    """Return a number, or an object for None."""
    return Thing(name) if x is None else x


def ask(student: Student, graph: Graph) -> object:
    """Return the student's pairs."""
    return pairs(student.chain_rule, graph)


def pairs(chain_rule: Callable[..., Any], graph: Graph) -> object:
    """Return the derivatives for the inputs of the root, by name."""
    root = build_variables(graph)[0][-1]
    return named_pairs(chain_rule(root.made_by, graph.d))


def named_pairs(found: object) -> object:
    """Replace variables by their names in a list of tuples of two; return anything else unchanged."""
    if not isinstance(found, list):
        return found
    return [(getattr(x[0], "name", x[0]), x[1]) if isinstance(x, tuple) and len(x) == 2 else x for x in found]


def ask_any(student: Student, case: AnyCall) -> list[tuple[object, int, bool]]:
    """Return for each d the student's pairs, the number of calls of `backward`, and whether it received context and d."""
    watch = Watch(1000)
    nodes = {k: Node(f"x{k}", watch, None, k % 2 == 1) for k in case.inputs}
    call = PlainCall(tuple(nodes[k] for k in case.inputs), case)
    answers: list[tuple[object, int, bool]] = []
    for k, one in enumerate(case.ds):
        d, before = thing_of(one, f"d{k}"), len(call.received)
        found: Any = named_pairs(student.chain_rule(call, d))
        is_told = all(is_own and got is d for is_own, got in call.received[before:])
        if isinstance(found, list):
            found = [(x[0], repr(x[1]) if isinstance(x[1], Thing) else x[1]) if isinstance(x, tuple) else x for x in found]
        answers.append((found, len(call.received) - before, is_told))
    return answers
