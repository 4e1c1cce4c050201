"""The world of this thread: which rank it is, of how many, and the engine that carries its arrays.

A program of one rank has no world: then every collective returns its input. Processes have one world for all threads; the
simulated engine gives each of its ranks, which are threads, a world of its own.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import prod
from threading import local

from ..core.dispatch import change_settings, set_settings
from ..core.errors import DistributedError
from .base import Engine, RankGroup


class World:
    """The ranks of a program, in a mesh with named axes; the last axis varies fastest.

    Parameters
    ----------
    engine : Engine
    axes : mapping of str to int, optional
        The sizes of the axes. Default: one axis, `data`, of all ranks.

    Raises
    ------
    DistributedError
        The product of the sizes is not the number of ranks.
    """

    def __init__(self, engine: Engine, axes: Mapping[str, int] | None = None) -> None:
        self.engine = engine
        self.axes = dict(axes or {"data": engine.size})
        if prod(self.axes.values()) != engine.size:
            sizes = ", ".join(f"{name}={n}" for name, n in self.axes.items())
            raise DistributedError(f"Mesh({sizes}) has {prod(self.axes.values())} ranks, but the program has {engine.size}")
        self.groups: dict[tuple[str, ...], RankGroup] = {}

    @cached_property
    def position(self) -> dict[str, int]:
        """The index of this rank along each axis.

        Examples
        --------
        Of 6 ranks in a mesh with axes data = 3 and model = 2, rank 5 is at data = 2, model = 1.
        """
        index, position = self.engine.rank, dict[str, int]()
        for name, n in reversed(self.axes.items()):
            index, position[name] = divmod(index, n)
        return position

    def group(self, axes: tuple[str, ...]) -> RankGroup:
        """Return the group of the ranks that differ from this one only along some axes.

        Raises
        ------
        DistributedError
            The mesh has no such axis.
        """
        if axes not in self.groups:
            if unknown := [name for name in axes if name not in self.axes]:
                raise DistributedError(f"axis {unknown[0]!r}: the mesh has the axes {', '.join(self.axes)}")
            members = [0]
            for name, n in self.axes.items():  # ranks in the order of the axes, which is that of the mesh
                chosen = range(n) if name in axes else [self.position[name]]
                members = [rank * n + k for rank in members for k in chosen]
            self.groups[axes] = RankGroup(tuple(members), members.index(self.engine.rank))
        return self.groups[axes]


class ThreadWorld(local):
    """The world of each thread: that of the process, unless the thread is a simulated rank."""

    of_process: World | None = None

    def __init__(self) -> None:
        self.of_thread: World | None = None


_worlds = ThreadWorld()


def current_world() -> World | None:
    """Return the world of this thread, or None if the program has one rank."""
    return _worlds.of_thread or ThreadWorld.of_process


def require_world(name: str) -> World:
    """Return the world of this thread. Raise DistributedError if there is none."""
    if (world := current_world()) is None:
        raise DistributedError(
            f"{name}: this program has one rank; write dist.init() first, and start it by minifuse launch"
        )
    return world


def set_world(world: World | None) -> None:
    """Set the world of this process, for all threads."""
    ThreadWorld.of_process = world
    set_settings(lambda settings: settings._replace(rank=key_of(world)))


def replace_world(world: World) -> None:
    """Set the world where the current one was set: for this thread, or for the process."""
    if _worlds.of_thread is None:
        set_world(world)
    else:
        _worlds.of_thread = world
        change_settings(lambda settings: settings._replace(rank=key_of(world)))


@contextmanager
def use_world(world: World | None) -> Iterator[None]:
    """Set the world of this thread in a block of code."""
    before, _worlds.of_thread = _worlds.of_thread, world
    change_settings(lambda settings: settings._replace(rank=key_of(world)))
    try:
        yield
    finally:
        _worlds.of_thread = before
        change_settings(lambda settings: settings._replace(rank=key_of(before or ThreadWorld.of_process)))


def key_of(world: World | None) -> tuple[Hashable, ...]:
    """Return what the cache keys of calls contain of a world."""
    return () if world is None else (world.engine.rank, *world.axes.items())
