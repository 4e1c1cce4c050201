"""`minifuse explain FILE.py:function`: explain how a function of the user is fused, for example arguments.

The file is imported as a module, so code under `if __name__ == "__main__":` does not run. The function is traced, not run.
A function without `@mf.fuse` is fused first.
"""

import inspect
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from ..backends.registry import use_backend
from ..core.dtypes import as_dtype
from ..core.errors import MinifuseError
from ..core.pytree import tree_map
from ..jit.fuse import Fused, fuse
from ..runtime.script_environment import script_environment
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .files import RequestError, file_and_name
from .output import new_console, print_json, print_report, report_error
from .random_inputs import random_elements

MAX_BYTES = 1 << 30  # bytes of one argument
SHAPE_ADVICE = "write --shape 1024x1024,1024 for two arguments: sizes separated by x, arguments by commas"


@dataclass(frozen=True)
class ExplainRequest:
    """The options, as given on the command line."""

    what: str
    shape: str | None = None
    dtype: str | None = None
    backend: str | None = None
    grad: bool = False  # explain the gradients of all float tensors, too


def run(request: ExplainRequest, source: bool, json: bool, steps: bool = False, passes: bool = False) -> int:
    """Explain and print; return 2 if the request is invalid. JSON always contains all steps and passes."""
    try:
        backend_context = use_backend(request.backend) if request.backend else nullcontext()
        with redirect_stdout(sys.stderr) if json else nullcontext(), backend_context:
            fused, inputs = load_function(request)
            explanation = fused.explain(*inputs, passes=passes)
            text = fused.source(*inputs) if source else ""
    except MinifuseError as error:
        return report_error("explain", error)
    if json:
        facts = explanation.as_dict() | ({"source": text} if source else {})
        print_json(facts)
    else:
        console = new_console()
        print_report(explanation.report(steps), console)
        if source:
            console.print(Text("\nsource", style="bold"))
            console.print(Text(text), soft_wrap=True)
    return 0


# The function and its arguments.


def load_function(request: ExplainRequest) -> tuple[Fused, list[object]]:
    """Return the fused function, and arguments for it.

    Raises
    ------
    RequestError
        The file or function does not exist, or its arguments are unknown.
    """
    path, name = file_and_name(request.what)
    values = import_file(path)
    function = find_function(values, path, name)
    inputs = tree_map(find_arguments(function, name, values, request), lambda x: with_requested_grad(x, request))
    return (function if isinstance(function, Fused) else fuse(function)), list(inputs)


def import_file(path: Path) -> dict[str, Any]:
    """Import a file as a module, and return its globals."""
    path = path.resolve()
    try:
        with script_environment(path):
            return runpy.run_path(str(path), run_name=path.stem)
    except SyntaxError as error:
        raise RequestError(f"{path.name} is not valid Python: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        location = f"{path.name}:{lines[-1]}" if lines else path.name
        advice = "the file is imported, so move code that runs the program under if __name__ == '__main__'"
        raise RequestError(f"importing {location} raised {type(error).__name__}: {error}; {advice}") from error


def find_function(values: dict[str, Any], path: Path, name: str) -> Any:
    """Find a function by name, or a method of an object, as in `model.forward`."""
    first, *rest = name.split(".")
    value = values.get(first)
    for part in rest:
        value = getattr(value, part, None)
    if callable(value) and not inspect.isclass(value):
        return value
    function_names = [key for key, x in values.items() if is_function_of(x, path)]
    similar = get_close_matches(name, function_names, 1)
    if not name:
        raise RequestError(
            f"{path.name} has {', '.join(function_names) or 'no functions'}; choose one: {path.name}:function"
        )
    hint = f"; did you mean {similar[0]}?" if similar else f"; it has {', '.join(function_names) or 'none'}"
    raise RequestError(f"{path.name} has no function {name!r}{hint}")


def is_function_of(x: object, path: Path) -> bool:
    """Return True if a value is a function defined in the file."""
    function = inspect.unwrap(x.function) if isinstance(x, Fused) else x
    return inspect.isfunction(function) and function.__code__.co_filename == str(path.resolve())


def find_arguments(
    function: Callable[..., object], name: str, values: dict[str, Any], request: ExplainRequest
) -> Sequence[object]:
    """Create arguments from --shape, or take them from EXAMPLE in the file: a tuple, or a dict with one per function."""
    if request.shape is not None:
        random, dtypes = np.random.default_rng(0), (request.dtype or "float32").split(",")
        texts = request.shape.split(",")
        if len(dtypes) not in (1, len(texts)):
            raise RequestError(
                f"--dtype {request.dtype}: got {len(dtypes)} for {len(texts)} arguments, expected one, or one for each"
            )
        argument_dtypes = dtypes * len(texts) if len(dtypes) == 1 else dtypes
        inputs: Sequence[object] = [
            parse_argument(text, kind, random) for text, kind in zip(texts, argument_dtypes, strict=True)
        ]
    else:
        if request.dtype is not None:
            raise RequestError("--dtype only applies to arguments of --shape")
        example = values.get("EXAMPLE", ())
        inputs = example.get(name, ()) if isinstance(example, dict) else example
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    try:
        inspect.signature(function).bind(*inputs)
    except TypeError as error:
        origin = (
            f"from --shape {request.shape}" if request.shape is not None else "from EXAMPLE" if inputs else "from no source"
        )
        raise RequestError(
            f"{name}{inspect.signature(function)}: {error}; its arguments were taken {origin}; {SHAPE_ADVICE}, or "
            "EXAMPLE = (mf.ones(1024, 1024), 2.0) in the file"
        ) from None
    return inputs


def parse_argument(text: str, dtype: str, random: np.random.Generator) -> Tensor | float:
    """Parse a shape such as 1024x33 to a random tensor, or a number such as 0.5 or 3e-4."""
    if re.fullmatch(r"\d+(x\d+)*", text):
        shape = tuple(map(int, text.split("x")))
        if prod(shape) * as_dtype(dtype).itemsize > MAX_BYTES:
            raise RequestError(f"--shape {text}: got {prod(shape):,} elements, expected at most {MAX_BYTES:,} bytes")
        return tensor(random_elements(shape, as_dtype(dtype).name, random))
    with suppress(ValueError):
        return float(text)
    raise RequestError(f"--shape {text}: expected sizes separated by x, or a number with a point; {SHAPE_ADVICE}")


def with_requested_grad(x: object, request: ExplainRequest) -> object:
    """Return an argument that requires a gradient if gradients were requested."""
    return x.detach().requires_grad_() if request.grad and isinstance(x, Tensor) and x.dtype.is_float else x
