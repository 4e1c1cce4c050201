"""Parse and run kernels that a student's code generates as text, and count their accesses and arithmetic.

The text is a function `kernel(shape, outs, ins, strides)`. It is imported from a temporary file with few builtins, in the
subprocess that judges the task. The numbers that it loads count the arithmetic that uses them, so that a check can require
that a value is computed once. `check_compiled` compiles the same text with Numba.
"""

import ast
import builtins
import re
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import SourceFileLoader
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from ..core.indexing import Shape
from . import imports
from .check import current
from .compiled import cached_jit
from .fusion import Graph
from .programs import evaluate_graph
from .strided import Array
from .verdicts import Refused, Wrong

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

PARAMETERS = ("shape", "outs", "ins", "strides")
BUILTINS = ("enumerate", "float", "len", "range", "zip")
WORDS = (*BUILTINS, "exp", "log", "maximum", "lt", "inf", "nan")
MAX_SHOWN_LINES = 40  # of a kernel in a report


class ReferenceKernel(str):
    """A text that the oracle generates. `launch` runs its graph with NumPy instead."""

    graph: Graph


@dataclass
class Counts:
    """The counts of one run of a kernel."""

    reads: list[Counter[int]] = field(default_factory=list)
    """For each input, the number of reads of each element."""
    writes: list[Counter[int]] = field(default_factory=list)
    """For each output, the number of writes of each element."""
    done: Counter[str] = field(default_factory=Counter)
    """Number of arithmetic operations, by name."""
    outs: list[Array] = field(default_factory=list)


class Number(float):
    """A number that was loaded or computed. Its arithmetic follows IEEE 754 and is counted."""

    done: Counter[str]

    @classmethod
    def of(cls, value: float, done: Counter[str]) -> "Number":
        """Create a number that counts its arithmetic in `done`."""
        number = cls(value)
        number.done = done
        return number

    def apply(self, name: str, ufunc: Callable[..., float], *operands: float) -> "Number":
        """Apply and count an operation."""
        self.done[name] += 1
        return Number.of(ufunc(*operands), self.done)

    def __add__(self, other: float) -> "Number":
        return self.apply("add", np.add, self, other)

    def __radd__(self, other: float) -> "Number":
        return self.apply("add", np.add, other, self)

    def __sub__(self, other: float) -> "Number":
        return self.apply("sub", np.subtract, self, other)

    def __rsub__(self, other: float) -> "Number":
        return self.apply("sub", np.subtract, other, self)

    def __mul__(self, other: float) -> "Number":
        return self.apply("mul", np.multiply, self, other)

    def __rmul__(self, other: float) -> "Number":
        return self.apply("mul", np.multiply, other, self)

    def __truediv__(self, other: float) -> "Number":
        return self.apply("div", np.divide, self, other)

    def __rtruediv__(self, other: float) -> "Number":
        return self.apply("div", np.divide, other, self)

    def __neg__(self) -> "Number":
        return self.apply("neg", np.negative, self)


class Cells:
    """A flat array whose accesses are counted."""

    def __init__(self, name: str, values: Array, counts: Counter[int], done: Counter[str], is_output: bool) -> None:
        self.name, self.values, self.counts, self.done, self.is_output = name, values, counts, done, is_output

    def __len__(self) -> int:
        return len(self.values)

    def place(self, index: object) -> int:
        """Check an index. Negative ones raise IndexError too, since a kernel addresses memory from its start."""
        if not isinstance(index, int):
            raise TypeError(f"{self.name}[{index}]: arrays are flat, and an index is an int")
        if not 0 <= index < len(self.values):
            raise IndexError(f"{self.name}[{index}] is out of bounds: {self.name} has {len(self.values)} elements")
        return index

    def __getitem__(self, index: object) -> Number:
        if self.is_output:
            raise TypeError(f"{self.name} is read; a kernel stores its outputs, and keeps in variables what it still needs")
        k = self.place(index)
        self.counts[k] += 1
        return Number.of(self.values[k], self.done)

    def __setitem__(self, index: object, value: float) -> None:
        if not self.is_output:
            raise TypeError(f"{self.name} is written; a kernel leaves its inputs as they are")
        k = self.place(index)
        self.counts[k] += 1
        self.values[k] = value


def kernel_builtins(done: Counter[str]) -> dict[str, Callable[..., Number] | float]:
    """Return the functions and constants that a kernel may use. The functions count their calls in `done`."""

    def counting(name: str, ufunc: Callable[..., float]) -> Callable[..., Number]:
        def call(*operands: float) -> Number:
            done[name] += 1
            return Number.of(ufunc(*operands), done)

        return call

    functions: dict[str, Callable[..., Number] | float] = {
        name: counting(name, getattr(np, name)) for name in ("exp", "log", "maximum")
    }
    return functions | {"lt": counting("lt", np.less), "inf": float("inf"), "nan": float("nan")}


def number_lines(text: str, at: int = 0) -> list[str]:
    """Return numbered lines, with a mark at line `at`; of a long text, only the lines around it."""
    lines = text.splitlines()
    first = max(min(at - MAX_SHOWN_LINES // 2, len(lines) - MAX_SHOWN_LINES), 0)
    shown = [f"{'>' if k == at else ' '} {k:>3}  {line[:100]}" for k, line in enumerate(lines, 1)]
    return shown[first : first + MAX_SHOWN_LINES]


def wrong(
    message: str, text: object, line: int = 0, *, kind: str = "", expected: object = None, got: object = None
) -> Wrong:
    """Return a failure whose picture shows the text."""
    return Wrong(message, case_text=current[0], drawing=number_lines(str(text), line), kind=kind, expected=expected, got=got)


def parse_kernel(text: object) -> Callable[..., None]:
    """Parse, check and import the function that a text defines.

    Raises
    ------
    Wrong
        It is not a str, not valid Python, or not this function.
    Refused
        It uses a name that no kernel needs.
    """
    if not isinstance(text, str):
        raise Wrong(
            f"the source of a kernel is a str; this is of type {type(text).__name__}", case_text=current[0], got=text
        )
    try:
        tree = ast.parse(text)
        compile(tree, "kernel", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        is_deep = not isinstance(error, SyntaxError) or "too many nested" in str(error)
        message = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise wrong(
            f"the text is not valid Python: {message}",
            text,
            getattr(error, "lineno", 0) or 0,
            kind="nested" if is_deep else "syntax",
        ) from error
    match tree.body:
        case [ast.FunctionDef(name="kernel") as function] if tuple(a.arg for a in function.args.args) == PARAMETERS:
            pass
        case _:
            message = f"the text must be one function, def kernel({', '.join(PARAMETERS)}), and nothing else"
            raise wrong(message, text, kind="signature")
    imports.check_imports(tree, Path("kernel"), frozenset(), set())
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)):
        raise Refused(f"the text of a kernel imports something; it has {', '.join(WORDS)}")
    return import_kernel(text)


class Loader(SourceFileLoader):
    """A loader without cached bytecode."""

    def path_stats(self, path: object) -> NoReturn:
        """Raise OSError, so that Python writes no bytecode."""
        raise OSError


def import_kernel(text: str) -> Callable[..., None]:
    """Import a text from a temporary file and return its function `kernel`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(text, encoding="utf-8")
        module = ModuleType("kernel")
        vars(module)["__builtins__"] = {name: getattr(builtins, name) for name in BUILTINS}
        Loader("kernel", str(path)).exec_module(module)
    kernel: Callable[..., None] = vars(module)["kernel"]
    return kernel


def launch(
    text: object,
    shape: Shape,
    out_shapes: Sequence[Shape],
    storages: Sequence[Array],
    strides: Sequence[Shape],
) -> Counts:
    """Run the kernel of a text.

    Parameters
    ----------
    text : str
    shape : tuple of int
        The iteration space.
    out_shapes : sequence of tuples
        Shapes of the outputs, which are newly allocated in row-major order.
    storages, strides : sequences
        Of the inputs. A stride is 0 along a repeated dim.

    Raises
    ------
    Wrong
        It raises an error. The failure shows the text and the line.
    """
    counts = Counts([Counter() for _ in storages], [Counter() for _ in out_shapes])
    counts.outs = [np.full(prod(of), np.nan) for of in out_shapes]
    if isinstance(text, ReferenceKernel):
        arrays = [strided(storage, shape, steps) for storage, steps in zip(storages, strides, strict=True)]
        counts.outs = [np.array(x).reshape(-1) for x in evaluate_graph(text.graph, arrays)]
        return counts
    function = parse_kernel(text)
    vars_of: dict[str, object] = function.__globals__
    vars_of.update(kernel_builtins(counts.done))
    outs = tuple(Cells(f"outs[{k}]", x, counts.writes[k], counts.done, True) for k, x in enumerate(counts.outs))
    ins = tuple(Cells(f"ins[{k}]", x, counts.reads[k], counts.done, False) for k, x in enumerate(storages))
    try:
        with np.errstate(all="ignore"):
            function(shape, outs, ins, tuple(strides))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = next((f.lineno or 0 for f in reversed(frames) if f.filename == function.__code__.co_filename), 0)
        hint = f"; a kernel has {', '.join(WORDS)}" if isinstance(error, NameError) else ""
        raise wrong(
            f"the kernel ends in {type(error).__name__}: {error}{hint}", text, at, kind=type(error).__name__
        ) from error
    return counts


class Launch(NamedTuple):
    """The arguments of `launch`, and the expected outputs."""

    shape: Shape
    out_shapes: Sequence[Shape]
    storages: Sequence[Array]
    strides: Sequence[Shape]
    expected: Sequence[Array]
    """One flat array for each output."""


def check_compiled(text: object, launches: Sequence[Launch]) -> None:
    """Compile a text once and run it for several launches. They may differ in sizes, but not in numbers of dims or operands.

    Raises
    ------
    Wrong
        Numba cannot compile the text, or the compiled kernel stores other values.
    """
    if isinstance(text, ReferenceKernel):
        return
    function, ufuncs = parse_kernel(text), ("exp", "log", "maximum")
    vars_of: dict[str, object] = function.__globals__
    vars_of.update({name: getattr(np, name) for name in ufuncs}, lt=compiled_lt(), inf=np.inf, nan=np.nan)
    function.__module__ = __name__  # an importable module, which Numba's cache requires
    kernel = cached_jit(function, boundscheck=True, error_model="numpy")
    for given in launches:
        outs = tuple(np.full(prod(of), np.nan) for of in given.out_shapes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Numba's performance warnings
                kernel(given.shape, outs, tuple(given.storages), tuple(given.strides))
        except Exception as error:  # of Numba, or of Python inside Numba for unexpected code
            message = next((line.strip() for line in str(error).splitlines() if is_informative(line)), type(error).__name__)
            at = re.search(r'kernel\.py", line (\d+)', str(error))
            raise wrong(
                f"Python runs the text, but Numba cannot compile it: {message}", text, int(at[1]) if at else 0, kind="numba"
            ) from error
        for k, (right, got) in enumerate(zip(given.expected, outs, strict=True)):
            if not np.allclose(right, got, equal_nan=True):
                raise wrong(
                    f"compiled by Numba, over the space {given.shape}, the kernel stores something else in outs[{k}]",
                    text,
                    expected=right,
                    got=got,
                    kind="compiled",
                )


def is_informative(line: str) -> bool:
    """Return whether a line of Numba's message describes the error, not the stage in which it occurred."""
    return bool(line.strip()) and not line.startswith("Failed in")


@cache
def compiled_lt() -> "Dispatcher[Callable[..., float]]":
    """Return lt(x, y) for compiled code."""
    import numba

    lt: Dispatcher[Callable[..., float]] = numba.njit(lambda x, y: 1.0 if x < y else 0.0)
    return lt


def strided(storage: Array, shape: Shape, strides: Shape) -> Array:
    """Return a view of a storage with a shape and strides."""
    return np.lib.stride_tricks.as_strided(storage, shape, [s * storage.itemsize for s in strides])
