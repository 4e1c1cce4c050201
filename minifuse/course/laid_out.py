"""Programs whose arguments have layouts in memory, for task 5.2."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.indexing import Shape
from .programs import Program, sample_arrays
from .strided import Array

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Layout(NamedTuple):
    """A layout in memory: row-major, with the dims rotated by `turn`, and `step` elements from one to the next."""

    turn: int = 0
    step: int = 1

    def place(self, x: Array, rank: int) -> tuple[Array, Shape]:
        """Return a storage with the elements of an array, and its strides in a space of some dims."""
        order = [(d + self.turn) % x.ndim for d in range(x.ndim)]
        storage = np.full(x.size * self.step, 777.0)
        view = storage.reshape([*[x.shape[d] for d in order], self.step])[..., 0].transpose(np.argsort(order))
        view[...] = x
        steps = [0 if n == 1 else s // 8 for n, s in zip(x.shape, view.strides, strict=True)]
        return storage, (*[0] * (rank - x.ndim), *steps)


class LaidOutProgram(NamedTuple):
    """A program, and the layouts of its arguments."""

    program: Program
    layouts: tuple[Layout, ...]

    def __str__(self) -> str:
        rank = len(self.program.shapes[0])
        strides = [
            f"{self.program.name(k)} strides {self.memory()[1][k]}" for k, x in enumerate(self.layouts) if x != Layout()
        ]
        return f"{self.program}" + f"   ({', '.join(strides)} in {rank} dims)" * bool(strides)

    def memory(self) -> tuple[list[Array], list[Shape]]:
        """Return the storage of each argument, and its strides in the iteration space."""
        rank, arrays = len(self.program.shapes[0]), sample_arrays(self.program.shapes)
        placed = [layout.place(x, rank) for x, layout in zip(arrays, self.layouts, strict=True)]
        return [storage for storage, _ in placed], [strides for _, strides in placed]


def layouts() -> "SearchStrategy[Layout]":
    """Draw a layout, row-major first."""
    from hypothesis import strategies as st

    return st.sampled_from([Layout(), Layout(), Layout(), Layout(1), Layout(2), Layout(0, 2), Layout(1, 3)])


def laid_out(drawn: "SearchStrategy[Program]") -> "SearchStrategy[LaidOutProgram]":
    """Draw a program and a layout of each argument."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> LaidOutProgram:
        program = draw(drawn)
        return LaidOutProgram(program, tuple(draw(layouts()) for _ in program.shapes))

    return case()
