"""What to launch for a matrix product of given layouts: which kernels, how large a grid, which numbers.

Integers only: no GPU, no Numba, no memory. A plan names its operands by `Place`; whoever has addresses puts them there. The
choice is made in `ways`. Where there are fewer tiles than multiprocessors, K is cut in parts, each with an output of its own
in a workspace, and a second kernel adds the parts in order: results are the same in every run.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

from ...dtypes import DType
from ...layout import Layout
from .launch import LaunchPlan
from .matmul_any import ADDERS, make_adder
from .shapes import GpuKernel
from .ways import MOST_BLOCKS, Axis, Product, Way, best_way, product_of, steps

OUT, A, B, WORKSPACE = range(4)
KERNEL_AXES = 2  # of the batch that one launch walks
MOST_ROWS = MOST_BLOCKS * 4  # of one launch: those of the flattest tile
LARGEST_SHARED = 227 * 1024  # bytes that a block may ask for, on compute capability 9.0
ONE = Axis(1, 0, 0, 0)


class Place(NamedTuple):
    """An address: so many elements after the first one of an operand, or of the workspace."""

    operand: int
    offset: int = 0


class Launch(NamedTuple):
    """One launch of a kernel over operands whose addresses are still open."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Place | int | float, ...]  # of the types in the kernel's signature

    def at(self, pointer: Callable[[Place], Any]) -> LaunchPlan:
        """The launch, with what `pointer` gives for each place: an address, or the interpreter's pointer."""
        arguments = (pointer(x) if isinstance(x, Place) else x for x in self.arguments)
        return LaunchPlan(self.kernel.function, self.grid, self.block, tuple(arguments), self.kernel.shared)


class ProductPlan(NamedTuple):
    """The launches of a product, one after the other, and the bytes of workspace that they share."""

    launches: tuple[Launch, ...] = ()
    workspace: int = 0


def plan_product(
    dtype: DType,
    out: Layout,
    a: Layout,
    b: Layout,
    multiprocessors: int = 132,
    aligned: tuple[bool, bool, bool] = (True, True, True),
    most_shared: int = LARGEST_SHARED,
) -> ProductPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].

    Parameters
    ----------
    dtype : DType
        Of all three.
    out, a, b : Layout
        Shapes (..., M, N), (..., M, K) and (..., K, N), with offset 0; batch dims of a and b broadcast to those of out. Any
        strides; each element of out has a place of its own, which is none of a or b.
    multiprocessors : int
        Of the GPU.
    aligned : (bool, bool, bool)
        Whether the addresses of out, a and b are multiples of 16 bytes.
    most_shared : int
        Bytes of shared memory that a block may ask for.

    Notes
    -----
    float32 is added up by fma in float32, in an order that depends on sizes, strides, alignment and the number of
    multiprocessors alone. Sums of nothing are 0. Integers wrap around. Of bools, which must be 0 or 1, a product is `and`,
    a sum is `or`.

    Sizes and strides are arguments of the launch. What is compiled for float32 is a shape and two operand modes: 9 kernels
    for LARGE, 18 each for SMALL and NARROW, with and without guards, 4 for few rows, and the one that adds parts. These are
    50 at most, of which a program meets a few. Of other types there are fewer.

    Batches with more than two axes that do not merge, and those with more than 65535 matrices, take several launches.

    Examples
    --------
    >>> from minifuse.dtypes import float32
    >>> from minifuse.layout import row_major
    >>> plan = plan_product(float32, row_major((512, 512)), row_major((512, 512)), row_major((512, 512)))
    >>> [(launch.kernel.name, launch.grid) for launch in plan.launches], plan.workspace
    ([('matmul', (4, 8, 4)), ('add_parts', (4, 64, 1))], 4194304)
    """
    if out.size == 0:
        return ProductPlan()
    found = [best_way(dtype, p, multiprocessors, aligned, most_shared) for p in pieces(product_of(out, a, b))]
    launches = [launch for way in found for launch in launches_of(dtype, way)]
    return ProductPlan(tuple(launches), max(workspace_of(dtype, way) for way in found))


def pieces(p: Product) -> Iterator[Product]:
    """The product in pieces that one grid can hold, with at most KERNEL_AXES axes of a batch."""
    if len(p.batch) > KERNEL_AXES or p.matrices > MOST_BLOCKS:
        axis, *inner = p.batch
        step = max(1, MOST_BLOCKS // prod(x.size for x in inner)) if len(p.batch) <= KERNEL_AXES else 1
        for i in range(0, axis.size, step):
            size = min(step, axis.size - i)
            batch = (*[axis._replace(size=size)] * (size > 1), *inner)
            yield from pieces(p._replace(batch=batch).moved(i * axis.out, i * axis.a, i * axis.b))
    elif max(p.M, p.N) > MOST_ROWS:
        for i in range(0, p.M, MOST_ROWS):
            for j in range(0, p.N, MOST_ROWS):
                part = p._replace(M=min(MOST_ROWS, p.M - i), N=min(MOST_ROWS, p.N - j))
                yield part.moved(i * p.out_row + j * p.out_col, i * p.a_row, j * p.b_col)
    else:
        yield p


def launches_of(dtype: DType, way: Way) -> Iterator[Launch]:
    """The launches of one way: the product, and where K is cut, the sum of its parts."""
    p, kernel = way.product, way.kernel()
    BM, BN, _ = way.shape.tile
    is_cut, size = way.parts > 1, p.matrices * p.M * p.N
    stored = p.dense() if is_cut else p
    (outer, inner), (stored_outer, stored_inner) = axes_of(p), axes_of(stored)
    out, to = Place(OUT, p.start[0]), Place(WORKSPACE) if is_cut else Place(OUT, p.start[0])
    left, right = Place(B if p.is_swapped else A, p.start[1]), Place(A if p.is_swapped else B, p.start[2])
    strides = stored.out_row, stored.out_col, p.a_row, p.a_col, p.b_row, p.b_col
    batch = inner.size, stored_inner.out, inner.a, inner.b, stored_outer.out, outer.a, outer.b
    is_wide = p.N % 4 == 0 if is_cut else way.is_wide
    alpha = 1.0 if dtype.is_float else 1
    more = (int(is_wide), alpha) if kernel.name == "matmul" else ()
    numbers = p.M, p.N, p.K, *strides, way.parts, way.part_K, size, *batch, *more
    grid = steps(p.N, BN), steps(p.M, BM), p.matrices * way.parts
    yield Launch(kernel, grid, (kernel.threads, 1, 1), (to, left, right, *numbers, to))
    if is_cut:
        target = p.out_row, p.out_col, inner.size, inner.out, outer.out
        grid = steps(p.N, 4 * ADDERS[0]), min(steps(p.M, ADDERS[1]), MOST_BLOCKS), p.matrices
        arguments = out, to, way.parts, size, p.M, p.N, *target, int(way.is_wide), out
        yield Launch(make_adder(dtype), grid, ADDERS, arguments)


def axes_of(p: Product) -> tuple[Axis, ...]:
    """The axes of the batch, filled up in front to KERNEL_AXES."""
    return (ONE,) * (KERNEL_AXES - len(p.batch)) + p.batch


def workspace_of(dtype: DType, way: Way) -> int:
    """Bytes for the parts of one way."""
    p = way.product
    return way.parts * p.matrices * p.M * p.N * dtype.itemsize if way.parts > 1 else 0
