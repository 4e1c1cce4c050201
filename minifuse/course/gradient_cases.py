"""Cases of task 5.5: single operations on operands of all magnitudes, and programs with many reductions."""

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.indexing import Shape
from .fusion import BINARY, REDUCTIONS
from .graph_evaluation import evaluate_graph
from .oracle import Slot
from .oracle.module5 import Traced, fit, record
from .programs import Line, Program, sample_array
from .strided import Array

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

RULED_OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "sum", "max")


class Rule(NamedTuple):
    """An operation on operands, in which some elements may be equal."""

    op: str
    has_ties: bool
    is_extreme: bool = False
    """True if elements are very large, very small, or almost equal."""

    def extremes(self) -> list[Array]:
        """Return d and operands that are very large, very small, or almost equal."""
        tiny, huge = sample_array((2, 6), 1) * 1e-170, sample_array((2, 6), 2) * 1e165
        a, b = np.vstack([tiny * 1e10, huge]), np.vstack([tiny, huge * 1e7])
        if self.op in ("exp", "log"):
            a = np.abs(sample_array((4, 6), 1)) * {"exp": 150.0, "log": 1e-170}[self.op]
        if self.op in ("maximum", "max"):
            a = np.array(
                [[2.0] * 6, [3.0] * 5 + [1.0], [4.0, 4.0 + 1e-9, 4.0 - 1e-12, 4.0, 1.0, 2.0], [1e-30, 2e-30, 0, 0, 0, 0]]
            )
            b = a * np.array([1.0, 1.0 + 1e-10, 1.0 - 1e-10, 1.0 + 1e-14, 1.0, 2.0])
        d = sample_array((4, 1) if self.op in REDUCTIONS else (4, 6), 3)
        return [d, a, b] if self.op in BINARY else [d, a]

    def arrays(self) -> list[Array]:
        """Return d and the operands."""
        if self.is_extreme:
            return self.extremes()
        a, b = sample_array((3, 4), 1), sample_array((3, 4), 2)
        if self.op == "log":
            a = np.abs(a) + 0.1
        if self.has_ties:
            a[:, 1] = a[:, 3] = 2.5
            b[:, ::2] = a[:, ::2]
        d = sample_array((3, 1) if self.op in REDUCTIONS else (3, 4), 3)
        return [d, a, b] if self.op in BINARY else [d, a]

    def __str__(self) -> str:
        return (
            f"y = {self.op}({', '.join('ab'[: len(self.arrays()) - 1])})"
            + ", where some elements are equal" * self.has_ties
            + ", where elements are very large, very small, or almost equal" * self.is_extreme
        )


def rules() -> "SearchStrategy[Rule]":
    """Draw all operations with a gradient."""
    from hypothesis import strategies as st

    return st.builds(Rule, st.sampled_from(RULED_OPS), st.booleans()).filter(
        lambda r: not r.has_ties or r.op in ("maximum", "max")
    )


def extreme_rules() -> "SearchStrategy[Rule]":
    """Draw all operations with a gradient, on elements that are very large, very small, or almost equal."""
    from hypothesis import strategies as st

    return st.sampled_from(RULED_OPS).map(lambda op: Rule(op, False, True))


def by_rule(rule: Rule, pull: Slot) -> list[Array]:
    """Compute the gradients of the operands, in their shapes, by the oracle or with a known mistake."""

    def run(d: Traced, *operands: Traced) -> tuple[Traced, ...]:
        parts = pull(rule.op, d, d.then(rule.op, *operands), *operands)
        return tuple(fit(part, x.shape) for part, x in zip(parts, operands, strict=True))

    arrays = rule.arrays()
    return evaluate_graph(record(run, *[x.shape for x in arrays]), arrays)


def with_shapes(rule: Rule) -> tuple[str, list[Shape]]:
    """Return the op of a rule, and the shapes of d and the operands."""
    return rule.op, [x.shape for x in rule.arrays()]


def many_uses(seed: int) -> Program:
    """Return a program with many inputs, of which some are used often, and many values, over larger rows."""
    random = Random(seed)
    rows, n = random.choice(((3, 4), (9, 5), (2, 40)))
    shapes = ((rows, n), *[random.choice(((rows, n), (rows, 1))) for _ in range(random.randint(3, 8))])
    lines, count = list[Line](), len(shapes)
    total = 0
    for k in [*range(1, count), *[random.randrange(count) for _ in range(12)]]:
        lines.append(Line(random.choice(("mul", "sub", "add", "maximum")), (k, random.randrange(count))))
        last = count + len(lines) - 1
        lines.append(Line("mul", (last, random.uniform(-0.5, 0.5))))
        if random.random() < 0.2:
            lines.append(Line("add", (last, random.choice((0, last + 1)))))
        lines.append(Line(random.choice(("add", "sub")), (total, count + len(lines) - 1)))
        total = count + len(lines) - 1
    return Program(shapes, tuple(lines), (total,))


def many_reductions(seed: int) -> Program:
    """Return a program with up to twelve reductions, of which the backward pass needs some."""
    random, shapes = Random(seed), ((2, 4), (2, 1))
    lines, x = list[Line](), 0

    def append(op: str, *operands: int | float) -> int:
        lines.append(Line(op, operands))
        return len(shapes) + len(lines) - 1

    for _ in range(random.randint(4, 7)):
        match random.randrange(4):
            case 0:
                e = append("exp", append("mul", x, 0.25))
                x = append("div", e, append("sum", e))
            case 1:
                x = append("sub", x, append("max", x))
                x = append("mul", x, append("sum", append("mul", x, 0.1)))
            case 2:
                x = append("add", append("mul", append("sum", x), 0.1), x)
                x = append("add", x, 1)
            case _:
                scale = append("add", append("sum", append("mul", x, x)), 1.5)
                x = append("div", append("sub", x, append("mul", append("sum", x), 0.25)), scale)
    x = append("add", x, append("sum", x))  # a reduction that the backward pass does not need
    return Program(shapes, tuple(lines), (x,))
