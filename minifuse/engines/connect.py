"""Make the engine of this process, as the environment names it."""

from ..core.errors import DistributedError
from .base import Engine
from .environment import ENGINES, Place


def connect(place: Place) -> Engine:
    """Return the engine of a rank that is a process.

    Raises
    ------
    DistributedError
        No engine has this name, or its ranks are no processes.
    """
    if place.engine == "shared":
        from .shared import SharedEngine

        return SharedEngine(place)
    if place.engine == "mpi":
        from .mpi import MPIEngine

        return MPIEngine(place)
    if place.engine == "nccl":
        from .nccl import NcclEngine
        from .shared import SharedEngine

        return NcclEngine(SharedEngine(place))
    raise DistributedError(f"engine {place.engine!r}: expected one of {', '.join(ENGINES)}")
