"""Similar solutions: what counts, and what does not."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course import similarity, workspace
from minifuse.course.registry import TASKS, task_named
from minifuse.course.similarity import WINDOW, K, Token, similar_pairs, tokens_of_task, winnow
from tests.course.folder import FILE
from tests.course.make_stubs import REFERENCE

BROADCAST = task_named("2.2")
UNUSUAL = """
def broadcast_shape(a, b):
    table = {}
    for name, shape in enumerate([a, b]):
        for place in range(1, len(shape) + 1):
            table.setdefault(place, set()).add(shape[-place])
    sizes = []
    while table:
        place = max(table)
        found = table.pop(place) - {1} or {1}
        if len(found) != 1:
            raise ValueError(f"{a} and {b} differ at {place}")
        sizes += found
    return tuple(sizes)
"""
RENAMED = """
def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    '''My own work.'''

    columns: dict[int, set[int]] = {}
    # who is this
    for ignored, dims in enumerate([a,
                                    b]):
        for k in range(1, len(dims) + 1):
            columns.setdefault(k, set()).add(dims[-k])  # every one
    result = []
    while columns:
        k = max(columns)
        rest = columns.pop(k) - {1} or {1}
        if len(rest) != 1:
            raise ValueError(f"no: {b}, {k}")
        result += rest
    return tuple(result)
"""
OTHER = """
def broadcast_shape(a, b):
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    padded = [1] * (len(longer) - len(shorter)) + list(shorter)
    pairs = list(zip(longer, padded))
    if any(m not in (1, n) and n != 1 for m, n in pairs):
        raise ValueError("they do not fit")
    return tuple(n if m == 1 else m for m, n in pairs)
"""
INDEX = """
def broadcast_index(index, shape):
    surplus = len(index) - len(shape)
    return tuple(0 if size == 1 else i for i, size in zip(index[surplus:], shape))
"""


def pairs(*texts, share=0.6):
    """The pairs of students with these solutions of task 2.2."""
    return similar_pairs({f"student {k}": {FILE: text} for k, text in enumerate(texts)}, [BROADCAST], share)


def test_names_comments_and_layout_do_not_count():
    assert [t.text for t in tokens_of_task(UNUSUAL, BROADCAST)] == [t.text for t in tokens_of_task(RENAMED, BROADCAST)]
    (pair,) = pairs(UNUSUAL, RENAMED, OTHER)
    assert (pair.task, pair.students, pair.share) == ("2.2", ("student 0", "student 1"), 1.0)
    first, second = pair.lines
    assert UNUSUAL.splitlines()[first[0] - 1].startswith(("def", "    table", "    for"))
    assert min(second) < 13 < max(second)


def test_a_copied_part_is_found_and_measured():
    half = UNUSUAL.replace("while table:", "while len(table) > 0 and True:").replace("sizes += found", "sizes.extend(found)")
    (pair,) = pairs(UNUSUAL, half, share=0.3)
    assert 0.3 < pair.share < 1
    assert not pairs(UNUSUAL, half, share=0.99)


def test_helpers_that_the_functions_call_belong_to_the_solution():
    helper = "\n\ndef broadcast_shape(a, b):\n    return mine(a, b)\n"
    with_helper = UNUSUAL.replace("broadcast_shape", "mine") + helper
    assert len(pairs(with_helper, RENAMED.replace("broadcast_shape", "own") + helper.replace("mine", "own"))) == 1
    assert not pairs(*[UNUSUAL.replace("broadcast_shape", "unused") + "\n\ndef broadcast_shape(a, b):\n    return a\n"] * 2)


def test_stub_and_reference_do_not_count():
    reference = (REFERENCE / FILE).read_text()
    assert not similar_pairs({name: {FILE: workspace.stub(FILE)} for name in "ab"}, TASKS)
    assert not pairs(reference, reference)
    assert pairs(reference + UNUSUAL, reference + RENAMED)


def test_without_the_reference_the_stub_still_does_not_count(monkeypatch, tmp_path):
    monkeypatch.setattr(workspace, "REFERENCE", tmp_path)
    assert not similar_pairs({name: {FILE: workspace.stub(FILE)} for name in "ab"}, TASKS)
    assert pairs((REFERENCE / FILE).read_text(), (REFERENCE / FILE).read_text())


def test_what_most_of_a_larger_class_has_does_not_count():
    assert len(pairs(*[UNUSUAL] * 3)) == 3
    assert not pairs(*[UNUSUAL] * 8)
    assert len(pairs(*[UNUSUAL] * 2, *[OTHER] * 6)) == 1


@pytest.mark.parametrize(
    "text", ["def broadcast_shape(", "\x00", "x = 1", "", "def broadcast_shape(a, b):\n  \tx\n\ty", "é" * 9]
)
def test_files_that_are_no_solution_have_no_pairs(text):
    assert not pairs(text, text, UNUSUAL)


def test_winnowing_finds_every_common_run_of_its_length():
    """The guarantee of the algorithm."""
    common = [Token(f"c{k}", k) for k in range(K + WINDOW - 1)]
    for shift in range(6):
        one = [*[Token(f"a{k}", k) for k in range(20 + shift)], *common, *[Token(f"b{k}", k) for k in range(7)]]
        other = [*[Token(f"d{k}", k) for k in range(11)], *common, *[Token(f"e{k}", k) for k in range(30 - shift)]]
        assert len(winnow(one).keys() & winnow(other).keys()) >= 1
        assert len(winnow(one)) < len(one) - K
    assert not winnow(common[: K - 1])


def test_reference_solutions_of_all_tasks_have_tokens():
    for task in TASKS:
        assert len(tokens_of_task((REFERENCE / task.file).read_text(), task)) > K, task.id


def test_lines_are_printed_as_ranges():
    assert similarity.format_lines([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert similarity.format_lines([]) == ""


def test_the_command_prints_pairs_with_share_and_lines(tmp_path):
    for name, text in {"ann": UNUSUAL, "bob": RENAMED, "carl": OTHER}.items():
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / FILE).write_text(text + INDEX)
    command = ["course", "similar", str(tmp_path / "class")]
    result = CliRunner().invoke(app, [*command, "2.2", "--out", str(tmp_path / "pairs.json")], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert "of 2.2: ann and bob" in result.stdout
    assert "bob: tensors.py, lines 2" in result.stdout
    assert "1 pair of 3 students have at least 60% of a solution in common" in result.stdout
    facts = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert facts == json.loads((tmp_path / "pairs.json").read_text())
    assert (facts[0]["task"], facts[0]["students"]) == ("2.2", ["ann", "bob"])
    error = CliRunner().invoke(app, ["course", "similar", str(tmp_path / "class" / "ann")]).exception
    assert isinstance(error, CourseError)
