"""The lines drawn from PyTorch's documentation: the data are consistent, and what is as in PyTorch stays so."""

import re
from functools import cache

import pytest

from . import __main__ as command
from .entries import FOLDER, NAMESPACES, TRIED, documented_names, draw, namespace_of, read_names
from .run import (
    Line,
    Outcome,
    differences,
    installed_version,
    outcome_of,
    read_answers,
    read_lines,
    read_same,
    record,
    recorded_version,
    run,
)

PAGE = FOLDER.parents[1] / "docs" / "guide" / "from-pytorch.md"
MATRIX = {"dtype": "float32", "shape": [1, 2], "values": [1.0, float("nan")]}


@cache
def outcomes() -> dict[str, Outcome]:
    return run()


def need_the_recorded_pytorch() -> None:
    pytest.importorskip("torch")
    if installed_version() != recorded_version():
        pytest.skip(f"the answers are those of PyTorch {recorded_version()}, not {installed_version()}")


def test_there_is_one_line_for_each_name_that_the_seed_draws():
    assert [line.name for line in read_lines()] == draw()
    assert len(draw()) == TRIED


def test_each_namespace_is_drawn_in_proportion():
    def count(names: list[str], space: str) -> int:
        return sum(namespace_of(name) == space for name in names)

    for space in NAMESPACES:
        share = TRIED * count(read_names(), space) / len(read_names())
        assert abs(count(draw(), space) - share) < 1, space


def test_each_line_uses_the_name_that_it_tries():
    other = [line for line in read_lines() if not re.search(rf"\b{line.name.rpartition('.')[2]}\b", line.code)]
    assert not other


def test_every_line_has_an_answer():
    assert [*read_answers()] == [line.name for line in read_lines()]


def test_only_lines_that_are_not_random_have_values():
    for line in read_lines():
        answer = read_answers()[line.name]
        tensors = [part for part in (answer if isinstance(answer, list) else [answer]) if isinstance(part, dict)]
        assert all(("values" in part) != line.is_random for part in tensors if "shape" in part), line.name


def test_the_names_are_those_that_pytorch_documents():
    need_the_recorded_pytorch()
    assert documented_names() == read_names()


def test_the_answers_are_those_of_pytorch():
    need_the_recorded_pytorch()
    found = record()
    assert found.keys() == read_answers().keys()
    unequal = {name: [*differences(found[name], answer)] for name, answer in read_answers().items()}
    assert not {name: lines for name, lines in unequal.items() if lines}


def test_lines_that_are_as_in_pytorch_stay_so():
    lost = [f"{name}: {outcomes()[name].detail}" for name in read_same() if outcomes()[name].kind != "same"]
    assert not lost, "\n".join(lost)


def test_lines_that_differ_are_in_the_table_of_the_guide():
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("| `torch.")]
    documented = {name for row in rows for name in re.findall(r"`(torch\.[\w.]+)`", row.split("|")[1])}
    differ = {name: outcome.detail for name, outcome in outcomes().items() if outcome.kind == "differs"}
    assert not differ.keys() - documented, f"{differ} is not in the table of {PAGE.name}"


def test_lines_that_fail_say_what_to_write():
    assert not [name for name, outcome in outcomes().items() if outcome.kind == "missing"]


def test_each_line_that_has_become_the_same_is_in_the_list():
    new = [name for name, outcome in outcomes().items() if outcome.kind == "same" and name not in read_same()]
    assert not new, f"write `python -m tests.like_pytorch --accept`: now as in PyTorch: {', '.join(new)}"


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (MATRIX, MATRIX, None),
        (MATRIX | {"values": [1.000001, float("nan")]}, MATRIX, None),
        (MATRIX | {"values": [1.1, float("nan")]}, MATRIX, "1 of 2 values: at 0 got 1.1, expected 1.0"),
        (MATRIX | {"values": [1.0, 1.0]}, MATRIX, "1 of 2 values: at 1 got 1.0, expected nan"),
        (MATRIX | {"dtype": "float64"}, MATRIX, "got dtype float64, expected float32"),
        (MATRIX | {"shape": [2]}, MATRIX, "got shape [2], expected [1, 2]"),
        ([1, 2], [1, 2, 3], "got 2 values, expected 3"),
        ([1, MATRIX], [1, MATRIX | {"shape": [2]}], "got shape [1, 2], expected [2]"),
        (1, 1.0, "got 1, expected 1.0"),
        (0.5, 0.5000001, None),
        ("cpu", "cuda", "got 'cpu', expected 'cuda'"),
    ],
)
def test_a_difference_is_described(got, expected, text):
    assert [*differences(got, expected)] == ([] if text is None else [text])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("x.clone()", "same"),
        ("y", "differs"),
        ("torch.no_such_function(x)", "missing"),
        ("{}['there is no torch.median: write x.mean()']", "advice"),
    ],
)
def test_an_outcome_is_classified(code, kind):
    assert outcome_of(Line("torch.Tensor.clone", code), read_answers()["torch.Tensor.clone"]).kind == kind


def test_the_list_of_same_lines_never_shrinks(tmp_path, monkeypatch):
    listed = tmp_path / "same.txt"
    listed.write_text("torch.cos\n")
    monkeypatch.setattr(command, "SAME", listed)
    monkeypatch.setattr(command, "read_same", lambda: listed.read_text().split())
    with pytest.raises(SystemExit, match=r"torch\.cos: got 1"):
        command.accept({"torch.cos": Outcome("differs", "got 1"), "torch.sin": Outcome("same")})
    assert listed.read_text() == "torch.cos\n"
    command.accept({"torch.cos": Outcome("same"), "torch.sin": Outcome("same")})
    assert listed.read_text() == "torch.cos\ntorch.sin\n"
