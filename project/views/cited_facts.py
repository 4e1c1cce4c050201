"""The facts of a page, each with a label for its source."""

from dataclasses import dataclass
from typing import Any

TRACED, DERIVED, MEASURED, THEORY = "TRACED", "DERIVED", "MEASURED", "THEORY"
MEANINGS = {
    TRACED: "it ran, lane by lane, and this was counted",
    DERIVED: "it follows from what ran, or from the layout, by a rule",
    MEASURED: "hardware took this time or counted this, on a device and a date that the result file names",
    THEORY: "this is what the hardware's data sheet says",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the table of facts.

    Raises
    ------
    ValueError
        The truth label is none of TRACED, DERIVED, MEASURED and THEORY.
    """

    name: str
    value: Any
    truth: str
    why: str = ""

    def __post_init__(self) -> None:
        if self.truth not in MEANINGS:
            raise ValueError(f"{self.name}: the truth label is {self.truth!r}, expected one of {', '.join(MEANINGS)}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a kernel's source, with what was counted there, such as {"loads": 32, "sectors": 4}."""

    number: int
    text: str
    counts: tuple[tuple[str, int], ...] = ()


def as_rows(facts: list[Fact]) -> list[dict[str, str]]:
    """Return facts as rows of a table."""
    return [{"fact": f.name, "value": str(f.value), "truth": f.truth, "why": f.why} for f in facts]
