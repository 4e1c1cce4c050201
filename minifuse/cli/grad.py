"""`minifuse grad FILE.py:function`: print the backward pass of a function, and compare it with finite differences.

Prints the content of the page "Autodiff" of the visualizer. The arguments are random float64 numbers between 0.5 and 2,
equal in each run, and the sum of the result is differentiated. The file is imported as a module.
"""

import inspect
import re
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from ..core.errors import MinifuseError
from ..inspect.report import Column, make_table
from ..jit.fuse import Fused
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .explain import find_function, import_file
from .files import RequestError, file_and_name
from .layout import FactRecord, facts_as_dicts, format_sizes, import_views, show_facts
from .output import new_console, print_json, print_report, report_error

MAX_ELEMENTS = 1024  # elements of all arguments; each element needs two calls of the function
MAX_DIMS = 8


@dataclass(frozen=True)
class BackwardPass:
    """A backward pass as plain data."""

    sentence: str
    steps: list[dict[str, Any]]
    """The calls in the order of the backward pass, with the gradients that each sends to its inputs."""
    gradients: dict[str, object]
    """Nested lists by argument name."""
    differences: dict[str, object]
    """The central differences, in the same form."""
    facts: list[FactRecord]
    is_right: bool


def run(what: str, shape: str, json: bool) -> int:
    """Run backward and print; return 1 if a gradient is wrong, 2 if the request is invalid."""
    try:
        with redirect_stdout(sys.stderr) if json else nullcontext():
            result = trace_backward(what, shape)
    except MinifuseError as error:
        return report_error("grad", error)
    if json:
        print_json(vars(result))
    else:
        show(result, new_console())
    return int(not result.is_right)


def trace_backward(what: str, shape: str) -> BackwardPass:
    """Trace the backward pass of a function in a file, for arguments of these shapes.

    Raises
    ------
    MinifuseError
        The function does not exist, does not accept the shapes, or cannot be differentiated.
    """
    path, name = file_and_name(what)
    function = find_function(import_file(path), path, name)
    function = inspect.unwrap(function.function) if isinstance(function, Fused) else function
    shapes = parse_shapes(shape)
    try:
        inspect.signature(function).bind(*shapes)
    except TypeError as error:
        raise RequestError(
            f"{name}{inspect.signature(function)}: {error}; --shape {shape} makes {len(shapes)} arguments"
        ) from None
    autodiff, functions = import_views("autodiff", "functions")
    example = functions.Example(name, function, shapes, "")
    check_output(example)
    return describe_backward(autodiff, autodiff.trace_backward(example, 0))


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """Parse shapes: sizes separated by x, arguments by commas."""
    parts = text.split(",")
    for part in parts:
        if not re.fullmatch(r"\d{1,6}(x\d{1,6})*", part) or part.count("x") >= MAX_DIMS:
            raise RequestError(f"--shape {text}: expected sizes separated by x and arguments by commas, as in 2x3,3")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in parts)
    if (count := sum(map(prod, shapes))) > MAX_ELEMENTS:
        raise RequestError(
            f"--shape {text}: got {count:,} elements, expected at most {MAX_ELEMENTS:,}, since each is varied for the "
            "differences"
        )
    return shapes


def check_output(example: Any) -> None:
    """Raise unless the function returns a tensor that requires a gradient."""
    leaves = [tensor(array, backend="python", requires_grad=True) for array in example.arrays(0, "float64")]
    out = example.function(*leaves)
    if not isinstance(out, Tensor):
        raise RequestError(f"{example.name} returned {type(out).__name__}, expected one tensor")
    if not out.requires_grad:
        raise RequestError(
            f"{example.name} returned a tensor of {out.dtype} that depends on no argument, so there is no gradient"
        )


def describe_backward(autodiff: Any, trace: Any) -> BackwardPass:
    """Convert a traced backward pass to plain data."""
    steps = [
        {
            "call": autodiff.numbered_name(trace, call),
            "sends": [
                {
                    "to": autodiff.numbered_name(trace, k),
                    "shape": list(arrival.value.shape),
                    "sums": [list(dims) for dims in arrival.sums],
                    "is_added": j > 0,
                }
                for k, arrivals in enumerate(trace.arrivals)
                for j, arrival in enumerate(arrivals)
                if arrival.call == call
            ],
        }
        for call in trace.order
    ]
    names = trace.names[: trace.leaves]
    gradients, differences = (
        {name: np.asarray(array).tolist() for name, array in zip(names, arrays, strict=True)}
        for arrays in (trace.gradients, trace.differences)
    )
    sentence = autodiff.sentence(trace).rstrip()
    return BackwardPass(
        sentence, steps, gradients, differences, facts_as_dicts(autodiff.facts(trace)), bool(autodiff.gradients_match(trace))
    )


def show(result: BackwardPass, console: Console) -> None:
    """Print the steps and the facts."""
    console.print(escape(result.sentence) + "\n")
    rows = []
    for step in result.steps:
        for k, gradient in enumerate(step["sends"]):
            notes = [f"summed along {dims}" for dims in gradient["sums"]]
            notes += ["added to the gradient there"] * gradient["is_added"]
            rows.append(("" if k else step["call"], gradient["to"], format_sizes(gradient["shape"]), "; ".join(notes)))
    columns = Column("call", wraps=True), Column("sends to", wraps=True), Column("shape"), Column("notes", wraps=True)
    print_report(make_table(columns, rows), console)
    show_facts(result.facts, console)
    console.print(
        "[green]all gradients match[/]" if result.is_right else "[red]a gradient differs from the finite differences[/]"
    )
