"""The search for the configuration of a matmul with the least estimated time.

Each device has its own configurations and cost model. It passes generators of candidates, and caches the result.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from .problem import MatmulProblem


class Configuration(Protocol):
    """A way to compute a matmul."""

    @property
    def cycles(self) -> float:
        """The estimated time in clock cycles."""


ConfigurationT = TypeVar("ConfigurationT", bound=Configuration)
Candidates = Callable[[MatmulProblem], Iterable[ConfigurationT]]


def find_cheapest(problem: MatmulProblem, *candidates: Candidates[ConfigurationT]) -> ConfigurationT:
    """Return the configuration with the fewest cycles, for the problem or its transpose; if several tie, the first."""
    orientations = problem, problem.transposed()
    return min((x for generate in candidates for p in orientations for x in generate(p)), key=lambda x: x.cycles)
