"""Parse shapes and chains of views that a user types. The text is never run as Python.

    shape   2, 3, 4
    chain   .permute(1, 0)[::2, 1:].flip(0)          calls of views, and slices

Length, number of steps and size of numbers are limited. An error shows its position with a caret.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from minifuse.core.errors import MinifuseError

MAX_CHARACTERS, MAX_STEPS, MAX_DIMS, MAX_DIGITS = 200, 12, 8, 9
VIEWS = ("permute", "flip", "expand", "reshape", "squeeze", "unsqueeze", "contiguous", "T")
ARGUMENTS = {
    "squeeze": (0, 1),
    "unsqueeze": (1, 1),
    "contiguous": (0, 0),
}  # minimum and maximum number; the others take any number
TOKEN = re.compile(r"\s*([A-Za-z_]\w*|-?\d+|\.\.\.|[()\[\],.:])")

Entry = int | slice | EllipsisType | None


class InputError(MinifuseError, ValueError):
    """The text is not valid in the grammar."""

    def __init__(self, text: str, at: int, what: str) -> None:
        line = re.sub(r"\s", " ", text[:MAX_CHARACTERS])
        super().__init__(f"{what}\n\n    {line}\n    {' ' * min(at, MAX_CHARACTERS)}^")
        self.at = at


@dataclass(frozen=True)
class Call:
    """A view that is made by a method: `.permute(1, 0)`, or `.T` without arguments."""

    method: str
    arguments: tuple[int, ...]

    def __str__(self) -> str:
        return f".{self.method}" + (f"({', '.join(map(str, self.arguments))})" if self.method != "T" else "")

    def apply(self, x: Any) -> Any:
        """Return this view of a tensor."""
        return x.T if self.method == "T" else getattr(x, self.method)(*self.arguments)


@dataclass(frozen=True)
class Index:
    """A view that is made by indexing: `[::2, 1:]`."""

    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(format_entry, self.entries))}]"

    def apply(self, x: Any) -> Any:
        """Return this view of a tensor."""
        return x[self.entries]


def format_entry(entry: Entry) -> str:
    """Format an entry of an index as Python writes it."""
    if entry is Ellipsis:
        return "..."
    if not isinstance(entry, slice):
        return str(entry)
    parts = ["" if x is None else str(x) for x in (entry.start, entry.stop)]
    return ":".join(parts) + (f":{entry.step}" if entry.step is not None else "")


def parse_shape(text: str) -> tuple[int, ...]:
    """Parse sizes such as "2, 3, 4". An empty text is the shape of a scalar.

    Raises
    ------
    InputError
        The text is invalid.

    Examples
    --------
    >>> shape("2, 3"), shape("(4,)"), shape("")
    ((2, 3), (4,), ())
    """
    words = TokenReader(text)
    shape = words.shape()
    words.end()
    return tuple(map(int, shape))


def parse_chain(text: str) -> tuple[Call | Index, ...]:
    """Parse views such as ".permute(1, 0)[::2]".

    Raises
    ------
    InputError
        The text is invalid.

    Examples
    --------
    >>> [str(step) for step in chain(".T[1:, ::-1].unsqueeze(0)")]
    ['.T', '[1:, ::-1]', '.unsqueeze(0)']
    """
    words, steps = TokenReader(text), list[Call | Index]()
    while not words.is_done:
        if len(steps) == MAX_STEPS:
            raise InputError(text, words.at, f"more than {MAX_STEPS} views; leave some out")
        if words.take("["):
            steps.append(Index(words.entries()))
            words.need("]")
            continue
        words.need(".", "a view such as .permute(1, 0), .T or [::2]")
        at, method = words.at, words.next("the name of a view")
        if method not in VIEWS:
            raise InputError(text, at, f"{method!r} is no view that is known here; expected one of {', '.join(VIEWS)}")
        if method == "T":
            steps.append(Call("T", ()))
            continue
        words.need("(")
        is_closed = words.take("(")
        arguments = tuple(int(x) for x, _ in words.integers(")"))
        words.need(")")
        if is_closed:
            words.need(")")
        fewest, most = ARGUMENTS.get(method, (0, MAX_CHARACTERS))
        if not fewest <= len(arguments) <= most:
            expected = str(most) if fewest == most else f"{fewest} or {most}"
            raise InputError(text, at, f"{method} got {len(arguments)} arguments; expected {expected}")
        steps.append(Call(method, arguments))
    return tuple(steps)


def parse_index(text: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """Parse an index into a shape.

    Raises
    ------
    InputError
        The text is not an index, or is out of range for this shape.

    Examples
    --------
    >>> checked("1, 2", (2, 3))
    (1, 2)
    """
    index = parse_shape(text)
    if len(index) != len(sizes):
        raise InputError(text, 0, f"{len(index)} numbers for shape {tuple(sizes)}; expected one a dim")
    for d, (i, n) in enumerate(zip(index, sizes, strict=True)):
        if i >= n:
            raise InputError(text, 0, f"{i} in dim {d} of shape {tuple(sizes)}; expected less than {n}")
    return index


class TokenReader:
    """Reads a text token by token."""

    def __init__(self, text: str, token: re.Pattern[str] = TOKEN) -> None:
        if len(text) > MAX_CHARACTERS:
            raise InputError(text, MAX_CHARACTERS, f"{len(text):,} characters; expected at most {MAX_CHARACTERS}")
        self.text, self.found, at = text, list[tuple[str, int]](), 0
        while text[at:].strip():
            match = token.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise InputError(text, at, f"{text[at]!r} means nothing here")
            self.found.append((match[1], match.start(1)))
            at = match.end()
        self.k = 0

    @property
    def is_done(self) -> bool:
        """True after the last token."""
        return self.k == len(self.found)

    @property
    def at(self) -> int:
        """The position of the next token."""
        return len(self.text) if self.is_done else self.found[self.k][1]

    def next(self, expected: str) -> str:
        """Return the next token."""
        if self.is_done:
            raise InputError(self.text, self.at, f"it ends here; expected {expected}")
        self.k += 1
        return self.found[self.k - 1][0]

    def take(self, word: str) -> bool:
        """Skip the next token if it equals `word`, and return True if so."""
        is_next = not self.is_done and self.found[self.k][0] == word
        self.k += is_next
        return is_next

    def need(self, word: str, expected: str = "") -> None:
        """Skip the next token, which must equal `word`."""
        at = self.at
        if not self.take(word):
            got = "it ends here" if self.is_done else f"got {self.found[self.k][0]!r}"
            raise InputError(self.text, at, f"{got}; expected {expected or repr(word)}")

    def end(self) -> None:
        """Raise if tokens are left."""
        if not self.is_done:
            raise InputError(self.text, self.at, f"got {self.found[self.k][0]!r}; expected the end")

    def integer(self) -> int:
        """Parse a whole number."""
        at, word = self.at, self.next("a whole number")
        if not word.lstrip("-").isdecimal():
            raise InputError(self.text, at, f"got {word!r}; expected a whole number")
        if len(word.lstrip("-")) > MAX_DIGITS:
            raise InputError(self.text, at, f"a number of {len(word.lstrip('-'))} digits; expected at most {MAX_DIGITS}")
        return int(word)

    def integers(self, closing: str, letter: str = "") -> list[tuple[int | str, int]]:
        """Parse numbers with commas between them and optionally at the end, and return each with its position.

        A letter may take the place of a number.
        """
        found = list[tuple[int | str, int]]()
        while not self.is_done and self.found[self.k][0] != closing:
            at = self.at
            found.append((letter if letter and self.take(letter) else self.integer(), at))
            if not self.take(","):
                break
        return found

    def shape(self, closing: str = "", letter: str = "") -> tuple[int | str, ...]:
        """Parse sizes, in parentheses or before `closing`. A letter may take the place of a size."""
        is_closed = self.take("(")
        sizes = self.integers(")" if is_closed else closing, letter)
        if is_closed:
            self.need(")")
        for size, at in sizes:
            if isinstance(size, int) and size < 0:
                raise InputError(self.text, at, f"a size is {size}; expected 0 or more")
        if len(sizes) > MAX_DIMS:
            raise InputError(self.text, sizes[MAX_DIMS][1], f"{len(sizes)} dims; expected at most {MAX_DIMS}")
        return tuple(size for size, _ in sizes)

    def entries(self) -> tuple[Entry, ...]:
        """Parse the entries of an index."""
        found = list[Entry]()
        while not self.is_done and self.found[self.k][0] != "]":
            found.append(self.entry())
            if not self.take(","):
                break
        return tuple(found)

    def entry(self) -> Entry:
        """Parse a number, a slice, None or `...`."""
        if self.take("..."):
            return Ellipsis
        if self.take("None"):
            return None
        parts: list[int | None] = []
        for _ in range(3):
            is_number = not self.is_done and self.found[self.k][0] not in (":", ",", "]")
            parts.append(self.integer() if is_number else None)
            if not self.take(":"):
                break
        else:
            self.k -= 1
            raise InputError(self.text, self.at, "a slice has at most two colons")
        if len(parts) == 1:
            if parts[0] is None:
                raise InputError(self.text, self.at, "an entry is missing; expected a number, a slice, None or ...")
            return parts[0]
        return slice(*parts)


def format_steps(steps: Sequence[Call | Index]) -> list[str]:
    """Format each view as it is typed."""
    return [str(step) for step in steps]
