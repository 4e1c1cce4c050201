"""Pointwise template for operands with different contiguous axes, such as `x + y.T`: tiles are transposed in shared memory.

However the threads of a warp are arranged, one operand would be read with a stride. So a block computes SIDE x SIDE points.
First it copies the tile of each transposed operand to shared memory, along that operand's contiguous axis. Then, after a
barrier, it computes and stores along the last axis, along which the output is contiguous.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, IndexedAccess, IndexValue, Kernel, Load, LoopNest, ReduceExpr
from ...codegen.expression_printer import operand_name
from ...codegen.loop_emitter import replace_index
from ..intrinsics.base import PITCH
from .base import CudaSource
from .dialect import storage_of

SIDE = 64  # of a tile: points along each of its two axes
LANES = (8, 32)  # threads along x and y: a warp processes 4 rows of 8 groups of four, without bank conflicts
SHARED = 48 * 1024  # bytes of shared memory that a block may declare statically
MIN_TILED_SIZE = 16  # points along each axis; with fewer, most of a tile would be empty


def axis_across(kernel: Kernel, nest: LoopNest) -> int | None:
    """Return the axis along which most operands are contiguous that are not contiguous along the last axis, or None."""
    is_pointwise = not any(isinstance(e, ReduceExpr | IndexedAccess) for e in kernel.order) and not kernel.row_outputs
    if not is_pointwise or len(nest.sizes) < 2:
        return None
    loads = [
        c for c, e in zip(nest.stride_kinds[len(kernel.outputs) :], kernel.find_all(Load), strict=True) if type(e) is Load
    ]
    counts = [sum(c[axis] == "1" and c[-1] == "s" for c in loads) for axis in range(len(nest.sizes) - 1)]
    axis = max(range(len(counts)), key=counts.__getitem__)
    return axis if counts[axis] and min(nest.sizes[axis], nest.sizes[-1]) >= MIN_TILED_SIZE else None


class TileSource(CudaSource):
    """The text of a kernel over tiles of the axis `across` and the last one; `tiled` are the transposed operands."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], across: int) -> None:
        super().__init__(kernel, rows, classes)
        self.form, self.across, self.groups = "tiles", across, 1
        self.batch = [axis for axis in range(self.axes - 1) if axis != across]
        self.tiled: list[str] = []
        left = SHARED
        for e in [e for e in kernel.find_all(Load) if not isinstance(e, IndexValue)]:
            letters, nbytes = self.stride_kinds[f"in{e.index}"], SIDE * PITCH * e.dtype.itemsize
            if letters[across] == "1" and letters[-1] == "s" and nbytes <= left:
                self.tiled.append(f"in{e.index}")
                left -= nbytes
        direct = {c[-1] for name, c in self.stride_kinds.items() if name not in self.tiled and not name.startswith("base")}
        self.is_wide = "s" not in direct

    def integers(self) -> list[str]:
        """Return the names of the sizes and strides that the text reads."""
        sizes = [f"n{axis}" for axis in range(self.axes)]
        strides = [f"{name}_{axis}" for name, c in self.stride_kinds.items() for axis in range(self.axes) if c[axis] == "s"]
        return sizes + strides + ["is_wide"] * self.is_wide

    def emit(self) -> str:
        """Return the text of the kernel and of its device functions."""
        self.depth = 1
        types = {f"in{e.index}": storage_of(e.dtype) for e in self.kernel.find_all(Load)}
        for name in self.tiled:
            self.line(f"{self.tile(name)} = cuda.shared.array({SIDE * PITCH}, {types[name]})  # {SIDE} x {PITCH}")
        for line in self.head():
            self.line(line)
        for name in self.tiled:
            self.line(self.copied(name))
        self.line("cuda.syncthreads()")
        self.emit_pass([], list(enumerate(self.kernel.pointwise_outputs)), {})
        names = ", ".join(name for name, _ in self.parameters())
        kernel = f"def kernel({names}):\n" + "\n".join(self.lines) + "\n"
        return "\n\n".join([*self.points, kernel])

    def head(self) -> list[str]:
        """Return the lines that compute start and end of a block's tile. Bands are numbered through all matrices."""
        a, b = self.across, self.axes - 1
        first_b = f"{SIDE} * cuda.blockIdx.x"
        lines = ["band = cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y  # the grid has them along y and z"]
        if not self.batch:
            lines.append(f"first{a}, first{b} = {SIDE} * band, {first_b}  # where the tile begins")
            lines.append(f"end{a}, end{b} = min(first{a} + {SIDE}, n{a}), min(first{b} + {SIDE}, n{b})")
            return lines
        outer, *inner = self.batch
        lines.append(f"bands = (n{a} + {SIDE - 1}) // {SIDE}  # of one matrix")
        lines.append(f"first{a}, first{b} = {SIDE} * (band % bands), {first_b}  # where the tile begins")
        lines.append(f"{'row' if inner else f'i{outer}'} = band // bands")
        for axis in reversed(inner):
            lines.append(f"i{axis} = row % n{axis}")
            lines.append(f"{'row' if axis != inner[0] else f'i{outer}'} = row // n{axis}")
        lines.append(f"end{b} = min(first{b} + {SIDE}, n{b})")
        end = f"min(first{a} + {SIDE}, n{a})"
        lines.append(f"end{a} = {end} if i{outer} < n{outer} else first{a}  # past the last one is nothing")
        return lines

    def copied(self, name: str) -> str:
        """Return the line that copies the tile of an operand to shared memory."""
        a, b = self.across, self.axes - 1
        start = replace_index(replace_index(super().place(name), f"i{a}", f"first{a}"), f"i{b}", f"first{b}")[
            len(name) + 1 : -1
        ]
        sides = f"end{b} - first{b}, end{a} - first{a}"
        return f"copy_tile({self.tile(name)}, {name}, {start}, {name}_{b}, {sides}, {'is_wide' if self.is_wide else '0'})"

    def tile(self, name: str) -> str:
        """Return the name of the tile of an operand."""
        return f"tile{self.tiled.index(name)}"

    def passes(self) -> list[tuple[list[str], str]]:
        """Return the loops over the points of a tile: in groups of four, or one at a time."""
        a, b = self.across, self.axes - 1
        lanes, lines = LANES
        wide = [
            "if is_wide:",
            f"for k in range({SIDE // lines * (SIDE // (4 * lanes))}):",
            f"row = cuda.threadIdx.y + {lines} * (k // {SIDE // (4 * lanes)})",
            f"column = 4 * cuda.threadIdx.x + {4 * lanes} * (k % {SIDE // (4 * lanes)})",
        ]
        one = [
            f"thread = {lanes} * cuda.threadIdx.y + cuda.threadIdx.x",
            f"for row in range(thread // {SIDE}, {SIDE}, {lanes * lines // SIDE}):",
            f"column = thread % {SIDE}",
        ]
        inside = [f"i{a}, i{b} = first{a} + row, first{b} + column", f"if i{a} < end{a} and i{b} < end{b}:"]
        wide, one = [*wide, *inside], [*one, *inside]
        return [(wide, "i"), (["else:", *one], "")] if self.is_wide else [(one, "")]

    def place(self, name: str) -> str:
        """Return an operand's element at the current point: in its tile, if it has one."""
        return f"{self.tile(name)}[{PITCH} * column + row]" if name in self.tiled else super().place(name)

    def load_beside(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a row; in a tile they are PITCH apart."""
        operand = operand_name(e)
        if operand not in self.tiled:
            return super().load_beside(e, letter)
        name = f"x{operand.removeprefix('in')}"
        self.line(f"{name} = below4({self.tile(operand)}, {PITCH} * column + row)")
        return [f"{name}[{k}]" for k in range(4)]
