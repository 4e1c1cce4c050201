"""`minifuse explain FILE.py:function`: what fusion makes of a function of the user's, for arguments like those it will get.

The file is imported as a module, so what stands under `if __name__ == "__main__":` does not run; nor does the function: it
is captured. A function that is not fused is explained as `mf.fuse` would fuse it.
"""

import inspect
import json as json_
import re
import runpy
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..backends.registry import use_backend
from ..core.dtypes import as_dtype
from ..core.errors import MinifuseError
from ..core.pytree import tree_map
from ..inspect.explain import Explanation
from ..inspect.explain_text import format_headline, format_sections, node_cells, table_of_totals
from ..jit.fuse import Fused, fuse
from ..simt.check import script_environment
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .files import file_and_name
from .subjects import RequestError, fill

WIDTH = 80  # columns
MOST = 1 << 30  # bytes of one argument
SHAPES = "--shape 1024x1024,1024 makes two: sizes with x between, arguments with commas"


@dataclass(frozen=True)
class Request:
    """What is to be explained; texts as the command line has them."""

    what: str
    shape: str | None = None
    dtype: str | None = None
    backend: str | None = None
    grad: bool = False  # whether gradients are wanted of all tensors of floats


def run(request: Request, source: bool, json: bool, steps: bool = False) -> int:
    """Explain, print, and give the exit status: 2 where the request makes no sense. JSON has all steps anyway."""
    try:
        chosen = use_backend(request.backend) if request.backend else nullcontext()
        with redirect_stdout(sys.stderr) if json else nullcontext(), chosen:
            fused, inputs = subject_of(request)
            found = fused.explain(*inputs)
            text = fused.source(*inputs) if source else ""
    except MinifuseError as error:
        sys.stderr.write(f"minifuse explain: {error}\n")
        return 2
    if json:
        facts = found.as_dict() | ({"source": text} if source else {})
        sys.stdout.write(json_.dumps(facts, indent=2) + "\n")
    else:
        show(found, text, steps, Console(width=min(WIDTH, Console().width), highlight=False))
    return 0


def show(found: Explanation, source: str, steps: bool, console: Console) -> None:
    """Print the totals, the graph, how it became kernels if that is asked for, the kernels, and what was not fused."""
    console.print(Text(format_headline(found), style="bold"))
    totals = Table(box=None, pad_edge=False)
    for k, title in enumerate(table_of_totals(found)[0]):
        totals.add_column(title, justify="right" if k else "left")
    for row in table_of_totals(found)[1:]:
        totals.add_row(*row)
    console.print()
    console.print(totals)
    console.print(Text("\ngraph", style="bold"))
    nodes = Table(box=None, pad_edge=False, show_header=False)
    for style in ("cyan", "", "dim", "dim"):
        nodes.add_column(style=style, overflow="fold")
    for cells in node_cells(found):
        nodes.add_row(*map(Text, cells))
    console.print(nodes)
    for title, lines in format_sections(found, console.width, steps).items():
        console.print(Text(f"\n{title}", style="bold"))
        console.print(Text("\n".join(lines)), soft_wrap=True)
    if source:
        console.print(Text("\nsource", style="bold"))
        console.print(Text(source), soft_wrap=True)


# What is asked for.


def subject_of(request: Request) -> tuple[Fused, list[Any]]:
    """The function, fused, and arguments for it.

    Raises
    ------
    RequestError
        There is no such file or function, or nothing says what its arguments are.
    """
    path, name = file_and_name(request.what)
    values = imported(path)
    function = function_in(values, path, name)
    inputs = tree_map(arguments_of(function, name, values, request), lambda x: placed(x, request))
    return (function if isinstance(function, Fused) else fuse(function)), list(inputs)


def imported(path: Path) -> dict[str, Any]:
    """What a file defines, imported as a module."""
    path = path.resolve()
    try:
        with script_environment(path, []):
            return runpy.run_path(str(path), run_name=path.stem)
    except SyntaxError as error:
        raise RequestError(f"{path.name} is no Python: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"{path.name}:{lines[-1]}" if lines else path.name
        advice = "the file is imported, so what runs a program belongs under if __name__ == '__main__'"
        raise RequestError(f"{place} ends with {type(error).__name__}: {error}; {advice}") from error


def function_in(values: dict[str, Any], path: Path, name: str) -> Any:
    """The function of this name, or a method of an object, as in `model.forward`."""
    first, *rest = name.split(".")
    found = values.get(first)
    for part in rest:
        found = getattr(found, part, None)
    if callable(found) and not inspect.isclass(found):
        return found
    known = [key for key, x in values.items() if is_function_of(x, path)]
    near = get_close_matches(name, known, 1)
    if not name:
        raise RequestError(f"{path.name} has {', '.join(known) or 'no functions'}; name one, as in {path.name}:function")
    hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known) or 'none'}"
    raise RequestError(f"{path.name} has no function {name!r}{hint}")


def is_function_of(x: Any, path: Path) -> bool:
    """Whether a value is a function that was written in a file."""
    function = inspect.unwrap(x.function) if isinstance(x, Fused) else x
    return inspect.isfunction(function) and function.__code__.co_filename == str(path.resolve())


def arguments_of(function: Any, name: str, values: dict[str, Any], request: Request) -> Sequence[Any]:
    """Arguments from --shape, or from EXAMPLE in the file, which is a tuple, or a dict of one for each function."""
    if request.shape is not None:
        random, dtypes = np.random.default_rng(0), (request.dtype or "float32").split(",")
        texts = request.shape.split(",")
        if len(dtypes) not in (1, len(texts)):
            raise RequestError(
                f"--dtype {request.dtype}: {len(dtypes)} for {len(texts)} arguments; give one, or one for each"
            )
        kinds = dtypes * len(texts) if len(dtypes) == 1 else dtypes
        inputs: Sequence[Any] = [value_of(text, kind, random) for text, kind in zip(texts, kinds, strict=True)]
    else:
        if request.dtype is not None:
            raise RequestError("--dtype is for arguments that --shape makes")
        example = values.get("EXAMPLE", ())
        inputs = example.get(name, ()) if isinstance(example, dict) else example
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    try:
        inspect.signature(function).bind(*inputs)
    except TypeError as error:
        given = (
            f"from --shape {request.shape}" if request.shape is not None else "from EXAMPLE" if inputs else "from nowhere"
        )
        raise RequestError(
            f"{name}{inspect.signature(function)}: {error}; its arguments were taken {given}. {SHAPES}; or write "
            "EXAMPLE = (mf.ones(1024, 1024), 2.0) in the file"
        ) from None
    return inputs


def value_of(text: str, dtype: str, random: np.random.Generator) -> Any:
    """A tensor of a shape such as 1024x33, or a number such as 0.5 or 3e-4."""
    if re.fullmatch(r"\d+(x\d+)*", text):
        shape = tuple(map(int, text.split("x")))
        if prod(shape) * as_dtype(dtype).itemsize > MOST:
            raise RequestError(f"--shape {text}: {prod(shape):,} elements, more than an example needs; ask for fewer")
        return tensor(fill(shape, as_dtype(dtype).name, random))
    with suppress(ValueError):
        return float(text)
    raise RequestError(f"--shape {text}: expected sizes with x between, or a number with a point; {SHAPES}")


def placed(x: Any, request: Request) -> Any:
    """An argument, with the gradient that was asked for."""
    return x.detach().requires_grad_() if request.grad and isinstance(x, Tensor) and x.dtype.is_float else x
