"""What to launch for a matrix product of given layouts: which kernels, how large a grid, which numbers.

Integers only: no GPU, no Numba, no memory. A plan names its operands by `Place`; whoever has addresses puts them there. The
choice is made in `ways`. Where there are fewer tiles than multiprocessors, K is cut in parts, each with an output of its own
in a workspace, and a second kernel adds the parts in order: results are the same in every run.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from ...dtypes import DType, int64
from ...kernels import Dot, Expression, Kernel, Load, Old, Position, ProductKernel, stride_class
from ...layout import Layout
from ..emit import name_of
from .hooks import AXES, Hooks, hooks_of, sides_of
from .launch import LaunchPlan
from .matmul_any import ADDERS, FEW_ADDERS, TALL, make_adder
from .matmul_turn import LANES, make_turn
from .shapes import GpuKernel
from .ways import MOST_BLOCKS, Axis, Beside, Product, Way, best_way, product_of, steps

OUT, WORKSPACE = 0, -1
KERNEL_AXES = 2  # of the batch that one launch walks
MOST_ROWS = MOST_BLOCKS * 4  # of one launch: those of the flattest tile
LARGEST_SHARED = 227 * 1024  # bytes that a block may ask for, on compute capability 9.0


class Place(NamedTuple):
    """An address: so many elements after the first one of an operand, counted outputs first, or of the workspace."""

    operand: int
    offset: int = 0


class Number(NamedTuple):
    """One of the numbers that travel with a launch."""

    position: int


class Launch(NamedTuple):
    """One launch of a kernel over operands whose addresses are still open."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Place | Number | int | float, ...]  # of the types in the kernel's signature

    def at(self, pointer: Callable[[Place], Any], numbers: Sequence[Any] = ()) -> LaunchPlan:
        """The launch, with what `pointer` gives for each place: an address, or the interpreter's pointer."""
        arguments = tuple(
            pointer(x) if isinstance(x, Place) else numbers[x.position] if isinstance(x, Number) else x
            for x in self.arguments
        )
        return LaunchPlan(self.kernel.function, self.grid, self.block, arguments, self.kernel.shared)


class ProductPlan(NamedTuple):
    """The launches of a product, one after the other, and the bytes of workspace that they share."""

    launches: tuple[Launch, ...] = ()
    workspace: int = 0


class Operands(NamedTuple):
    """What the addresses of a product's launch are, outputs first: a and b, which its kernels load, and all else."""

    a: int
    b: int
    beside: tuple[tuple[int, str, bool, Layout], ...]  # as `product_of` takes them
    outputs: int  # how many

    @property
    def mains(self) -> tuple[int, int]:
        """The loads of a and b."""
        return self.a - self.outputs, self.b - self.outputs

    def name(self, x: Beside) -> str:
        """What an operand is called in the text of prologue and epilogue."""
        k = x.operand - self.outputs
        return f"out{x.operand}" if k < 0 else name_of((Load if x.in_memory else Position)(k, int64))


def plain(dtype: DType) -> ProductKernel:
    """The product of two matrices, and nothing else."""
    return ProductKernel(Load(0, dtype), Load(1, dtype), (Dot(dtype),))


def operands_of(kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Operands:
    """The roles of a product's operands. Of what a prologue reads, the kernel loads the first array that is no vector."""
    count, (of_a, of_b, others) = len(outputs), kernel.loads()
    a, b = (max(loads, key=lambda x: main_first(x, inputs)) for loads in (of_a, of_b))
    is_read = any(e.index == 0 for e in Kernel(kernel.elements, ()).each(Old))
    beside = [(k, "out", True, layout) for k, layout in enumerate(outputs) if k or is_read]
    for space, loads in (("out", others), ("a", of_a), ("b", of_b)):
        beside += [(count + x.index, space, not isinstance(x, Position), inputs[x.index]) for x in loads if x not in (a, b)]
    return Operands(count + a.index, count + b.index, tuple(beside), count)


def main_first(x: Load, inputs: Sequence[Layout]) -> tuple[bool, bool]:
    """Largest for the load of a prologue that a kernel does itself."""
    return not isinstance(x, Position), is_matrix(inputs[x.index])


def is_matrix(layout: Layout) -> bool:
    """Whether it has an element of its own at each place of its last two axes."""
    return all(stride and size > 1 for stride, size in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def whole_product(kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[Product, Operands]:
    """Sizes and strides of a product, and what its operands are."""
    operands = operands_of(kernel, outputs, inputs)
    a, b = (inputs[main] for main in operands.mains)
    changes = change_cost(kernel.a), change_cost(kernel.b)
    return product_of(outputs[0], a, b, operands.beside)._replace(changes=changes), operands


def change_cost(e: Expression) -> int:
    """Additions of a prologue, besides the load that the kernel does anyway."""
    return 0 if isinstance(e, Load) else max(1, Kernel((e,), ()).cost() - 1)


def plan_product(
    kernel: ProductKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    aligned: tuple[bool, bool, bool] = (True, True, True),
    most_shared: int = LARGEST_SHARED,
) -> ProductPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], with prologue and epilogue.

    Parameters
    ----------
    kernel : ProductKernel
        What is computed. Its prologue reads one array, besides numbers and vectors; `merging` refuses others.
    outputs, inputs : sequence of Layout
        Shapes (..., M, N) of outputs and of what the epilogue reads, (..., M, K) of a's loads and (..., K, N) of b's, with
        offset 0. Batch dims of a plain a or b may broadcast. Any strides; each element of an output has a place of its own,
        which is none of an input.
    multiprocessors : int
        Of the GPU.
    aligned : (bool, bool, bool)
        Whether addresses are multiples of 16 bytes: those of outputs and of what the epilogue reads, of a, and of b.
    most_shared : int
        Bytes of shared memory that a block may ask for.

    Notes
    -----
    float32 is added up by fma in float32, in an order that depends on sizes, strides, alignment and the number of
    multiprocessors alone. Sums of nothing are 0. Integers wrap around. Of bools, which must be 0 or 1, a product is `and`,
    a sum is `or`.

    Sizes and strides are arguments of the launch. What is compiled for float32 is a shape and two operand modes: 9 kernels
    for LARGE, 18 each for SMALL, MIDDLE and NARROW, with and without guards, 14 for few rows, 2 that add parts, and one that
    turns operands over. These are 80 at most, of which a program meets a few. Of other types there are fewer. Each prologue
    and epilogue has its own, one for each class of its operands' strides.

    Where K is cut, the epilogue belongs to the kernel that adds the parts.

    Batches with more than two axes that do not merge, and those with more than 65535 matrices, take several launches.

    Examples
    --------
    >>> from minifuse.dtypes import float32
    >>> from minifuse.layout import row_major
    >>> plan = plan_product(plain(float32), [row_major((512, 512))], [row_major((512, 512))] * 2)
    >>> [(launch.kernel.name, launch.grid) for launch in plan.launches], plan.workspace
    ([('matmul', (4, 8, 4)), ('add_parts', (4, 64, 1))], 4194304)
    """
    if outputs[0].size == 0:
        return ProductPlan()
    product, operands = whole_product(kernel, outputs, inputs)
    dtype = kernel.a.dtype
    found = [best_way(dtype, p, multiprocessors, aligned, most_shared) for p in pieces(product)]
    launches = [launch for way in found for launch in launches_of(kernel, operands, way)]
    return ProductPlan(tuple(launches), max(workspace_of(dtype, way) for way in found))


def pieces(p: Product) -> Iterator[Product]:
    """The product in pieces that one grid can hold, with at most KERNEL_AXES axes of a batch."""
    if len(p.batch) > KERNEL_AXES or p.matrices > MOST_BLOCKS:
        axis, *inner = p.batch
        step = max(1, MOST_BLOCKS // prod(x.size for x in inner)) if len(p.batch) <= KERNEL_AXES else 1
        for i in range(0, axis.size, step):
            size = min(step, axis.size - i)
            batch = (*[axis._replace(size=size)] * (size > 1), *inner)
            further = i * axis.out, i * axis.a, i * axis.b, [i * stride for stride in axis.beside]
            yield from pieces(p._replace(batch=batch).moved(*further))
    elif max(p.M, p.N) > MOST_ROWS:
        for i in range(0, p.M, MOST_ROWS):
            for j in range(0, p.N, MOST_ROWS):
                part = p._replace(M=min(MOST_ROWS, p.M - i), N=min(MOST_ROWS, p.N - j))
                beside = [i * x.m + j * x.n for x in p.beside]
                yield part.moved(i * p.out_row + j * p.out_col, i * p.a_row, j * p.b_col, beside)
    else:
        yield p


def launches_of(product: ProductKernel, operands: Operands, way: Way) -> Iterator[Launch]:
    """The launches of one way: the product, and where K is cut, the sum of its parts."""
    p, dtype = way.product, product.a.dtype
    BM, BN, _ = way.shape.tile
    is_cut, size = way.parts > 1, p.matrices * p.M * p.N
    hooks, extra = edges_of(product, operands, p, True, not is_cut)
    stored = p.dense() if is_cut else p
    (outer, inner), (stored_outer, stored_inner) = axes_of(p), axes_of(stored)
    out, to = Place(OUT, p.start[0]), Place(WORKSPACE) if is_cut else Place(OUT, p.start[0])
    a, b = (operands.b, operands.a) if p.is_swapped else (operands.a, operands.b)
    places = [Place(a, p.start[1]), Place(b, p.start[2])]
    at = way.parts * size if is_cut else 0  # of the workspace: parts come first
    for turn in way.turns:
        source, places[turn.is_b] = Place((a, b)[turn.is_b], turn.start), Place(WORKSPACE, at)
        kernel = make_turn(dtype)
        yield Launch(kernel, turn.grid, (*LANES, 1), (Place(WORKSPACE, at), source, *turn.numbers))
        at += turn.size
    strides = stored.out_row, stored.out_col, p.a_row, p.a_col, p.b_row, p.b_col
    batch = inner.size, stored_inner.out, inner.a, inner.b, stored_outer.out, outer.a, outer.b
    kernel, is_wide = way.kernel(hooks), p.N % 4 == 0 if is_cut else way.is_wide
    alpha = 1.0 if dtype.is_float else 1
    more = (int(is_wide), alpha) if not way.shape.is_thin else ()
    numbers = p.M, p.N, p.K, *strides, way.parts, way.part_K, size, *batch, *more
    grid = steps(p.N, BN), steps(p.M, BM), p.matrices * way.parts
    yield Launch(kernel, grid, (kernel.threads, 1, 1), (to, *places, *numbers, *extra))
    if is_cut:
        target = p.out_row, p.out_col, inner.size, inner.out, outer.out
        across, down = steps(p.N, 4 * ADDERS[0]), steps(p.M, ADDERS[1])
        is_tall = way.parts >= TALL and across * down * p.matrices <= FEW_ADDERS
        grid = across, min(p.M if is_tall else down, MOST_BLOCKS), p.matrices
        hooks, extra = edges_of(product, operands, p, False, True)
        arguments = out, to, way.parts, size, p.M, p.N, *target, int(way.is_wide), *extra
        yield Launch(make_adder(dtype, is_tall, hooks), grid, ADDERS, arguments)


def edges_of(
    kernel: ProductKernel, operands: Operands, p: Product, is_first: bool, is_last: bool
) -> tuple[Hooks, list[Place | Number | int]]:
    """The prologue and epilogue of one kernel, and the arguments that they need."""
    axes, known, classes = axes_of(p), dict[str, Place | Number | int](), list[tuple[str, str]]()
    for e, x in enumerate(p.beside):
        name, strides = operands.name(x), (*[axis.beside[e] for axis in axes], x.m, x.n, x.k)
        known[name] = Place(x.operand, x.start)
        known |= {f"{name}_{axis}": stride for axis, stride in zip(AXES, strides, strict=True)}
        if is_last if x.space == "out" else is_first:
            classes.append((name, "".join(map(stride_class, strides))))
    known |= {f"p{parameter.index}": Number(k) for k, parameter in enumerate(kernel.parameters())}
    hooks = hooks_of(sides_of(kernel, operands.mains, p.is_swapped, is_first, is_last), tuple(classes))
    return hooks, [known[name] for name in hooks.extra]


def axes_of(p: Product) -> tuple[Axis, ...]:
    """The axes of the batch, filled up in front to KERNEL_AXES."""
    one = Axis(1, 0, 0, 0, (0,) * len(p.beside))
    return (one,) * (KERNEL_AXES - len(p.batch)) + p.batch


def workspace_of(dtype: DType, way: Way) -> int:
    """Bytes for the parts of one way, and for what it turns over."""
    p = way.product
    parts = way.parts * p.matrices * p.M * p.N if way.parts > 1 else 0
    return (parts + sum(turn.size for turn in way.turns)) * dtype.itemsize
