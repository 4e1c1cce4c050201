"""The operands of a matrix product and its launches: what is at which address, and what prologue and epilogue need of it.

Words that all ways of computing a product share; which of them is taken is decided in `product`. Integers only.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core.dtypes import DType, int64
from ....core.layout import Layout
from ....ir.kernel_ir import Dot, Expression, Kernel, Load, Old, Position, ProductKernel, stride_class
from ...codegen.loop_emitter import name_of
from ..device.tensor_maps import Box
from ..launch_plan import LaunchPlan
from ..tile_shapes import GpuKernel
from .element_types import ADDERS, FEW_ADDERS, TALL, make_adder
from .epilogue import AXES, Hooks, hooks_of, sides_of
from .heuristics import MOST_BLOCKS, Axis, Beside, Product, product_of, steps

OUT, WORKSPACE = 0, -1
KERNEL_AXES = 2  # of the batch that one launch walks


class Place(NamedTuple):
    """An address: so many elements after the first one of an operand, counted outputs first, or of the workspace."""

    operand: int
    offset: int = 0


class Number(NamedTuple):
    """One of the numbers that travel with a launch."""

    position: int


class Map(NamedTuple):
    """The tensor map of an operand: the address of a description of it."""

    place: Place
    box: Box


class Launch(NamedTuple):
    """One launch of a kernel over operands whose addresses are still open."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Place | Number | Map | int | float, ...]  # of the types in the kernel's signature

    def at(self, pointer: Callable[[Place], Any], numbers: Sequence[Any] = ()) -> LaunchPlan:
        """The launch, with what `pointer` gives for each place: an address, or the interpreter's pointer."""
        arguments = tuple(numbers[x.position] if isinstance(x, Number) else given(x, pointer) for x in self.arguments)
        return LaunchPlan(self.kernel.function, self.grid, self.block, arguments, self.kernel.shared)


def given(x: Any, pointer: Callable[[Place], Any]) -> Any:
    """An argument that is no number of the call: places as pointers, a map as that to what it describes."""
    return pointer(x.place if isinstance(x, Map) else x) if isinstance(x, Place | Map) else x


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


def adder_of(
    product: ProductKernel, operands: Operands, p: Product, parts: Place, out: Place, count: int, is_wide: bool
) -> Launch:
    """The launch that adds up what a product with a cut K has written, and does the epilogue."""
    outer, inner = axes_of(p)
    size, target = p.matrices * p.M * p.N, (p.out_row, p.out_col, inner.size, inner.out, outer.out)
    across, down = steps(p.N, 4 * ADDERS[0]), steps(p.M, ADDERS[1])
    is_tall = count >= TALL and across * down * p.matrices <= FEW_ADDERS
    grid = across, min(p.M if is_tall else down, MOST_BLOCKS), p.matrices
    hooks, extra = edges_of(product, operands, p, False, True)
    arguments = out, parts, count, size, p.M, p.N, *target, int(is_wide), *extra
    return Launch(make_adder(product.a.dtype, is_tall, hooks), grid, ADDERS, arguments)
