"""Questions of task 0.3: map, zip and reduce with a function that the case names, and what they do on the way."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from ..student import Student
from .calling import ErrorName

Case = tuple[Any, ...]
"""The arguments of a slot, with the names of functions instead of functions."""


class Interrupted(Exception):  # noqa: N818  # no error of the student's
    """Raised by a function at its second call."""


def tell_calls() -> Callable[..., str]:
    """Return a function whose answer tells its arguments, exactly, and which call of the function this is."""
    number = count(1)
    return lambda *xs: f"{next(number)}({', '.join(x if isinstance(x, str) else repr(x) for x in xs)})"


def interrupt() -> Callable[..., object]:
    """Return a function that raises an error at its second call."""
    number = count(1)

    def fn(*xs: object) -> object:
        if next(number) == 2:
            raise Interrupted
        return xs[-1]

    return fn


FUNCTIONS: dict[str, Callable[..., float]] = {
    "lambda x: x + 1": lambda x: x + 1,
    "lambda x: 3 * x": lambda x: 3 * x,
    "lambda x, y: 10 * x + y": lambda x, y: 10 * x + y,
    "lambda x, y: x - y": lambda x, y: x - y,
    "lambda x, y: x if x > y else y": lambda x, y: x if x > y else y,
    "lambda x, y: (31 * x + y) % 1009": lambda x, y: (31 * x + y) % 1009,
}
WATCHING: dict[str, Callable[[], Callable[..., Any]]] = {
    "a function that tells its calls": tell_calls,
    "a function that raises an error at its second call": interrupt,
}
"""Functions for any values. They are made anew for each case."""


def call(slot: str, student: Student, case: Case) -> object:
    """Call a slot with a case."""
    return getattr(student, slot)(*arguments(case))


def or_value_error(function: Callable[..., Any], case: Case) -> object:
    """Call a function; return the name of a ValueError if it raises one."""
    try:
        return function(*arguments(case))
    except ValueError:
        return ErrorName("ValueError")


def ask_lengths(slot: str, student: Student, case: Case) -> object:
    """Return the answer of a slot, or the name of its ValueError."""
    return or_value_error(getattr(student, slot), case)


def look(slot: str, student: Student, case: Case) -> list[object]:
    """Return what happens in a call of a slot: see `observed`."""
    return observed(getattr(student, slot), case)


def observed(function: Callable[..., Any], case: Case) -> list[object]:
    """Call map, zip or reduce, and return the result and remarks on lists that changed meanwhile, or are the result."""
    fn, *rest = arguments(case)
    lists = [x for x in rest if isinstance(x, list)]
    before, remarks = [list(xs) for xs in lists], []

    def watch(*xs: object) -> object:
        if any(
            len(xs) != len(ys) or any(x is not y for x, y in zip(xs, ys, strict=True))
            for xs, ys in zip(lists, before, strict=True)
        ):
            remarks.append("a list is changed while fn is called")
        return fn(*xs)

    try:
        result = function(watch, *rest)
    except Interrupted:
        result = "the error of fn"
    if lists != before:
        remarks.append("a list is changed afterwards")
    if any(result is xs for xs in lists):
        remarks.append("the result is the list that was given, not a new one")
    return [result, *sorted(set(remarks))]


def arguments(case: Case) -> list[Any]:
    """Replace the name of a function at the beginning of a case by the function."""
    name, *rest = case
    if not isinstance(name, str):
        return list(case)
    return [FUNCTIONS[name] if name in FUNCTIONS else WATCHING[name](), *rest]


class CutList(list[float]):
    """A list that counts the elements of its slices."""

    copied = 0

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        if not isinstance(index, slice):
            return part
        CutList.copied += len(part)
        return CutList(part)


def copied_elements(slot: str, student: Student, size: int) -> list[int]:
    """Return how many elements slices of a long list copy, and how many lists have held a result within five calls of fn."""
    CutList.copied, results, holders = 0, list[tuple[int]](), list[list[Any]]()
    lists = [CutList(map(float, range(size))) for _ in range(2 if slot == "zip_lists" else 1)]

    def fn(*xs: object) -> object:
        if size // 2 <= len(results) < size // 2 + 5:
            holders.append([x for x in gc.get_referrers(results[size // 4]) if x is not results])
        results.append((len(results),))
        return results[-1]

    getattr(student, slot)(fn, *lists, *([0.0] if slot == "reduce_list" else []))
    found = [x for x in holders if x]
    return [CutList.copied, len({id(parts[0]) for parts in found})]


class Work(NamedTuple):
    """The result of a function that is made of the three loops, and of the arithmetic for it."""

    result: object
    inside: list[float]
    """Results of functions and of arithmetic within the three loops."""
    outside: list[float]
    """Results of arithmetic elsewhere."""


class Watched(float):
    """A float whose arithmetic is noted."""

    note: Callable[[float], float]

    def __add__(self, other: Any) -> Any:
        return Watched.note(float(self) + float(other))

    def __sub__(self, other: Any) -> Any:
        return Watched.note(float(self) - float(other))

    def __rsub__(self, other: Any) -> Any:
        return Watched.note(float(other) - float(self))

    def __mul__(self, other: Any) -> Any:
        return Watched.note(float(self) * float(other))

    def __neg__(self) -> Any:
        return Watched.note(-float(self))

    __radd__, __rmul__ = __add__, __mul__


def observe_work(slot: str, student: Student, lists: Sequence[Sequence[float]]) -> list[list[object]]:
    """Call a slot three times: as it is; with other elements in the three loops; with other results of their functions."""
    works = []
    for is_other_element, is_other_result in ((False, False), (True, False), (False, True)):
        with watched_loops(student, is_other_element, is_other_result) as (inside, outside):
            try:
                result = getattr(student, slot)(*[list(map(Watched, xs)) for xs in lists])
            except ArithmeticError as error:
                result = type(error).__name__
        works.append([plain(result), inside, outside])
    return works


def plain(value: Any) -> Any:
    """Return floats and lists of floats without `Watched`."""
    if isinstance(value, list):
        return [plain(x) for x in value]
    return float(value) if isinstance(value, float) else value


@contextlib.contextmanager
def watched_loops(
    student: Student, is_other_element: bool, is_other_result: bool
) -> Iterator[tuple[list[float], list[float]]]:
    """Within this block the three loops of lists.py, and the operators, note what they compute."""
    depth, inside, outside = [0], list[float](), list[float]()

    def note(value: Any) -> Any:
        if not isinstance(value, float):
            return value
        (inside if depth[0] else outside).append(float(value))
        return Watched(value)

    def changed(value: Any) -> Any:
        return Watched(3 * float(value) + 1) if isinstance(value, float) else value

    def watch_loop(name: str, loop: Callable[..., Any]) -> Callable[..., Any]:
        def watched(fn: Callable[..., Any], *rest: Any) -> Any:
            def step(*xs: Any) -> Any:
                if is_other_element:
                    xs = (*xs[:-1], changed(xs[-1])) if name == "reduce_list" else tuple(map(changed, xs))
                depth[0] += 1
                try:
                    value = fn(*xs)
                    note(value[-1] if isinstance(value, list) and value else value)
                finally:
                    depth[0] -= 1
                return changed(value) if is_other_result else value

            return loop(step, *rest)

        return watched

    def watch_operator(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: note(operator(*xs))

    Watched.note = note
    module, operators = vars(student.module("lists.py")), vars(student.module("operators.py"))
    places: list[tuple[dict[str, Any], str, Callable[[str, Callable[..., Any]], Callable[..., Any]]]] = [
        (module, name, watch_loop) for name in ("map_list", "zip_lists", "reduce_list")
    ]
    for scope in (module, operators):
        places += [(scope, name, watch_operator) for name in scope if name in ("add", "mul", "neg")]
    before = [(scope, name, scope[name]) for scope, name, _ in places]
    for scope, name, watch in places:
        scope[name] = watch(name, scope[name])
    try:
        yield inside, outside
    finally:
        for scope, name, value in before:
            scope[name] = value
