"""Print the accumulators of reductions: their names, initial values, and the combination of values and lanes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from ...ir.kernel_ir import Expression, ReadOutput, ReduceExpr
from .expression_printer import Dialect, ExpressionPrinter, literal

LANES = 64  # accumulators along a row of a reduction with several states: four vectors of 512 bits


class AccumulatorPrinter(ExpressionPrinter):
    """The accumulators of a kernel under construction. A subclass chooses the loops.

    Attributes
    ----------
    dialect : Dialect
    axes : int
        The number of axes.
    stride_kinds : dict of str to str
        The stride kinds of each operand.
    staged : dict of str to str
        The elements in blocks of the operands that are copied there.
    reductions : list of ReduceExpr
        The reductions, one for all states of each.
    is_columns : bool
        Whether the inner loop runs over a block of columns, with one accumulator each.
    is_unrolled : bool
        Whether the loop along the row is unrolled.
    """

    dialect: Dialect
    axes: int
    stride_kinds: dict[str, str]
    staged: dict[str, str]
    reductions: list[ReduceExpr]
    is_columns: bool
    is_unrolled: bool

    @cached_property
    def is_pure(self) -> bool:
        """Return whether the kernel has no effects, and reads no output."""
        return not (self.kernel.effects or self.kernel.find_all(ReadOutput))

    def place(self, name: str) -> str:
        """Return the element of an operand at the current point of the loops."""
        raise NotImplementedError

    def shifted(self, name: str, starts: Mapping[int, str]) -> str:
        """Return the pointer to an operand's element at the first indices of some axes."""
        raise NotImplementedError

    @contextmanager
    def columns(self) -> Iterator[None]:
        """Open the loop over the columns of a block, if any."""
        yield

    def state_names(self, reductions: Sequence[ReduceExpr]) -> dict[ReduceExpr, str]:
        """Return the names of the accumulators of all states of some reductions."""
        numbers = {e.states[0]: k for k, e in enumerate(self.reductions)}
        names = {e: f"fold{numbers[e.states[0]]}" for e in reductions}
        return {x: names[e] + f"_{k}" * (len(e.inputs) > 1) for e in reductions for k, x in enumerate(e.states)}

    def is_in_block(self, e: Expression) -> bool:
        """Return whether a reduction has an accumulator for each of several elements: columns, or lanes of a row.

        Compilers vectorize the loop over a row only if its reductions have one state, and else the loop over lanes.
        """
        has_lanes = self.dialect.reduces_columns and not self.is_unrolled
        return isinstance(e, ReduceExpr) and (self.is_columns or (has_lanes and len(e.inputs) > 1))

    def loop_over_lanes(self, axis: int) -> list[str]:
        """Return the lines that open the loops over a row, in steps of the number of lanes."""
        return [
            f"for block in range(0, n{axis}, {LANES}):",
            f"for c in range(min({LANES}, n{axis} - block)):",
            f"i{axis} = block + c",
        ]

    def combine_lanes(self, e: ReduceExpr, blocks: Sequence[str]) -> None:
        """Emit the combination of all lanes: each lane of the first half with one of the second, until one is left."""
        self.line(f"count = min({LANES}, n{self.axes - 1})")
        with self.block("while count > 1:"):
            self.line("half = count // 2")
            self.line("count -= half")
            with self.block("for c in range(half):"):
                a, b = ([f"{block}[{index}]" for block in blocks] for index in ("c", "count + c"))
                operands = [*self.load_states(e, a), *self.load_states(e, b)]
                self.line(f"{', '.join(a)} = {self.operator_name(e)}({', '.join(operands)})")

    def combine(self, e: ReduceExpr, places: Sequence[str], values: Sequence[Expression]) -> None:
        """Emit the accumulation of one value of a reduction. `places` are the accumulators of its states."""
        texts, symbol = [self.bare(x) for x in values], self.symbol(e)
        if symbol:
            self.line(f"{places[0]} {symbol}= {texts[0]}")
        else:
            self.line(f"{', '.join(places)} = {self.operator_name(e)}({', '.join([*self.load_states(e, places), *texts])})")

    def load_states(self, e: ReduceExpr, places: Sequence[str]) -> list[str]:
        """Return the texts that load the states of an accumulator."""
        if len(places) == 1:
            return [*places]
        pairs = zip(places, e.states, strict=True)
        return [self.dialect.load(place, x.dtype) if place.endswith("]") else place for place, x in pairs]

    def start(self, states: dict[ReduceExpr, str]) -> None:
        """Emit the accumulators, initialized with the identities of their operators."""
        blocks = {e: name for e, name in states.items() if self.is_in_block(e)}
        for e, name in blocks.items():
            self.line(f"{name} = block_of_{e.dtype.short}()")
        if self.is_columns and states:
            with self.columns():
                self.start_all(states, "[c]")
            return
        if blocks:
            with self.block(f"for c in range(min({LANES}, max(n{self.axes - 1}, 1))):"):
                self.start_all(blocks, "[c]")
        self.start_all({e: name for e, name in states.items() if e not in blocks})

    def start_all(self, totals: dict[ReduceExpr, str], index: str = "") -> None:
        """Emit the initial values of some accumulators."""
        for e, name in totals.items():
            self.line(f"{name}{index} = {literal(e.identity, e.dtype)}")
