"""The search for the configuration of a matmul: that with the least estimated time.

Configurations and their cost models belong to a device. A device passes generators of candidates, and caches what it finds.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from .problem import MatmulProblem


class Configuration(Protocol):
    """A way to compute a matmul."""

    @property
    def cycles(self) -> float:
        """The estimated time."""


ConfigurationT = TypeVar("ConfigurationT", bound=Configuration)
Candidates = Callable[[MatmulProblem], Iterable[ConfigurationT]]


def cheapest(problem: MatmulProblem, *candidates: Candidates[ConfigurationT]) -> ConfigurationT:
    """Return the configuration with the fewest cycles, for the problem or for its transpose; among equals the first one."""
    orientations = problem, problem.transposed()
    return min((x for of in candidates for p in orientations for x in of(p)), key=lambda x: x.cycles)
