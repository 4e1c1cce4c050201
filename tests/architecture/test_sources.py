"""Habits of the sources that a machine can see."""

import ast
import re

from tests.sources import PACKAGE, modules

MAX_LINES = 450

# They run text that minifuse has printed itself, of names and numbers: there is no other way to a function made to measure.
RUN_TEXT = ("compiler.host_program", "backends.parallel.compiler", "backends.cuda.compiler", "inspect.provenance.on_cpu")
# (module, imported module): a new operator is public by its name in one file.
STAR_IMPORTS = {("minifuse", "core.operators")}
MODULES = modules().values()


def test_every_module_has_a_docstring():
    missing = [str(module.path) for module in MODULES if not ast.get_docstring(module.tree)]
    assert not missing, f"{missing} have no docstring: what is it for, and what does it leave to others?"


def test_every_module_fits_in_the_head():
    long = {str(module.path): lines for module in MODULES if (lines := module.text.count("\n")) > MAX_LINES}
    assert not long, f"{long}: more than {MAX_LINES} lines; does it have one subject?"


def test_only_the_command_line_prints():
    others = [module for module in MODULES if not f"{module.name}.".startswith(f"{PACKAGE}.cli.")]
    found = {str(module.path): lines for module in others if (lines := module.lines_with_call("print"))}
    assert not found, f"{found}: only the command line prints; return the text, or raise an error"


def test_only_listed_modules_run_text():
    others = [module for module in MODULES if module.name.removeprefix(f"{PACKAGE}.") not in RUN_TEXT]
    found = {str(module.path): lines for module in others if (lines := module.lines_with_call("exec", "eval"))}
    assert not found, f"{found}: only {' and '.join(RUN_TEXT)} run text, of their own"


def test_every_module_is_finished():
    marks = {str(module.path): re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b.*", module.text) for module in MODULES}
    found = {path: marks for path, marks in marks.items() if marks}
    assert not found, f"{found}; finish it, or say what the limit is"


def test_every_module_imports_by_name():
    found = []
    for module in MODULES:
        imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
        stars = [node for node in imports if node.names[0].name == "*" and (module.name, node.module) not in STAR_IMPORTS]
        found += [f"{module.path}:{node.lineno}" for node in stars]
    assert not found, f"{found}: name what is imported"
