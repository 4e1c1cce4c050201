"""The text of a function of the library, line by line, without its docstring."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

from .cited_facts import Line
from .functions import Example


@cache
def source_lines(function: Callable[..., Any]) -> tuple[Line, ...]:
    """Return the lines of a function, with their numbers in the file."""
    text, first = inspect.getsourcelines(function)
    body = textwrap.dedent("".join(text)).splitlines()
    (tree,) = ast.parse("\n".join(body)).body
    assert isinstance(tree, ast.FunctionDef)
    docs = tree.body[0]
    hidden = range(docs.lineno, (docs.end_lineno or 0) + 1) if ast.get_docstring(tree) is not None else range(0)
    return tuple(Line(first + k, line) for k, line in enumerate(body) if k + 1 not in hidden)


def example_lines(example: Example) -> list[Line]:
    """Return the lines of an example, with their numbers in its file."""
    if example.text:
        return [Line(number, text) for number, text in enumerate(example.text, 1) if text]
    lines, first = inspect.getsourcelines(example.function)
    return [Line(first + k, text.rstrip("\n")) for k, text in enumerate(lines)]
