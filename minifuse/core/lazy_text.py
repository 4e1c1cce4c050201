"""Texts of errors that are computed only when they are printed."""

from collections.abc import Callable


class LazyText:
    """Text of an error that is computed when it is printed. `hasattr` discards its error, so it pays nothing for advice."""

    def __init__(self, compute: Callable[[], str]) -> None:
        self.compute = compute

    def __str__(self) -> str:
        return self.compute()

    def __repr__(self) -> str:
        return repr(self.compute())

    def __reduce__(self) -> tuple[type[str], tuple[str]]:  # an error is pickled with its text
        return str, (self.compute(),)
