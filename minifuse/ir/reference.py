"""Run a step in plain Python, one point at a time: the definition of what a kernel computes.

An expression is a function of a *point*, which is a dict: name of an axis -> index. A reduction evaluates its input at each
index of the axes that it reduces. It does not matter in which loops a backend computes these values. This module is slow,
and knows nothing about loops, memory formats or backends; tests compare every backend with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..core.operators import Operator
from .kernel_ir import (
    AtomicAdd,
    Constant,
    Expression,
    IndexedAccess,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    Op,
    ReadOutput,
    ReduceExpr,
)
from .monoid import combine_states
from .steps import BufferView, Step

Point = Mapping[str, int]  # name of an axis -> index
Memory = Mapping[int, np.ndarray]  # slot -> the elements of a buffer, in the order of memory


def run_step(step: Step, memory: Memory, numbers: Sequence[float] = ()) -> None:
    """Run a step with a `Kernel` over the buffers of its operands, and store its outputs there.

    The sums and the sums of squares of each row of a (2, 3) matrix, in slots 1 and 2:

    >>> from minifuse.core.dtypes import float64
    >>> from minifuse.core.layout import row_major
    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.kernel_ir import reduce_expr
    >>> x, per_row = Load(0, float64), row_major((2, 1)).expand(2, 3)
    >>> sums = Kernel((), (reduce_expr(add, x), reduce_expr(add, x * x)))
    >>> step = Step(sums, (2, 3), (1,), [(1, per_row), (2, per_row)], [(0, row_major((2, 3)))])
    >>> memory = {0: np.arange(6.0), 1: np.zeros(2), 2: np.zeros(2)}
    >>> run_step(step, memory)
    >>> [float(x) for x in memory[1]], [float(x) for x in memory[2]]
    ([3.0, 12.0], [5.0, 50.0])
    """
    assert isinstance(step.kernel, Kernel)
    run = KernelRun(step, step.kernel, memory, numbers)
    for point in run.points(run.axes if step.kernel.effects else []):
        run.values = {}
        for effect in step.kernel.effects:
            run.apply(effect, point)
    run.values = {}
    # Every value is computed before the first is stored, so an output may be stored over an input.
    stored = [
        (k, point, run.value(e, point))
        for k, e in enumerate(step.kernel.outputs)
        for point in run.points(run.axes_of_output(k))
    ]
    for k, point, value in stored:
        run.set_element(step.outputs[k], point, value)


class KernelRun:
    """One run of a kernel: its buffers, and the values that are known so far."""

    def __init__(self, step: Step, kernel: Kernel, memory: Memory, numbers: Sequence[float]) -> None:
        self.step, self.kernel, self.memory, self.numbers = step, kernel, memory, numbers
        self.axes = [axis_name(d) for d in range(len(step.shape))]
        self.sizes = dict(zip(self.axes, step.shape, strict=True))
        self.values: dict[tuple[Expression, tuple[int, ...]], Any] = {}

    def points(self, axes: Sequence[str]) -> Iterator[Point]:
        """Iterate over all points of some axes. All other axes have index 0."""
        zero = dict.fromkeys(self.axes, 0)
        for index in product(*[range(self.sizes[axis]) for axis in axes]):
            yield zero | dict(zip(axes, index, strict=True))

    def axes_of_output(self, k: int) -> list[str]:
        """Return the axes along which output k is stored."""
        shape = self.step.stored_shape(k)
        return [axis for axis, n in zip(self.axes, shape, strict=True) if n != 1 or self.sizes[axis] == 1]

    def value(self, e: Expression, point: Point) -> Any:
        """Return the value of an expression at a point, as a NumPy scalar."""
        if isinstance(e, ReduceExpr):  # it is constant along the axes that it reduces: once is enough
            point = {**point, **dict.fromkeys([self.axes[d] for d in e.reduced(self.step.dims)], 0)}
        key = e, tuple(point[axis] for axis in self.axes)
        if key not in self.values:
            with np.errstate(all="ignore"):
                self.values[key] = e.dtype.numpy.type(self.evaluate(e, point))
        return self.values[key]

    def evaluate(self, e: Expression, point: Point) -> Any:
        """Compute the value of an expression at a point."""
        match e:
            case Constant():
                return e.value
            case KernelParameter():
                return self.numbers[e.index]
            case IndexValue():
                return self.position(self.step.inputs[e.index], point)
            case Load():
                return self.element(self.step.inputs[e.index], point)
            case ReadOutput():
                return self.element(self.step.outputs[e.index], point)
            case IndexedAccess():
                slot, position = self.indexed_position(e, point)
                return self.memory[slot][position]
            case ReduceExpr():
                return self.reduce(e, point)
            case Op(operator=None):
                return self.value(e.inputs[0], point)
            case Op():
                assert e.operator is not None
                return function_of(e.operator)(*[self.value(x, point) for x in e.inputs])
        raise NotImplementedError(type(e).__name__)

    def reduce(self, e: ReduceExpr, point: Point) -> Any:
        """Combine the values of the inputs at all indices of the reduced axes. Floats are accumulated in float64."""
        states = e.states
        totals = tuple(to_accumulator(x.dtype.numpy.type(x.identity)) for x in states)
        for inner in self.points([self.axes[d] for d in e.reduced(self.step.dims)]):
            reduced = {self.axes[d]: inner[self.axes[d]] for d in e.reduced(self.step.dims)}
            values = [self.value(x, {**point, **reduced}) for x in e.inputs]
            totals = combine_states(e.operator, totals, values)
        return totals[states.index(e)]

    def apply(self, effect: IndexedAccess, point: Point) -> None:
        """Change an element of an indexed operand."""
        slot, position = self.indexed_position(effect, point)
        value = self.value(effect.inputs[-1], point)
        self.memory[slot][position] = self.memory[slot][position] + value if isinstance(effect, AtomicAdd) else value

    # Memory.

    def position(self, view: BufferView, point: Point) -> int:
        """Return the position of an operand's element at a point, in its buffer."""
        _, layout = view
        return layout.offset + sum(point[axis] * stride for axis, stride in zip(self.axes, layout.strides, strict=True))

    def element(self, view: BufferView, point: Point) -> Any:
        """Return an operand's element at a point."""
        return self.memory[view[0]][self.position(view, point)]

    def set_element(self, view: BufferView, point: Point, value: Any) -> None:
        """Store an operand's element at a point."""
        self.memory[view[0]][self.position(view, point)] = value

    def indexed_position(self, e: IndexedAccess, point: Point) -> tuple[int, int]:
        """Return the slot and the position of the element at a computed index."""
        slot, layout = self.step.indexed_operands[e.index]
        indices = [int(self.value(x, point)) for x in e.inputs[: layout.ndim]]
        return slot, layout.offset + sum(i * stride for i, stride in zip(indices, layout.strides, strict=True))


def axis_name(d: int) -> str:
    """Return the name of axis d.

    >>> [axis_name(d) for d in (0, 1, 17, 18)]
    ['i', 'j', 'z', 'i1']
    """
    return chr(ord("i") + d % 18) + str(d // 18) * (d >= 18)


def function_of(operator: Operator) -> Any:
    """Return the function of numbers that an operator applies."""
    return operator.body


def to_accumulator(x: Any) -> Any:
    """Return the start of an accumulator: a float64 for floats."""
    return np.float64(x) if isinstance(x, np.floating) else x
