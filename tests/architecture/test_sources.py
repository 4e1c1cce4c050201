"""Habits of the sources that a machine can see."""

import ast
import re

import pytest

from tests.sources import PACKAGE, Module, modules

MOST_LINES = 450

# They run text that minifuse has printed itself, of names and numbers: there is no other way to a function made to measure.
RUN_TEXT = ("compiler.host_program", "backends.parallel.compiler", "backends.cuda.compiler", "inspect.provenance.on_cpu")
MODULES = modules()

pytestmark = pytest.mark.parametrize("module", [pytest.param(module, id=name) for name, module in MODULES.items()])


def test_it_has_a_docstring(module: Module):
    assert ast.get_docstring(module.tree), (
        f"{module.path} has no docstring: what is it for, and what does it leave to others?"
    )


def test_it_fits_in_the_head(module: Module):
    lines = module.text.count("\n")
    assert lines <= MOST_LINES, f"{module.path} has {lines} lines, more than {MOST_LINES}; does it have one subject?"


def test_it_prints_nothing(module: Module):
    if module.name == f"{PACKAGE}.cli" or module.name.startswith(f"{PACKAGE}.cli."):
        return
    lines = module.lines_with_call("print")
    assert not lines, f"{module.path}:{lines}: only the command line prints; return the text, or raise an error"


def test_it_runs_no_text(module: Module):
    lines = module.lines_with_call("exec", "eval")
    may = module.name.removeprefix(f"{PACKAGE}.") in RUN_TEXT
    assert may or not lines, f"{module.path}:{lines}: only {' and '.join(RUN_TEXT)} run text, of their own"


def test_it_is_finished(module: Module):
    marks = re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b.*", module.text)
    assert not marks, f"{module.path}: {marks}; finish it, or say what the limit is"


def test_it_imports_by_name(module: Module):
    imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
    stars = [node.lineno for node in imports if node.names[0].name == "*"]
    assert not stars, f"{module.path}:{stars}: name what is imported"
