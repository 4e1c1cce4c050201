"""Run a loop for Numba in Python, over arrays that count their accesses, to find out-of-bounds accesses and data races.

Code compiled by Numba does not record accesses and does not check bounds. The same function in Python, over arrays that
record each access, does both; `compiled` checks that the compiled code computes the same. Nothing here is timed.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from .access_facts import AccessFacts, Index, Touch
from .compiled_launches import THREADS
from .counted_ints import CountedInt, Divisions
from .strided import Array, Strided
from .student import Student

MAKERS = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "arange", "array", "copy")
INTEGERS = ("int64", "intp", "int32", "uint64")
OPERANDS = ("out", "a", "b")
Elements = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Argument = Callable[..., float] | Callable[..., Array] | Strided | Array | float
"""An operator, a tensor, an array or a number."""


@dataclass
class Record:
    """The accesses of one run."""

    folder: Path
    sample: int | None = None
    """How many iterations of a prange run; None for all of them."""
    reads: Counter[str] = field(default_factory=Counter)
    """Number of element reads, by the name of the array."""
    writes: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[tuple[int, tuple[str, int]]]] = field(default_factory=dict)
    """The addresses that were read, in order, and the lines that read them."""
    made: list[int] = field(default_factory=list)
    """The sizes of arrays that the loop has created."""
    made_inside: int = 0
    """Number of arrays that were created in an iteration of a prange."""
    pranges: int = 0
    """Number of pranges that have begun."""
    read_by: Counter[tuple[int, int | None]] = field(default_factory=Counter)
    """Number of reads of operands, by the prange and its iteration."""
    written: set[int] = field(default_factory=set)
    """The addresses of the output that were written."""
    calls: int = 0
    """Number of calls of the operator."""
    divisions: Divisions = field(default_factory=Divisions)
    races: list[tuple[str, Index, Touch, Touch]] = field(default_factory=list)
    """(array, index, one access, the other access)."""
    iteration: int | None = None
    """The iteration of the outermost prange; None outside of it."""
    serial_writes: list[tuple[str, int]] = field(default_factory=list)
    """Lines that wrote to the output outside of any prange."""
    touched: dict[int, list[Touch]] = field(default_factory=dict)
    """The accesses of this prange, by address."""
    alive: list[Elements] = field(default_factory=list)
    """References to the arrays of this prange: an array that is freed could give its address to another one."""

    def facts(self) -> AccessFacts:
        """Return what was recorded, as plain data."""
        return AccessFacts(
            dict(self.reads),
            dict(self.writes),
            self.places,
            self.made,
            self.made_inside,
            max(self.read_by.values(), default=0),
            len(self.written),
            self.calls,
            self.divisions.count,
            self.races,
            self.serial_writes,
        )

    def add(self, cells: "Cells", index: Index, is_write: bool) -> None:
        """Record an access. It is a race if another iteration has accessed the element and one of the two writes."""
        (self.writes if is_write else self.reads)[cells.name] += 1
        if cells.is_layout and not is_write:
            return
        at = index if isinstance(index, tuple) else (index,)
        address = cells.start + sum([i * step for i, step in zip(at, cells.steps, strict=True)])
        line = line_in(self.folder)
        self.read_by[self.pranges, self.iteration] += cells.is_operand and not is_write
        is_output = cells.name.startswith("out")
        if is_write and is_output:
            self.written.add(address)
        if not is_write and cells.name in OPERANDS:
            self.places.setdefault(cells.name, []).append((address, line))
        if self.iteration is None:
            if is_write and is_output:
                self.serial_writes.append(line)
            return
        touch = Touch(self.iteration, is_write, line)
        seen = self.touched.setdefault(address, [])
        for other in seen:
            if other.iteration != self.iteration and (is_write or other.is_write):
                self.races.append((cells.name, index, other, touch))
                break
        if touch not in seen and len(seen) < 4:
            seen.append(touch)

    def add_made(self, size: int) -> None:
        """Record an array that the loop has created."""
        self.made.append(size)
        self.made_inside += self.iteration is not None

    def counted(self, function: Callable[..., float]) -> Callable[..., float]:
        """Return an operator that counts its calls."""

        def call(*operands: float) -> float:
            self.calls += 1
            return function(*operands)

        return call

    def prange(self, *limits: int) -> Iterator[int]:
        """Iterate like `range`, and record the iteration of the outermost prange: each one may run on another thread."""
        iterations = range(*limits)
        if self.iteration is not None:
            yield from iterations
            return
        self.pranges += 1
        self.touched.clear()
        self.alive.clear()
        for i in some_of(iterations, self.sample):
            self.iteration = i
            yield CountedInt(i, self.divisions)
        self.iteration = None


def some_of(iterations: range, count: int | None) -> Sequence[int]:
    """Return so many iterations, the first and the last one included; all of them if there are fewer."""
    if count is None or len(iterations) <= count:
        return iterations
    steps = np.linspace(0, len(iterations) - 1, count).astype(int)
    return [iterations[k] for k in steps.tolist()]


class Cells(NDArrayOperatorsMixin):
    """An array that records its accesses.

    Loops access operands one element at a time, so an operation on a whole operand is an error. Arrays of sizes and strides,
    and arrays that the loop creates, support the operators and functions of NumPy too.
    """

    __hash__ = None  # type: ignore[assignment]  # == compares elements

    def __init__(self, name: str, values: Elements, record: Record) -> None:
        self.name, self.values, self.record = name, values, record
        self.shape, self.size, self.ndim, self.dtype = values.shape, values.size, values.ndim, values.dtype
        self.start: int = values.__array_interface__["data"][0]
        self.steps = values.strides
        self.is_operand = name.endswith(".storage") or name in OPERANDS
        self.is_layout = name in ("shape", "strides")
        record.alive.append(values)

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return bool(self.whole())

    def __iter__(self) -> Iterator["float | Cells"]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        place = self.place(index)
        if place is None:
            return Cells(self.name, self.values[plain_array(index)], self.record)
        self.record.add(self, place, False)
        return self.number(self.values[index])

    def number(self, x: np.generic) -> Any:
        """Convert a NumPy scalar to a number; an int counts divisions."""
        value = x.item()
        return CountedInt(value, self.record.divisions) if type(value) is int else value

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self.place(index)
        if place is not None:
            self.record.add(self, place, True)
        elif self.name.endswith(".storage"):
            raise TypeError(f"{self.name}[{index}] = ... writes many elements in one step; write the loop")
        else:
            self[index].record_all(True)
        if isinstance(value, Cells):  # a copy
            value = value.whole() if value.name.endswith(".storage") else value.copied_values()
        self.values[plain_array(index)] = value

    def __getattr__(self, name: str) -> Any:
        if self.is_operand or name.startswith("__"):  # of NumPy's protocols, the class defines those it needs
            raise AttributeError(
                f"{self.name} has no {name} here: it is read and written element by element, {self.name}[i] = ..."
            )
        value = getattr(self.values, name)
        if not callable(value):
            return self.wrap_result(value)
        return lambda *args, **options: self.wrap_result(getattr(self.whole(), name)(*whole(args), **whole(options)))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Elements:
        return np.array(self.whole(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: object, **options: object) -> object:
        return self.wrap_result(getattr(ufunc, method)(*whole(args), **whole(options)))

    def __array_function__(
        self, function: Callable[..., object], types: object, args: Sequence[object], options: Mapping[str, object]
    ) -> object:
        return self.wrap_result(function(*whole(args), **whole(options)))

    def whole(self) -> Elements:
        """Return the values for an operation on the whole array, and record a read of each element."""
        if self.is_operand:
            raise TypeError(f"{self.name} is read and written element by element here, {self.name}[i]; write the loop")
        self.record_all(False)
        return self.values

    def copied_values(self) -> Elements:
        """Return the values for a copy of the whole array, and record a read of each element."""
        self.record_all(False)
        return self.values

    def record_all(self, is_write: bool) -> None:
        """Record an access to every element."""
        for index in np.ndindex(self.shape):
            self.record.add(self, index, is_write)

    def wrap_result(self, result: object) -> object:
        """Wrap the result of an operation: record an array as created by the loop, convert a NumPy scalar to a number."""
        if isinstance(result, tuple | list):
            return type(result)(map(self.wrap_result, result))
        if isinstance(result, np.ndarray):
            self.record.add_made(result.size)
            return Cells("an array", result, self.record)
        return self.number(result) if isinstance(result, np.generic) else result

    def place(self, index: object) -> Index | None:
        """Check an index and return it as ints; None for a slice. Negative indices of operands raise IndexError too."""
        if self.ndim == 1 and isinstance(index, int) and 0 <= index < self.size:
            return int(index)
        numbers = index if isinstance(index, tuple) else (index,)
        if len(numbers) != self.ndim or not all(isinstance(i, int | np.integer) for i in numbers):
            if any(isinstance(i, float) for i in numbers):
                raise TypeError(f"{self.name}[{index}]: an index must be an integer; // divides integers")
            return None
        if not self.name.endswith(".storage"):  # for shapes and strides, -1 is the last one in compiled code too
            numbers = tuple(i + size if -size <= i < 0 else i for i, size in zip(numbers, self.shape, strict=True))
        for i, size in zip(numbers, self.shape, strict=True):
            if not 0 <= i < size:
                of = f"{size} elements" if self.ndim == 1 else f"shape {self.shape}"
                raise IndexError(
                    f"{self.name}[{index}] is out of bounds: {self.name} has {of}; compiled code would not raise an error"
                )
        return int(numbers[0]) if self.ndim == 1 else tuple(map(int, numbers))

    def fill(self, value: float) -> None:
        """Write every element."""
        for index in np.ndindex(self.shape):
            self[index if self.ndim != 1 else index[0]] = value

    def copy(self) -> "Cells":
        """Return a copy, and record it as an array that the loop has created."""
        self.record.add_made(self.size)
        return Cells("a copy", self.values.copy(), self.record)


def whole(x: Any) -> Any:
    """Replace each `Cells` in the arguments of a NumPy function by its values."""
    if isinstance(x, Cells):
        return x.whole()
    if isinstance(x, tuple | list):
        return type(x)(map(whole, x))
    return {name: whole(value) for name, value in x.items()} if isinstance(x, dict) else x


class Numpy:
    """NumPy for a recorded function: it creates `Cells`."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if name in INTEGERS:
            kind = counting_type(value, self._record)
            setattr(self, name, kind)  # so that it is made once
            return kind
        if name not in MAKERS:
            return value

        def make(*args: object, **options: object) -> Cells:
            array = value(*[plain_array(x) for x in args], **options)
            self._record.add_made(array.size)
            return Cells(f"an array of np.{name}", array, self._record)

        return make


def counting_type(kind: type[np.integer[Any]], record: Record) -> type:
    """Return a type of NumPy's ints, whose instances count divisions. It is a dtype like the original."""

    def __new__(cls: type, x: float = 0) -> CountedInt:  # noqa: N807
        return CountedInt(kind(x).item(), record.divisions)

    return type(kind.__name__, (kind,), {"__new__": __new__})


class Numba:
    """Numba for a recorded function: its prange is recorded."""

    def __init__(self, module: ModuleType, record: Record) -> None:
        self._module, self.prange, self.get_num_threads = module, record.prange, number_of_threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def number_of_threads() -> int:
    """Return the number of threads of a recorded run, on any machine."""
    return THREADS


def plain_array(x: object) -> Any:
    """Return the values of `Cells`, anything else unchanged."""
    return x.values if isinstance(x, Cells) else x


def line_in(folder: Path) -> tuple[str, int]:
    """Return (file, line) of the innermost running frame in the student's folder."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if name := name_in(frame.f_code.co_filename, folder):
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


@cache
def name_in(file: str, folder: Path) -> str:
    """Return the name of a file if it is in the folder; else ""."""
    return Path(file).name if Path(file).parent == folder else ""


def uncompiled(function: FunctionType, record: Record) -> FunctionType:
    """Return a function and its helpers uncompiled, with prange and NumPy replaced by those that record."""
    function = getattr(function, "py_func", function)
    namespace: dict[str, object] = {}
    for name, value in function.__globals__.items():
        original = getattr(value, "py_func", getattr(value, "__wrapped__", value))
        if isinstance(original, FunctionType) and original.__globals__ is function.__globals__:
            namespace[name] = FunctionType(original.__code__, namespace, name, original.__defaults__, original.__closure__)
        elif value is np:
            namespace[name] = Numpy(record)
        elif isinstance(value, ModuleType) and value.__name__ == "numba":
            namespace[name] = Numba(value, record)
        elif getattr(value, "__name__", "") == "prange":
            namespace[name] = record.prange
        elif getattr(value, "__name__", "") == "get_num_threads":
            namespace[name] = number_of_threads
        elif getattr(value, "__module__", "") == "numpy" and getattr(value, "__name__", "") in MAKERS:
            namespace[name] = getattr(Numpy(record), value.__name__)
        else:
            namespace[name] = original if isinstance(original, FunctionType) else value
    return FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)


def with_counted_cells(x: Strided, name: str, record: Record) -> Strided:
    """Replace the arrays of a tensor by `Cells`. Shape and strides are recorded under the names "shape" and "strides"."""
    sizes, steps = [Cells(of, np.array(getattr(x, of), np.int64), record) for of in ("shape", "strides")]
    offset = CountedInt(x.offset, record.divisions)
    return Strided._make([Cells(f"{name}.storage", x.storage, record), sizes, steps, offset])


def run(student: Student, slot: str, *arguments: Argument, sample: int | None = None) -> Record:
    """Run a slot in Python over recorded arguments, named out, a, b. Outputs are written in place.

    `sample` limits the iterations of each prange that run, so that large cases are fast.
    """
    record = Record(student.folder, sample)
    names = iter(OPERANDS)
    given = [
        with_counted_cells(x, next(names), record)
        if isinstance(x, Strided)
        else Cells(next(names), x, record)
        if isinstance(x, np.ndarray)
        else record.counted(x)
        if isinstance(x, FunctionType)
        else x
        for x in arguments
    ]
    student.count(slot)
    with np.errstate(all="ignore"):
        uncompiled(student.raw(slot), record)(*given)
    return record
