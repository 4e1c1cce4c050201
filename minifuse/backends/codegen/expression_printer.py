"""Print scalar expressions as Python: lines, names of values used twice, and the text of each operator."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ...core.dtypes import DType, bool_, int32, int64
from ...core.interning import toposort
from ...core.operators import Operator
from ...ir.kernel_ir import (
    Constant,
    Expression,
    IndexedAccess,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    Op,
    ReadOutput,
    ReduceExpr,
)
from ...ir.monoid import Monoid, MonoidState

MAX_LINE_DEPTH = 8  # nested operators in one line
# Operators that are emitted as calls of functions that wrap around: Numba marks + - * of integers as never overflowing.
WRAPPING_OPS = {"add", "sub", "mul"}


class ExpressionPrinter:
    """A text under construction. `names` contains the name of each value in scope.

    Parameters
    ----------
    kernel : Kernel
        The kernel whose expressions are printed.
    wrapping : set of DType
        The dtypes whose sums and products are function calls, which wrap around.
    """

    def __init__(self, kernel: Kernel, wrapping: frozenset[DType] = frozenset({int32, int64})) -> None:
        self.kernel, self.wrapping = kernel, wrapping
        self.names: dict[Expression, str] = {e: f"p{e.index}" for e in kernel.find_all(KernelParameter)}
        self.combiners: dict[tuple[Monoid, tuple[DType, ...]], str] = {}
        for e in kernel.order:
            if isinstance(e, Op | ReduceExpr) and isinstance(e.operator, MonoidState):
                self.combiners.setdefault(combiner_key(e), f"combine{len(self.combiners) or ''}")
        self.lines: list[str] = []
        self.depth, self.count = 1, 0

    def line(self, text: str) -> None:
        """Append a line at the current depth."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, *lines: str) -> Iterator[None]:
        """Append lines. Each line that ends with a colon, before any comment, opens a block, which this context closes."""
        depth = self.depth
        for line in lines:
            self.line(line)
            self.depth += line.partition("  #")[0].endswith(":")
        yield
        self.depth = depth

    # Expressions.

    def leaf_text(self, e: Expression) -> str:
        """Return the text of a value in memory, or of an index."""
        raise NotImplementedError

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return name

    def operator_name(self, e: Op | ReduceExpr) -> str:
        """Return the name of the function that computes the operator of an expression."""
        assert e.operator is not None
        if isinstance(e.operator, MonoidState):
            return self.combiners[combiner_key(e)]
        return self.word(e.operator.name, e.dtype)

    def symbol(self, e: Op | ReduceExpr) -> str | None:
        """Return the Python symbol of the operator of an expression; None if it is a function call."""
        assert e.operator is not None
        return None if e.dtype in self.wrapping and e.operator.name in WRAPPING_OPS else e.operator.symbol

    def text(self, e: Expression) -> str:
        """Return the Python text of an expression."""
        if e in self.names:
            return self.names[e]
        if isinstance(e, Load | IndexedAccess | ReadOutput):
            return self.leaf_text(e)
        if isinstance(e, Constant):
            return literal(e.value, e.dtype)
        assert isinstance(e, Op)
        inputs = [self.text(x) for x in e.inputs]
        if e.operator is None:
            return f"({inputs[0]} != 0)" if e.dtype is bool_ else f"{e.dtype.short}({inputs[0]})"
        symbol = self.symbol(e)
        if symbol is None:
            return f"{self.operator_name(e)}({', '.join(inputs)})"
        text = f" {symbol} ".join(inputs) if len(inputs) == 2 else f"{symbol}{inputs[0]}"
        return f"i32({text})" if e.dtype.short == "i32" else f"({text})"  # Numba would widen the result to int64

    def bare(self, e: Expression) -> str:
        """Return the text of an expression as a right-hand side, without outer parentheses."""
        text = self.text(e)
        return text[1:-1] if text.startswith("(") and e not in self.names else text

    def define(self, roots: Sequence[Expression], always: Iterable[Expression] = ()) -> None:
        """Assign values to variables if they are used more than once, are in `always`, or would nest a line too deeply."""
        always = set(always)
        scope = [e for e in toposort(roots, lambda e: () if e in self.names else e.inputs) if e not in self.names]
        uses = Counter([*roots, *[x for e in scope for x in e.inputs]])
        depth: Counter[Expression] = Counter()
        for e in scope:
            depth[e] = 1 + max([depth[x] for x in e.inputs], default=0)
            if not isinstance(e, Constant) and (uses[e] > 1 or e in always or depth[e] > MAX_LINE_DEPTH):
                self.name(e)
                depth[e] = 0

    def name(self, e: Expression) -> None:
        """Assign a value to a new variable."""
        self.line(f"t{self.count} = {self.bare(e)}")
        self.names[e], self.count = f"t{self.count}", self.count + 1

    def functions(self) -> list[list[str]]:
        """Return the lines of each function that combines two values of a monoid. Each state is a parameter."""
        functions = []
        for (monoid, dtypes), name in self.combiners.items():
            saved = self.names, self.lines, self.depth, self.count
            parameters = [f"{x}{k if len(dtypes) > 1 else ''}" for x in "ab" for k in range(len(dtypes))]
            loads = [Load(k, dtype) for k, dtype in enumerate((*dtypes, *dtypes))]
            self.names = {e: self.operand_of_combiner(x, e.dtype) for e, x in zip(loads, parameters, strict=True)}
            self.lines, self.depth, self.count = [f"def {name}({', '.join(parameters)}):"], 1, 0
            results = monoid.expressions(dtypes)
            self.define(results)
            self.line(f"return {', '.join(map(self.combiner_result, results))}")
            functions.append(self.lines)
            self.names, self.lines, self.depth, self.count = saved
        return functions

    def operand_of_combiner(self, name: str, dtype: DType) -> str:
        """Return the text of an operand of a combining function, given the name of its parameter."""
        return name

    def combiner_result(self, e: Expression) -> str:
        """Return the text of the result of a combining function."""
        return self.bare(e)


class Dialect:
    """The syntax of loops and loads of a backend; by default, serial loops over all axes."""

    reduces_columns = False  # whether the inner loop may run over a block of columns, with one accumulator each
    has_tiles = False  # whether transposed operands are processed in tiles
    splits_ranges = False  # whether the points of a loop at which no index is clamped have a loop of their own
    wrapping = frozenset({int32, int64})  # dtypes whose sums and products are function calls

    def loop(self, axis: int, is_row: bool, source: ExpressionPrinter) -> list[str]:
        """Return the lines that open the loop over an axis. A line that ends with a colon opens a block."""
        return [f"for i{axis} in range(n{axis}):"]

    def load(self, place: str, dtype: DType) -> str:
        """Return the expression that loads an element. `place` is the text of the element, such as in0[i0]."""
        return place

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return name

    def store_rows(self) -> list[str]:
        """Return the lines that open the block in which row outputs are stored."""
        return []

    def after_reduce(self, name: str, operator: Operator) -> list[str]:
        """Return the lines that finish a reduction after its pass."""
        return []


def combiner_key(e: Op | ReduceExpr) -> tuple[Monoid, tuple[DType, ...]]:
    """Return the monoid of a reduction or of an operator that combines two values, and the dtypes of its states."""
    assert isinstance(e.operator, MonoidState)
    return e.operator.monoid, tuple(x.dtype for x in e.states) if isinstance(e, ReduceExpr) else (e.dtype,)


def literal(value: float, dtype: DType) -> str:
    """Return a typed literal. An integer below -2^30 is written as (n + 1) - 1, since `-2147483648` negates 2^31."""
    text = f"{value + 1} - 1" if dtype.is_integer and value < -(1 << 30) else repr(value)
    return text if dtype is bool_ else f"{dtype.short}({text})"


def operand_name(e: Expression) -> str:
    """Return the name in the kernel of the array that a leaf reads or, for index values, of the first value."""
    assert isinstance(e, Load | ReadOutput)
    return f"{'out' if isinstance(e, ReadOutput) else 'base' if isinstance(e, IndexValue) else 'in'}{e.index}"
