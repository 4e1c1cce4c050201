"""Parameters of modules in the course: a value in a box, so that it can be found and replaced."""

from typing import Any


class Parameter:
    """A value that is learned. Two parameters are two, even if their values are equal.

    Examples
    --------
    >>> w = Parameter(0.5)
    >>> w.value = w.value - 0.1
    >>> w
    Parameter(0.4)
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Parameter({self.value!r})"
