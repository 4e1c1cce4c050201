"""Questions of task 1.1: a numerical derivative of a function that the case names."""

from collections.abc import Callable

from ..student import Student

FUNCTIONS: dict[str, Callable[..., float]] = {
    "3 * x": lambda x: 3 * x,
    "x * x": lambda x: x * x,
    "x * x * x": lambda x: x * x * x,
    "x * x - 5 * y": lambda x, y: x * x - 5 * y,
    "x * y * y": lambda x, y: x * y * y,
    "x * y + 7 * z * z": lambda x, y, z: x * y + 7 * z * z,
}
Case = tuple[str, tuple[float, ...], int, float]  # (name of a function, arguments, which one, epsilon)


def ask(student: Student, case: Case) -> object:
    """Return the student's derivative."""
    return student.numerical_derivative(FUNCTIONS[case[0]], *case[1:])


def count_calls(student: Student, xs: list[float]) -> tuple[int, list[float]]:
    """Return how often the student's function calls x * y for its derivative by x, and xs afterwards."""
    calls: list[tuple[float, ...]] = []

    def f(*xs: float) -> float:
        calls.append(xs)
        return xs[0] * xs[1]

    student.numerical_derivative(f, xs, 0)
    return len(calls), xs
