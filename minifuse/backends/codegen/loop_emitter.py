"""Emit the source of a loop nest for a kernel, given the kinds of its strides and the dialect of a backend.

A row is processed in *passes*. A pass is one loop along the row. It accumulates every reduction whose input the
earlier passes determine, and stores every pointwise output that they determine. Softmax has three passes: a maximum, a
sum, a store. Values that are constant along the row are computed once, between passes. A pointwise kernel has one pass.

If memory is contiguous across rows (a sum over dim 0), the loops are interchanged: the inner loop runs over a block of
columns, and each reduction has one accumulator per column. If a row has few elements (a window, a point in space), the text
contains its size. Then compilers unroll the loop along the row, and vectorize the loop over rows around it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ...core.dtypes import DType
from ...core.interning import toposort
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
from .accumulators import AccumulatorPrinter
from .expression_printer import Dialect, operand_name
from .inner_range import InnerRange, find_inner_range
from .short_axes import Literals
from .staged_tiles import MAX_STAGED, TILE_COLUMNS, TILE_ROWS, stage_gathers, stage_tile

COLUMNS_PER_BLOCK = 1024  # columns of the inner loop, if loops are interchanged
MAX_HOISTED, MAX_REPEATED_COST = 4, 2  # values of columns that are stored in blocks, and the cost up to which they are not
MAX_RECOMPUTED_COST = 8  # cost of an operator in additions; above, its value may be spilled for a later pass


class LoopEmitter(AccumulatorPrinter):
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
        self.is_unrolled = f"n{self.axes - 1}" in self.literals
        has_columns = not self.is_unrolled and f"n{rows - 1}" not in self.literals
        can_interchange = dialect.reduces_columns and bool(self.reductions) and has_columns
        orders = self.memory_orders() if can_interchange else []
        self.is_columns = "1s" in orders
        self.is_staged = self.is_columns and "s1" in orders  # whether tiles of operands are copied to blocks
        if self.is_staged and not (self.is_pure and dialect.has_tiles):
            self.is_columns = self.is_staged = False
        strided = {
            name for name in self.stride_kinds if f"{name}_{self.axes - 1}" in self.literals or name.startswith("base")
        }
        tails = {kinds[-2:] for name, kinds in self.stride_kinds.items() if name not in strided}
        has_rows = dialect.has_tiles and not (self.reductions or self.is_unrolled)
        self.is_tiled = has_rows and "1s" in tails and bool(tails & {"s1", "01"})
        # Whether the innermost loop of a pointwise kernel gathers: its outputs are stored in blocks.
        self.is_gathered = bool(raws) and has_rows and not self.is_tiled and self.is_pure and self.has_gathers()
        self.spilled: dict[int, Expression] = {}  # output -> the value that is spilled to its memory
        self.staged: dict[str, str] = {}  # operand -> its element in a block
        self.held: dict[Expression, str] = {}  # value that is constant along the row -> its block of columns

    def memory_orders(self) -> list[str]:
        """Return the stride kinds of each input across rows and along the row."""
        pairs = [k[self.rows - 1] + k[-1] for name, k in self.stride_kinds.items() if name.startswith("in")]
        for index in filter(None, map(self.contiguous_index, self.kernel.find_all(IndexedLoad))):
            kinds = self.stride_kinds[operand_name(index)]
            pairs.append(kinds[self.rows - 1] + (kinds[-1] if kinds[-1] != "0" else "s"))
        return pairs

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

    def has_gathers(self) -> bool:
        """Return whether there are loads along the last axis that are not at equal distances, and few outputs."""
        gathers = [e for e in self.kernel.find_all(IndexedLoad) if self.last_axis_stride_kind(e) == "s"]
        return bool(gathers) and len(self.kernel.outputs) <= MAX_STAGED

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
        return self.staged.get(name) or f"{name}[{self.position(name)}]"

    def position(self, name: str) -> str:
        """Return the position of an operand's element at the current point of the loops."""
        return position_text(name, [f"i{a}" for a in range(self.axes)], self.stride_kinds[name])

    def shifted(self, name: str, starts: Mapping[int, str]) -> str:
        """Return the pointer to an operand's element at the first indices of some axes."""
        indices = [starts.get(a, f"i{a}") for a in range(self.axes)]
        return f"shift({name}, {position_text(name, indices, self.stride_kinds[name])})"

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
                width = TILE_COLUMNS if self.is_staged else COLUMNS_PER_BLOCK
                with self.block(f"for block in range({start}, {stop}, {width}):"):
                    self.line(f"width = min({width}, {stop} - block)")
                    self.row()
            elif self.is_tiled:
                self.tiles()
            else:
                self.row()
        return "\n".join(self.lines) + "\n"

    def tiles(self) -> None:
        """Emit the loops over the tiles of the last two axes."""
        a, b = self.axes - 2, self.axes - 1
        start, stop = ("start", "stop") if a == 0 else ("0", f"n{a}")
        loads = {operand_name(e): e.dtype for e in self.kernel.find_all(Load) if not isinstance(e, IndexValue)}
        outputs = {f"out{k}": e.dtype for k, e in enumerate(self.kernel.outputs)}
        with self.block(
            f"for tile{a} in range({start}, {stop}, {TILE_ROWS}):", f"for tile{b} in range(0, n{b}, {TILE_COLUMNS}):"
        ):
            sizes = f"min({TILE_ROWS}, {stop} - tile{a})", f"min({TILE_COLUMNS}, n{b} - tile{b})"
            loop = f"for i{a} in range(tile{a}, min(tile{a} + {TILE_ROWS}, {stop})):"
            with stage_tile(self, loads, outputs, (a, b), (f"tile{a}", f"tile{b}"), sizes), self.block(loop):
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
            if self.is_columns:
                self.hoist_columns([e for e in self.order if e in current and not self.varies[e] and e in needed])
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

    def hoist_columns(self, constant: Sequence[Expression]) -> None:
        """Compute values that are constant along the row once for each column of a block, if that costs more than a load."""
        hoisted = [e for e in constant if isinstance(e, Op) and costs_of([e], self.names) > MAX_REPEATED_COST][:MAX_HOISTED]
        names: dict[Expression, str] = {e: f"held{len(self.held) + k}" for k, e in enumerate(hoisted)}
        for e, name in names.items():
            self.line(f"{name} = block_of_{e.dtype.short}()")
        if hoisted:
            with self.columns():
                self.define(hoisted)
                for e, name in names.items():
                    self.line(f"{name}[c] = {self.bare(e)}")
        self.held |= names
        self.names |= {e: self.dialect.load(f"{name}[c]", e.dtype) for e, name in names.items()}

    def store_rows(self) -> list[str]:
        """Return the lines that open the block in which row outputs are stored."""
        return self.dialect.store_rows()

    def spill(self, index: int, reductions: Sequence[ReduceExpr]) -> dict[int, Expression]:
        """Choose expensive values to spill for later passes: {k: value spilled to the memory of output k}.

        Output k is stored in the last pass that needs the value.
        """
        spills: dict[int, Expression] = {}
        if self.is_staged:
            return spills
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
        states = self.state_names(reductions) if reductions else {}
        totals = {x: name + "[c]" * self.is_in_block(x) for x, name in states.items()}
        if reductions:
            self.start(states)
        values, reloaded = [*[x for e in reductions for x in e.inputs], *[e for _, e in elements]], list[Expression]()
        inner = self.inner_range(values, reductions) if self.raws and not (spills or self.spilled) else None
        if inner is not None:
            self.emit_ranges(inner, values, reductions, elements, totals)
        else:
            with self.row_loops(reductions, values, [k for k, _ in elements]), self.columns():
                self.emit_stores()
                reloaded = [self.spilled.pop(k) for k, _ in elements if k in self.spilled]
                for e in reloaded:  # loaded before the output overwrites it
                    self.name(e)
                # If outputs are read as well, compute all of them before storing the first.
                computes_first = len(elements) > 1 and self.kernel.find_all(ReadOutput)
                in_place = [e for _, e in elements] if computes_first else []
                self.define(values, always=[*spills.values(), *in_place])
                for k, e in spills.items():
                    self.store(k, e)
                self.combine_and_store(reductions, elements, totals)
        computed: dict[Expression, str] = {e: self.place(f"out{k}") for k, e in spills.items()}
        if not self.is_columns:
            for e in filter(self.is_in_block, reductions):
                self.combine_lanes(e, [states[x] for x in e.states])
            totals = {e: name.replace("[c]", "[0]") for e, name in totals.items()}
        computed.update(totals.items())
        in_memory = {*spills.values(), *filter(self.is_in_block, totals)}
        computed = {e: self.dialect.load(name, e.dtype) if e in in_memory else name for e, name in computed.items()}
        self.names = {e: name for e, name in names_before.items() if e not in reloaded} | computed
        for reduction in reductions:
            for line in self.dialect.after_reduce(totals[reduction], reduction.operator):
                self.line(line)

    def combine_and_store(
        self, reductions: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], totals: Mapping[ReduceExpr, str]
    ) -> None:
        """Emit the accumulation of reductions and the stores of outputs at one point of the loops."""
        for reduction in reductions:
            self.combine(reduction, [totals[x] for x in reduction.states], reduction.inputs)
        for k, e in elements:
            self.store(k, e)

    def inner_range(self, values: Sequence[Expression], reductions: Sequence[ReduceExpr]) -> InnerRange | None:
        """Return the range of the innermost loop in which no index is clamped; None if there is only one loop."""
        is_simple = not (self.is_tiled or self.is_columns or any(map(self.is_in_block, reductions)))
        if not (self.dialect.splits_ranges and is_simple and self.is_pure):
            return None
        return find_inner_range(values, self.names, self.varies, self.stride_kinds, self.text)

    def emit_ranges(
        self,
        inner: InnerRange,
        values: Sequence[Expression],
        reductions: Sequence[ReduceExpr],
        elements: Sequence[tuple[int, Expression]],
        totals: Mapping[ReduceExpr, str],
    ) -> None:
        """Emit the loop along the row as three loops: both ends, and the range in which no index is clamped."""
        a = self.axes - 1
        start, stop = ("start", "stop") if a == 0 else ("0", f"n{a}")
        loops = [line for axis in range(self.rows, a) for line in self.dialect.loop(axis, False, self)]
        firsts, ends = (
            [f"{bound} - {replace_index(self.text(x), f'i{a}', '0')}" for bound, x in bounds]
            for bounds in (inner.firsts, inner.ends)
        )
        with self.block(*loops) if loops else nullcontext():
            self.line(f"first = min(max({', '.join([start, *firsts])}), {stop})")
            self.line(f"end = max(min({', '.join([stop, *ends])}), first)")
            names = dict(self.names)
            names |= {e: "True" if x is None else self.text(x) for e, x in inner.names.items()}
            with self.block("for k in range(2):", f"for i{a} in range(end if k else {start}, {stop} if k else first):"):
                self.define(values)
                self.combine_and_store(reductions, elements, totals)
            self.names = names
            with self.block(f"for i{a} in range(first, end):"):
                self.define(values)
                self.combine_and_store(reductions, elements, totals)

    def row_loops(
        self, reductions: Sequence[ReduceExpr], values: Sequence[Expression], outputs: Sequence[int]
    ) -> AbstractContextManager[None]:
        """Open the loops along the row for a pass that computes some values and stores some outputs."""
        loops = [line for a in range(self.rows, self.axes) for line in self.dialect.loop(a, False, self)]
        if self.is_staged:
            return self.staged_loops(loops[:-1], values, outputs)
        if self.is_gathered:
            stored = {f"out{k}": self.kernel.outputs[k].dtype for k in outputs}
            return stage_gathers(self, stored, loops[:-1], self.axes - 1)
        if self.is_tiled:
            loops = [self.loop_along_tile()]
        elif not self.is_columns and any(self.is_in_block(e) for e in reductions):
            loops[-1:] = self.loop_over_lanes(self.axes - 1)
        return self.block(*loops)

    @contextmanager
    def staged_loops(self, outer: Sequence[str], values: Sequence[Expression], outputs: Sequence[int]) -> Iterator[None]:
        """Open the loops along the row; a tile of each operand that is contiguous along it is transposed."""
        a, order = self.axes - 1, toposort(values, lambda e: () if e in self.names else e.inputs)
        loads = {operand_name(e): e.dtype for e in order if isinstance(e, Load) and not isinstance(e, IndexValue)}
        stored = {f"out{k}": self.kernel.outputs[k].dtype for k in outputs}
        sizes = f"min({TILE_ROWS}, n{a} - tile{a})", "width"
        with (
            self.block(*outer, f"for tile{a} in range(0, n{a}, {TILE_ROWS}):"),
            stage_tile(self, loads, stored, (a, self.rows - 1), (f"tile{a}", "block"), sizes),
            self.block(f"for i{a} in range(tile{a}, min(tile{a} + {TILE_ROWS}, n{a})):"),
        ):
            yield


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


def costs_of(roots: Sequence[Expression], known: Collection[Expression]) -> int:
    """Return the cost of some values in additions, given those that are known."""
    order = toposort(roots, lambda e: () if e in known or isinstance(e, ReduceExpr) else e.inputs)
    return sum(e.operator.cost for e in order if isinstance(e, Op) and e.operator is not None and e not in known)


def is_expensive(e: Expression) -> bool:
    """Return True if recomputing a value costs more than storing and loading it."""
    return isinstance(e, Op) and e.operator is not None and e.operator.cost > MAX_RECOMPUTED_COST
