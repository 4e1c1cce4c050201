"""Tasks in subprocesses: endless loops, exhausted memory, sudden exits, and the output of the student's code."""

import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import compiled, worker
from minifuse.course.judge import format_pair
from minifuse.course.questions import loading
from minifuse.course.registry import TASKS, task_named
from minifuse.course.runner import TaskRun, run, verify_result
from minifuse.course.student_process import StudentProcess
from minifuse.course.task import Effort
from minifuse.course.verdicts import Outcome, Result, TimedOut
from minifuse.course.worker import CapturedOutput
from tests.course.folder import DETOUR, TASK, written
from tests.course.make_stubs import REFERENCE

DEF = "def permuted(x, dims):\n    "


def result_of(folder, examples=5, **options):
    """Return the result of task 2.1."""
    (result,) = run(folder, [TASK], effort=Effort(examples), **options)
    return result


def test_a_right_file_passes_with_its_calls(tmp_path):
    result = result_of(written(tmp_path))
    assert result.verdict == "passed"
    assert result.calls == dict.fromkeys(TASK.slots, 4) | {"position_of": 5, "permuted": 8}  # each of the latter twice
    assert list(tmp_path.iterdir()) == [tmp_path / "tensors.py"]  # no caches are left in the folder


def test_values_that_differ_are_shown_with_the_digits_that_differ():
    expected, got = format_pair((np.array([1.0]),), (np.array([1.0 + 1e-12]),))
    assert expected != got
    assert format_pair(np.array([1.0]), np.array([2.0])) == ("[1.]", "[2.]")


RETURNS_NAME = """
right = {0}

def {0}(*arguments):
    try:
        return right(*arguments)
    except (IndexError, ValueError) as error:
        return {1}
"""


@pytest.mark.parametrize(
    ("task", "slot", "returned", "expected", "got"),
    [
        ("2.2", "broadcast_shape", "None", "ValueError", "None"),
        ("2.2", "broadcast_shape", "()", "ValueError", "()"),
        ("2.6", "sliced", "arguments[0]", "IndexError", "no error"),
        ("0.3", "zip_lists", "type(error).__name__", "ValueError", "'ValueError'"),
    ],
)
def test_an_error_that_is_expected_is_shown_by_its_name(tmp_path, task, slot, returned, expected, got):
    """An answer that says what the error is does not raise it."""
    chosen = task_named(task)
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "mine"))
    with (folder / chosen.file).open("a", encoding="utf-8") as file:
        file.write(RETURNS_NAME.format(slot, returned))
    (result,) = run(folder, [chosen], effort=Effort(60))
    last = result.outcomes[-1]
    assert (last.expected, last.got) == (expected, got), result.outcomes


def test_a_loop_without_end_is_stopped_with_its_line_and_case(tmp_path):
    more = "def position_of(index, *_):\n    print('round')\n    while True:\n        index = index"
    result = result_of(written(tmp_path, more), time_s=4)
    first, last = result.outcomes
    assert first.verdict == "passed"
    assert (last.verdict, last.check) == ("timeout", TASK.checks[1].name)
    assert last.message == "stopped after 4 s; is there a loop that does not end? If not, --limit 20 gives it more time"
    assert last.case.startswith("index ")
    assert last.lines[-1][2].strip() in ("while True:", "index = index")
    assert last.printed == "round\n"
    assert result.has_run


def test_time_that_ends_between_two_questions_is_over(tmp_path):
    """The process is idle for five times as long as it may compute: the answer to its next question is the timeout."""
    with StudentProcess(written(tmp_path), TASKS, TASK, seconds=1) as process:
        process.ask(loading.load, TASK.id)
        time.sleep(5.5)
        with pytest.raises(TimedOut):
            process.ask(loading.load, TASK.id)


def test_waiting_is_no_computing(tmp_path):
    with StudentProcess(written(tmp_path), TASKS, TASK, seconds=2) as process:
        process.ask(loading.load, TASK.id)
        time.sleep(2.5)
        process.ask(loading.load, TASK.id)
        assert process.is_running


def test_compiled_code_that_runs_has_the_line_of_python(tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text("def fill(is_over):\n    k = 0\n    while not is_over:\n        k = 1\n")
    namespace, is_over = {}, []
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    assert worker.lines_of_compiled_call(tmp_path) == []
    compiled.running.append((namespace["fill"], (is_over,)))
    try:
        ((name, line),) = worker.lines_of_compiled_call(tmp_path)
    finally:
        compiled.running.pop()
        is_over.append(True)
    assert name == "kernels.py"
    assert line in (3, 4)


def test_call_that_holds_the_gil_is_stopped(tmp_path):
    """No other thread can run, so faulthandler reports the line."""
    more = "def row_major_strides(shape):\n    return 10**10**9"
    (last,) = result_of(written(tmp_path, more), time_s=3).outcomes
    assert (last.verdict, last.check) == ("timeout", TASK.checks[0].name)
    assert [line[2].strip() for line in last.lines] == ["return 10**10**9"]


def test_a_file_that_takes_its_time_when_imported_is_stopped(tmp_path):
    (only,) = result_of(written(tmp_path, "for k in range(10**12):\n    pass"), time_s=1).outcomes
    assert only.verdict == "timeout"
    assert only.check == "tensors.py can be read, and has what the task asks for"
    assert only.lines[-1][2].strip() in ("for k in range(10**12):", "pass")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit a process's memory")
def test_exhausted_memory_is_a_verdict(tmp_path):
    more = f"{DEF}kept = []\n    while True:\n        kept.append([0] * 10**6)"
    (*_, last) = result_of(written(tmp_path, more), memory_bytes=1 << 30).outcomes
    assert last.verdict == "error"
    assert last.message.startswith("your code took more memory than it may have")
    assert last.lines[-1][2].strip() == "kept.append([0] * 10**6)"


def test_a_process_that_ends_suddenly_did_not_pass(tmp_path):
    result = result_of(written(tmp_path, f"{DEF}getattr({DETOUR}('os'), '_exit')(0)"))
    (*_, last) = result.outcomes
    assert (last.verdict, last.check) == ("error", TASK.checks[3].name)
    assert last.message.startswith("your code ended the whole process, with status 0, before it could be judged")


def test_a_signal_is_named(tmp_path):
    more = f"{DEF}process = {DETOUR}('os')\n    process.kill(process.getpid(), 11)"
    assert "by signal SIGSEGV" in result_of(written(tmp_path, more)).outcomes[-1].message


@pytest.mark.skipif(not worker.system_calls.is_supported(), reason="needs Linux with seccomp")
@pytest.mark.parametrize(
    "code",
    [
        f"{DETOUR}('socket').socket()",
        f"{DETOUR}('subprocess').run(['true'])",
        f"{DETOUR}('os').execv('/bin/true', ['true'])",
    ],
)
def test_neither_network_nor_other_programs_are_reached(tmp_path, code):
    (*_, last) = result_of(written(tmp_path, f"{DEF}{code}")).outcomes
    assert last.verdict == "failed"
    assert last.message.startswith("PermissionError")


def test_running_threads_do_not_delay_the_result(tmp_path):
    more = f"{DETOUR}('threading').Thread(target=lambda: {DETOUR}('time').sleep(100)).start()"
    began = time.monotonic()
    assert result_of(written(tmp_path, more)).verdict == "passed"
    assert time.monotonic() - began < 60


def test_printed_output_is_separate_from_the_protocol(tmp_path):
    """For the smallest case alone; on a standard output that no result can be mistaken for."""
    line = json.dumps({"task": "2.1", "outcomes": [], "calls": {}})
    more = f"{DEF}print(x.shape, {line!r})\n    {DETOUR}('os').write(1, b'past Python\\n')\n    return x"
    result = result_of(written(tmp_path, more), examples=30)  # of five, none may tell x from a view of it
    (*_, last) = result.outcomes
    assert last.verdict == "failed"
    shape = last.case.removeprefix("a tensor of shape ").partition(", strides")[0]
    assert set(last.printed.splitlines()) == {f"{shape} {line}"}


def test_a_forged_answer_ends_the_judging(tmp_path):
    """Even if the code gets hold of the pipe: it does not know the word of the request."""
    find = f"[x for x in {DETOUR}('gc').get_objects() if type(x).__name__ == 'Connection']"
    more = f"""{DEF}for pipe in {find}:
        if pipe.writable:
            pipe.send_bytes(b'{{"value": {{"tuple": [1, 2]}}, "changed": false}}')
    return x"""
    (*_, last) = result_of(written(tmp_path, more)).outcomes
    assert last.verdict == "error"
    assert last.message.startswith("your code wrote to the pipe of its answers")


def test_endless_printing_is_cut():
    output = CapturedOutput()
    for _ in range(10_000):
        output.write("line\n")
    assert 1000 < len(output.take()) < 10_000


def test_students_file_does_not_shadow_a_module_of_python(tmp_path):
    for name in ("random", "json", "numpy"):
        (written(tmp_path) / f"{name}.py").write_text("raise RuntimeError")
    assert result_of(tmp_path).verdict == "passed"


def test_a_run_can_be_cancelled(tmp_path):
    began = time.monotonic()
    one = TaskRun(written(tmp_path, "while True:\n    pass"), TASK, time_s=100)
    one.cancel()
    assert one.result().verdict == "error"
    one.cancel()  # once more does no harm
    assert time.monotonic() - began < 60


def test_begin_is_called_before_each_check(tmp_path):
    names = []
    TaskRun(written(tmp_path), TASK, Effort(1), begin=names.append).result()
    assert names == ["tensors.py can be read, and has what the task asks for", *(check.name for check in TASK.checks)]


def test_a_seed_repeats_the_cases(tmp_path):
    folder = written(tmp_path, "import random\n\n\ndef permuted(x, dims):\n    print(x.shape)\n    return x")
    seen = [[o.case for o in run_with(folder, seed).outcomes] for seed in (1, 1)]
    assert seen[0] == seen[1]


def run_with(folder, seed):
    (result,) = run(folder, [TASK], effort=Effort(20, seed))
    return result


def test_all_checks_run_if_requested(tmp_path):
    folder = written(tmp_path, "def position_of(index, strides, offset):\n    return 0")
    assert [o.verdict for o in result_of(folder).outcomes] == ["passed", "failed"]
    assert [o.verdict for o in result_of(folder, runs_all_checks=True).outcomes] == ["passed", "failed", "passed", "passed"]


@pytest.mark.parametrize(
    ("checks", "calls"), [(0, 1), (len(TASK.checks) - 1, 1), (len(TASK.checks), 0), (len(TASK.checks), None)]
)
def test_pass_without_checks_or_calls_becomes_an_error(checks, calls):
    """The parent process checks the result itself."""
    outcomes = [Outcome(check.name, "passed") for check in TASK.checks[:checks]] or [Outcome("another one", "passed")]
    counted = {} if calls is None else dict.fromkeys(TASK.slots, calls)
    assert verify_result(Result("2.1", list(outcomes), counted), TASK).verdict == "error"


def test_complete_pass_is_accepted():
    outcomes = [Outcome(check.name, "passed") for check in TASK.checks]
    assert verify_result(Result("2.1", outcomes, dict.fromkeys(TASK.slots, 1)), TASK).verdict == "passed"
