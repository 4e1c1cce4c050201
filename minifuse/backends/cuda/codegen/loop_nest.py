"""Print a scheduled loop nest as Python for Numba CUDA: the code of one thread.

The text is made of *stages*. A stage is a loop over the register elements of some axes, and computes all values that depend
on these axes and no others. Values that another stage needs are in local arrays of the thread. All loops over register
elements have constant lengths, so the compiler unrolls them, and the local arrays become registers.

A reduction is a stage that adds to an accumulator, inside the loops over its serial axes, if any; at the end the threads of
the axis combine their results. Values that do not depend on an axis are computed before the loop over it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ....core.dtypes import bool_
from ....ir.kernel_ir import Expression, IndexValue, ReduceExpr, distinct_reductions
from ...codegen.expression_printer import literal
from ...codegen.gpu_facts import WARP
from ...codegen.schedule import Tile
from .axis_printer import LETTERS, Axes, Value
from .dialect import accumulator_of
from .stage_printer import Sink, StagePrinter

REDUCTION_WORDS = {"add": "sum", "mul": "product", "maximum": "max", "minimum": "min", "and_": "all", "or_": "any"}


class LoopNestPrinter(StagePrinter):
    """The text of a kernel: its reductions, and the stores of its outputs."""

    # The whole text.

    def emit(self) -> str:
        """Return the text of the kernel and of the functions that it calls."""
        self.bind_axes()
        if self.schedule.staged:
            self.bind_tiles()
        if self.has_barriers:
            self.clamp_indices()
            if self.schedule.staged and not any(tile.chunk for tile in self.tiles.values()):
                self.stage_whole()
            self.body()
        else:
            whole = [a for a in self.grid_axes() if self.tiles[a].registers == 1 and a != self.schedule.tail]
            guards = [self.inside(a) for a in whole if a not in self.checked]
            self.checked |= set(whole)
            with self.block(*[f"if {' and '.join(guards)}:"] * bool(guards)):
                self.body()
        names = ", ".join(name for name, _ in self.parameters())
        head = ["    " + line for line in dict.fromkeys(self.declarations)]
        kernel = "\n".join([f"def kernel({names}):", *head, *self.lines]) + "\n"
        return "\n\n".join(["\n".join(lines) + "\n" for lines in self.functions()] + [kernel])

    def body(self) -> None:
        """Emit the reductions and the stores."""
        tail = self.schedule.tail
        if tail is None or tail in self.nest.reduced:
            self.store_outputs()
            return
        tile, n = self.tiles[tail], self.size(tail)
        step = tile.threads * tile.vector
        last = " + ".join([f"i{tail}", *[str(step * (tile.registers - 1) + tile.vector)]])
        with self.block(f"if {last} <= {n}:"), self.state():
            self.checked.add(tail)
            self.store_outputs()
        index, lines = f"k{tail}", ["else:  # the last elements, one at a time"]
        if tile.vector == 1:
            lines.append(f"for {index} in range(i{tail}, min(i{tail} + {tile.length - tile.threads + 1}, {n}), {step}):")
        else:
            first = f"i{tail} + {step} * r{tail}" if tile.registers > 1 else f"i{tail}"
            lines += [f"for r{tail} in range({tile.registers}):"] * (tile.registers > 1)
            lines.append(f"for {index} in range({first}, min({first} + {tile.vector}, {n})):")
        with self.block(*lines), self.state():
            self.line("no_unroll()")
            self.tiles[tail], self.index[tail] = Tile(), index
            self.checked.add(tail)
            self.store_outputs()

    # Reductions.

    def reduce_needed(self, roots: Sequence[Expression]) -> None:
        """Emit the reductions that some values need, those with the same axes together."""
        while True:
            needed = [e for e in self.needed(roots) if isinstance(e, ReduceExpr) and self.is_in_scope(e)]
            pending = distinct_reductions(needed)
            if not pending:
                return
            waiting = set(needed)
            ready = [e for e in pending if not waiting.intersection(self.needed(e.inputs))]
            first = ready[0]
            over, axes = self.nest.axes_reduced_by(first), self.nest.axes_of[first]
            self.reduce([e for e in ready if self.nest.axes_reduced_by(e) == over and self.nest.axes_of[e] == axes])

    def is_in_scope(self, e: Expression) -> bool:
        """Return whether the indices along all axes of a value are known: no loop over them is still to be opened."""
        return all(a in self.bound or not self.tiles[a].serial for a in self.nest.axes_of[e])

    def reduce(self, group: Sequence[ReduceExpr]) -> None:
        """Emit reductions over the same axes."""
        over, axes = self.nest.axes_reduced_by(group[0]), self.nest.axes_of[group[0]]
        elements = self.element_axes(axes)
        count = self.element_count(elements)
        lanes = next((a for a in sorted(over) if self.tiles[a].vector > 1 and not self.tiles[a].is_constant), None)
        width = 1 if lanes is None else self.tiles[lanes].vector
        totals: dict[ReduceExpr, str] = {}
        states = [x for e in group for x in e.states]
        for e in states:
            name = totals[e] = self.accumulator_name(e, count * width)
            start = f"i32({int(e.identity)})" if e.dtype is bool_ else literal(e.identity, e.dtype)
            if count * width == 1:
                self.line(f"{name} = {start}")
                continue
            self.declarations.append(f"{name} = cuda.local.array({count * width}, {accumulator_of(e.dtype)})")
            with self.block(f"for k in range({count * width}):"):
                self.line(f"{name}[k] = {start}")
        index = self.accumulator_index(elements, lanes)
        is_scalar = count * width == 1
        places = {e: name if is_scalar else f"{name}[{index}]" for e, name in totals.items()}
        serial = [a for a in sorted(over) if self.tiles[a].serial]
        roots = [x for e in group for x in e.inputs]
        if serial:
            self.hoist(roots, frozenset(serial))

        def accumulate(e: ReduceExpr) -> Callable[[], None]:
            return lambda: self.accumulate(e, [places_in_scope(x) for x in e.states])

        def places_in_scope(e: ReduceExpr) -> str:
            if lanes is not None and self.tiles[lanes].vector == 1 and not is_scalar:  # in the loop over the rest
                return f"{totals[e]}[{self.accumulator_index(elements, None) if count > 1 else '0'}]"
            return places[e]

        def body() -> None:
            axes = [over.union(*[self.nest.axes_of[x] for x in e.inputs]) for e in group]
            self.compute([Sink(e.inputs, own, accumulate(e)) for e, own in zip(group, axes, strict=True)])

        self.loops(serial, body)
        for e in group:
            self.finish_reduction(e, [totals[x] for x in e.states], elements, count, lanes, over)

    def number(self, e: ReduceExpr) -> str:
        """Return the number of a reduction in names, with a letter for a state if it has several."""
        states = e.states
        number = next(k for k, x in enumerate(self.nest.reductions) if x.states[0] is states[0])
        return f"{number}{chr(ord('a') + states.index(e)) if len(states) > 1 else ''}"

    def accumulator_name(self, e: ReduceExpr, size: int) -> str:
        """Return the name of an accumulator of some elements. Scopes with other tiles need one of another size."""
        name = f"{REDUCTION_WORDS.get(e.operator.name, 'total')}{self.number(e)}"
        while self.accumulator_sizes.setdefault(name, size) != size:
            name += "_"
        return name

    def accumulator_index(self, elements: tuple[int, ...], lanes: int | None) -> str:
        """Return the index of the present accumulator: one for each element of the result and of a vector."""
        index = self.element(elements) if elements else ""
        if lanes is None or self.tiles[lanes].vector == 1:
            return index or "0"
        width = self.tiles[lanes].vector
        return f"{width} * {f'({index})' if ' ' in index else index} + v{lanes}" if index else f"v{lanes}"

    def accumulate(self, e: ReduceExpr, places: Sequence[str]) -> None:
        """Emit the accumulation of one value of a reduction. `places` are the accumulators of its states."""
        place, values, symbol = ", ".join(places), ", ".join(map(self.bare, e.inputs)), self.symbol(e)
        if symbol is None:
            self.line(f"{place} = {self.operator_name(e)}({place}, {values})")
        elif e.dtype.is_float:
            self.line(f"{place} {symbol}= {values}")
        else:
            self.line(f"{place} = {accumulator_of(e.dtype)}({place} {symbol} ({values}))")

    def combine(self, e: ReduceExpr, a: str, b: str) -> str:
        """Return the text that combines two partial results. With several states, each is a list of states."""
        symbol = self.symbol(e)
        if symbol is None:
            return f"{self.operator_name(e)}({a}, {b})"
        return f"{a} {symbol} {b}" if e.dtype.is_float else f"{accumulator_of(e.dtype)}({a} {symbol} {b})"

    def finish_reduction(
        self, e: ReduceExpr, names: Sequence[str], elements: tuple[int, ...], count: int, lanes: int | None, over: Axes
    ) -> None:
        """Emit the combination of the accumulators of a vector, then of all threads that share the reduction.

        `names` are the accumulators of all states.
        """
        width = 1 if lanes is None else self.tiles[lanes].vector
        finals, loop = list(names), list[str]()
        if width > 1:
            finals = [f"{name}_of_{'row' if count == 1 else 'rows'}" for name in names]
            if count > 1:
                self.declarations += [
                    f"{final} = cuda.local.array({count}, {accumulator_of(x.dtype)})"
                    for final, x in zip(finals, e.states, strict=True)
                ]
        if count > 1:
            loop = [f"for k in range({count}):"]
        at = [f"{final}[k]" for final in finals] if count > 1 else finals
        threaded = [a for a in self.schedule.order if a in over and self.tiles[a].threads > 1]
        if width > 1 or threaded:
            with self.block(*loop):
                if width > 1:
                    self.combine_vector(e, names, at, width, f"{width} * k + " * (count > 1))
                for a in threaded:
                    self.line(f"{', '.join(at)} = {self.combine_threads(e, at, a, count)}")
        for x, final in zip(e.states, finals, strict=True):
            self.values[x] = Value(final, elements)
            self.finish_bool(x, count)

    def combine_vector(self, e: ReduceExpr, names: Sequence[str], at: Sequence[str], width: int, first: str) -> None:
        """Emit the combination of the accumulators of a vector: pairs of neighbors first."""
        parts = [", ".join(f"{name}[{first}{v}]" for name in names) for v in range(width)]
        if len(names) > 1:  # a function that returns several states is no operand
            self.line(f"{', '.join(at)} = {parts[0]}")
            for part in parts[1:]:
                self.line(f"{', '.join(at)} = {self.combine(e, ', '.join(at), part)}")
            return
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.combine(e, a, b) for a, b in pairs]
            parts = [f"({x})" if " " in x and len(parts) > 1 else x for x in parts]
        self.line(f"{at[0]} = {parts[0]}")

    def finish_bool(self, e: ReduceExpr, count: int) -> None:
        """Convert the result of a reduction of bools, which is an integer, to a bool."""
        if e.dtype is bool_ and count == 1:
            name = self.values[e].name
            self.line(f"is_{name} = {name} != 0")
            self.values[e] = Value(f"is_{name}", ())

    def combine_threads(self, e: ReduceExpr, at: Sequence[str], a: int, count: int) -> str:
        """Return the call that combines the partial results of all threads along an axis."""
        along = LETTERS[self.schedule.order.index(a)]
        room = WARP if along == "x" else self.schedule.threads
        parts = [f"parts{self.number(x)}{'' if along == 'x' else along}" for x in e.states]
        for name, x in zip(parts, e.states, strict=True):
            self.declarations.append(f"{name} = cuda.shared.array({room * count}, {accumulator_of(x.dtype)})")
        first = f", {room} * k" * (count > 1)
        if len(at) == 1:
            return f"fold_along_{along}({self.operator_name(e)}, {at[0]}, {parts[0]}{first})"
        functions = [f"{self.operator_name(e)}_tuples", f"exchange{len(at)}", f"put{len(at)}", f"get{len(at)}"]
        self.exchanged.add(e)
        if along == "y":
            functions.pop(1)
        return f"fold_states_along_{along}({', '.join(functions)}, ({', '.join(at)}), ({', '.join(parts)}){first or ', 0'})"

    def functions(self) -> list[list[str]]:
        """Return the functions that combine values, and those with which threads exchange tuples of states."""
        found: dict[tuple[str, ...], None] = {}
        for e in sorted(self.exchanged, key=self.number):
            count, name = len(e.inputs), self.operator_name(e)
            each = range(count)
            texts = [", ".join(text.format(k=k) for k in each) for text in ("a[{k}]", "b[{k}]")]
            found[f"def {name}_tuples(a, b):", f"    return {name}({', '.join(texts)})"] = None
            values = ", ".join(f"exchange_one(a[{k}], step)" for k in each)
            found[f"def exchange{count}(a, step):", f"    return {values}"] = None
            found[f"def put{count}(parts, place, a):", *[f"    parts[{k}][place] = a[{k}]" for k in each]] = None
            found[f"def get{count}(parts, place):", f"    return {', '.join(f'parts[{k}][place]' for k in each)}"] = None
        return [*super().functions(), *map(list, found)]

    def hoist(self, roots: Sequence[Expression], serial: Axes) -> None:
        """Compute the values that do not depend on the axes of a loop before it."""
        needed = self.needed(roots)
        outside = {e for e in needed if not self.nest.axes_of[e] & serial}
        users = {x for e in needed if e not in outside for x in e.inputs} | set(roots)
        self.keep([e for e in needed if e in outside and e in users and not isinstance(e, IndexValue)])

    def loops(self, serial: Sequence[int], body: Callable[[], None]) -> None:
        """Emit the loops over serial axes: whole steps, then the rest, one element at a time."""
        if not serial:
            body()
            return
        a, *rest = serial
        self.bound.add(a)
        self.open_loops(a, rest, body)
        self.bound.discard(a)

    def open_loops(self, a: int, rest: Sequence[int], body: Callable[[], None]) -> None:
        """Emit the loop over one serial axis, and the loops inside."""
        if self.tiles[a].chunk:
            self.staged_loop(a, lambda: self.loops(rest, body))
            return
        tile, index, n = self.tiles[a], self.index[a], self.size(a)
        first = self.first_index(a) or "0"
        is_chunk = a in self.schedule.split
        if is_chunk:
            n, first = f"end{a}", " + ".join(filter(None, [f"first{a}", self.first_index(a)]))
        if tile.elements == 1:
            with self.block(f"for {index} in {range_text(first, n, tile.threads)}:"), self.state():
                self.checked.add(a)
                self.loops(rest, body)
            return
        whole = f"{n} // {tile.length} * {tile.length}"
        if is_chunk:
            self.line(f"whole{a} = first{a} + (end{a} - first{a}) // {tile.length} * {tile.length}")
            whole = f"whole{a}"
        with self.block(f"for {index} in {range_text(first, whole, tile.length)}:"), self.state():
            self.checked.add(a)
            self.loops(rest, body)
        if tile.vector == 1 or a != self.schedule.tail:  # the rest fills a part of one step
            self.line(f"{index} = {' + '.join(filter(None, [whole, self.first_index(a)]))}")
            with self.state():
                self.loops(rest, body)
            return
        start = " + ".join([whole, *([self.thread_of(a)] if tile.threads > 1 else [])])
        with self.block(f"for {index} in {range_text(start, n, tile.threads)}:"), self.state():
            self.line("no_unroll()")
            self.tiles[a] = Tile(threads=tile.threads, serial=True)
            self.checked.add(a)
            self.loops(rest, body)

    # Stores.

    def store_outputs(self) -> None:
        """Emit all outputs: those of each point, then those of each row."""
        kernel, nest = self.kernel, self.nest
        points = list(enumerate(kernel.pointwise_outputs))
        rows = [(k, e) for k, e in enumerate(kernel.outputs) if k >= len(points)]
        self.reduce_needed(kernel.outputs)
        serial = [a for a in sorted(nest.reduced) if self.tiles[a].serial]
        if points:
            if serial:
                self.hoist([e for _, e in points], frozenset(serial))
            self.loops(serial, lambda: self.compute([self.store_sink(k, e) for k, e in points]))
        if rows:
            self.compute([self.store_sink(k, e) for k, e in rows])

    def store_sink(self, k: int, e: Expression) -> Sink:
        """Return the sink that stores an output."""
        axes = self.nest.output_axes(k)
        elements = self.element_axes(axes)
        name = f"out{k}"
        vector = self.vector_axis(name)
        is_vector = vector is not None and vector in elements
        array, in_registers = f"y{k}", False
        if is_vector and e in self.values and self.values[e].axes == elements:
            array, in_registers = self.values[e].name, True
        elif is_vector:
            while self.is_declared(array):
                array += "_"
            self.declare(array, self.element_count(elements), e.dtype)

        def emit() -> None:
            if in_registers:
                return
            if is_vector:
                self.line(f"{array}[{self.element(elements)}] = {self.bare(e)}")
                return
            with self.guarded(axes, None):
                self.line(f"{name}[{self.output_address(name)}] = {self.bare(e)}")

        def finish() -> None:
            if is_vector:
                with self.guarded(axes, vector):
                    values = f"beside4({array}, {self.element(elements, vector)})"
                    self.line(f"store4({name}, {self.output_address(name, is_vector=True)}, {values})")

        return Sink((e,), axes, emit, finish, vector if is_vector else None, in_registers)

    @contextmanager
    def guarded(self, axes: Axes, vector: int | None) -> Iterator[None]:
        """Open the condition under which the thread stores: its indices are inside, and no other thread has the value."""
        conditions = []
        for a in self.grid_axes():
            if a in self.checked:
                continue
            conditions.append(self.inside(a, a == vector))
        conditions += [f"first{a} < {self.size(a)}" for a in self.schedule.split]
        conditions += [f"{self.thread_of(a)} == 0" for a in sorted(self.nest.reduced - axes) if self.tiles[a].threads > 1]
        with self.block(*[f"if {' and '.join(conditions)}:"] * bool(conditions)):
            yield


def range_text(start: str, stop: str, step: int) -> str:
    """Return a range, as short as possible."""
    if step == 1:
        return f"range({stop})" if start == "0" else f"range({start}, {stop})"
    return f"range({start}, {stop}, {step})"
