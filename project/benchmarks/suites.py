"""Suites: rows that are measured together and stored in one file, and which of them a word of the user selects."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import peers

if TYPE_CHECKING:
    from .row import Row


class Suite(NamedTuple):
    """Rows that are measured together and stored in one file."""

    is_on_gpu: bool
    kind: str
    """One of peers.KINDS, or "" for all other rows."""

    @property
    def word(self) -> str:
        """The word that selects all rows of the suite."""
        return f"gpu-{self.kind}".rstrip("-") if self.is_on_gpu else self.kind

    @property
    def peers(self) -> Sequence[str]:
        """The libraries that can take part."""
        from . import gpu

        of_kinds = {"networks": (peers.TRAINING, peers.TRAINING), "costs": (peers.COSTING, ())}
        of_kinds |= {"fusion": (peers.FUSING, gpu.FUSING), "sweeps": (peers.FUSING, gpu.SWEEPING)}
        return of_kinds.get(self.kind, (peers.KNOWN, gpu.KNOWN))[self.is_on_gpu]

    @property
    def rows(self) -> "Sequence[Row]":
        """All rows of the suite."""
        from .rows import rows_of

        return rows_of(self.is_on_gpu, self.kind)

    def chosen(self, words: Sequence[str]) -> "list[Row]":
        """Return the rows that words select; the first word may name the suite, the others its rows."""
        from .run import choose

        return choose(self.rows, words[1:] if words[1:] and words[0] == self.word else words)

    def file(self, found: dict[str, Any]) -> str:
        """The name of the suite's file of results."""
        from . import gpu, machine

        place = f"gpu-{gpu.slug(found['device']['name'])}" if self.is_on_gpu else f"cpu-{machine.slug()}"
        return f"{place}{'-' * bool(self.kind)}{self.kind}.json"


def suite_of(word: str) -> Suite:
    """Return the suite that a word names, or the first suite, those of the CPU first, with a group of that name."""
    kind = next((kind for kind in peers.KINDS if word.removeprefix("gpu-").startswith(kind)), "")
    if kind or word.startswith("gpu"):
        return Suite(word.startswith("gpu"), kind)
    suites = [Suite(False, kind) for kind in ("", *peers.KINDS)]
    return next((suite for suite in suites if any(word in row.group or word in row.name for row in suite.rows)), suites[0])


def every_suite() -> list[Suite]:
    """Return all suites, those of the CPU first."""
    return [Suite(is_on_gpu, kind) for is_on_gpu in (False, True) for kind in ("", *peers.KINDS)]


def listing() -> list[str]:
    """Return lines about suites, their groups with the number of rows, and the possible peers."""
    from minifuse.core.errors import MissingPartError

    lines = []
    for suite in every_suite():
        try:
            groups = Counter(row.group for row in suite.rows)
            told = ", ".join(f"{group} ({n})" for group, n in groups.items())
        except MissingPartError as error:  # those of a GPU need more libraries
            told = str(error)
        lines.append(f"{suite.word or '(no word)'}: {told}; against {', '.join(suite.peers) or 'nobody'}")
    return lines
