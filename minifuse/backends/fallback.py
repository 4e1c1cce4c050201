"""Decompose kernels into map, zip, reduce and matmul, so that a backend with these four methods runs every fused function.

This is the specification of a kernel: evaluate its expressions one after the other, each over the whole iteration space.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import IndexingError
from ..core.interning import toposort
from ..core.layout import Layout, row_major
from ..core.operators import add
from ..ir.collectives import CollectiveOp
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
    Op,
    ReadOutput,
    ReduceExpr,
    Shape,
    renumber_operands,
    replace,
)
from ..ir.monoid import MonoidState
from ..ir.numpy_op import NumpyOp
from ..ir.search import SearchSorted
from ..ir.selection import Selection
from ..ir.sort import Sort
from ..ir.step_kernels import CompositeKernel, MatmulKernel, ScanKernel, plain_matmul
from ..ir.steps import Step
from ..runtime.memory_pool import MemoryBuffer, round_to_size_class
from .executable import Cost, Executable, Launcher, NoExecutable, count_rows_launches, matmul_flops
from .fallback_scan import FallbackScan
from .host_arrays import fetch_array, store_array
from .operand import Operand, ScalarFunction, caster, identity, index_values, overflow_error

if TYPE_CHECKING:
    from .base import Backend


HostOp = SearchSorted | Selection | Sort  # ops that NumPy computes on hosts, and kernels on devices


class PointwiseStage(NamedTuple):
    """A prologue or an epilogue: its launcher, and which inputs and numbers of the matmul (by index) the launcher takes."""

    launcher: Launcher
    inputs: Sequence[int]
    numbers: Sequence[int]

    def launch(self, outputs: Sequence[int], inputs: Sequence[int], numbers: Sequence[float]) -> None:
        """Launch this stage, given all inputs and numbers of the matmul."""
        self.launcher(*outputs, *[inputs[k] for k in self.inputs], *[numbers[k] for k in self.numbers])


class FallbackMatmul(Executable):
    """A matmul whose prologue and epilogue are separate launches, with temporary arrays between them."""

    def __init__(self, backend: "Backend", step: Step, kernel: MatmulKernel) -> None:
        super().__init__(step)
        self.backend, self.kernel = backend, kernel

    @property
    def source(self) -> str:
        """A comment: a matmul has no text."""
        a, b = (self.step.inputs[loads[0].index][1].shape for loads in self.kernel.loads()[:2])
        return f"# {self.backend.name}: matmul of {a} and {b}, {self.kernel.a.dtype}\n"

    def cost(self) -> Cost:
        """Return the launches, and the bytes of the arrays between them."""
        kernel, (_, inputs) = self.kernel, self.step.layouts()
        a, b = (inputs[loads[0].index] for loads in kernel.loads()[:2])
        sizes = a.size, b.size, prod((*a.shape[:-1], b.shape[-1]))
        is_separate = not isinstance(kernel.a, Load), not isinstance(kernel.b, Load), kernel.has_epilogue
        scratch = sum(size for size, separate in zip(sizes, is_separate, strict=True) if separate)
        return Cost(1 + sum(is_separate), scratch * kernel.a.dtype.itemsize, matmul_flops(self.step))

    def load(self) -> Launcher:
        """Load the launches of the prologues, the matmul and the epilogue."""
        if self.kernel.is_plain:
            return self.load_plain()
        return MatmulSequence(self.backend, self.kernel, *self.step.layouts()).launch

    def load_plain(self) -> Launcher:
        """Return a call of the backend's method for matmuls of arrays in memory."""
        (outputs, inputs), dtype = self.step.layouts(), self.kernel.a.dtype

        def launch(*addresses: int) -> None:
            pairs = zip(addresses, (*outputs, *inputs), strict=True)
            out, a, b = [Operand.at_address(address, dtype, layout) for address, layout in pairs]
            self.backend.matmul(a, b, out)

        return launch


class MatmulSequence:
    """The launches of a matmul with its prologues and its epilogue, and the temporary arrays between them."""

    def __init__(
        self, backend: "Backend", kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> None:
        self.backend, self.kernel, self.output_count = backend, kernel, len(outputs)
        self.parameters = kernel.find_all(KernelParameter)
        loads = kernel.loads()
        shapes = [inputs[group[0].index].shape for group in loads[:2]]
        dtype = kernel.a.dtype
        self.operands: list[
            tuple[int | PointwiseStage, Layout]
        ] = [  # for a and b: (index of an input or a prologue, layout)
            (loads[k][0].index, inputs[loads[k][0].index])
            if isinstance(e, Load)
            else (self.load_pointwise((e,), [row_major(shapes[k])], inputs), row_major(shapes[k]))
            for k, e in enumerate((kernel.a, kernel.b))
        ]
        result = row_major((*shapes[0][:-1], shapes[1][-1])) if kernel.has_epilogue else outputs[0]
        self.result_nbytes = result.size * dtype.itemsize
        multiply = Step.of_layouts(plain_matmul(dtype), result.shape, (), [result], [layout for _, layout in self.operands])
        self.multiply = backend.compile(multiply).load()
        if kernel.has_epilogue:
            matmul_result = Load(len(inputs), dtype)
            elements = tuple(replace(e, Accumulator, lambda _: matmul_result) for e in kernel.pointwise_outputs)
            self.epilogue = self.load_pointwise(elements, outputs, [*inputs, result])

    def load_pointwise(
        self, elements: tuple[Expression, ...], outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> PointwiseStage:
        """Load a prologue or an epilogue."""
        expressions, input_indices = renumber_operands(elements)
        numbers = Kernel(expressions, ()).find_all(KernelParameter)
        renumbered = {p: KernelParameter(k, p.dtype) for k, p in enumerate(numbers)}
        stage = Kernel(tuple(replace(e, KernelParameter, renumbered.__getitem__) for e in expressions), ())
        step = Step.of_layouts(stage, outputs[0].shape, (), outputs, [inputs[k] for k in input_indices])
        return PointwiseStage(self.backend.compile(step).load(), input_indices, [p.index for p in numbers])

    def launch(self, *values: Any) -> None:
        """Launch the prologues, then the matmul, then the epilogue."""
        first_number = len(values) - len(self.parameters)
        outputs, numbers = values[: self.output_count], values[first_number:]
        inputs = list(values[self.output_count : first_number])
        temporaries, addresses = list[MemoryBuffer](), list[int]()
        for source, layout in self.operands:
            if isinstance(source, int):
                addresses.append(inputs[source])
            else:
                addresses.append(self.allocate(layout.size * self.kernel.a.dtype.itemsize, temporaries))
                source.launch(addresses[-1:], inputs, numbers)
        if not self.kernel.has_epilogue:
            self.multiply(outputs[0], *addresses)
            return
        result = self.allocate(self.result_nbytes, temporaries)
        self.multiply(result, *addresses)
        self.epilogue.launch(outputs, [*inputs, result], numbers)

    def allocate(self, nbytes: int, temporaries: list[MemoryBuffer]) -> int:
        """Allocate memory, append it to `temporaries`, which keeps it alive, and return its address."""
        temporaries.append(self.backend.allocate(round_to_size_class(nbytes)))
        return temporaries[-1].address


class FallbackKernel(Executable):
    """A kernel as a sequence of map, zip and reduce, each over the whole iteration space or over one element per row."""

    def __init__(self, backend: "Backend", step: Step, kernel: Kernel) -> None:
        super().__init__(step)
        self.backend, self.kernel = backend, kernel

    @property
    def source(self) -> str:
        """A comment: there is no text."""
        return f"# {self.backend.name}: {len(self.kernel.outputs)} outputs over {self.step.shape}, one operation at a time\n"

    def cost(self) -> Cost:
        """Return 1 launch, or none if there are no rows."""
        return Cost(count_rows_launches(self.step))

    def load(self) -> Launcher:
        """Return the launch. Nothing is compiled."""
        return KernelInterpreter(self.backend, self.kernel, self.step).launch


class KernelInterpreter:
    """Evaluates the expressions of a kernel one after the other, by the methods of a backend."""

    def __init__(self, backend: "Backend", kernel: Kernel, step: Step) -> None:
        self.backend, self.kernel, self.shape, self.dims = backend, kernel, step.shape, step.dims
        self.outputs, self.inputs = outputs, inputs = step.layouts()
        self.raws, self.is_empty, self.row_shape = step.indexed_layouts(), 0 in step.shape, step.row_shape
        first_raw = len(outputs) + len(inputs)
        # Index of the first input, the first indexed operand and the first number among the values of a launch.
        self.starts = len(outputs), first_raw, first_raw + len(self.raws)
        self.stored_shapes = [step.stored_shape(k) for k in range(len(outputs))]
        self.shapes: dict[Expression, Shape] = {}  # expression -> its shape: reduced dims where it is constant have size 1
        for e in kernel.order:
            if isinstance(e, Load):
                varying = {d for d in self.dims if inputs[e.index].strides[d]}
            elif isinstance(e, ReadOutput):
                varying = {*self.dims}
            else:
                varying = {d for x in e.inputs for d in self.dims if self.shapes[x][d] != 1}
            if isinstance(e, ReduceExpr):
                varying -= {*e.reduced(self.dims)}
            self.shapes[e] = tuple(n if d in varying else self.row_shape[d] for d, n in enumerate(self.shape))

    def launch(self, *values: Any) -> None:
        """Apply indexed stores, evaluate every expression, store the outputs.

        An empty space has no elements, but may have rows, whose outputs are stored.
        """
        results = dict[Expression, Operand]()
        shapes = self.stored_shapes
        outputs = [x for x in enumerate(zip(self.kernel.outputs, self.outputs, strict=True)) if 0 not in shapes[x[0]]]
        loads = [e for e in self.kernel.order if isinstance(e, IndexedLoad)]
        for k, effect in enumerate(() if self.is_empty else self.kernel.effects):
            self.evaluate_all([*[e for e in loads if e.stores_before <= k], *effect.inputs], results, values)
            self.apply_store(effect, results, values)
        self.evaluate_all([e for _, (e, _) in outputs], results, values)
        for k, (e, layout) in outputs:
            shape = shapes[k]
            target = Operand.at_address(values[k], e.dtype, Layout(shape, layout.strides, layout.offset))
            self.backend.map(identity, Operand(results[e].data, results[e].layout.expand(*shape)), target)

    def evaluate_all(self, roots: Sequence[Expression], results: dict[Expression, Operand], values: tuple[Any, ...]) -> None:
        """Evaluate expressions, and the expressions that they need."""
        for e in toposort(roots, lambda e: () if e in results else self.inputs_of(e)):
            if e not in results:
                results[e] = self.evaluate(e, results, values)

    def locate(
        self, e: IndexedAccess, results: dict[Expression, Operand], values: tuple[Any, ...]
    ) -> tuple[Operand, np.ndarray]:
        """Return the operand of an indexed access, and its positions in the operand's flat array, one for each point."""
        layout = self.raws[e.index]
        operand = Operand.at_address(values[self.starts[1] + e.index], e.dtype, layout)
        positions = np.full(self.shapes[e], operand.layout.offset)
        for d, (x, n, stride) in enumerate(zip(e.inputs, layout.shape, layout.strides, strict=False)):
            index = np.broadcast_to(results[x].array(), self.shapes[e])
            out_of_bounds = index[(index < 0) | (index >= n)]
            if out_of_bounds.size:
                bounds = f"it must be at least 0 and less than {n}"
                raise IndexingError(
                    f"index {out_of_bounds[0]} along dim {d} of a raw argument of shape {layout.shape}: {bounds}"
                )
            positions += index * stride
        return operand, positions

    def apply_store(self, e: IndexedAccess, results: dict[Expression, Operand], values: tuple[Any, ...]) -> None:
        """Apply an indexed store or an atomic add at every point."""
        operand, positions = self.locate(e, results, values)
        stored = np.broadcast_to(results[e.inputs[-1]].array(), self.shapes[e])
        if isinstance(e, AtomicAdd):
            np.add.at(operand.data, positions, stored)
        else:
            operand.data[positions] = stored

    def inputs_of(self, e: Expression) -> tuple[Expression, ...]:
        """Return the expressions to evaluate before an expression: none before a reduction of no elements."""
        return () if isinstance(e, ReduceExpr) and 0 in self.shape_to_reduce(e) else e.inputs

    def shape_to_reduce(self, e: ReduceExpr) -> Shape:
        """Return the shape of the elements that a reduction reduces."""
        reduced = e.reduced(self.dims)
        varying = [self.shapes[x] for x in e.inputs]
        return tuple(n if d in reduced else max(shape[d] for shape in varying) for d, n in enumerate(self.shape))

    def reduce_states(self, e: ReduceExpr, results: dict[Expression, Operand]) -> list[Operand]:
        """Reduce several states together: combine one half of the elements with the other, until one is left."""
        shape, reduced, states = self.shape_to_reduce(e), e.reduced(self.dims), e.states
        row_shape = tuple(1 if d in reduced else n for d, n in enumerate(shape))
        if 0 in shape:
            return [Operand.from_array(np.full(row_shape, x.identity, x.dtype.numpy)) for x in states]
        last = tuple(range(-len(reduced), 0))
        arrays = [np.broadcast_to(results[x].array(), shape) for x in e.inputs]
        rows = [np.moveaxis(x, reduced, last).reshape(prod(row_shape), -1) for x in arrays]
        while (count := rows[0].shape[1]) > 1:
            half = count // 2
            combined = self.combine(e, [x[:, :half] for x in rows], [x[:, half : 2 * half] for x in rows])
            rows = [np.concatenate((y, x[:, 2 * half :]), axis=1) for y, x in zip(combined, rows, strict=True)]
        return [Operand.from_array(np.ascontiguousarray(x).reshape(row_shape)) for x in rows]

    def combine(self, e: ReduceExpr, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Combine two arrays of values of a reduction with several states, by a pointwise step."""
        assert isinstance(e.operator, MonoidState)
        expressions, used = renumber_operands(e.operator.monoid.expressions([x.dtype for x in e.states]))
        inputs = [Operand.from_array(x) for x in (*a, *b)]
        outputs = [Operand.from_array(np.empty(x.shape, x.dtype)) for x in a]
        layouts = [[x.layout.without_offset() for x in group] for group in (outputs, [inputs[k] for k in used])]
        step = Step.of_layouts(Kernel(expressions, ()), a[0].shape, (), *layouts)
        self.backend.compile(step).load()(*[x.address for x in (*outputs, *[inputs[k] for k in used])])
        return [x.array() for x in outputs]

    def evaluate(self, e: Expression, results: dict[Expression, Operand], values: tuple[Any, ...]) -> Operand:
        """Return the elements of an expression, given those of its inputs."""
        if isinstance(e, Load):
            layout, first = self.inputs[e.index], values[self.starts[0] + e.index]
            layout = Layout(self.shapes[e], layout.strides, layout.offset)
            return index_values(layout, first) if isinstance(e, IndexValue) else Operand.at_address(first, e.dtype, layout)
        if isinstance(e, IndexedAccess):
            operand, positions = self.locate(e, results, values)
            return Operand(operand.data[positions].reshape(-1), row_major(self.shapes[e]))
        if isinstance(e, ReadOutput):
            operand = Operand.at_address(values[e.index], e.dtype, self.outputs[e.index])
            return Operand(operand.array().copy().reshape(-1), row_major(operand.layout.shape))
        out = Operand.empty(self.shapes[e], e.dtype)
        if isinstance(e, Constant | KernelParameter):
            number = e.value if isinstance(e, Constant) else values[self.starts[2] + e.index]
            try:
                out.data[...] = number
            except OverflowError:
                raise overflow_error(number, e.dtype) from None
        elif isinstance(e, ReduceExpr) and len(e.inputs) > 1:
            states = dict(zip(e.states, self.reduce_states(e, results), strict=True))
            results |= {x: states[x] for x in states if x is not e}
            return states[e]
        elif isinstance(e, ReduceExpr):
            shape = self.shape_to_reduce(e)
            x = Operand.empty(shape, e.dtype) if 0 in shape else results[e.inputs[0]]
            self.backend.reduce(e.operator, Operand(x.data, x.layout.expand(*shape)), out, e.reduced(self.dims))
        elif isinstance(e, Op):
            self.apply_operator(e.operator or caster(e.dtype), [self.expand(e, results[x]) for x in e.inputs], out)
        return out

    def expand(self, e: Expression, operand: Operand) -> Operand:
        """Return an operand with the shape of an expression."""
        shape, layout = self.shapes[e], operand.layout
        if layout.shape == self.shape:
            return Operand(operand.data, Layout(shape, layout.strides, layout.offset))
        return Operand(operand.data, layout.expand(*shape))

    def apply_operator(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        """Compute an operator of one, two or three operands by map and zip.

        The only operator with three operands is where(c, a, b), computed as (a if c else zero) + (zero if c else b).
        """
        if len(xs) == 1:
            self.backend.map(op, xs[0], out)
        elif len(xs) == 2:
            self.backend.zip(op, xs[0], xs[1], out)
        else:
            c, a, b = xs
            from_a, from_b = [Operand(np.empty_like(out.data), out.layout) for _ in range(2)]
            keep_where, keep_elsewhere = KEEP_FLOATS if out.data.dtype.kind == "f" else KEEP_INTEGERS
            self.backend.zip(keep_where, c, a, from_a)
            self.backend.zip(keep_elsewhere, c, b, from_b)
            self.backend.zip(add, from_a, from_b, out)


def keep_or(zero: float) -> tuple[ScalarFunction, ScalarFunction]:
    """Return two functions of a condition and a value: one keeps the value where the condition is true, one elsewhere."""

    def keep_where(c: Any, a: Any) -> Any:
        return a if c else zero

    def keep_elsewhere(c: Any, b: Any) -> Any:
        return zero if c else b

    return keep_where, keep_elsewhere


KEEP_FLOATS = keep_or(-0.0)  # adding 0.0 would turn -0.0 into 0.0
KEEP_INTEGERS = keep_or(0)  # beside a float, NumPy would round them to 53 bits


class NumpyExecutable(Executable):
    """An op that NumPy computes, on the memory of a host. A device copies operands there and back."""

    def __init__(self, backend: "Backend", step: Step, kernel: CompositeKernel, op: NumpyOp | HostOp) -> None:
        super().__init__(step)
        self.backend, self.kernel, self.op = backend, kernel, op

    @property
    def source(self) -> str:
        """A comment: there is no text."""
        shapes = [layout.shape for _, layout in self.step.inputs]
        return f"# {self.backend.name}: NumPy computes {self.kernel.describe(self.step.shape, (), shapes)}\n"

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return the call of NumPy."""
        backend, (outputs, inputs), dtypes = self.backend, self.step.layouts(), self.kernel.operand_dtypes()

        def launch(*addresses: int) -> None:
            pairs = list(zip(addresses, dtypes, (*outputs, *inputs), strict=True))
            arrays = [fetch_array(backend, *pair) for pair in pairs[1:]]
            with np.errstate(all="ignore"):
                store_array(backend, self.op.run(*arrays), *pairs[0])

        return launch


def fallback_executable(backend: "Backend", step: Step) -> Executable:
    """Return the executable of a step: calls of the four methods of a backend, or of NumPy. It has no batch."""
    match step.kernel:
        case CompositeKernel(op=CollectiveOp() as op) as kernel:
            from .collectives import CollectiveExecutable  # programs of one rank need no engines

            return CollectiveExecutable(backend, step, kernel, op)
        case CompositeKernel(op=NumpyOp() as op) as kernel:
            return NumpyExecutable(backend, step, kernel, op)
        case CompositeKernel(op=SearchSorted() as op) as kernel if backend.is_host:
            return NumpyExecutable(backend, step, kernel, op)
        case CompositeKernel(op=Selection() as op) as kernel if backend.is_host and op.has_host_function:
            return NumpyExecutable(backend, step, kernel, op)
        case CompositeKernel(op=Sort() as op) as kernel if op.has_host_function:
            return NumpyExecutable(backend, step, kernel, op)
        case Kernel() as kernel:
            return FallbackKernel(backend, step, kernel)
        case MatmulKernel() as kernel:
            return FallbackMatmul(backend, step, kernel)
        case ScanKernel() as kernel:
            return FallbackScan(backend, step, kernel)
    shapes = [layout.shape for _, layout in step.inputs]
    return NoExecutable(step, f"{backend.name} has no kernel for {step.kernel.describe(step.shape, step.dims, shapes)}")
