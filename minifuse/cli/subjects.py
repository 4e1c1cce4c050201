"""Plan the launches of `minifuse trace`: those of an operation, a kernel of the matmul ladder, or a kernel in a file.

An operation is planned as on the cuda backend, with random arrays of the given shapes, dtype and layout.
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

import numpy as np

from .. import simt
from ..backends.cuda.launch_plan import KernelArgument, LaunchPlan
from ..backends.cuda.matmul.ladder import LADDER
from ..core.dtypes import as_dtype
from ..core.errors import SimtError
from ..core.operators import TABLE
from ..inspect.dry_run import launches_of
from ..jit.fuse import Fused
from ..runtime.script_environment import script_environment
from ..simt.host import Line, ScriptKernel, ScriptLaunch, stand_in_modules, substitute_modules
from ..tensors.tensor import Tensor
from ..testing import Recipe
from .files import RequestError as RequestError
from .files import file_and_name, refuse_cuda_cpp
from .random_inputs import random_elements

Shape = tuple[int, ...]
FULL_SLICE = slice(None)
REDUCTIONS = (
    *("sum", "prod", "mean", "max", "min", "any", "all", "var", "std", "argmax", "argmin"),
    *("softmax", "log_softmax", "logsumexp"),
)
NAMES_WITH_DIM = ("softmax", "log_softmax")
DEFAULT_SHAPE = (32, 32)
ELEMENT_TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
MAX_ELEMENTS = 1 << 24  # elements of one operand
LAYOUTS = {
    "plain": "row-major and dense",
    "permuted": "reversed dims: the transpose of a contiguous array",
    "sliced": "every second element of the last dim",
    "flipped": "the last dim reversed",
    "expanded": "one entry along the first dim, repeated",
    "shifted": "rows without their first element: not aligned to 16 bytes",
}


@dataclass(frozen=True)
class TraceRequest:
    """The options, as given on the command line."""

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
        """Raise RequestError if one of these options was given."""
        names = {"shapes": "--shape", "arguments": "--arg"}
        for option in options:
            if getattr(self, option) not in (None, (), []):
                raise RequestError(f"{names.get(option, '--' + option)} {why}")


@dataclass(frozen=True)
class TraceSubject:
    """A title, and the launches to trace in order, or their traces if they ran before."""

    title: str
    plans: list[LaunchPlan]
    traces: Sequence[simt.Trace] = ()


def plan_subject(request: TraceRequest) -> TraceSubject:
    """Find the subject, and plan its launches.

    Raises
    ------
    MinifuseError
        The subject does not exist, or the options do not fit it.
    """
    what = request.what
    if not what:
        raise RequestError("got nothing to trace; minifuse trace --list prints all subjects")
    refuse_cuda_cpp(what)
    if ".py:" in what or what.endswith(".py"):
        request.refuse(["dim"], "only applies to reductions, such as sum")
        if request.shapes:
            return plan_function(request)
        request.refuse(["dtype", "layout"], "only applies to operations; write --arg for the arguments of a kernel")
        return plan_kernel(request)
    request.refuse(["arguments", "grid", "block", "shared"], f"only applies to kernels in a file, not to {what}")
    if what == "matmul" or what.startswith("matmul:"):
        request.refuse(["dim"], "only applies to reductions, such as sum")
        return plan_matmul(request)
    if what not in traceable_names():
        similar = ", ".join(get_close_matches(what, list(traceable_names()), 3))
        hint = f"; did you mean {similar}?" if similar else ""
        raise RequestError(f"unknown subject {what!r}{hint}; minifuse trace --list prints all")
    return plan_operation(request)


def traceable_names() -> Iterator[str]:
    """Iterate over all names except those of files."""
    yield from TABLE
    yield from REDUCTIONS
    yield "matmul"
    yield from (f"matmul:{rung}" for rung in LADDER)


# Operations of the library.


def plan_operation(request: TraceRequest) -> TraceSubject:
    """Plan an operator or a reduction of random arrays."""
    name, dim = request.what, request.dim
    entry = TABLE.get(name)
    if entry is not None:
        request.refuse(["dim"], "only applies to reductions, such as sum")
    function = entry or reduction_named(name, -1 if dim is None and name in NAMES_WITH_DIM else dim)
    count = entry.arity if entry else 1
    shapes = [parse_shape(text) for text in request.shapes] or [DEFAULT_SHAPE]
    if len(shapes) not in (1, count):
        expected_shapes = "one --shape" if count == 1 else f"one --shape for all {count} operands, or one for each"
        raise RequestError(f"{name}: expected {expected_shapes}; got {len(shapes)}")
    shapes = shapes * count if len(shapes) == 1 else shapes
    accepts_floats, accepts_bools = (
        (entry.accepts_floats, entry.accepts_bools) if entry else (name not in ("any", "all"), True)
    )
    dtype = requested_dtype(request, "float32" if accepts_floats else "bool" if accepts_bools else "int64")
    dtypes = ["bool", dtype, dtype] if name == "where" else [dtype] * count
    plans = launches_of(function, *random_arrays(shapes, dtypes, request.layout))
    return TraceSubject(format_title(name, shapes, dtype, request) + (f", dim {dim}" if dim is not None else ""), plans)


def reduction_named(name: str, dim: int | None) -> Callable[[Tensor], Tensor]:
    """Return a function that reduces one dim, or all."""

    def reduce(x: Tensor) -> Tensor:
        result: Tensor = getattr(x, name)(dim)
        return result

    reduce.__name__ = name
    return reduce


def plan_matmul(request: TraceRequest) -> TraceSubject:
    """Plan a matmul: as the library computes it, or by one kernel of the ladder."""
    _, _, rung = request.what.partition(":")
    a, b = parse_matmul_shapes(request)
    dtype = requested_dtype(request, "float32")
    arrays = random_arrays([a, b], [dtype] * 2, request.layout)
    title = format_title(request.what, [a, b], dtype, request)
    if request.what == "matmul":
        return TraceSubject(title, launches_of(lambda x, y: x @ y, *arrays))
    if rung not in LADDER:
        raise RequestError(f"unknown matmul kernel {rung!r}; from slow to fast there are {', '.join(LADDER)}")
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise RequestError(f"{request.what}: expected two matrices, (M, K) and (K, N); got {a} and {b}")
    if dtype != "float32" or (request.layout or "plain") != "plain":
        raise RequestError(f"{request.what}: expected contiguous float32 matrices; got {dtype}, {request.layout or 'plain'}")
    return TraceSubject(title, [LADDER[rung].plan(np.zeros((a[0], b[1]), np.float32), *arrays)])


def parse_matmul_shapes(request: TraceRequest) -> tuple[Shape, Shape]:
    """Return the shapes of both operands, from M,N,K or one shape for each."""
    shapes = [parse_shape(text) for text in request.shapes] or [(32, 32, 32)]
    if len(shapes) == 2:
        return shapes[0], shapes[1]
    if len(shapes) > 2 or len(shapes[0]) != 3:
        got = " ".join(f"--shape {text}" for text in request.shapes)
        raise RequestError(f"matmul: expected --shape M,N,K, or --shape twice; got {got}")
    rows, columns, depth = shapes[0]
    return (rows, depth), (depth, columns)


def format_title(name: str, shapes: Sequence[Shape], dtype: str, request: TraceRequest) -> str:
    """Format the title of a subject."""
    layout = request.layout or "plain"
    return f"{name} of {dtype} {' and '.join(map(str, shapes))}, {layout}"


def parse_shape(text: str, option: str = "--shape ") -> Shape:
    """Parse sizes separated by commas or by x. An error names the option that contains the text."""
    if not re.fullmatch(r"\d+([,x]\d+)*|", text):
        raise RequestError(f"{option}{text}: expected sizes separated by commas or x, as in {option}32,32")
    shape = tuple(map(int, re.split("[,x]", text))) if text else ()
    if prod(shape) > MAX_ELEMENTS:
        raise RequestError(
            f"{option}{text}: got {prod(shape):,} elements, expected at most {MAX_ELEMENTS:,}: a trace stores each access"
        )
    return shape


def requested_dtype(request: TraceRequest, default: str) -> str:
    """Return the name of the requested dtype."""
    return as_dtype(request.dtype).name if request.dtype else default


def random_arrays(shapes: Sequence[Shape], dtypes: Sequence[str], layout: str | None) -> list[np.ndarray]:
    """Create random arrays in a layout, equal in each run."""
    random = np.random.default_rng(0)
    recipes = [layout_recipe(layout or "plain", shape) for shape in shapes]
    return [recipe(random_elements(recipe.base, dtype, random)) for recipe, dtype in zip(recipes, dtypes, strict=True)]


def layout_recipe(layout: str, shape: Shape) -> Recipe:
    """Return the recipe of an array of this shape in a layout: the shape of its base, and views."""
    if layout not in LAYOUTS:
        raise RequestError(f"--layout {layout}: expected one of {', '.join(LAYOUTS)}")
    if layout == "plain":
        return Recipe(shape)
    if not shape:
        raise RequestError(f"--layout {layout}: a 0-d array only has the layout plain")
    *rows, last = shape
    full_slices = [FULL_SLICE] * len(rows)
    match layout:
        case "permuted":
            return Recipe(shape[::-1], [("permute", tuple(reversed(range(len(shape)))))])
        case "sliced":
            return Recipe((*rows, 2 * last), [("index", (*full_slices, slice(None, None, 2)))])
        case "flipped":
            return Recipe(shape, [("index", (*full_slices, slice(None, None, -1)))])
        case "expanded":
            return Recipe((1, *shape[1:]), [("expand", shape)])
    return Recipe((*rows, last + 1), [("index", (*full_slices, slice(1, None)))])


# Kernels and functions in a file.


def plan_kernel(request: TraceRequest) -> TraceSubject:
    """Plan a kernel in a file: a plain function that uses `minifuse.simt.cuda`, or one of `numba.cuda`."""
    path, name = file_and_name(request.what)
    kernel = load_kernel(path, name)
    if isinstance(kernel, Fused):
        raise RequestError(f"{name}: expected --shape for the arguments of a function of tensors, as in --shape 64,64")
    if request.grid is None or request.block is None:
        raise RequestError(f"{name}: expected --grid and --block, as in --grid 4 --block 128, or --grid 2,2 --block 8,8")
    grid, block = parse_sizes("--grid", request.grid), parse_sizes("--block", request.block)
    arguments = parse_kernel_arguments(kernel, name, request.arguments)
    return TraceSubject(f"{name} of {path}", [LaunchPlan(kernel, grid, block, arguments, request.shared or 0)])


def plan_function(request: TraceRequest) -> TraceSubject:
    """Plan the launches of a function of tensors in a file, called with random arrays."""
    request.refuse(
        ["arguments", "grid", "block", "shared"], "only applies to kernels; write --shape for a function of tensors"
    )
    path, name = file_and_name(request.what)
    function = load_kernel(path, name)
    if isinstance(function, ScriptKernel):
        request.refuse(["shapes"], "only applies to operations; write --arg for the arguments of a kernel")
    function = function.function if isinstance(function, Fused) else function  # launches_of fuses it
    count = len(inspect.signature(function).parameters)
    shapes = [parse_shape(text) for text in request.shapes]
    if len(shapes) not in (1, count):
        raise RequestError(f"{name}: expected one --shape for all {count} arguments, or one for each; got {len(shapes)}")
    shapes = shapes * count if len(shapes) == 1 else shapes
    dtype = requested_dtype(request, "float32")
    plans = launches_of(function, *random_arrays(shapes, [dtype] * count, request.layout))
    return TraceSubject(format_title(f"{name}() of {path.name},", shapes, dtype, request), plans)


def load_kernel(path: Path, name: str) -> Callable[..., None]:
    """Load a function from a file. The file runs, with the interpreter in place of numba.cuda."""
    path = path.resolve()
    with (
        script_environment(path),
        substitute_modules(stand_in_modules(FileRunner()), path.parent),
        translate_errors(path),
    ):
        values = runpy.run_path(str(path), run_name=path.stem)
    kernels = {key: value for key, value in values.items() if is_kernel(value, path)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        problem = f"no kernel or function {name!r}; it has {known}"
        problem = problem if name else f"these kernels and functions: {known}; choose one: FILE.py:kernel"
        raise RequestError(f"{path.name} has {problem}")
    kernel: Callable[..., None] = kernels[name]
    return kernel


class FileRunner:
    """Runs the kernels that a file launches when it is imported. They are not traced."""

    def launch(self, launch: ScriptLaunch) -> None:
        """Run a launch. A faulty one is no obstacle: its kernel may be what is to be traced."""
        with suppress(SimtError):
            simt.run(launch.kernel.py_func, launch.grid, launch.block, *launch.arguments, shared=launch.shared)

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Ignore a hazard."""


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Convert an error of the file to a RequestError with its line."""
    try:
        yield
    except SyntaxError as error:
        raise RequestError(f"{path.name} is not valid Python: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        location = f"{path.name}:{lines[-1]}" if lines else path.name
        raise RequestError(
            f"importing {location} raised {type(error).__name__}: {error}; correct the file so that it can be imported"
        ) from error


def is_kernel(value: object, path: Path) -> bool:
    """Return True if a value is a kernel, or a function of tensors, that was defined in this file."""
    if isinstance(value, ScriptKernel):
        return not value.is_device
    function = inspect.unwrap(value.function) if isinstance(value, Fused) else value
    return inspect.isfunction(function) and function.__code__.co_filename == str(path)


def parse_sizes(option: str, text: str) -> Shape:
    """Parse one to three positive sizes."""
    if not re.fullmatch(r"0*[1-9]\d*([,x]0*[1-9]\d*){0,2}", text):
        raise RequestError(
            f"{option} {text}: expected one to three positive sizes separated by commas or x, as in {option} 4,2"
        )
    return tuple(map(int, re.split("[,x]", text)))


def parse_kernel_arguments(kernel: Callable[..., None], name: str, texts: Sequence[str]) -> tuple[KernelArgument, ...]:
    """Parse the arguments of a kernel, in the order of its parameters."""
    random, values = np.random.default_rng(0), dict[str, KernelArgument]()
    parameters = inspect.signature(kernel).parameters
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise RequestError(f"--arg {text}: expected name=shape:dtype or name=number, as in x=32,32:float32 or n=32")
        if key not in parameters:
            raise RequestError(f"--arg {text}: {name} has no parameter {key!r}; it has {', '.join(parameters)}")
        values[key] = parse_argument(text, value, random)
    missing = [key for key, p in parameters.items() if key not in values and p.default is p.empty]
    if missing:
        raise RequestError(
            f"{name}({', '.join(parameters)}) needs --arg for {', '.join(missing)}: "
            f"an array as in --arg {missing[0]}=32,32:float32, a number as in --arg {missing[0]}=32"
        )
    return tuple(values.get(key, p.default) for key, p in parameters.items())


def parse_argument(text: str, value: str, random: np.random.Generator) -> KernelArgument:
    """Parse shape:dtype to a random array, or a number."""
    shape, colon, dtype = value.partition(":")
    if colon and dtype in ELEMENT_TYPES:
        return random_elements(parse_shape(shape, f"--arg {text.partition('=')[0]}="), dtype, random)
    if colon:
        raise RequestError(f"--arg {text}: unknown dtype {dtype!r}, expected one of {', '.join(ELEMENT_TYPES)}")
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    raise RequestError(f"--arg {text}: expected shape:dtype or a number, as in 32,32:float32, 32 or 0.5")
