"""Words of kernels whose lanes vote."""

from typing import Any

from ...simt import cuda
from .words import ALL_LANES, device, i64


@device
def lanes_where(holds: Any) -> Any:
    """For which lanes of the warp a condition holds, as bits of an int64; all of them must ask."""
    return i64(cuda.ballot_sync(ALL_LANES, holds)) & ALL_LANES
