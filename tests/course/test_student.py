"""Every content of a student's file gets a verdict: it never passes by accident, and errors are the student's own."""

from dataclasses import replace

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course.registry import task_named
from minifuse.course.report import format_result
from tests.course.folder import DETOUR, FILE, RIGHT, TASK, judge, written
from tests.course.make_stubs import REFERENCE

FIRST = (REFERENCE / FILE).read_text(encoding="utf-8").count("\n") + 3
"""The line where what is written behind the reference begins."""


def judge_folder(folder):
    """The verdict of task 2.1, and what a student reads, as one line."""
    result = judge(folder, TASK)
    text = format_result(TASK, result)
    assert max(map(len, text.splitlines())) <= 80, text
    return result, " ".join(text.split()).replace(f"{FIRST}", "LINE").replace(f"{FIRST + 1}", "NEXT")


def test_what_was_written_behind_the_reference_counts(tmp_path):
    """So that the cases below show what they say."""
    assert judge_folder(written(tmp_path))[0].verdict == "passed"
    assert judge_folder(written(tmp_path, RIGHT))[0].verdict == "passed"
    assert judge_folder(written(tmp_path, "def permuted(x, dims):\n    return x"))[0].verdict == "failed"


@pytest.mark.parametrize(
    ("more", "verdict", "words"),
    [
        (
            "import minifuse.core.layout",
            "refused",
            "tensors.py, line LINE, imports minifuse.core.layout: the answers are in there",
        ),
        ("from minifuse import layout", "refused", "imports minifuse: the answers are in there"),
        ("from tests.course.reference import tensors", "refused", "imports tests.course.reference: the answers"),
        ("from minifuse.course.oracle.module2 import permuted", "refused", "imports minifuse.course.oracle.module2"),
        ("from minifuse.course import oracle", "refused", "imports oracle from minifuse.course, which has"),
        ("import minifuse.course", "refused", "write `from minifuse.course import ...` with the names that you need"),
        ("from . import helper", "refused", "imports .: the task is to be solved without it"),
        ("import importlib", "refused", "imports importlib: the task is to be solved without it; allowed are collections"),
        ("import threading", "refused", "imports threading"),
        ("import os", "refused", "imports os"),
        ("try:\n    import sys\nexcept Exception:\n    pass", "refused", "imports sys"),
        ("from dataclasses import sys", "refused", "uses sys, which no task needs"),
        ("import typing\ntyping.sys.modules", "refused", "uses sys"),
        ("import random\nrandom._os._exit(0)", "refused", "uses _os"),
        ("todo.__globals__", "refused", "uses __globals__"),
        ("__builtins__", "refused", "uses __builtins__"),
        ("hasattr(todo, '__code__')", "refused", "asks for __code__, which no task needs: callable(x) says whether x"),
        ("eval('1')", "refused", "tensors.py calls eval(), which no task needs"),
        ("exec('import os')", "refused", "calls exec()"),
        ("open('tensors.py')", "refused", "calls open()"),
        ("input()", "refused", "calls input(), which no task needs: a function receives its data as arguments"),
        ("name = 'minifuse.core.layout'\n__import__(name)", "refused", "tensors.py:NEXT __import__(name)"),
        ("def permuted(x, dims):\n    return __import__('numpy')", "refused", "imports numpy"),
        ("def permuted(x, dims):\n    return __import__('dataclasses', None, None, ['sys'])", "refused", "imports sys from"),
        ("permuted = lambda x, dims: x", "refused", "is a lambda; write a function: def permuted(...)"),
        ("from functools import partial\npermuted = partial(permuted)", "refused", "an object of type partial"),
        ("from functools import lru_cache\npermuted = lru_cache(permuted)", "refused", "object of type _lru_cache_wrapper"),
        ("class C:\n    def __call__(self, x, dims): ...\npermuted = C()", "refused", "an object of type C"),
        ("import math\npermuted = math.floor", "refused", "an object of type builtin_function_or_method"),
        ("import random\npermuted = random.Random", "refused", "a class of random"),
        ("permuted = todo", "refused", "a function of minifuse.course.todo"),
        ("permuted = 3", "refused", "of type int; write a function"),
    ],
)
def test_forbidden_code_is_refused(tmp_path, more, verdict, words):
    result, text = judge_folder(written(tmp_path, more))
    assert result.verdict == verdict, text
    assert words in text


@pytest.mark.parametrize(
    ("more", "verdict", "words"),
    [
        ("def f(:", "error", "SyntaxError: invalid syntax tensors.py:LINE def f(:"),
        ("if True:\npass", "error", "IndentationError: expected an indented block after 'if' statement"),
        (
            "1 / 0",
            "error",
            "ZeroDivisionError: division by zero (a size or a value can be 0 here, or a product be too small for a float) "
            "tensors.py:LINE 1 / 0",
        ),
        ("exit()", "error", "your code ends the program (exit, quit or SystemExit)"),
        ("raise SystemExit", "error", "your code ends the program"),
        ("del permuted", "error", "tensors.py has no permuted: was it renamed, or deleted? `minifuse course reset 2.1`"),
        ("permutd = permuted\ndel permuted", "error", "has no permuted, but permutd: was that meant?"),
        ("x = '\0'", "error", "has a null byte, which Python rejects"),
        (
            "def permuted(x, dims):\n    exit()",
            "error",
            "case a tensor of shape (), strides (); dims () tensors.py:NEXT exit()",
        ),
        ("def permuted(x, dims):\n    raise MemoryError", "error", "your code took more memory than it may have"),
        ("def permuted(x, dims):\n    return permuted(x, dims)", "failed", "more than about a thousand"),
        ("def permuted(x, dims):\n    return y", "failed", "NameError: name 'y' is not defined"),
        ("def permuted(x):\n    return x", "failed", "permuted() takes 1 positional argument but 2 were given"),
        ("def permuted(x, dims):\n    return 3", "failed", "permuted returns a value of type int; expected a Strided"),
        (
            "def index_of(ordinal, shape):\n    pass",
            "failed",
            "it returns None; is a return statement missing? case ordinal 0",
        ),
        (
            "def permuted(x, dims):\n    return Strided(x.storage, list(x.shape), x.strides, x.offset)",
            "failed",
            "the shape of the view: a list; expected a tuple",
        ),
        ("def row_major_strides(shape):\n    return list(shape)", "failed", "a value of type list; expected tuple"),
        (
            "def row_major_strides(shape):\n    return (x for x in shape)",
            "failed",
            "a value of type generator; expected tuple",
        ),
        (
            "class Odd:\n    def __str__(self):\n        return 1 / 0\n\n\ndef position_of(*_):\n    return Odd()",
            "failed",
            "a Odd that cannot be shown: ZeroDivisionError",
        ),
        (
            "class Odd:\n    def __repr__(self):\n        return 'odd'\n\n\ndef index_of(*_):\n    return (Odd(),)",
            "failed",
            "(odd,)",
        ),
        (
            "def permuted(x, dims):\n    x.storage[0] = 9.0\n    return x",
            "failed",
            "your function changes its arguments; work on a copy",
        ),
        ("def permuted(x, dims):\n    todo('2.1d')", "pending", "task 2.1d is still to be written"),
    ],
)
def test_failures_are_explained(tmp_path, more, verdict, words):
    result, text = judge_folder(written(tmp_path, more))
    assert result.verdict == verdict, text
    assert words in text


def test_the_case_of_an_error_is_drawn_too(tmp_path):
    (outcome,) = [
        o
        for o in judge_folder(written(tmp_path, "def permuted(x, dims):\n    return y"))[0].outcomes
        if o.verdict == "failed"
    ]
    assert outcome.drawing[0].startswith("storage")
    assert outcome.link.startswith("strides?shape=")


def test_unusual_answers_do_not_stop_the_judge(tmp_path):
    """Whatever is given: to look for the mistake that it looks like must not fail."""
    task = task_named("0.4")
    reference = (REFERENCE / task.file).read_text()
    for k, wrong in enumerate(("3", "[(1, 2, 3)]", "[None]", "['weight']", "{}")):
        more = f"\n\nclass Module(Module):\n    def named_parameters(self):\n        return {wrong}\n"
        (tmp_path / str(k)).mkdir()
        (tmp_path / str(k) / task.file).write_text(reference + more)
        assert judge(tmp_path / str(k), task).verdict == "failed"


def test_an_int_that_no_float_can_represent_is_wrong(tmp_path):
    task = task_named("0.1")
    (tmp_path / task.file).write_text((REFERENCE / task.file).read_text() + "\n\ndef add(x, y):\n    return 10**400\n")
    assert judge(tmp_path, task).verdict == "failed"


def test_an_empty_file_has_nothing_to_pass(tmp_path):
    result, text = judge_folder(written(tmp_path, text=""))
    assert result.verdict == "error"
    assert not result.has_run
    assert "tensors.py has no row_major_strides" in text


def test_a_missing_file_is_named(tmp_path):
    result, text = judge_folder(tmp_path)
    assert result.verdict == "error"
    assert "tensors.py is missing; `minifuse course reset 2.1` brings it back" in text


def test_a_file_of_another_encoding_is_told_the_line(tmp_path):
    (written(tmp_path) / FILE).write_bytes(b"x = 1\n# caf\xe9\n")
    result, text = judge_folder(tmp_path)
    assert result.verdict == "error"
    assert "tensors.py, line 2, is not UTF-8; save the file as UTF-8 in your editor" in text


def test_a_mark_at_the_beginning_of_a_file_does_no_harm(tmp_path):
    path = written(tmp_path) / FILE
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert judge(tmp_path, TASK).verdict == "passed"


def test_a_file_that_fails_to_load_fails_each_time(tmp_path):
    """Half a module is no module, when the next check asks for it."""
    result = judge(written(tmp_path, "1 / 0"), TASK, runs_all_checks=True)
    assert [outcome.verdict for outcome in result.outcomes] == ["error"]


def test_the_reference_answer_of_the_task_is_not_in_the_process(tmp_path):
    """It is not found by a way that no rail stops."""
    more = f"def permuted(x, dims):\n    return {DETOUR}('minifuse.course.oracle.module2', fromlist=['x']).permuted(x, dims)"
    result, text = judge_folder(written(tmp_path, more))
    assert result.verdict == "failed"
    assert "module 'minifuse.course.oracle.module2' has no attribute 'permuted'" in text


def test_a_function_that_is_never_called_does_not_pass(tmp_path):
    result = judge(written(tmp_path), replace(TASK, checks=TASK.checks[:1]))
    assert result.verdict == "error"
    assert "position_of, index_of, permuted of yours was never called" in result.outcomes[-1].message


def test_a_task_without_checks_does_not_pass(tmp_path):
    result = judge(written(tmp_path), replace(TASK, checks=()))
    assert result.verdict == "pending"
    assert "no check ran, so nothing is known to be right" in format_result(TASK, result)


def test_files_of_the_folder_may_import_each_other(tmp_path):
    (written(tmp_path, "from mine import permuted") / "mine.py").write_text(
        f"from minifuse.course import Strided\n\n{RIGHT}"
    )
    assert judge(tmp_path, TASK).verdict == "passed"
    (tmp_path / "mine.py").write_text("import os\n")
    result = judge(tmp_path, TASK)
    assert result.verdict == "refused"
    assert "mine.py, line 1, imports os" in result.outcomes[-1].message


def test_a_late_import_finds_a_file_too(tmp_path):
    more = "def permuted(x, dims):\n    import mine\n    return mine.permuted(x, dims)"
    (written(tmp_path, more) / "mine.py").write_text(f"from minifuse.course import Strided\n\n{RIGHT}")
    assert judge(tmp_path, TASK).verdict == "passed"


def test_strict_lends_nothing(tmp_path):
    """map is right, but what it asks for an index is not."""
    folder = written(tmp_path, "def index_of(ordinal, shape):\n    todo('2.1c')")
    assert judge(folder, task_named("2.3")).verdict == "passed"
    strict = judge(folder, task_named("2.3"), is_strict=True)
    assert strict.verdict == "pending"
    assert "2.1c" in strict.outcomes[-1].message


@pytest.mark.parametrize("task", ["1.2", "2.4"])
def test_list_of_derivatives_is_not_accepted_as_a_tuple(tmp_path, task):
    file, name = {"1.2": ("scalar_functions.py", "Mul"), "2.4": ("tensor_functions.py", "TensorMul")}[task]
    for part in REFERENCE.glob("*.py"):
        (tmp_path / part.name).write_text(part.read_text(encoding="utf-8"), encoding="utf-8")
    text = (REFERENCE / file).read_text(encoding="utf-8")
    text += f"\n\nright = {name}.backward\n{name}.backward = staticmethod(lambda context, d: list(right(context, d)))\n"
    (tmp_path / file).write_text(text, encoding="utf-8")
    result = judge(tmp_path, task_named(task))
    found = result.outcomes[-1]
    assert "a value of type list; expected tuple" in found.message or found.mistake == "backward returns a list"


def test_an_error_inside_a_lent_function_names_it_and_the_students_line(tmp_path):
    task, folder = task_named("2.3"), written(tmp_path)
    file = folder / task.file
    file.write_text(
        (REFERENCE / task.file).read_text()
        + "\n\ndef tensor_map(fn, out, a):\n    position_of((1, 2, 3), a.strides + (1,) * 9, 0)\n"
    )
    result = judge(folder, task)
    text = " ".join(format_result(task, result).split())
    assert "ValueError: the index (1, 2, 3) has 3 dims, and the strides (1, " in text
    assert "in position_of of task 2.1, which the course lends, called with (1, 2, 3) and (" in text
    assert "position_of((1, 2, 3), a.strides + (1,) * 9, 0)" in text
