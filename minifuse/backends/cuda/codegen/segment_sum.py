"""Template for segment sums: a value is loaded only for the sum of its key, not once for each sum.

The gradient of a row gather with V rows, N keys and D columns has V * N * D points, of which only N * D add a value. If the
threads of a warp have adjacent columns of one row, each lane tests another key, and a vote returns which of the 32 keys
belong to the row. So a test of each lane decides 1024 points, and the loads of values are coalesced. If the threads share a
row (D = 1), each tests its own keys. Threads that share a sum add values in a fixed order, without atomics.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, Kernel, Load, ReduceExpr
from ....ir.segment_sum import SegmentSum
from ...codegen.loop_emitter import operand_name
from .rows_in_shared import RowSource

AT_ONCE = 2  # keys that a lane loads at once: a vote has 32 bits, and two votes fit in a 64-bit number


class KeyedSource(RowSource):
    """The text of a kernel that computes a segment sum."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str], found: SegmentSum) -> None:
        super().__init__(kernel, rows, classes, raws)
        self.found, self.is_wide = found, False
        loads = Kernel((found.key, found.position), ()).find_all(Load)
        self.has_votes = self.form == "columns" and all(self.stride_kinds[operand_name(e)][rows - 1] == "0" for e in loads)

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit the loop over the keys."""
        (fold,), last = folds, self.axes - 1
        i, n, way = f"i{last}", f"n{last}", "x" if self.form == "rows" else "y"
        self.line(f"fold0 = {self.start_of(fold)}")
        outer = [f"for i{a} in range(n{a}):" for a in range(self.rows, last)]
        is_own = f"{self.bare(self.found.key)} == {self.bare(self.found.position)}"
        if self.has_votes:
            with self.block(*outer, f"first = {32 * AT_ONCE} * cuda.threadIdx.y", f"while first < {n}:"):
                self.line(f"{i} = first + (cuda.threadIdx.x & 31)")
                for k in range(AT_ONCE):
                    self.line(f"own{k} = {i} < {n} and {is_own}")
                    self.line(f"{i} += 32")
                votes = [f"lanes_where(own{k})" + f" << {32 * k}" * bool(k) for k in range(AT_ONCE)]
                self.line(f"own = {' | '.join(votes)}  # a bit for each key, the same for all lanes")
                with self.block("while own != 0:"):
                    self.line(f"{i} = first + cuda.ffs(own) - 1")
                    self.line("own &= own - 1  # without its lowest bit")
                    self.add_up(fold)
                self.line(f"first += {32 * AT_ONCE} * cuda.blockDim.y")
        else:
            with self.block("if is_row:", *outer, f"{i} = cuda.threadIdx.{way}", f"while {i} < {n}:"):
                with self.block(f"if {is_own}:"):
                    self.add_up(fold)
                self.line(f"{i} += cuda.blockDim.{way}")
        self.line(f"fold0 = fold_along_{way}({self.operator_name(fold)}, fold0, parts0)")
        self.names[fold] = "fold0"

    def add_up(self, fold: ReduceExpr) -> None:
        """Emit the addition of the value that belongs to a key."""
        known = dict(self.names)
        self.define([self.found.value])
        self.accumulate(fold, self.bare(self.found.value))
        self.names = known
