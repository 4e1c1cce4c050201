"""The parallel backend: kernels as machine code on CPU threads.

Binding a kernel collapses its axes, prints its source, compiles it (or finds it), and gives a launch that packs
addresses and numbers into one buffer and calls the driver. Nothing here knows a graph or a tensor.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import BY_NUMPY, DType, int32
from ...errors import FuseError
from ...kernels import (
    Expression,
    Kernel,
    Nest,
    Parameter,
    ProductKernel,
    Shape,
    cast,
    fold,
    numbered,
    stride_class,
    stride_classes,
    trace,
)
from ...layout import Layout
from ...operators import Operator
from ..base import Backend, Launcher, Operand, ScalarFunction, check_fits, identity_of, load, needs_an_element
from ..direct import direct_run
from . import any_function, keyed, streaming
from .compiler import compile_kernel_text
from .dialect import source
from .driver import count_chunks, driver
from .gemm import bind_matmul
from .product import StagedProduct
from .together import job_of


class BoundKernel:
    """A kernel with all that its launch passes but addresses and numbers."""

    def __init__(
        self,
        address: int,
        count: int,
        chunks: int,
        addresses: int,
        numbers: Sequence[Parameter],
        constants: Sequence[int],
        header: Sequence[int] = (),
    ) -> None:
        """`header` are arguments before the addresses, `constants` those behind the numbers."""
        self.address, self.count, self.chunks = address, count, chunks
        self.addresses, self.numbers, self.constants = addresses, numbers, constants
        self.drive, self.pack = driver(), packer(addresses, numbers)
        self.header, self.rest = (np.array(words, np.int64).tobytes() for words in (header, constants))

    def __call__(self, *values: Any) -> None:
        """Launch, on one thread or on several."""
        try:
            self.drive(self.address, self.count, self.chunks, self.header + self.pack(*values) + self.rest)
        except struct.error:
            refuse(values[self.addresses :], [p.dtype for p in self.numbers])
            raise

    def direct(self) -> Callable[..., Any]:
        """The same by the shortest way, where one thread does it and no number must be checked."""
        if self.chunks > 1 or self.header or any(p.dtype is int32 for p in self.numbers):
            return self
        kinds = ["i64"] * self.addresses + ["f64" if p.dtype.is_float else "i64" for p in self.numbers]
        return direct_run(self.address, self.count, kinds, self.constants, self)


class ParallelBackend(Backend):
    """Numba on CPU threads."""

    name = "parallel"
    has_limits = True

    def bind(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> Launcher:
        """A launch of machine code that is specialised on the classes of all strides."""
        nest = Nest(shape, dims, [*outputs, *inputs])
        if nest.is_empty:
            return lambda *values: None
        strides = [*nest.runtime_strides(), *[s for x in raws for s in x.strides if stride_class(s) == "s"]]
        if (by_key := keyed.walk(kernel, nest, stride_classes(raws))) is not None:
            address, addresses = compile_kernel_text(by_key.source), len(outputs) + len(inputs) + len(raws)
            constants = [*by_key.sizes, *strides]
            return BoundKernel(address, by_key.count, by_key.chunks, addresses, kernel.each(Parameter), constants)
        address = compile_kernel_text(source(kernel, nest.rows, nest.classes, stride_classes(raws)))
        chunks = count_chunks(nest.sizes[0], nest.points * kernel.cost())
        addresses, numbers = len(outputs) + len(inputs) + len(raws), kernel.each(Parameter)
        constants = [*nest.sizes[1:], *strides]
        header = streaming.header(kernel, nest, address, addresses + len(numbers) + len(constants)) if chunks > 1 else []
        address = streaming.stream() if header else address
        return BoundKernel(address, nest.sizes[0], chunks, addresses, numbers, constants, header)

    has_tables = True

    def bind_together(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> Launcher:
        """A launch over several arrays, whose points are shared out among the threads as if they were those of one."""
        nests = [Nest(shape, (), [*outputs, *inputs]) for shape, (outputs, inputs) in zip(shapes, layouts, strict=True)]
        compiled = compile_kernel_text(source(kernel, nests[0].rows, nests[0].classes, ()))
        width, numbers = len(nests[0].classes), kernel.each(Parameter)
        address, count, chunks, header = job_of(compiled, [nest.points for nest in nests], width, numbers, kernel.cost())
        return BoundKernel(address, count, chunks, width * len(nests), numbers, [], header)

    def source(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> str:
        """The text that is compiled."""
        nest = Nest(shape, dims, [*outputs, *inputs])
        if not nest.is_empty and (by_key := keyed.walk(kernel, nest, stride_classes(raws))) is not None:
            return by_key.source
        return source(kernel, nest.rows, nest.classes, stride_classes(raws))

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """A launch of the product."""
        return bind_matmul(dtype, out, a, b)

    def bind_product(self, kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """A launch of the product, with its prologue and its epilogue inside."""
        if kernel.is_plain:
            return self.bind_matmul(kernel.a.dtype, outputs[0], *inputs)
        if outputs[0].size == 0:
            return lambda *values: None
        product = StagedProduct(kernel, outputs, inputs)
        if product.overflow():
            return super().bind_product(kernel, outputs, inputs)
        address, tiles, chunks, constants = product.bind()
        numbers = kernel.parameters()
        pack, drive = packer(len(outputs) + len(inputs), numbers), driver()

        def launch(*values: Any) -> None:
            try:
                drive(address, tiles, chunks, constants + pack(*values))
            except struct.error:
                refuse(values[-len(numbers) :], [p.dtype for p in numbers])
                raise

        return launch

    def refused_product(self, kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Why a prologue should be a launch of its own."""
        is_simple = kernel.is_plain or outputs[0].size == 0
        return "" if is_simple else StagedProduct(kernel, outputs, inputs).refusal()

    def product_cost(self, kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
        """(how many kernels are started, bytes of memory that they hand on): what is inside needs none."""
        if outputs[0].size and not kernel.is_plain and StagedProduct(kernel, outputs, inputs).overflow():
            return super().product_cost(kernel, outputs, inputs)
        return int(outputs[0].size > 0), 0

    def product_source(self, kernel: ProductKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """The kernels inside of the product, as they are compiled."""
        is_simple = kernel.is_plain or outputs[0].size == 0
        product = None if is_simple else StagedProduct(kernel, outputs, inputs)
        if product is None or product.overflow():
            return super().product_source(kernel, outputs, inputs)
        return product.source()

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """out[i] = op(a[i])."""
        self._elementwise(op, [a], out)

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """out[i] = op(a[i], b[i])."""
        self._elementwise(op, [a, b], out)

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims."""
        if isinstance(op, Operator):
            self._run(fold(op, load(0, a)), a.layout.shape, tuple(dims), out, [a])
            return
        identity = identity_of(op, BY_NUMPY[a.data.dtype])
        if identity is None and 0 in [a.layout.shape[d] for d in dims]:
            raise needs_an_element(op, a.layout.shape)
        any_function.fold(op, a, out, dims, identity)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        out_layout, a_layout, b_layout = (x.layout.from_zero() for x in (out, a, b))
        bind_matmul(BY_NUMPY[out.data.dtype], out_layout, a_layout, b_layout)(out.address, a.address, b.address)

    def _elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        try:
            expression = trace(op, [BY_NUMPY[x.data.dtype] for x in xs])
        except (FuseError, TypeError, AttributeError):  # it branches on values, or uses what only numbers have
            any_function.elementwise(op, xs, out)
            return
        self._run(expression, out.layout.shape, (), out, xs)

    def _run(self, e: Expression, shape: Shape, dims: tuple[int, ...], out: Operand, inputs: Sequence[Operand]) -> None:
        """One kernel over operands."""
        (e,), used = numbered([cast(e, BY_NUMPY[out.data.dtype])])  # not all, of a function such as lambda a, b: b
        inputs = [inputs[k] for k in used]
        kernel = Kernel((), (e,)) if dims else Kernel((e,), ())
        layouts = [x.layout.from_zero().expand(*shape) for x in (out, *inputs)]
        self.bind(kernel, shape, dims, layouts[:1], layouts[1:])(*[x.address for x in (out, *inputs)])


def packer(addresses: int, numbers: Sequence[Parameter]) -> Callable[..., bytes]:
    """What packs the values of a launch, 8 bytes each: addresses, then numbers."""
    letters = "".join("d" if p.dtype.is_float else "i4x" if p.dtype is int32 else "q" for p in numbers)
    return struct.Struct(f"={addresses}q{letters}").pack


def refuse(values: Sequence[Any], dtypes: Sequence[DType]) -> None:
    """Raise for the first number that its element type does not hold."""
    for value, dtype in zip(values, dtypes, strict=True):
        check_fits(value, dtype)
