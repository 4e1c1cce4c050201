"""The executable of a step: what `Backend.compile` returns.

The model is JAX's ahead-of-time compilation: a stage has a text, an analysis of its cost, and machine code. A backend makes
an executable for every step of every plan, and most of them are only loaded. So creating one is cheap: each of the three is
computed when it is asked for.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import BackendError
from ..ir.steps import Step

if TYPE_CHECKING:
    from .codegen.schedule_search import SearchResult

Launcher = Callable[..., None]  # a launcher may have a method `fast_entry`, which returns a faster function for its launch


def fastest_entry(launch: Launcher) -> Launcher:
    """Return the fastest function for a launch: the result of its method `fast_entry` if it has one, else the launcher."""
    fastest: Launcher = launch.fast_entry() if hasattr(launch, "fast_entry") else launch
    return fastest


def do_nothing(*values: object) -> None:
    """Launch nothing: the step stores no elements."""


class Cost(NamedTuple):
    """The launches, scratch memory and operations of a step, besides reading its inputs and writing its outputs."""

    launches: int
    """How many kernels are launched."""
    scratch_nbytes: int = 0
    """Bytes of the memory that only the step itself writes and reads."""
    flops: int = 0
    """Multiplications and additions of its matmuls."""


@dataclass(eq=False)
class Executable(ABC):
    """A step that a backend has accepted, before its machine code is compiled."""

    step: Step

    @property
    def refusal(self) -> str | None:
        """Why the compiler should replace the step by several; None if it should not."""
        return None

    @property
    @abstractmethod
    def source(self) -> str:
        """The source text, or a comment if there is no text."""

    @property
    def schedule(self) -> str:
        """How the axes of the loops are dealt out, and why, with one line for each launch; empty for most backends."""
        return ""

    @property
    def launches(self) -> str:
        """The blocks and threads of each launch, with a line for each; empty for most backends."""
        return ""

    @property
    def searches(self) -> "list[SearchResult]":
        """The searches that found the schedules of its launches, as far as they were tuned."""
        return []

    @abstractmethod
    def cost(self) -> Cost:
        """Return what a launch costs."""

    @abstractmethod
    def load(self) -> Launcher:
        """Compile the machine code, or find it in the kernel cache.

        Returns
        -------
        function of (*addresses, *numbers)
            The addresses are those of outputs, inputs and indexed operands. For a batch, they are in this order for each
            array in turn.
        """


@dataclass(eq=False)
class NoExecutable(Executable):
    """The executable of a step that a backend has no kernel for. It has only a reason."""

    reason: str

    @property
    def refusal(self) -> str:
        """Why there is no kernel."""
        return self.reason

    @property
    def source(self) -> str:
        """The reason, as a comment."""
        return f"# {self.reason}\n"

    def cost(self) -> Cost:
        """Raise BackendError."""
        raise BackendError(self.reason)

    def load(self) -> Launcher:
        """Raise BackendError."""
        raise BackendError(self.reason)


def count_rows_launches(step: Step) -> int:
    """Return 1 if a step stores any element, else 0: without rows, there is nothing to launch."""
    return int(all(n for d, n in enumerate(step.shape) if d not in step.dims))


def matmul_flops(step: Step) -> int:
    """Return the multiplications and additions of a matmul step."""
    return 2 * prod(step.shape) * step.inputs[0][1].shape[-1]
