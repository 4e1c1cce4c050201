"""Kernels taken apart into map, zip, reduce and matmul: how a backend of four methods runs every fused function.

It is the specification of what a kernel does: one expression after the other, each over the whole space.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import IndexingError
from ..core.interning import toposort
from ..core.layout import Layout, row_major
from ..core.operators import add
from ..ir.kernel_ir import (
    Accumulator,
    AtomicAdd,
    Constant,
    Expression,
    IndexedAccess,
    IndexedLoad,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    MatmulKernel,
    Op,
    ReadOutput,
    ReduceExpr,
    Shape,
    renumber_operands,
    replace,
)
from ..runtime.memory_pool import MemoryBuffer, round_to_size_class
from .operand import Operand, ScalarFunction, caster, identity, index_values, overflow_error


class FallbackMatmul:
    """A matrix product whose prologue and epilogue are launches of their own, over memory of the call."""

    def __init__(self, backend: Any, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> None:
        self.backend, self.kernel, self.count = backend, kernel, len(outputs)
        self.parameters = kernel.parameters()
        loads = kernel.loads()
        places = [inputs[of[0].index].shape for of in loads[:2]]
        shape = (*places[0][:-1], places[1][-1])
        dtype = kernel.a.dtype
        self.operands: list[tuple[Any, Any, Layout]] = [  # which input, or what computes it; its layout
            (loads[k][0].index, None, inputs[loads[k][0].index])
            if isinstance(e, Load)
            else (None, self.bound((e,), [row_major(places[k])], inputs), row_major(places[k]))
            for k, e in enumerate((kernel.a, kernel.b))
        ]
        self.is_direct = kernel.pointwise_outputs == (Accumulator(dtype),)
        layout = outputs[0] if self.is_direct else row_major(shape)
        self.sums, self.nbytes = layout, layout.size * dtype.itemsize
        self.multiply = backend.bind_matmul(dtype, layout, *[layout for _, _, layout in self.operands])
        if not self.is_direct:
            last = Load(len(inputs), dtype)
            elements = tuple(replace(e, Accumulator, lambda _: last) for e in kernel.pointwise_outputs)
            self.finish = self.bound(elements, outputs, [*inputs, layout])

    def bound(self, elements: tuple[Expression, ...], outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Any:
        """(launch, which inputs it takes, which numbers) of a pointwise part."""
        new, used = renumber_operands(elements)
        part = Kernel(new, ())
        numbers = part.find_all(KernelParameter)
        renumbered = {p: KernelParameter(k, p.dtype) for k, p in enumerate(numbers)}
        part = Kernel(tuple(replace(e, KernelParameter, renumbered.__getitem__) for e in new), ())
        launch = self.backend.bind(part, outputs[0].shape, (), outputs, [inputs[k] for k in used])
        return launch, used, [p.index for p in numbers]

    def launch(self, *values: Any) -> None:
        """Operands that are not plain, then the product, then the epilogue."""
        split = len(values) - len(self.parameters)
        outputs, inputs, numbers = values[: self.count], list(values[self.count : split]), values[split:]
        kept, addresses = list[MemoryBuffer](), list[int]()
        for index, part, layout in self.operands:
            if part is None:
                addresses.append(inputs[index])
            else:
                addresses.append(self.new(layout.size * self.kernel.a.dtype.itemsize, kept))
                launch, used, which = part
                launch(addresses[-1], *[inputs[k] for k in used], *[numbers[k] for k in which])
        if self.is_direct:
            self.multiply(outputs[0], *addresses)
            return
        sums = self.new(self.nbytes, kept)
        self.multiply(sums, *addresses)
        launch, used, which = self.finish
        launch(*outputs, *[[*inputs, sums][k] for k in used], *[numbers[k] for k in which])

    def new(self, nbytes: int, kept: list[MemoryBuffer]) -> int:
        """The address of new memory, which lives as long as the list."""
        kept.append(self.backend.allocate(round_to_size_class(nbytes)))
        return kept[-1].address


class FallbackKernel:
    """A kernel as a sequence of map, zip and reduce, each over the whole space or over one value a row."""

    def __init__(
        self,
        backend: Any,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> None:
        self.backend, self.kernel, self.shape, self.dims = backend, kernel, shape, dims
        self.outputs, self.inputs, self.raws, self.is_empty = outputs, inputs, raws, 0 in shape
        self.counts = len(outputs), len(outputs) + len(inputs), len(outputs) + len(inputs) + len(raws)
        self.rows = tuple(1 if d in dims else n for d, n in enumerate(shape))
        self.space: dict[Expression, Shape] = {}
        for e in kernel.expressions():
            if isinstance(e, Load):
                varies = any(shape[d] > 1 and inputs[e.index].strides[d] for d in dims)
            else:
                varies = isinstance(e, ReadOutput) or shape in [self.space[x] for x in e.inputs]
            self.space[e] = shape if varies and not isinstance(e, ReduceExpr) else self.rows

    def launch(self, *values: Any) -> None:
        """Do the effects, compute every expression, store the outputs. An empty space has no elements, but may have rows."""
        found, first = dict[Expression, Operand](), len(self.kernel.pointwise_outputs)
        outputs = list(enumerate(zip(self.kernel.outputs, self.outputs, strict=True)))[first if self.is_empty else 0 :]
        loads = [e for e in self.kernel.expressions() if isinstance(e, IndexedLoad)]
        for k, effect in enumerate(() if self.is_empty else self.kernel.effects):
            self.compute([*[e for e in loads if e.stores_before <= k], *effect.inputs], found, values)
            self.change(effect, found, values)
        self.compute([e for _, (e, _) in outputs], found, values)
        for k, (e, layout) in outputs:
            shape = layout.shape if k < first else self.rows
            target = Operand.at(values[k], e.dtype, Layout(shape, layout.strides, layout.offset))
            self.backend.map(identity, Operand(found[e].data, found[e].layout.expand(*shape)), target)

    def compute(self, roots: Sequence[Expression], found: dict[Expression, Operand], values: tuple[Any, ...]) -> None:
        """Find the elements of some expressions, and of those that they need."""
        for e in toposort(roots, lambda e: () if e in found else self.inputs_of(e)):
            if e not in found:
                found[e] = self.value(e, found, values)

    def raw(self, e: IndexedAccess, found: dict[Expression, Operand], values: tuple[Any, ...]) -> tuple[Operand, Any]:
        """The raw operand that is accessed, and the positions in its flat array, one at each point."""
        layout = self.raws[e.index]
        operand = Operand.at(values[self.counts[1] + e.index], e.dtype, layout)
        positions = np.full(self.space[e], operand.layout.offset)
        for d, (x, n, stride) in enumerate(zip(e.inputs, layout.shape, layout.strides, strict=False)):
            index = np.broadcast_to(found[x].array(), self.space[e])
            outside = index[(index < 0) | (index >= n)]
            if outside.size:
                bounds = f"it must be at least 0 and less than {n}"
                raise IndexingError(f"index {outside[0]} along dim {d} of a raw argument of shape {layout.shape}: {bounds}")
            positions += index * stride
        return operand, positions

    def change(self, e: IndexedAccess, found: dict[Expression, Operand], values: tuple[Any, ...]) -> None:
        """Do an effect at every point."""
        operand, positions = self.raw(e, found, values)
        new = np.broadcast_to(found[e.inputs[-1]].array(), self.space[e])
        if isinstance(e, AtomicAdd):
            np.add.at(operand.data, positions, new)
        else:
            operand.data[positions] = new

    def inputs_of(self, e: Expression) -> tuple[Expression, ...]:
        """What is computed before an expression; nothing before a fold of nothing."""
        return () if self.is_empty and isinstance(e, ReduceExpr) else e.inputs

    def value(self, e: Expression, found: dict[Expression, Operand], values: tuple[Any, ...]) -> Operand:
        """The elements of an expression, from those of its inputs."""
        if isinstance(e, Load):
            layout, first = self.inputs[e.index], values[self.counts[0] + e.index]
            place = Layout(self.space[e], layout.strides, layout.offset)
            return index_values(place, first) if isinstance(e, IndexValue) else Operand.at(first, e.dtype, place)
        if isinstance(e, IndexedAccess):
            operand, positions = self.raw(e, found, values)
            return Operand(operand.data[positions].reshape(-1), row_major(self.space[e]))
        if isinstance(e, ReadOutput):
            operand = Operand.at(values[e.index], e.dtype, self.outputs[e.index])
            return Operand(operand.array().copy().reshape(-1), row_major(operand.layout.shape))
        out = Operand.new(self.space[e], e.dtype)
        if isinstance(e, Constant | KernelParameter):
            number = e.value if isinstance(e, Constant) else values[self.counts[2] + e.index]
            try:
                out.data[...] = number
            except OverflowError:
                raise overflow_error(number, e.dtype) from None
        elif isinstance(e, ReduceExpr):
            x = Operand.new(self.shape, e.dtype) if self.is_empty else found[e.inputs[0]]
            self.backend.reduce(e.operator, Operand(x.data, x.layout.expand(*self.shape)), out, self.dims)
        elif isinstance(e, Op):
            self.elementwise(e.operator or caster(e.dtype), [self.seen(e, found[x]) for x in e.inputs], out)
        return out

    def seen(self, e: Expression, operand: Operand) -> Operand:
        """An operand in the space of e."""
        shape, layout = self.space[e], operand.layout
        if layout.shape == self.shape:
            return Operand(operand.data, Layout(shape, layout.strides, layout.offset))
        return Operand(operand.data, layout.expand(*shape))

    def elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        """Compute an operator of any number of operands by map and zip.

        where(c, a, b) is (a if c else zero) + (zero if c else b). Of floats, zero is -0.0: 0.0 would turn -0.0 into 0.0.
        """
        if len(xs) == 1:
            self.backend.map(op, xs[0], out)
        elif len(xs) == 2:
            self.backend.zip(op, xs[0], xs[1], out)
        else:
            c, a, b = xs
            chosen, other = [Operand(np.empty_like(out.data), out.layout) for _ in range(2)]
            zero = -0.0 if out.data.dtype.kind == "f" else 0
            self.backend.zip(lambda c, a: a if c else zero, c, a, chosen)
            self.backend.zip(lambda c, b: zero if c else b, c, b, other)
            self.backend.zip(add, chosen, other, out)
