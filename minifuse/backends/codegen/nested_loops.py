"""Emit the loops of a kernel with nested reductions: each value in the outermost loops in which its axes are bound.

A reduction is a loop with an accumulator, inside the loops over the axes along which its value varies. So a sum that the
whole row needs is computed once per row, and one that each element needs is computed inside the loop over the elements. A
short last row axis may be moved into the loops of the reductions, which then have one accumulator for each of its indices:
a reduction that does not vary along it is computed once for all of them.

Compilers vectorize the innermost loop. If a nested reduction is short, its loop is unrolled, and the loop around it is the
innermost one. Longer ones are computed in a loop of their own, for a block of points: then both loops are vectorized. If a
row is at most one block, its nested reductions are computed once, for all passes over the row.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod
from typing import NamedTuple

from ...core.interning import toposort
from ...ir.kernel_ir import Expression, IndexedLoad, Kernel, Load, LoopNest, Op, ReduceExpr, distinct_reductions
from .expression_printer import Dialect, operand_name
from .loop_emitter import COLUMNS_PER_BLOCK, LoopEmitter
from .short_axes import MAX_LITERAL_STRIDE

MAX_UNROLLED = 16  # indices of a row axis that may be moved into the loops of the reductions
MAX_LITERAL_SIZE = 8  # elements of a nested reduction that is unrolled; larger sizes are arguments of the launch

Axes = frozenset[int]  # axes of the loops


class NestedLoops(NamedTuple):
    """The loops of a kernel with nested reductions, as far as its text depends on them."""

    rows: int
    """The number of leading axes that no reduction reduces."""
    stride_kinds: tuple[str, ...]
    """The stride kinds of each output and input: one letter for each axis."""
    reduced_axes: tuple[tuple[int, ...], ...]
    """The axes of each reduction of the kernel, in the order of `distinct_reductions`."""
    sizes: tuple[int, ...]
    """The size of each axis; 0 if it is not in the text."""
    strides: tuple[tuple[int, ...], ...]
    """The strides of each output and input; 0 for those that are not in the text."""
    cached_axis: int
    """The axis of the row if the row is at most one block, else -1."""

    @classmethod
    def of(cls, kernel: Kernel, nest: LoopNest, dims: tuple[int, ...]) -> "NestedLoops":
        """Describe the loops of a step. Sizes of inner axes, of a short last row axis, and small strides are in the text.

        With such constants, a compiler unrolls the inner loops, and vectorizes the loops around them.
        """
        rows = nest.row_axes
        axes = tuple(nest.reduced_axes(e.reduced(dims)) for e in distinct_reductions(kernel.find_all(ReduceExpr)))
        outer = {*nest.reduced_axes(kernel.outer_dims(dims))}
        inner = [k for k in range(rows, len(nest.sizes)) if k not in outer]
        last = [rows - 1] * (rows > 1 and 0 < nest.sizes[rows - 1] <= MAX_UNROLLED)
        limits = dict.fromkeys(inner, MAX_LITERAL_SIZE) | dict.fromkeys(last, MAX_UNROLLED)
        sizes = tuple(n if n <= limits.get(k, 0) else 0 for k, n in enumerate(nest.sizes))
        strides = tuple(
            tuple(s if k >= rows and abs(s) <= MAX_LITERAL_STRIDE else 0 for k, s in enumerate(own)) for own in nest.strides
        )
        is_cached = len(outer) == 1 and nest.sizes[min(outer)] <= COLUMNS_PER_BLOCK
        return cls(rows, nest.stride_kinds, axes, sizes, strides, min(outer) if is_cached else -1)


class NestedLoopEmitter(LoopEmitter):
    """The body of a kernel with nested reductions, under construction.

    Attributes
    ----------
    axes_of : dict of ReduceExpr to Axes
        The axes that each reduction reduces.
    varying : dict of Expression to Axes
        The axes along which each value varies.
    unrolled : Axes
        The last row axis, if it is moved into the loops of the reductions.
    """

    def __init__(self, kernel: Kernel, loops: NestedLoops, dialect: Dialect, raws: Sequence[str] = ()) -> None:
        super().__init__(kernel, loops.rows, loops.stride_kinds, dialect, raws)
        self.is_columns, self.loop_sizes, self.cached_axis = False, loops.sizes, loops.cached_axis
        self.row_bound: Axes = frozenset()
        axes_of = zip(self.reductions, map(frozenset, loops.reduced_axes), strict=True)
        self.axes_of = {x: axes for e, axes in axes_of for x in e.states}
        self.varying: dict[Expression, Axes] = {}
        for e in self.order:
            own = self.stride_kinds[operand_name(e)] if isinstance(e, Load) else ""
            found = frozenset(axis for axis, kind in enumerate(own) if kind != "0").union(
                *[self.varying[x] for x in e.inputs]
            )
            self.varying[e] = found - self.axes_of[e] if isinstance(e, ReduceExpr) else found
        last = frozenset({loops.rows - 1})
        is_short = loops.rows > 1 and loops.sizes[loops.rows - 1] > 0
        self.unrolled: Axes = last if is_short and self.is_shared_along(last) else frozenset()
        self.literals |= {f"n{axis}": n for axis, n in enumerate(loops.sizes) if n}
        for (name, kinds), own_strides in zip(self.stride_kinds.items(), loops.strides, strict=True):
            pairs = enumerate(zip(kinds, own_strides, strict=True))
            self.literals |= {f"{name}_{axis}": stride for axis, (kind, stride) in pairs if kind == "s" and stride}

    def is_shared_along(self, axes: Axes) -> bool:
        """Return whether a reduction that varies along some axes contains one that does not: it would be repeated."""
        outer = [e for e in self.reductions if self.varying[e] & axes]
        return any(not self.varying[x] & axes for e in outer for x in self.inner_reductions(e.inputs))

    def inner_reductions(self, roots: Iterable[Expression]) -> list[ReduceExpr]:
        """Return the reductions that some values are computed from, and that are not in variables, inner ones first."""
        order = toposort(roots, lambda e: () if e in self.names else e.inputs)
        return [e for e in order if isinstance(e, ReduceExpr) and e not in self.names]

    # Loops.

    def emit(self) -> str:
        """Return the text of the body."""
        rows = [axis for axis in range(self.rows) if axis not in self.unrolled]
        self.row_bound = frozenset(rows)
        with self.block(*[line for axis in rows for line in self.dialect.loop(axis, True, self)]):
            self.fill_row_cache()
            self.emit_row(self.row_bound)
        return "\n".join(self.lines) + "\n"

    def emit_row(self, bound: Axes) -> None:
        """Emit one row: its reductions, then the stores of its outputs."""
        first_row = len(self.kernel.pointwise_outputs)
        outputs = list(enumerate(self.kernel.outputs))
        self.emit_reductions([e for _, e in outputs], bound)
        self.emit_stores_along((), outputs[first_row:], bound)
        by_axes: dict[tuple[int, ...], list[tuple[int, Expression]]] = {}
        for k, e in outputs[:first_row]:
            kinds = self.stride_kinds[f"out{k}"]
            by_axes.setdefault(tuple(a for a in range(self.rows, self.axes) if kinds[a] != "0"), []).append((k, e))
        for axes, stored in by_axes.items():
            self.emit_stores_along(axes, stored, bound)

    def emit_stores_along(self, axes: Sequence[int], stored: Sequence[tuple[int, Expression]], bound: Axes) -> None:
        """Emit the loops over some reduced axes that store outputs."""
        values = [e for _, e in stored]
        names_before = dict(self.names)
        self.hoist(values, bound)
        with self.pass_loops(axes, values, bound):
            self.emit_reductions(values, bound.union(axes))
            self.hoist(values, bound.union(axes))
            with self.loops(self.unrolled if stored else ()):
                self.define(values)
                for k, e in stored:
                    self.store(k, e)
        self.names = names_before

    def emit_reductions(self, roots: Sequence[Expression], bound: Axes) -> None:
        """Emit all reductions that some values are computed from, and that do not vary along axes of inner loops."""
        needed = distinct_reductions(self.inner_reductions(roots))
        ready = [e for e in needed if self.varying[e] <= bound | self.unrolled]
        levels: dict[ReduceExpr, int] = {}
        for e in ready:
            level = 1 + max((levels.get(x, -1) for x in self.inner_reductions(e.inputs)), default=-1)
            levels |= dict.fromkeys(e.states, level)
        groups: dict[tuple[int, tuple[int, ...]], list[ReduceExpr]] = {}
        for e in ready:
            groups.setdefault((levels[e], tuple(sorted(self.axes_of[e]))), []).append(e)
        for (_, axes), group in sorted(groups.items()):
            self.emit_loop(group, axes, bound)

    def emit_loop(self, group: Sequence[ReduceExpr], axes: Sequence[int], bound: Axes) -> None:
        """Emit the loop of reductions that reduce the same axes."""
        repeated = [e for e in group if self.varying[e] & self.unrolled]
        totals = self.state_names(group)
        values = [x for e in group for x in e.inputs]
        self.hoist(values, bound)
        in_blocks = [x for e in repeated for x in e.states]
        for e in in_blocks:
            self.line(f"{totals[e]} = block_of_{e.dtype.short}()")
            totals[e] += f"[i{next(iter(self.unrolled))}]"
        with self.loops(self.unrolled if repeated else ()):
            self.start_all({e: totals[e] for e in in_blocks})
        self.start_all({e: name for e, name in totals.items() if e not in in_blocks})
        names_before = dict(self.names)
        with self.pass_loops(axes, values, bound):
            self.emit_reductions(values, bound.union(axes))
            self.hoist(values, bound.union(axes))
            self.combine_all([e for e in group if e not in repeated], totals)
            with self.loops(self.unrolled if repeated else ()):
                self.combine_all(repeated, totals)
        loaded = {e: self.dialect.load(name, e.dtype) if e in in_blocks else name for e, name in totals.items()}
        self.names = names_before | loaded

    def combine_all(self, group: Sequence[ReduceExpr], totals: Mapping[ReduceExpr, str]) -> None:
        """Emit the accumulation of one value of each reduction."""
        self.define([x for e in group for x in e.inputs])
        for e in group:
            self.combine(e, [totals[x] for x in e.states], e.inputs)

    # Nested reductions in a loop of their own.

    def fill_row_cache(self) -> None:
        """Compute the nested reductions of a short row once, if several passes need them or they are long."""
        axis = self.cached_axis
        if axis < 0:
            return
        staged = self.staged_reductions(self.kernel.outputs, axis, self.row_bound)
        ready = {e for e in self.reductions if self.varying[e] <= self.row_bound | self.unrolled}
        staged = [e for e in staged if ready.isdisjoint(self.inner_reductions(e.inputs))]
        passes = sum(axis in self.axes_of[e] for e in ready) + len(self.kernel.pointwise_outputs)
        if staged and (passes > 1 or not all(map(self.is_short, staged))):
            self.fill_blocks(staged, axis, [f"for i{axis} in range(n{axis}):"], f"i{axis}")

    @contextmanager
    def pass_loops(self, axes: Sequence[int], values: Sequence[Expression], bound: Axes) -> Iterator[None]:
        """Open the loops over some axes. Long nested reductions are computed before, for a block of the last axis."""
        is_row = bool(axes) and bound == self.row_bound
        staged = self.staged_reductions(values, axes[-1], bound.union(axes[:-1])) if is_row else []
        if not staged or all(map(self.is_short, staged)):
            with self.loops(axes):
                yield
            return
        *outer, axis = axes
        with self.loops(outer), self.block(f"for block in range(0, n{axis}, {COLUMNS_PER_BLOCK}):"):
            self.line(f"width = min({COLUMNS_PER_BLOCK}, n{axis} - block)")
            lines = ["for c in range(width):", f"i{axis} = block + c"]
            self.fill_blocks(staged, axis, lines, "c")
            with self.block(*lines):
                yield

    def staged_reductions(self, values: Sequence[Expression], axis: int, bound: Axes) -> list[ReduceExpr]:
        """Return the nested reductions that each point along an axis needs."""
        varying = {e: self.varying[e] for e in self.inner_reductions(values) if axis not in self.axes_of[e]}
        return [e for e, own in varying.items() if axis in own and own <= bound | {axis}]

    def is_short(self, e: ReduceExpr) -> bool:
        """Return whether the loop of a reduction is unrolled."""
        sizes = [self.loop_sizes[axis] for axis in self.axes_of[e]]
        return 0 not in sizes and prod(sizes) <= MAX_LITERAL_SIZE

    def fill_blocks(self, staged: Sequence[ReduceExpr], axis: int, loop: Sequence[str], index: str) -> None:
        """Compute nested reductions for each point along an axis, in a loop, and store them in blocks."""
        blocks = {e: f"block{self.reductions.index(e)}" for e in staged}
        for e, block in blocks.items():
            self.line(f"{block} = block_of_{e.dtype.short}()")
        names_before = dict(self.names)
        with self.block(*loop):
            self.emit_reductions(staged, self.row_bound | self.bound_by(staged) | {axis})
            for e, block in blocks.items():
                self.line(f"{block}[{index}] = {self.names[e]}")
        self.names = names_before | {e: self.dialect.load(f"{block}[{index}]", e.dtype) for e, block in blocks.items()}

    def bound_by(self, staged: Sequence[ReduceExpr]) -> Axes:
        """Return the axes along which some reductions vary."""
        return frozenset[int]().union(*[self.varying[e] for e in staged])

    def loops(self, axes: Collection[int]) -> AbstractContextManager[None]:
        """Open loops over some axes, or none."""
        lines = [f"for i{axis} in range(n{axis}):" for axis in axes]
        return self.block(*lines) if lines else nullcontext()

    def hoist(self, roots: Sequence[Expression], bound: Axes) -> None:
        """Assign the largest parts of some values that vary only along bound axes to variables, before the next loops."""
        order = toposort(roots, lambda e: () if e in self.names else e.inputs)
        known = {e for e in order if e in self.names}
        for e in order:  # a part may contain no reduction of an inner loop
            if not isinstance(e, ReduceExpr) and self.varying[e] <= bound and known.issuperset(e.inputs):
                known.add(e)
        parts = dict.fromkeys(x for e in order if e not in known for x in e.inputs if x in known)
        hoisted = [x for x in parts if isinstance(x, Op | IndexedLoad) and x not in self.names]
        self.define(hoisted, always=hoisted)
