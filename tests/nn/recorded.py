"""Tables of what PyTorch gives; `tests/nn/record.py` makes them."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def path_of(name: str) -> Path:
    """The file of a table."""
    return Path(__file__).parent / "recorded" / f"{name}.npz"


@cache
def load(name: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a table, by name."""
    with np.load(path_of(name)) as found:
        return {key: found[key] for key in found.files if key != "torch"}
