"""Questions of task 0.2: properties of operators, of which one may have a bug."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...core.errors import NotDoneYet
from ..student import Student
from ..verdicts import Refused
from .wrong_operators import WRONG_OPERATORS

Point = tuple[float, ...]
Case = tuple[str, Point]  # (slot, three numbers)
NAMES = tuple("identity add mul neg lt eq maximum is_close sigmoid relu log exp inv log_grad inv_grad relu_grad".split())  # noqa: SIM905


class Operators:
    """The operators of task 0.1, of which one may have a bug, and a record of their calls.

    Parameters
    ----------
    functions : dict from str to function
        The sixteen operators.

    Attributes
    ----------
    calls : list of (name, arguments, result)
        The calls so far.
    """

    def __init__(self, functions: Mapping[str, Callable[..., float]]) -> None:
        self.calls: list[tuple[str, tuple[float, ...], float]] = []
        self._functions = functions

    def __getattr__(self, name: str) -> Callable[..., float]:
        """Return the operator of a name."""
        if name not in NAMES:
            raise AttributeError(f"there is no operator {name}; there are {', '.join(NAMES)}", name=name, obj=self)

        def call(*xs: float) -> float:
            result: float = self._functions[name](*xs)
            self.calls.append((name, xs, result))
            return result

        return call

    def __dir__(self) -> list[str]:
        return list(NAMES)


def operators_of(student: Student) -> dict[str, Callable[..., float]]:
    """Return the operators without a bug."""
    return {name: getattr(student, name) for name in NAMES}


def ask(student: Student, case: Case) -> object:
    """Return the answer of a property for right operators."""
    slot, xs = case
    return getattr(student, slot)(Operators(operators_of(student)), *xs)


def describe_calls(student: Student, case: Case) -> list[str]:
    """Return the calls of right operators by a property, also by one that raises an error: "add(1.0, 2.0) = 3.0"."""
    slot, xs = case
    ops = Operators(operators_of(student))
    call_property(student, slot, ops, xs)
    return [f"{name}({', '.join(map(repr, xs))}) = {y!r}" for name, xs, y in ops.calls]


def called_operators(student: Student, case: tuple[str, Sequence[str], Iterable[Point]]) -> set[str]:
    """Return which of some operators a property calls at some points, of which the first may suffice."""
    slot, names, points = case
    called = set[str]()
    functions = operators_of(student)
    for xs in points:
        ops = Operators(functions)
        getattr(student, slot)(ops, *xs)
        called |= {name for name, _, _ in ops.calls}
        if called.issuperset(names):
            break
    return called


def call_property(student: Student, slot: str, ops: Operators, xs: Point) -> object:
    """Call a property; return False if it raises, since an error finds the bug too."""
    try:
        return getattr(student, slot)(ops, *xs)
    except (NotDoneYet, Refused):
        raise
    except Exception:
        return False


def answers(student: Student, case: tuple[str, Mapping[str, str], Iterable[Point]]) -> list[object]:
    """Return the answers of a property at some points for operators of which some are replaced by wrong ones."""
    slot, replaced, points = case
    functions = operators_of(student) | {name: WRONG_OPERATORS[name][text] for name, text in replaced.items()}
    return [call_property(student, slot, Operators(functions), xs) for xs in points]
