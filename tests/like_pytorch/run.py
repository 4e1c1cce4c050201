"""Run the lines with minifuse in place of PyTorch, and compare what they return with PyTorch's recorded answers.

A tensor is recorded as its dtype, shape and, unless the line ends in `# shape`, its values; a tuple as a list. The four
outcomes of a line: the same answer, a different answer, an error that says what to write, or any other error.
"""

import ast
import json
import math
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .entries import FOLDER
from .inputs import inputs

LINES = FOLDER / "lines.txt"
ANSWERS = FOLDER / "answers.json"
SAME = FOLDER / "same.txt"
RTOL = 1e-5  # some tens of roundings of float32, and answers are recorded with 9 digits
OUTCOMES = ("same", "differs", "advice", "missing")
ADVICE = re.compile(r"\b(write|use|did you mean|instead)\b", re.IGNORECASE)


class Line(NamedTuple):
    """A line of the table: the documented name that it tries, and the code."""

    name: str
    code: str

    @property
    def is_random(self) -> bool:
        """Return whether only dtype and shape of the answer are compared."""
        return self.code.endswith("# shape")


class Outcome(NamedTuple):
    """The outcome of a line with another library: one of OUTCOMES, and the difference or the error."""

    kind: str
    detail: str = ""


def read_lines() -> list[Line]:
    """Read the table."""
    return [Line(*row.split(": ", 1)) for row in LINES.read_text().splitlines()]


def read_answers() -> dict[str, Any]:
    """Read PyTorch's answers by the name of the line."""
    answers: dict[str, Any] = json.loads(ANSWERS.read_text())["answers"]
    return answers


def recorded_version() -> str:
    """Return the version of the PyTorch that gave the answers."""
    version: str = json.loads(ANSWERS.read_text())["torch"]
    return version


def installed_version() -> str:
    """Return the version of the installed PyTorch, without the name of its build."""
    version: str = import_module("torch").__version__
    return version.partition("+")[0]


def read_same() -> list[str]:
    """Read the names of the lines that have PyTorch's answer."""
    return SAME.read_text().split()


def evaluate(code: str, library: str) -> Any:
    """Run the statements of a line with fresh variables and return the value of its last expression, encoded."""
    torch = import_module(library)
    layers, functional, optim = (import_module(f"{library}.{name}") for name in ("nn", "nn.functional", "optim"))
    *statements, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), f"the last statement of {code!r} is no expression"
    names = inputs(torch, layers, functional, optim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(ast.Module(statements, []), "<line>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<line>", "eval"), names)
    return encode(value, torch)


def encode(value: Any, torch: Any) -> Any:
    """Turn tensors, dtypes, tuples and numbers into what JSON can store."""
    if isinstance(value, torch.Tensor):
        flat = flattened(value.detach().tolist())
        return {"dtype": dtype_name(value.dtype), "shape": [*value.shape], "values": [rounded(x) for x in flat]}
    if isinstance(value, type(torch.float32)):
        return {"dtype": dtype_name(value)}
    if isinstance(value, tuple | list):
        return [encode(part, torch) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return rounded(value)
    raise TypeError(f"expected a tensor, dtype, number, string or a tuple of them, got {type(value).__name__}")


def dtype_name(dtype: object) -> str:
    """Return the name of a dtype, as minifuse prints it."""
    return str(dtype).removeprefix("torch.")


def flattened(nested: Any) -> list[Any]:
    """Return the numbers of nested lists."""
    return [*chain.from_iterable(map(flattened, nested))] if isinstance(nested, list) else [nested]


def rounded(value: Any) -> Any:
    """Round a float to 9 digits, which tell any two numbers of float32 apart."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


def without_values(answer: Any) -> Any:
    """Keep dtypes and shapes of an encoded answer."""
    if isinstance(answer, list):
        return [without_values(part) for part in answer]
    if isinstance(answer, dict):
        return {key: part for key, part in answer.items() if key != "values"}
    return type(answer).__name__


def differences(got: Any, expected: Any) -> Iterator[str]:
    """List how an encoded answer differs from the recorded one."""
    if type(got) is not type(expected):
        yield f"got {shortened(got)}, expected {shortened(expected)}"
    elif isinstance(expected, list):
        if len(got) != len(expected):
            yield f"got {len(got)} values, expected {len(expected)}"
        for part, expected_part in zip(got, expected, strict=False):
            yield from differences(part, expected_part)
    elif isinstance(expected, dict):
        unequal = [key for key in ("dtype", "shape") if got.get(key) != expected.get(key)]
        yield from (f"got {key} {got.get(key)}, expected {expected.get(key)}" for key in unequal)
        if not unequal and "values" in expected:
            yield from different_values(got["values"], expected["values"])
    elif not (math.isclose(got, expected, rel_tol=RTOL) if isinstance(expected, float) else got == expected):
        yield f"got {got!r}, expected {expected!r}"


def different_values(got: list[Any], expected: list[Any]) -> Iterator[str]:
    """Compare numbers within RTOL of each and of the largest, or of 1 if that is less. A NaN equals a NaN."""
    result, exact = np.array(got, float), np.array(expected, float)
    largest = np.abs(exact[np.isfinite(exact)]).max(initial=0)
    wrong = np.flatnonzero(~np.isclose(result, exact, RTOL, RTOL * min(largest, 1), equal_nan=True))
    if len(wrong):
        first = wrong[0]
        yield f"{len(wrong)} of {len(got)} values: at {first} got {got[first]}, expected {expected[first]}"


def shortened(value: Any) -> str:
    """Return the start of a value's text."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def record() -> dict[str, Any]:
    """Ask the installed PyTorch for the answer to each line."""
    lines = [(line, evaluate(line.code, "torch")) for line in read_lines()]
    return {line.name: without_values(answer) if line.is_random else answer for line, answer in lines}


def outcome_of(line: Line, expected: Any) -> Outcome:
    """Run a line with minifuse and compare its answer with the recorded one."""
    try:
        got = evaluate(line.code, "minifuse")
    except Exception as error:
        return Outcome("advice" if ADVICE.search(str(error)) else "missing", f"{type(error).__name__}: {error}")
    found = [*differences(without_values(got) if line.is_random else got, expected)]
    return Outcome("differs", "; ".join(found)) if found else Outcome("same")


def run(backend: str = "python") -> dict[str, Outcome]:
    """Run all lines with minifuse, by default on the backend that compiles nothing."""
    answers = read_answers()
    with import_module("minifuse").use_backend(backend):
        return {line.name: outcome_of(line, answers[line.name]) for line in read_lines()}
