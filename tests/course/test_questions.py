"""What runs beside a student's code knows no answer."""

import ast
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import questions
from minifuse.course.worker import JUDGES

FILES = sorted(Path(questions.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_question_imports_nothing_of_the_judge(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {part for alias in node.names for part in alias.name.split(".")}
    assert not names & {*JUDGES, "mutants", "hypothesis"}
