"""A matmul problem: sizes, strides and costs, without a configuration. `search` finds a configuration for it."""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ...core.dtypes import HIGHEST, DType
from ...core.layout import Layout, collapse
from ...ir.kernel_ir import IndexValue, Kernel, Load, ReadOutput
from ...ir.step_kernels import MatmulKernel


class MatmulOperand(NamedTuple):
    """An operand of a matmul: its strides along M, N, K and the batch, in elements, 0 where it is constant."""

    address_index: int  # index among the addresses of a launch: outputs, then inputs
    space: str  # "out", "a" or "b": it has elements over (M, N), (M, K) or (K, N)
    m: int
    n: int
    k: int
    batch: tuple[int, ...] = ()
    in_memory: bool = True  # False for index values, and for sums that no output can store
    is_aligned: bool = True  # whether its address is a multiple of 16 bytes
    start: int = 0  # position of its first element

    @property
    def matrix_strides(self) -> tuple[int, int]:
        """The stride from row to row of one matrix, and the stride from column to column."""
        return {"out": (self.m, self.n), "a": (self.m, self.k), "b": (self.k, self.n)}[self.space]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The position of the first element, and the strides along the batch."""
        return self.start, *self.batch


class MatmulProblem(NamedTuple):
    """A matmul out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], and the costs of its prologues and epilogue.

    A cost is that of one element, in the units of a device's cost model; 0 if there is no prologue or epilogue.
    """

    dtype: DType
    M: int
    N: int
    K: int
    out: MatmulOperand
    a: MatmulOperand
    b: MatmulOperand
    batch: tuple[int, ...] = ()  # sizes of its axes, outermost first
    fused: tuple[MatmulOperand, ...] = ()  # the other operands of the prologues and the epilogue
    cost_a: float = 0
    cost_b: float = 0
    cost_out: float = 0
    precision: str = HIGHEST  # how far float32 operands may be rounded
    is_transposed: bool = False  # whether it is out.T = b.T @ a.T, so a is the original b

    @property
    def matrix_count(self) -> int:
        """The number of matrices in the batch."""
        return prod(self.batch)

    def map_operands(self, change: Callable[[MatmulOperand], MatmulOperand]) -> "MatmulProblem":
        """Return this problem with a function applied to each operand."""
        out, a, b, *fused = map(change, (self.out, self.a, self.b, *self.fused))
        return self._replace(out=out, a=a, b=b, fused=tuple(fused))

    def transposed(self) -> "MatmulProblem":
        """Return this problem as out.T = b.T @ a.T."""
        out, a, b, *fused = (x._replace(m=x.n, n=x.m) for x in (self.out, self.b, self.a, *self.fused))
        p = self._replace(M=self.N, N=self.M, out=out, a=a, b=b, fused=tuple(fused), is_transposed=not self.is_transposed)
        return p._replace(cost_a=self.cost_b, cost_b=self.cost_a) if self.cost_a != self.cost_b else p


def plain_problem(dtype: DType, out: Layout, a: Layout, b: Layout) -> MatmulProblem:
    """Return the problem of a matmul without prologue and epilogue."""
    return problem_from_operands(dtype, [(0, "out", True, out), (1, "a", True, a), (2, "b", True, b)])


def matmul_problem(kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> MatmulProblem:
    """Return the problem of a kernel. Its a and b are the first load in each prologue that is a matrix, not a vector.

    If the epilogue reads the first output, this output is also one of the fused operands.
    """
    output_count, (loads_a, loads_b, others) = len(outputs), kernel.loads()
    a, b = (max(loads, key=lambda x: main_load_priority(x, inputs)) for loads in (loads_a, loads_b))
    is_read = any(e.index == 0 for e in Kernel(kernel.pointwise_outputs, ()).find_all(ReadOutput))
    operands = [(0, "out", True, outputs[0])]
    operands += [(output_count + x.index, space, True, inputs[x.index]) for x, space in ((a, "a"), (b, "b"))]
    operands += [(k, "out", True, layout) for k, layout in enumerate(outputs) if k or is_read]
    for space, loads in (("out", others), ("a", loads_a), ("b", loads_b)):
        fused = [x for x in loads if x not in (a, b)]
        operands += [(output_count + x.index, space, not isinstance(x, IndexValue), inputs[x.index]) for x in fused]
    return problem_from_operands(kernel.a.dtype, operands)._replace(precision=kernel.precision)


def main_load_priority(x: Load, inputs: Sequence[Layout]) -> tuple[bool, bool]:
    """Return a sort key, which is largest for the load of a prologue that becomes the operand of the matmul."""
    return not isinstance(x, IndexValue), is_matrix(inputs[x.index])


def is_matrix(layout: Layout) -> bool:
    """Return True if both of the last two axes have more than one element and a nonzero stride."""
    return all(stride and size > 1 for stride, size in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def problem_from_operands(dtype: DType, operands: Sequence[tuple[int, str, bool, Layout]]) -> MatmulProblem:
    """Return the problem for operands (address_index, space, in_memory, layout), in the order out, a, b, others.

    Batch axes along which b and its prologue are constant become rows of one larger matmul, if strides allow it.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.layout import row_major
    >>> p = plain_problem(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((64, 10)))
    >>> p.M, p.N, p.K, p.batch
    (256, 10, 64, ())
    """
    *shape, columns = operands[0][-1].shape
    depth = operands[1][-1].shape[-1]
    spaces = {"out": (*shape, columns), "a": (*shape, depth), "b": (*shape[:-1], depth, columns)}
    strides = [layout.expand(*spaces[space]).strides for _, space, _, layout in operands]
    is_b = [space == "b" for _, space, *_ in operands]
    axes = collapse(shape, [(*s[:-2], 0) if b else s[:-1] for s, b in zip(strides, is_b, strict=True)])
    are_rows = bool(axes) and not any(stride for stride, b in zip(axes[-1][1], is_b, strict=True) if b)
    rows, along_m = axes.pop() if are_rows else (1, (0,) * len(operands))
    converted = []
    for k, (address_index, space, in_memory, _) in enumerate(operands):
        along_n = 0 if space == "a" else strides[k][-1]
        along_k = {"out": 0, "a": strides[k][-1], "b": strides[k][-2]}[space]
        batch_strides = tuple(s[k] for _, s in axes)
        converted.append(MatmulOperand(address_index, space, along_m[k], along_n, along_k, batch_strides, in_memory))
    out, a, b, *fused = converted
    return MatmulProblem(dtype, rows, columns, depth, out, a, b, tuple(size for size, _ in axes), tuple(fused))
