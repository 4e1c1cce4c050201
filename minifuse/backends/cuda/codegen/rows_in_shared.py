"""Template for reductions along rows that caches a row in shared memory for several passes.

Operands that several passes load are first copied there. An expensive value that a later pass needs again, such as the
exponential of a softmax, replaces an operand that is no longer needed. The launch argument `held` is the distance of two
rows in shared memory, in elements, or 0 if rows do not fit. If it is 0, each pass loads from global memory, and such values
are stored in the memory of an output.
"""

from collections import Counter
from collections.abc import Sequence

from ....core.dtypes import bool_
from ....core.interning import toposort
from ....ir.kernel_ir import Expression, IndexedLoad, IndexValue, Kernel, Load, ReadOutput, ReduceExpr
from ....ir.segment_sum import match_masked_sum
from ...codegen.expression_printer import operand_name
from ...codegen.gpu_schedule import MAX_REPEATED_COST
from ...codegen.loop_emitter import LoopEmitter
from .base import CudaSource
from .dialect import storage_of


class RowSource(CudaSource):
    """The text of a kernel that caches rows; without reductions along rows, it is the text of `CudaSource`."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str] = ()) -> None:
        super().__init__(kernel, rows, classes, raws)
        # an output that is read might have been overwritten before a selected element is loaded
        if self.form == "rows" and self.axes == self.rows + 1 and not kernel.find_all(ReadOutput):
            found = {e: match_masked_sum(e) for e in self.reductions}
            self.picks = {e: x for e, x in found.items() if x and self.counts_along(x.position) and not self.varies[x.key]}
        self.set_levels()
        self.held = {e: f"row{k}" for k, e in enumerate(self.loaded_again())}
        self.has_pairs = False  # True if the pass loads two groups of four before it waits
        self.places: dict[Expression, str] = {}  # stored values -> cached operands that they replace

    def counts_along(self, position: IndexValue) -> bool:
        """Return whether an index value counts along the row, from the same number in each row."""
        return (
            not self.stride_kinds[operand_name(position)].removesuffix("1").strip("0")
            and self.last_axis_stride_kind(position) == "1"
        )

    def set_levels(self) -> None:
        """Set the number of passes that must end before each value can be computed. Selecting an element needs no pass."""
        for e in self.order:
            self.pass_index[e] = max((self.pass_index[x] for x in e.inputs), default=0)
            if isinstance(e, ReduceExpr):
                self.pass_index[e] = max(self.pass_index[e], 1) if e in self.picks else self.pass_index[e] + 1

    def loaded_again(self) -> list[Expression]:
        """Return the operands that several passes along a row load, the largest elements first."""
        if self.form != "rows" or self.axes > self.rows + 1 or self.kernel.effects:
            return []
        sweeps = Counter(e for sweep in range(max(self.pass_index.values()) + 1) for e in self.needed(sweep, sweep))
        found = [e for e in sweeps if self.is_leaf(e) and sweeps[e] > 1 and not self.pass_index[e]]
        beside = [e for e in found if self.last_axis_stride_kind(e) == "1"]
        return sorted(beside, key=lambda e: -e.dtype.itemsize)

    def needed(self, first: int, last: int, known: Expression | None = None) -> list[Expression]:
        """Return the values along the row that passes `first` to `last` need, without the inputs of `known`."""
        roots = [e.inputs[0] for e in self.reductions if first < self.pass_index[e] <= last + 1 and e not in self.picks]
        roots += [e for e in self.kernel.pointwise_outputs if first <= self.pass_index[e] <= last]
        return toposort(roots, lambda e: e.inputs if self.varies[e] and e is not known else ())

    def integers(self) -> list[str]:
        """Return the names of sizes and strides, with `held` before the last one, which depends on addresses."""
        found = super().integers()
        end = len(found) - self.is_wide
        return [*found[:end], *["held"] * bool(self.held), *found[end:]]

    def hold(self) -> None:
        """Emit copies of the operands that several passes load: all rows of one operand, then those of the next."""
        if not self.held:
            return
        last, before, fours = f"n{self.axes - 1}", 0, "fours" if self.is_wide else "0"
        self.line("held = held if is_row else 0  # elements of each row that wait in shared memory")
        for e, row in self.held.items():
            source, start = self.row_of(self.element_read(e))
            slot = f"({before // e.dtype.itemsize} * cuda.blockDim.y + cuda.threadIdx.y)" if before else "cuda.threadIdx.y"
            self.line(f"{row} = hold_{storage_of(e.dtype)}({source}, {start}, {slot} * held, held, {fours}, {last})")
            before += e.dtype.itemsize
        self.line("wait_for_copies()")

    @staticmethod
    def is_leaf(e: Expression) -> bool:
        """Return whether a value is loaded from memory."""
        return isinstance(e, Load | IndexedLoad) and not isinstance(e, IndexValue)

    def row_of(self, place: str) -> tuple[str, str]:
        """Return the operand of a contiguous place, and the index at which its row starts."""
        name, _, place = self.address(place).partition(", ")
        start, _, _ = place.rpartition(f"i{self.axes - 1}")
        return name, start.removesuffix(" + ") or "0"

    # Values that are stored for later passes.

    def spill(self, sweep: int, folds: Sequence[ReduceExpr]) -> dict[int, Expression]:
        """Choose expensive values that replace a cached load; without a free one, arithmetic is cheaper than memory."""
        parked = LoopEmitter.spill(self, sweep, folds) if self.held else {}
        for k, e in list(parked.items()):
            later = self.needed(sweep + 1, max(self.pass_index.values()), e)
            free = [
                x for x in self.held if x.dtype is e.dtype and x not in later and self.held[x] not in self.places.values()
            ]
            if not free or e.dtype is bool_ or self.stride_kinds[f"out{k}"][-1] != "1":
                del parked[k], self.spilled[k]
            else:
                self.places[e] = self.held[free[0]]
        return parked

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one pass along the row, if needed, and then the reductions that select one element."""
        walked = [e for e in folds if e not in self.picks]
        if walked or elements or not folds:
            self.walk(walked, elements, parked)
        for e in folds:
            if e in self.picks:
                self.pick(e)

    def pick(self, fold: ReduceExpr) -> None:
        """Emit the load of the element that a reduction selects, or 0 if there is none.

        It is loaded from memory, since another thread may have cached it.
        """
        (key, position, value), name, last = self.picks[fold], f"fold{self.reductions.index(fold)}", self.axes - 1
        known = dict(self.names), self.held, self.kept
        self.held, self.kept = {}, {}
        self.line(f"{name} = {self.start_of(fold)}")
        self.line(f"i{last} = {self.text(key)} - {operand_name(position)}")
        with self.block(f"if 0 <= i{last} < n{last}:"):
            self.define([value])
            self.line(f"{name} = {self.bare(value)}")
        self.names, self.held, self.kept = known
        self.names[fold] = name

    def walk(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one pass along the row; later passes load the values that it stores."""
        for k, e in parked.items():
            name, start = self.row_of(self.place(f"out{k}"))
            self.line(f"{self.name_of_kept(e)} = {self.places[e]} if held else at({name}, {start})")
        inside = toposort([e.inputs[0] for e in folds] + [e for _, e in elements], self.inputs_of)
        loads = [e for e in inside if self.is_leaf(e) and e not in self.names]
        self.has_pairs = (
            any(e not in self.held and self.last_axis_stride_kind(e) == "1" for e in loads)
            and self.kernel.cost() <= MAX_REPEATED_COST
        )
        super().emit_pass(folds, elements, parked)
        self.kept |= {e: self.name_of_kept(e) for e in parked.values()}

    def passes(self) -> list[tuple[list[str], str]]:
        """Return the loops of a pass, with two groups of four at once if the pass waits for memory."""
        found = super().passes()
        if self.form != "rows" or not self.is_wide or not self.has_pairs:
            return found
        i, j = f"i{self.axes - 1}", f"j{self.axes - 1}"
        start = [f"{i} = 4 * cuda.threadIdx.x", f"{j} = {i} + 4 * cuda.blockDim.x"]
        both = [*start, f"while {j} < fours:  # both groups are on their way at once"]
        return [(both, "ij"), ([f"if {i} < fours:"], "i"), found[-1]]

    def name_of_kept(self, e: Expression) -> str:
        """Return the name of the array in which a value is stored."""
        return f"kept{list(self.places).index(e)}"

    def keep(self, e: Expression, texts: Sequence[str], letter: str) -> Sequence[str]:
        """Emit stores of one value, or of four, for later passes, and return their names."""
        place, last = self.name_of_kept(e), self.axes - 1
        names = [f"{self.parameter_of(place)}_{k}" for k in range(len(texts))]  # of one group, before those of the next
        for name, text in zip(names, texts, strict=True):
            self.line(f"{name} = {text}")
        self.line(f"store4({place}, {letter}{last}, ({', '.join(names)}))" if letter else f"{place}[i{last}] = {names[0]}")
        return names

    def parameter_of(self, place: str) -> str:
        """Return the name, as a parameter of a point's function, of a value that is stored in an array."""
        return place.replace("kept", "k")

    # Expressions.

    def parameter(self, e: Expression) -> str:
        """Return the name of a value as a parameter of a point's function."""
        return self.parameter_of(self.kept[e]) if e in self.kept else super().parameter(e)

    def load_beside(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a row, from the cache if they are in it."""
        place = self.kept.get(e) or self.held.get(e)
        if place is None:
            return super().load_beside(e, letter)
        name = self.parameter(e) + f"_{letter}" * (letter != "i")
        self.line(f"{name} = load4({place}, {letter}{self.axes - 1})")
        return [f"{name}[{k}]" for k in range(4)]

    def text(self, e: Expression) -> str:
        """Return the text of an expression."""
        place = self.kept.get(e) or self.held.get(e)
        if place is None or e in self.names:
            return super().text(e)
        return self.dialect.load(f"{place}[i{self.axes - 1}]", e.dtype)
