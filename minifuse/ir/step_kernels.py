"""The other kinds of kernels of a step, besides `Kernel`: matmuls, scans, composite ops, and batches of one kernel."""

from collections import Counter
from collections.abc import Callable, Sequence

from ..core.dtypes import HIGHEST, DType
from ..core.layout import Layout
from .composite_op import CompositeOp
from .kernel_ir import (
    Accumulator,
    Expression,
    IndexedAccess,
    Kernel,
    Load,
    OpaqueOutput,
    ReadOutput,
    Shape,
    StepKernel,
    replace,
    replace_in,
)
from .scan import Scan


class MatmulKernel(StepKernel):
    """A matrix multiplication with a fused prologue and epilogue.

    a, b
        The operands, expressions over (..., M, K) and (..., K, N): the prologue. A plain operand is a `Load`.
    precision
        One of `dtypes.PRECISIONS`: how far float32 operands may be rounded. A backend may always round less.
    pointwise_outputs
        The expressions stored at each point of (..., M, N), functions of `Accumulator`: the epilogue. A plain matmul stores
        the `Accumulator` itself.

    Loads are numbered in this order: those of a, of b, of the epilogue. Each load belongs to one of the three spaces, and so
    does each parameter, but the three may share parameters.
    """

    __slots__ = ("a", "b", "factors", "precision")

    def __init__(
        self, a: Expression, b: Expression, pointwise_outputs: tuple[Expression, ...], precision: str = HIGHEST
    ) -> None:
        self.a, self.b, self.pointwise_outputs, self.precision = a, b, pointwise_outputs, precision
        self.factors = a, b
        super().__init__(a, b, *pointwise_outputs)

    @property
    def has_prologue(self) -> bool:
        """True if an operand is computed, not only loaded."""
        return not (isinstance(self.a, Load) and isinstance(self.b, Load))

    @property
    def has_epilogue(self) -> bool:
        """True unless only the sums are stored."""
        return self.pointwise_outputs != (Accumulator(self.a.dtype),)

    @property
    def is_plain(self) -> bool:
        """True for a matmul without prologue or epilogue, in full precision."""
        return self.precision == HIGHEST and not self.has_prologue and not self.has_epilogue

    def loads(self) -> tuple[list[Load], list[Load], list[Load]]:
        """Return the loads of a, of b and of the epilogue, each sorted by index."""
        a, b, epilogue = (Kernel(roots, ()).find_all(Load) for roots in ((self.a,), (self.b,), self.pointwise_outputs))
        return a, b, epilogue

    def can_overwrite(self, k: int, layout: Layout, shape: Shape, dims: tuple[int, ...]) -> bool:
        """Return whether only the epilogue reads an input: it reads an element at the point where it stores it."""
        return all(k != load.index for e in self.factors for load in Kernel((e,), ()).find_all(Load))

    def replace_loads(self, change: Callable[[Load], Expression]) -> "MatmulKernel":
        """Rebuild this kernel with each load replaced."""
        a, b, *pointwise = replace_in((self.a, self.b, *self.pointwise_outputs), Load, change)
        return MatmulKernel(a, b, tuple(pointwise), self.precision)

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return the shapes that are multiplied, the precision, and what is fused."""
        shapes = " @ ".join(str(input_shapes[loads[0].index]) for loads in self.loads()[:2])
        parts = ["prologue"] * self.has_prologue + ["epilogue"] * self.has_epilogue
        precision = "" if self.precision == HIGHEST else f" in {self.precision} precision"
        return f"matmul {shapes}{precision}{' with ' * bool(parts)}{' and '.join(parts)}"


class ScanKernel(StepKernel):
    """A scan along a dim with a fused prologue and epilogue: all over the shape of the scan.

    op
        The scan. Its outputs are `OpaqueOutput`s, whose inputs are the states, one expression each: the prologue.
    pointwise_outputs
        The expressions stored at each point, functions of these `OpaqueOutput`s and of loads: the epilogue. A plain scan
        stores the `OpaqueOutput`s themselves.
    row_outputs
        The expressions stored once per line: functions of reductions along the dim, whose inputs are pointwise.
    """

    __slots__ = ("op", "row_outputs", "states")

    def __init__(
        self, op: Scan, pointwise_outputs: tuple[Expression, ...], row_outputs: tuple[Expression, ...] = ()
    ) -> None:
        self.op, self.pointwise_outputs, self.row_outputs = op, pointwise_outputs, row_outputs
        super().__init__(*pointwise_outputs, *row_outputs)
        self.states = self.scanned[0].inputs

    @property
    def scanned(self) -> list[OpaqueOutput]:
        """The outputs of the scan that the epilogue reads."""
        return self.find_all(OpaqueOutput)

    def state_of(self, e: OpaqueOutput) -> int:
        """Return the state that an output of the scan is."""
        return self.op.kept[self.op.names.index(e.name)]

    @property
    def has_prologue(self) -> bool:
        """True if a state is computed, not only loaded."""
        return not all(type(e) is Load for e in self.states)

    @property
    def has_epilogue(self) -> bool:
        """True unless only outputs of the scan are stored at each point."""
        return not all(isinstance(e, OpaqueOutput) for e in self.pointwise_outputs)

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return the name of the scan, its shape, and what is fused."""
        parts = ["prologue"] * self.has_prologue + ["epilogue"] * self.has_epilogue + ["rows"] * bool(self.row_outputs)
        return f"{self.op.names[0]} of {shape} along dim {self.op.dim}{' with ' * bool(parts)}{' and '.join(parts)}"


class CompositeKernel(StepKernel):
    """A composite op that the backend computes with a kernel of its own. Each output depends on all inputs.

    op
        The op, with its parameters.
    dtypes, output_dtypes
        Those of its inputs and of its outputs.
    """

    __slots__ = ("op",)

    def __init__(self, op: CompositeOp, dtypes: tuple[DType, ...], output_dtypes: tuple[DType, ...]) -> None:
        self.op, loads = op, tuple(Load(k, dtype) for k, dtype in enumerate(dtypes))
        outputs = zip(op.names, output_dtypes, strict=True)
        self.pointwise_outputs = tuple(OpaqueOutput(name, loads, dtype) for name, dtype in outputs)
        super().__init__(*self.pointwise_outputs)

    def can_overwrite(self, k: int, layout: Layout, shape: Shape, dims: tuple[int, ...]) -> bool:
        """Return whether the op changes an input in place."""
        return k == self.op.overwritten_input

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return the name of the op, and the shapes of its inputs."""
        return f"{self.op.names[0]} of {', '.join(map(str, input_shapes))}"


class BatchedKernel(StepKernel):
    """One pointwise kernel that a launch runs over several arrays, each with its own shape (PyTorch: foreach).

    kernel
        The kernel that runs.
    shapes
        The shape of each array, the largest first.
    pointwise_outputs
        The outputs for all arrays, as functions of all inputs: array by array. They only describe the launch.
    """

    __slots__ = ("kernel", "shapes")

    def __init__(self, kernel: Kernel, shapes: tuple[Shape, ...]) -> None:
        self.kernel, self.shapes = kernel, shapes
        output_count, input_count = len(kernel.outputs), len(kernel.find_all(Load))
        self.pointwise_outputs = tuple(
            offset_operands(e, k * output_count, k * input_count) for k in range(len(shapes)) for e in kernel.outputs
        )
        super().__init__(*self.pointwise_outputs)

    def parts(self, shape: Shape) -> list[tuple[StepKernel, Shape]]:
        """Return the kernel with the shape of each array."""
        return [(self.kernel, shape) for shape in self.shapes]

    def describe(self, shape: Shape, dims: tuple[int, ...], input_shapes: Sequence[Shape]) -> str:
        """Return the number of arrays of each shape.

        Examples
        --------
        >>> BatchedKernel(Kernel((), ()), ((4, 5), (4, 5), (3,))).describe((23,), (), [])
        'pointwise over 2 x (4, 5) and (3,)'
        """
        counts = Counter(self.shapes).items()
        return f"pointwise over {' and '.join(f'{n} x {shape}' if n > 1 else str(shape) for shape, n in counts)}"


def plain_scan(op: Scan, dtypes: Sequence[DType]) -> ScanKernel:
    """Return the scan without prologue and epilogue, given the dtype of each state."""
    loads = tuple(Load(k, dtype) for k, dtype in enumerate(dtypes))
    return ScanKernel(op, tuple(OpaqueOutput(name, loads, dtypes[k]) for name, k in zip(op.names, op.kept, strict=True)))


def plain_matmul(dtype: DType) -> MatmulKernel:
    """Return the matmul without prologue and epilogue."""
    return MatmulKernel(Load(0, dtype), Load(1, dtype), (Accumulator(dtype),))


def offset_operands(e: Expression, output_offset: int, input_offset: int) -> Expression:
    """Add an offset to the index of each output, and another to that of each input, that an expression reads."""
    e = replace(e, Load, lambda x: type(x)(x.index + input_offset, x.dtype))
    return replace(e, ReadOutput, lambda x: ReadOutput(x.index + output_offset, x.dtype))


def renumber_indexed_operands(kernel: Kernel) -> tuple[Kernel, list[int]]:
    """Renumber the indexed operands of a kernel without effects as 0, 1, ... Return the kernel, and the old indices."""
    old_indices = sorted({e.index for e in kernel.find_all(IndexedAccess)})
    rebuilt: dict[Expression, Expression] = {}
    for e in kernel.order:
        if isinstance(e, IndexedAccess):
            rebuilt[e] = type(e)(old_indices.index(e.index), e.stores_before, tuple(rebuilt[x] for x in e.inputs), e.dtype)
        else:
            rebuilt[e] = replace(e, IndexedAccess, lambda x: rebuilt[x])
    pointwise, rows = (tuple(rebuilt[e] for e in roots) for roots in (kernel.pointwise_outputs, kernel.row_outputs))
    return Kernel(pointwise, rows), old_indices
