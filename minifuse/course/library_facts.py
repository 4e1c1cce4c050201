"""A call of a student's function of tensors of the library, and what is recorded of it, as plain data."""

from typing import Any, NamedTuple

from ..core.indexing import Shape
from .strided import Array


class TensorCall(NamedTuple):
    """A call of a slot. Arrays become tensors of the library: those of floats require a gradient."""

    slot: str
    arguments: tuple[Any, ...]
    gradient_seed: int | None = None
    """Draws the gradient of the result for a backward pass. None: no backward pass."""
    is_constant: bool = False
    """True if no argument requires a gradient."""


class LibraryCall(NamedTuple):
    """One call of the library. Views, such as `permute`, are no calls: nothing is computed."""

    name: str
    """The operator or function: "mul", "sum", "matmul", "select" (x[index]), "copy", "gradient of mul"."""
    inputs: tuple[Shape, ...]
    """The shapes of the tensors among the inputs."""
    outputs: tuple[Shape, ...]
    live_bytes: int
    """Bytes of all tensors after the call, besides those that were there before the function began."""


class LibraryRun(NamedTuple):
    """The result of a call of a slot, and the facts of what it did."""

    values: tuple[Array, ...]
    """The tensors of the result."""
    gradients: tuple[Array | None, ...]
    """For each argument that is an array of floats."""
    forward: tuple[LibraryCall, ...]
    backward: tuple[LibraryCall, ...]
    reads: int
    """Elements that Python read: `tolist()`, `item()`, `print(x)`, `if x:`."""
    saved_bytes: int
    """Bytes that are kept for the backward pass, besides arguments and results."""
    are_views: tuple[bool, ...]
    """For each tensor of the result, whether it shares memory with an argument."""

    @property
    def peak_bytes(self) -> int:
        """Return the largest number of live bytes, of both passes."""
        return max((call.live_bytes for call in (*self.forward, *self.backward)), default=0)
