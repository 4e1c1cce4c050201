"""Suites: rows that are measured together and stored in one file, and the selection of rows by words of the user."""

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
        """The names of the libraries that can take part."""
        from . import gpu

        peers_by_kind = {"networks": (peers.TRAINING, peers.TRAINING), "costs": (peers.COSTING, ())}
        peers_by_kind |= {"fusion": (peers.FUSING, gpu.FUSING), "sweeps": (peers.FUSING, gpu.SWEEPING)}
        peers_by_kind |= dict.fromkeys(("held-out", "loop-nests"), (peers.PROGRAMS, peers.PROGRAMS))
        peers_by_kind["library"] = (peers.COSTING, gpu.LIBRARY)
        return peers_by_kind.get(self.kind, (peers.KNOWN, gpu.KNOWN))[self.is_on_gpu]

    @property
    def rows(self) -> "Sequence[Row]":
        """All rows of the suite."""
        from .rows import rows_of

        return rows_of(self.is_on_gpu, self.kind)

    def chosen(self, words: Sequence[str]) -> "list[Row]":
        """Return the rows that words select; the first word may name the suite, the others its rows."""
        from .run import choose

        return choose(self.rows, words[1:] if words[1:] and words[0] == self.word else words)

    def file(self, results: dict[str, Any]) -> str:
        """Return the name of the file for these results."""
        from . import gpu, machine

        device = f"gpu-{gpu.slug(results['device']['name'])}" if self.is_on_gpu else f"cpu-{machine.slug()}"
        return f"{device}{'-' * bool(self.kind)}{self.kind}.json"


def suite_of(word: str) -> Suite:
    """Return the suite that a word names; otherwise the first CPU suite with the word in a group or the name of a row."""
    kind = next((kind for kind in peers.KINDS if word.removeprefix("gpu-").startswith(kind)), "")
    if kind or word.startswith("gpu"):
        return Suite(word.startswith("gpu"), kind)
    suites = [Suite(False, kind) for kind in ("", *peers.KINDS)]
    return next((suite for suite in suites if any(word in row.group or word in row.name for row in suite.rows)), suites[0])


def every_suite() -> list[Suite]:
    """Return all suites, those of the CPU first."""
    return [Suite(is_on_gpu, kind) for is_on_gpu in (False, True) for kind in ("", *peers.KINDS)]


def listing() -> list[str]:
    """Return a line for each suite: its groups with their numbers of rows, and the peers that can take part."""
    from minifuse.core.errors import MissingPartError

    lines = []
    for suite in every_suite():
        try:
            groups = Counter(row.group for row in suite.rows)
            description = ", ".join(f"{group} ({n})" for group, n in groups.items())
        except MissingPartError as error:  # rows of a GPU need more libraries
            description = str(error)
        lines.append(f"{suite.word or '(no word)'}: {description}; against {', '.join(suite.peers) or 'nobody'}")
    return lines
