"""`minifuse grad FILE.py:function`: the backward pass of a function, call by call, held against finite differences.

It says what the page "Autodiff" of the visualizer shows, by the same functions: the arguments are float64 numbers between
0.5 and 2 in no order, the same each time, and the sum of the result is differentiated. The file is imported as a module.
"""

import inspect
import json as json_
import re
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..core.errors import MinifuseError
from ..jit.fuse import Fused
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .explain import function_in, imported
from .files import file_and_name
from .layout import WIDTH, show_facts, told, views_of
from .subjects import RequestError

MOST = 1024  # elements of all arguments: each is moved twice for the differences
MOST_DIMS = 8


@dataclass(frozen=True)
class Found:
    """A backward pass."""

    sentence: str
    steps: list[dict[str, Any]]
    """The calls in the order in which they are asked: what each sends to whom."""
    gradients: dict[str, Any]
    """By the name of the argument; nested lists."""
    differences: dict[str, Any]
    """The same by central differences."""
    facts: list[dict[str, Any]]
    is_right: bool


def run(what: str, shape: str, json: bool) -> int:
    """Walk backward and print; the exit status is 1 where a gradient is wrong, 2 where the request makes no sense."""
    try:
        with redirect_stdout(sys.stderr) if json else nullcontext():
            found = walk(what, shape)
    except MinifuseError as error:
        sys.stderr.write(f"minifuse grad: {error}\n")
        return 2
    if json:
        sys.stdout.write(json_.dumps(vars(found), indent=2) + "\n")
    else:
        show(found, Console(width=min(WIDTH, Console().width), highlight=False))
    return int(not found.is_right)


def walk(what: str, shape: str) -> Found:
    """The backward pass of a function in a file, for arguments of these shapes.

    Raises
    ------
    MinifuseError
        There is no such function, the shapes do not fit it, or it cannot be differentiated.
    """
    path, name = file_and_name(what)
    function = function_in(imported(path), path, name)
    function = inspect.unwrap(function.function) if isinstance(function, Fused) else function
    shapes = shapes_of(shape)
    try:
        inspect.signature(function).bind(*shapes)
    except TypeError as error:
        raise RequestError(
            f"{name}{inspect.signature(function)}: {error}; --shape {shape} makes {len(shapes)} arguments"
        ) from None
    autodiff, functions = views_of("autodiff", "functions")
    example = functions.Example(name, function, shapes, "")
    check(example)
    return found_of(autodiff, autodiff.walked(example, 0))


def shapes_of(text: str) -> tuple[tuple[int, ...], ...]:
    """Shapes with x between sizes and commas between arguments."""
    parts = text.split(",")
    for part in parts:
        if not re.fullmatch(r"\d{1,6}(x\d{1,6})*", part) or part.count("x") >= MOST_DIMS:
            raise RequestError(f"--shape {text}: expected sizes with x between and arguments with commas, as in 2x3,3")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in parts)
    if (count := sum(map(prod, shapes))) > MOST:
        raise RequestError(
            f"--shape {text}: {count:,} elements, of which each is moved for the differences; at most {MOST:,}"
        )
    return shapes


def check(example: Any) -> None:
    """Raise unless the function gives a tensor that has a gradient."""
    leaves = [tensor(array, backend="python", requires_grad=True) for array in example.arrays(0, "float64")]
    out = example.function(*leaves)
    if not isinstance(out, Tensor):
        raise RequestError(f"{example.name} gives a {type(out).__name__}; expected one tensor")
    if not out.requires_grad:
        raise RequestError(f"{example.name} gives {out.dtype} that depends on no argument, so nothing has a gradient")


def found_of(autodiff: Any, seen: Any) -> Found:
    """What was walked, as plain data."""
    steps = [
        {
            "call": autodiff.titled(seen, here),
            "sends": [
                {
                    "to": autodiff.titled(seen, k),
                    "shape": list(arrival.value.shape),
                    "sums": [list(dims) for dims in arrival.sums],
                    "is_added": j > 0,
                }
                for k, arrivals in enumerate(seen.arrivals)
                for j, arrival in enumerate(arrivals)
                if arrival.call == here
            ],
        }
        for here in seen.order
    ]
    names = seen.names[: seen.leaves]
    gradients, differences = (
        {name: np.asarray(array).tolist() for name, array in zip(names, arrays, strict=True)}
        for arrays in (seen.gradients, seen.differences)
    )
    sentence = autodiff.sentence(seen).rstrip()
    return Found(sentence, steps, gradients, differences, told(autodiff.facts(seen)), bool(autodiff.is_right(seen)))


def show(found: Found, console: Console) -> None:
    """Print the steps, and the facts."""
    console.print(escape(found.sentence) + "\n")
    steps = Table("asked", "sends to", "shape", "on the way", box=None, pad_edge=False)
    for step in found.steps:
        for k, sent in enumerate(step["sends"]):
            notes = [f"summed along {dims}" for dims in sent["sums"]] + ["added to what is there"] * sent["is_added"]
            shape = f"({', '.join(map(str, sent['shape']))})"
            steps.add_row(escape(step["call"]) if not k else "", escape(sent["to"]), shape, escape("; ".join(notes)))
    console.print(steps)
    show_facts(found.facts, console)
    console.print("[green]gradients are right[/]" if found.is_right else "[red]a gradient is not what differences say[/]")
