"""Emit the source of a loop nest for a kernel, given the kinds of its strides and the dialect of a backend.

A row is processed in *passes*. A pass is one loop along the row. It accumulates every reduction whose input the
earlier passes determine, and stores every pointwise output that they determine. Softmax has three passes: a maximum, a
sum, a store. Values that are constant along the row are computed once, between passes. A pointwise kernel has one pass.

If memory is contiguous across rows (a sum over dim 0), the loops are interchanged: the inner loop runs over a block of
columns, and each reduction has one accumulator per column. If a row has few elements (a window, a point in space), the text
contains its size. Then compilers unroll the loop along the row, and vectorize the loop over rows around it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...core.dtypes import DType, bool_, int32, int64
from ...core.interning import toposort
from ...core.operators import Operator
from ...ir.kernel_ir import (
    AtomicAdd,
    Constant,
    Expression,
    IndexedAccess,
    IndexedLoad,
    IndexValue,
    Kernel,
    Load,
    Op,
    ReadOutput,
    ReduceExpr,
    distinct_reductions,
)
from .expression_printer import ExpressionPrinter, literal, operand_name
from .short_axes import Literals

COLUMNS_PER_BLOCK = 1024  # columns of the inner loop, if loops are interchanged
TILE_ROWS, TILE_COLUMNS = 16, 64  # of a tile, if an operand is transposed relative to others; as large as a block
MAX_STAGED = 8  # operands of which a tile is copied: the copies of more would not fit in the first cache
LANES = 64  # accumulators along a row of a reduction with several states: four vectors of 512 bits
MAX_RECOMPUTED_COST = 8  # cost of an operator in additions; above, its value may be spilled for a later pass


class Dialect:
    """The syntax of loops and loads of a backend; by default, serial loops over all axes."""

    reduces_columns = False  # whether the inner loop may run over a block of columns, with one accumulator each
    has_tiles = False  # whether transposed operands are processed in tiles
    wrapping = frozenset({int32, int64})  # dtypes whose sums and products are function calls

    def loop(self, axis: int, is_row: bool, source: "LoopEmitter") -> list[str]:
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


class LoopEmitter(ExpressionPrinter):
    """The body of one kernel, under construction.

    Parameters
    ----------
    kernel : Kernel
        The expressions to compute.
    rows : int
        The number of leading axes that iterate over rows. The other axes are along the row.
    stride_kinds : sequence of str
        The stride kinds of each output and input, as in `LoopNest`: one letter for each axis.
    dialect : Dialect
        The syntax of loops and loads.
    raws : sequence of str
        The stride kinds of each indexed operand: one letter for each dim.
    literals : pairs of str and int
        The sizes and strides that are in the text, by their names; see `short_literals`.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: int,
        stride_kinds: Sequence[str],
        dialect: Dialect,
        raws: Sequence[str] = (),
        literals: Literals = (),
    ) -> None:
        super().__init__(kernel, dialect.wrapping)
        self.rows, self.dialect, self.literals = rows, dialect, dict(literals)
        self.axes = len(stride_kinds[0]) if stride_kinds else 1
        self.order, self.reductions = kernel.order, distinct_reductions(kernel.find_all(ReduceExpr))
        names = [f"out{k}" for k in range(len(kernel.outputs))] + [operand_name(e) for e in kernel.find_all(Load)]
        self.stride_kinds = dict(zip(names, stride_kinds, strict=True))
        self.raws = {f"raw{k}": c for k, c in enumerate(raws)}
        self.pass_index: dict[Expression, int] = {}  # the pass in which each value is known
        self.varies: dict[Expression, bool] = {}  # whether each value varies along the row
        for e in self.order:
            self.pass_index[e] = max((self.pass_index[x] for x in e.inputs), default=0) + isinstance(e, ReduceExpr)
            self.varies[e] = not isinstance(e, ReduceExpr) and any(self.varies[x] for x in e.inputs)
            if isinstance(e, Load):
                self.varies[e] = bool(self.stride_kinds[operand_name(e)][rows:].strip("0"))
            elif isinstance(e, ReadOutput) or (isinstance(e, IndexedAccess) and kernel.effects):
                self.varies[e] = True
        self.is_unrolled = any(name.startswith("n") for name in self.literals)
        can_interchange = dialect.reduces_columns and bool(self.reductions) and not self.is_unrolled
        self.is_columns = can_interchange and self.is_contiguous_across_rows()
        strided = {
            name for name in self.stride_kinds if f"{name}_{self.axes - 1}" in self.literals or name.startswith("base")
        }
        tails = {kinds[-2:] for name, kinds in self.stride_kinds.items() if name not in strided}
        has_rows = dialect.has_tiles and not (self.reductions or self.is_unrolled)
        self.is_tiled = has_rows and "1s" in tails and bool(tails & {"s1", "01"})
        self.spilled: dict[int, Expression] = {}  # output -> the value that is spilled to its memory

    def is_contiguous_across_rows(self) -> bool:
        """Return True if an input has stride 1 along the last row axis, and none has stride 1 along the row."""
        pairs = [k[self.rows - 1] + k[-1] for name, k in self.stride_kinds.items() if name.startswith("in")]
        for index in filter(None, map(self.contiguous_index, self.kernel.find_all(IndexedLoad))):
            kinds = self.stride_kinds[operand_name(index)]
            pairs.append(kinds[self.rows - 1] + (kinds[-1] if kinds[-1] != "0" else "s"))
        return "1s" in pairs and "s1" not in pairs

    def contiguous_index(self, e: IndexedLoad) -> IndexValue | None:
        """Return the index expression of the contiguous dim of an indexed load, if it is a plain index; else None."""
        x = next((x for x, c in zip(e.inputs, self.raws[f"raw{e.index}"], strict=True) if c == "1"), None)
        return x if isinstance(x, IndexValue) else None

    def last_axis_stride_kind(self, e: Expression) -> str:
        """Return the stride kind of a leaf along the last axis."""
        if not isinstance(e, IndexedLoad):
            return self.stride_kinds[operand_name(e)][-1]
        index = self.contiguous_index(e)
        others = Kernel(tuple(x for x in e.inputs if x is not index), ())
        varies = others.find_all(ReadOutput) or any(
            self.stride_kinds[operand_name(x)][-1] != "0" for x in others.find_all(Load)
        )
        return "s" if varies else "0" if index is None else self.stride_kinds[operand_name(index)][-1]

    # Expressions.

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return self.dialect.word(name, dtype)

    def leaf_text(self, e: Expression) -> str:
        """Return the text of a value in memory, or of an index."""
        if isinstance(e, IndexValue):
            return f"({operand_name(e)} + {self.position(operand_name(e))})"
        return self.dialect.load(self.element_read(e), e.dtype)

    def place(self, name: str) -> str:
        """Return the element of an operand at the current point of the loops."""
        return f"{name}[{self.position(name)}]"

    def position(self, name: str) -> str:
        """Return the position of an operand's element at the current point of the loops."""
        return position_text(name, [f"i{a}" for a in range(self.axes)], self.stride_kinds[name])

    def element_read(self, e: Expression) -> str:
        """Return the element that a leaf reads."""
        return f"raw{e.index}[{self.indexed_position(e)}]" if isinstance(e, IndexedAccess) else self.place(operand_name(e))

    def indexed_position(self, e: IndexedAccess) -> str:
        """Return the position of an indexed access in its operand."""
        name = f"raw{e.index}"
        pairs = list(zip(e.inputs, self.raws[name], strict=False))
        kinds = ["0" if isinstance(x, Constant) and x.value == 0 else kind for x, kind in pairs]
        is_only_term = kinds.count("0") == len(kinds) - 1 and "1" in kinds

        def index(x: Expression, kind: str) -> str:  # a sum inside a sum needs no parentheses
            return self.bare(x) if is_only_term or (isinstance(x, IndexValue) and kind == "1") else self.text(x)

        return position_text(name, [index(x, kind) for (x, _), kind in zip(pairs, kinds, strict=True)], kinds)

    def store(self, k: int, e: Expression) -> None:
        """Emit the store of output k."""
        self.line(f"{self.place(f'out{k}')} = {self.bare(e)}")

    def emit_stores(self) -> None:
        """Emit the indexed stores in their order. A load that precedes a store is emitted before it."""
        for k, effect in enumerate(self.kernel.effects):
            loads = [e for e in self.order if isinstance(e, IndexedLoad) and e.stores_before <= k]
            self.define([*loads, *effect.inputs], always=loads)
            name, place, value = f"raw{effect.index}", self.indexed_position(effect), self.bare(effect.inputs[-1])
            is_add = isinstance(effect, AtomicAdd)
            self.line(f"atomic_add({name}, {place}, {value})" if is_add else f"{name}[{place}] = {value}")

    # Loops.

    def emit(self) -> str:
        """Return the text of the body."""
        last = self.rows - 1
        axes = range(self.rows - self.is_columns - self.is_tiled)
        with self.block(*[line for axis in axes for line in self.dialect.loop(axis, True, self)]):
            if self.is_columns:
                start, stop = ("start", "stop") if last == 0 else ("0", f"n{last}")
                with self.block(f"for block in range({start}, {stop}, {COLUMNS_PER_BLOCK}):"):
                    self.line(f"width = min({COLUMNS_PER_BLOCK}, {stop} - block)")
                    self.row()
            elif self.is_tiled:
                self.tiles()
            else:
                self.row()
        return "\n".join(self.lines) + "\n"

    def tiles(self) -> None:
        """Emit the loops over the tiles of the last two axes. Of transposed operands, a tile is copied to a block first."""
        a, b = self.axes - 2, self.axes - 1
        start, stop = ("start", "stop") if a == 0 else ("0", f"n{a}")
        along_rows = f"for i{a} in range(tile{a}, min(tile{a} + {TILE_ROWS}, {stop})):"
        loads = {operand_name(e): e for e in self.kernel.find_all(Load) if self.last_axis_stride_kind(e) == "s"}
        staged = {
            name: e
            for name, e in loads.items()
            if self.stride_kinds[name][-2] == "1"
            and name.startswith("in")
            and e.dtype is not bool_
            and not self.kernel.effects
        }
        tile = f"for tile{a} in range({start}, {stop}, {TILE_ROWS}):", f"for tile{b} in range(0, n{b}, {TILE_COLUMNS}):"
        with self.block(*tile):
            for name, e in [*staged.items()][:MAX_STAGED]:
                block, first = f"block_{name}", [*[f"i{axis}" for axis in range(a)], f"tile{a}", f"tile{b}"]
                source = f"shift({name}, {position_text(name, first, self.stride_kinds[name])})"
                sizes = f"min({TILE_ROWS}, {stop} - tile{a}), min({TILE_COLUMNS}, n{b} - tile{b})"
                self.line(f"{block} = block_of_{e.dtype.short}()")
                self.line(f"turn_tile({block}, {TILE_COLUMNS}, {source}, {name}_{b}, {sizes})")
                place = f"{block}[(i{a} - tile{a}) * {TILE_COLUMNS} + i{b} - tile{b}]"
                self.names[e] = self.dialect.load(place, e.dtype)
            with self.block(along_rows):
                self.row()

    def loop_along_tile(self) -> str:
        """Return the line that opens the loop along a row of a tile."""
        b = self.axes - 1
        return f"for i{b} in range(tile{b}, min(tile{b} + {TILE_COLUMNS}, n{b})):"

    @contextmanager
    def columns(self) -> Iterator[None]:
        """Open the loop over the columns of a block, if any. Variables assigned inside are not in scope after it."""
        names_before = dict(self.names)
        with self.block(*["for c in range(width):", f"i{self.rows - 1} = block + c"] * self.is_columns):
            yield
        if self.is_columns:
            self.names = names_before

    def row(self) -> None:
        """Emit one row: for each pass, the values that are constant along the row, then the loop along the row."""
        elements = len(self.kernel.pointwise_outputs)
        needed = {x for e in self.order if self.varies[e] or isinstance(e, ReduceExpr) for x in e.inputs}
        needed |= set(self.kernel.pointwise_outputs)
        for index in range(max(self.pass_index.values()) + 1):
            current = {e for e in self.order if self.pass_index[e] == index}
            constant = [e for e in self.order if e in current and not self.varies[e] and e in needed and not self.is_columns]
            stored = [(k, e) for k, e in enumerate(self.kernel.outputs) if k >= elements and e in current]
            if constant or stored:
                with self.columns():
                    self.define(constant + [e for _, e in stored], always=constant)
                    with self.block(*self.store_rows() * bool(stored)):
                        for k, e in stored:
                            self.store(k, e)
            reductions = [e for e in self.reductions if self.pass_index[e] == index + 1]
            ready = [(k, e) for k, e in enumerate(self.kernel.pointwise_outputs) if e in current]
            if reductions or ready or self.kernel.effects:
                self.emit_pass(reductions, ready, self.spill(index, reductions) if reductions else {})

    def store_rows(self) -> list[str]:
        """Return the lines that open the block in which row outputs are stored."""
        return self.dialect.store_rows()

    def spill(self, index: int, reductions: Sequence[ReduceExpr]) -> dict[int, Expression]:
        """Choose expensive values to spill for later passes: {k: value spilled to the memory of output k}.

        Output k is stored in the last pass that needs the value.
        """
        spills: dict[int, Expression] = {}
        last_pass = self.last_passes()
        inputs = {e for reduction in reductions for x in reduction.inputs for e in inputs_in_pass(x)}
        for k, element in enumerate(self.kernel.pointwise_outputs):
            if self.pass_index[element] > index and k not in self.spilled and not self.kernel.find_all(ReadOutput):
                excluded = {element, *spills.values(), *self.spilled.values()}
                shared = (inputs & set(inputs_in_pass(element))) - excluded
                candidates = [e for e in self.order if e in shared and e.dtype is element.dtype and is_expensive(e)]
                candidates = [e for e in candidates if last_pass[e] == self.pass_index[element]]
                if candidates:
                    spills[k] = candidates[-1]
        self.spilled |= spills
        return spills

    def last_passes(self) -> dict[Expression, int]:
        """Return the last pass that needs each value."""
        last: dict[Expression, int] = {}
        roots = [(x, self.pass_index[e] - 1) for e in self.reductions for x in e.inputs]
        roots += [(e, self.pass_index[e]) for e in self.kernel.pointwise_outputs]
        for root, index in roots:
            last |= {e: max(index, last.get(e, 0)) for e in inputs_in_pass(root)}
        return last

    def emit_pass(
        self, reductions: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], spills: dict[int, Expression]
    ) -> None:
        """Emit one pass: accumulate reductions, store outputs, and spill values to the memory of later outputs."""
        names_before = dict(self.names)
        states = self.state_names(reductions)
        totals = {x: name + "[c]" * self.is_in_block(x) for x, name in states.items()}
        self.start(states)
        loops = [line for a in range(self.rows, self.axes) for line in self.dialect.loop(a, False, self)]
        if self.is_tiled:
            loops = [self.loop_along_tile()]
        elif not self.is_columns and any(self.is_in_block(e) for e in reductions):
            loops[-1:] = self.loop_over_lanes(self.axes - 1)
        with self.block(*loops), self.columns():
            self.emit_stores()
            reloaded = [self.spilled.pop(k) for k, _ in elements if k in self.spilled]
            for e in reloaded:  # loaded before the output overwrites it
                self.name(e)
            # If outputs are read as well, compute all of them before storing the first.
            computes_first = len(elements) > 1 and self.kernel.find_all(ReadOutput)
            in_place = [e for _, e in elements] if computes_first else []
            values = [x for e in reductions for x in e.inputs]
            self.define(values + [e for _, e in elements], always=[*spills.values(), *in_place])
            for k, e in spills.items():
                self.store(k, e)
            for e in reductions:
                self.combine(e, [totals[x] for x in e.states], e.inputs)
            for k, e in elements:
                self.store(k, e)
        computed: dict[Expression, str] = {e: self.place(f"out{k}") for k, e in spills.items()}
        if not self.is_columns:
            for e in filter(self.is_in_block, reductions):
                self.combine_lanes(e, [states[x] for x in e.states])
            totals = {e: name.replace("[c]", "[0]") for e, name in totals.items()}
        computed.update(totals.items())
        in_memory = {*spills.values(), *filter(self.is_in_block, totals)}
        computed = {e: self.dialect.load(name, e.dtype) if e in in_memory else name for e, name in computed.items()}
        self.names = {e: name for e, name in names_before.items() if e not in reloaded} | computed
        for e in reductions:
            for line in self.dialect.after_reduce(totals[e], e.operator):
                self.line(line)

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


def position_text(name: str, indices: Sequence[str], stride_kinds: Sequence[str]) -> str:
    """Return the text of the position of an index in an operand with these stride kinds."""
    pairs = enumerate(zip(indices, stride_kinds, strict=True))
    terms = [index if kind == "1" else f"{index} * {name}_{d}" for d, (index, kind) in pairs if kind != "0"]
    return " + ".join(terms) or "0"


def replace_index(text: str, index: str, new: str) -> str:
    """Replace an index variable in a text."""
    return re.sub(rf"\b{index}\b", new, text)


def inputs_in_pass(root: Expression) -> list[Expression]:
    """Return the expressions that a value is computed from in its pass, back to the reductions of earlier passes."""
    return toposort([root], lambda e: () if isinstance(e, ReduceExpr) else e.inputs)


def is_expensive(e: Expression) -> bool:
    """Return True if recomputing a value costs more than storing and loading it."""
    return isinstance(e, Op) and e.operator is not None and e.operator.cost > MAX_RECOMPUTED_COST
