"""A kernel and the classes of its strides -> Python for Numba CUDA: what one thread does.

Three forms, chosen by where the folds and the neighbours in memory are; sizes, strides and the shape of the grid travel with
the launch, so that none of them needs a new text.

* points: no folds. A thread has an element of the last axis, or four neighbours where every operand allows it; the other
  axes are rows, in strides of the grid.
* rows: memory runs along the fold. The threads along x share a row; shuffles, and shared memory between warps, combine what
  they have folded.
* columns: memory runs across the fold. A thread along x has a column, the threads along y share its elements.

Where four neighbours lie side by side they are loaded at once, 16 bytes of float32. `fours` is how many elements of a row
are taken so: a multiple of four, or 0 where an address does not allow it, which only the launch knows.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ...dag import topological
from ...dtypes import DType, bool_
from ...kernels import Apply, Expression, Fold, Kernel, Load, Old, Parameter
from ..emit import Dialect, Source, literal

WARP = 32
WIDTH = 125  # of a line
LONG = 80  # of four values in a line
MOST = 256  # threads of a block that fold together
BY_KIND = {"pow": "integer_pow", "floordiv": "integer_floordiv", "mod": "integer_mod"}  # of integers
WRAPPING = {"add", "sub", "mul", "neg", "abs"}  # on integers: exact in the interpreter, 64 bits wide in Numba


class Threads(Dialect):
    """Folds may run across memory; a bool is a byte."""

    folds_columns = True

    def load(self, place: str, dtype: DType) -> str:
        """The element; a bool is a byte in memory."""
        return f"({place} != 0)" if dtype is bool_ else place


class CudaSource(Source):
    """The text of one kernel, and what its launch must pass: `parameters`, (name, type) each, pointers marked with *."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes, Threads())
        self.form = "points" if not self.folds else "columns" if self.is_columns else "rows"
        self.is_columns = False  # each thread has one column, and walks none
        last = {c[-1] for c in classes}
        self.is_wide = self.form != "columns" and "1" in last and "s" not in last
        self.points: list[str] = []  # the functions of what one point becomes

    # The head.

    def parameters(self) -> list[tuple[str, str]]:
        """Names and types, in the order of the launch: operands, numbers, sizes, strides."""
        dtypes = [e.dtype for e in (*self.kernel.outputs, *self.kernel.each(Load))]
        operands = [(name, f"*{storage_of(dtype)}") for name, dtype in zip(self.classes, dtypes, strict=True)]
        numbers = [(f"p{p.index}", storage_of(p.dtype)) for p in self.kernel.each(Parameter)]
        return operands + numbers + [(name, "i64") for name in self.integers()]

    def integers(self) -> list[str]:
        """Names of the sizes and strides that the text reads."""
        sizes = [f"n{axis}" for axis in range(self.axes) if axis or not self.is_flat]
        strides = [f"{name}_{axis}" for name, c in self.classes.items() for axis in range(self.axes) if c[axis] == "s"]
        return ["rows"] * self.is_flat + sizes + strides + ["fours"] * self.is_wide

    @property
    def is_flat(self) -> bool:
        """Whether several axes are counted as one number, which each thread takes apart."""
        return self.counted > 1

    @property
    def counted(self) -> int:
        """How many leading axes are rows that blocks share out; a column is an axis of its own."""
        return self.rows - (self.form == "columns")

    def emit(self) -> str:
        """The whole function."""
        self.depth = 1
        for fold in self.folds:
            count = WARP if self.form == "rows" else MOST
            self.line(f"parts{self.folds.index(fold)} = cuda.shared.array({count}, {accumulator_of(fold.dtype)})")
        with self.block(*self.head()):
            self.take_apart()
            self.row()
        names = ", ".join(name for name, _ in self.parameters())
        kernel = f"def kernel({names}):\n" + "\n".join(self.lines) + "\n"
        return "\n\n".join([*self.points, kernel])

    def head(self) -> list[str]:
        """Which row and which column the thread has; the last line may open a loop."""
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
        lines = []
        if self.is_wide:
            lines.append("first = 4 * cuda.blockDim.x * cuda.blockIdx.x  # elements before this block's")
        else:
            lines.append(f"i{last} = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x")
        if self.counted:
            start = "cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y"
            lines.append(f"for {row} in range({start}, {count}, cuda.gridDim.y * cuda.blockDim.y):")
        return lines

    def take_apart(self) -> None:
        """The index along each axis, from the number of the row."""
        if self.is_flat:
            for axis in reversed(range(1, self.counted)):
                self.line(f"i{axis} = row % n{axis}")
                self.line(f"{'row' if axis > 1 else 'i0'} = row // n{axis}")

    # The passes along a row.

    def passes(self) -> list[tuple[list[str], bool]]:
        """(lines that open the loop, whether it takes four at a time) of each loop along the last axis."""
        last = self.axes - 1
        i, n, x, y = f"i{last}", f"n{last}", "cuda.threadIdx.x", "cuda.threadIdx.y"
        if self.form == "columns":
            step = "cuda.blockDim.y"
            four = f"for {i} in range(4 * {y}, {n} // 4 * 4, 4 * {step}):"
            return [([four], True), ([f"for {i} in range({n} // 4 * 4 + {y}, {n}, {step}):"], False)]
        if self.form == "rows":
            step = "cuda.blockDim.x"
            wide = [([f"for {i} in range(4 * {x}, fours, 4 * {step}):"], True)] * self.is_wide
            return [*wide, ([f"for {i} in range({'fours + ' * self.is_wide}{x}, {n}, {step}):"], False)]
        if not self.is_wide:
            return [([f"if {i} < {n}:"], False)]
        end = f"min(first + 4 * cuda.blockDim.x, {n})"
        rest = f"for {i} in range(max(first, fours) + {x}, {end}, cuda.blockDim.x):  # one at a time"
        return [([f"{i} = first + 4 * {x}", f"if {i} < fours:"], True), ([rest], False)]

    def sweep(
        self, folds: Sequence[Fold], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Once along the row: accumulate folds, and store elements."""
        roots = [e.inputs[0] for e in folds] + [e for _, e in elements]
        point = self.point(roots)
        for e in folds:
            self.line(f"fold{self.folds.index(e)} = {self.start_of(e)}")
        guard = ["if is_row:"] if self.form != "points" else []
        outer = [f"for i{a} in range(n{a}):" for a in range(self.rows, self.axes - 1)]
        with self.block(*guard, *outer):
            for lines, is_four in self.passes():
                with self.block(*lines):
                    (self.four if is_four else self.one)(point, folds, elements)
        way = "x" if self.form == "rows" else "y"
        for e in folds:
            k = self.folds.index(e)
            self.line(f"fold{k} = fold_along_{way}({e.operator.name}, fold{k}, parts{k})")
            self.names[e] = f"(fold{k} != 0)" if e.dtype is bool_ else f"fold{k}"

    def point(self, roots: Sequence[Expression]) -> "Point":
        """What one point of the row becomes, as a function of its own; of what is only loaded there is none."""
        inside = topological(roots, lambda e: () if e in self.names else e.inputs)
        leaves: list[Expression] = [e for e in inside if isinstance(e, Load | Old) and e not in self.names]
        same = [e for e in inside if e in self.names]
        swaps = len(roots) > 1 and any(isinstance(e, Old) for e in leaves)  # then all is read before anything is stored
        if all(e in leaves or e in self.names for e in roots) and not swaps:
            return Point("", leaves, same, [leaves.index(e) if e in leaves else self.names[e] for e in roots])
        name = f"point{len(self.points) or ''}"
        known, lines, depth, count = self.names, self.lines, self.depth, self.count
        self.names = {e: self.parameter(e) for e in leaves + same}
        self.lines, self.depth = [], 1  # the count goes on, so that no name of the row is taken again
        self.define(roots)
        self.line(f"return {', '.join(self.bare(e) for e in roots)}")
        head = f"def {name}({', '.join(self.names[e] for e in leaves + same)}):"
        self.points.append("\n".join([head, *self.lines]) + "\n")
        self.names, self.lines, self.depth, self.count = known, lines, depth, count
        return Point(name, leaves, same, list(range(len(roots))))

    def parameter(self, e: Expression) -> str:
        """What a point's function calls a value that it is given."""
        if isinstance(e, Load | Old):
            return f"{'x' if isinstance(e, Load) else 'old'}{e.index}" if e not in self.names else self.names[e]
        return f"fold{self.folds.index(e)}" if isinstance(e, Fold) else self.names[e]

    def results(self, point: "Point", values: Sequence[str], suffix: str) -> list[str]:
        """The roots of a point whose leaves have these values; several results are named once."""
        if not point.name:
            return [k if isinstance(k, str) else values[k] for k in point.roots]
        call = f"{point.name}({', '.join([*values, *[self.names[e] for e in point.same]])})"
        if len(point.roots) == 1:
            return [call]
        names = [f"y{k}{suffix}" for k in point.roots]
        self.line(f"{', '.join(names)} = {call}")
        return names

    def one(self, point: "Point", folds: Sequence[Fold], elements: Sequence[tuple[int, Expression]]) -> None:
        """Load a point, compute, fold and store."""
        found = self.results(point, [self.dialect.load(self.place(self.operand(e)), e.dtype) for e in point.leaves], "")
        for e, text in zip(folds, found, strict=False):
            self.accumulate(e, text)
        for (k, _), text in zip(elements, found[len(folds) :], strict=True):
            self.line(f"{self.place(f'out{k}')} = {text}")

    def four(self, point: "Point", folds: Sequence[Fold], elements: Sequence[tuple[int, Expression]]) -> None:
        """The same for four neighbours."""
        load = self.load_below if self.form == "columns" else self.load_beside
        loads = [(e, load(e)) for e in point.leaves]
        found = [self.results(point, [self.dialect.load(x[k], e.dtype) for e, x in loads], f"_{k}") for k in range(4)]
        each = list(zip(*found, strict=True))
        for e, texts in zip(folds, each, strict=False):
            self.accumulate(e, self.folded(e, self.named(texts) if sum(map(len, texts)) > LONG else texts))
        for (k, _), texts in zip(elements, each[len(folds) :], strict=True):
            (self.store_below if self.form == "columns" else self.store_beside)(f"out{k}", texts)

    def load_beside(self, e: Expression) -> list[str]:
        """Four neighbours of a row, in one load where they lie side by side."""
        name, operand = f"{'x' if isinstance(e, Load) else 'old'}{e.index}", self.operand(e)
        if self.classes[operand][-1] != "1":
            self.line(f"{name} = {self.place(operand)}")
            return [name] * 4
        self.line(f"{name} = load4({self.address(operand)})")
        return [f"{name}[{k}]" for k in range(4)]

    def load_below(self, e: Expression) -> list[str]:
        """Four neighbours of a column: four loads on their way at once."""
        return self.below(self.operand(e))

    def store_beside(self, name: str, texts: Sequence[str]) -> None:
        """Four neighbours of a row, in one store."""
        line = f"store4({self.address(name)}, ({', '.join(texts)}))"
        if self.depth * 4 + len(line) <= WIDTH:
            self.line(line)
        else:
            for line in (f"store4({self.address(name)}, (", *[f"    {text}," for text in texts], "))"):
                self.line(line)

    def store_below(self, name: str, texts: Sequence[str]) -> None:
        """Four neighbours of a column."""
        for place, text in zip(self.below(name), texts, strict=True):
            self.line(f"{place} = {text}")

    def below(self, name: str) -> list[str]:
        """The places of four neighbours of a column."""
        i = f"i{self.axes - 1}"
        return [re.sub(rf"\b{i}\b", f"({i} + {k})" if k else i, self.place(name)) for k in range(4)]

    def named(self, texts: Sequence[str]) -> list[str]:
        """Names for long expressions."""
        for k, text in enumerate(texts):
            self.line(f"y_{k} = {text}")
        return [f"y_{k}" for k in range(len(texts))]

    def folded(self, fold: Fold, texts: Sequence[str]) -> str:
        """Four values as one, in pairs."""
        a, b, c, d = [f"i32({text})" if fold.dtype is bool_ else text for text in texts]
        symbol, name = fold.operator.symbol, fold.operator.name
        return f"({a} {symbol} {b}) {symbol} ({c} {symbol} {d})" if symbol else f"{name}({name}({a}, {b}), {name}({c}, {d}))"

    def accumulate(self, fold: Fold, x: str) -> None:
        """One more value of a fold."""
        name, operator = f"fold{self.folds.index(fold)}", fold.operator
        if operator.symbol is None:
            self.line(f"{name} = {operator.name}({name}, {x})")
        elif fold.dtype.is_integer or fold.dtype is bool_:
            self.line(f"{name} = {accumulator_of(fold.dtype)}({name} {operator.symbol} ({x}))")
        else:
            self.line(f"{name} {operator.symbol}= {x}")

    def start_of(self, fold: Fold) -> str:
        """The identity of a fold, as its accumulator holds it."""
        value = fold.operator.identity_in(fold.dtype)
        return f"i32({int(value)})" if fold.dtype is bool_ else literal(value, fold.dtype)

    def store_rows(self) -> list[str]:
        """The first of the threads that share a row stores what it folds to."""
        return [f"if is_row and cuda.threadIdx.{'x' if self.form == 'rows' else 'y'} == 0:"] if self.folds else []

    def park(self, sweep: int, folds: Sequence[Fold]) -> dict[int, Expression]:
        """Nothing waits in memory: arithmetic is cheaper than memory here."""
        return {}

    # Operands.

    def operand(self, e: Expression) -> str:
        """The name of what a leaf reads."""
        assert isinstance(e, Load | Old)
        return f"{'in' if isinstance(e, Load) else 'out'}{e.index}"

    def address(self, name: str) -> str:
        """An operand and the position in it, as two arguments."""
        return self.place(name)[:-1].replace("[", ", ", 1)

    def text(self, e: Expression) -> str:
        """An expression in the words of the kernel."""
        if e in self.names:
            return self.names[e]
        if isinstance(e, Apply) and e.operator is not None:
            inputs, name = [self.text(x) for x in e.inputs], e.operator.name
            if e.dtype is bool_ and name in ("invert", "abs"):
                return f"(not {inputs[0]})" if name == "invert" else inputs[0]
            if e.dtype.is_integer and name in BY_KIND:
                return f"{BY_KIND[name]}({', '.join(inputs)})"
            if e.dtype.is_integer and name in WRAPPING:
                text = super().text(e)
                return (
                    text if text.startswith(e.dtype.short) else f"{e.dtype.short}{text if text[0] == '(' else f'({text})'}"
                )
            if name == "invert":
                return f"(~{inputs[0]})"
        return super().text(e)


def storage_of(dtype: DType) -> str:
    """The type of an element in memory: a bool is a byte."""
    return "u8" if dtype is bool_ else dtype.short


def accumulator_of(dtype: DType) -> str:
    """The type that a fold adds up in: bools as integers, which shuffles know."""
    return "i32" if dtype is bool_ else dtype.short


class Point(NamedTuple):
    """The function of one point: its name, what it loads, what is the same along the row, what it gives.

    Where nothing is computed it has no name, and gives what is loaded, by number, or what has a name already.
    """

    name: str
    leaves: list[Expression]
    same: list[Expression]
    roots: list[int | str]


class Printed(NamedTuple):
    """A kernel as text, and what its launch must know."""

    text: str
    form: str  # points, rows or columns
    parameters: tuple[tuple[str, str], ...]  # names and types, in the order of the launch
    wide: tuple[str, ...]  # operands that are taken four elements at a time
    counted: int  # leading axes that blocks share out


@lru_cache(1024)
def printed(kernel: Kernel, rows: int, classes: tuple[str, ...]) -> Printed:
    """The text of a kernel."""
    source = CudaSource(kernel, rows, classes)
    wide = tuple(name for name, c in source.classes.items() if source.is_wide and c[-1] == "1")
    return Printed(source.emit(), source.form, tuple(source.parameters()), wide, source.counted)
