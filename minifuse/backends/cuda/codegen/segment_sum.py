"""Template for segment sums: each value is loaded only for the sum that it belongs to, not once for every sum.

The gradient of a row gather with V rows, N keys and D columns has V * N * D points, of which only N * D add a value. If the
threads of a warp have adjacent columns of one row, each lane tests a different key, and a vote returns which of the 32
keys belong to the row. So one test per lane decides 1024 points, and the loads of values are coalesced. If the threads have
one row (D = 1), each thread tests different keys. Threads that share a sum add values in a fixed order, without atomics.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, Kernel, Load, ReduceExpr
from ....ir.segment_sum import SegmentSum
from ...codegen.expression_printer import operand_name
from .rows_in_shared import RowSource

KEYS_PER_LANE = 2  # keys that a lane loads in one iteration: a vote has 32 bits, and two votes fit in a 64-bit number


class SegmentSumSource(RowSource):
    """The template for the text of a kernel that computes a segment sum."""

    def __init__(
        self,
        kernel: Kernel,
        rows: int,
        stride_kinds: Sequence[str],
        indexed_operands: Sequence[str],
        segment_sum: SegmentSum,
    ) -> None:
        super().__init__(kernel, rows, stride_kinds, indexed_operands)
        self.segment_sum, self.is_wide = segment_sum, False
        loads = Kernel((segment_sum.key, segment_sum.position), ()).find_all(Load)
        self.has_votes = self.form == "columns" and all(self.stride_kinds[operand_name(e)][rows - 1] == "0" for e in loads)

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit the loop over the keys. `elements` (pointwise outputs) and `parked` (spilled values) are empty here."""
        (fold,), last = folds, self.axes - 1
        i, n, thread_axis = f"i{last}", f"n{last}", "x" if self.form == "rows" else "y"
        self.line(f"fold0 = {self.start_of(fold)}")
        outer = [f"for i{a} in range(n{a}):" for a in range(self.rows, last)]
        is_match = f"{self.bare(self.segment_sum.key)} == {self.bare(self.segment_sum.position)}"
        if self.has_votes:
            with self.block(*outer, f"first = {32 * KEYS_PER_LANE} * cuda.threadIdx.y", f"while first < {n}:"):
                self.line(f"{i} = first + (cuda.threadIdx.x & 31)")
                for k in range(KEYS_PER_LANE):
                    self.line(f"own{k} = {i} < {n} and {is_match}")
                    self.line(f"{i} += 32")
                votes = [f"lanes_where(own{k})" + f" << {32 * k}" * bool(k) for k in range(KEYS_PER_LANE)]
                self.line(f"own = {' | '.join(votes)}  # a bit for each key, the same for all lanes")
                with self.block("while own != 0:"):
                    self.line(f"{i} = first + cuda.ffs(own) - 1")
                    self.line("own &= own - 1  # without its lowest bit")
                    self.add_up(fold)
                self.line(f"first += {32 * KEYS_PER_LANE} * cuda.blockDim.y")
        else:
            with self.block("if is_row:", *outer, f"{i} = cuda.threadIdx.{thread_axis}", f"while {i} < {n}:"):
                with self.block(f"if {is_match}:"):
                    self.add_up(fold)
                self.line(f"{i} += cuda.blockDim.{thread_axis}")
        self.line(f"fold0 = fold_along_{thread_axis}({self.operator_name(fold)}, fold0, parts0)")
        self.names[fold] = "fold0"

    def add_up(self, fold: ReduceExpr) -> None:
        """Emit the load and the addition of the value of a key."""
        outer_names = dict(self.names)
        self.define([self.segment_sum.value])
        self.accumulate(fold, self.bare(self.segment_sum.value))
        self.names = outer_names
