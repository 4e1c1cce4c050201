"""The backend "yours": map, zip, reduce and matmul by the loops that a student wrote."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any

import numpy as np

from ...backends.base import Backend, Operand, ScalarFunction, identity_for
from ...backends.parallel import numba_fallback
from ...backends.registry import get_backend
from ...core.dtypes import BY_NUMPY
from ...core.errors import CourseError
from ...core.operators import Operator
from .. import oracle
from ..overlay import count_slots_once
from ..strided import Strided
from .compiled_loops import compile_loop, compile_operator, threads_for
from .engine import StudentEngine
from .operators import BoundOperators, name_of

IN_PYTHON = {"map": "tensor_map", "zip": "tensor_zip", "reduce": "tensor_reduce"}
COMPILED = {"map": "parallel_map", "zip": "parallel_zip", "reduce": "parallel_reduce"}
"""The slots of tasks 2.3 and 3.1 that are the loops of a backend."""
MATMUL = "parallel_matmul"
LENDER = "parallel"  # the backend that runs loops which are not written yet
LARGEST = 2**53  # smaller integers are exact as float64
MAX_PRODUCTS = 1_000_000  # elements of the temporary array of a matmul that is made of zip and reduce


class StudentBackend(Backend):
    """Compute with a student's functions: compiled loops of module 3 if they are written, else those of task 2.3.

    Compiled loops are for float64: operands of other dtypes are converted before a loop, and its result after it. Integers
    of 64 bits beyond 2**53 stay in Python, since a float64 does not hold all of them.

    Parameters
    ----------
    engine : StudentEngine
        The functions.

    Raises
    ------
    CourseError
        One of the functions raised an exception: its line is named.
    """

    name = "yours"

    def __init__(self, engine: StudentEngine) -> None:
        self.engine, self.operators = engine, BoundOperators(engine)
        self._one_launch = Lock()  # Numba's own threads may be used by one thread at a time
        self._compiled_loops: dict[str, Callable[..., None]] = {}
        self._compiled_operators: dict[Callable[..., Any], Any] = {}

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        self.run("map", op, out, a)

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        self.run("zip", op, out, a, b)

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Compute out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims, one dim after the other."""
        identity = identity_for(op, BY_NUMPY[a.data.dtype])
        if identity is None or not dims:
            self.engine.lend("reduce")
            get_backend(LENDER).reduce(op, a, out, dims)
            return
        for dim in dims[:-1]:
            shape = tuple(1 if d == dim else n for d, n in enumerate(a.layout.shape))
            partial = Operand.from_array(np.empty(shape, wide(a.data.dtype)))
            self.run("reduce", op, partial, a, dim, identity)
            a = partial
        self.run("reduce", op, out, a, dims[-1], identity)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].

        By `parallel_matmul`, or row by row with zip and reduce, or by the library if neither is written.
        """
        largest_sum = max(1, a.layout.shape[-1]) * largest_integer(a) * largest_integer(b)
        if self.engine.has(MATMUL) and max(largest_sum, largest_integer(a), largest_integer(b)) < LARGEST:
            self.call_compiled(MATMUL, (), out, a, b)
            return
        if not self.engine.has("tensor_zip", "tensor_reduce", "add", "mul"):
            self.engine.lend(MATMUL)
            get_backend(LENDER).matmul(a, b, out)
            return
        from ...core.operators import add, mul

        x, y, z = a.array(), b.array(), out.array()
        *_, m, k = x.shape
        step = max(1, MAX_PRODUCTS * m // max(1, x.size * y.shape[-1]))
        for first in range(0, m, step):
            rows = Operand.from_array(
                np.broadcast_to(x[..., first : first + step, :, None], self.products(z, first, step, k))
            )
            columns = Operand.from_array(np.broadcast_to(y[..., None, :, :], rows.layout.shape))
            products = Operand.from_array(np.empty(rows.layout.shape, wide(out.data.dtype)))
            self.zip(mul, rows, columns, products)
            sums = Operand.from_array(z[..., first : first + step, None, :])
            self.reduce(add, products, sums, [products.layout.ndim - 2])

    @staticmethod
    def products(out: np.ndarray, first: int, step: int, inner: int) -> tuple[int, ...]:
        """Return the shape of the products of some rows of a matmul: (..., rows, inner, columns)."""
        *batch, m, n = out.shape
        return (*batch, min(step, m - first), inner, n)

    def run(self, kind: str, op: ScalarFunction | str, out: Operand, a: Operand, *rest: Any) -> None:
        """Run a loop with an operator, or with the function of a name: compiled, in Python, or lent by the library."""
        function, names, calls = self.operators.bind(op)
        terms = a.layout.size if kind == "reduce" else 1
        is_exact = all(terms * largest_integer(x) < LARGEST for x in (a, *rest) if isinstance(x, Operand))
        if self.engine.has(COMPILED[kind], *calls) and is_exact:
            compiled = self.compiled_operator(function)
            if compiled is not None and self.call_compiled(COMPILED[kind], (compiled,), out, a, *rest):
                self.note(op, (*names, *calls))
                return
        if self.engine.has(IN_PYTHON[kind]):
            self.note(op, names)
            self.call_in_python(IN_PYTHON[kind], function, out, a, *rest)
            return
        self.engine.lend(IN_PYTHON[kind])
        self.note(op, names)
        if names and is_exact and self.compiled_operator(function) is not None:
            with self.explaining(names[0]):
                run_in_float64(kind, self.compiled_operator(function), out, a, *rest)
        elif isinstance(op, str):
            of_arrays = function if names else oracle.function(op)  # which its loop knows as a function of whole arrays
            oracle.function(IN_PYTHON[kind])(of_arrays, strided(out), strided(a), *[strided(x) for x in rest])
        else:
            is_fast = not names and (isinstance(op, Operator) or self.compiled_operator(function) is not None)
            lender = get_backend(LENDER if is_fast else "python")
            operands = [out, [rest[0]]] if kind == "reduce" else [*rest, out]
            with self.explaining(names[0]) if names else nullcontext():
                getattr(lender, kind)(function if names and kind != "reduce" else op, a, *operands)

    def note(self, op: ScalarFunction | str, names: Sequence[str]) -> None:
        """Count an operator once for a loop."""
        if names:
            self.engine.count(*names)
        else:
            self.engine.lend(name_of(op))

    def call_in_python(self, slot: str, function: Callable[..., Any], out: Operand, *operands: Any) -> None:
        """Run a loop in Python; other functions of the student's that it calls count once."""
        result = out if out.data.dtype == wide(out.data.dtype) else Operand.from_array(np.empty(out.layout.shape))
        with np.errstate(all="ignore"), count_slots_once(self.engine.student.calls, self.engine.lent), self.explaining(slot):
            self.engine.slot(slot)(function, strided(result), *[strided(x) for x in operands])
        if result is not out:
            with np.errstate(all="ignore"):
                out.array()[...] = result.array()

    def call_compiled(self, slot: str, first: tuple[Any, ...], out: Operand, *operands: Any) -> bool:
        """Run a compiled loop on operands as float64, and return whether integers in its result are exact."""
        result = out if out.data.dtype == np.float64 else Operand(np.empty(len(out.data)), out.layout)
        self.engine.count(slot)
        steps = max([len(x.data) for x in (out, *operands) if isinstance(x, Operand)])
        with self._one_launch, threads_for(steps), self.explaining(slot):
            self.compiled_loop(slot)(*first, strided(result), *[strided(as_float64(x)) for x in operands])
        if result is out:
            return True
        with np.errstate(all="ignore"):
            out.array()[...] = result.array()
            return out.data.dtype != np.int64 or bool(np.all(np.abs(result.array()) < LARGEST))

    def compiled_loop(self, slot: str) -> Callable[..., None]:
        """Return a loop that Numba has compiled."""
        if slot not in self._compiled_loops:
            self._compiled_loops[slot] = compile_loop(self.engine.student, slot)
        return self._compiled_loops[slot]

    def compiled_operator(self, function: Callable[..., Any]) -> Any:
        """Return an operator that Numba has compiled; None if it cannot."""
        if function not in self._compiled_operators:
            is_plain = hasattr(function, "__code__")
            self._compiled_operators[function] = compile_operator(function) if is_plain else None  # type: ignore[arg-type]
        return self._compiled_operators[function]

    def explaining(self, slot: str) -> "Explaining":
        """Return a context in which exceptions of the student's code become errors that name the line."""
        return Explaining(self.engine, slot)


class Explaining:
    """A context that names the line of the student's code in an error."""

    def __init__(self, engine: StudentEngine, slot: str) -> None:
        self.engine, self.slot = engine, slot

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise the error in place of an exception."""
        if isinstance(error, Exception) and not isinstance(error, CourseError):
            place = self.engine.where(error)
            raise CourseError(
                f"{self.slot} of your engine raised {type(error).__name__}: {error}"
                + (f", at {place}" if place else "")
                + f"; run: minifuse course check {self.engine.student.home[self.slot].id}"
            ) from error


def run_in_float64(kind: str, operator: Callable[..., float], out: Operand, a: Operand, *rest: Any) -> None:
    """Run a loop of the library with an operator that Numba can compile for numbers of float64."""
    result = out if out.data.dtype == np.float64 else Operand(np.empty(len(out.data)), out.layout)
    if kind == "reduce":
        dim, start = rest
        numba_fallback.reduce(operator, as_float64(a), result, [dim], start)
    else:
        operands = [Operand(x.data, x.layout.expand(*out.layout.shape)) for x in map(as_float64, (a, *rest))]
        numba_fallback.run_elementwise(operator, operands, result)
    if result is not out:
        with np.errstate(all="ignore"):
            out.array()[...] = result.array()


def strided(x: Any) -> Any:
    """Return an operand as a tensor of the course, over the same memory; any other argument unchanged."""
    return Strided(x.data, x.layout.shape, x.layout.strides, x.layout.offset) if isinstance(x, Operand) else x


def as_float64(x: Any) -> Any:
    """Return an operand with elements of float64; any other argument unchanged."""
    return Operand(x.data.astype(np.float64, copy=False), x.layout) if isinstance(x, Operand) else x


def largest_integer(x: Operand) -> float:
    """Return the largest magnitude of integers of 64 bits; 0 for other dtypes, all of whose numbers a float64 holds."""
    if x.data.dtype != np.int64 or not x.layout.size:
        return 0
    elements = x.array()
    return float(max(abs(int(elements.min())), abs(int(elements.max()))))


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which numbers of a dtype are added: float64 for floats."""
    return np.dtype(np.float64) if dtype.kind == "f" else dtype
