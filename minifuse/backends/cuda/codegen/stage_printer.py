"""Print stages: loops over register elements, each of which computes the values that depend on the same axes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ....core.dtypes import DType
from ....core.interning import toposort
from ....ir.kernel_ir import Constant, Expression, IndexedLoad, IndexValue, KernelParameter, Load, Op, ReadOutput, ReduceExpr
from ...codegen.expression_printer import operand_name
from .axis_printer import Axes, Value
from .dialect import storage_of
from .padded_loads import is_padded_load
from .tile_printer import TilePrinter

MAX_RECOMPUTED_COST = 8  # cost of an operator in additions; above, its value is kept in registers for a later stage


class Sink(NamedTuple):
    """A consumer of values at each point, which accumulates them or stores one."""

    values: tuple[Expression, ...]
    axes: Axes
    emit: Callable[[], None]
    finish: Callable[[], None] | None = None  # printed after the loop over vector elements
    vector: int | None = None  # the axis of that loop
    is_complete: bool = False  # whether nothing is printed in that loop


class StagePrinter(TilePrinter):
    """The text of a kernel that is made of stages."""

    def reduce_needed(self, roots: Sequence[Expression]) -> None:
        """Emit the reductions that some values need."""
        raise NotImplementedError

    # Values in registers.

    def declare(self, name: str, count: int, dtype: DType) -> None:
        """Declare a local array of the thread."""
        self.declarations.append(f"{name} = cuda.local.array({count}, {storage_of(dtype)})")

    def value_text(self, e: Expression) -> str:
        """Return the text of a value in registers, at the present element."""
        name, axes = self.values[e]
        if not axes:
            return name
        return self.dialect.load(f"{name}[{self.element(axes)}]", e.dtype)

    def needed(self, roots: Sequence[Expression]) -> list[Expression]:
        """Return what must be computed for some values, inputs first."""
        order = toposort(roots, lambda e: () if e in self.values else e.inputs)
        return [e for e in order if e not in self.values and not isinstance(e, Constant | KernelParameter)]

    # Stages.

    def keep(self, values: Sequence[Expression]) -> None:
        """Compute values and keep them in registers."""
        self.compute([], keep=values)

    def compute(self, sinks: Sequence[Sink], keep: Sequence[Expression] = ()) -> None:
        """Emit the stages that compute some values, and what happens to each."""
        roots = [*[x for sink in sinks for x in sink.values], *keep]
        self.reduce_needed(roots)
        order = self.needed(roots)
        elements = {e: self.element_axes(self.nest.axes_of[e]) for e in order}
        users: dict[Expression, set[tuple[int, ...]]] = {e: set() for e in order}
        stores = any(sink.finish is not None for sink in sinks)
        for e in order:
            for x in e.inputs:
                if x in users:
                    users[x].add(elements[e])
        for sink in sinks:
            for x in sink.values:
                if x in users:
                    users[x].add(self.element_axes(sink.axes))
        kept = {e for e in order if e in keep or self.is_kept(e, elements[e], users[e], stores)}
        groups = dict.fromkeys([*[elements[e] for e in order if e in kept], *[self.element_axes(s.axes) for s in sinks]])
        for axes in sorted(groups, key=len):
            self.stage(
                axes,
                [e for e in order if e in kept and elements[e] == axes],
                [sink for sink in sinks if self.element_axes(sink.axes) == axes],
            )

    def is_kept(self, e: Expression, axes: tuple[int, ...], users: set[tuple[int, ...]], stores: bool) -> bool:
        """Return whether a value is kept in registers: for another stage, or so that all loads precede the first store."""
        if isinstance(e, IndexValue) or e in self.padded:
            return False
        is_shared = any(x != axes for x in users)
        is_load = isinstance(e, Load | ReadOutput) or self.is_gather(e)
        is_in_loop = any(self.tiles[a].serial for a in self.nest.axes_of[e] & self.nest.reduced)
        later = len(self.nest.sinks_of[e]) > 1 and not is_in_loop
        if is_load:
            is_vector = bool(axes) and self.is_vector_load(e, axes)
            return is_shared or is_vector or later or (stores and bool(axes))
        is_dear = isinstance(e, Op) and e.operator is not None and e.operator.cost > MAX_RECOMPUTED_COST
        return (is_shared and self.is_worth_keeping(e)) or (is_dear and later)

    def is_gather(self, e: Expression) -> bool:
        """Return whether a value is loaded at an index that the kernel computes, with or without padding."""
        return (isinstance(e, IndexedLoad) and e not in self.padded) or is_padded_load(e)

    def is_worth_keeping(self, e: Expression) -> bool:
        """Return whether a value is more than a cast of another one."""
        return isinstance(e, Op | ReduceExpr)

    def is_vector_load(self, e: Expression, axes: tuple[int, ...]) -> bool:
        """Return whether a load is a vector load in a stage over some axes."""
        if not isinstance(e, Load | ReadOutput) or isinstance(e, IndexValue):
            return False
        a = self.vector_axis(operand_name(e))
        return a is not None and a in axes

    def stage(self, axes: tuple[int, ...], kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit one stage: first its loads, then the values and sinks that depend on them."""
        loads = [e for e in kept if isinstance(e, Load | ReadOutput)]
        for e in loads:
            self.values[e] = self.new_value(e, axes)
        vectors = [e for e in loads if self.is_vector_load(e, axes)]
        scalars = [e for e in loads if e not in vectors]
        if not axes:
            self.define_scalars(kept, sinks)
            return
        along = {e: self.vector_axis(operand_name(e)) for e in vectors}
        for a in dict.fromkeys(along.values()):
            with self.element_loops(axes, a):
                for e in [e for e in vectors if along[e] == a]:
                    name = operand_name(e)
                    target = f"{self.values[e].name}, {self.element(axes, a)}"
                    self.line(f"put4({target}, load4({self.memory(name)}, {self.address(name, is_vector=True)}))")
        if scalars:
            with self.element_loops(axes):
                for e in scalars:
                    assert isinstance(e, Load | ReadOutput)
                    name = operand_name(e)
                    self.line(f"{self.values[e].name}[{self.element(axes)}] = {self.memory(name)}[{self.address(name)}]")
        others = [e for e in kept if e not in loads]
        gathers = [e for e in others if self.is_gather(e)]
        if gathers:
            with self.element_loops(axes):
                self.define_elements(axes, gathers, ())
            others = [e for e in others if e not in gathers]
        if not others and not sinks:
            return
        for a in dict.fromkeys([sink.vector for sink in sinks] or [None]):
            group = [sink for sink in sinks if sink.vector == a]
            with self.element_loops(axes, a):
                if others or not all(sink.is_complete for sink in group):
                    with self.block(*[f"for v{a} in range({self.tiles[a].vector}):"] if a is not None else []):
                        self.define_elements(axes, others, group)
                for sink in group:
                    if sink.finish is not None:
                        sink.finish()
            others = []

    def define_scalars(self, kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit a stage without loops: one variable for each value."""
        saved = dict(self.names)
        self.enter_scope()
        for e in kept:
            if isinstance(e, Load | ReadOutput):
                self.names.pop(e, None)
                self.line(f"{self.values[e].name} = {self.leaf_text(e)}")
            else:
                self.define([e])
                self.values[e] = self.new_value(e, ())
                self.names.pop(e, None)
                self.line(f"{self.values[e].name} = {self.bare(e)}")
            self.names[e] = self.values[e].name
        self.emit_sinks(sinks, ())
        self.names = saved

    def define_elements(self, axes: tuple[int, ...], kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit the values and sinks of a stage, inside its loops."""
        saved = dict(self.names)
        self.enter_scope()
        self.define([*kept, *[x for sink in sinks if not self.conditions(sink, axes) for x in sink.values]])
        for e in kept:
            self.values[e] = self.new_value(e, axes)
            self.line(f"{self.values[e].name}[{self.element(axes)}] = {self.bare(e)}")
        self.emit_sinks(sinks, axes)
        self.names = saved

    def enter_scope(self) -> None:
        """Name all values in registers, at the present element."""
        self.names |= {e: self.value_text(e) for e in self.values}

    def conditions(self, sink: Sink, axes: tuple[int, ...]) -> tuple[str, ...]:
        """Return the conditions that the axes of a sink need, apart from those of the loops."""
        return tuple(
            self.inside(a) for a in sorted(sink.axes & self.nest.reduced) if a not in axes and a not in self.checked
        )

    def emit_sinks(self, sinks: Sequence[Sink], axes: tuple[int, ...]) -> None:
        """Emit sinks, those under the same conditions together."""
        for conditions in dict.fromkeys(self.conditions(sink, axes) for sink in sinks):
            group = [sink for sink in sinks if self.conditions(sink, axes) == conditions]
            saved = dict(self.names)
            with self.block(*[f"if {' and '.join(conditions)}:"] * bool(conditions)):
                self.define([x for sink in group for x in sink.values])
                for sink in group:
                    sink.emit()
                    if sink.finish is not None and not axes:
                        sink.finish()
            if conditions:
                self.names = saved

    def new_value(self, e: Expression, axes: tuple[int, ...]) -> Value:
        """Return a new variable, or a new local array."""
        stem = f"x{e.index}" if isinstance(e, Load) else f"old{e.index}" if isinstance(e, ReadOutput) else f"t{self.count}"
        if not isinstance(e, Load | ReadOutput):
            self.count += 1
        name = stem if not self.is_declared(stem) else f"{stem}_{self.count}"
        if name != stem:
            self.count += 1
        if axes:
            self.declare(name, self.element_count(axes), e.dtype)
        else:
            self.variables.add(name)
        return Value(name, axes)

    def is_declared(self, name: str) -> bool:
        """Return whether a name is in use."""
        return name in self.variables or any(line.startswith(f"{name} =") for line in self.declarations)

    @contextmanager
    def element_loops(self, axes: tuple[int, ...], vector: int | None = None) -> Iterator[None]:
        """Open the loops over register elements, except those of the vectors along an axis.

        There is a condition where an index may be past the end.
        """
        guarded = [a for a in axes if a not in self.checked and not self.is_moved_back(a)]
        lines = [f"for r{a} in range({self.tiles[a].registers}):" for a in axes if self.tiles[a].registers > 1]
        lines += [f"if {' and '.join(map(self.inside, guarded))}:"] * bool(guarded)
        lines += [f"for v{a} in range({self.tiles[a].vector}):" for a in axes if self.tiles[a].vector > 1 and a != vector]
        self.checked |= set(guarded)
        with self.block(*lines):
            yield
        self.checked -= set(guarded)
