"""What `minifuse trace` can trace, by name: operations, rungs of the matmul ladder, kernels in files. Gives launch plans.

An operation is planned as the cuda backend plans it, over random arrays of the shapes, dtype and layout that were asked for.
"""

import inspect
import re
import runpy
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import simt
from ..backends.cuda.launch_plan import LaunchPlan
from ..backends.cuda.matmul.ladder import LADDER
from ..core.dtypes import as_dtype
from ..core.errors import SimtError
from ..core.operators import TABLE
from ..inspect.dry_run import launches_of
from ..simt.check import script_environment
from ..simt.host import Line, ScriptKernel, ScriptLaunch, stand_in_modules, substitute_modules
from ..testing import Recipe
from .files import RequestError as RequestError
from .files import file_and_name

Shape = tuple[int, ...]
EVERY = slice(None)
FOLDS = (
    *("sum", "prod", "mean", "max", "min", "any", "all", "var", "std", "argmax", "argmin"),
    *("softmax", "log_softmax", "logsumexp"),
)
NEEDS_DIM = ("softmax", "log_softmax")
DEFAULT = (32, 32)
ELEMENTS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
MOST = 1 << 24  # elements of one operand
LAYOUTS = {
    "plain": "row-major and dense",
    "permuted": "dims in reverse order: the transpose of a dense array",
    "sliced": "every second element of the last dim",
    "flipped": "the last dim backwards",
    "expanded": "one entry along the first dim, repeated",
    "shifted": "rows without their first element: no multiples of 16 bytes",
}


@dataclass(frozen=True)
class Request:
    """What is to be traced; texts as the command line has them."""

    what: str
    shapes: Sequence[str] = ()
    dim: int | None = None
    dtype: str | None = None
    layout: str | None = None
    arguments: Sequence[str] = ()  # name=value
    grid: str | None = None
    block: str | None = None
    shared: int | None = None  # bytes of dynamic shared memory

    def refuse(self, options: Sequence[str], why: str) -> None:
        """Raise where one of these options was given."""
        names = {"shapes": "--shape", "arguments": "--arg"}
        for option in options:
            if getattr(self, option) not in (None, (), []):
                raise RequestError(f"{names.get(option, '--' + option)} {why}")


@dataclass(frozen=True)
class Subject:
    """What is traced: a sentence, and its launches in order."""

    title: str
    plans: list[LaunchPlan]


def subject_of(request: Request) -> Subject:
    """Find what was asked for, and plan its launches.

    Raises
    ------
    MinifuseError
        There is no such thing, or the options do not fit it.
    """
    what = request.what
    if not what:
        raise RequestError("what is to be traced? minifuse trace --list names all")
    if ".py:" in what or what.endswith(".py"):
        request.refuse(["dim"], "is for folds, such as sum")
        if request.shapes:
            return of_function(request)
        request.refuse(["dtype", "layout"], "is for operations; give a kernel its arguments with --arg")
        return of_file(request)
    request.refuse(
        ["arguments", "grid", "block", "shared"], f"is for kernels of a file; the library chooses those of {what}"
    )
    if what == "matmul" or what.startswith("matmul:"):
        request.refuse(["dim"], "is for folds, such as sum")
        return of_product(request)
    if what not in names():
        near = ", ".join(get_close_matches(what, list(names()), 3))
        raise RequestError(f"{what!r} is not known{f'; near are {near}' if near else ''}; minifuse trace --list names all")
    return of_operation(request)


def names() -> Iterator[str]:
    """All names but those of files."""
    yield from TABLE
    yield from FOLDS
    yield "matmul"
    yield from (f"matmul:{rung}" for rung in LADDER)


# Operations of the library.


def of_operation(request: Request) -> Subject:
    """An operator or a fold over random arrays."""
    name, dim = request.what, request.dim
    entry = TABLE.get(name)
    if entry is not None:
        request.refuse(["dim"], "is for folds, such as sum")
    function = entry or folding(name, -1 if dim is None and name in NEEDS_DIM else dim)
    count = entry.arity if entry else 1
    shapes = [shape_of(text) for text in request.shapes] or [DEFAULT]
    if len(shapes) not in (1, count):
        takes = "one --shape" if count == 1 else f"one --shape for all {count} operands, or one for each"
        raise RequestError(f"{name} takes {takes}; got {len(shapes)}")
    shapes = shapes * count if len(shapes) == 1 else shapes
    takes_floats, takes_bools = (entry.accepts_floats, entry.accepts_bools) if entry else (name not in ("any", "all"), True)
    dtype = dtype_of(request, "float32" if takes_floats else "bool" if takes_bools else "int64")
    dtypes = ["bool", dtype, dtype] if name == "where" else [dtype] * count
    plans = launches_of(function, *arrays_of(shapes, dtypes, request.layout))
    return Subject(title_of(name, shapes, dtype, request) + (f", dim {dim}" if dim is not None else ""), plans)


def folding(name: str, dim: int | None) -> Callable[[Any], Any]:
    """A fold along a dim, or along all."""

    def fold(x: Any) -> Any:
        return getattr(x, name)(dim)

    fold.__name__ = name
    return fold


def of_product(request: Request) -> Subject:
    """A matrix product: as the library does it, or by one kernel of the ladder."""
    _, _, rung = request.what.partition(":")
    a, b = factors_of(request)
    dtype = dtype_of(request, "float32")
    arrays = arrays_of([a, b], [dtype] * 2, request.layout)
    title = title_of(request.what, [a, b], dtype, request)
    if request.what == "matmul":
        return Subject(title, launches_of(lambda x, y: x @ y, *arrays))
    if rung not in LADDER:
        raise RequestError(f"the ladder of matmul has no rung {rung!r}; from slow to fast there are {', '.join(LADDER)}")
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise RequestError(f"{request.what} takes two matrices, (M, K) and (K, N); got {a} and {b}")
    if dtype != "float32" or (request.layout or "plain") != "plain":
        raise RequestError(f"{request.what} takes dense float32 matrices; got {dtype}, {request.layout or 'plain'}")
    return Subject(title, [LADDER[rung].plan(np.zeros((a[0], b[1]), np.float32), *arrays)])


def factors_of(request: Request) -> tuple[Shape, Shape]:
    """The shapes of both factors, from M,N,K or from a shape each."""
    shapes = [shape_of(text) for text in request.shapes] or [(32, 32, 32)]
    if len(shapes) == 2:
        return shapes[0], shapes[1]
    if len(shapes) > 2 or len(shapes[0]) != 3:
        got = " ".join(f"--shape {text}" for text in request.shapes)
        raise RequestError(f"matmul takes --shape M,N,K, or --shape twice, once for each factor; got {got}")
    rows, columns, depth = shapes[0]
    return (rows, depth), (depth, columns)


def title_of(name: str, shapes: Sequence[Shape], dtype: str, request: Request) -> str:
    """What is traced, in words."""
    layout = request.layout or "plain"
    return f"{name} of {dtype} {' and '.join(map(str, shapes))}, {layout}"


def shape_of(text: str) -> Shape:
    """Sizes with commas between."""
    if not re.fullmatch(r"\d+(,\d+)*|", text):
        raise RequestError(f"--shape {text}: expected sizes with commas between, as in --shape 32,32")
    shape = tuple(map(int, text.split(","))) if text else ()
    if prod(shape) > MOST:
        raise RequestError(f"--shape {text}: {prod(shape):,} elements; a trace takes each access down, so ask for fewer")
    return shape


def dtype_of(request: Request, default: str) -> str:
    """The name of the dtype that was asked for."""
    return as_dtype(request.dtype).name if request.dtype else default


def arrays_of(shapes: Sequence[Shape], dtypes: Sequence[str], layout: str | None) -> list[npt.NDArray[Any]]:
    """Random arrays in a layout, the same each time."""
    random = np.random.default_rng(0)
    recipes = [recipe_of(layout or "plain", shape) for shape in shapes]
    return [recipe(fill(recipe.base, dtype, random)) for recipe, dtype in zip(recipes, dtypes, strict=True)]


def recipe_of(layout: str, shape: Shape) -> Recipe:
    """How an array of this shape gets a layout."""
    if layout not in LAYOUTS:
        raise RequestError(f"--layout {layout} does not exist; there are {', '.join(LAYOUTS)}")
    if layout == "plain":
        return Recipe(shape)
    if not shape:
        raise RequestError(f"--layout {layout}: an array of no dims has no layout but plain")
    *rows, last = shape
    others = [EVERY] * len(rows)
    match layout:
        case "permuted":
            return Recipe(shape[::-1], [("permute", tuple(reversed(range(len(shape)))))])
        case "sliced":
            return Recipe((*rows, 2 * last), [("index", (*others, slice(None, None, 2)))])
        case "flipped":
            return Recipe(shape, [("index", (*others, slice(None, None, -1)))])
        case "expanded":
            return Recipe((1, *shape[1:]), [("expand", shape)])
    return Recipe((*rows, last + 1), [("index", (*others, slice(1, None)))])


def fill(shape: Shape, dtype: str, random: np.random.Generator) -> npt.NDArray[Any]:
    """Random elements, away from poles."""
    found = np.dtype(dtype)
    if found.kind == "b":
        return random.random(shape) > 0.5
    if found.kind in "iu":
        return random.integers(1, 10, shape).astype(found)
    return random.uniform(0.25, 2, shape).astype(found)


# Kernels of a file.


def of_file(request: Request) -> Subject:
    """A kernel of a file: a plain function over `minifuse.simt.cuda`, or one of `numba.cuda`."""
    path, name = file_and_name(request.what)
    kernel = kernel_in(path, name)
    if request.grid is None or request.block is None:
        raise RequestError(
            f"{name}: how many blocks and threads? Give both, as in --grid 4 --block 128, or --grid 2,2 --block 8,8"
        )
    grid, block = sizes_of("--grid", request.grid), sizes_of("--block", request.block)
    arguments = arguments_of(kernel, name, request.arguments)
    return Subject(f"{name} of {path}", [LaunchPlan(kernel, grid, block, arguments, request.shared or 0)])


def of_function(request: Request) -> Subject:
    """A function of tensors in a file, over random arrays: the launches that the library makes of it."""
    request.refuse(["arguments", "grid", "block", "shared"], "is for kernels; a function of tensors takes --shape")
    path, name = file_and_name(request.what)
    function = kernel_in(path, name)
    if isinstance(function, ScriptKernel):
        request.refuse(["shapes"], "is for operations; give a kernel its arguments with --arg")
    count = len(inspect.signature(function).parameters)
    shapes = [shape_of(text) for text in request.shapes]
    if len(shapes) not in (1, count):
        raise RequestError(f"{name} takes one --shape for all {count} arguments, or one for each; got {len(shapes)}")
    shapes = shapes * count if len(shapes) == 1 else shapes
    dtype = dtype_of(request, "float32")
    plans = launches_of(function, *arrays_of(shapes, [dtype] * count, request.layout))
    return Subject(title_of(f"{name}() of {path.name},", shapes, dtype, request), plans)


def kernel_in(path: Path, name: str) -> Callable[..., Any]:
    """The function of this name in a file. The file runs, with the interpreter in the place of numba.cuda."""
    path = path.resolve()
    with script_environment(path, []), substitute_modules(stand_in_modules(Runner()), path.parent), told(path):
        found = runpy.run_path(str(path), run_name=path.stem)
    kernels = {key: value for key, value in found.items() if is_kernel(value, path)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        wrong = f"no kernel {name!r}; it has {known}" if name else f"these kernels: {known}; name one, as in FILE.py:kernel"
        raise RequestError(f"{path.name} has {wrong}")
    kernel: Callable[..., Any] = kernels[name]
    return kernel


class Runner:
    """Runs what a file launches when it is read: that is not what is traced."""

    def launch(self, launch: ScriptLaunch) -> None:
        """Run it."""
        simt.run(launch.kernel.py_func, launch.grid, launch.block, *launch.arguments, shared=launch.shared)

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Nothing is judged."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say what ended the file, and at which of its lines."""
    try:
        yield
    except SyntaxError as error:
        raise RequestError(f"{path.name} is no Python: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"{path.name}:{lines[-1]}" if lines else path.name
        raise RequestError(
            f"{place} ends with {type(error).__name__}: {error}; a kernel that is traced needs a file that can be imported"
        ) from error


def is_kernel(value: Any, path: Path) -> bool:
    """Whether a value of a module can be launched, and was written there."""
    if isinstance(value, ScriptKernel):
        return not value.is_device
    return inspect.isfunction(value) and value.__code__.co_filename == str(path)


def sizes_of(option: str, text: str) -> Shape:
    """One to three positive sizes."""
    if not re.fullmatch(r"0*[1-9]\d*(,0*[1-9]\d*){0,2}", text):
        raise RequestError(f"{option} {text}: expected one to three positive sizes with commas between, as in {option} 4,2")
    return tuple(map(int, text.split(",")))


def arguments_of(kernel: Any, name: str, given: Sequence[str]) -> tuple[Any, ...]:
    """The arguments of a kernel, in its order."""
    random, values = np.random.default_rng(0), dict[str, Any]()
    parameters = inspect.signature(kernel).parameters
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise RequestError(f"--arg {text}: expected name=shape:dtype or name=number, as in x=32,32:float32 or n=32")
        if key not in parameters:
            raise RequestError(f"--arg {text}: {name} has no parameter {key!r}; it has {', '.join(parameters)}")
        values[key] = value_of(text, value, random)
    missing = [key for key, p in parameters.items() if key not in values and p.default is p.empty]
    if missing:
        raise RequestError(
            f"{name}({', '.join(parameters)}) needs --arg for {', '.join(missing)}: "
            f"an array as in --arg {missing[0]}=32,32:float32, a number as in --arg {missing[0]}=32"
        )
    return tuple(values.get(key, p.default) for key, p in parameters.items())


def value_of(text: str, value: str, random: np.random.Generator) -> Any:
    """A random array of shape:dtype, or a number."""
    shape, colon, dtype = value.partition(":")
    if colon and dtype in ELEMENTS:
        return fill(shape_of(shape), dtype, random)
    if colon:
        raise RequestError(f"--arg {text}: {dtype!r} is no dtype here; there are {', '.join(ELEMENTS)}")
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    raise RequestError(f"--arg {text}: expected shape:dtype or a number, as in 32,32:float32, 32 or 0.5")
