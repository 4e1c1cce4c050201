"""The element types that functions take and return, measured: the example of a function runs with operands of each type.

Only the first call in the example is repeated. It runs on the python backend, which compiles nothing.
"""

import contextlib
import doctest
import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

import minifuse as mf
from docs.site.examples import examples, has_own
from docs.site.public_names import Entry, docstring, public_module
from minifuse.core.dtypes import DType

TYPES = (mf.bool, mf.int64, mf.float32, mf.float64)
# Pages of functions of tensors. On the others, names make tensors, or read, send and store them.
TOPICS = (
    *("elementwise", "special", "reductions", "joining", "shaping", "indexing", "ordering", "products", "linalg", "fft"),
    *("convolutions", "pooling", "activations", "normalization", "sequences", "losses"),
)
ARROW = "\N{RIGHTWARDS ARROW}"
ERRORS = (mf.MinifuseError, TypeError, ValueError)  # that a function may raise for a type that it does not take

Function = Callable[..., Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class CallFoundError(Exception):
    """Ends an example at the first call of its function."""


def element_types(entry: Entry, topic: str) -> str:
    """Return a line about the types of operands and results as Markdown; nothing for what is no function of tensors."""
    if topic not in TOPICS or inspect.isclass(entry.value) or not callable(entry.value):
        return ""
    example = docstring(entry.value) if has_own(entry) else examples(topic).get(entry.title, "")
    with warnings.catch_warnings(), np.errstate(all="ignore"), mf.use_backend("python"):
        warnings.simplefilter("ignore")
        found = measure(entry.names, example)
    return f"**Element types:** {summarize(found)}\n" if found else ""


def measure(names: tuple[str, ...], example: str) -> dict[str, str]:
    """Return the type of the result, or the name of an error, for each type of the operands."""
    found = first_call(names, example)
    if found is None or not count_tensors(found[1]):
        return {}
    operands = operands_of(*found)
    results = {str(dtype): outcome(*found, dtype, operands) for dtype in TYPES}
    return {} if "" in results.values() else results


def first_call(names: tuple[str, ...], example: str) -> tuple[Function, Arguments] | None:
    """Run an example up to its first call of a function, which has these names, and return both."""
    found: list[tuple[Function, Arguments]] = []

    def recorder(function: Function) -> Function:
        def record(*positional: Any, **named: Any) -> Any:
            found.append((function, (positional, named)))
            raise CallFoundError

        return record

    with contextlib.ExitStack() as patches:
        for path in names:
            owner, _, name = path.rpartition(".")
            namespace = mf.Tensor if owner == "mf.Tensor" else public_module(owner)
            patches.enter_context(mock.patch.object(namespace, name, recorder(getattr(namespace, name))))
        patches.enter_context(contextlib.suppress(CallFoundError))
        patches.enter_context(contextlib.redirect_stdout(io.StringIO()))
        test = doctest.DocTestParser().get_doctest(example + "\n", {"mf": mf, "np": np}, names[0], None, 0)
        for part in test.examples:
            exec(compile(part.source, names[0], "single"), test.globs)
    return found[0] if found else None


def operands_of(function: Function, arguments: Arguments) -> set[int]:
    """Return the ids of the tensors that are converted.

    These are all; or, if the function refuses floats there, those of the first one's type or the first one alone, since the
    others are indices; or the others, since the first one is a condition.
    """
    found = [*tensors(arguments)]
    every = [id(x) for x in found]
    for operands in every, [id(x) for x in found if x.dtype == found[0].dtype], every[:1], every[1:]:
        if not outcome(function, arguments, mf.float32, {*operands}).endswith("Error"):
            return {*operands}
    return {*every}


def outcome(function: Function, arguments: Arguments, dtype: DType, operands: set[int]) -> str:
    """Return the types of the tensors in a result for operands of a dtype, or the name of the error; "" without a tensor."""
    positional, named = convert(arguments, dtype, operands)
    try:
        result = function(*positional, **named)
    except ERRORS as error:
        return type(error).__name__
    return ", ".join(dict.fromkeys(str(x.dtype) for x in tensors(result)))


def convert(value: Any, dtype: DType, operands: set[int]) -> Any:
    """Return a value with copies of its tensors, of which those with these ids have the dtype."""
    if isinstance(value, mf.Tensor):
        return value.detach().to(dtype).clone() if id(value) in operands else value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(convert(part, dtype, operands) for part in value)
    if isinstance(value, dict):
        return {key: convert(part, dtype, operands) for key, part in value.items()}
    return value


def tensors(value: Any) -> Iterator[mf.Tensor]:
    """Yield the tensors in a value, in order, at any depth of tuples, lists and dicts."""
    if isinstance(value, mf.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def count_tensors(value: Any) -> int:
    """Return the number of tensors in a value."""
    return len([*tensors(value)])


def summarize(found: dict[str, str]) -> str:
    """Summarize results by operands: those of one result are together, and errors come last."""
    operands: dict[str, list[str]] = {}
    for operand, result in found.items():
        operands.setdefault(result, []).append(operand)
    parts = sorted(operands.items(), key=lambda item: item[0].endswith("Error"))
    return "; ".join(f"{', '.join(names)} {ARROW} {result}" for result, names in parts)
