"""Create random elements, equal in each run, for commands that take shapes."""

import numpy as np


def random_elements(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> np.ndarray:
    """Create random elements away from poles of functions."""
    element_type = np.dtype(dtype)
    if element_type.kind == "b":
        return random.random(shape) > 0.5
    if element_type.kind in "iu":
        return random.integers(1, 10, shape).astype(element_type)
    return random.uniform(0.25, 2, shape).astype(element_type)
