"""Kernels that a student's code prints as text: looked at, loaded, and run over flat arrays that count each access.

The text is a function `kernel(shape, outs, ins, strides)`. It is written to a file of its own and imported from there, with
few builtins, in the process that judges, so that its limits hold for it too. Numbers that it loads count the arithmetic that
is done with them, so that "computed once" is counted and not asked for. `compiles` gives the same text to Numba.
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
from .programs import evaluated
from .strided import Array
from .verdicts import Refused, Wrong

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

PARAMETERS = ("shape", "outs", "ins", "strides")
BUILTINS = ("enumerate", "float", "len", "range", "zip")
WORDS = (*BUILTINS, "exp", "log", "maximum", "lt", "inf", "nan")
MAX_SHOWN_LINES = 40  # of a text that is shown


class Answer(str):
    """The judge's own text: NumPy runs the graph."""

    graph: Graph


@dataclass
class Counts:
    """The counts of one run of a kernel."""

    reads: list[Counter[int]] = field(default_factory=list)
    """Of each input, how often each element was read."""
    writes: list[Counter[int]] = field(default_factory=list)
    """Of each output, how often each element was written."""
    done: Counter[str] = field(default_factory=Counter)
    """Arithmetic, by its name."""
    outs: list[Array] = field(default_factory=list)


class Number(float):
    """A number that was loaded, or computed from one: its arithmetic is IEEE's, and counted."""

    done: Counter[str]

    @classmethod
    def of(cls, value: float, done: Counter[str]) -> "Number":
        """A number that counts there."""
        made = cls(value)
        made.done = done
        return made

    def by(self, name: str, ufunc: Callable[..., float], *operands: float) -> "Number":
        """Do something, once more."""
        self.done[name] += 1
        return Number.of(ufunc(*operands), self.done)

    def __add__(self, other: float) -> "Number":
        return self.by("add", np.add, self, other)

    def __radd__(self, other: float) -> "Number":
        return self.by("add", np.add, other, self)

    def __sub__(self, other: float) -> "Number":
        return self.by("sub", np.subtract, self, other)

    def __rsub__(self, other: float) -> "Number":
        return self.by("sub", np.subtract, other, self)

    def __mul__(self, other: float) -> "Number":
        return self.by("mul", np.multiply, self, other)

    def __rmul__(self, other: float) -> "Number":
        return self.by("mul", np.multiply, other, self)

    def __truediv__(self, other: float) -> "Number":
        return self.by("div", np.divide, self, other)

    def __rtruediv__(self, other: float) -> "Number":
        return self.by("div", np.divide, other, self)

    def __neg__(self) -> "Number":
        return self.by("neg", np.negative, self)


class Cells:
    """A flat array whose accesses are counted."""

    def __init__(self, name: str, values: Array, counts: Counter[int], done: Counter[str], is_output: bool) -> None:
        self.name, self.values, self.counts, self.done, self.is_output = name, values, counts, done, is_output

    def __len__(self) -> int:
        return len(self.values)

    def place(self, index: object) -> int:
        """An index within; IndexError below 0 too, since a kernel counts from the start of memory."""
        if not isinstance(index, int):
            raise TypeError(f"{self.name}[{index}]: arrays are flat, and an index is an int")
        if not 0 <= index < len(self.values):
            raise IndexError(f"{self.name}[{index}] is outside: {self.name} has {len(self.values)} elements")
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


def named(done: Counter[str]) -> dict[str, Callable[..., Number] | float]:
    """Return the functions that a text may call, which count there."""

    def word(name: str, ufunc: Callable[..., float]) -> Callable[..., Number]:
        def call(*operands: float) -> Number:
            done[name] += 1
            return Number.of(ufunc(*operands), done)

        return call

    found: dict[str, Callable[..., Number] | float] = {
        name: word(name, getattr(np, name)) for name in ("exp", "log", "maximum")
    }
    return found | {"lt": word("lt", np.less), "inf": float("inf"), "nan": float("nan")}


def pictured(text: str, at: int = 0) -> list[str]:
    """A text with the numbers of its lines, and a sign at one of them; only what is around it, if it is long."""
    lines = text.splitlines()
    first = max(min(at - MAX_SHOWN_LINES // 2, len(lines) - MAX_SHOWN_LINES), 0)
    shown = [f"{'>' if k == at else ' '} {k:>3}  {line[:100]}" for k, line in enumerate(lines, 1)]
    return shown[first : first + MAX_SHOWN_LINES]


def wrong(said: str, text: object, line: int = 0, *, kind: str = "", expected: object = None, got: object = None) -> Wrong:
    """Build a failure that shows the text."""
    return Wrong(said, told=current[0], drawing=pictured(str(text), line), kind=kind, expected=expected, got=got)


def function_of(text: object) -> Callable[..., None]:
    """The function that a text defines.

    Raises
    ------
    Wrong
        It is no text, no Python, or no such function.
    Refused
        It reaches for what a kernel does not need.
    """
    if not isinstance(text, str):
        raise Wrong(f"the source of a kernel is a str; this is of type {type(text).__name__}", told=current[0], got=text)
    try:
        tree = ast.parse(text)
        compile(tree, "kernel", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        is_deep = not isinstance(error, SyntaxError) or "too many nested" in str(error)
        said = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise wrong(
            f"the text is no Python: {said}", text, getattr(error, "lineno", 0) or 0, kind="nested" if is_deep else "syntax"
        ) from error
    match tree.body:
        case [ast.FunctionDef(name="kernel") as function] if tuple(a.arg for a in function.args.args) == PARAMETERS:
            pass
        case _:
            said = f"the text is to be one function, def kernel({', '.join(PARAMETERS)}), and nothing beside it"
            raise wrong(said, text, kind="signature")
    imports.look_at(tree, Path("kernel"), frozenset(), set())
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)):
        raise Refused(f"the text of a kernel imports something; it has {', '.join(WORDS)}")
    return loaded(text)


class Loader(SourceFileLoader):
    """Loads a file as it is now."""

    def path_stats(self, path: object) -> NoReturn:
        """None, so that Python keeps no bytecode."""
        raise OSError


def loaded(text: str) -> Callable[..., None]:
    """A text, imported from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(text, encoding="utf-8")
        module = ModuleType("kernel")
        vars(module)["__builtins__"] = {name: getattr(builtins, name) for name in BUILTINS}
        Loader("kernel", str(path)).exec_module(module)
    found: Callable[..., None] = vars(module)["kernel"]
    return found


def launched(
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
        The space that the kernel walks over.
    out_shapes : sequence of tuples
        Of the outputs, which are fresh and row-major.
    storages, strides : sequences
        Of the inputs; a stride is 0 along a dim that is repeated.

    Raises
    ------
    Wrong
        It ends in an error: with the text, and the line.
    """
    counts = Counts([Counter() for _ in storages], [Counter() for _ in out_shapes])
    counts.outs = [np.full(prod(of), np.nan) for of in out_shapes]
    if isinstance(text, Answer):
        arrays = [strided(storage, shape, steps) for storage, steps in zip(storages, strides, strict=True)]
        counts.outs = [np.array(x).reshape(-1) for x in evaluated(text.graph, arrays)]
        return counts
    function = function_of(text)
    vars_of: dict[str, object] = function.__globals__
    vars_of.update(named(counts.done))
    outs = tuple(Cells(f"outs[{k}]", x, counts.writes[k], counts.done, True) for k, x in enumerate(counts.outs))
    ins = tuple(Cells(f"ins[{k}]", x, counts.reads[k], counts.done, False) for k, x in enumerate(storages))
    try:
        with np.errstate(all="ignore"):
            function(shape, outs, ins, tuple(strides))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = next((f.lineno or 0 for f in reversed(frames) if f.filename == function.__code__.co_filename), 0)
        beside = f"; a kernel has {', '.join(WORDS)}" if isinstance(error, NameError) else ""
        raise wrong(
            f"the kernel ends in {type(error).__name__}: {error}{beside}", text, at, kind=type(error).__name__
        ) from error
    return counts


class Launch(NamedTuple):
    """The arguments of a run, as `launched` takes them, and the expected outputs."""

    shape: Shape
    out_shapes: Sequence[Shape]
    storages: Sequence[Array]
    strides: Sequence[Shape]
    expected: Sequence[Array]
    """For each output, flat."""


def compiles(text: object, launches: Sequence[Launch]) -> None:
    """Compile a text once, and run it for each launch: of other sizes, but the same numbers of dims and operands.

    Raises
    ------
    Wrong
        Numba does not take the text, or what it makes of it stores something else.
    """
    if isinstance(text, Answer):
        return
    function, ufuncs = function_of(text), ("exp", "log", "maximum")
    vars_of: dict[str, object] = function.__globals__
    vars_of.update({name: getattr(np, name) for name in ufuncs}, lt=compiled_lt(), inf=np.inf, nan=np.nan)
    function.__module__ = __name__  # one that is there, for whoever loads what is cached
    kernel = cached_jit(function, boundscheck=True, error_model="numpy")
    for given in launches:
        outs = tuple(np.full(prod(of), np.nan) for of in given.out_shapes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Numba's, of what is slow
                kernel(given.shape, outs, tuple(given.storages), tuple(given.strides))
        except Exception as error:  # of Numba's, or of Python's where Numba did not expect such a text
            said = next((line.strip() for line in str(error).splitlines() if is_telling(line)), type(error).__name__)
            at = re.search(r'kernel\.py", line (\d+)', str(error))
            raise wrong(
                f"Python runs the text, but Numba cannot compile it: {said}", text, int(at[1]) if at else 0, kind="numba"
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


def is_telling(line: str) -> bool:
    """Return whether a line of Numba's says what is wrong, and not in which of its stages."""
    return bool(line.strip()) and not line.startswith("Failed in")


@cache
def compiled_lt() -> "Dispatcher[Callable[..., float]]":
    """lt(x, y) for compiled code."""
    import numba

    lt: Dispatcher[Callable[..., float]] = numba.njit(lambda x, y: 1.0 if x < y else 0.0)
    return lt


def strided(storage: Array, shape: Shape, strides: Shape) -> Array:
    """A storage as an array of a shape."""
    return np.lib.stride_tricks.as_strided(storage, shape, [s * storage.itemsize for s in strides])
