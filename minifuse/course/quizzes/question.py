"""Questions of a quiz, and how a typed answer is read and compared."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from string import ascii_lowercase

Answer = int | float | str | tuple[int | float, ...]
"""A number, a word (or several, or the letter of a choice), or a tuple of numbers."""
Wrong = dict[Answer, str]
"""Typical wrong answers, and the mistake behind each."""

NUMBER = r"[-+]?(?:\d+/\d+|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|inf|nan)"
THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:[ ,_]\d{3})+"
EXPECTED = {
    "choice": "one of the letters",
    "number": "a number, such as 12, -0.5 or 1/3",
    "tuple": "numbers with commas or spaces between them, such as (2, 3)",
    "text": "words",
}


class UnreadableAnswerError(ValueError):
    """A typed answer that is not of the expected kind."""


@dataclass(frozen=True)
class Question:
    """A question with drawn numbers.

    Examples
    --------
    >>> q = Question("Shape (2, 3): strides?", (3, 1), "A row has 3 elements.", {(1, 2): "this is column-major order"})
    >>> q.is_right(q.read("3 1")), q.mistake(q.read("[1, 2]"))
    (True, 'this is column-major order')
    """

    prompt: str
    """One paragraph."""
    answer: Answer
    explanation: str
    """One paragraph: the rule of the page with the numbers of this question."""
    wrong: Mapping[Answer, str]
    """Typical wrong answers, and the mistake behind each: a clause that begins in lower case."""
    figure: str = ""
    """Lines of text to be shown below the prompt."""
    drawing: str = ""
    """Lines of text to be shown below the explanation."""
    choices: tuple[str, ...] = ()
    """The options of a choice; the answer is then a letter."""
    tolerance: float = 0.0
    """The allowed difference of a number."""
    numbers: Mapping[str, object] = field(default_factory=dict)
    """The drawn numbers, by name."""

    @property
    def kind(self) -> str:
        """How an answer is read and compared: "choice", "number", "tuple" or "text"."""
        if self.choices:
            return "choice"
        return "text" if isinstance(self.answer, str) else "tuple" if isinstance(self.answer, tuple) else "number"

    def read(self, text: str) -> Answer:
        """Return a typed answer as a value.

        Raises
        ------
        UnreadableAnswerError
            The text is not of the kind of the answer.
        """
        text = text.strip().casefold()
        value = {"choice": self._read_choice, "number": read_number, "tuple": read_tuple, "text": read_words}[self.kind](
            text
        )
        if value is None:
            raise UnreadableAnswerError(f"got {text!r}, expected {EXPECTED[self.kind]}")
        return value

    def _read_choice(self, text: str) -> str | None:
        """Return the letter of a choice, which may be written out."""
        letters = ascii_lowercase[: len(self.choices)]
        written_out = {read_words(choice.casefold()): letter for choice, letter in zip(self.choices, letters, strict=True)}
        letter = text.strip("() .:")
        return letter if letter and letter in letters and len(letter) == 1 else written_out.get(read_words(text))

    def is_right(self, value: Answer) -> bool:
        """Return whether a value is the answer."""
        return are_equal(value, self.answer, self.tolerance)

    def mistake(self, value: Answer) -> str:
        """Return the mistake behind a wrong value; "" if it is unknown."""
        return next((text for wrong, text in self.wrong.items() if are_equal(value, wrong, self.tolerance)), "")

    def format_answer(self) -> str:
        """Return the answer as people write it."""
        if self.choices:
            return f"{self.answer}) {self.choices[ascii_lowercase.index(str(self.answer))]}"
        return format_value(self.answer)


def are_equal(a: Answer, b: Answer, tolerance: float) -> bool:
    """Return whether two values are equal; numbers within a tolerance, and NaN equals NaN."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(are_equal(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= max(tolerance, 1e-9 * abs(b))
    return isinstance(a, str) and isinstance(b, str) and read_words(a) == read_words(b)


def read_number(text: str) -> int | float | None:
    """Read a number: 1500, 1,500, 0.5, .5, 1/2, 1e3, -inf; a word behind it is ignored. None for anything else.

    Examples
    --------
    >>> read_number("24,000 bytes"), read_number("-1/4"), read_number("0,5"), read_number("twelve")
    (24000, -0.25, 0.5, None)
    """
    text = text.strip("()[] ")
    if re.fullmatch(rf"{THOUSANDS}(?:\.\d+)?(?: *[a-z%]+)?", text):
        text = re.sub(r"(?<=\d)[ ,_](?=\d)", "", text)
    text = re.sub(r"^([-+]?\d+),(\d+)$", r"\1.\2", text)  # 0,5
    match = re.fullmatch(rf"({NUMBER})(?: *[a-z%]+)?,?", text)
    return number(match[1]) if match else None


def read_tuple(text: str) -> tuple[int | float, ...] | None:
    """Read numbers between brackets, commas, semicolons, spaces or x. None for anything else.

    Examples
    --------
    >>> read_tuple("(1, 2)"), read_tuple("1 2"), read_tuple("[[1], [-2.5]]"), read_tuple("2 x 3"), read_tuple("()")
    ((1, 2), (1, 2), (1, -2.5), (2, 3), ())
    """
    parts = re.sub(r"[\s,;%()\[\]{}]+|(?<=\d)x(?=\d)|\bx\b", " ", text).split()
    if not all(re.fullmatch(NUMBER, part) for part in parts) or (not parts and not re.search(r"[(\[]", text)):
        return None
    return tuple(number(part) for part in parts)


def read_words(text: str) -> str:
    """Read words: brackets, quotes, commas and case do not count.

    Examples
    --------
    >>> read_words("[Y4, y2, 'x0']")
    'y4 y2 x0'
    """
    return " ".join(re.sub(r"[\s,;()\[\]'\"`]+", " ", text.casefold()).split())


def number(text: str) -> int | float:
    """Return the number of a text that matches NUMBER: an int if it is one."""
    if re.search("[in]", text):
        return float(text)
    value = Fraction(text)
    return int(value) if value.denominator == 1 else float(value)


def format_value(value: object) -> str:
    """Format a value for people: a number with thousands separators and at most four decimals, a tuple with commas.

    Examples
    --------
    >>> format_value(24000), format_value(0.25), format_value((1, -2.0)), format_value((3,)), format_value(-0.0)
    ('24,000', '0.25', '(1, -2)', '(3,)', '0')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        is_plain = math.isfinite(value) and abs(value) >= 1e-3
        return f"{value:,.4f}".rstrip("0").rstrip(".") if is_plain else f"{value:g}".removeprefix("-" * (value == 0))
    return str(value)


def choose(
    rng: Random,
    prompt: str,
    right: str,
    others: Mapping[str, str],
    explanation: str,
    *,
    figure: str = "",
    drawing: str = "",
    numbers: Mapping[str, object] | None = None,
) -> Question:
    """Return a question with options in a drawn order: the right one, and others with the mistake behind each."""
    options = [right, *others]
    rng.shuffle(options)
    letter = dict(zip(options, ascii_lowercase, strict=False))
    wrong: dict[Answer, str] = {letter[option]: mistake for option, mistake in others.items()}
    return Question(prompt, letter[right], explanation, wrong, figure, drawing, tuple(options), 0.0, numbers or {})
