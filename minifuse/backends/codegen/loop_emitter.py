"""A kernel and the classes of its strides -> the source of a loop nest, in a backend's dialect.

A row is walked in *sweeps*. A sweep runs along the row, accumulates every fold whose input is known by then and stores
every element that is known by then. Softmax is three sweeps: a maximum, a sum, a store. Between sweeps lie values that
are the same all along the row; they are computed once. A pointwise kernel is one sweep with nothing around it.

Where memory runs across the rows (a sum over dim 0), the loops are exchanged: a block of columns is walked side by side, and
each fold has an accumulator for each column.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.dtypes import DType, bool_, int32, int64
from ...core.interning import toposort
from ...core.operators import Operator
from ...ir.kernel_ir import (
    AtomicAdd,
    Constant,
    CustomReduceOp,
    Expression,
    IndexedAccess,
    IndexedLoad,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    Op,
    ReadOutput,
    ReduceExpr,
)

COLUMNS_PER_BLOCK = 1024  # columns that are walked side by side
TILE_SIZE = 16  # rows and columns that are walked together where one operand lies across another
MAX_LINE_DEPTH = 8  # operators in one line
WRAPPING_OPS = {"add", "sub", "mul"}  # words, of integers: with its own + - * Numba promises LLVM that nothing overflows
EXPENSIVE = 8  # additions; what costs more may wait in memory for a later sweep instead of being computed again


class Dialect:
    """How a backend writes loops and loads; here, as serial loops over everything."""

    reduces_columns = False  # whether it walks a block of columns side by side, with an accumulator each
    has_tiles = False  # whether it walks transposed operands tile by tile
    wrapping = frozenset({int32, int64})  # types whose sums and products are words

    def loop(self, axis: int, is_row: bool, source: "LoopEmitter") -> list[str]:
        """Lines that open the loop over an axis; one that ends in a colon opens a block."""
        return [f"for i{axis} in range(n{axis}):"]

    def load(self, place: str, dtype: DType) -> str:
        """The element at a place."""
        return place

    def word(self, name: str, dtype: DType) -> str:
        """What kernels call an operator where it is a word."""
        return name

    def store_rows(self) -> list[str]:
        """Lines that open the block where values of the row are stored."""
        return []

    def after_reduce(self, name: str, operator: Operator) -> list[str]:
        """Lines that finish a fold once its sweep is over."""
        return []


class LoopEmitter:
    """The body of one kernel. `rows` leading axes are rows, the others lie along the row; `classes` as in Nest.

    `raws` are the classes of the strides of raw operands, a letter for each dim of theirs.
    """

    def __init__(
        self, kernel: Kernel, rows: int, classes: Sequence[str], dialect: Dialect, raws: Sequence[str] = ()
    ) -> None:
        self.kernel, self.rows, self.dialect = kernel, rows, dialect
        self.axes = len(classes[0]) if classes else 1
        self.order, self.folds = kernel.expressions(), kernel.find_all(ReduceExpr)
        names = [f"out{k}" for k in range(len(kernel.outputs))] + [operand_name(e) for e in kernel.find_all(Load)]
        self.classes = dict(zip(names, classes, strict=True))
        self.raws = {f"raw{k}": c for k, c in enumerate(raws)}
        self.combiners: dict[tuple[CustomReduceOp, DType], str] = {}
        for e in self.order:
            if isinstance(e, Op | ReduceExpr) and isinstance(e.operator, CustomReduceOp):
                self.combiners.setdefault((e.operator, e.dtype), f"combine{len(self.combiners) or ''}")
        self.names: dict[Expression, str] = {
            e: f"p{e.index}" for e in kernel.find_all(KernelParameter)
        }  # while they are in scope
        self.pass_index: dict[Expression, int] = {}  # how many sweeps a value must wait for
        self.varies: dict[Expression, bool] = {}  # whether it varies along the row
        for e in self.order:
            self.pass_index[e] = max((self.pass_index[x] for x in e.inputs), default=0) + isinstance(e, ReduceExpr)
            self.varies[e] = not isinstance(e, ReduceExpr) and any(self.varies[x] for x in e.inputs)
            if isinstance(e, Load):
                self.varies[e] = bool(self.classes[operand_name(e)][rows:].strip("0"))
            elif isinstance(e, ReadOutput) or (isinstance(e, IndexedAccess) and kernel.effects):
                self.varies[e] = True
        across = [c[rows - 1] + c[-1] for name, c in self.classes.items() if name.startswith("in")]
        for x in filter(None, map(self.beside, kernel.find_all(IndexedLoad))):
            c = self.classes[operand_name(x)]
            across.append(c[rows - 1] + (c[-1] if c[-1] != "0" else "s"))
        self.is_columns = dialect.reduces_columns and bool(self.folds) and "1s" in across and "s1" not in across
        tails = {c[-2:] for name, c in self.classes.items() if not name.startswith("base")}
        self.is_tiled = dialect.has_tiles and not self.folds and "1s" in tails and bool(tails & {"s1", "01"})
        self.lines: list[str] = []
        self.depth, self.count = 1, 0
        self.spilled: dict[int, Expression] = {}  # output -> the value that waits in its place

    def line(self, text: str) -> None:
        """One more line."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, *lines: str) -> Iterator[None]:
        """Lines, of which those that end in a colon, but for a comment, open a block each."""
        depth = self.depth
        for line in lines:
            self.line(line)
            self.depth += line.partition("  #")[0].endswith(":")
        yield
        self.depth = depth

    def beside(self, e: IndexedLoad) -> IndexValue | None:
        """The index along the dim in which a raw operand has its neighbours beside each other, where it is a position."""
        found = [x for x, c in zip(e.inputs, self.raws[f"raw{e.index}"], strict=True) if c == "1"]
        return found[0] if found and isinstance(found[0], IndexValue) else None

    def step_of(self, e: Expression) -> str:
        """The class of the step of a leaf from one point of the last axis to the next."""
        if not isinstance(e, IndexedLoad):
            return self.classes[self.operand(e)][-1]
        own = self.beside(e)
        part = Kernel(tuple(x for x in e.inputs if x is not own), ())
        moves = part.find_all(ReadOutput) or any(self.classes[operand_name(x)][-1] != "0" for x in part.find_all(Load))
        return "s" if moves else "0" if own is None else self.classes[operand_name(own)][-1]

    # Expressions.

    def place(self, name: str) -> str:
        """The element of an operand at the point that the loops have reached."""
        return f"{name}[{self.position(name)}]"

    def position(self, name: str) -> str:
        """Where that element lies."""
        return position_text(name, [f"i{a}" for a in range(self.axes)], self.classes[name])

    def operand(self, e: Expression) -> str:
        """The name of what a leaf reads."""
        assert isinstance(e, Load | ReadOutput)
        return operand_name(e) if isinstance(e, Load) else f"out{e.index}"

    def element_read(self, e: Expression) -> str:
        """The element that a leaf reads."""
        return f"raw{e.index}[{self.indexed_position(e)}]" if isinstance(e, IndexedAccess) else self.place(self.operand(e))

    def indexed_position(self, e: IndexedAccess) -> str:
        """Where the element of a raw operand lies that is accessed."""
        name = f"raw{e.index}"
        classes = self.raws[name]
        used = [
            c if not (isinstance(x, Constant) and x.value == 0) else "0" for x, c in zip(e.inputs, classes, strict=False)
        ]
        is_alone = used.count("0") == len(used) - 1 and "1" in used

        def index(x: Expression, letter: str) -> str:  # a sum in a sum needs no parentheses
            return self.bare(x) if is_alone or (isinstance(x, IndexValue) and letter == "1") else self.text(x)

        return position_text(name, [index(x, c) for x, c in zip(e.inputs, used, strict=False)], used)

    def operator_name(self, e: Op | ReduceExpr) -> str:
        """What the kernel calls the operator of an expression."""
        assert e.operator is not None
        if isinstance(e.operator, CustomReduceOp):
            return self.combiners[e.operator, e.dtype]
        return self.dialect.word(e.operator.name, e.dtype)

    def symbol(self, e: Op | ReduceExpr) -> str | None:
        """How Python writes the operator of an expression; None where it is a word."""
        assert e.operator is not None
        return None if e.dtype in self.dialect.wrapping and e.operator.name in WRAPPING_OPS else e.operator.symbol

    def text(self, e: Expression) -> str:
        """An expression in Python's words."""
        if e in self.names:
            return self.names[e]
        if isinstance(e, IndexValue):
            return f"({operand_name(e)} + {self.position(operand_name(e))})"
        if isinstance(e, Load | IndexedAccess | ReadOutput):
            return self.dialect.load(self.element_read(e), e.dtype)
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
        return f"i32({text})" if e.dtype.short == "i32" else f"({text})"  # Numba would widen it

    def bare(self, e: Expression) -> str:
        """The text of a whole right-hand side: without the parentheses around it."""
        text = self.text(e)
        return text[1:-1] if text.startswith("(") and e not in self.names else text

    def define(self, roots: Sequence[Expression], always: Iterable[Expression] = ()) -> None:
        """Name each value that the roots use more than once, those in `always`, and those that make a line too deep."""
        always = set(always)
        scope = [e for e in toposort(roots, lambda e: () if e in self.names else e.inputs) if e not in self.names]
        uses = Counter(roots) + Counter(x for e in scope for x in e.inputs)
        depth: Counter[Expression] = Counter()
        for e in scope:
            depth[e] = 1 + max((depth[x] for x in e.inputs), default=0)
            if not isinstance(e, Constant) and (uses[e] > 1 or e in always or depth[e] > MAX_LINE_DEPTH):
                self.name(e)
                depth[e] = 0

    def name(self, e: Expression) -> None:
        """Give a value a name."""
        self.line(f"t{self.count} = {self.bare(e)}")
        self.names[e], self.count = f"t{self.count}", self.count + 1

    def store(self, k: int, e: Expression) -> None:
        """Store output k."""
        self.line(f"{self.place(f'out{k}')} = {self.bare(e)}")

    def emit_stores(self) -> None:
        """Change raw operands, one effect after the other; what was loaded before a change is loaded before it."""
        for k, effect in enumerate(self.kernel.effects):
            loads = [e for e in self.order if isinstance(e, IndexedLoad) and e.stores_before <= k]
            self.define([*loads, *effect.inputs], always=loads)
            name, place, value = f"raw{effect.index}", self.indexed_position(effect), self.bare(effect.inputs[-1])
            is_add = isinstance(effect, AtomicAdd)
            self.line(f"atomic_add({name}, {place}, {value})" if is_add else f"{name}[{place}] = {value}")

    def functions(self) -> list[list[str]]:
        """The lines of the functions that the kernel's own folds combine with."""
        found = []
        for (operator, dtype), name in self.combiners.items():
            kept = self.names, self.lines, self.depth, self.count
            self.names = self.operands_of_combiner(dtype)
            self.lines, self.depth, self.count = [f"def {name}(a, b):"], 1, 0
            e = operator.expression(dtype)
            self.define([e])
            self.line(f"return {self.combiner_result(e)}")
            found.append(self.lines)
            self.names, self.lines, self.depth, self.count = kept
        return found

    def operands_of_combiner(self, dtype: DType) -> dict[Expression, str]:
        """What such a function calls its operands."""
        return {Load(0, dtype): "a", Load(1, dtype): "b"}

    def combiner_result(self, e: Expression) -> str:
        """What such a function gives."""
        return self.bare(e)

    # Loops.

    def emit(self) -> str:
        """The body, one line after the other."""
        last = self.rows - 1
        rows = [
            line for a in range(self.rows - self.is_columns - self.is_tiled) for line in self.dialect.loop(a, True, self)
        ]
        with self.block(*rows, *self.tiles()):
            if self.is_columns:
                start, stop = ("start", "stop") if last == 0 else ("0", f"n{last}")
                with self.block(f"for block in range({start}, {stop}, {COLUMNS_PER_BLOCK}):"):
                    self.line(f"width = min({COLUMNS_PER_BLOCK}, {stop} - block)")
                    self.row()
            else:
                self.row()
        return "\n".join(self.lines) + "\n"

    def tiles(self) -> list[str]:
        """Loops over the tiles of the last two axes, and over the rows of a tile."""
        if not self.is_tiled:
            return []
        a, b = self.axes - 2, self.axes - 1
        start, stop = ("start", "stop") if a == 0 else ("0", f"n{a}")
        return [
            f"for tile{a} in range({start}, {stop}, {TILE_SIZE}):",
            f"for tile{b} in range(0, n{b}, {TILE_SIZE}):",
            f"for i{a} in range(tile{a}, min(tile{a} + {TILE_SIZE}, {stop})):",
        ]

    @contextmanager
    def columns(self) -> Iterator[None]:
        """Among columns, one after the other; what is named inside is forgotten outside."""
        known = dict(self.names)
        with self.block(*["for c in range(width):", f"i{self.rows - 1} = block + c"] * self.is_columns):
            yield
        if self.is_columns:
            self.names = known

    def row(self) -> None:
        """One row: what is the same all along it, then a sweep, and so on."""
        elements = len(self.kernel.pointwise_outputs)
        swept = {x for e in self.order if self.varies[e] or isinstance(e, ReduceExpr) for x in e.inputs} | set(
            self.kernel.pointwise_outputs
        )
        for sweep in range(max(self.pass_index.values()) + 1):
            now = {e for e in self.order if self.pass_index[e] == sweep}
            same = [e for e in self.order if e in now and not self.varies[e] and e in swept and not self.is_columns]
            stored = [(k, e) for k, e in enumerate(self.kernel.outputs) if k >= elements and e in now]
            if same or stored:
                with self.columns():
                    self.define(same + [e for _, e in stored], always=same)
                    with self.block(*self.store_rows() * bool(stored)):
                        for k, e in stored:
                            self.store(k, e)
            folds = [e for e in self.folds if self.pass_index[e] == sweep + 1]
            ready = [(k, e) for k, e in enumerate(self.kernel.pointwise_outputs) if e in now]
            if folds or ready or self.kernel.effects:
                self.emit_pass(folds, ready, self.spill(sweep, folds))

    def store_rows(self) -> list[str]:
        """Lines that open the block where values of the row are stored."""
        return self.dialect.store_rows()

    def spill(self, sweep: int, folds: Sequence[ReduceExpr]) -> dict[int, Expression]:
        """{k: value}: a dear value needed by later sweeps waits in the place of element k, which the last of them stores."""
        parked: dict[int, Expression] = {}
        last = self.last_passes()
        here = {e for fold in folds for e in inputs_in_pass(fold.inputs[0])}
        for k, element in enumerate(self.kernel.pointwise_outputs):
            if self.pass_index[element] > sweep and k not in self.spilled and not self.kernel.find_all(ReadOutput):
                taken = {element, *parked.values(), *self.spilled.values()}
                fits = [
                    e
                    for e in self.order
                    if e in here
                    and e not in taken
                    and e.dtype is element.dtype
                    and is_expensive(e)
                    and e in inputs_in_pass(element)
                    if last[e] == self.pass_index[element]
                ]
                if fits:
                    parked[k] = fits[-1]
        self.spilled |= parked
        return parked

    def last_passes(self) -> dict[Expression, int]:
        """The last sweep that needs each value."""
        last: dict[Expression, int] = {}
        roots = [(e.inputs[0], self.pass_index[e] - 1) for e in self.folds] + [
            (e, self.pass_index[e]) for e in self.kernel.pointwise_outputs
        ]
        for root, sweep in roots:
            last |= {e: max(sweep, last.get(e, 0)) for e in inputs_in_pass(root)}
        return last

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Once along the row: accumulate folds, store elements, and let some values wait in the place of others."""
        known = dict(self.names)
        totals = {e: f"fold{self.folds.index(e)}" + "[c]" * self.is_columns for e in folds}
        self.start(totals)
        along = [line for a in range(self.rows, self.axes) for line in self.dialect.loop(a, False, self)]
        if self.is_tiled:
            along = [f"for i{self.rows} in range(tile{self.rows}, min(tile{self.rows} + {TILE_SIZE}, n{self.rows})):"]
        with self.block(*along), self.columns():
            self.emit_stores()
            done = [self.spilled.pop(k) for k, _ in elements if k in self.spilled]
            for e in done:  # fetched before its place is taken
                self.name(e)
            in_place = (
                [e for _, e in elements] if len(elements) > 1 and self.kernel.find_all(ReadOutput) else []
            )  # all read, then stored
            self.define([e.inputs[0] for e in folds] + [e for _, e in elements], always=[*parked.values(), *in_place])
            for k, e in parked.items():
                self.store(k, e)
            for fold, name in totals.items():
                self.combine(name, fold, fold.inputs[0])
            for k, e in elements:
                self.store(k, e)
        found: dict[Expression, str] = {e: self.place(f"out{k}") for k, e in parked.items()}
        found.update(totals.items())
        in_memory = {*parked.values(), *(folds if self.is_columns else ())}
        found = {e: self.dialect.load(name, e.dtype) if e in in_memory else name for e, name in found.items()}
        self.names = {e: name for e, name in known.items() if e not in done} | found
        for fold, name in totals.items():
            for line in self.dialect.after_reduce(name, fold.operator):
                self.line(line)

    def combine(self, place: str, fold: ReduceExpr, value: Expression) -> None:
        """One more value of a fold."""
        x, symbol = self.bare(value), self.symbol(fold)
        self.line(f"{place} {symbol}= {x}" if symbol else f"{place} = {self.operator_name(fold)}({place}, {x})")

    def start(self, totals: dict[ReduceExpr, str]) -> None:
        """Every fold at its identity."""
        if self.is_columns:
            for e in totals:
                self.line(f"fold{self.folds.index(e)} = block_of_{e.dtype.short}()")
        if totals:
            with self.columns():
                for e, name in totals.items():
                    self.line(f"{name} = {literal(e.operator.identity_for(e.dtype), e.dtype)}")


def operand_name(e: Load) -> str:
    """What the kernel calls an input: where it lies in memory, or, where it has none, the position of its first element."""
    return f"{'base' if isinstance(e, IndexValue) else 'in'}{e.index}"


def position_text(name: str, indices: Sequence[str], classes: Sequence[str]) -> str:
    """The position of an index in an operand whose strides are of these classes."""
    terms = [
        i if c == "1" else f"{i} * {name}_{d}" for d, (i, c) in enumerate(zip(indices, classes, strict=True)) if c != "0"
    ]
    return " + ".join(terms) or "0"


def replace_index(text: str, index: str, new: str) -> str:
    """A text with another index in the place of one."""
    return re.sub(rf"\b{index}\b", new, text)


def inputs_in_pass(root: Expression) -> list[Expression]:
    """What a value is made of, as far back as the folds."""
    return toposort([root], lambda e: () if isinstance(e, ReduceExpr) else e.inputs)


def is_expensive(e: Expression) -> bool:
    """Whether a value costs more than to store it and load it again."""
    return isinstance(e, Op) and e.operator is not None and e.operator.cost > EXPENSIVE


def literal(value: Any, dtype: DType) -> str:
    """A typed literal; the smallest integer has none of its own, since its minus is an operator."""
    text = f"{value + 1} - 1" if dtype.is_integer and value < -(1 << 30) else repr(value)
    return text if dtype is bool_ else f"{dtype.short}({text})"
