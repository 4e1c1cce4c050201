"""Programs on zeros of both signs, inf, nan, and very large and very small numbers: each bit of the outputs must be right.

Such a program has constants that are easily taken for one another (`lookalikes`). Elements are such numbers, or 1.0, so a
constant that has lost a digit shows. Sums are not among the operations, since their order is free.
"""

from collections.abc import Sequence
from math import inf, nan
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.indexing import Shape
from .drawn_programs import evaluate
from .fusion import BINARY, REDUCTIONS
from .graph_evaluation import NUMPY_FUNCTIONS
from .lookalikes import LOOKALIKES, lookalikes
from .programs import Line, Program
from .strided import Array

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SPECIAL = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 1e300, -1e300, 1e-300, 5e-324, 1e13, -1e13)
MAX_EXPONENT = 300
ELEMENTWISE = ("add", "sub", "mul", "div", "neg", "lt", "exp", "log", "maximum")
BY_ELEMENT = {name: np.frompyfunc(NUMPY_FUNCTIONS[name], 1, 1) for name in ("exp", "log")}
"""Functions whose last bit may differ between one element and many; a kernel computes one element after the other."""


class SpecialProgram(NamedTuple):
    """A program, and the seed of the elements of its arguments."""

    program: Program
    seed: int

    def arrays(self) -> list[Array]:
        """Return the arguments."""
        random = Random(self.seed)
        numbers = [x for line in self.program.lines for x in line.operands if isinstance(x, float)]
        return [special_array(random, shape, numbers) for shape in self.program.shapes]

    def outputs(self) -> list[Array]:
        """Return the flat outputs, of the shape of the first argument or of its rows."""
        table = NUMPY_FUNCTIONS | {name: lambda x, f=f: np.asarray(f(x), np.float64) for name, f in BY_ELEMENT.items()}
        return [self.comparable(np.ravel(x)) for x in evaluate(self.program, self.arrays(), table)]

    def comparable(self, x: Array) -> Array:
        """Return an output without the signs of its zeros, if the program has a maximum: that of 0.0 and -0.0 is either."""
        has_maximum = any(line.op in ("max", "maximum") for line in self.program.lines)
        return np.asarray(x, np.float64) + 0.0 if has_maximum else np.asarray(x, np.float64)

    def __str__(self) -> str:
        arrays = [f"{self.program.name(k)} = {x.tolist()}" for k, x in enumerate(self.arrays())]
        return "; ".join([str(self.program), *arrays])


def special_array(random: Random, shape: Shape, numbers: Sequence[float]) -> Array:
    """Draw an array of special values and of a program's numbers; some rows are far below or far above 0."""
    found = np.empty(shape)
    for row in found.reshape(-1, shape[-1]):
        scale = random.choice((1.0, -1.0)) * 10.0 ** random.randint(0, MAX_EXPONENT) if random.random() < 0.4 else 0.0
        for k in range(len(row)):
            row[k] = (
                scale * random.uniform(1.0, 2.0) if scale else random.choice([*SPECIAL, *numbers, random.uniform(-3, 3)])
            )
        if random.random() < 0.2:
            row[:] = -inf
    return found


def special_programs(
    shapes: "SearchStrategy[tuple[Shape, ...]]", ops: Sequence[str] = ELEMENTWISE, most: int = 8
) -> "SearchStrategy[SpecialProgram]":
    """Draw programs of these operations on arguments of which the first has the shape of the space.

    Reductions apply to values of that shape, and outputs have it, or the shape of a reduction.
    """
    from hypothesis import strategies as st

    def build(drawn: tuple[Shape, ...], count: int, seed: int) -> SpecialProgram:
        return SpecialProgram(
            constant_program(drawn, ops, seed) if seed % 3 == 0 else mixed_program(drawn, ops, count, seed), seed
        )

    return st.builds(build, shapes, st.integers(1, most), st.integers(0, 2**32))


def constant_program(shapes: tuple[Shape, ...], ops: Sequence[str], seed: int) -> Program:
    """Return a program that applies single operations to the first argument and a number, and returns each result."""
    random, lines = Random(seed), list[Line]()
    zeros, *others = LOOKALIKES
    for x in [x for pair in (zeros, *random.sample(others, 3), lookalikes(random)) for x in pair]:
        op = random.choice([op for op in ops if op in BINARY and op not in ("maximum", "lt")])
        lines += [Line(op, random.choice(((0, x), (x, 0)))), Line("mul", (0, x))]
    lines = [*first_lines(ops, seed), *lines]
    first = len(shapes)
    return Program(shapes, tuple(lines), tuple(range(first + len(lines) - 1, first - 1, -1)))


def first_lines(ops: Sequence[str], seed: int) -> list[Line]:
    """Return the largest of each row of the first argument, for half of the seeds, if that is among the operations."""
    return [Line("max", (0,))] if "max" in ops and seed % 2 else []


def mixed_program(shapes: tuple[Shape, ...], ops: Sequence[str], count: int, seed: int) -> Program:
    """Return a program of some operations, each on earlier values or on a number."""
    random = Random(seed)
    allowed = ops if seed % 2 else [op for op in ops if op not in ("max", "maximum")]
    numbers = [x for _ in range(2) for x in lookalikes(random)]
    lines = first_lines(ops, seed)
    found = [*shapes, *[(*shapes[0][:-1], 1) for _ in lines]]
    largest = list(range(len(shapes), len(found)))
    while len(lines) < count:
        op, last = random.choice(allowed), len(found) - 1
        k = random.choice((last, random.randint(0, last), 0))
        other = random.choice((random.randint(0, last), random.choice(numbers), random.choice(numbers)))
        operands = random.sample([k, other], 2) if op in BINARY else [k]
        if op in REDUCTIONS and found[k] != shapes[0]:
            op, operands = "neg", [k]
        if op == "maximum" and isinstance(operands[0], float):
            operands = operands[::-1]
        lines.append(Line(op, tuple(operands)))
        of = [found[i] for i in operands if not isinstance(i, float)]
        found.append((*of[0][:-1], 1) if op in REDUCTIONS else np.broadcast_shapes(*of))
    if found[-1] != shapes[0]:
        lines.append(Line("sub", (len(found) - 1, 0)))
        found.append(shapes[0])
    rows = (*shapes[0][:-1], 1) if any(op in ops for op in REDUCTIONS) else shapes[0]
    candidates = [k for k in range(len(shapes), len(found)) if found[k] in (shapes[0], rows)]
    outputs = [random.choice(candidates) for _ in range(random.randint(0, 5))]
    return Program(shapes, tuple(lines), (len(found) - 1, *outputs, *largest))


def identical(got: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Return whether arrays have the same elements, signs of zeros included; nan is nan."""
    return len(got) == len(expected) and all(
        a.shape == b.shape
        and np.array_equal(a, b, equal_nan=True)
        and bool(np.all((np.signbit(a) == np.signbit(b)) | (a != a)))
        for a, b in zip(got, expected, strict=True)
    )
