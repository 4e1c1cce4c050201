"""What runs beside a student's code knows no answer."""

from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import questions
from minifuse.course.verify_tasks import judge_imports

FILES = sorted(Path(questions.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_question_imports_nothing_of_the_judge(file):
    assert not judge_imports(file)
