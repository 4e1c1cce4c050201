"""What the loops of the python backend and the kernels of the parallel backend make, run on names: see `cell`.

The text of a CPU kernel is Python, so Python runs it as it stands, with other words behind its names. What LLVM makes of it,
which may add up a row in the lanes of a vector, cannot be seen here.
"""

import copy
import sys
from collections.abc import Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np

from ...backends.codegen.loop_emitter import BLOCK
from ...backends.operand import Operand, ScalarFunction
from ...backends.parallel.backend import ParallelBackend
from ...backends.parallel.driver import count_chunks
from ...backends.python import PythonBackend
from ...core.layout import Layout
from ...core.operators import Operator
from ...ir.kernel_ir import Kernel, Nest, Shape
from ...runtime.memory_pool import Buffer, Pool
from .recorded_launches import ITEM, Launch, Ran, Stretch, for_cell, keep, stretch
from .traced_values import Ledger, Name, read


class Memory:
    """Memory of floats whose elements are names; what is stored is kept by address."""

    def __init__(self, ledger: Ledger, address: int, within: Stretch, stored: dict[int, Name]) -> None:
        self.ledger, self.address, self.within, self.stored = ledger, address, within, stored
        self.dtype = np.dtype(np.float32)

    def __getitem__(self, k: int) -> Any:
        at = self.address + ITEM * int(k)
        if not self.within[0] <= at < self.within[1]:
            return np.float32(nan)  # of an input without elements, that a kernel reads ahead and does not use
        return self.ledger.load(at, sys._getframe(1).f_lineno)

    def __setitem__(self, k: int, value: Any) -> None:
        self.stored[self.address + ITEM * int(k)] = read(value)


class Noting:
    """What a backend needs that takes note of its launches: a list of them, and memory of its own."""

    def __init__(self) -> None:
        self.known: list[Launch] = []
        self.kept: list[Buffer] = []
        self.allocate = Pool(partial(keep, self.kept)).allocate

    def launches(self) -> list[Launch]:
        """What was asked for, in order."""
        return self.known


class NotingPython(Noting, PythonBackend):
    """The python backend, which takes note of its loops."""

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Note it."""
        self.note(PythonBackend.map, op, [a], out, ())

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Note it."""
        self.note(PythonBackend.zip, op, [a, b], out, ())

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Note it."""
        self.note(PythonBackend.reduce, op, [a], out, tuple(dims))

    def note(self, loop: Any, op: ScalarFunction, xs: list[Operand], out: Operand, dims: tuple[int, ...]) -> None:
        """One loop."""
        place, origin = out.layout.from_zero(), out.address

        def run(wanted: set[int]) -> Ran:
            ledger, stored = Ledger(lambda: (0, 0)), dict[int, Name]()
            for address in sorted(wanted):
                index = place.index((address - origin) // ITEM)
                operands = [narrowed(ledger, x, index, dims, stored) for x in (*xs, out)]
                more = (dims,) if dims else ()
                loop(PythonBackend(), telling(ledger, op), *operands, *more)
            return for_cell(ledger, {at: stored[at] for at in sorted(wanted)}, {}, total=place.size, chosen=())

        self.known.append(Launch((stretch(out.address, out.layout.from_zero()),), run))


def telling(ledger: Ledger, op: ScalarFunction) -> ScalarFunction:
    """An operator that is taken down; other functions, which only move a value, as they are."""
    if not isinstance(op, Operator):
        return op
    found = copy.copy(op)
    found.body = ledger.word(op.name)
    return found


def narrowed(ledger: Ledger, x: Operand, index: Sequence[int], dims: tuple[int, ...], stored: dict[int, Name]) -> Operand:
    """Of an operand what belongs to one element of the output."""
    layout = x.layout
    shape = tuple(n if d in dims else 1 for d, n in enumerate(layout.shape))
    offset = layout.offset + sum(i * s for i, s in zip(index, layout.strides, strict=True))
    first = x.address - ITEM * layout.offset
    memory: Any = Memory(ledger, first, stretch(first, layout), stored)
    return Operand(memory, Layout(shape, layout.strides, offset))


class NotingParallel(Noting, ParallelBackend):
    """The parallel backend, which takes note of its kernels: of each array on its own, since a cell belongs to one."""

    has_tables = False

    def bind(self, kernel: Kernel, shape: Shape, dims: tuple[int, ...], outputs: Any, inputs: Any, raws: Any = ()) -> Any:
        """A launch that is noted, with the text that would be compiled."""
        nest = Nest(shape, dims, [*outputs, *inputs])
        if nest.is_empty:
            return lambda *values: None

        def unfolded(layout: Layout) -> Layout:
            return Layout(tuple(1 if d in dims else n for d, n in enumerate(layout.shape)), layout.strides, layout.offset)

        text = self.source(kernel, shape, dims, outputs, inputs, raws)
        chunks = count_chunks(nest.sizes[0], nest.points * kernel.cost())

        def note(*values: Any) -> None:
            places = [stretch(at, layout) for at, layout in zip(values, [*map(unfolded, outputs), *inputs], strict=False)]
            run = partial(run_text, text, nest, chunks, values, places, len(outputs))
            self.known.append(Launch(tuple(places[: len(outputs)]), run))

        return note


def run_text(
    text: str, nest: Nest, chunks: int, values: Sequence[Any], places: Sequence[Stretch], outputs: int, wanted: set[int]
) -> Ran:
    """Run the text of a CPU kernel as Python, in the chunks that the driver would cut."""
    chunk, stored = [0], dict[int, Name]()
    ledger = Ledger(lambda: (chunk[0], 0))
    memory = dict(zip(values, places, strict=False))

    def pointer(address: int) -> Memory:
        return Memory(ledger, address, memory[address], stored)

    def number(x: float) -> Any:
        kind: Any = ledger.number
        return x if isinstance(x, kind) else np.float32(x)

    words = {
        "f32": number,
        "pointer_f32": pointer,
        "pointer_f64": list,
        "block_of_f32": lambda: [None] * BLOCK,
        "inf": inf,
        "nan": nan,
    }
    names: dict[str, Any] = {**ledger.words(), **words}
    exec(compile(text, "<kernel>", "exec"), names)  # text of our own making
    arguments, count = [*values, *nest.sizes[1:], *nest.runtime_strides()], nest.sizes[0]
    step = nest.strides[0][0]
    reach = sum((n - 1) * s for n, s in zip(nest.sizes[1:], nest.strides[0][1:], strict=True))
    chosen = list[int]()
    for k in range(chunks):
        start, stop = count * k // chunks, count * (k + 1) // chunks
        low, high = values[0] + ITEM * step * start, values[0] + ITEM * (step * (stop - 1) + reach)
        if chunks == 1 or any(low <= at <= high for at in wanted):
            chunk[0] = k
            chosen.append(k)
            names["kernel"](start, stop, arguments)
    lines = dict(enumerate(text.splitlines(), start=1))
    return for_cell(ledger, {at: stored[at] for at in sorted(wanted)}, lines, total=chunks, chosen=tuple(chosen))
