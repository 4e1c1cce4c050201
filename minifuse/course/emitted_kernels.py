"""Parse and run kernels that a student's code generates as text, and count their accesses and arithmetic.

The text is a function `kernel(shape, outs, ins, strides)`. It is imported from a temporary file with few builtins, in the
process of the student's code. The numbers that it loads count the arithmetic that uses them, so that a check can require
that a value is computed once. `run_compiled` compiles the same text with Numba. `kernel_runs` judges what the runs return.
"""

import ast
import builtins
import re
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from .compiled import cached_jit
from .fusion import Graph
from .strided import Array
from .verdicts import Refused

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

PARAMETERS = ("shape", "outs", "ins", "strides")
BUILTINS = ("enumerate", "float", "len", "range", "zip")
WORDS = (*BUILTINS, "exp", "log", "maximum", "lt", "inf", "nan")

MEMORY = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Starred)
STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Return)
JUMPS = (ast.Break, ast.Continue, ast.Pass)
EXPRESSIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.NamedExpr, ast.Call, ast.Subscript, ast.Name)
PARTS = (ast.Constant, ast.Tuple, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.arguments, ast.arg)
FORM = (ast.Module, ast.FunctionDef, *STATEMENTS, *JUMPS, *EXPRESSIONS, *PARTS)
"""Parts of the syntax of a kernel."""


class KernelError(Exception):
    """Raised for a text that is no kernel, and for a kernel that ends in an error."""

    def __init__(self, message: str, kind: str, line: int = 0) -> None:
        super().__init__(message)
        self.message, self.kind, self.line = message, kind, line
        """`line` is a line of the text, or 0."""


class Launch(NamedTuple):
    """The arguments of a kernel."""

    shape: Shape
    """The iteration space."""
    out_shapes: Sequence[Shape]
    """Shapes of the outputs, which are newly allocated in row-major order."""
    storages: Sequence[Array]
    """Of the inputs."""
    strides: Sequence[Shape]
    """Of the inputs. A stride is 0 along a repeated dim."""


class KernelRun(NamedTuple):
    """The run of a kernel, as data."""

    text: object
    outs: list[Array]
    reads: list[dict[int, int]]
    """For each input, the number of reads of each element."""
    writes: list[dict[int, int]]
    """For each output, the number of writes of each element."""
    done: dict[str, int]
    """Number of arithmetic operations, by name."""
    failure: tuple[str, str, int] | None = None
    """Message, kind and line of an error: the text is no kernel, or ended in an error. Then there are no outputs."""


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


class Number:
    """A number that was loaded or computed. Its arithmetic follows IEEE 754 and is counted; a comparison counts as `lt`.

    It is no float: an operation that is not counted fails.
    """

    __slots__ = ("_done", "_value")
    __hash__ = None  # type: ignore[assignment]  # a kernel keeps no dict

    def __init__(self, value: float, done: Counter[str]) -> None:
        self._value, self._done = float(value), done

    def __repr__(self) -> str:
        return repr(self._value)

    def __bool__(self) -> bool:
        return self._value != 0.0

    def __pos__(self) -> "Number":
        return self

    def apply(self, name: str, ufunc: Callable[..., float], *operands: "float | Number") -> "Number":
        """Apply and count an operation."""
        self._done[name] += 1
        return Number(ufunc(*map(value_of, operands)), self._done)

    def compare(self, ufunc: Callable[..., bool], other: "float | Number") -> bool:
        """Compare with a number."""
        self._done["lt"] += 1
        return bool(ufunc(self._value, value_of(other)))

    def __add__(self, other: "float | Number") -> "Number":
        return self.apply("add", np.add, self, other)

    def __radd__(self, other: float) -> "Number":
        return self.apply("add", np.add, other, self)

    def __sub__(self, other: "float | Number") -> "Number":
        return self.apply("sub", np.subtract, self, other)

    def __rsub__(self, other: float) -> "Number":
        return self.apply("sub", np.subtract, other, self)

    def __mul__(self, other: "float | Number") -> "Number":
        return self.apply("mul", np.multiply, self, other)

    def __rmul__(self, other: float) -> "Number":
        return self.apply("mul", np.multiply, other, self)

    def __truediv__(self, other: "float | Number") -> "Number":
        return self.apply("div", np.divide, self, other)

    def __rtruediv__(self, other: float) -> "Number":
        return self.apply("div", np.divide, other, self)

    def __neg__(self) -> "Number":
        return self.apply("neg", np.negative, self)

    def __lt__(self, other: "float | Number") -> bool:
        return self.compare(np.less, other)

    def __le__(self, other: "float | Number") -> bool:
        return self.compare(np.less_equal, other)

    def __gt__(self, other: "float | Number") -> bool:
        return self.compare(np.greater, other)

    def __ge__(self, other: "float | Number") -> bool:
        return self.compare(np.greater_equal, other)

    def __eq__(self, other: object) -> bool:
        return self.compare(np.equal, value_of(other))

    def __ne__(self, other: object) -> bool:
        return self.compare(np.not_equal, value_of(other))


def value_of(x: object) -> float:
    """Return the value of a number of a kernel as a float."""
    if not isinstance(x, Number | float | int):
        raise TypeError(f"arithmetic with a {type(x).__name__}, which is no number")
    return x._value if isinstance(x, Number) else float(x)


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
        return Number(self.values[k], self.done)

    def __setitem__(self, index: object, value: float | Number) -> None:
        if not self.is_output:
            raise TypeError(f"{self.name} is written; a kernel leaves its inputs as they are")
        k = self.place(index)
        self.counts[k] += 1
        self.values[k] = value_of(value)


def kernel_builtins(done: Counter[str]) -> dict[str, Callable[..., Number] | float]:
    """Return the functions and constants that a kernel may use. The functions count their calls in `done`."""

    def counting(name: str, ufunc: Callable[..., float]) -> Callable[..., Number]:
        def call(*operands: float | Number) -> Number:
            done[name] += 1
            return Number(ufunc(*map(value_of, operands)), done)

        return call

    functions: dict[str, Callable[..., Number] | float] = {
        name: counting(name, getattr(np, name)) for name in ("exp", "log", "maximum")
    }
    functions["float"] = lambda x: x if isinstance(x, Number) else Number(x, done)
    return functions | {"lt": counting("lt", np.less), "inf": float("inf"), "nan": float("nan")}


def parse_kernel(text: object) -> Callable[..., None]:
    """Parse, check and import the function that a text defines.

    Raises
    ------
    KernelError
        It is not a str, not valid Python, or not this function.
    Refused
        It uses a name that no kernel needs.
    """
    if not isinstance(text, str):
        raise KernelError(f"the source of a kernel is a str; this is of type {type(text).__name__}", "type")
    try:
        tree = ast.parse(text)
        compile(tree, "kernel", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        is_deep = not isinstance(error, SyntaxError) or "too many nested" in str(error)
        message = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else "it is nested too deeply"
        line = getattr(error, "lineno", 0) or 0
        raise KernelError(f"the text is not valid Python: {message}", "nested" if is_deep else "syntax", line) from error
    match tree.body:
        case [ast.FunctionDef(name="kernel") as function] if tuple(a.arg for a in function.args.args) == PARAMETERS:
            pass
        case _:
            message = f"the text must be one function, def kernel({', '.join(PARAMETERS)}), and nothing else"
            raise KernelError(message, "signature")
    imports.check_imports(tree, Path("kernel"), frozenset(), set())
    check_form(tree)
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)):
        raise Refused(f"the text of a kernel imports something; it has {', '.join(WORDS)}")
    return import_kernel(text)


def check_form(tree: ast.Module) -> None:
    """Raise `KernelError` for a kernel that takes memory, such as a list, and for one that Numba cannot compile."""
    pairs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign)}  # a, b = x, y
    texts = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # a docstring
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        is_tuple = isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and id(node) not in pairs
        if is_tuple or isinstance(node, MEMORY):
            message = "a kernel takes no memory: it has a variable for each value, and no list, tuple, dict or set of them"
            raise KernelError(f"line {line}: {message}", "memory", line)
        is_odd = isinstance(node, ast.Constant) and not isinstance(node.value, int | float) and id(node) not in texts
        is_odd = is_odd or (isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or bool(node.keywords)))
        is_odd = is_odd or (isinstance(node, ast.FunctionDef) and node is not tree.body[0])
        if is_odd or not isinstance(node, FORM):
            what = repr(node.value) if isinstance(node, ast.Constant) else type(node).__name__
            message = f"a kernel has loops, assignments, arithmetic and calls of {', '.join(WORDS)}, but no {what}"
            raise KernelError(f"line {line}: {message}", "form", line)


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
    KernelError
        The text is no kernel, or the kernel raises an error.
    """
    counts = Counts([Counter() for _ in storages], [Counter() for _ in out_shapes])
    counts.outs = [np.full(prod(of), np.nan) for of in out_shapes]
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
        raise KernelError(f"the kernel ends in {type(error).__name__}: {error}{hint}", type(error).__name__, at) from error
    return counts


def run_kernel(text: object, given: Launch) -> KernelRun:
    """Run the kernel of a text, and return what happened."""
    try:
        counts = launch(text, *given)
    except KernelError as error:
        return failed_run(text, error)
    reads, writes = ([dict(counter) for counter in counters] for counters in (counts.reads, counts.writes))
    return KernelRun(str(text), counts.outs, reads, writes, dict(counts.done))


def failed_run(text: object, error: KernelError) -> KernelRun:
    """Return the run of a kernel that ended in an error."""
    plain = str(text) if isinstance(text, str) else text
    return KernelRun(plain, [], [], [], {}, (error.message, error.kind, error.line))


def run_compiled(text: object, launches: Sequence[Launch]) -> Iterator[KernelRun]:
    """Compile a text once and run it for several launches. They may differ in sizes, but not in numbers of dims or operands.

    Yield the runs, up to the first that fails. Nothing is counted.
    """
    try:
        function = parse_kernel(text)
    except KernelError as error:
        yield failed_run(text, error)
        return
    vars_of: dict[str, object] = function.__globals__
    ufuncs = {name: getattr(np, name) for name in ("exp", "log", "maximum")}
    vars_of.update(ufuncs, lt=compiled_lt(), inf=np.inf, nan=np.nan)
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
            message = f"Python runs the text, but Numba cannot compile it: {message}"
            yield failed_run(text, KernelError(message, "numba", int(at[1]) if at else 0))
            return
        yield KernelRun(str(text), list(outs), [], [], {})


def is_informative(line: str) -> bool:
    """Return whether a line of Numba's message describes the error, not the stage in which it occurred."""
    return bool(line.strip()) and not line.startswith("Failed in")


@cache
def compiled_lt() -> "Dispatcher[Callable[..., float]]":
    """Return lt(x, y) for compiled code."""
    import numba

    lt: Dispatcher[Callable[..., float]] = numba.njit(lambda x, y: 1.0 if x < y else 0.0)
    return lt


def launch_over_rows(graph: Graph, arrays: Sequence[Array]) -> Launch:
    """Return the launch of a graph's kernel on row-major arrays. The first array has the shape of the iteration space."""
    strides = [tuple(0 if n == 1 else s // 8 for n, s in zip(x.shape, x.strides, strict=True)) for x in arrays]
    out_shapes = [graph.nodes[k].shape for k in graph.outputs]
    return Launch(arrays[0].shape, out_shapes, [x.ravel() for x in arrays], strides)
