"""Questions about functions of tensors of the library (module 7): results, gradients, and calls of the library.

A tensor is `mf.Tensor` on a backend of NumPy functions that counts what Python reads. A dispatch hook records each call, and
refuses those that are no elementary operation: `x.softmax(-1)` is what a student writes.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ...autograd import backward as run_backward
from ...backends.base import Backend, Operand, ScalarFunction, identity_for
from ...backends.registry import register_backend, registry, use_backend
from ...compiler.plan import display_name, get_inplace_plan, get_plan
from ...core.dispatch import DispatchHook, use_dispatch_hook
from ...core.dtypes import BY_NUMPY, DType
from ...core.errors import GradientError, NotDoneYet
from ...core.indexing import Shape
from ...core.layout import Layout, row_major
from ...core.operators import Operator
from ...ir.vjp import GradientFunction
from ...runtime.memory_pool import MemoryBuffer, allocate, as_array, host_pool, round_to_size_class
from ...tensors import tensor
from ...tensors.tensor import Tensor
from ..library_facts import LibraryCall, LibraryRun, TensorCall
from ..strided import Array
from ..student import Student
from ..verdicts import Refused, Wrong

PACKAGE = Path(__file__).parents[2]
Combination = Callable[..., object]
"""A function of (slot, arguments), where `slot(name)` returns a function of the task."""
NUMPY_NAMES = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "floordiv": "floor_divide", "neg": "negative", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "and_": "bitwise_and",
    "or_": "bitwise_or",
}  # fmt: skip
"""Operators that NumPy has under another name."""
REDUCTIONS = {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min", "or_": "any", "and_": "all"}
ELEMENTARY = {
    "Cast": "to", "Copy": "copy", "Gather": "select", "PadSlice": "pad", "View": "copy", "argreduce": "argmax",
    "assign": "put", "at_slices": "scatter", "filled_mask": "where", "gather_along": "select", "isinf": "isinf",
    "floor": "floor", "joined": "cat", "matmul": "matmul", "mean": "mean", "mm": "matmul", "put": "put",
    "repeated": "repeat",
    "round": "round", "scattered": "scatter", "select": "select", "square": "mul", "tril": "tril", "triu": "triu",
}  # fmt: skip
"""Calls that a student may make besides operators, reductions and views: by a class, or by the name of a function."""
ADVICE = "write it with + - * / @, exp, log, sqrt, round, to, sum, mean, max, reshape, permute, x[...] and where"


class CountingBackend(Backend):
    """Compute with NumPy, and count the elements that Python reads."""

    name = "course"

    def __init__(self) -> None:
        self.reads = 0

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        with np.errstate(all="ignore"):
            out.array()[...] = numpy_function(op, out.data.dtype)(a.array())

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        with np.errstate(all="ignore"):
            out.array()[...] = numpy_function(op, out.data.dtype)(a.array(), b.array())

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Reduce dims to size 1."""
        start, function = identity_for(op, BY_NUMPY[a.data.dtype]), numpy_function(op, out.data.dtype)
        if not isinstance(function, np.ufunc):
            function = np.frompyfunc(op, 2, 1, identity=start)
        with np.errstate(all="ignore"):
            out.array()[...] = function.reduce(a.array(), axis=tuple(dims), keepdims=True, initial=start)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute a @ b."""
        with np.errstate(all="ignore"):
            out.array()[...] = a.array() @ b.array()

    def from_numpy(self, array: np.ndarray) -> tuple[MemoryBuffer, int, Layout]:
        """Copy an array into memory that is counted."""
        buffer, layout = allocate(round_to_size_class(array.nbytes)), row_major(array.shape)
        as_array(buffer, buffer.address, BY_NUMPY[array.dtype], layout)[...] = array
        return buffer, buffer.address, layout

    def to_numpy(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> np.ndarray:
        """Return elements, and count them if the library was not asked by itself, as in a check of indices."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == tensor.__file__:
            frame = frame.f_back
        if frame is None or PACKAGE not in Path(frame.f_code.co_filename).parents:
            self.reads += layout.size
        return super().to_numpy(buffer, address, dtype, layout)


def numpy_function(op: ScalarFunction, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return NumPy's function for an operator; vectorize any other function."""
    name = op.name if isinstance(op, Operator) else ""
    found: Callable[..., Any] | None = getattr(np, NUMPY_NAMES.get(name, name), None) if name else None
    return found or np.vectorize(op, otypes=[dtype])


counting_backend = cache(CountingBackend)
"""The backend of this process. `use_counting_backend` registers it for a block."""


@contextmanager
def use_counting_backend() -> Iterator[CountingBackend]:
    """Register the counting backend, and create new tensors on it, in a block."""
    backend, is_registered = counting_backend(), CountingBackend.name in registry.factories
    register_backend(backend)
    try:
        with use_backend(backend.name):
            yield backend
    finally:
        if not is_registered:
            del registry.factories[backend.name], registry.instances[backend.name]


class CallRecorder(DispatchHook):
    """A dispatch hook that runs each call and records it. `is_strict` refuses calls that are not elementary."""

    def __init__(self, is_strict: bool) -> None:
        self.is_strict, self.calls = is_strict, list[LibraryCall]()
        self.before = host_pool.stats().in_use

    def live_bytes(self) -> int:
        """Return the bytes of tensors that were made since this hook was."""
        return host_pool.stats().in_use - self.before

    def call(self, function: Any, inputs: Sequence[Any]) -> Any:
        """Run a call."""
        name = self.name_of(function)
        with use_dispatch_hook(None):
            plan, arguments = get_plan(function, inputs)
        result = plan.run(*arguments)
        self.record(name, inputs, result)
        return result

    def call_inplace(
        self, function: Any, targets: tuple[int, ...], alias_of: tuple[int, ...], inputs: Sequence[Any]
    ) -> Callable[..., object]:
        """Return a function that runs an operation in place."""
        name = self.name_of(function)
        with use_dispatch_hook(None):
            plan = get_inplace_plan(function, targets, alias_of, inputs)

        def run(*values: Any) -> object:
            result = plan.run(*values)
            self.record(name, values, [values[k] for k in targets])
            return result

        return run

    def call_fused(self, fused: Any, inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Refuse a fused function."""
        raise Refused(f"your code calls a fused function of the library; {ADVICE}")

    def name_of(self, function: Any) -> str:
        """Return the name of a call, or refuse it."""
        if isinstance(function, Operator):
            return function.name
        name = display_name(function)
        if isinstance(function, GradientFunction):
            return name
        reduced = function.parameters[-1] if name == "reduce_dims" else getattr(function, "operator", None)
        if isinstance(reduced, Operator) and reduced.name in REDUCTIONS:
            return REDUCTIONS[reduced.name]
        found = ELEMENTARY.get(type(function).__name__) or ELEMENTARY.get(name)
        if found is None and self.is_strict:
            raise Refused(f"your code calls {name} of the library; {ADVICE}")
        return found or name

    def record(self, name: str, inputs: Sequence[Any], result: Any) -> None:
        """Record a call that has run."""
        outputs = result if isinstance(result, list | tuple) else [result]
        self.calls.append(LibraryCall(name, shapes_of(inputs), shapes_of(outputs), self.live_bytes()))

    def take(self) -> tuple[LibraryCall, ...]:
        """Return the calls so far, and begin anew."""
        calls, self.calls = tuple(self.calls), []
        return calls


def shapes_of(values: Sequence[Any]) -> tuple[Shape, ...]:
    """Return the shapes of the tensors among some values."""
    return tuple(tuple(x.shape) for x in values if isinstance(x, Tensor))


@contextmanager
def elementary_calls() -> Iterator[CallRecorder]:
    """Compute on the counting backend in a block, and record the calls; refuse those that are not elementary."""
    recorder = CallRecorder(is_strict=True)
    with use_counting_backend(), use_dispatch_hook(recorder):
        yield recorder


def to_argument(x: Any, is_constant: bool) -> Any:
    """Return an array as a tensor; any other value unchanged."""
    if not isinstance(x, np.ndarray):
        return x
    y = Tensor.from_numpy(x, counting_backend())
    return y.requires_grad_() if x.dtype.kind == "f" and not is_constant else y


def elements_of(x: Tensor) -> Array:
    """Return a copy of the elements of a tensor, not counted as read."""
    return np.array(as_array(x.buffer, x.address, x.dtype, x.meta.layout))


def results_of(slot: str, result: object) -> list[Tensor]:
    """Return the tensors of a result."""
    found = list[Tensor]()
    for x in result if isinstance(result, tuple | list) else [result]:
        if not isinstance(x, Tensor):
            missing = "; is a return statement missing?" if x is None else ""
            raise Wrong(f"{slot} returns a value of type {type(x).__name__}, expected a tensor{missing}", kind="type")
        found.append(x)
    return found


def incoming_gradient(seed: int, shape: Shape) -> Array:
    """Draw the gradient of a result, in quarters."""
    return np.asarray(np.random.default_rng(seed).integers(-8, 9, shape) / 4.0)


def run_call(function: Callable[..., object], call: TensorCall, is_strict: bool = True) -> LibraryRun:
    """Call a function of tensors, and run the backward pass; record what both do."""
    with use_counting_backend() as backend:
        arguments = [to_argument(x, call.is_constant) for x in call.arguments]
        recorder, backend.reads = CallRecorder(is_strict), 0
        with use_dispatch_hook(recorder):
            results = results_of(call.slot, function(*arguments))
        forward, reads = recorder.take(), backend.reads
        values = tuple(map(elements_of, results))
        own = {id(x.buffer): x.buffer for x in arguments if isinstance(x, Tensor)}
        are_views = tuple(id(x.buffer) in own for x in results)
        new = {id(x.buffer): x.buffer.nbytes for x in results if id(x.buffer) not in own}
        saved = recorder.live_bytes() - sum(new.values())
        gradients: tuple[Array | None, ...] = ()
        if call.gradient_seed is not None:
            drawn = [incoming_gradient(call.gradient_seed + k, x.shape) for k, x in enumerate(results)]
            incoming = [to_argument(d, True).to(x.dtype) for d, x in zip(drawn, results, strict=True)]
            backend.reads = 0
            try:
                with use_dispatch_hook(recorder):
                    run_backward(results, incoming)
            except GradientError as error:  # the student's backward returned something else than gradients
                raise Wrong(str(error), kind="GradientError") from None
            reads += backend.reads
            floats = [x for x, given in zip(arguments, call.arguments, strict=True) if is_float(given)]
            gradients = tuple(None if x.grad is None else elements_of(x.grad) for x in floats)
        for x, given in zip(arguments, call.arguments, strict=True):
            if isinstance(x, Tensor) and elements_of(x).tobytes() != np.ascontiguousarray(given).tobytes():
                raise Wrong("your function changes its arguments; make a new tensor, since the caller still needs them")
        return LibraryRun(values, gradients, forward, recorder.take(), reads, saved, are_views)


def is_float(x: object) -> bool:
    """Return whether an argument is an array of floats."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def ask_call(student: Student, call: TensorCall) -> LibraryRun:
    """Call a slot of the student's, and run the backward pass."""
    return run_call(getattr(student, call.slot), call)


def ask_combined(combine: Combination, student: Student, call: TensorCall) -> LibraryRun:
    """Call a function that uses several slots, and run the backward pass."""
    return run_call(partial(combine, partial(getattr, student)), call)


def ask_error(student: Student, call: TensorCall) -> list[str] | None:
    """Call a slot, and return the text of its exception and the names of the exception's classes; None if it raises none."""
    with use_counting_backend():
        arguments = [to_argument(x, call.is_constant) for x in call.arguments]
        try:
            with use_dispatch_hook(CallRecorder(True)):
                getattr(student, call.slot)(*arguments)
        except (NotDoneYet, Refused):
            raise
        except Exception as error:
            return [str(error), *[cls.__name__ for cls in type(error).__mro__]]
    return None
