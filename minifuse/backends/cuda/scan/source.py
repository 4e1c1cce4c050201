"""The texts of scan kernels: what the kernels for rows and for columns have in common.

A kernel reads each element of memory once and writes it once. A block has a tile of one or several lines in registers, and
goes on to the next tile of the same lines with the total so far, the carry. Nothing is combined with the identity of the
operator: a value without elements before it stays as it is. The prologue is computed between the loads of a tile and the
scan, the epilogue between the scan and the stores.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from ....ir.kernel_ir import Kernel, KernelParameter, Load
from ....ir.step_kernels import ScanKernel
from ...codegen.scan_nest import RESUME, SCAN, TOTALS, ScanPrinter
from ..codegen.dialect import CudaDialect, CudaPrinter, storage_of

WARP = 32


class ScanTile(NamedTuple):
    """The tile of a block: `warps` share each of its lines, and a thread has `items` elements of a line at a time.

    A block has `lines` lines, or groups of 32 lines if these lie side by side in memory. `blocks` is the minimum of blocks
    per multiprocessor.
    """

    warps: int
    items: int
    lines: int
    blocks: int = 2

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return WARP * self.warps * self.lines


class CudaScanForm(NamedTuple):
    """Describe what the text of a kernel depends on, besides the expressions.

    `kinds` are those of the operands' strides along a line: "1", "-1", "0", or "s" for any other. If lines lie side by side,
    `is_columns` is true and the kinds are those across the lines, along the last axis. Operands that are `wide` move in
    groups of four.
    """

    mode: str
    axes: int
    kinds: tuple[str, ...]
    is_columns: bool
    wide: tuple[bool, ...]
    tile: ScanTile


class CudaScanSource(ScanPrinter, CudaPrinter):
    """The text of a scan kernel under construction.

    Attributes
    ----------
    loaded : dict of str to str
        The texts of elements that are in registers, by the name of their array.
    """

    def __init__(self, kernel: ScanKernel, form: CudaScanForm) -> None:
        super().__init__(kernel, [e.dtype for e in kernel.states], CudaDialect.wrapping)
        self.form, self.tile = form, form.tile
        self.kind_of = dict(zip([*self.outputs, *self.inputs], form.kinds, strict=True))
        self.wide = {name for name, is_wide in zip([*self.outputs, *self.inputs], form.wide, strict=True) if is_wide}
        self.loaded: dict[str, str] = {}

    @cached_property
    def prologue_inputs(self) -> list[str]:
        """The arrays that the prologue reads."""
        return self.arrays(Kernel(self.scan.states, ()).find_all(Load))

    @cached_property
    def epilogue_inputs(self) -> list[str]:
        """The arrays that the epilogue reads."""
        return self.arrays(sorted((e for e in self.epilogue_values() if isinstance(e, Load)), key=lambda e: e.index))

    def arrays(self, loads: Sequence[Load]) -> list[str]:
        """Return the names of the arrays of some loads: not of index values."""
        return [name for e in loads if (name := f"in{e.index}") not in self.index_values]

    def array_element(self, e: Load) -> str:
        """Return the text of an element: in a register, if it is loaded, or in memory."""
        name = f"in{e.index}"
        return CudaDialect().load(self.loaded.get(name) or f"{name}[{self.place(name)}]", e.dtype)

    def each(self, prefix: str, index: str = "") -> str:
        """Return the names of all states: x0[i], x1[i]."""
        return ", ".join(f"{prefix}{k}{index}" for k in range(len(self.states)))

    def combine(self, target: str, a: str, b: str) -> None:
        """Emit the combination of two values, each the names of all states."""
        self.line(f"{target} = {self.combine_name}({a}, {b})")

    def parameters(self) -> list[tuple[str, str]]:
        """Return the names and types of the arguments."""
        operands = [*self.outputs, *self.inputs]
        pointers = [
            (name, "i64" if name in self.index_values else f"*{storage_of(dtype)}") for name, dtype in self.dtypes.items()
        ]
        if self.form.mode in (TOTALS, RESUME):
            pointers += [(f"total{k}", f"*{storage_of(dtype)}") for k, dtype in enumerate(self.states)]
        sizes = ["n", "chunks", "length", *[f"n{a}" for a in range(self.form.axes)]]
        strides = [f"{name}_step" for name in operands]
        strides += [f"{name}_{a}" for name in operands for a in range(self.form.axes)]
        numbers = [(f"p{p.index}", storage_of(p.dtype)) for p in self.scan.find_all(KernelParameter)]
        return [*pointers, *[(name, "i64") for name in (*sizes, *strides)], *numbers]

    def emit(self) -> str:
        """Return the text."""
        functions = [line for function in self.functions() for line in (*function, "", "")]
        self.declare()
        self.locate()
        self.loop()
        names = ", ".join(name for name, _ in self.parameters())
        return "\n".join([*functions, f"def kernel({names}):", *self.lines]) + "\n"

    def start_tiles(self) -> None:
        """Emit what precedes the first tile: the total before it, and the slot of exchanges between warps."""
        self.start_carry()
        if self.tile.warps > 1:
            self.line("slot = 0  # of two, so that one barrier a tile is enough")

    def loop(self) -> None:
        """Emit the loop over the tiles of a line, or of a chunk of it."""
        self.start_tiles()
        self.before_tiles()
        with self.block("while first < end:"):
            self.load_tile()
            self.scan_tile()
            if self.form.mode != TOTALS:
                self.store_tile()
            self.line(f"first += {self.tile_length}")
            if self.tile.warps > 1:
                self.line("slot = 1 - slot")
        if self.form.mode == TOTALS:
            self.store_totals()

    @property
    def tile_length(self) -> int:
        """Return the number of elements of a line in a tile."""
        raise NotImplementedError

    def declare(self) -> None:
        """Emit the arrays of a thread and of a block."""
        raise NotImplementedError

    def locate(self) -> None:
        """Emit the line of a thread and its chunk, from `first` to `end`."""
        raise NotImplementedError

    def before_tiles(self) -> None:
        """Emit what precedes the loop over tiles."""

    def load_tile(self) -> None:
        """Emit the loads of a tile."""
        raise NotImplementedError

    def scan_tile(self) -> None:
        """Emit the scan of a tile."""
        raise NotImplementedError

    def store_tile(self) -> None:
        """Emit the combination of a thread's elements with all before them, and the stores."""
        raise NotImplementedError

    def store_totals(self) -> None:
        """Emit the store of the total of a chunk."""
        raise NotImplementedError

    def locate_line(self, axes: int) -> None:
        """Emit the index along each axis of lines, and the position of the line in each operand."""
        is_whole = self.form.mode == SCAN
        self.line("line = item" if is_whole else "line = item // chunks")
        if not is_whole:
            self.line("chunk = item - line * chunks")
        rest = "line"
        for a in reversed(range(axes)):
            self.line(f"i{a} = {rest} % n{a}" if a else f"i0 = {rest}")
            if a:
                self.line(f"rest = {rest} // n{a}")
            rest = "rest"
        for name in (*self.outputs, *self.inputs):
            terms = [f"i{a} * {name}_{a}" for a in range(axes)]
            self.line(f"{name}_at = {' + '.join(terms) or '0'}")
        self.line("first = 0" if is_whole else "first = chunk * length")
        self.line("end = n" if is_whole else "end = min(first + length, n)")

    def total_place(self) -> str:
        """Return the position of the first chunk of a line among the totals."""
        return "line * chunks"

    def start_carry(self) -> None:
        """Emit the total of all earlier chunks, of which there are none in a scan of whole lines."""
        for k, dtype in enumerate(self.states):
            self.line(f"carry{k} = {dtype.short}(0)")
        self.line("has_carry = False")
        if self.form.mode == RESUME:
            self.combine_totals()

    def combine_totals(self) -> None:
        """Emit the combination of the totals of all chunks before."""
        with self.block("for c in range(chunk):"):
            self.add_to_carry(self.each("total", f"[{self.total_place()} + c]"))

    def position(self, name: str, i: str) -> str:
        """Return the position of element i of the line."""
        kind = self.kind_of[name]
        return f"{name}_at" + {"0": "", "1": f" + {i}", "-1": f" - {i}", "s": f" + {i} * {name}_step"}[kind]

    def shuffle(self, target: str, source: str, call: str) -> None:
        """Emit the exchange of all states of a value between lanes."""
        for k in range(len(self.states)):
            self.line(f"{target}{k} = {call.format(f'{source}{k}')}")

    def add_to_carry(self, value: str) -> None:
        """Emit the combination of the carry with a value."""
        with self.block("if has_carry:"):
            self.combine(self.each("carry"), self.each("carry"), value)
        with self.block("else:"):
            self.line(f"{self.each('carry')} = {value}")
        self.line("has_carry = True")

    def exchange_totals(self, total: str, pitch: int, condition: str) -> None:
        """Emit the exchange of the warps' totals: `prefix` is that of the warps and tiles before, `carry` that of all.

        The totals of a line are `pitch` elements apart, from `place` on. Threads that meet the condition store one.
        """
        if self.tile.warps == 1:
            self.start_prefix()
            self.add_to_carry(total)
            return
        step = f" * {pitch}" * (pitch > 1)
        with self.block(*[condition] * bool(condition)):
            self.line(f"{self.each('parts', f'[place + warp{step}]')} = {total}")
        self.line("cuda.syncthreads()")
        self.start_prefix()
        with self.block(f"for w in range({self.tile.warps}):"):
            with self.block("if w == warp:"):
                self.start_prefix()
            self.add_to_carry(self.each("parts", f"[place + w{step}]"))

    def start_prefix(self) -> None:
        """Emit the prefix, which is the carry so far."""
        self.line(f"{self.each('prefix')} = {self.each('carry')}")
        self.line("has_prefix = has_carry")
