"""What the commands say where CUDA kernels run in the interpreter, since there is no GPU."""

from typing import Any

from ..backends.registry import get_backend


def is_simulated(backend: str | None) -> bool:
    """Whether a backend is the interpreter in the place of a GPU."""
    device: Any = getattr(get_backend(backend), "device", None)
    return device is not None and bool(device.is_simulated)


def shown(backend: str) -> str:
    """A backend as tables name it."""
    return f"{backend} (simulated)" if is_simulated(backend) else backend


def explain(what: str) -> str:
    """Why there is less to see than with a GPU, and how much less: one sentence."""
    from ..backends.cuda.device.driver import query_driver

    return f"No GPU here ({query_driver().reason}): CUDA kernels run lane by lane in the interpreter, {what}."
