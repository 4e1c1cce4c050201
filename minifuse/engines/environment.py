"""The environment variables by which a process learns its place among the ranks.

`minifuse launch` sets MINIFUSE_RANK and the others; `mpiexec`, without it, sets those of its MPI library. This module is the
only one that reads or writes them.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple, Self

from ..core.errors import DistributedError

ENGINES = ("shared", "mpi", "nccl", "simulated")

RANK = "MINIFUSE_RANK"
SIZE = "MINIFUSE_SIZE"
ENGINE = "MINIFUSE_ENGINE"
BOARD = "MINIFUSE_BOARD"
MESH = "MINIFUSE_MESH"
RESTART = "MINIFUSE_RESTART"

MPI_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
)
"""The variables of rank and size that the launchers of MPI libraries set."""


class Place(NamedTuple):
    """The place of this process among the ranks.

    Attributes
    ----------
    rank, size : int
        Which rank this process is, of how many. With the simulated engine one process is all of them, and rank is 0.
    engine : str
        One of `ENGINES`.
    board : str
        The address of the region of the board; "" without a launcher.
    mesh : str
        The axes as text, such as "data=2,model=2"; "" for one axis of all ranks.
    restart : int
        How often the launcher has started the ranks again.
    """

    rank: int = 0
    size: int = 1
    engine: str = "shared"
    board: str = ""
    mesh: str = ""
    restart: int = 0

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
        """Return the place that the environment names; None for a process that no launcher started."""
        get = variables.get
        for rank, size in ((RANK, SIZE), *MPI_VARIABLES):
            if rank in variables and size in variables:
                place = cls(int(variables[rank]), int(variables[size]), get(ENGINE, "mpi"), get(BOARD, ""), get(MESH, ""))
                return place._replace(restart=int(get(RESTART, 0)))
        return None

    def variables(self) -> dict[str, str]:
        """Return the environment variables from which `read` makes this place."""
        found = {SIZE: self.size, ENGINE: self.engine, BOARD: self.board, MESH: self.mesh, RESTART: self.restart}
        if self.engine != "mpi":  # mpiexec numbers the ranks
            found[RANK] = self.rank
        return {name: str(value) for name, value in found.items()}


def parse_mesh(text: str, size: int) -> dict[str, int]:
    """Return the axes of a mesh by name, outermost first; one axis `data` for an empty text.

    Raises
    ------
    DistributedError
        The text is not of the form data=2,model=2, or its sizes do not multiply to the number of ranks.

    Examples
    --------
    >>> parse_mesh("data=2,model=3", 6)
    {'data': 2, 'model': 3}
    """
    if not text:
        return {"data": size}
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    if not all(name.isidentifier() and count.isdecimal() and int(count) for name, count in pairs):
        raise DistributedError(f"got the mesh {text!r}, expected axes and their sizes, such as data=2,model=2")
    axes = {name: int(count) for name, count in pairs}
    total = 1
    for count in axes.values():
        total *= count
    if total != size or len(axes) != len(pairs):
        raise DistributedError(
            f"the mesh {text} has {total} places, expected one for each of the {size} ranks, by axes of one name"
        )
    return axes
