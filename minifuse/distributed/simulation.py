"""Run a function on simulated ranks, in one process."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from ..engines.simulated import Simulation, StateOfRank, states_of_ranks
from ..tensors.random import get_rng_state, manual_seed, set_rng_state

T = TypeVar("T")


def first_state(rank: int) -> object:
    """Return a state of minifuse's generator that differs between ranks, as that of processes does."""
    outer = get_rng_state()
    manual_seed(rank)
    state = get_rng_state()
    set_rng_state(outer)
    return state


states_of_ranks.append(StateOfRank(get_rng_state, set_rng_state, first_state))


def simulate(
    size: int, function: Callable[[], T], axes: Mapping[str, int] | None = None, algorithm: str = "direct"
) -> list[T]:
    """Call a function once on each of n simulated ranks, and return the results by rank.

    One rank runs at a time, and the order of turns is fixed, so every run gives the same bits. Each rank has its own random
    numbers, as processes have.

    Parameters
    ----------
    size : int
        The number of ranks.
    function : callable
        Without parameters; it reads its rank by `dist.rank()`.
    axes : mapping of str to int, optional
        The axes of the mesh. Default: {"data": size}.
    algorithm : str
        "direct", "ring" or "tree": how collectives send their messages.

    Raises
    ------
    MismatchError
        Ranks ask for different collectives, or one waits for a collective that another never asks for.

    Examples
    --------
    >>> import minifuse.distributed as dist
    >>> dist.simulate(3, lambda: (dist.rank(), dist.size()))
    [(0, 3), (1, 3), (2, 3)]
    """
    return Simulation(size, axes, algorithm).run(function)
