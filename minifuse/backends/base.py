"""The contract of a backend: four methods over operands, and `bind`, which has a default.

An operand is a flat NumPy array and a Layout. Broadcasting is already expressed as stride 0, so all operands of one
call have the same shape; in `reduce`, folded dims of `out` have size 1. `op` is any function of scalars, an Operator
among them.

To add a backend: subclass Backend, write the four methods, and `registry.register` an instance. Everything else follows.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..dag import topological
from ..dtypes import BY_NUMPY, DType
from ..errors import DTypeError
from ..kernels import Apply, Constant, Expression, Fold, Kernel, Load, Old, Parameter, Shape
from ..layout import Layout, row_major
from ..operators import Operator, add
from ..storage import Buffer, Pool, allocate, as_array, memory

ScalarFunction = Callable[..., Any]
Launcher = Callable[..., None]


class Operand(NamedTuple):
    """Elements of a flat array, in a layout."""

    data: npt.NDArray[Any]
    layout: Layout

    @classmethod
    def at(cls, address: int, dtype: DType, layout: Layout) -> "Operand":
        """What lies at an address: the flat array reaches from the lowest element of the layout to the highest."""
        low, high = layout.span()
        memory = (ctypes.c_char * ((high - low) * dtype.itemsize)).from_address(address + low * dtype.itemsize)
        flat = np.ndarray(high - low, dtype.numpy, memory)  # type: ignore[arg-type]  # a buffer, to NumPy
        return cls(flat, Layout(layout.shape, layout.strides, layout.offset - low))

    @classmethod
    def new(cls, shape: Shape, dtype: DType) -> "Operand":
        """New elements, in row-major order, not yet set."""
        layout = row_major(shape)
        return cls(np.empty(layout.size, dtype.numpy), layout)

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> "Operand":
        """The elements of a NumPy array, shared."""
        size = array.itemsize
        layout = Layout(array.shape, tuple(stride // size for stride in array.strides), 0)
        low, high = layout.span()
        lowest: Any = (*[slice(None, None, -1 if stride < 0 else 1) for stride in array.strides], ...)
        flat = np.lib.stride_tricks.as_strided(array[lowest], (high - low,), (size,))
        return cls(flat, Layout(layout.shape, layout.strides, -low))

    @property
    def address(self) -> int:
        """Of the element at index 0, 0, ..."""
        return int(self.data.ctypes.data) + self.layout.offset * self.data.itemsize

    def array(self) -> npt.NDArray[Any]:
        """The same elements as a NumPy array of the layout's shape."""
        size, layout = self.data.itemsize, self.layout
        if layout.size == 0:  # strides and offset mean nothing
            return np.empty(layout.shape, self.data.dtype)
        return np.ndarray(layout.shape, self.data.dtype, self.data, layout.offset * size, [s * size for s in layout.strides])


class Backend:
    """Runs kernels on one device. The four methods are all that it must have."""

    name = "base"
    is_host = True  # whether its memory is that of NumPy

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """out[i] = op(a[i])."""
        raise NotImplementedError

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """out[i] = op(a[i], b[i])."""
        raise NotImplementedError

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims; without an identity from the first element."""
        raise NotImplementedError

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        raise NotImplementedError

    pool: Pool = memory  # of buffers
    allocate = staticmethod(allocate)

    # Memory, for backends on a device of their own; here it is that of the host, which NumPy shares.

    def place(self, array: npt.NDArray[Any]) -> tuple[Buffer, int, Layout]:
        """An array as memory of this backend: buffer, address of the first element, layout from there."""
        strides = tuple(stride // array.itemsize for stride in array.strides)
        return Buffer.around(array), array.ctypes.data, Layout(array.shape, strides, 0)

    def fetch(self, buffer: Buffer, address: int, dtype: DType, layout: Layout) -> npt.NDArray[Any]:
        """Elements as a NumPy array: over the same memory, or, of a device, a copy."""
        return as_array(buffer, address, dtype, layout)

    def fill(self, buffer: Buffer, address: int, dtype: DType, layout: Layout, value: Any) -> None:
        """Set all elements of a dense layout to a number."""
        as_array(buffer, address, dtype, layout)[...] = value

    dlpack_device = (1, 0)  # the CPU

    def capsule(self, x: Any, **options: Any) -> Any:
        """The memory of a tensor for libraries that know DLPack."""
        return x.numpy().__dlpack__(**options)

    def cuda_interface(self, x: Any) -> dict[str, Any]:
        """The memory of a tensor on a GPU for CuPy, torch and others; an AttributeError where it is not on one."""
        raise AttributeError("__cuda_array_interface__: this tensor is not on a GPU")

    def synchronize(self) -> None:
        """Wait until all that was asked for is done; here it is when a call returns."""

    # Kernels.

    def bind(
        self, kernel: Kernel, shape: Shape, dims: tuple[int, ...], outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> Launcher:
        """Do all that follows from the layouts of a kernel's outputs and inputs, expanded to `shape`.

        Gives launch(*addresses of outputs and inputs, *numbers). This default takes the kernel apart into map, zip and
        reduce, one expression at a time, so that any backend of four methods runs every fused function.
        """
        return Decomposed(self, kernel, shape, dims, outputs, inputs).launch

    def source(
        self, kernel: Kernel, shape: Shape, dims: tuple[int, ...], outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> str:
        """The text that runs, where there is one."""
        return f"# {self.name}: {len(kernel.outputs)} outputs over {shape}, one operation at a time\n"

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """The same for a matrix product: launch(address of out, of a, of b)."""

        def launch(*addresses: int) -> None:
            places = zip(addresses, (out, a, b), strict=True)
            out_, a_, b_ = [Operand.at(address, dtype, layout) for address, layout in places]
            self.matmul(a_, b_, out_)

        return launch

    def __repr__(self) -> str:
        return self.name


class Decomposed:
    """A kernel as a sequence of map, zip and reduce, each over the whole space or over one value a row."""

    def __init__(
        self,
        backend: Backend,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
    ) -> None:
        self.backend, self.kernel, self.shape, self.dims = backend, kernel, shape, dims
        self.outputs, self.inputs, self.is_empty = outputs, inputs, 0 in shape
        self.rows = tuple(1 if d in dims else n for d, n in enumerate(shape))
        self.space: dict[Expression, Shape] = {}
        for e in kernel.expressions():
            if isinstance(e, Load):
                varies = any(shape[d] > 1 and inputs[e.index].strides[d] for d in dims)
            else:
                varies = isinstance(e, Old) or shape in [self.space[x] for x in e.inputs]
            self.space[e] = shape if varies and not isinstance(e, Fold) else self.rows

    def launch(self, *values: Any) -> None:
        """Compute every expression, then store the outputs. An empty space has no elements, but may have rows."""
        found, first = dict[Expression, Operand](), len(self.kernel.elements)
        outputs = list(enumerate(zip(self.kernel.outputs, self.outputs, strict=True)))[first if self.is_empty else 0 :]
        for e in topological([e for _, (e, _) in outputs], self.inputs_of):
            found[e] = self.value(e, found, values)
        for k, (e, layout) in outputs:
            shape = layout.shape if k < first else self.rows
            target = Operand.at(values[k], e.dtype, Layout(shape, layout.strides, layout.offset))
            self.backend.map(identity, Operand(found[e].data, found[e].layout.expand(*shape)), target)

    def inputs_of(self, e: Expression) -> tuple[Expression, ...]:
        """What is computed before an expression; nothing before a fold of nothing."""
        return () if self.is_empty and isinstance(e, Fold) else e.inputs

    def value(self, e: Expression, found: dict[Expression, Operand], values: tuple[Any, ...]) -> Operand:
        """The elements of an expression, from those of its inputs."""
        if isinstance(e, Load):
            layout = self.inputs[e.index]
            place = Layout(self.space[e], layout.strides, layout.offset)
            return Operand.at(values[len(self.outputs) + e.index], e.dtype, place)
        if isinstance(e, Old):
            operand = Operand.at(values[e.index], e.dtype, self.outputs[e.index])
            return Operand(operand.array().copy().reshape(-1), row_major(operand.layout.shape))
        out = Operand.new(self.space[e], e.dtype)
        if isinstance(e, Constant | Parameter):
            number = e.value if isinstance(e, Constant) else values[len(self.outputs) + len(self.inputs) + e.index]
            try:
                out.data[...] = number
            except OverflowError:
                raise does_not_fit(number, e.dtype) from None
        elif isinstance(e, Fold):
            x = Operand.new(self.shape, e.dtype) if self.is_empty else found[e.inputs[0]]
            self.backend.reduce(e.operator, Operand(x.data, x.layout.expand(*self.shape)), out, self.dims)
        elif isinstance(e, Apply):
            self.elementwise(e.operator or caster(e.dtype), [self.seen(e, found[x]) for x in e.inputs], out)
        return out

    def seen(self, e: Expression, operand: Operand) -> Operand:
        """An operand in the space of e."""
        shape, layout = self.space[e], operand.layout
        if layout.shape == self.shape:
            return Operand(operand.data, Layout(shape, layout.strides, layout.offset))
        return Operand(operand.data, layout.expand(*shape))

    def elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        """Any number of operands by map and zip: where(c, a, b) is (a if c else 0) + (0 if c else b)."""
        if len(xs) == 1:
            self.backend.map(op, xs[0], out)
        elif len(xs) == 2:
            self.backend.zip(op, xs[0], xs[1], out)
        else:
            c, a, b = xs
            chosen, other = [Operand(np.empty_like(out.data), out.layout) for _ in range(2)]
            self.backend.zip(lambda c, a: a if c else 0, c, a, chosen)
            self.backend.zip(lambda c, b: 0 if c else b, c, b, other)
            self.backend.zip(add, chosen, other, out)


def does_not_fit(number: Any, dtype: DType) -> DTypeError:
    """The error of a Python number that an element type does not hold."""
    return DTypeError(f"{number} does not fit {dtype}, the type of the tensor beside it; convert the tensor, or use a float")


def check_fits(value: Any, dtype: DType) -> None:
    """Raise for a number that an element type does not hold."""
    bits = 8 * dtype.itemsize - 1
    if dtype.is_integer and not -(1 << bits) <= value < 1 << bits:
        raise does_not_fit(value, dtype)


def load(index: int, operand: Operand) -> Load:
    """The elements of an operand, as an expression."""
    return Load(index, BY_NUMPY[operand.data.dtype])


def identity(x: Any) -> Any:
    """x itself."""
    return x


def caster(dtype: DType) -> ScalarFunction:
    """The function that converts a number to an element type."""
    return dtype.numpy.type


def identity_of(op: ScalarFunction, dtype: DType) -> Any:
    """Where a fold starts: the operator's identity; None where it has none, so that it starts with the first element."""
    return op.identity_in(dtype) if isinstance(op, Operator) else getattr(op, "identity", None)


def needs_an_element(op: ScalarFunction, shape: Shape) -> DTypeError:
    """The error of a fold of nothing with a function that has no identity."""
    name = getattr(op, "__name__", op)
    return DTypeError(f"reduce: {name} has no identity, so it cannot fold shape {shape}; set {name}.identity = ... first")
