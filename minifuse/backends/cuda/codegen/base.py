"""Generate Python for Numba CUDA from a kernel and the kinds of its strides: the code of one thread.

There are four forms. Which one is used depends on the reductions and on the axes along which memory is contiguous. Sizes and
strides are launch arguments, so one text serves all of them.

* points: no reductions. A thread computes one element along the last axis or, if every operand allows it, one or two groups
  of four adjacent elements; the other axes are rows.
* tiles: no reductions, and operands with different contiguous axes. They are transposed in shared memory; see `transpose`.
* rows: memory is contiguous along the reduction. The threads along x share a row; shuffles, and shared memory between
  warps, combine their results. Loads that several passes need are cached in shared memory or, if they do not fit, repeated.
* columns: memory is contiguous across the reduction. A thread along x has a column; the threads along y share its elements.

Four contiguous elements are loaded at once: 16 bytes of float32. `fours` is the number of elements of a row that are loaded
this way: a multiple of four, or 0 if an address is not aligned. The launch computes it, since addresses are known then.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ....core.dtypes import bool_
from ....core.interning import toposort
from ....ir.kernel_ir import Expression, IndexedLoad, IndexValue, Kernel, KernelParameter, Load, Op, ReadOutput, ReduceExpr
from ....ir.segment_sum import SegmentSum
from ...codegen.expression_printer import literal, operand_name
from ...codegen.gpu_facts import WARP
from ...codegen.gpu_schedule import IN_FLIGHT, MAX_REPEATED_COST
from ...codegen.loop_emitter import LoopEmitter, replace_index
from .dialect import CudaDialect, CudaPrinter, accumulator_of, storage_of

WIDTH = 125  # maximum characters of a line
MAX_INLINE_WIDTH = 80  # maximum characters of four values that are not assigned to names first
MAX_COLUMN_THREADS = 256  # threads of a block that reduces columns
MAX_ROW_THREADS = 512  # threads that share a row


class Point(NamedTuple):
    """The function of one point: name, loads (`leaves`), inputs that are constant along the row (`same`), and results.

    If nothing is computed, the name is empty, and `roots` contains indices of leaves, or names.
    """

    name: str
    leaves: list[Expression]
    same: list[Expression]
    roots: list[int | str]
    values: Sequence[Expression]


class CudaSource(CudaPrinter, LoopEmitter):
    """A kernel's text under construction, and its `parameters`: (name, type) of each argument, * marks pointers."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str] = ()) -> None:
        super().__init__(kernel, rows, classes, CudaDialect(), raws)
        self.form = "points" if not self.reductions else "columns" if self.is_columns else "rows"
        self.is_columns = False  # each thread has one column, so it needs no loop over columns
        last = {c[-1] for name, c in self.stride_kinds.items() if not name.startswith("base")}
        last |= set(map(self.last_axis_stride_kind, kernel.find_all(IndexedLoad)))
        self.is_wide = self.form != "columns" and "1" in last and "s" not in last
        self.points: list[str] = []  # the device functions of points
        self.groups = self.groups_of_four()
        self.kept: dict[Expression, str] = {}  # values computed by an earlier pass -> the arrays that store them
        self.held: dict[Expression, str] = {}  # operands loaded once for all passes -> the arrays that cache them
        self.picks: dict[ReduceExpr, SegmentSum] = {}  # reductions that select one element of their row, without a pass

    def groups_of_four(self) -> int:
        """Return how many groups of four a thread computes along the last axis: two if one loads too few bytes."""
        if self.form != "points" or not self.is_wide or self.kernel.cost() > MAX_REPEATED_COST:
            return int(self.is_wide)
        leaves = {
            operand_name(e): e.dtype
            for e in self.order
            if isinstance(e, Load | ReadOutput) and not isinstance(e, IndexValue)
        }
        nbytes = sum(4 * dtype.itemsize for name, dtype in leaves.items() if "0" not in self.stride_kinds[name])
        nbytes += sum(
            4 * e.dtype.itemsize for e in self.kernel.find_all(IndexedLoad) if self.last_axis_stride_kind(e) == "1"
        )
        return 1 + (0 < nbytes < IN_FLIGHT)

    # The head.

    def parameters(self) -> list[tuple[str, str]]:
        """Return names and types in the order of the launch: operands, indexed ones last, numbers, sizes and strides."""
        kinds = [f"*{storage_of(e.dtype)}" for e in self.kernel.outputs]
        kinds += ["i64" if isinstance(e, IndexValue) else f"*{storage_of(e.dtype)}" for e in self.kernel.find_all(Load)]
        operands = list(zip(self.stride_kinds, kinds, strict=True))
        operands += [
            (name, f"*{storage_of(dtype)}") for name, dtype in zip(self.raws, self.kernel.indexed_dtypes(), strict=True)
        ]
        numbers = [(f"p{p.index}", storage_of(p.dtype)) for p in self.kernel.find_all(KernelParameter)]
        strides = [f"{name}_{d}" for name, c in self.raws.items() for d, letter in enumerate(c) if letter == "s"]
        integers = self.integers()
        end = len(integers) - self.is_wide  # the last one depends on addresses
        return operands + numbers + [(name, "i64") for name in [*integers[:end], *strides, *integers[end:]]]

    def integers(self) -> list[str]:
        """Return the names of the sizes and strides that the text reads."""
        sizes = [f"n{axis}" for axis in range(self.axes) if axis or not self.is_flat]
        strides = [f"{name}_{axis}" for name, c in self.stride_kinds.items() for axis in range(self.axes) if c[axis] == "s"]
        return ["rows"] * self.is_flat + sizes + strides + ["fours"] * self.is_wide

    @property
    def is_flat(self) -> bool:
        """True if several axes are one flat index, from which each thread computes the index of each axis."""
        return self.counted > 1

    @property
    def counted(self) -> int:
        """The number of leading axes whose rows are distributed over blocks, without the axis of columns."""
        return self.rows - (self.form == "columns")

    def emit(self) -> str:
        """Return the text of the kernel and of its device functions."""
        self.depth = 1
        for fold in [e for e in self.reductions if e not in self.picks]:
            self.line(f"parts{self.reductions.index(fold)} = cuda.shared.array({self.room()}, {accumulator_of(fold.dtype)})")
        with self.block(*self.head()):
            self.take_apart()
            self.hold()
            self.row()
        names = ", ".join(name for name, _ in self.parameters())
        kernel = f"def kernel({names}):\n" + "\n".join(self.lines) + "\n"
        combiners = ["\n".join(lines) + "\n" for lines in self.functions()]
        return "\n\n".join([*combiners, *self.points, kernel])

    def room(self) -> int:
        """Return the elements of shared memory that a block needs for the partial results of a reduction."""
        return WARP if self.form == "rows" else MAX_COLUMN_THREADS

    def head(self) -> list[str]:
        """Return the lines that compute a thread's row and column; the last line may open a block."""
        row, count = ("row", "rows") if self.is_flat else ("i0", "n0")
        if self.form == "rows":
            return [
                f"{row} = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y",
                f"is_row = {row} < {count}",
                f"{row} = min({row}, {count} - 1)  # past the last row it stores nothing, but helps to shuffle",
            ]
        last = self.axes - 1
        if self.form == "columns":
            column = self.rows - 1
            lines = [
                f"i{column} = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
                f"is_row = i{column} < n{column}",
                f"i{column} = min(i{column}, n{column} - 1)  # past the last column it stores nothing, but meets barriers",
            ]
            if self.counted:
                lines += [
                    f"{row} = cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y",
                    f"is_row = is_row and {row} < {count}",
                    f"{row} = min({row}, {count} - 1)",
                ]
            return lines
        lines = [f"i{last} = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"]
        if self.is_wide:
            lines = [f"first = {4 * self.groups} * cuda.blockDim.x * cuda.blockIdx.x  # elements before this block's"]
        if self.counted:
            block = "cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y"
            lines += [f"{row} = ({block}) * cuda.blockDim.y + cuda.threadIdx.y", f"if {row} < {count}:"]
        return lines

    def take_apart(self) -> None:
        """Emit the index along each axis, computed from the number of the row."""
        if self.is_flat:
            for axis in reversed(range(1, self.counted)):
                self.line(f"i{axis} = row % n{axis}")
                self.line(f"{'row' if axis > 1 else 'i0'} = row // n{axis}")

    def hold(self) -> None:
        """Emit the loads that are cached for several passes: none in this class."""

    # The passes along a row.

    def passes(self) -> list[tuple[list[str], str]]:
        """Return (opening lines, letters) of each loop along the last axis.

        Each letter names the index of a group of four adjacent elements. Without letters, a loop processes single elements.
        """
        last = self.axes - 1
        i, n, x, y = f"i{last}", f"n{last}", "cuda.threadIdx.x", "cuda.threadIdx.y"
        if self.form == "columns":
            four = [f"{i} = 4 * {y}", f"while {i} < {n} // 4 * 4:"]
            return [(four, "i"), ([f"{i} = {n} // 4 * 4 + {y}", f"while {i} < {n}:"], "")]
        if self.form == "rows":
            wide = [([f"{i} = 4 * {x}", f"while {i} < fours:"], "i")] * self.is_wide
            return [*wide, ([f"{i} = {'fours + ' * self.is_wide}{x}", f"while {i} < {n}:"], "")]
        if not self.is_wide:
            return [([f"if {i} < {n}:"], "")]
        found = [([f"{i} = first + 4 * {x}", f"if {i} < fours:"], "i")]
        if self.groups == 2:
            j = f"j{last}"
            start = [f"{i} = first + 4 * {x}", f"{j} = {i} + 4 * cuda.blockDim.x"]
            both = [*start, f"if {j} < fours:  # both groups are on their way at once"]
            found = [(both, "ij"), ([f"elif {i} < fours:"], "i")]
        end = f"end = min(first + {4 * self.groups} * cuda.blockDim.x, {n})"
        rest = [f"{i} = max(first, fours) + {x}", f"while {i} < end:  # one at a time"]
        return [*found, ([end, "if fours < end:", *rest], "")]

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one pass along the row that accumulates reductions and stores elements."""
        roots = [e.inputs[0] for e in folds] + [e for _, e in elements]
        point = self.point([*roots, *[e for e in parked.values() if e not in roots]])
        for e in folds:
            self.line(f"fold{self.reductions.index(e)} = {self.start_of(e)}")
        guard = ["if is_row:"] if self.form in ("rows", "columns") else []
        way = "y" if self.form == "columns" else "x"
        outer = [f"for i{a} in range(n{a}):" for a in range(self.rows, self.axes - 1)]
        with self.block(*guard, *outer):
            for lines, letters in self.passes():
                with self.block(*lines):
                    if lines[-1].endswith("# one at a time"):
                        self.line("no_unroll()")
                    if letters:
                        self.fours(point, folds, elements, letters, parked)
                    else:
                        self.one(point, folds, elements, parked)
                    if lines[-1].startswith("while"):
                        for letter in letters or "i":
                            step = f"{4 * len(letters)} * " * bool(letters)
                            self.line(f"{letter}{self.axes - 1} += {step}cuda.blockDim.{way}")
        for e in folds:
            k = self.reductions.index(e)
            self.line(f"fold{k} = fold_along_{way}({self.operator_name(e)}, fold{k}, parts{k})")
            self.names[e] = f"(fold{k} != 0)" if e.dtype is bool_ else f"fold{k}"

    def point(self, roots: Sequence[Expression]) -> Point:
        """Make a function that computes the roots at one point of the row, unless all roots are only loaded."""
        inside = toposort(roots, self.inputs_of)
        leaves = [
            e for e in inside if (isinstance(e, Load | ReadOutput | IndexedLoad) or e in self.kept) and e not in self.names
        ]
        same = [e for e in inside if e in self.names]
        # with several outputs, old values of outputs must be read before any output is stored
        swaps = len(roots) > 1 and any(isinstance(e, ReadOutput) for e in leaves)
        if all(e in leaves or e in self.names for e in roots) and not swaps:
            return Point("", leaves, same, [leaves.index(e) if e in leaves else self.names[e] for e in roots], roots)
        name = f"point{len(self.points) or ''}"
        known, lines, depth, count = self.names, self.lines, self.depth, self.count
        self.names = {e: self.parameter(e) for e in leaves + same}
        self.lines, self.depth = [], 1  # the counter is not reset, so no name of the row is used again
        self.define(roots)
        self.line(f"return {', '.join(self.bare(e) for e in roots)}")
        head = f"def {name}({', '.join(self.names[e] for e in leaves + same)}):"
        self.points.append("\n".join([head, *self.lines]) + "\n")
        self.names, self.lines, self.depth, self.count = known, lines, depth, count
        return Point(name, leaves, same, list(range(len(roots))), roots)

    def inputs_of(self, e: Expression) -> tuple[Expression, ...]:
        """Return the values that must be computed or loaded for a value; an indexed load needs no other."""
        return () if e in self.names or e in self.kept or isinstance(e, IndexedLoad) else e.inputs

    def parameter(self, e: Expression) -> str:
        """Return the name of a value as a parameter of a point's function."""
        if isinstance(e, Load | ReadOutput | IndexedLoad):
            return self.names.get(e) or self.leaf_name(e)
        return f"fold{self.reductions.index(e)}" if isinstance(e, ReduceExpr) else self.names[e]

    def results(self, point: Point, values: Sequence[str], suffix: str) -> list[str]:
        """Return the results of a point for these values of its leaves; several results are assigned to names first."""
        if not point.name:
            return [k if isinstance(k, str) else values[k] for k in point.roots]
        call = f"{point.name}({', '.join([*values, *[self.names[e] for e in point.same]])})"
        if len(point.roots) == 1:
            return [call]
        names = [f"y{k}{suffix}" for k in point.roots]
        self.line(f"{', '.join(names)} = {call}")
        return names

    def one(
        self,
        point: Point,
        folds: Sequence[ReduceExpr],
        elements: Sequence[tuple[int, Expression]],
        parked: dict[int, Expression],
    ) -> None:
        """Emit the loads, arithmetic, reductions and stores of one point."""
        known = dict(self.names)
        picked = [e for e in point.leaves if isinstance(e, IndexedLoad) and e not in self.held]
        self.define(picked, always=[x for e in picked for x in e.inputs if isinstance(x, Op)])
        found = self.results(point, [self.bare(e) if isinstance(e, IndexValue) else self.text(e) for e in point.leaves], "")
        for e in parked.values():
            k = point.values.index(e)
            found[k] = self.keep(e, [found[k]], "")[0]
        for e, text in zip(folds, found, strict=False):
            self.accumulate(e, text)
        for (k, _), text in zip(elements, found[len(folds) :], strict=False):
            self.line(f"{self.place(f'out{k}')} = {text}")
        self.names = known

    def fours(
        self,
        point: Point,
        folds: Sequence[ReduceExpr],
        elements: Sequence[tuple[int, Expression]],
        letters: str,
        parked: dict[int, Expression],
    ) -> None:
        """Emit a point for groups of four neighbors: first all loads, then the values that depend on them."""
        load = self.load_below if self.form == "columns" else self.load_beside
        loaded = [[(e, load(e, letter)) for e in point.leaves] for letter in letters]
        for letter, loads in zip(letters, loaded, strict=True):
            found = [self.results(point, [self.dialect.load(x[k], e.dtype) for e, x in loads], f"_{k}") for k in range(4)]
            each: list[Sequence[str]] = list(zip(*found, strict=True))
            for e in parked.values():
                k = point.values.index(e)
                each[k] = self.keep(e, each[k], letter)
            for e, texts in zip(folds, each, strict=False):
                self.accumulate(e, self.folded(e, self.named(texts) if sum(map(len, texts)) > MAX_INLINE_WIDTH else texts))
            for (k, _), texts in zip(elements, each[len(folds) :], strict=False):
                (self.store_below if self.form == "columns" else self.store_beside)(f"out{k}", texts, letter)

    def keep(self, e: Expression, texts: Sequence[str], letter: str) -> Sequence[str]:
        """Emit stores of one value, or of four, for later passes, and return the names of the values."""
        raise NotImplementedError  # this class spills no values

    def load_beside(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a row, from one vector load if they are contiguous."""
        name = self.leaf_name(e)
        if isinstance(e, IndexValue):
            return self.count_beside(e, name, letter)
        if self.last_axis_stride_kind(e) != "1":
            if letter == "i":  # the second group uses the value that the first has loaded
                self.line(f"{name} = {self.element_read(e)}")
            return [name] * 4
        name += f"_{letter}" * (letter != "i")
        self.line(f"{name} = load4({self.address(self.element_read(e), letter)})")
        return [f"{name}[{k}]" for k in range(4)]

    def count_beside(self, e: IndexValue, name: str, letter: str) -> list[str]:
        """Return four adjacent index values, which are computed instead of loaded."""
        last, operand = self.axes - 1, operand_name(e)
        kind = self.stride_kinds[operand][-1]
        if kind == "0":
            if letter == "i":
                self.line(f"{name} = {self.bare(e)}")
            return [name] * 4
        name += f"_{letter}" * (letter != "i")
        self.line(f"{name} = {replace_index(self.bare(e), f'i{last}', f'{letter}{last}')}")
        step = f" * {operand}_{last}" * (kind == "s")
        return [f"({name} + {k}{step})" if k else name for k in range(4)]

    def load_below(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a column, from four independent loads."""
        return self.below(self.text(e) if isinstance(e, IndexValue) else self.element_read(e))

    def store_beside(self, name: str, texts: Sequence[str], letter: str) -> None:
        """Emit one store of four adjacent elements of a row."""
        start = f"store4({self.address(self.place(name), letter)}"
        line = f"{start}, ({', '.join(texts)}))"
        if self.depth * 4 + len(line) <= WIDTH:
            self.line(line)
        else:
            for line in (f"{start}, (", *[f"    {text}," for text in texts], "))"):
                self.line(line)

    def store_below(self, name: str, texts: Sequence[str], letter: str) -> None:
        """Emit four stores of adjacent elements of a column."""
        for place, text in zip(self.below(self.place(name)), texts, strict=True):
            self.line(f"{place} = {text}")

    def below(self, place: str) -> list[str]:
        """Return the places of four adjacent elements of a column, given that of the first."""
        i = f"i{self.axes - 1}"
        return [replace_index(place, i, f"({i} + {k})" if k else i) for k in range(4)]

    def named(self, texts: Sequence[str]) -> list[str]:
        """Assign long expressions to names, and return the names."""
        for k, text in enumerate(texts):
            self.line(f"y_{k} = {text}")
        return [f"y_{k}" for k in range(len(texts))]

    def folded(self, fold: ReduceExpr, texts: Sequence[str]) -> str:
        """Return the reduction of four values, computed in pairs."""
        a, b, c, d = [f"i32({text})" if fold.dtype is bool_ else text for text in texts]
        symbol, name = self.symbol(fold), self.operator_name(fold)
        return f"({a} {symbol} {b}) {symbol} ({c} {symbol} {d})" if symbol else f"{name}({name}({a}, {b}), {name}({c}, {d}))"

    def accumulate(self, fold: ReduceExpr, x: str, suffix: str = "") -> None:
        """Emit the accumulation of one more value of a reduction."""
        name, symbol = f"fold{self.reductions.index(fold)}{suffix}", self.symbol(fold)
        if symbol is None:
            self.line(f"{name} = {self.operator_name(fold)}({name}, {x})")
        elif fold.dtype.is_integer or fold.dtype is bool_:
            self.line(f"{name} = {accumulator_of(fold.dtype)}({name} {symbol} ({x}))")
        else:
            self.line(f"{name} {symbol}= {x}")

    def start_of(self, fold: ReduceExpr) -> str:
        """Return the identity of a reduction in the type of its accumulator."""
        value = fold.operator.identity_for(fold.dtype)
        return f"i32({int(value)})" if fold.dtype is bool_ else literal(value, fold.dtype)

    def store_rows(self) -> list[str]:
        """Return the condition under which a thread stores row outputs: it is the first of those that share the row."""
        return [f"if is_row and cuda.threadIdx.{'x' if self.form == 'rows' else 'y'} == 0:"] if self.reductions else []

    def spill(self, sweep: int, folds: Sequence[ReduceExpr]) -> dict[int, Expression]:
        """Return no values to spill, since here arithmetic is cheaper than memory."""
        return {}

    # Operands.

    def leaf_name(self, e: Expression) -> str:
        """Return the name of a leaf that is loaded."""
        if isinstance(e, IndexedLoad):
            return f"r{self.kernel.find_all(IndexedLoad).index(e)}"
        assert isinstance(e, Load | ReadOutput)
        return f"{'x' if isinstance(e, Load) else 'old'}{e.index}"

    def address(self, place: str, letter: str = "i") -> str:
        """Return a place as two arguments: the operand, and the index in it, where `letter` names the last axis's index."""
        last = self.axes - 1
        return replace_index(place[:-1].replace("[", ", ", 1), f"i{last}", f"{letter}{last}")
