"""Random steps whose kernels have nested reductions, with buffers for their operands."""

from dataclasses import dataclass

import numpy as np

from minifuse.core import operators as op
from minifuse.core.dtypes import float64, int64
from minifuse.core.layout import Layout
from minifuse.ir.kernel_ir import (
    IndexedLoad,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    ReduceExpr,
    constant,
    reduce_expr,
)
from minifuse.ir.monoids import FIRST_EXTREME
from minifuse.ir.steps import NO_BUFFER, Step

NUMBERS = [0.75, -1.5]


@dataclass
class NestedStep:
    """A step, and the buffers of its operands: slot -> elements."""

    step: Step
    memory: dict[int, np.ndarray]

    def run(self, backend):
        """Run the step on a backend, and return the buffers."""
        memory = {slot: np.copy(a) for slot, a in self.memory.items()}

        def value(view):
            slot, layout = view
            return layout.offset if slot == NO_BUFFER else memory[slot].ctypes.data + layout.offset * memory[slot].itemsize

        backend.compile(self.step).load()(*map(value, self.step.buffer_views()), *NUMBERS[: len(self.step.numbers)])
        return memory


class StepMaker:
    """Draws a step: groups of axes, one for each level of nested reductions, and expressions over them."""

    def __init__(self, seed, levels=3, sizes=(1, 2, 3, 5), has_states=False):
        self.has_states = has_states  # whether some reductions have several states
        self.random = np.random.default_rng(seed)
        groups = [self.integer(1, 3), *[self.integer(1, 3) for _ in range(self.integer(1, levels + 1))]]
        self.shape = tuple(int(self.random.choice(sizes)) for _ in range(sum(groups)))
        axes, self.groups = list(map(int, self.random.permutation(len(self.shape)))), []
        for count in groups:
            self.groups.append(tuple(sorted(axes.pop() for _ in range(count))))
        self.inputs, self.memory, self.numbers = [], {}, 0
        self.table = np.arange(1.0, 1.0 + max(self.shape)) / 4

    def integer(self, low, high):
        return int(self.random.integers(low, high))

    def coin(self, probability=0.5):
        return self.random.random() < probability

    def buffer(self, array):
        self.memory[len(self.memory)] = array
        return len(self.memory) - 1

    def layout(self, axes):
        """Return a layout that varies along some axes, in a random order of memory, and the size of its buffer."""
        strides, size = [0] * len(self.shape), 1
        for d in self.random.permutation(list(axes)) if axes else ():
            strides[int(d)] = size
            size *= self.shape[int(d)] + self.integer(0, 2)
        offset = self.integer(0, 3)
        return Layout(self.shape, tuple(strides), offset), size + offset

    def load(self, axes):
        used = [d for d in axes if self.coin(0.7)]
        if used and self.coin(0.1):
            d = used[0]
            self.inputs.append((NO_BUFFER, Layout(self.shape, tuple(int(k == d) for k in range(len(self.shape))), 0)))
            index = IndexValue(len(self.inputs) - 1, int64)
            return IndexedLoad(0, 0, (index,), float64) if self.coin() else op.mul(index, 0.25)
        layout, size = self.layout(used)
        self.inputs.append((self.buffer(self.random.uniform(-1, 1, size)), layout))
        return Load(len(self.inputs) - 1, float64)

    def number(self):
        """Return one of the numbers, all of which are used up to the last one."""
        self.numbers = min(self.numbers + 1, len(NUMBERS))
        return KernelParameter(self.numbers - 1, float64)

    def expression(self, level, depth):
        """Return an expression that varies along the axes of levels up to `level`."""
        axes = sorted(d for group in self.groups[: level + 1] for d in group)
        choice = self.random.random()
        if depth == 0 or choice < 0.1:
            return self.load(axes) if self.coin(0.8) else self.number()
        if choice < 0.55 and level + 1 < len(self.groups):
            operator = self.random.choice([op.add, op.maximum, op.minimum])
            x = self.expression(level + 1, depth - 1)
            if self.has_states and self.coin():
                state = FIRST_EXTREME[op.maximum].states[self.integer(0, 2)]
                return reduce_expr(state, (x, self.expression(level + 1, depth - 1)), self.groups[level + 1])
            return reduce_expr(operator, x, self.groups[level + 1])
        a, b = self.expression(level, depth - 1), self.expression(level, depth - 1)
        operator = self.random.choice([op.add, op.sub, op.mul, op.maximum])
        return operator(a, b) if self.coin(0.8) else op.exp(-abs(op.where(a > b, a, b)))

    def make(self):
        rows = [self.expression(0, 4) + reduce_expr(op.add, self.expression(1, 3), self.groups[1])]
        points = [self.expression(1, 3) * rows[0]] if self.coin() else []
        if self.coin():
            rows.append(rows[0] * constant(2.0, float64))
        found = Kernel(tuple(points), tuple(rows))
        dims = tuple(sorted({d for e in found.find_all(ReduceExpr) for d in e.dims}))
        outer = [d for d in range(len(self.shape)) if d not in dims]
        outputs = []
        for k in range(len(found.outputs)):
            layout, size = self.layout(outer + [*self.groups[1]] * (k < len(points)))
            outputs.append((self.buffer(np.full(size, -9.0)), layout))
        table = [(self.buffer(self.table), Layout((len(self.table),), (1,), 0))] if found.indexed_dtypes() else []
        return NestedStep(
            Step(found, self.shape, dims, outputs, self.inputs, [*map(str, NUMBERS[: self.numbers])], table), self.memory
        )


def nested_step(seed, **options):
    """Return a random step whose reductions are nested up to three levels."""
    return StepMaker(seed, **options).make()
