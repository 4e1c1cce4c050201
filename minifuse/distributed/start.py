"""Join the other ranks of a program: `init`."""

from collections.abc import Mapping

from ..core.errors import DistributedError
from ..engines.connect import connect
from ..engines.environment import Place, parse_mesh
from ..engines.world import World, current_world, replace_world, set_world
from .process_groups import Mesh
from .process_groups import mesh as mesh_of_program


def init(mesh: Mapping[str, int] | None = None, engine: str | None = None) -> Mesh:
    """Join the ranks that `minifuse launch` or `mpiexec` started. A program that neither started has one rank.

    Parameters
    ----------
    mesh : mapping of str to int, optional
        The axes, such as {"data": 2, "model": 2}. Default: those of `minifuse launch --mesh`, else one axis, `data`.
    engine : str, optional
        The engine that this program needs. Default: the one that it was started with.

    Raises
    ------
    DistributedError
        The program was started with another engine, or the mesh has not a place for each rank.

    Examples
    --------
    >>> import minifuse.distributed as dist
    >>> dist.init()
    Mesh(data=1)
    """
    world, place = current_world(), Place.read()
    started_with = world.engine.name if world is not None else place.engine if place is not None else None
    if engine is not None and started_with not in (None, engine):
        raise DistributedError(f"init: got engine={engine!r}, but the ranks were started with --engine {started_with}")
    if world is not None:
        if mesh is not None and dict(mesh) != world.axes:
            replace_world(World(world.engine, mesh))
    elif place is not None and place.size > 1:
        axes = mesh if mesh is not None else parse_mesh(place.mesh, place.size)
        set_world(World(connect(place), axes))
    return mesh_of_program()
