"""Messages of commands whose CUDA kernels run in the interpreter, since there is no GPU."""

import sys
from typing import Any

from ..backends.registry import get_backend


def is_simulated(backend: str | None) -> bool:
    """Return True if a backend is the CUDA interpreter."""
    device: Any = getattr(get_backend(backend), "device", None)
    return device is not None and bool(device.is_simulated)


def format_backend(backend: str) -> str:
    """Return the name of a backend for tables."""
    return f"{backend} (simulated)" if is_simulated(backend) else backend


def warn_of_simulation(backend: str | None) -> None:
    """Print a line to standard error if a backend is the CUDA interpreter, in which training does not end in time."""
    if is_simulated(backend):
        sys.stderr.write(f"{explain_simulation('thousands of times slower than a GPU')} Leave out --backend\n")


def explain_simulation(consequence: str) -> str:
    """Return a sentence: there is no GPU, so kernels run in the interpreter, with this consequence."""
    from ..backends.cuda.device.driver import query_driver

    return f"No GPU here ({query_driver().reason}): CUDA kernels run lane by lane in the interpreter, {consequence}."
