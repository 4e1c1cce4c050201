"""Random numbers of ranks: equal where ranks compute the same, and different where they have different data."""

import numpy as np

from ..tensors.random import manual_seed
from .process_groups import group


def seed(number: int, *axes: str) -> None:
    """Seed the random numbers of this rank: different along some axes of the mesh, and equal along the others.

    Parameters
    ----------
    number : int
        The same on all ranks.
    axes : str
        The axes along which ranks have different data: dropout must draw different masks there. Where ranks share one
        computation, as in tensor parallel layers, they must draw the same. Default: no axis, so all ranks draw the same,
        such as equal initial weights.

    Notes
    -----
    Along axes of one rank, this is `mf.manual_seed(number)`.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0, "data")
    ...     return mf.rand(1).item()
    >>> a, b, c, d = dist.simulate(4, program, axes={"data": 2, "model": 2})
    >>> a == b, c == d, a == c
    (True, True, False)
    """
    ranks = group(*axes) if axes else None
    if ranks is None or ranks.size == 1:
        manual_seed(number)
    else:
        manual_seed(int(np.random.SeedSequence([number, ranks.rank]).generate_state(1, np.uint64)[0]))
