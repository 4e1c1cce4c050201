"""The ranks of a program as a mesh with named axes, and the groups of ranks along them."""

from collections.abc import Mapping
from typing import NamedTuple

from ..engines.world import current_world
from ..ir.collectives import Axes


class ProcessGroup(NamedTuple):
    """The ranks along some axes of the mesh: those that differ from this one only there.

    A group is named by its axes, so one object serves all ranks, also those of the simulated engine.

    Examples
    --------
    >>> import minifuse.distributed as dist
    >>> dist.simulate(4, lambda: (dist.group("model").rank, dist.group("model").size), axes={"data": 2, "model": 2})
    [(0, 2), (1, 2), (0, 2), (1, 2)]
    """

    names: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The position of this rank in the group; 0 if the program has one rank."""
        world = current_world()
        return 0 if world is None else world.group(self.names).rank

    @property
    def size(self) -> int:
        """The number of ranks in the group; 1 if the program has one rank."""
        world = current_world()
        return 1 if world is None else world.group(self.names).size

    @property
    def axes(self) -> Axes:
        """The axes and the number of ranks, as an op contains them."""
        return Axes(self.names, self.size)

    def __repr__(self) -> str:
        return f"group({', '.join(map(repr, self.names))})"


class Mesh:
    """The axes of the ranks. `mesh["model"]` is the group along an axis, and `mesh["data", "model"]` that along both.

    Parameters
    ----------
    sizes : mapping of str to int
        The size of each axis; the last one varies fastest. {"data": 4, "model": 2} has 8 ranks, and ranks 0 and 1 are
        neighbors along `model`.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)

    def __getitem__(self, names: str | tuple[str, ...]) -> ProcessGroup:
        return group(*([names] if isinstance(names, str) else names))

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={n}' for name, n in self.sizes.items())})"


def mesh() -> Mesh:
    """Return the mesh of the program. A program of one rank has one axis, `data`, of size 1."""
    world = current_world()
    return Mesh({"data": 1} if world is None else world.axes)


def group(*names: str) -> ProcessGroup:
    """Return the group of the ranks along some axes; of all ranks, if none is named.

    Raises
    ------
    DistributedError
        The mesh has no such axis. A program of one rank accepts every name.
    """
    world = current_world()
    chosen = ProcessGroup(names or tuple(mesh().sizes))
    if world is not None:
        world.group(chosen.names)
    return chosen


def rank() -> int:
    """Return the rank of this process, from 0 to size() - 1."""
    world = current_world()
    return 0 if world is None else world.engine.rank


def size() -> int:
    """Return the number of ranks of the program."""
    world = current_world()
    return 1 if world is None else world.engine.size
