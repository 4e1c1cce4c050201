"""Segment sums by bands of rows: a thread block computes ROWS sums and tests each key once for all of them.

For V rows and N keys, this takes V * N / ROWS tests instead of V * N. The warps of a block share out the keys. Each warp
writes the indices of its keys that belong to the band to shared memory, in order (`notes`). The notes are sorted by row, and
the threads add the values, one thread per column. So values are added in a fixed order, without atomics. Each sum is stored
once, unless the memory for notes is full before all keys are tested.
"""

from collections.abc import Sequence

from ....core.dtypes import bool_
from ....ir.kernel_ir import Kernel, LoopNest
from ....ir.segment_sum import SegmentSum
from ...codegen.loop_emitter import replace_index
from .segment_sum import SegmentSumSource

ROWS = 16  # rows of a band
NOTES = 2048  # notes that fit in the shared memory of a block
KEYS_PER_LANE = 4  # keys that a lane loads before it waits for the first of them
MIN_BLOCKED_ROWS = 2048  # with fewer rows, some multiprocessors would have no band


def is_banded(kernel: Kernel, nest: LoopNest, own: int) -> bool:
    """Return whether a segment sum is split into bands: its axes are rows, columns and keys, and there are many rows."""
    is_plain = nest.row_axes == 2 and len(nest.sizes) == 3 and own == 0 and nest.sizes[0] >= MIN_BLOCKED_ROWS
    return is_plain and kernel.outputs[0].dtype is not bool_


class BandSource(SegmentSumSource):
    """The text of a kernel that computes a segment sum band by band."""

    def __init__(
        self,
        kernel: Kernel,
        rows: int,
        stride_kinds: Sequence[str],
        indexed_operands: Sequence[str],
        segment_sum: SegmentSum,
    ) -> None:
        super().__init__(kernel, rows, stride_kinds, indexed_operands, segment_sum)
        self.form = "bands"

    def integers(self) -> list[str]:
        """Return the names of the sizes and strides that the text reads."""
        strides = [f"{name}_{axis}" for name, c in self.stride_kinds.items() for axis in range(self.axes) if c[axis] == "s"]
        return ["n0", "n1", "n2", *strides]

    def emit(self) -> str:
        """Return the text of the kernel."""
        (fold,) = self.reductions
        self.depth = 1
        self.line(f"notes = cuda.shared.array({NOTES}, i64)  # {ROWS} * the place of a key + its row in the band")
        self.line(f"places = cuda.shared.array({NOTES}, i64)  # those of the keys of each row, from `begins` on")
        self.line(f"begins, counts = cuda.shared.array({ROWS + 1}, i64), cuda.shared.array(32, i64)")
        self.line("warp, warps, lane = cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5, cuda.threadIdx.x & 31")
        self.line(f"first0 = {ROWS} * (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y)  # where the band begins")
        self.line(f"share, room = (n2 + warps - 1) // warps, {NOTES} // warps  # keys, and notes, of each warp")
        self.line("place, end = warp * share, min((warp + 1) * share, n2)")
        self.line("is_first = True")
        with self.block("while cuda.syncthreads_or(i32(is_first or place < end)):"):
            self.note()
            self.line(f"sort_notes(notes, room, counts, begins, places, {ROWS})")
            self.add_noted(self.start_of(fold))
            self.line("is_first = False")
        names = ", ".join(name for name, _ in self.parameters())
        return f"def kernel({names}):\n" + "\n".join(self.lines) + "\n"

    def note(self) -> None:
        """Emit the loop in which a warp tests its keys, until all are tested or its part of the notes is full."""
        key, position = self.bare(self.segment_sum.key), replace_index(self.text(self.segment_sum.position), "i0", "first0")
        self.line("count = 0")
        with self.block(f"while place < end and count <= room - {32 * KEYS_PER_LANE}:"):
            for k in range(KEYS_PER_LANE):  # all loads, before their results are used
                self.line(f"i2 = min(place + {f'{32 * k} + ' * bool(k)}lane, end - 1)")
                self.line(f"row{k} = {key} - {position}")
            is_near = " or ".join(f"row{k} & {-ROWS} == 0" for k in range(KEYS_PER_LANE))
            with self.block(f"if lanes_where({is_near}) != 0:  # a key of the band"):
                for k in range(KEYS_PER_LANE):
                    at = f"place + {32 * k}" if k else "place"
                    self.line(f"count = note_own(notes, room * warp, count, {at}, end, row{k}, {ROWS})")
            self.line(f"place += {32 * KEYS_PER_LANE}")
        with self.block("if lane == 0:"):
            self.line("counts[warp] = count")

    def add_noted(self, start: str) -> None:
        """Emit the sums over the noted values of the band, row by row."""
        out = self.place("out0")
        rows = [
            f"for i0 in range(first0, min(first0 + {ROWS}, n0)):",
            "for i1 in range(cuda.threadIdx.x, n1, cuda.blockDim.x):",
        ]
        with self.block(*rows):
            self.line(f"fold0 = {start} if is_first else {out}")
            with self.block("for k in range(begins[i0 - first0], begins[i0 - first0 + 1]):"):
                self.line("i2 = places[k]")
                self.add_up(self.reductions[0])
            self.line(f"{out} = fold0")
