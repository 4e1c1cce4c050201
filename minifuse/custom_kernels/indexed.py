"""Custom kernels with indexed arguments: the function reads, stores and adds to any element of them.

Such a function is traced directly to the expressions of one kernel. The kernel may modify any element, so it is not part
of a graph, is not fused with others, and has no gradient.
"""

from collections.abc import Sequence
from numbers import Real
from operator import index as as_index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..backends.base import Backend
from ..compiler.kernel_builder import INLINE_LITERALS
from ..compiler.plan import check_inplace
from ..compiler.tensor_meta import TensorMeta
from ..core.dispatch import active_hook, active_tracer, is_fast_math, mode
from ..core.dtypes import BY_PYTHON, DType, Number, WeakType, bool_, int64, weak_type_of
from ..core.errors import BackendError, DTypeError, FuseError, GradientError, IndexingError, OverlapError, ShapeError
from ..core.indexing import Shape, ShapeLike, shape_of
from ..core.interning import toposort
from ..core.layout import Layout, broadcast, dense_like
from ..core.precision import use_fast_math
from ..ir.array_methods import Array
from ..ir.kernel_ir import (
    AtomicAdd,
    Constant,
    Expression,
    IndexedAccess,
    IndexedLoad,
    IndexedStore,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    Op,
    constant,
)
from ..ir.steps import Step
from ..runtime.memory_pool import round_to_size_class, write_clock
from ..tensors.mutation import shares_memory
from ..tensors.tensor import Tensor
from .scalar_tracer import ScalarTracer, resolve_weak_dtype, trace_over, unsupported, unwrap

if TYPE_CHECKING:
    from .elementwise import ElementwiseCall


class IndexedTrace:
    """The effects of a function of elements on its indexed arguments, in order."""

    def __init__(self, input_count: int) -> None:
        self.input_count, self.effects = input_count, list[IndexedAccess]()
        self.positions: dict[int, IndexValue] = {}  # dim -> the index along it

    def index_along(self, d: int) -> IndexValue:
        """Return the index of the element along a dim: an input without memory, numbered after those with memory."""
        return self.positions.setdefault(d, IndexValue(self.input_count + len(self.positions), int64))


class IndexedOperand:
    """An indexed argument: a tensor that the function indexes with one number per dim.

    An index is an integer element, or a Python integer; negative Python integers count from the end. The load happens
    for every element, even if `mf.where` discards it afterwards. Computed indices out of range are undefined behavior,
    except on the python backend, which raises an IndexingError.
    """

    __slots__ = ("argument", "dtype", "shape", "trace")
    __hash__ = object.__hash__

    def __init__(self, trace: IndexedTrace, argument: int, shape: tuple[int, ...], dtype: DType) -> None:
        self.trace, self.argument, self.shape, self.dtype = trace, argument, shape, dtype

    @property
    def ndim(self) -> int:
        """Return the number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: object) -> ScalarTracer:
        return ScalarTracer(IndexedLoad(self.argument, len(self.trace.effects), self.position(index), self.dtype))

    def __setitem__(self, index: object, value: object) -> None:
        self.record_effect(IndexedStore, index, value)

    def record_effect(self, kind: type[IndexedAccess], index: object, value: object) -> None:
        """Record a store or an atomic add."""
        inputs = *self.position(index), self.converted_value(value)
        self.trace.effects.append(kind(self.argument, len(self.trace.effects), inputs, self.dtype))

    def position(self, index: object) -> tuple[Expression, ...]:
        """Convert an index to an expression per dim."""
        entries = index if isinstance(index, tuple) else (index,)
        if len(entries) != self.ndim:
            got = f"got {len(entries)} for shape {self.shape}"
            raise unsupported("a raw argument", f"expected one integer index per dim, {got}", IndexingError)
        return tuple(self.index_along_dim(x, d, n) for d, (x, n) in enumerate(zip(entries, self.shape, strict=True)))

    def index_along_dim(self, x: Any, d: int, n: int) -> Expression:
        """Convert the index along one dim to an expression."""
        if isinstance(x, ScalarTracer):
            if not x.dtype.is_integer:
                raise unsupported(
                    f"an index of {x.dtype}", "expected integers; convert it with .to(mf.int64)", IndexingError
                )
            return resolve_weak_dtype(x.expression, int64)
        try:
            k = as_index(x) if not isinstance(x, bool | np.bool_) else None
        except TypeError:
            k = None
        if k is None:
            raise unsupported(f"an index {x!r:.40}", "expected one integer per dim of the raw argument", IndexingError)
        if not -n <= k < n:
            raise unsupported(f"index {k} along dim {d}", f"the raw argument has shape {self.shape}", IndexingError)
        return constant(k % n, int64)

    def converted_value(self, value: object) -> Expression:
        """Convert a value to the element type of the argument."""
        x = unwrap(value)
        dtype: DType | WeakType = x.dtype if isinstance(x, Expression) else weak_type_of(x)
        is_float = dtype is float or getattr(dtype, "is_float", False)
        if (is_float and not self.dtype.is_float) or (self.dtype is bool_ and dtype not in (bool, bool_)):
            name = dtype.__name__ if isinstance(dtype, type) else dtype
            raise unsupported(
                f"a store of {name} to a raw argument of {self.dtype}", "convert it first with .to(...)", DTypeError
            )
        return resolve_weak_dtype(x, self.dtype) if isinstance(x, Expression) else constant(x, self.dtype)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        advice = "expected an index, x[i], or shape, ndim, size or dtype; compute other values before the call"
        raise unsupported(f".{name} of a raw argument", advice)

    def __repr__(self) -> str:
        return f"raw argument of {self.dtype}, shape {self.shape}"


def refuse_operator(self: IndexedOperand, *others: object) -> NoReturn:
    """Raise the error for an operator on an indexed argument."""
    raise unsupported("an operator on a raw argument", "index it, as in x[i] + 1, or remove it from raw=(...)")


_BINARY = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "matmul"
for _name in (*_BINARY, *[f"r{_name}" for _name in _BINARY], "lt", "gt", "le", "ge", "eq", "ne", "neg", "abs", "bool"):
    setattr(IndexedOperand, f"__{_name}__", refuse_operator)


def atomic_add(array: object, index: object, value: object) -> None:
    """Add a value to an element of a raw argument atomically: of several additions to one element, none is lost.

    Call it only inside a function of `mf.elementwise`, on a raw argument of int32, int64, float32 or float64.

    Parameters
    ----------
    array : raw argument
        The array that is modified.
    index : int, integer element, or tuple of them
        One index for each dim of the array.
    value : element or number
        The value to add. It is converted to the element type of the array; a float is not converted to an integer.

    Raises
    ------
    FuseError
        `array` is not a raw argument of the kernel that is being traced.
    DTypeError
        The array has another element type, or the value does not fit its element type.

    Notes
    -----
    Additions happen in any order, so on several threads a sum of floats may differ in its last bits from call to call.

    Examples
    --------
    >>> import minifuse as mf
    >>> @mf.elementwise(raw=("bins",))
    ... def count(value, bins):
    ...     mf.atomic_add(bins, value, 1)
    >>> bins = mf.zeros(3, dtype=mf.int64)
    >>> count(mf.tensor([0, 2, 2, 0, 2]), bins)
    >>> bins
    tensor([2, 0, 3])
    """
    if not isinstance(array, IndexedOperand):
        advice = f"got {type(array).__name__}, expected a raw argument of a function of mf.elementwise; name it in raw=(...)"
        raise unsupported("atomic_add", advice)
    if array.dtype is bool_ or array.dtype.is_small:
        advice = f"got an array of {array.dtype}; use int32, int64, float32 or float64"
        raise unsupported("atomic_add", advice, DTypeError)
    array.record_effect(AtomicAdd, index, value)


class IndexedPlan:
    """One kernel with indexed arguments, traced and bound for inputs of given kinds: `run` launches it.

    Parameters
    ----------
    call
        The user's function as one call uses it; `call.call(*values)` calls it.
    inputs
        Tensors and numbers like those of future calls.
    names
        The parameter of each input.
    raw
        The names of indexed arguments.
    shape
        The shape to run over; None for the shape that all other arrays broadcast to.
    """

    def __init__(
        self,
        call: "ElementwiseCall",
        inputs: Sequence[object],
        names: Sequence[str],
        raw: frozenset[str],
        shape: ShapeLike | None,
    ) -> None:
        self.function_call, self.names, self.name = call, names, call.__name__
        self.is_indexed = [name in raw for name in names]
        self.inputs = [
            self.check_input(x, name, is_raw) for x, name, is_raw in zip(inputs, names, self.is_indexed, strict=True)
        ]
        self.metas = {k: x.meta for k, x in enumerate(self.inputs) if isinstance(x, Tensor)}
        self.backend = self.find_backend()
        self.shape = self.find_shape(shape)
        self.trace = IndexedTrace(len(inputs))
        results, self.is_tuple = self.call_function()
        self.load(results)

    # Inputs.

    def check_input(self, x: Any, name: str, is_raw: bool) -> Tensor | Number:
        """Return an input, which must be a tensor or a number."""
        if active_tracer() is not None or (isinstance(x, Array) and not isinstance(x, Tensor)):
            raise unsupported(
                f"{self.name} inside a traced function",
                "a kernel with raw arguments cannot be fused, since it may modify any element; call it before or after",
            )
        if is_raw and not isinstance(x, Tensor):
            raise FuseError(f"{self.name}: the raw argument {name} is {type(x).__name__}, expected a tensor; use mf.tensor")
        if isinstance(x, Tensor) and x.requires_grad and mode.is_recording:
            advice = f"pass {name}.detach(), or call it inside `with mf.no_grad():`"
            raise GradientError(f"{self.name}: a kernel with raw arguments has no gradient; {advice}")
        checked: Tensor | Number = x
        return checked

    def find_backend(self) -> Backend:
        """Return the backend of all tensors."""
        backends = list(dict.fromkeys(meta.backend for meta in self.metas.values()))
        if len(backends) > 1:
            first, second, *_ = (backend.name for backend in backends)
            raise BackendError(
                f'{self.name}: operands are on two backends, {first} and {second}; move one with x.to("{first}")'
            )
        return backends[0]

    def find_shape(self, shape: ShapeLike | None) -> Shape:
        """Return the shape that the kernel runs over."""
        shapes = [
            x.shape for x, is_raw in zip(self.inputs, self.is_indexed, strict=True) if isinstance(x, Tensor) and not is_raw
        ]
        if shape is None:
            if not shapes:
                raise ShapeError(
                    f"{self.name}: all arrays are raw arguments, so the shape to run over is unknown; pass shape="
                )
            return broadcast(*shapes)
        sizes = shape_of((shape,))
        try:
            fits = broadcast(sizes, *shapes) == sizes
        except ShapeError:
            fits = False
        if not fits:
            raise ShapeError(
                f"{self.name}: arguments of shapes {', '.join(map(str, shapes))} do not broadcast to shape={sizes}"
            )
        return sizes

    # The kernel.

    def call_function(self) -> tuple[list[Expression], bool]:
        """Trace the function, and return its results as expressions; its effects are in the trace."""
        with trace_over(self.shape, self.trace.index_along), use_fast_math(is_fast_math() and self.backend.has_fast_math):
            result = self.function_call.call(*[self.trace_input(k, x) for k, x in enumerate(self.inputs)])
        if result is None:
            if not self.trace.effects:
                raise FuseError(
                    f"{self.name} returned None and modified nothing; return elements, or store to a raw argument"
                )
            return [], True
        results = []
        for x in result if isinstance(result, tuple) else (result,):
            if not isinstance(x, ScalarTracer | Real | np.bool_):
                raise FuseError(f"{self.name} returned {type(x).__name__}, expected an element, or a tuple of elements")
            if isinstance(x, ScalarTracer):
                results.append(resolve_weak_dtype(x.expression, x.dtype))
            else:
                results.append(constant(x, BY_PYTHON[weak_type_of(x)]))
        return results, isinstance(result, tuple)

    def trace_input(self, k: int, x: Tensor | Number) -> IndexedOperand | ScalarTracer:
        """Return the tracer for an input."""
        if not isinstance(x, Tensor):
            return ScalarTracer(KernelParameter(k, weak_type_of(x)))  # type: ignore[arg-type]  # `resolve_weak_dtype` follows
        return IndexedOperand(self.trace, k, x.shape, x.dtype) if self.is_indexed[k] else ScalarTracer(Load(k, x.dtype))

    def load(self, results: Sequence[Expression]) -> None:
        """Number the operands that are used, and load the kernel for their layouts."""
        numbering = OperandNumbering([*results, *self.trace.effects])
        changed = {e.index for e in self.trace.effects}
        input_count = len(self.inputs)
        dim_of_index = {e.index: d for d, e in self.trace.positions.items()}
        self.loads, self.raws, self.numbers = numbering.loads, numbering.raws, numbering.numbers
        self.changed = sorted(changed)
        self.addresses = [k for k in self.loads if k < input_count]
        self.index_starts = [0] * (len(self.loads) - len(self.addresses))  # every index starts at 0
        metas = self.metas
        check_inplace([], [metas[k] for k in self.changed])
        inputs = [
            metas[k].layout.expand(*self.shape) if k < input_count else self.index_layout(dim_of_index[k])
            for k in self.loads
        ]
        read = [layout for k, layout in zip(self.loads, inputs, strict=True) if k < input_count]
        outputs = [dense_like(read, self.shape)] * len(results)
        self.outputs = [TensorMeta(x, e.dtype, self.backend, False) for x, e in zip(outputs, results, strict=True)]
        self.sizes = [round_to_size_class(meta.layout.size * meta.dtype.itemsize) for meta in self.outputs]
        elements = tuple(numbering.expressions[: len(results)])
        effects = tuple(e for e in numbering.expressions[len(results) :] if isinstance(e, IndexedAccess))
        kernel = Kernel(elements, (), effects) if effects else Kernel(elements, ())
        self.step = Step.of_layouts(kernel, self.shape, (), outputs, inputs, [metas[k].layout for k in self.raws])
        launch, hook = self.backend.compile(self.step).load(), active_hook()
        self.launch = launch if hook is None else hook.launch_custom_kernel(self, launch)

    def index_layout(self, d: int) -> Layout:
        """Return the layout of the index along a dim."""
        return Layout(self.shape, tuple(int(k == d) for k in range(len(self.shape))), 0)

    # Running.

    def run(self, *inputs: Any) -> Any:
        """Launch the kernel on inputs of these kinds, and return its results as tensors."""
        if self.changed:
            inputs = self.copy_overlapping(inputs)
        buffers = [self.backend.allocate(nbytes) for nbytes in self.sizes]
        values: list[float] = [buffer.address for buffer in buffers]
        values += [inputs[k].address for k in self.addresses] + self.index_starts + [inputs[k].address for k in self.raws]
        values += [inputs[x] if isinstance(x, int) else x.value for x in self.numbers]
        for k in self.changed:
            write_clock.record_write(inputs[k].buffer)  # before the launch, which a signal may interrupt
        self.launch(*values)
        results = tuple(Tensor(b, b.address, meta) for b, meta in zip(buffers, self.outputs, strict=True))
        return None if not results else results if self.is_tuple else results[0]

    def copy_overlapping(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs; those that share memory with a modified argument are copied."""
        for k in self.changed:
            target = inputs[k]
            if not target.buffer.is_writable:
                advice = "pass a clone()"
                raise OverlapError(f"{self.name}: the memory of the raw argument {self.names[k]} is read-only; {advice}")
            start, end = target.buffer.address, target.buffer.address + target.buffer.nbytes
            for j in self.addresses:
                x = inputs[j]
                if x.buffer.address < end and start < x.buffer.address + x.buffer.nbytes and shares_memory(x, target):
                    inputs = (*inputs[:j], copy_with_layout(x), *inputs[j + 1 :])
        return inputs

    def source(self) -> str:
        """Return the source of the kernel, below a comment with the meaning of its names."""
        named = [f"in{n} is {self.names[k]}" for n, k in enumerate(self.loads) if k < len(self.inputs)]
        named += [f"raw{n} is {self.names[k]}" for n, k in enumerate(self.raws)]
        named += [f"p{n} is {self.names[x]}" for n, x in enumerate(self.numbers) if isinstance(x, int)]
        return f"# {self.name}: {', '.join(named)}\n{self.backend.compile(self.step).source}"


def copy_with_layout(x: Tensor) -> Tensor:
    """Copy a tensor with its layout, including the memory between its elements."""
    low, high = x.meta.layout.span()
    flat = Tensor(
        x.buffer,
        x.address + low * x.dtype.itemsize,
        TensorMeta(Layout((high - low,), (1,), 0), x.dtype, x.meta.backend, False),
    )
    y = flat.clone()
    return Tensor(y.buffer, y.address - low * x.dtype.itemsize, x.meta)


class OperandNumbering:
    """Expressions with their loads, indexed operands and numbers renumbered from 0, and lists of these operands.

    Literals become arguments of the launch, except those in INLINE_LITERALS. A size is a literal, and a new size must not
    need a new kernel.
    """

    def __init__(self, roots: Sequence[Expression]) -> None:
        order = toposort(roots, lambda e: e.inputs)
        self.loads = sorted({e.index for e in order if isinstance(e, Load)})
        self.raws = sorted({e.index for e in order if isinstance(e, IndexedAccess)})
        self.numbers: list[int | Constant] = []  # the index of an input, or a literal
        self.known: dict[tuple[int | Constant, DType], KernelParameter] = {}
        rebuilt: dict[Expression, Expression] = {}
        for e in order:
            rebuilt[e] = self.renumber(e, tuple(rebuilt[x] for x in e.inputs))
        self.expressions = [rebuilt[e] for e in roots]

    def renumber(self, e: Expression, inputs: tuple[Expression, ...]) -> Expression:
        """Return an expression over these inputs, with its operand renumbered."""
        if isinstance(e, Load):
            return type(e)(self.loads.index(e.index), e.dtype)
        if isinstance(e, IndexedAccess):
            return type(e)(self.raws.index(e.index), e.stores_before, inputs, e.dtype)
        if isinstance(e, KernelParameter):
            return self.number(e.index, e.dtype)
        if isinstance(e, Constant):
            return e if e.text in INLINE_LITERALS or e.dtype is bool_ else self.number(e, e.dtype)
        return Op(e.operator, inputs, e.dtype) if isinstance(e, Op) else e

    def number(self, source: int | Constant, dtype: DType) -> KernelParameter:
        """Return the parameter for a number of the launch."""
        if (source, dtype) not in self.known:
            self.known[source, dtype] = KernelParameter(len(self.numbers), dtype)
            self.numbers.append(source)
        return self.known[source, dtype]
